#!/bin/sh
# The parts of the style sheet in the order of their names, without comments and indentation.
set -eu
mkdir -p dist
cat src/*.css | sed -e 's,/\*[^*]*\*/,,g' -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' >dist/site.css
echo "dist/site.css: $(wc -c <dist/site.css | tr -d ' ') bytes"

#!/bin/sh
# As a user would: check the sum, unpack, run the tool, look for the front page.
set -eu
unpacked=$(mktemp -d /tmp/unpacked.XXXXXX)
trap 'rm -rf "$unpacked"' EXIT
(cd dist && sha256sum --quiet -c SHA256SUMS)
tar -C "$unpacked" -xf dist/observer-*.tar
test -s "$unpacked/site/index.html"
[ "$("$unpacked/bin/slug" 'It works')" = it-works ]
echo "release: archive verified"

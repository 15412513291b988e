#!/bin/sh
# The style sheet is whole: no comment is left, braces are balanced, the parts are in order.
set -eu
css=dist/site.css
if grep -q '/\*' $css; then
	echo "a comment is left in $css" >&2
	exit 1
fi
awk '{ n += gsub(/{/, "") - gsub(/}/, ""); if (n < 0) exit } END { exit n != 0 }' $css || {
	echo "braces of $css do not balance" >&2
	exit 1
}
[ "$(grep -n '^html' $css | cut -d: -f1)" -lt "$(grep -n '^pre' $css | cut -d: -f1)" ]
echo "theme: 3 checks"

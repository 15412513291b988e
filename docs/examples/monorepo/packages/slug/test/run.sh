#!/bin/sh
# The built program from outside.
set -eu
slug=dist/bin/slug

expect() { # WANT GOT
	[ "$1" = "$2" ] || {
		echo "got '$2', want '$1'" >&2
		exit 1
	}
}
expect "hello-world" "$($slug 'Hello, World!')"
expect "a
b-c" "$(printf 'A\nB (c)\n' | $slug)"
long=$(printf '%0300d' 0)
if $slug "$long" 2>/dev/null; then
	echo "a title that is too long was accepted" >&2
	exit 1
fi
echo "slug: 3 cases"

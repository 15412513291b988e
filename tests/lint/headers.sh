#!/bin/sh
# SPDX-License-Identifier: MIT
# Each header compiles alone, and its guard is named after its path. Those of sandbox/musl stand in for
# a C library's, for one compiler: every build of vx-sandbox compiles them.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

cc=${CC:-cc}
for h in $(find src sandbox helpers tests -name '*.h' ! -path 'sandbox/musl/*' 2>/dev/null |
	sort); do
	case $h in
	src/*) inc=${h#src/} ;;
	*) inc=$h ;;
	esac
	printf '#include "%s"\n' "$inc" >"$T/one.c"
	# shellcheck disable=SC2086 # CC may hold words
	ok "$h compiles alone" $cc -std=gnu11 -Wall -Wextra -Wundef -Werror -fsyntax-only \
		-include "$VX_BUILDDIR/config.h" -DPKGLIBEXECDIR='""' -Isrc -I. "$T/one.c"
	guard=$(printf '%s' "$inc" | tr 'a-z/.-' 'A-Z___')
	like "$h" "^#ifndef $guard\$" "$h is guarded by $guard"
done
done_testing

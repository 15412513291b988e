#!/bin/sh
# SPDX-License-Identifier: MIT
# The repository speaks of vx alone: no path of one machine, no host of a package registry, nothing
# unfinished. Patterns are spelled so that they do not match this file.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

# What the tree consists of, with or without git.
{
	git_ ls-files -co --exclude-standard 2>/dev/null || find . -type f | sed 's,^\./,,'
} | grep -vE '^(build|autom4te\.cache|build-aux|\.git)/|^(configure|aclocal\.m4|.*Makefile\.in|config\.h\.in)~?$' |
	sort -u >"$T/files"
ok "there are files" test -s "$T/files"

# NAME REGEX [FILES-REGEX]
no_words() {
	grep -E "${3:-.}" "$T/files" | tr '\n' '\0' | xargs -0r grep -nIE -e "$2" 2>/dev/null >"$T/bad"
	is "$(head -n 20 "$T/bad")" "" "$1"
}
top=$(printf '%s' "$VX_SRCDIR" | sed 's/[^A-Za-z0-9_/-]/\\&/g')
no_words "no path of this machine" "(^|[^A-Za-z0-9_./-])$top(/|\$|[^A-Za-z0-9_.-])"
no_words "no home of anybody" '(^|[^A-Za-z0-9_.-])/(home|root)/[.a-z]' '^(src|sandbox|helpers|docs|\.ci)/|^[^/]*$'
no_words "no registry host" '(registry|deb|pypi|proxy|index)\.[a-z-]+\.(org|com|net|io|js)|files\.pythonhosted'
no_words "nothing unfinished in code" '\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b|placeholder i[m]plementation|\bfor n[o]w\b' \
	'\.(c|h|sh|am|ac|mjs|js|py)$|^(bootstrap|\.ci/run)$'
no_words "no sleep in product or test" '(^|[^A-Za-z0-9_])(sleep|usleep|nanosleep)[ ]*\(' '\.[ch]$'
done_testing

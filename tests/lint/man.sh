#!/bin/sh
# SPDX-License-Identifier: MIT
# The man pages are sound mdoc.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

command -v mandoc >/dev/null || cannot "no mandoc here"
for page in docs/man/*.[1-8]; do
	# "style" would ask for things of the BSDs (a RCS id, their own names).
	ok "$page" mandoc -Tlint -Wwarning "$page"
done

# Every word of a spec, but those for tests.
words=$(sed -n 's/^\t{"\([a-z-]*\)", WORD_.*/\1/p; s/^\t\[SPEC_[A-Z_]*\] = "\([a-z-]*\)",$/\1/p' src/proto/spec.c)
ok "spec words are found" test "$(echo "$words" | wc -l)" -gt 20
for word in $words; do
	case $word in fuse-off | attached) continue ;; esac
	ok "vx-sandbox.1: $word" grep -qE "^\.It (Li .*, )?Li $word( |\$)" docs/man/vx-sandbox.1
done
done_testing

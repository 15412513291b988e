#!/bin/sh
# SPDX-License-Identifier: MIT
# The example workspace: cold, warm, restored byte for byte, and after an edit exactly what depends on it.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program git make cc node python3
cp -R "$VX_SRCDIR/docs/examples/monorepo/." "$W"
cd "$W" || exit 99
git_ init -q

# Without owners: the lane that runs as root in somebody else's workspace gives it away before each run.
modes() { listing packages | sed 's/ [0-9]*:[0-9]* / /'; }
ran() { sed -nE 's/^.*  (miss|no-cache)  +([^ ]+).*/\2/p' "$OUT" | sort | tr '\n' ' '; }

run run build test --all
exits 0 "cold"
is "$(ran)" "articles#build articles#test libslug#build libslug#test markdown#build markdown#test release#build release#test site#build site#test slug#build slug#test theme#build theme#test " \
	"every task ran"
said_not 'sandbox violation|^note:' "nothing to say about any of them"
modes >"$T/cold"
run run build test --all
exits 0 "warm"
said 'all cached' "nothing ran"

for p in site slug release; do
	rm -rf "packages/$p/dist"
	run run build test --all
	exits 0 "$p/dist deleted"
	said 'all cached' "$p/dist: nothing ran"
	modes >"$T/restored"
	ok "$p/dist: restored byte for byte, with modes" diff "$T/cold" "$T/restored"
done

echo 'And a new line.' >>packages/articles/content/first-light.md
run run build test --all
exits 0 "an article edited"
is "$(ran)" "articles#build release#build release#test site#build site#test " "exactly what depends on it ran"
echo '/* and a new line */' >>packages/libslug/src/slug.c
run run build test --all
exits 0 "a C source edited"
is "$(ran)" "articles#build libslug#build libslug#test release#build release#test site#build site#test slug#build slug#test " \
	"exactly what depends on it ran"
run run build test --all --sandbox
exits 0 "--sandbox takes what was made under enforcement"
said 'all cached' "as hits"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# rules.exclusiveOutputs off: a task that adds to the outputs of one it needs (spec/cache.md §6). Plain, and
# with --sandbox where there is one.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

echo '{ "projects": ["p"], "rules": { "exclusiveOutputs": false } }' >vx.workspace.json
# build owns dist, post adds to it; both copy their input.
tasks() { # POST-GLOBS POST-COMMAND [POST-DEPENDS]
	put p/vx.config.json <<-J
		{ "name": "p", "tasks": {
			"build": {
				"exec": { "command": "mkdir -p dist/d; cp in dist/main; cp in dist/d/part; cp in dist/only-\$(cat in); echo build" },
				"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } } },
			"post": { "dependsOn": [${3-\"build\"}],
				"exec": { "command": "$2; echo post" },
				"cache": { "inputs": { "files": ["post"] }, "outputs": { "files": [$1] } } } } }
	J
}
three() {
	put p/vx.config.json <<-'J'
		{ "name": "p", "tasks": {
			"build": { "exec": { "command": "mkdir -p dist; cp in dist/main" },
				"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } } },
			"post": { "dependsOn": ["build"],
				"exec": { "command": "if grep -q x post; then mkdir -p dist/x; cp post dist/x/made; else cp post dist/a; fi" },
				"cache": { "inputs": { "files": ["post"] }, "outputs": { "files": ["dist/**"] } } },
			"last": { "dependsOn": ["post"],
				"exec": { "command": "mkdir -p dist/x; cp in dist/x/last" },
				"cache": { "inputs": { "files": ["in"], "tasks": [] }, "outputs": { "files": ["dist/x/**"] } } } } }
	J
}
adds='test -f dist/main && test ! -e dist/maps && mkdir dist/maps && cp post dist/maps/m && cp post dist/added-$(cat post) && ln -s main dist/link'
outputs() { (cd p && find dist ! -type d 2>/dev/null | sort | tr '\n' ' '); }
mtimes() { (cd p && find dist ! -type d -printf '%p %i %T@ %C@\n' | sort); }
built='dist/added-a dist/d/part dist/link dist/main dist/maps/m dist/only-one '
mkdir p
echo one >p/in
echo a >p/post
echo dist >.gitignore
tasks '"dist/**"' "$adds"
git_ init -q
git_ add -A
git_ commit -qm workspace



lane() { # FLAG
	mode=${1:-plain}
	rm -rf .vx p/dist
	echo one >p/in
	echo a >p/post
	tasks '"dist/**"' "$adds"
	run run p#post ${1:+"$1"}
	exits 0 "$mode: cold"
	said_not 'not saved' "$mode: both are saved"
	is "$(outputs)" "$built" "$mode: one adds to the other's"
	mtimes >"$T/cold"

	run run p#post ${1:+"$1"}
	exits 0 "$mode: warm"
	said 'all cached' "$mode: nothing ran"
	mtimes >"$T/warm"
	ok "$mode: both are up to date: nothing was written" cmp "$T/cold" "$T/warm"
	run run p#build ${1:+"$1"}
	said 'all cached' "$mode: so is the owner alone"
	is "$(outputs)" "$built" "$mode: what was added stays"

	rm -rf p/dist
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: all gone"
	is "$(outputs)" "$built" "$mode: both are restored"
	rm -rf p/dist
	run run p#build ${1:+"$1"}
	is "$(outputs)" "dist/d/part dist/main dist/only-one " "$mode: the owner's entry holds nothing of the other"
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: which is restored beside it"
	is "$(outputs)" "$built" "$mode: on its own"

	rm p/dist/added-a
	mtimes | grep -v maps >"$T/before"
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: something added is gone"
	is "$(outputs)" "$built" "$mode: and comes back"
	mtimes | grep -E 'main|part|only' >"$T/after"
	is "$(grep -E 'main|part|only' "$T/before")" "$(cat "$T/after")" "$mode: without a touch of the owner's"

	echo broken >p/dist/main
	mtimes | grep -E 'added|maps' >"$T/before"
	run run p#build ${1:+"$1"}
	is "$(cat p/dist/main)" one "$mode: something of the owner's is put right"
	is "$(outputs)" "$built" "$mode: what was added stays"
	is "$(mtimes | grep -E 'added|maps')" "$(cat "$T/before")" "$mode: untouched"
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: and is up to date"

	echo b >p/post
	run run p#post ${1:+"$1"}
	exits 0 "$mode: another result of the one that adds"
	is "$(outputs)" "dist/added-b dist/d/part dist/link dist/main dist/maps/m dist/only-one " \
		"$mode: its old one goes, nothing else does"
	echo a >p/post
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: the old one again"
	is "$(outputs)" "$built" "$mode: is restored in the place of the new one"

	echo two >p/in
	run run p#post ${1:+"$1"}
	exits 0 "$mode: another result of the owner"
	is "$(outputs)" "dist/added-a dist/d/part dist/link dist/main dist/maps/m dist/only-two " \
		"$mode: all of it is made anew"
	echo one >p/in
	run run p#post ${1:+"$1"}
	said 'all cached' "$mode: and back"
	is "$(outputs)" "$built" "$mode: all of it"
	is "$(cat p/dist/main p/dist/maps/m)" "one
a" "$mode: as it was"

	# Overwriting: the owner's bytes first, then the other's, every time.
	tasks '"dist/**"' 'cat dist/main >x; cat post >>x; mv x dist/main'
	[ -n "$1" ] && tasks '"dist/**"' 'cat dist/main post >dist/x; mv dist/x dist/main'
	run run p#post ${1:+"$1"}
	exits 0 "$mode: one that rewrites"
	said_not 'not saved' "$mode: is saved"
	for way in again lost owner; do
		[ $way != lost ] || rm -rf p/dist
		[ $way != owner ] || run run p#build ${1:+"$1"}
		[ $way != owner ] || is "$(cat p/dist/main)" one "$mode: its own bytes for who asks for the owner alone"
		run run p#post ${1:+"$1"}
		said 'all cached' "$mode: $way: nothing ran"
		is "$(cat p/dist/main)" "one
a" "$mode: $way: the rewritten one"
		is "$(outputs)" "dist/d/part dist/main dist/only-one " "$mode: $way: and the others"
	done

	# A directory of one that adds, to which another one has added.
	three
	echo x >p/post
	run run p#last ${1:+"$1"}
	exits 0 "$mode: two that add, one in the other's directory"
	echo a >p/post
	run run p#post ${1:+"$1"}
	exits 0 "$mode: the first without that directory"
	is "$(outputs)" "dist/a dist/main dist/x/last " "$mode: it stays with what the second has in it"
	echo x >p/post
	run run p#last ${1:+"$1"}
	said 'all cached' "$mode: with it, again"
	is "$(outputs)" "dist/main dist/x/last dist/x/made " "$mode: both are in it"
	echo a >p/post
	for way in once again lost; do
		[ $way != lost ] || rm -rf p/dist
		run run p#post ${1:+"$1"}
		said 'all cached' "$mode: $way: without it, by a restore"
		[ $way = lost ] || is "$(outputs)" "dist/a dist/main dist/x/last " "$mode: $way: the second one's stays"
	done
	run run p#last ${1:+"$1"}
	said 'all cached' "$mode: the second after that"
	is "$(outputs)" "dist/a dist/main dist/x/last " "$mode: is there"
	run run p#last ${1:+"$1"}
	said 'result.*all cached' "$mode: and stays"
	tasks '"dist/**"' "$adds"
	run run p#post ${1:+"$1"}

	# X-32
	tasks '"dist/**"' 'rm dist/d/part; cp post dist/x'
	run run p#post ${1:+"$1"}
	exits 0 "$mode: one that removes"
	said 'not saved: it removed p/dist/d/part, which was there before it' "$mode: is not saved"
	run run p#post ${1:+"$1"}
	said 'not saved: it removed p/dist/d/part' "$mode: and runs again, on what the owner made"
	tasks '"dist/**"' 'cp post dist/main; exit 1'
	run run p#post ${1:+"$1"}
	exits 1 "$mode: one that fails"
	tasks '"dist/**"' 'cp dist/main dist/copy'
	run run p#post ${1:+"$1"}
	exits 0 "$mode: then one that does not"
	is "$(cat p/dist/copy)" one "$mode: sees the owner's bytes"
	is "$(outputs)" "dist/copy dist/d/part dist/main dist/only-one " "$mode: and nothing that was left"
}
lane ""
if can_sandbox; then
	lane --sandbox
else
	skip "--sandbox" "no namespaces here"
fi

# --- whose it is --------------------------------------------------------------------------------

rm -rf .vx p/dist
tasks '"dist/**", "src/**"' 'mkdir -p src; cp post src/made; cp post dist/x'
mkdir p/src
echo mine >p/src/s
git_ add -A
git_ commit -qm sources
echo edited >p/src/s
run run p#post
exits 0 "a source among what it may add to"
is "$(cat p/src/s)" edited "is not its own to remove"
rm p/src/made
run run p#post
said 'all cached' "not by a restore, either"
is "$(cat p/src/s p/src/made)" "edited
a" "which puts its own beside it"
rm -rf .vx/state.db* p/src/made
git_ checkout -q p
echo mine >p/src/made
git_ add -A
git_ commit -qm more
echo edited >p/src/made
run run p#post
exits 1 "in the place of somebody's file"
said 'selects src/made, which has changes that git does not have' "it puts nothing"
is "$(cat p/src/made)" edited "it is there"
git_ rm -qrf p/src
git_ commit -qm less

# --- edges --------------------------------------------------------------------------------------

rm -rf .vx p/dist
tasks '"dist/**"' "$adds" ''
run run p#post
exits 2 "without an edge"
said 'is also an output of p#post' "outputs are exclusive still"
run run p#build
exits 2 "also when it does not run"
tasks '"dist/**"' "$adds" '"between"'
sed -i 's/"tasks": {/"tasks": { "between": { "dependsOn": ["build"] },/' p/vx.config.json
run run p#post
exits 0 "by way of a group"
is "$(outputs)" "$built" "one adds to the other's"
run run p#build
said 'all cached' "known when only the owner runs"
echo '{ "projects": ["p"] }' >vx.workspace.json
run run p#post
exits 2 "with the rule"
said 'p#build|p#post' "they are refused"
done_testing

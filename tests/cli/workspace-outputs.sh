#!/bin/sh
# SPDX-License-Identifier: MIT
# cache.outputs.workspaceFiles: outputs named from the root, in other projects and in none; plain, and
# with --sandbox where there is one.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }

# gen writes beside the projects, into app, and into inner, a project inside its own.
echo '{ "projects": ["packages/**"] }' >vx.workspace.json
gen() { # FILES WORKSPACEFILES
	put packages/gen/vx.config.json <<-J
		{ "name": "gen", "tasks": { "build": {
			"exec": { "command": "mkdir -p dist ../../reports/gen ../app/types inner/types; cp in dist/out; cp in ../../reports/gen/r.txt; ln -s r.txt ../../reports/gen/latest; cp in ../app/types/gen.d.ts; cp in inner/types/gen.d.ts; $3 echo made" },
			"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [$1], "workspaceFiles": [$2] } } } } }
	J
}
all='"reports/gen/**", "packages/app/types/gen.d.ts", "packages/gen/**/types/*.d.ts"'
outputs() { find packages reports -path '*/dist/*' -o -path '*/types/*' -o -path 'reports/*' | sort | tr '\n' ' '; }
made='packages/app/types/gen.d.ts packages/app/types/own.d.ts packages/gen/dist/out packages/gen/inner/types/gen.d.ts reports/gen reports/gen/latest reports/gen/r.txt '
put packages/app/vx.config.json <<-J
	{ "name": "app", "tasks": { "check": { "dependsOn": ["gen#build"],
		"exec": { "command": "echo check >>$T/ran.app; cat types/*" },
		"cache": { "inputs": { "files": ["types/own.d.ts"] }, "outputs": { "files": [] } } } } }
J
echo '{ "name": "inner" }' | put packages/gen/inner/vx.config.json
echo own | put packages/app/types/own.d.ts
printf 'reports\ndist\ngen.d.ts\n' >.gitignore
echo one >packages/gen/in
gen '"dist/**"' "$all" "echo gen >>$T/ran;"
git_ init -q
git_ add -A
git_ commit -qm workspace

# "" or --sandbox; where a sandbox keeps $T/ran from being written, what is said tells.
lane() { # FLAG
	mode=${1:-plain}
	git_ clean -qfdx
	rm -rf .vx
	gen '"dist/**"' "$all" ""
	echo one >packages/gen/in

	run run gen#build ${1:+"$1"}
	exits 0 "$mode: cold"
	said '1 executed|0 hit|1 task' "$mode: it ran"
	said_not 'not saved' "$mode: and is saved"
	is "$(outputs)" "$made" "$mode: all of it is there"
	run run gen#build ${1:+"$1"}
	exits 0 "$mode: warm"
	said 'all cached' "$mode: up to date"

	rm -r reports packages/gen/inner/types packages/app/types/gen.d.ts packages/gen/dist
	run run gen#build ${1:+"$1"}
	exits 0 "$mode: restored"
	said 'all cached' "$mode: nothing ran"
	is "$(outputs)" "$made" "$mode: all of it is back"
	is "$(cat packages/app/types/gen.d.ts packages/gen/inner/types/gen.d.ts reports/gen/latest)" \
		"one
one
one" "$mode: as it was"

	echo junk >packages/app/types/gen.d.ts
	run run gen#build ${1:+"$1"}
	is "$(cat packages/app/types/gen.d.ts)" "one" "$mode: a changed one is put right"
	echo stray >reports/gen/stray
	run run gen#build ${1:+"$1"}
	is "$(outputs)" "$made" "$mode: what nobody made goes"
	is "$(cat packages/app/types/own.d.ts)" "own" "$mode: a neighbour that nothing selects stays"

	echo two >packages/gen/in
	echo stray >reports/gen/stray
	run run gen#build ${1:+"$1"}
	exits 0 "$mode: another input"
	is "$(outputs)" "$made" "$mode: outputs are cleaned before it runs"
	is "$(cat reports/gen/r.txt)" "two" "$mode: and made anew"
	echo one >packages/gen/in
	run run gen#build ${1:+"$1"}
	said 'all cached' "$mode: the first result is still there"
	is "$(cat reports/gen/r.txt packages/app/types/gen.d.ts)" "one
one" "$mode: and comes back"
}
lane ""
if can_sandbox; then
	lane --sandbox

	# A derived grant is what is declared, in projects inside its own as well.
	gen '"dist/**", "**/other/**"' "$all" "mkdir -p inner/other; cp in inner/other/x; cp in ../app/types/stray.d.ts;"
	run run gen#build --sandbox
	exits 1 "what no entry selects is undeclared"
	said 'packages/app/types/stray.d.ts' "in another project"
	said 'cache.outputs.workspaceFiles: \["packages/app/types/stray.d.ts"\]' "with what to write"
	said 'packages/gen/inner/other' "files end at a project inside"
	ok "nothing of it is there" test ! -e packages/app/types/stray.d.ts -a ! -e packages/gen/inner/other/x
	gen '"dist/**"' "$all" ""
else
	skip "--sandbox" "no namespaces here"
fi

# --- what depends on it waits -------------------------------------------------------------------

git_ clean -qfdx
rm -rf .vx "$T/ran.app"
run run app#check
exits 0 "a task behind it"
run run app#check
said 'all cached' "is a hit when nothing changed"
run run app#check --dry
said '^◉ gen#build  hit' "a dry run knows the writer to be a hit"
said '^◉ app#check  hit' "and, as its outputs are in place, the task behind it"
said '^2 tasks: 2 to be hits, 0 to miss, 0 without cache$' "and counts both"
git_ clean -qfdx packages/app
run run app#check --dry
said '^◉ gen#build  hit' "with the outputs gone the writer is one"
said '^\? app#check  known when its dependencies have run  --------' "but not yet the task behind it"
said '^2 tasks: 1 to be a hit, 0 to miss, 0 without cache, 1 unknown$' "which is counted by itself"
run run app#check
said 'all cached' "though the run finds it to be"
run run app#check --dry --force
said '^2 tasks: 0 to be hits, 2 to miss, 0 without cache$' "unread, both are to miss"

# --- whose it is --------------------------------------------------------------------------------

git_ clean -qfdx
rm -rf .vx
echo mine >packages/app/types/own.d.ts
gen '' '"packages/app/types/**"' "echo gen >>$T/ran;"
fresh
run run gen#build
exits 1 "an edited source of another project"
said 'cache.outputs "packages/app/types/\*\*" selects packages/app/types/own.d.ts, which has changes that git does not have.*Exclude it \("!packages/app/types/own.d.ts"\)' \
	"is refused, spelled from the root"
is "$(ran)" "" "nothing ran"
is "$(cat packages/app/types/own.d.ts)" "mine" "and it is there"
git_ checkout -q packages/app
mkdir packages/fresh
echo '{ "name": "fresh" }' >packages/fresh/vx.config.json
mkdir packages/fresh/src
echo mine >packages/fresh/src/new
gen '' '"packages/fresh/src/**"' "mkdir -p ../fresh/src;"
run run gen#build
exits 1 "a project of which git tracks nothing"
said 'packages/fresh/src/new, which git does not have, as it tracks nothing of this project yet' "is asked about by itself"
rm -r packages/fresh

# --- never --------------------------------------------------------------------------------------

gen '' '"**/made", "packages/app/**", "!packages/app/vx.config.json", "!packages/app/package.json"' "mkdir -p ../../.git/hooks; echo x >../../.git/made; echo x >../../.vx/made; echo x >../app/made;"
git_ clean -qfdx packages
run run gen#build
exits 0 "a glob that .git and .vx lie under"
rm -f packages/app/made
run run gen#build
exits 0 "restores"
ok "what it selects" test -f packages/app/made
ok "and leaves those alone" test -f .git/made -a -f .vx/made
gen '' '"packages/app/**", "!packages/app/vx.config.json", "!packages/app/package.json"' "mkdir ../app/.github; echo x >../app/.github/x;"
run run gen#build
said 'not saved: output packages/app/.github' "what others would obey is not saved"
gen '' '"../reports/**"' ""
run run gen#build
exits 2 "one that leaves the workspace"
said "'..' leaves the workspace" "is refused"

# --- links --------------------------------------------------------------------------------------

git_ checkout -q .
git_ clean -qfdx
rm -rf .vx
gen '' '"reports/gen/**"' ""
mkdir -p store packages/app/deep
ln -s packages/app/deep reports
run run gen#build
exits 0 "a link on the way that stays in the workspace"
ok "is followed" test -f packages/app/deep/gen/r.txt -a -L reports
rm packages/app/deep/gen/r.txt
run run gen#build
exits 0 "by a restore as well"
ok "to the same place" test -f packages/app/deep/gen/r.txt -a -L reports
rm reports
mkdir "$T/outside"
ln -s "$T/outside" reports
run run gen#build
exits 1 "one that leaves it"
said 'that leads out of the workspace' "is refused by name"
rm reports
ln -s .git/info reports
run run gen#build
exits 1 "one into .git"
said 'that leads into .git or .vx' "is refused, too"
rm reports
done_testing

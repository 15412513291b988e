#!/bin/sh
# SPDX-License-Identifier: MIT
# Outputs that select what nobody could give back: refused before anything is removed or run.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git

# NAME GLOBS COMMAND...: a workspace with one package p, task build; its own ignore rules come before.
workspace() {
	rm -rf "$W"
	mkdir -p "$W/p/src"
	cd "$W" || exit 99
	echo '{ "projects": ["p"] }' >vx.workspace.json
	echo one >p/in
	echo source >p/src/s.txt
	echo source >p/src/t.txt
	task "$@"
	git_ init -q
}
task() { # GLOBS COMMAND
	put p/vx.config.json <<-J
		{ "name": "p", "tasks": { "build": {
			"exec": { "command": "echo ran >>$T/ran; $2" },
			"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [$1] } } } } }
	J
}
commit() {
	git_ add -A
	git_ commit -qm "$1"
}
ran() { wc -l <"$T/ran" | tr -d ' '; }
fresh() { : >"$T/ran"; }
sources() { cat p/src/s.txt p/src/t.txt p/src/new.txt; }

makes_dist='mkdir -p dist; cp in dist/out; cp in dist/only-'"\$(cat in)"

# --- the newcomer ------------------------------------------------------------------------------

newcomer() {
	workspace '"src/**"' 'mkdir -p src; cp in src/made'
	commit workspace
	fresh
}

newcomer
echo mine >>p/src/s.txt
echo mine >p/src/new.txt
sources >"$T/before"
run run p#build
exits 1 "outputs that select an edited source"
is "$(ran)" 0 "nothing ran"
said 'vx: cache.outputs "src/\*\*" selects src/s.txt, which has changes that git does not have: vx would delete it\. Exclude it \("!src/s.txt"\), commit it, or name the outputs more narrowly' \
	"it says which, why and what to do"
said_not 'STDERR' "as its own words"
said_not '^\$ ' "and shows no command, as none ran"
sources >"$T/after"
ok "every source is as it was" cmp "$T/before" "$T/after"
git_ checkout -q p/src/s.txt
run run p#build
exits 1 "a new file among tracked ones"
said 'selects src/new.txt, which git does not have, among files that it tracks: vx would delete it' \
	"is a source"
ok "it is there" test -f p/src/new.txt -a -f p/src/s.txt
is "$(ran)" 0 "nothing ran"
run run p#build --dry
exits 0 "a dry run removes nothing and refuses nothing"
run run p#build --no-cache
exits 0 "nor does --no-cache"
is "$(ran)" 1 "it ran"
ok "and left all in place" test -f p/src/new.txt -a -f p/src/s.txt

newcomer
run run p#build
exits 0 "sources that git has as they are"
said 'removed 2 files that git tracks \(src/s.txt, …\): cache.outputs selects them' "it says what it did"
git_ checkout -q p/src
echo mine >>p/src/s.txt
run run p#build
exits 1 "the same result, to be restored over an edited source"
said 'vx: cache.outputs "src/\*\*" selects src/s.txt, which has changes that git does not have' \
	"is refused too"
is "$(cat p/src/s.txt)" "source
mine" "with the edit in place"
is "$(ran)" 1 "nothing ran"
git_ checkout -q p/src
run run p#build
exits 0 "over a source that git has"
said 'removed 2 files that git tracks' "it is restored, and said"
ok "as it was stored" test ! -e p/src/s.txt -a -f p/src/made

newcomer
task '"src/**", "!src/s.txt", "!src/t.txt"' 'mkdir -p src; cp in src/made'
echo mine >>p/src/s.txt
run run p#build
exits 0 "sources that are excluded"
said_not 'git' "are nobody's business"
is "$(cat p/src/s.txt)" "source
mine" "and stay"

workspace '"src/**"' 'mkdir -p src; cp in src/made'
fresh
run run p#build
exits 1 "before the first commit"
said 'selects src/s.txt, which git does not have, as it tracks nothing of this project yet' \
	"nothing tells sources from left-overs"
ok "they are there" test -f p/src/s.txt -a -f p/src/t.txt

rm -rf .git
run run p#build
exits 0 "outside a work tree nobody can say"
is "$(ran)" 1 "it runs"

# --- inputs in the way of outputs --------------------------------------------------------------

# INPUTS OUTPUTS
reads() {
	workspace "$2" 'echo made >made'
	sed "s,\"in\",$1," p/vx.config.json >"$T/config"
	cp "$T/config" p/vx.config.json
	echo source >p/README.md
}
all='"**", "!package.json", "!vx.config.*"'
reads '"src/**"' "$all"
commit workspace
fresh
run run p#build
exits 2 "outputs that take in all of the inputs"
said "p/vx.config.json:[0-9:]+ tasks.build.cache.inputs.files\[0\]: 'src/\*\*' selects nothing but the task's own outputs \('\*\*'\)" \
	"are a mistake in the config"
reads '"**"' "$all, \"!src/**\", \"!in\""
commit workspace
for how in "in git" "not yet in git" "without git"; do
	fresh
	run run p#build
	exits 1 "$how: an input that no exception spares"
	said 'vx: cache.outputs "\*\*" selects README.md, an input by "\*\*" that no run of this task is known to have made: vx would delete it\. Exclude it \("!README.md"\), name the outputs more narrowly, or, where the task makes it, take it out of the inputs' \
		"$how: it is named"
	ok "$how: and there" test -f p/README.md
	is "$(ran)" 0 "$how: nothing ran"
	git_ rm -q --cached p/README.md 2>/dev/null || rm -rf .git
done
reads '"**"' "$all, \"!src/**\", \"!in\", \"!README.md\""
commit workspace
fresh
run run p#build
exits 0 "with one"
echo more >>p/README.md
run run p#build
exits 0 "what the task made itself is no input"
is "$(ran)" 2 "it ran for the input"
reads '"README.md"' '"*.md"'
commit workspace
run run p#build
exits 1 "an input by its name"
said 'selects README.md, an input by "README.md"' "is one"
reads '"**"' '"src/gen/**"'
mkdir p/src/gen
echo made >p/src/gen/left
commit workspace
run run p#build
exits 0 "outputs are a part of what the inputs select"
said 'removed 1 file that git tracks \(src/gen/left\)' "which says what the task makes"

# --- outputs that git knows --------------------------------------------------------------------

workspace '"dist/**"' "$makes_dist"
mkdir p/dist
echo built >p/dist/out
echo built >p/dist/old
commit workspace
fresh
run run p#build
exits 0 "a committed dist"
said 'removed 2 files that git tracks \(dist/old, …\): cache.outputs selects them' "is said once"
ok "it is the new one" test ! -e p/dist/old -a -f p/dist/only-one
echo two >p/in
run run p#build
exits 0 "changed by vx alone"
said_not 'git' "it is vx's to replace"
echo one >p/in
run run p#build
exits 0 "also by a restore"
said_not 'git' "without a word"
is "$(ran)" 2 "that ran nothing"
rm -rf .vx
run run p#build
exits 1 "when vx has forgotten what it made"
said 'which has changes that git does not have' "git is asked again"
rm -rf p/dist
run run p#build
exits 0 "deleted by hand there is nothing to lose"
said_not 'removed' "and nothing to say"

# As in a repository that was made where names have no case.
workspace '"dist/**"' "$makes_dist"
mkdir p/dist
echo built >p/dist/keep
commit workspace
git_ config core.ignorecase true
echo mine >p/dist/KEEP
run run p#build
exits 1 "a file that differs by case from one that git has"
said 'selects dist/KEEP, which git does not have, among files that it tracks' "is another one"
is "$(cat p/dist/KEEP)" mine "and stays"
rm p/dist/KEEP
run run p#build
exits 0 "without it"
sed -i 's/"in"/"*"/' p/vx.config.json
echo upper >p/IN
run run p#build
run run p#build
said 'all cached' "an input that differs by case from a tracked one"
echo UPPER >p/IN
run run p#build
said_not 'all cached' "counts"

# What a run leaves that did not succeed is vx's all the same.
workspace '"dist/**"' "$makes_dist; exit \$(cat code)"
mkdir p/dist
echo built >p/dist/out
echo 3 >p/code
commit workspace
run run p#build
exits 1 "a committed dist and a command that fails"
said 'removed 1 file that git tracks \(dist/out\): cache.outputs selects it' "have their note"
echo 0 >p/code
run run p#build
exits 0 "what it left is no hindrance"
said_not 'git' "nor a surprise"

# --- outputs that git does not know ------------------------------------------------------------

workspace '"dist/**"' "$makes_dist"
echo dist >.gitignore
mkdir p/dist
echo built >p/dist/stray
commit workspace
run run p#build
exits 0 "an ignored dist"
said_not 'git' "is not talked about"
ok "and cleaned" test ! -e p/dist/stray

workspace '"dist/**"' "$makes_dist"
commit workspace
fresh
run run p#build
exits 0 "a dist that nobody ignores"
echo two >p/in
run run p#build
exits 0 "again, changed"
ok "is replaced" test ! -e p/dist/only-one -a -f p/dist/only-two
echo one >p/in
run run p#build
exits 0 "and restored"
is "$(ran)" 2 "without a run"
rm -rf .vx
run run p#build
exits 0 "as left over from another build, too"
said 'note: removed 2 files that git does not have and no run made \(dist/only-one, …\): cache.outputs selects them' \
	"which is said, as nobody gives them back"
is "$(ran)" 3 "it ran"
rm -rf .vx p/dist
mkdir p/dist
echo mine >p/dist/thesis
run run p#build
exits 0 "one file"
said 'note: removed 1 file that git does not have and no run made \(dist/thesis\): cache.outputs selects it' "is named"
mkdir p/dist/deep
echo mine >p/dist/deep/thesis
echo two >p/in
run run p#build
said 'removed 1 file that git does not have and no run made \(dist/deep/thesis\)' "beside what a run made"
echo mine >p/dist/thesis
echo one >p/in
run run p#build
said 'removed 1 file that git does not have and no run made \(dist/thesis\)' "by a restore"
is "$(ran)" 5 "that ran nothing"

# A repository among the outputs, nothing of which git knows.
repository() { # DIR
	rm -rf .vx p/dist
	mkdir -p "$1"
	git_ init -q "$1"
	echo t >"$1/t"
}
workspace '"dist/**"' "$makes_dist"
commit workspace
fresh
for way in new committed linked; do
	repository p/dist/deep/repo
	if [ $way != new ]; then
		git_ -C p/dist/deep/repo add t
		git_ -C p/dist/deep/repo commit -qm t
	fi
	echo work >p/dist/deep/repo/t
	[ $way != linked ] || git_ init -q --separate-git-dir "$T/separate" p/dist/deep/repo
	run run p#build
	exits 1 "a repository among the outputs ($way)"
	said 'vx: cache.outputs "dist/\*\*" selects dist/deep/repo/t, in the git repository dist/deep/repo, and no run of this task is known to have made it: vx would delete it\. Move the repository away, exclude it \("!dist/deep/repo"\), or name the outputs more narrowly' \
		"is named"
	is "$(cat p/dist/deep/repo/t)" work "it is there"
done
repository p/dist
run run p#build
exits 1 "one that is the output directory"
said 'selects dist/t, in the git repository dist,' "is named, too"
is "$(cat p/dist/t)" t "it is there"
is "$(ran)" 0 "nothing ran"
task '"dist/**", "!dist/deep/repo"' "$makes_dist"
repository p/dist/deep/repo
run run p#build
exits 0 "one that is excluded"
ok "stays" test -f p/dist/deep/repo/t -a -d p/dist/deep/repo/.git
task '"dist/**"' "mkdir -p dist; git init -q dist/repo; cp in dist/repo/made"
rm -rf .vx p/dist
run run p#build
echo two >p/in
run run p#build
exits 0 "one that the task makes"
said_not 'removed|vx would delete' "is its own"
echo mine >p/dist/repo/mine
echo three >p/in
run run p#build
exits 1 "but for what is new in it"
said 'selects dist/repo/mine, in the git repository dist/repo,' "which is named"
echo dist >.gitignore
run run p#build
exits 0 "what git ignores is nobody's"
rm -rf .gitignore .vx p/dist .git
repository p/dist/repo
run run p#build
exits 1 "a repository where there is no work tree around it"
said 'selects dist/repo/t, in the git repository dist/repo,' "is named"
# A project that is a repository itself is no output.
workspace '"dist/**", "*.gen"' "$makes_dist"
git_ init -q p
git_ -C p add in
git_ -C p commit -qm p
commit workspace 2>/dev/null
mkdir p/dist
echo left >p/dist/left
echo left >p/left.gen
run run p#build
exits 0 "a project that is a repository itself"
ok "its outputs are made anew" test ! -e p/dist/left -a ! -e p/left.gen -a -f p/dist/out

# --- behind a link -----------------------------------------------------------------------------

workspace '"dist/**"' "$makes_dist"
ln -s src p/dist
commit workspace
echo mine >>p/src/s.txt
run run p#build
exits 1 "outputs behind a link that leads to sources"
said 'p/dist/s.txt is p/src/s.txt, and no run of this task is known to have made it' "are not taken for outputs"
ok "they stay" test -f p/src/s.txt -a -f p/src/t.txt
git_ checkout -q p/src
run run p#build
exits 1 "nor where git has them"
ok "they stay, too" test -f p/src/s.txt -a -f p/src/t.txt

# --- the cache itself --------------------------------------------------------------------------

workspace '"dist/**"' "$makes_dist"
echo dist >.gitignore
commit workspace
for dir in p/dist p/dist/c; do
	run run p#build --cache-dir "$dir"
	exits 2 "a cache in the task's own outputs ($dir)"
	said "vx: p/vx.config.json:[0-9:]*: task build: cache.outputs selects what is in the cache directory $W/$dir, and would remove it" \
		"is refused, with both places"
	run run p#build --cache-dir "$dir" --sandbox --no-cache
	exits 2 "also where it is not used"
done
run run p#build --cache-dir cache
exits 0 "a cache beside them"
fresh
put vx.config.json <<-J
	{ "tasks": { "root": { "exec": { "command": "echo ran >>$T/ran" },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": ["*/blobs/**/*.zst"] } } } } }
J
run run //#root --cache-dir cache
exits 2 "an output of another task that selects what is in it"
ok "the cache is there" test -f cache/index.db -a -d cache/blobs
sed -i 's/.zst"/.zst", "!cache"/' vx.config.json
run run //#root --cache-dir cache
exits 0 "but for what is excluded"
is "$(ran)" 1 "it ran"
run run //#root --cache-dir cache
said 'all cached' "and is found again"

# --- in a sandbox ------------------------------------------------------------------------------

if can_sandbox; then
	newcomer
	echo mine >>p/src/s.txt
	run run p#build --sandbox
	exits 1 "a sandboxed task whose outputs select an edited source"
	said 'selects src/s.txt, which has changes that git does not have' "is refused"
	is "$(ran)" 0 "before it starts"
	run run p#build --sandbox --no-cache
	exits 1 "without a cache too: its commit would remove them"
	is "$(cat p/src/s.txt)" "source
mine" "they are as they were"

	workspace '"dist/**"' "${makes_dist}; exit \$(cat in | tr -dc 3)"
	mkdir p/dist
	echo built >p/dist/out
	commit workspace
	run run p#build --sandbox
	exits 0 "a sandboxed task with a committed dist"
	said 'removed 1 file that git tracks \(dist/out\)' "has its note"
	run run p#build --sandbox --no-cache
	exits 0 "vx knows its own work without a cache"
	said_not 'git' "and says nothing"
	echo 3 >p/in
	run run p#build --sandbox
	exits 1 "a failure"
	echo 4 >p/in
	run run p#build --sandbox
	exits 0 "does not make it forget"
else
	skip "sandboxed tasks" "no namespaces here"
fi
done_testing

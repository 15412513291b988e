#!/bin/sh
# SPDX-License-Identifier: MIT
# A link to a directory on the way to outputs: one of the user's is followed, one that a task makes turns
# nobody's files into outputs.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

echo '{ "projects": ["p/*"], "rules": { "exclusiveOutputs": false } }' >vx.workspace.json
printf 'dist\ngen\nstore\n.env\n' >.gitignore
mkdir -p p/a p/b/src
# NAME COMMAND OUTPUTS MORE
task() { printf '"%s": { "exec": { "command": "%s" }, %s "cache": { "inputs": { "files": ["in"] }, "outputs": { %s } } }' "$1" "$2" "${4-}" "$3"; }
config() { # PROJECT TASKS
	printf '{ "name": "%s", "tasks": { %s } }\n' "$1" "$2" >"p/$1/vx.config.json"
}
sources() {
	rm -rf .vx p/b/src p/b/dist p/b/store gen
	mkdir p/b/src
	echo 1 >p/a/in
	echo 1 >p/b/in
	echo code >p/b/src/code.c
	git_ add -A
	git_ commit -qm sources --allow-empty
}
# After a commit: work that git does not have, and what it ignores.
edit() {
	echo work >>p/b/src/code.c
	echo new >p/b/src/new.c
	echo key >p/b/src/.env
}
all_there() { is "$(cat p/b/src/code.c p/b/src/new.c p/b/src/.env | tr '\n' ' ')" "code work new key " "$1"; }
git_ init -q

config a ""
config b "$(task build 'ln -sfn src dist' '"files": ["dist/**"]')"
sources
run run b#build
exits 0 "a task that makes a link of its output directory"
said 'not saved: the output directory p/b/dist has become a link while it ran' "is not saved"
edit
echo 2 >p/b/in
run run b#build
exits 1 "the next time it does not run"
said 'an output directory is a link, so p/b/dist/.* is p/b/src/.*: vx would delete it' "which is said"
all_there "nothing is gone"

# The link of another task, that adds to these outputs.
config b "$(task build 'mkdir -p dist; cp in dist/main' '"files": ["dist/**"]')"
config a "$(task post 'rm -rf ../b/dist; ln -sfn src ../b/dist' '"files": [], "workspaceFiles": ["p/b/dist/**"]' '"dependsOn": ["b#build"],')"
sources
run run a#post
exits 0 "a task that puts one there for another"
edit
run run b#build
exits 1 "that one does not follow it"
said 'an output directory is a link' "which is said"
all_there "nothing is gone"
not_ok "and nothing has come" test -e p/b/src/main

# One from a sandbox, with a grant for the link alone.
if can_sandbox; then
	config b ""
	config a "$(task link 'rm -rf ../../gen; ln -sfn p/b/src ../../gen' '"files": []' | sed 's/" }, *"cache"/", "sandbox": { "allow": { "write": ["..\/..\/gen"] } } }, "cache"/'), $(
		task make 'echo r >../../gen/r' '"files": [], "workspaceFiles": ["gen/**"]' '"dependsOn": ["link"],')"
	sources
	edit
	run run a#make
	exits 1 "the link of a sandboxed task"
	said 'an output directory is a link|is a link' "is not followed"
	all_there "nothing is gone"
	not_ok "and nothing has come" test -e p/b/src/r
fi

# The user's own, before anything has run.
config a ""
config b "$(task build 'cp in dist/out' '"files": ["dist/**"]')"
sources
mkdir p/b/store
ln -s store p/b/dist
run run b#build
exits 0 "the user's link"
is "$(cat p/b/store/out)" 1 "is followed"
rm p/b/store/out
run run b#build
said 'all cached' "a hit"
is "$(cat p/b/store/out)" 1 "is restored behind it"
echo 2 >p/b/in
run run b#build
exits 0 "what the task made there"
is "$(cat p/b/store/out)" 2 "is its own to replace"
echo mine >p/b/store/notes
echo 3 >p/b/in
run run b#build
exits 1 "what somebody put there"
said 'p/b/dist/notes is p/b/store/notes, and no run of this task is known to have made it' "is not"
is "$(cat p/b/store/notes p/b/store/out | tr '\n' ' ')" "mine 2 " "and stays"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Keys that cannot be made at the start of a run: inputs that a task before it writes (spec/cache.md §3), as
# an output of it with rules.upfrontKeys off, as one of its workspaceFiles, or by a write grant.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
run_use() {
	fresh
	run run p#use
	exits 0 "$1"
	is "$(ran)" "$2" "$1: what ran"
	is "$(cat p/used 2>/dev/null)" "$3" "$1: what it made"
}

# gen writes generated sources that git does not ignore; use reads them, and nothing of gen is in its key.
# OUTPUTS INPUTS
tasks() {
	put p/vx.config.json <<-J
		{ "name": "p", "tasks": {
			"gen": {
				"exec": { "command": "echo gen >>$T/ran; mkdir -p src/gen; for i in \$(cat list); do echo \$i >src/gen/\$i; done" },
				"cache": { "inputs": { "files": ["list"] }, "outputs": { $1 } } },
			"use": { "dependsOn": ["gen"],
				"exec": { "command": "echo use >>$T/ran; cat src/*.c src/gen/* >used" },
				"cache": { "inputs": { "files": $2, "tasks": [] }, "outputs": { "files": ["used"] } } } } }
	J
}
files='"files": ["src/gen/**"]'
begin() {
	rm -rf .vx p/src/gen p/used
	echo 'a b' >p/list
	rm -rf .git
	git_ init -q
	git_ add -A
	git_ commit -qm workspace
}
mkdir -p p/src
echo main >p/src/main.c
echo used >.gitignore

tasks "$files" '["src/**"]'
echo '{ "projects": ["p"] }' >vx.workspace.json
begin
run run p#use
exits 2 "with the rule"
said 'can match what p#gen writes' "it is refused"
echo '{ "projects": ["p"], "rules": { "upfrontKeys": false } }' >vx.workspace.json

steps() {
	begin
	run_use "$1 cold" "gen use " "main
a
b"
	run_use "$1 warm" "" "main
a
b"
	run run p#use --dry
	said 'p#use  hit' "$1 its key is known where all before it is in place"
	echo 'a c' >p/list
	run run p#use --dry
	said 'p#use  known when its dependencies have run' "$1 else its key waits"
	run_use "$1 other sources are made" "gen use " "main
a
c"
	echo 'c  a' >p/list
	run_use "$1 the same are made" "gen " "main
a
c"
	echo 'a b' >p/list
	run_use "$1 the first ones come back" "" "main
a
b"
	rm -r p/src/gen p/used
	run_use "$1 all is gone" "" "main
a
b"
	echo edited >p/src/gen/a
	run_use "$1 one is edited" "" "main
a
b"
}
steps "outputs:"
tasks '"files": [], "workspaceFiles": ["p/src/gen/**"]' '["src/**"]'
steps "workspaceFiles:"

# A sandboxed task may be granted to rewrite what is no output of it.
if can_sandbox; then
	put p/vx.config.json <<-J
		{ "name": "p", "tasks": {
			"format": {
				"exec": { "command": "cat style >src/main.c", "sandbox": { "allow": { "read": ["style"], "write": ["src/**"] } } },
				"cache": { "inputs": { "files": ["style"] }, "outputs": { "files": [] } } },
			"use": { "dependsOn": ["format"],
				"exec": { "command": "echo use >>$T/ran; cat src/*.c >used" },
				"cache": { "inputs": { "files": ["src/**"], "tasks": [] }, "outputs": { "files": ["used"] } } } } }
	J
	echo '{ "projects": ["p"] }' >vx.workspace.json
	echo one >p/style
	begin
	run_use "rewritten" "use " one
	run_use "not again" "" one
	echo two >p/style
	run_use "rewritten in another style" "use " two
else
	skip "a write grant" "no namespaces here"
fi
done_testing

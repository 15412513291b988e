#!/bin/sh
# SPDX-License-Identifier: MIT
# What a report says to write in the config, and that it is enough.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program git
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
mkdir -p p/app p/greet/include/deep
echo in >p/app/in
echo secret >p/app/secret
echo header >p/greet/include/deep/h
echo '{ "name": "greet" }' >p/greet/vx.config.json
app() { # EXEC-FIELDS CACHE COMMAND
	put p/app/vx.config.json <<-E
		{ "name": "app", "tasks": { "build": { "exec": { "command": "$3"$1 }$2 } } }
	E
}
cache() { # INPUT-FIELDS OUTPUTS
	echo ", \"cache\": { \"inputs\": { \"files\": [\"in\"]$1 }, \"outputs\": { \"files\": [$2] } }"
}
sandbox() { echo ", \"sandbox\": { \"allow\": { $1 } }"; }
printf '%s\n' .vx made >.gitignore
git_ init -q
git_ add -A

# --- a name that is read and written -----------------------------------------------------------

echo old >p/app/out
app '' "$(cache '' '')" 'cat in >out'
run run app#build --sandbox
exits 1 "a file from an earlier run is written again"
said '^write p/app/out' "a finding"
said 'to allow it: cache.outputs.files: \["out"\]' "to be an output"
said_not 'cache.inputs.files: \["out"\]' "and no input"
app '' "$(cache '' '')" 'cat in secret >out'
run run app#build --sandbox
said 'cache.inputs.files: \["secret"\]' "what is only read is an input"
mkdir p/app/gen
echo old >p/app/gen/old
app '' "$(cache '' '')" 'mkdir -p gen; cat in >gen/new'
run run app#build --sandbox
said 'cache.outputs.files: \["gen/new"\]' "the same in a directory of an earlier run"
said_not 'cache.inputs.files: \["gen' "that is no input either"
rm -r p/app/gen p/app/out

# --- a task with a sandbox of its own ----------------------------------------------------------

app "$(sandbox '"read": ["in"]')" "$(cache '' '')" 'cat in >o2'
run run app#build
exits 1 "an undeclared write"
said 'to allow it: allow.write: \["o2"\], and cache.outputs.files: \["o2"\]' "is to be granted and stored"
app "$(sandbox '"read": ["in"], "write": ["o2"]')" "$(cache '' '')" 'cat in >o2'
run run app#build
exits 0 "only granted"
said 'note: kept but not stored, so that no hit brings it: cache.outputs.files: \["o2"\]$' "is said"
app "$(sandbox '"read": ["in"], "write": ["."]')" "$(cache '' '"dist/**", "!dist/tmp"')" \
	'mkdir -p dist/tmp node_modules/.cache; for f in o2 o3 o4 o5 dist/a dist/tmp/b node_modules/.cache/c; do cat in >$f; done'
run run app#build
exits 0 "several"
said 'no hit brings it: cache.outputs.files: \["o2", "o3", "o4"\], and 1 more$' \
	"are counted, without what is meant to be left out and the caches of tools"
app "$(sandbox '"read": ["in"], "write": ["o2"]')" "$(cache '' '"o2"')" 'cat in >o2'
run run app#build
exits 0 "granted and stored"
said_not 'not stored' "nothing to say"
rm p/app/o2
run run app#build
ok "and a hit brings it" test -e p/app/o2

# --- what a task makes that is needed, but not in the key ----------------------------------------

put p/maker/vx.config.json <<E
{ "name": "maker", "tasks": { "build": { "exec": { "command": "mkdir -p dist; echo o >dist/o" },
	"cache": { "inputs": { "files": [] }, "outputs": { "files": ["dist/**"] } } } } }
E
app '' ', "dependsOn": ["maker#build"], "cache": { "inputs": { "files": ["in"], "tasks": [] }, "outputs": { "files": [] } }' \
	'cat ../maker/dist/o'
run run app#build --sandbox
exits 1 "what a task makes that no part of the key stands for"
said 'to show it: cache.inputs.tasks: \["maker#build", …\], which leaves it out now$' "the entry to write"
app '' ', "dependsOn": ["maker#build"], "cache": { "inputs": { "files": ["in"], "tasks": ["maker#build"] }, "outputs": { "files": [] } }' \
	'cat ../maker/dist/o'
run run app#build --sandbox
exits 0 "is enough"
rm -r p/maker

# --- what was stopped at the wall --------------------------------------------------------------

app '' "$(cache '' '')" 'cat ../greet/include/deep/h'
run run app#build --sandbox
exits 1 "a file of another project"
said 'note: hidden from it, outside its project; to show it: cache.inputs.workspaceFiles: \["p/greet"\]$' \
	"derived grants: an input"
app '' "$(cache ', "workspaceFiles": ["p/greet"]' '')" 'cat ../greet/include/deep/h'
run run app#build --sandbox
exits 0 "written so"
app "$(sandbox '"read": ["in"]')" "$(cache '' '')" 'cat ../greet/include/deep/h'
run run app#build
exits 1 "grants of its own"
said 'outside its project; to show it: allow.read: \["../greet"\], and cache.inputs.workspaceFiles: \["p/greet"\]$' \
	"both"
app '' "$(cache '' '')" 'cat ../made/x'
mkdir p/made
echo x >p/made/x
run run app#build --sandbox
said '"p/made" is ignored by git: name the task that makes it in dependsOn$' "what is made"
mkdir p/m1 p/m2 p/m3 p/m4
for i in 1 2 3 4; do echo $i >p/m$i/x; done
app '' "$(cache '' '')" 'cat ../m1/x ../m2/x ../m3/x ../m4/x'
run run app#build --sandbox
is "$(grep -c 'hidden from it.* to show it' "$OUT")" 3 "three at most"
said 'hidden from it, outside its project: 1 more name$' "and how many more"

# --- a variable in the key ---------------------------------------------------------------------

app '' "$(cache ', "env": ["MODE", "CI", "UNSET"]' '')" 'echo MODE=$MODE'
MODE=fast run run app#build
said '^MODE=$' "a variable of the key alone does not reach the command"
said 'note: in its key, but not in its environment: to pass it on, exec.env.passThrough: \["MODE"\]$' "which is said"
app ', "env": { "passThrough": ["MODE"] }' "$(cache ', "env": ["MODE"]' '')" 'echo MODE=$MODE'
MODE=fast run run app#build
said '^MODE=fast$' "passed on"
said_not 'in its key, but' "there is nothing to say"

done_testing

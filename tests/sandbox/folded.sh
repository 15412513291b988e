#!/bin/sh
# SPDX-License-Identifier: MIT
# What a task may read follows from what is in its key: cache.inputs.tasks narrows it. A write grant over
# a lock file.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/lib/vx.config.json <<E
{ "name": "lib", "tasks": { "build": { "exec": { "command": "mkdir -p dist; cat src >dist/out" },
	"cache": { "inputs": { "files": ["src"] }, "outputs": { "files": ["dist/**"] } } } } }
E
echo lib >p/lib/src
echo '{ "name": "lib" }' >p/lib/package.json
app() { # TASKS COMMAND
	put p/app/vx.config.json <<-E
		{ "name": "app", "dependencies": ["lib"], "tasks": {
			"all": { "dependsOn": ["^build"] },
			"build": { "dependsOn": ["all"], "exec": { "command": "$2" },
				"cache": { "inputs": { "files": ["src"], "tasks": $1 }, "outputs": { "files": [] } } } } }
	E
}
run run lib#build

mkdir p/app
echo app >p/app/src
app '["*"]' 'cat ../lib/dist/out'
run run app#build --sandbox
exits 0 "outputs of a task whose key is taken in, through a group"
said '^lib$' "are read"
app '[]' 'cat ../lib/dist/out 2>/dev/null || echo hidden'
run run app#build --sandbox
said '^hidden$' "whose key is not taken in: hidden"

mkdir -p p/app/node_modules
ln -s ../../lib p/app/node_modules/lib
app '["*"]' 'cat node_modules/lib/dist/out'
run run app#build --sandbox
exits 0 "a linked package of which a task is taken in"
app '[]' 'cat node_modules/lib/dist/out 2>/dev/null; true'
run run app#build --sandbox
exits 1 "of which none is taken in: withheld, and a read of it a finding"
said 'p/lib' "which is named"

put vx.config.json <<E
{ "name": "root", "tasks": { "lock": { "exec": { "command": "cat in >yarn.lock", "sandbox": { "allow": { "read": ["in"], "write": ["yarn.lock"] } } },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
E
put p/app/vx.config.json <<E
{ "name": "app", "tasks": { "build": { "dependsOn": ["root#lock"], "exec": { "command": "echo ran >>$T/ran" },
	"cache": { "inputs": { "files": ["src"] }, "outputs": { "files": [] } } } } }
E
echo 1 >in
: >"$T/ran"
run run app#build
exits 0 "a write grant over a lock file"
said 'yarn.lock changed: every key rests on it' "what it wrote is seen"
run run app#build
is "$(wc -l <"$T/ran")" 2 "and nothing was stored"
run run app#build
is "$(wc -l <"$T/ran")" 2 "until it stays as it is"
rm yarn.lock
run run root#lock
is "$(cat yarn.lock)" 1 "nor was its own result, which rested on what it changed"
mkdir -p q/app
echo '{ "projects": ["p/*", "q/*"] }' >vx.workspace.json
put q/app/vx.config.json <<E
{ "name": "free", "tasks": { "build": { "dependsOn": ["root#lock"], "exec": { "command": "echo ran >>$T/free" },
	"cache": { "inputs": { "files": [], "tasks": [] }, "outputs": { "files": [] } } } } }
E
: >"$T/free"
run run free#build
run run free#build
echo 2 >in
run run free#build
is "$(wc -l <"$T/free")" 2 "what comes after it waits for it, though its key is not taken in"
done_testing

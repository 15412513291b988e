#!/bin/sh
# SPDX-License-Identifier: MIT
# A sandboxed task that is granted a lock file may rewrite it: every key rests on it, so those of the
# tasks behind it wait, and what is made after the change is not stored.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_sandbox
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
echo 1 >yarn.lock
put p/a/vx.config.json <<'E'
{ "name": "a", "tasks": { "build": {
	"exec": { "command": "cp in ../../yarn.lock", "sandbox": { "allow": { "read": ["in"], "write": ["../../yarn.lock"] } } },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
E
put p/b/vx.config.json <<E
{ "name": "b", "tasks": { "build": { "dependsOn": ["a#build"],
	"exec": { "command": "echo ran >>$T/ran" },
	"cache": { "inputs": { "files": [], "tasks": [] }, "outputs": { "files": [] } } } } }
E
ran() { grep -c ran "$T/ran"; }
fresh() { : >"$T/ran"; }

fresh
echo 1 >p/a/in
run run b#build
exits 0 "a grant over a lock file, which stays as it is"
run run b#build
is "$(ran)" 1 "what follows is stored"
fresh
echo 2 >p/a/in
run run b#build
exits 0 "the lock file is rewritten"
is "$(cat yarn.lock)" 2 "it is"
said 'yarn.lock changed: every key rests on it' "which is told"
is "$(ran)" 1 "what follows is not taken from the cache: its key waited"
echo 2 >p/a/in
fresh
run run b#build
is "$(ran)" 1 "what follows is not stored"
run run b#build
is "$(ran)" 1 "the next time it is"
done_testing

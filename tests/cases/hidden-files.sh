#!/bin/sh
# SPDX-License-Identifier: MIT
# Files that a task cannot see survive what it does to the directory that holds them; a git-ignored
# file below a glob is not granted by it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

fill() {
	rm -rf src
	mkdir -p src/sub
	echo a >src/a.ts
	echo b >src/sub/b.ts
	echo keep >src/notes.md
	echo keep >src/sub/notes.md
}
kept() { # NAME
	is "$(cat src/notes.md src/sub/notes.md 2>&1 | tr '\n' ' ')" "keep keep " "$1: the hidden files are there"
}

fill
box '{ "allow": { "write": ["src/**/*.ts"] } }' <<'E'
rm -rf src
E
kept "rm -rf over a glob grant"
ok "what the task saw is gone" test ! -e src/a.ts -a ! -e src/sub/b.ts

fill
box '{ "allow": { "write": ["src/**"] }, "deny": { "read": ["src/notes.md", "src/sub/notes.md"], "write": ["src/notes.md", "src/sub/notes.md"] } }' <<'E'
set -e
rm -rf src
mkdir src
echo new >src/new.ts
E
kept "rm -rf and mkdir over denied files"
is "$(cat src/new.ts 2>&1)" new "the new file is there"
ok "what the task saw is gone" test ! -e src/a.ts -a ! -e src/sub/b.ts

fill
box '{ "allow": { "write": ["src/**/*.ts"] } }' <<'E'
rm src/sub/b.ts
rmdir src/sub
E
kept "rmdir of a directory that looks empty"

# A write to a hidden name is judged at the end and never replaces what is there.
fill
box '{ "allow": { "write": ["src/**/*.ts"] } }' <<'E'
echo stolen >src/notes.md
exit 0
E
exits 1 "a write over a hidden file"
reported write src/notes.md
kept "a write over a hidden file"

# --sandbox derives the grants: reads are exactly the files in the key.
printf '.env\nlocal/\n' >.gitignore
mkdir src/local
echo 'TOKEN=1' >src/.env
echo l >src/local/l
git_ init -q
put vx.config.json <<'E'
{ "name": "w", "tasks": { "t": {
	"exec": { "command": "cat src/a.ts; ls -A src; cat src/.env src/local/l; exit 0" },
	"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } }
} } }
E
run run t --sandbox
findings 2 "a git-ignored file below a glob"
said '^a$' "what is in the key is read"
said_not 'TOKEN' "what git ignores is not"
said_not '^\.env$' "nor listed"
said_not '^l$' "nor below an ignored directory"
reported read 'src/\.env' cat
reported read 'src/local(/l)?' cat
run run t
exits 0 "without a sandbox"
said 'TOKEN=1' "it is there"
clean "hidden files"

# What a rule hides is hidden also when it comes while the task runs, in a directory of which the task
# could see everything until then.
rm -rf src
mkdir -p src/deep gen
echo a >src/deep/a.ts
echo o >gen/a.c
fifo here there
(
	await here
	echo 'TOKEN=2' >src/deep/.env
	mkdir src/deep/keys
	echo 'TOKEN=3' >src/deep/keys/k.ts
	echo 'TOKEN=4' >gen/a.o
	echo go >"$T/there"
) >/dev/null &
late=$!
box '{ "allow": { "read": ["src/**/*.ts", "src/**/.e*", "gen/?.?"], "write": ["gen/*.o"] }, "deny": { "read": ["src/**/.env", "src/deep/keys"] } }' \
	', "cache": { "inputs": { "files": [] }, "outputs": { "files": ["gen/*.o"] } }' <<E
cat src/deep/a.ts gen/a.c
echo here >$T/here
read go <$T/there
cat src/deep/.env
cat src/deep/keys/k.ts
cat gen/a.o
ls -A src/deep gen
exit 0
E
wait "$late"
findings 2 "names that come while the task runs"
said '^a$' "what is granted is read"
said_not 'TOKEN' "what is denied is not, nor an output of its own"
said_not '^(\.env|keys|a\.o)$' "nor listed"
reported read 'src/deep/\.env' cat
reported read 'src/deep/keys' cat
clean "names that come late"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# What a report says to write in the config is enough when it is written there, whatever the names are like.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program git python3
cd "$W" || exit 99
HOME=$T/home
export HOME
mkdir "$HOME"
[ -z "${VX_TEST_OWNER:-}" ] || chown "$VX_TEST_OWNER:$VX_TEST_OWNER" "$HOME"

cat >"$T/names.py" <<'P'
names = ["with space", "quo'te", 'dou"ble', "[id]", "[!a]", "star*", "q?", "back\\slash", "\\", "üñí€", "new\nline",
    "tab\t", "\x01\x7f", "{a,b}", "{", "(p)", "!bang", "^up", "~", "~tilde", "$dollar", "${x}", "@at", "c:colon", "-dash",
    "#hash", "a,b", " ", "trail ", "**", ".dot"]
P
cat >"$T/use.py" <<'P'
import os, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from names import names
op, top = sys.argv[2:4]
for i, name in enumerate(names):
    path = "%s/%d/%s" % (top, i, name)
    try:
        if op == "write":
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "r" if op == "read" else "w") as f:
            f.read() if op == "read" else f.write("new")
    except OSError as e:
        print("failed", e.errno, repr(path))
P
# CONFIG: puts what stdin says to write into the task's definition.
cat >"$T/paste.py" <<'P'
import json, re, sys
path, task = sys.argv[1:3]
config = json.load(open(path))
n = 0
for line in sys.stdin.read().split("\n"):
    if not re.search(r"to allow|to show it|if it is needed: ", line):
        continue
    for m in re.finditer(r'(allow|ignore|cache)((?:\.\w+)+): (true|\["(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*\])', line):
        at = config["tasks"][task]
        for word in {"allow": ["exec", "sandbox", "allow"], "ignore": ["exec", "sandbox", "ignore"], "cache": ["cache"]}[m[1]]:
            at = at.setdefault(word, {})
        words = m[2][1:].split(".")
        for word in words[:-1]:
            at = at.setdefault(word, {})
        value = json.loads(m[3])
        at[words[-1]] = value if value is True else at.get(words[-1], []) + value
        n += 1
    m = re.search(r'to show it, dependsOn: (\[".*?"\])', line)
    if m:
        config["tasks"][task]["dependsOn"] = json.loads(m[1])
        n += 1
json.dump(config, open(path, "w"), indent=1)
print(n)
P
echo '{ "projects": ["p/*"] }' >vx.workspace.json
mkdir -p p/app p/lib
echo '{ "name": "lib" }' >p/lib/vx.config.json
python3 -B - "$T" <<'P'
import os, sys
sys.path.insert(0, sys.argv[1])
from names import names
for top in "p/app/own", "p/lib/theirs":
    for i, name in enumerate(names):
        os.makedirs("%s/%d" % (top, i))
        open("%s/%d/%s" % (top, i, name), "w").write("x")
P
N=$(python3 -Bc "import sys; sys.path.insert(0, '$T'); import names; print(len(names.names))")
printf '%s\n' .vx >.gitignore
git_ init -q
git_ add -A

app() { # EXEC-FIELDS TASK-FIELDS COMMAND
	put p/app/vx.config.json <<-E
		{ "name": "app", "tasks": { "t": { "exec": { "command": "$3"$1 }$2 } } }
	E
}
use() { echo "python3 -B $T/use.py $T $*"; }
paste() { # NAME WANTED: at least so many grants were offered
	cat "$OUT" "$ERR" >"$T/said"
	pasted=$(python3 "$T/paste.py" p/app/vx.config.json t <"$T/said")
	ok "$1: grants are offered ($pasted)" test "$pasted" -ge "$2"
}
# NAME [FLAGS]: the next run has nothing to say any more; what is beyond the end of a list comes in the second.
enough() {
	what=$1
	shift
	run run app#t "$@"
	if [ "$RC" != 0 ]; then
		paste "$what, the rest" 1
		run run app#t "$@"
	fi
	exits 0 "$what: what was offered is enough"
	said_not '^failed|sandbox violation|not stored' "$what: for every name"
}
cache=', "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } }'

app ', "sandbox": {}' '' "$(use read own)"
run run app#t
said "failed \\(exit 1, 1 sandbox violation\\)" "reads: findings"
# A directory in which nothing is granted is one name.
paste reads 1
enough reads
app ', "sandbox": { "allow": { "read": ["own/*/none"] } }' '' "$(use read own)"
run run app#t
said "exit 1, $N sandbox violations" "reads, one by one: each is one"
shown=$(grep -c '^    to allow' "$OUT")
ok "reads, one by one: a bounded list ($shown)" test "$shown" -le 30
paste "reads, one by one" "$shown"
enough "reads, one by one"

app ', "sandbox": {}' "$cache" "$(use read own)"
run run app#t
paste "reads of a cached task" 2
enough "reads of a cached task"

app ', "sandbox": {}' '' "$(use write made)"
run run app#t
exits 1 "writes: findings"
ok "writes: nothing came of it" test ! -e p/app/made
paste writes 1
enough writes
is "$(find p/app/made -type f | wc -l)" "$(find p/app/own -type f | wc -l)" "writes: all are there"
app ', "sandbox": { "allow": { "read": ["own"] } }' '' "$(use write own)"
run run app#t
said "exit 1, $N sandbox violations" "writes over files: each is one"
paste "writes over files" "$(grep -c '^    to allow' "$OUT")"
enough "writes over files"
git_ checkout -q -- p

app '' "$cache" "$(use read own)"
run run app#t --sandbox
paste "derived reads" 1
enough "derived reads" --sandbox
app '' "$cache" "$(use write made)"
rm -rf p/app/made
run run app#t --sandbox
paste "derived writes" 1
enough "derived writes" --sandbox
rm -rf p/app/made

app ', "sandbox": { "allow": { "read": ["../lib/theirs/*/none"] } }' '' "$(use read ../lib/theirs); false"
run run app#t
said 'note: hidden from it, outside its project: ' "walled reads: a few are named"
said_not 'sandbox violation' "walled reads: they are no findings"
paste "walled reads" 3
is "$(grep -c 'hidden from it.* to show it' "$OUT")" 3 "walled reads: three"
run run app#t
paste "walled reads, once more" 3
run run app#t
is "$(grep -c '^failed [0-9]' "$OUT")" "$((N - 6))" "walled reads: what was granted is there now"
app '' "$cache" "$(use read ../lib/theirs); exit 3"
run run app#t --sandbox
paste "derived walled reads" 1
run run app#t --sandbox
said_not '^failed [0-9]' "derived walled reads: all is there"

mkdir -p "$HOME/.ssh" "$HOME/.aws"
echo key >"$HOME/.ssh/id"
echo key >"$HOME/.aws/credentials"
app ', "sandbox": {}' '' 'cat ~/.ssh/id ~/.aws/credentials'
run run app#t
exits 1 "stores: findings"
paste stores 2
enough stores
is "$(grep -c '^key$' "$OUT")" 2 "stores: their content"

app ', "sandbox": {}' '' 'ls own/0/*'
run run app#t
exits 1 "a directory: a finding"
paste "a directory" 1
enough "a directory"
app ', "sandbox": {}' '' 'ls | grep own'
run run app#t
exits 1 "nothing of the project"
said 'note: nothing in its working directory is granted.*: allow.read: \["\."\]$' "nothing of the project: a note"
paste "nothing of the project" 1
enough "nothing of the project"
app ', "sandbox": { "allow": { "read": ["vx.config.json"] } }' '' "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'"
run run app#t
exits 1 "sockets"
paste sockets 1
enough sockets
# A linked package that no part of the key covers: either remedy is enough.
put p/lib/vx.config.json <<E
{ "name": "lib", "tasks": { "t": { "exec": { "command": "true" }, "cache": { "inputs": { "files": ["**"] }, "outputs": { "files": [] } } } } }
E
mkdir -p p/app/node_modules
ln -s ../../lib p/app/node_modules/lib
echo x >p/lib/index.js
echo '{ "name": "lib" }' >p/lib/package.json
git_ add -A
for line in 'to allow' 'dependsOn'; do
	app ', "sandbox": {}' "$cache" 'cat node_modules/lib/index.js'
	run run app#t
	said 'failed \(exit 1, 1 sandbox violation\)' "a withheld package: a finding"
	said '^note: p/lib, linked as p/app/node_modules/lib, is hidden from it, .*; to show it, dependsOn: \["lib#t"\]' \
		"a withheld package: the line"
	grep -e "$line" "$OUT" >"$T/one"
	cp "$T/one" "$OUT"
	paste "a withheld package, $line" 1
	enough "a withheld package, $line"
done
done_testing

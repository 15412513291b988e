#!/bin/sh
# SPDX-License-Identifier: MIT
# exec.sandbox.ignore: what it selects is denied and thrown away as ever, and is no finding.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

mkdir -p src secret log tmp/old "$T/home/.ssh"
echo s >src/s
echo k >secret/k
echo l >log/a.log
echo t >log/a.txt
echo o >tmp/old/o
echo key >"$T/home/.ssh/id"
export HOME="$T/home"

reads='cat secret/k log/a.log ~/.ssh/id; cat src/s'
box '{ "allow": { "read": ["src"] }, "ignore": {} }' <<E
$reads
E
findings 3 "nothing is ignored"
before
box '{ "allow": { "read": ["src"] }, "ignore": { "read": ["secret/**", "log", "~/.ssh"], "systemInfo": ["x"] } }' <<E
$reads
E
findings 0 "all that is denied is ignored"
said '^s$' "the rest is read"
said_not 'key' "what is ignored is not"
unchanged "ignored reads"
box '{ "allow": { "read": ["src", "log/*.none"] }, "ignore": { "read": ["**/*.log"] } }' <<'E'
cat log/a.log log/a.txt; true
E
findings 1 "a pattern ignores what it matches"
reported read 'log/a\.txt' cat

# A link is a name like any other: what it leads to has to be named itself, since a task may have made it.
ln -s secret link
mkdir -p 'odd/[a] *'
echo o >'odd/[a] */f'
box '{ "allow": { "read": ["src", "link"] }, "ignore": { "read": ["link", "link/**"] } }' <<'E'
cat link/k secret/k; true
E
findings 1 "a link"
reported read secret cat
box '{ "allow": { "read": ["odd/*/none"] }, "ignore": { "read": ["odd/\\[a\\] \\*/f", "./src/../secret/k"] } }' <<'E'
cat 'odd/[a] *'/f secret/k; true
E
findings 1 "odd names, and a directory by less than its name"
reported read secret cat
box "{ \"ignore\": { \"read\": [\"$W/secret\", \"$HOME/.ssh\"] } }" <<'E'
cat secret/k ~/.ssh/id; true
E
findings 0 "by absolute paths"
box '{ "ignore": { "read": ["~/.s*"] } }' <<'E'
true
E
exits 2 "a pattern outside"
said "ignore\\.read\\[0\\]: '~/\\.s\\*': wildcards in absolute paths are not in this vx yet" "is refused by name"
rm link

writes='echo n >tmp/new; echo n >tmp/old/n; rm tmp/old/o; mkdir -p made/deep; echo x >made/deep/x.tmp; echo out >out/o'
before
box '{ "allow": { "read": ["tmp"], "write": ["out"] } }' <<E
mkdir -p out; $writes
E
exits 1 "nothing is ignored"
said 'sandbox violation' "writes are findings"
rm -rf out
before
box '{ "allow": { "read": ["tmp"], "write": ["out"] }, "ignore": { "write": ["tmp", "made/**/*.tmp", "out"] } }' <<E
mkdir -p out; $writes
E
findings 0 "all writes are granted or ignored"
said '4 writes discarded, as ignore\.write says: ' "they are counted"
is "$(cat out/o)" out "what is granted is kept, ignored or not"
rm -r out
unchanged "ignored writes"
box '{ "ignore": { "write": ["tmp"] } }' <<'E'
echo n >tmp/new; echo n >tmpx
E
findings 1 "a name is no prefix"
reported write tmpx

# A cached task is proven all the same: it saw nothing of it.
echo one >in
box '{ "allow": { "read": ["in"], "write": ["out"] }, "ignore": { "read": ["secret"], "write": ["tmp"] } }' \
	', "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out/**"] } }' <<'E'
cat in secret/k; mkdir -p out tmp; cp in out/in; echo x >tmp/x
E
findings 0 "a cached task"
said_not 'not saved|not proven' "is saved, and proven"
ok "its ignored write is thrown away" test ! -e tmp/x
is "$(cat tmp/old/o)" o "what it could not see there stays"
run run t --sandbox
said 'up to date|restored' "it is a hit where results have to be proven"

# In a live view such writes are refused, and are no finding.
cat >"$T/command.sh" <<'E'
echo n 2>&1 >tmp/new; cat secret/k; echo yes
E
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "persistent": {},
	"sandbox": { "ignore": { "read": ["secret"], "write": ["tmp"] } } } } } }
E
run run t
findings 0 "a live view"
said '^yes$' "which went on"
ok "nothing was written" test ! -e tmp/new
done_testing

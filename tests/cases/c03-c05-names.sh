#!/bin/sh
# SPDX-License-Identifier: MIT
# C03: a rule on a path that does not exist. C05: atomic save of one granted file.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

before 'conf'
box '{ "allow": { "write": ["**"] },
	"deny": { "read": ["conf/local.json"], "write": ["conf/local.json"] } }' <<'E'
cat conf/local.json
mkdir -p conf && echo 1 > conf/local.json
echo rc=$?
E
findings 1 "C03: a rule on a path that does not exist"
said '^cat: .*: No such file or directory$' "C03: the task starts, and reads what is not there"
said_not '^read' "C03: which is no finding"
reported write 'conf/local\.json'
said 'take "conf/local\.json" out of deny\.write' "C03: the rule is named"
is "$(find conf)" conf "C03: the directory is there, the file is not"
unchanged C03 'conf'

# The same where the directory exists, and for the names above a denied one.
before
box '{ "allow": { "write": ["**"] },
	"deny": { "read": ["conf/local.json"], "write": ["conf/local.json"] } }' <<'E'
echo 1 > conf/tmp && mv conf/tmp conf/local.json
E
findings 1 "C03: renamed into its place"
reported write 'conf/local\.json'
unchanged "C03, renamed"
before
box '{ "allow": { "write": ["**"] },
	"deny": { "read": ["a/b/c"], "write": ["a/b/c"] } }' <<'E'
mkdir -p a/b/c/d
echo 1 > a/b/c/d/e
exit 0
E
findings 1 "C03: a denied directory with something in it"
reported write 'a/b/c/d/e'
not_ok "C03: it is not made" test -e a/b/c
unchanged "C03, a directory" 'a(/b)?'

echo a >app.lock
chmod 640 app.lock
echo beside >other
before 'app\.lock'
box '{ "allow": { "read": ["**"], "write": ["app.lock"] } }' <<'E'
sed -i s/a/b/ app.lock
E
findings 0 "C05: atomic save of one granted file"
is "$(cat app.lock)" b "C05: the host has it"
is "$(stat -c %a app.lock)" 640 "C05: with its mode"
unchanged C05 'app\.lock'

# The sibling stays behind: a stray write like any other, and the save holds.
before 'app\.lock'
box '{ "allow": { "read": ["**"], "write": ["app.lock"] } }' <<'E'
cp -p app.lock app.lock.old
sed s/b/c/ app.lock >app.lock.tmp && mv app.lock.tmp app.lock
E
findings 1 "C05: a sibling that stays"
reported write 'app\.lock\.old'
said 'to allow it: allow\.write: \["app\.lock\.old"\]' "C05: with its grant"
is "$(cat app.lock)" c "C05: the save itself is kept"
unchanged "C05, a sibling" 'app\.lock'

# Without any other grant, the file alone.
box '{ "allow": { "write": ["app.lock"] } }' <<'E'
exec python3 - <<'P'
import os, tempfile
fd, name = tempfile.mkstemp(dir=".")
os.write(fd, open("app.lock").read().replace("c", "d").encode())
os.close(fd)
os.replace(name, "app.lock")
P
E
findings 0 "C05: where nothing else may be read"
is "$(cat app.lock)" d "C05: the host has it"
unchanged "C05, alone" 'app\.lock'
done_testing

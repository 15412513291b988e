#!/bin/sh
# SPDX-License-Identifier: MIT
# C13: deny inside allow, any order. C14: a denied directory does not swallow writes. C15: the parent is
# denied, the child is home.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

mkdir -p d/e
echo top >top
echo dok >d/ok
echo dno >d/no
echo eok >d/e/ok
before
for allow in '"**", "d/e"' '"d/e", "**"'; do
	for deny in '"d", "d/no"' '"d/no", "d"'; do
		rules="allow [$allow], deny [$deny]"
		box "{ \"allow\": { \"read\": [$allow] }, \"deny\": { \"read\": [$deny] } }" <<'E'
cat top; cat d/ok; cat d/e/ok; cat d/no; exit 0
E
		findings 2 "C13: $rules"
		said '^eok$' "C13: $rules: the inner grant holds"
		said '^top$' "C13: $rules: the outer one too"
		said_not '^(dok|dno)$' "C13: $rules: what lies between is denied"
	done
done

unchanged C13

mkdir secret
before
box '{ "allow": { "write": ["**"] }, "deny": { "read": ["secret"], "write": ["secret"] } }' <<'E'
echo 1 >secret/n
rc=$?
echo rc=$rc
exit 0
E
findings 1 "C14: one finding"
said_not '^rc=0$' "C14: the write failed"
said '^(read|write) secret' "C14: the report names the directory"
unchanged C14

# by a pattern, of writes alone: what is in a directory that it matches is denied with it
mkdir -p secret/sub
before
box '{ "allow": { "write": ["**"] }, "deny": { "write": ["sec*"] } }' <<'E'
echo 1 >secret/n
echo 1 >secret/sub/n
mkdir sector
echo 1 >sector/n
E
findings 3 "C14 by a pattern: each write is a finding"
reported write 'secret/sub/n'
unchanged "C14 by a pattern"

mkdir -p w/sub
echo outside >o
echo mine >w/mine
before w
box '{ "allow": { "write": ["w/**"] } }' <<'E'
cd w
pwd
cd ..
ls
cd w
pwd
cat mine
cat ../o
exit 0
E
findings 1 "C15: the file beside is a finding"
is "$(cat "$OUT" "$ERR" | grep -cx "$W/w")" 2 "C15: pwd prints the real path, before and after"
said '^mine$' "C15: home is readable"
said '^w$' "C15: the parent lists it"
said_not '^(d|o|top|secret|vx\.config\.json)$' "C15: and nothing else"
said_not '^outside$' "C15: the file beside is not read"
reported read o cat
unchanged C15 w
done_testing

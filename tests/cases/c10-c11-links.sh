#!/bin/sh
# SPDX-License-Identifier: MIT
# C10: a protected name is a link to somewhere else. C11: dangling and circular links are only names.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

mkdir "$T/O"
echo there >"$T/O/there"
ln -s "$T/O" .tool
before
box '{ "allow": { "write": ["**"] }, "deny": { "read": [".tool"], "write": [".tool"] } }' <<'E'
true; ls .tool; rm .tool; echo 1 > .tool/n
exit 0
E
findings 1 "C10: a protected name is a link"
said_not '^there$' "C10: it is not read through"
reported read "\.tool -> $T/O"
is "$(ls "$T/O")" there "C10: nothing is written through it"
ok "C10: nor is the link removed" test -L .tool
unchanged C10

# Who makes the hidden name anew writes where nothing is kept.
before
box '{ "allow": { "write": ["**"] }, "deny": { "read": [".tool"], "write": [".tool"] } }' <<'E'
mkdir .tool && echo 1 >.tool/n
E
findings 3 "C10: made anew"
reported write '\.tool/n'
is "$(ls "$T/O")" there "C10: nothing is written through it"
unchanged "C10, anew"

# Denied for writing alone, it is a link that leads to a read-only place.
before
box '{ "allow": { "write": ["**"] }, "deny": { "write": [".tool"] } }' <<'E'
cat .tool/there
rm .tool
mkdir .tool; echo 1 > .tool/n
E
findings 2 "C10: denied for writing"
said '^there$' "C10: it is read through"
unchanged "C10, for writing"

rm .tool
ln -s nowhere dead
ln -s b a
ln -s a b
before
box '{ "allow": { "read": ["**"] }, "deny": { "read": ["dead"] } }' <<'E'
readlink dead; cat a; true
E
findings 1 "C11: a dangling link that is denied"
said 'failed \(exit 1, 1 sandbox' "C11: the command itself ended well"
said_not "^nowhere\$" "C11: its text is not read"
reported read "dead -> nowhere" readlink
said '^cat: a: Too many levels of symbolic links$' "C11: a circle is one"
unchanged C11

before
box '{ "allow": { "read": ["**"] } }' <<'E'
readlink dead; readlink a; cat dead; test -e b; ls -l >/dev/null; true
E
findings 0 "C11: granted, they are only names"
said '^nowhere$' "C11: with a text"
said '^cat: dead: No such file or directory$' "C11: that leads nowhere"
unchanged "C11, granted"

# As grants of their own.
before
box '{ "allow": { "read": ["dead", "a", "b"] } }' <<'E'
readlink dead a b; cat a; cat dead; true
E
findings 0 "C11: granted by their names"
is "$(grep -cxE 'nowhere|b|a' "$OUT")" 3 "C11: three texts"
unchanged "C11, by name"
done_testing

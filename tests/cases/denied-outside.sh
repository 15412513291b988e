#!/bin/sh
# SPDX-License-Identifier: MIT
# exec.sandbox.deny of what is outside of the workspace: hidden there, or not written below a grant.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

mkdir -p "$HOME/tools/secret/part" "$T/far/keep" "$T/far/log"
echo own >"$HOME/tools/own"
echo s >"$HOME/tools/secret/s"
echo p >"$HOME/tools/secret/part/p"
echo f >"$T/far/f"
echo k >"$T/far/keep/k"
ln -s far "$T/alias"
own

box '{ "deny": { "read": ["~/tools/secret", "'"$T"'/far/f"] } }' <<'E2'
cat ~/tools/own
cat ~/tools/secret/s
cat ~/tools/secret/part/p
ls -A ~/tools/secret
E2
findings 0 "deny.read outside"
like "$OUT" "^own\$" "what is beside it is there"
unlike "$OUT" '^(s|p|part)$' "what is denied is not"

box '{ "allow": { "read": ["~/tools/secret/part", "~/tools"] }, "deny": { "read": ["~/tools/secret"] } }' <<'E2'
cat ~/tools/secret/s
cat ~/tools/secret/part/p
E2
findings 0 "a grant inside a deny"
like "$OUT" '^p$' "the longer path wins: it is shown"
unlike "$OUT" '^s$' "and the rest is not"

box '{ "allow": { "read": ["~/tools/own"] }, "deny": { "read": ["~/tools/own/"] } }' <<'E2'
cat ~/tools/own || true
E2
unlike "$OUT" '^own$' "at equal length a deny wins"

box '{ "allow": { "write": ["'"$T"'/far"] }, "deny": { "read": ["'"$T"'/alias/f"], "write": ["'"$T"'/far/keep"] } }' <<E2
cat $T/far/f
cat $T/far/keep/k
echo new >$T/far/log/l
echo new >$T/far/keep/k
echo new >$T/far/keep/n
rm -rf $T/far/keep
true
E2
findings 0 "in a grant outside"
unlike "$OUT" '^f$' "deny.read hides, named through a link, too"
like "$OUT" '^k$' "deny.write does not"
is "$(cat "$T/far/log/l")" new "beside it is written"
is "$(cat "$T/far/keep/k"; ls "$T/far/keep")" "k
k" "below it nothing is"

box '{ "allow": { "write": ["'"$T"'/far"] }, "deny": { "write": ["'"$T"'/far"] } }' <<E2
cat $T/far/f
echo new >$T/far/f
true
E2
like "$OUT" '^f$' "a deny.write of the grant itself leaves it to be read"
is "$(cat "$T/far/f")" f "and not written"

# What is attached of one path is attached in one order, however many there are.
all=
for i in $(seq 40); do
	mkdir "$T/far$i"
	echo f >"$T/far$i/f"
	all="$all${all:+, }\"$T/far$i\""
done
own
box "{ \"allow\": { \"write\": [$all] }, \"deny\": { \"write\": [$all] } }" <<E2
for i in \$(seq 40); do echo new >$T/far\$i/f; done
true
E2
is "$(cat "$T"/far*/f | sort -u)" f "of forty, none is written"

box '{ "allow": { "write": ["'"$T"'/far"] }, "deny": { "write": ["'"$T"'/far/none"] } }' <<E2
echo new >$T/far/none
E2
exits 1 "a deny.write of what is not there, in a grant"
said 'deny.write .*/far/none: nothing could keep the task from writing it: No such file.*make it first' "is refused"
ok "and nothing ran" test ! -e "$T/far/none"

box '{ "deny": { "read": ["/"] } }' <<E2
true
E2
exits 1 "a deny of everything"
said "vx.config.json:.*: deny of '/': name what is in it" "is refused"

# By another path to it: one that a mount shows in the workspace, and one outside of it.
if [ "$(id -u)" = 0 ] && mkdir -p "$W/in" "$T/again" && mount --bind "$HOME/tools" "$T/again" 2>/dev/null; then
	mount --bind "$HOME/tools/secret" "$W/in"
	box '{ "allow": { "read": ["."] }, "deny": { "read": ["~/tools/secret"] } }' <<-E2
		cat $T/again/own
		cat $T/again/secret/s in/s
		true
	E2
	like "$OUT" '^own$' "what is beside a second path is there"
	unlike "$OUT" '^s$' "deny.read hides what a mount shows once more"
	umount "$W/in" "$T/again"
else
	skip "deny.read hides what a mount shows once more" "wants root, and mounts"
fi
done_testing

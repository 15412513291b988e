#!/bin/sh
# SPDX-License-Identifier: MIT
# Sandboxes in sandboxes, and a sandbox where the surrounding /proc is masked.
# shellcheck disable=SC2034 # exits reads RC
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

echo k >secret
echo one >in

box '{}' <<'E'
unshare --user --map-root-user true
E
exits 1 "no namespaces without a grant"
box '{ "nested": true }' <<'E'
unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt' && echo made
E
findings 0 "namespaces where they are granted"
said '^made$' "and mounts in them"
before
box '{ "nested": true, "allow": { "read": ["in"] } }' <<'E'
unshare --user --map-root-user --mount sh -c "
	umount $PWD; umount -l $PWD; umount -l /proc; mount -o remount,rw /
	mount --bind / /mnt; cat secret; cat /mnt$PWD/secret; touch /etc/written; echo n >in"
true
E
said_not '^k$' "nothing that is hidden is uncovered"
ok "nothing outside is written" test ! -e /etc/written
is "$(cat in)" one "nothing inside is"

# vx in vx. As root it has no /proc of its own there.
mkdir "$T/bin"
cp "$VX" "$VX_SANDBOX" "$T/bin"
[ "$(id -u)" = 0 ] && more=', "weakerWhenNested": true' || more=
box '{ "nested": true }' <<E
mkdir /tmp/w && cd /tmp/w || exit
echo seen >seen; echo key >key
echo '{ "name": "i", "tasks": { "t": { "exec": { "command": "cat seen key; echo made >out",
	"sandbox": { "allow": { "read": ["seen"], "write": ["out"] }$more } } } } }' >vx.config.json
$T/bin/vx run t
cat out
true
E
said '^seen$' "vx runs in it"
said '^made$' "commits"
said_not '^key$' "and hides"

# As docs/CONFIG.md has it: with credential stores at home, in a copy and in the workspace.
mkdir "$HOME/.ssh" e2e
echo '{ "projects": ["."] }' >e2e/vx.workspace.json
put e2e/vx.config.json <<E
{ "name": "i", "tasks": { "t": {
	"exec": { "command": "cat in; echo made >out", "sandbox": { "allow": { "read": ["in"], "write": ["out"] }$more } },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out"] } } } } }
E
echo seen >e2e/in
box '{ "nested": true, "allow": { "read": ["e2e"] } }' <<E
cp -r e2e /tmp/e2e && cd /tmp/e2e && $T/bin/vx run t
E
findings 1 "a vx inside looks for credential stores"
reported read '.*/\.ssh' vx
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": {
	"command": "cp -r e2e /tmp/e2e && cd /tmp/e2e && $T/bin/vx run t",
	"sandbox": { "nested": true, "hermetic": true, "allow": { "read": ["e2e", "$T/bin"] } } } } } }
E
run run t
findings 0 "in a hermetic sandbox there are none"
said '^seen$' "and it runs there"
git_ init -q
# The inner one's scratch can be in a tmpfs alone there, where the outer sandbox's overlay holds all else.
if try unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt &&
	exec python3 -c "import os; os.setxattr(\"/mnt\", \"user.vx\", b\"\")"' && [ "$RC" = 0 ]; then
	box '{ "nested": true, "allow": { "read": ["e2e"], "write": ["e2e"] },
		"ignore": { "read": [".git", "~/.ssh"], "write": ["e2e/.vx"] } }' <<-E
		cd e2e && $T/bin/vx run t
	E
	findings 0 "in the workspace"
	ok "in the workspace: what it made is kept, and its .vx is not" test -s e2e/out -a ! -e e2e/.vx
else
	skip "in the workspace" "a tmpfs of this kernel keeps no user attributes"
fi
rm -r "$HOME/.ssh" e2e .git

# COMMAND...: where parts of /proc are masked. (Some machines mask some of it themselves.)
cat >"$T/masked.sh" <<'SH'
mount -t tmpfs none /proc/acpi 2>/dev/null || mount -t tmpfs none /proc/tty
exec "$@"
SH
masked() {
	own
	RC=0
	unshare --user --map-root-user --mount --pid --fork --mount-proc sh "$T/masked.sh" "$@" \
		>"$OUT" 2>"$ERR" </dev/null || RC=$?
}
# MORE: a cached task in there.
cached() {
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": {
			"exec": { "command": "cat in; ls -A /proc; echo x >/proc/x; true",
				"sandbox": { "allow": { "read": ["in"] }$1 } },
			"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
	E
}
[ "$(id -u)" != 0 ] || [ -z "${VX_TEST_OWNER:-}" ] || done_testing # an owner that has no name in there
cached ''
masked "$VX" run t
exits 1 "a masked /proc fails a task"
said 'cannot mount a /proc.*weakerWhenNested' "with what can be set"
cached ', "weakerWhenNested": true'
masked "$VX" run t
exits 0 "unless it may be weaker"
said '^one$' "then it runs"
said_not '^[0-9]+$|self' "with an empty /proc"
is "$(grep -c 'weakerWhenNested: a /proc of its own is refused here' "$T/.both")" 1 "said once"
run run t
said 'up to date' "the result is kept"
rm -rf .vx
masked "$VX" run t
run run t --sandbox
said 'up to date' "as a confined one"
done_testing

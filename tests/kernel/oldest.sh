#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What is different on the oldest kernel that vx promises, and a run of vx from end to end there, with and
# without /dev/fuse. guest.sh runs this; on a newer kernel most of it would fail.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox

if [ -e /dev/fuse ]; then fuse=1 with='with FUSE'; else fuse='' with='without FUSE'; fi
diag "$(uname -r), $with"
like /proc/sys/kernel/osrelease '^6\.1\.' "the kernel is 6.1"

# --- how the view is built ---------------------------------------------------------------------

# The VIEW frame (proto/status.h) of the last spec: "reports detached", and the exit code.
cat >"$T/view.py" <<'PY'
import os, struct, subprocess, sys
status, there = os.pipe()
spec = os.open(sys.argv[2], os.O_RDONLY)
box = subprocess.Popen([sys.argv[1], str(spec), str(there)], pass_fds=(spec, there), stdin=subprocess.DEVNULL)
os.close(there)
data = os.fdopen(status, "rb").read()
while data:
    n, kind = struct.unpack_from("<IB", data)
    if kind == 1:
        print(*data[5:7])
    if kind in (4, 8, 11):
        print(data[9:4 + n].decode(errors="replace"))
    data = data[4 + n:]
print(box.wait())
PY
mkdir -p "$W/src" "$W/priv" "$HOMEDIR/.ssh"
echo s >"$W/src/s"
echo k >"$W/priv/key"
echo k >"$HOMEDIR/.ssh/id"
for mode in '' attached; do
	MODE=$mode
	spec 'test -e src/s && test ! -e priv && echo n >src/n && echo h >~/h && test ! -e ~/.ssh/id' 'write src'
	timeout 60 python3 "$T/view.py" "$VX_SANDBOX" "$T/spec" >"$OUT" 2>"$ERR"
	prints "${fuse:-0} 0
0" "${mode:-by default}: the layers stand in the scratch for a moment, reports ${fuse:+are}${fuse:-are not} possible"
	is "$(cat "$ERR")" "" "${mode:-by default}: without a word"
	is "$(ls "$S/u/src")" "n
s" "${mode:-by default}: the write is in the scratch, beside what was there"
	ok "${mode:-by default}: the scratch holds no mount, and can be removed" sh -c \
		'! grep -q "$1" /proc/self/mountinfo && chmod -R u+rwx "$1" && rm -r "$1"' - "$S"
done
MODE=

# --- scratch on tmpfs ----------------------------------------------------------------------------

rm -rf "$W"
mkdir "$W"
cd "$W" || exit 99
put vx.config.json <<'E'
{ "name": "w", "tasks": { "t": { "exec": { "command": "echo up", "sandbox": {} } } } }
E
# TMPFS... -- COMMAND: with a tmpfs on each of these places.
cat >"$T/tmpfs.sh" <<'E'
while [ "$1" != -- ]; do
	mount -t tmpfs -o mode=1777 tmpfs "$1" || exit 99
	shift
done
shift
exec "$@"
E
in_tmpfs() {
	own_ns='--mount'
	[ "$(id -u)" = 0 ] || own_ns='--user --map-root-user --mount'
	# shellcheck disable=SC2086 # words
	try unshare $own_ns sh "$T/tmpfs.sh" "$@"
}
mkdir "$T/disk"
mv vx.config.json "$T/config"
cat >"$T/there.sh" <<'E'
cd "$1" && cp "$2" vx.config.json && exec "$3" run t
E
export VX_SCRATCH_DIR="$T/disk"
in_tmpfs "$W" -- sh "$T/there.sh" "$W" "$T/config" "$VX"
exits 0 "a workspace on tmpfs: its own scratch is passed over for the next place"
is "$(find "$T/disk" -name 'vx-scratch-*' | wc -l)" 1 "which was used"
in_tmpfs "$W" "$T/disk" /var/tmp -- sh "$T/there.sh" "$W" "$T/config" "$VX"
unset VX_SCRATCH_DIR
exits 1 "where all places are tmpfs the task fails"
said 'tmpfs can hold it from kernel 6\.6 on' "with the cause"
said 'set VX_SCRATCH_DIR to a directory on a volume' "and the remedy"
said_not '^up$' "and nothing ran"

# --- second paths ---------------------------------------------------------------------------------------

if [ "$fuse" ]; then
	rm -rf "$W"
	mkdir -p "$W/src/x" "$W/priv"
	cd "$W" || exit 99
	echo the-secret >"$W/priv/key"
	put "$W/vx.config.json" <<-E
		{ "name": "w", "tasks": { "t": { "exec": { "command": "cat src/x/key; cat $W/priv/key; echo up",
			"sandbox": { "allow": { "read": ["src"] } } } } } }
	E
	# Mounted on the workspace that is run, at a second path.
	echo 'mount --bind "$1" "$2" && mount --bind "$1/priv" "$2/src/x" && cd "$2" && shift 2 && exec "$@"' >"$T/second.sh"
	in_tmpfs -- sh "$T/second.sh" "$W" "$T/disk" "$VX" run t
	exits 0 "a workspace at a second path, with another one in it"
	said '^up$' "the task runs"
	said_not '^the-secret$' "and what is hidden is hidden at all of them"
fi

# --- a run of vx, from end to end --------------------------------------------------------------------

rm -rf "$W"
mkdir "$W"
cd "$W" || exit 99
echo '{ "projects": ["p/*"] }' >vx.workspace.json
project() { # NAME DEPENDENCIES COMMAND
	put "p/$1/vx.config.json" <<-E
		{ "name": "$1", "dependencies": [$2], "tasks": { "build": { "dependsOn": ["^build"],
			"exec": { "command": "$3", "sandbox": {
				"allow": { "read": ["src/**", "../lib/dist/**"], "write": ["dist/**"] } } },
			"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }
	E
	mkdir -p "p/$1/src"
	echo "$1" >"p/$1/src/name"
}
project lib '' 'ls dist 2>/dev/null; rm -rf dist && mkdir dist && cp src/* dist/'
project app '"lib"' 'rm -rf dist && mkdir dist && cat ../lib/dist/* src/* >dist/all'
run run build --all
exits 0 "cold"
is "$(cat p/app/dist/all)" "lib
app" "outputs are in the workspace"
run run build --all
exits 0 "warm"
said 'all cached' "nothing ran"
rm -r p/lib/dist p/app/dist
run run build --all
exits 0 "warm, without the outputs"
said 'all cached' "nothing ran either"
is "$(cat p/app/dist/all)" "lib
app" "they were restored"
mv p/lib/src/name p/lib/src/renamed
run run build --all
exits 0 "over old outputs"
said_not '^name$' "a task does not see its own"
is "$(ls p/lib/dist)" renamed "what it did not make again is gone"

echo k >p/app/key
project app '"lib"' 'cat key; echo x >../lib/stray; echo x >stray; rm -rf dist && mkdir dist'
run run build --filter app
exits 1 "a task that reads and writes what it did not declare"
said_not '^k$' "saw nothing of it"
said '^write p/lib/stray' "the write elsewhere is a finding"
said '^write p/app/stray' "that beside it, too"
is "$(find p -name stray)" "" "and neither is in the workspace"
cat "$OUT" "$ERR" >"$T/both"
if [ "$fuse" ]; then
	like "$T/both" '^read p/app/key  by cat' "the read is named, with the program"
	unlike "$T/both" '/dev/fuse cannot be used' "and nothing is missing"
else
	unlike "$T/both" '^read ' "the read is not"
	is "$(grep -c '/dev/fuse cannot be used.*denied reads are not reported' "$T/both")" 1 "why is said once"
fi

mkdir "$T/bin"
for f in /usr/bin/* /usr/sbin/*; do
	case $f in */git) ;; *) ln -sf "$f" "$T/bin/" ;; esac
done
project app '"lib"' 'rm -rf dist && mkdir dist && cat src/* >dist/all'
try env PATH="$T/bin" "$VX" run build --all
exits 0 "without git"
said 'no git' "which is said"

# --- nothing is left -------------------------------------------------------------------------------

fifo held up
cat >"$T/command.sh" <<E
exec 9<>$T/held
setsid sleep 1000 &
rm -rf dist && mkdir dist
echo up >$T/up
exec sleep 1000
E
project app '' "exec sh $T/command.sh"
for victim in helper core guard; do
	echo old >p/app/dist/all
	ok "kill -9 of the $victim" timeout 300 python3 "$VX_SRCDIR/tests/cases/kill.py" --victim $victim \
		--rounds 2 --moment "$T/up" --held "$T/held" -- "$VX" run app#build
	is "$(ls .vx/scratch)" "" "$victim: no scratch is left"
	is "$(cat p/app/dist/all)" old "$victim: outputs are as before"
done
is "$(grep -c "$T" /proc/self/mountinfo)" 0 "no mount is left"

# --- what Debian can forbid --------------------------------------------------------------------------

if [ "$(id -u)" = 0 ]; then
	spec 'echo up' 'read .'
	chown 1000 "$S"
	echo 0 >/proc/sys/kernel/unprivileged_userns_clone
	try setpriv --reuid 1000 --regid 1000 --clear-groups "$VX_SANDBOX" --spec "$T/spec"
	echo 1 >/proc/sys/kernel/unprivileged_userns_clone
	exits 125 "kernel.unprivileged_userns_clone=0, as a user"
	said 'cannot make the namespaces .*kernel\.unprivileged_userns_clone is 0' "is the cause"
	said 'as root: sysctl kernel\.unprivileged_userns_clone=1' "and the remedy"
	said_not '^up$' "nothing ran"
fi
done_testing

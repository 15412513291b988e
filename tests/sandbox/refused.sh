#!/bin/sh
# SPDX-License-Identifier: MIT
# C25: a machine that forbids what a sandbox is made of is told so, with the remedy for that cause,
# and nothing runs.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
echo s >"$W/s"

# COMMAND...: runs the spec under it. The command inside would leave a mark on a granted place.
refused() { # NAME CAUSE REMEDY COMMAND...
	name=$1 cause=$2 remedy=$3
	shift 3
	rm -f "$T/mark.d/ran"
	mkdir -p "$T/mark.d"
	chmod 777 "$T/mark.d"
	spec "echo ran >$T/mark.d/ran" 'read .' "write $T/mark.d"
	RC=0
	timeout 60 "$@" "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	exits 125 "$name: exit code"
	like "$ERR" "$cause" "$name: the cause"
	like "$ERR" "$remedy" "$name: the remedy"
	unlike "$ERR" 'loopback|/dev|fuse|overlay' "$name: and nothing that is not the cause"
	is "$(wc -l <"$ERR")" 1 "$name: in one line"
	not_ok "$name: nothing ran" test -e "$T/mark.d/ran"
}

refused 'a seccomp filter' 'cannot make the namespaces .*Operation not permitted' 'seccomp' \
	"$PROBE" refuse-namespaces

cat >"$T/none.sh" <<'SH'
echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"
SH
refused 'max_user_namespaces' 'user.max_user_namespaces is 0' 'sysctl user.max_user_namespaces' \
	unshare --user --map-root-user --mount-proc --pid --fork sh "$T/none.sh"

cat >"$T/nonet.sh" <<'SH'
echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"
SH
refused 'max_net_namespaces' 'namespaces of a sandbox .*: a limit on namespaces is reached' '/proc/sys/user/max_' \
	unshare --user --map-root-user --mount-proc --pid --fork sh "$T/nonet.sh"

cat >"$T/nocap.sh" <<'SH'
exec setpriv --bounding-set -setfcap "$@"
SH
refused 'an id map' 'cannot map ids into the sandbox' 'CAP_SETFCAP|allow writes of uid_map' \
	unshare --user --map-root-user sh "$T/nocap.sh"

cat >"$T/chroot.sh" <<'SH'
top=$1
shift
cd /
for d in *; do
	if [ -L "$d" ]; then
		cp -P "$d" "$top/$d"
	elif [ -d "$d" ]; then
		mkdir -p "$top/$d" && mount --rbind "/$d" "$top/$d"
	fi
done
exec chroot "$top" "$@"
SH
mkdir "$T/root"
refused 'a chroot' 'this is a chroot' 'pivot_root' \
	unshare --user --map-root-user --mount sh "$T/chroot.sh" "$T/root"

# One that is a mount point looks like any root, but to who may ask.
cat >"$T/bound.sh" <<'SH'
mount -o bind "$2" "$2" && exec sh "$@"
SH
refused 'a chroot to a mount point' 'this is a chroot' 'pivot_root' \
	unshare --user --map-root-user --mount sh "$T/bound.sh" "$T/chroot.sh" "$T/root"
if grep -q '^Seccomp:[[:space:]]*0$' /proc/self/status; then
	refused 'the same by who may not ask' 'cannot make the namespaces' 'no seccomp filter .* or this is a chroot: .*pivot_root' \
		unshare --user --map-root-user --mount sh "$T/bound.sh" "$T/chroot.sh" "$T/root" \
		setpriv --bounding-set -sys_admin
fi

cat >"$T/masked.sh" <<'SH'
mount -t tmpfs none /proc/acpi 2>/dev/null || mount -t tmpfs none /proc/tty
exec setpriv --bounding-set -sys_ptrace "$@"
SH
refused 'a masked /proc' 'cannot mount a /proc' 'unmask' \
	unshare --user --map-root-user --mount --pid --fork --mount-proc sh "$T/masked.sh"

# A workspace with a mount inside, where nothing can serve it.
mkdir -p "$W/m"
cat >"$T/mounted.sh" <<'SH'
mount -t tmpfs none "$1" && shift && exec "$@"
SH
spec 'true' 'read .' fuse-off
RC=0
unshare --user --map-root-user --mount sh "$T/mounted.sh" "$W/m" "$VX_SANDBOX" --spec "$T/spec" \
	>"$OUT" 2>"$ERR" || RC=$?
exits 125 "a mount inside the workspace: exit code"
like "$ERR" "$W/m is mounted in it, and the mirror that would do needs /dev/fuse; let this user open" \
	"a mount inside the workspace: cause and remedy"

# A home with a mount inside stays read-only then, and its stores hidden.
mkdir -p "$HOMEDIR/m" "$HOMEDIR/.ssh"
echo k >"$HOMEDIR/.ssh/id"
echo p >"$HOMEDIR/plain"
spec 'cat ~/plain; cat ~/.ssh/id; echo x >~/new' 'read .' fuse-off
unshare --user --map-root-user --mount sh "$T/mounted.sh" "$HOMEDIR/m" "$VX_SANDBOX" --spec "$T/spec" \
	>"$OUT" 2>"$ERR"
prints p "a home with a mount inside: stores hidden, the rest readable"
like "$ERR" "note: the home directory .* stays read-only in the sandbox: $HOMEDIR/m is mounted in it, .*; let this user open /dev/fuse" \
	"and said, with cause and remedy"
not_ok "nothing written" test -e "$HOMEDIR/new"
done_testing

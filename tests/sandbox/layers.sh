#!/bin/sh
# SPDX-License-Identifier: MIT
# What the kernel's layers do that a view made of them has to live with: answers that are kept, work directories that
# cannot be used, overlays over overlays, scratches inside of what they cover, look-ups that nobody answers.
# shellcheck disable=SC2016,SC2034 # the command's own variables; RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program python3

if [ "$(id -u)" = 0 ]; then
	with_mounts() { unshare --mount "$@"; }
else
	with_mounts() { unshare --user --map-root-user --mount "$@"; }
fi
fresh() {
	rm -rf "$W" "${HOMEDIR:?}"
	mkdir -p "$W/src/sub" "$W/priv" "$HOMEDIR/.cache"
	echo s >"$W/src/s"
	echo k >"$W/priv/key"
}

# --- answers that are kept -----------------------------------------------------------------------

# The command and this test in turns.
fifo to from
fresh
spec "read -r _ <$T/to; ls src; cat src/none; cat src/s; echo told >$T/from
	read -r _ <$T/to; ls src; cat src/none; cat src/s; cat src/other; ls priv; cat src/late" 'read src' \
	'deny-read src/late' 'deny-read src/*.key'
timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null &
BOX=$!
echo go | timeout 30 tee "$T/to" >/dev/null
await from >/dev/null
echo came >"$W/src/none"
echo replaced >"$W/src/new"
mv "$W/src/new" "$W/src/s"
echo other >"$W/src/other"
echo secret >"$W/src/late"
echo secret >"$W/src/two.key"
echo go | timeout 30 tee "$T/to" >/dev/null
RC=0
wait "$BOX" || RC=$?
sed '1,/^sub$/d' "$OUT" >"$T/after"
like "$T/after" '^other$' "what the host adds is seen by who asks for it first"
is "$(grep -c '^s$' "$OUT")" 4 "a file that was looked up stays the one that it was"
unlike "$OUT" '^(came|replaced)$' "and a name that was not there stays away"
unlike "$OUT" 'secret' "what is not granted is not seen, whenever it comes"

# --- look-ups that nobody answers ----------------------------------------------------------------

# The command asks a stopped helper and waits. To end the helper ends all of it.
fresh
fifo hold asks
spec "exec 9>$T/hold; echo \$\$ >$T/asks; read -r _ <$T/to; cat src/sub/../none" 'read src' 'deny-read src/none'
hold hold
timeout 60 python3 - "$VX_SANDBOX" "$T" >"$OUT" 2>"$ERR" <<'PY'
import os, signal, subprocess, sys
prog, top = sys.argv[1:]
box = subprocess.Popen([prog, "--spec", top + "/spec"], stdin=subprocess.DEVNULL)
open(top + "/asks").read()
def children(pid):
    for line in os.listdir("/proc"):
        if line.isdigit():
            try:
                stat = open("/proc/%s/stat" % line).read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(stat[1]) == pid:
                yield int(line)
init, = children(box.pid)
shell, = children(init)
box.send_signal(signal.SIGSTOP)
os.waitid(os.P_PID, box.pid, os.WSTOPPED | os.WNOWAIT)
open(top + "/to", "w").write("go\n")
def waits():
    for pid in [shell, *children(shell)]:
        try:
            if "fuse" in open("/proc/%d/wchan" % pid).read() or "request_wait" in open("/proc/%d/wchan" % pid).read():
                return True
        except OSError:
            pass
    return False
while not waits():
    pass
print("waits")
box.kill()
print("helper", -box.wait())
PY
prints "waits
helper 9" "a command waits for a stopped helper"
ok "and is gone with it" released

# --- what cannot be a scratch ----------------------------------------------------------------------

# The overlay comes up read-only when its work directory cannot be made: a tmpfs with room for u, w, tmp, hu and
# hw, and no inode more.
fresh
spec 'echo up' 'read src'
mkdir "$T/full"
cat >"$T/full.sh" <<'E2'
mount -t tmpfs -o "mode=1777,nr_inodes=$1" none "$2" && mkdir "$2/s" && shift 2 && exec "$@"
E2
sed "s|^scratch .*|scratch $T/full/s|" "$T/spec" >"$T/spec2"
for n in 7 8; do
	RC=0
	with_mounts sh "$T/full.sh" $n "$T/full" "$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	exits 125 "a scratch with room for $n files: is refused"
	unlike "$OUT" up "with room for $n: nothing ran"
	like "$ERR" 'scratch|came up read-only' "with room for $n: the cause"
done

# In a container all is an overlay, which is a lower layer and no upper one. The scratch is in the home then, and in
# what covers the home.
fresh
put "$W/vx.config.json" <<'E2'
{ "name": "w", "tasks": { "t": { "exec": {
	"command": "cat src/s; cat priv/key; echo n >src/n; find . ~ >/dev/null && echo walked; echo n >~/.cache/n && cat ~/.cache/n",
	"sandbox": { "allow": { "read": ["src"], "write": ["src"] } } } } } }
E2
mkdir -p "$T/m/u" "$T/m/w"
cat >"$T/overlay.sh" <<'E2'
mount -t overlay -o "userxattr,lowerdir=$1,upperdir=$2/u,workdir=$2/w" none "$1" && cd "$1" && shift 2 && exec "$@"
E2
try env HOME="$HOMEDIR" VX_SCRATCH_DIR="$HOMEDIR/.cache" unshare --user --map-root-user --mount \
	sh "$T/overlay.sh" "$W" "$T/m" "$VX" run t
like "$OUT" '^s$' "a workspace on an overlay is a lower layer"
unlike "$OUT" '^k$' "with its walls"
if [ -n "${VX_TEST_OWNER:-}" ]; then
	skip "a granted write is there" "the directory is of a user that has no name in the namespace"
else
	is "$(cat "$T/m/u/src/n")" n "a granted write is there"
fi
is "$(find "$HOMEDIR/.cache" -name 'vx-scratch-*' | wc -l)" 1 "its own scratch directory is passed over"
like "$OUT" '^walked$' "a home that holds the scratch can be walked"
like "$OUT" '^n$' "and written to"

# Two deep is the end, where the helper cannot serve it (mirror.sh).
fresh
mkdir -p "$T/m2/u" "$T/m2/w"
cat >"$T/deep.sh" <<'E2'
mount -t overlay -o "userxattr,lowerdir=$1,upperdir=$2/u,workdir=$2/w" none "$1" &&
	mount -t overlay -o "userxattr,lowerdir=$1,upperdir=$3/u,workdir=$3/w" none "$1" && shift 3 && exec "$@"
E2
spec 'echo up' 'read src' fuse-off
RC=0
unshare --user --map-root-user --mount sh "$T/deep.sh" "$W" "$T/m" "$T/m2" "$VX_SANDBOX" --spec "$T/spec" \
	>"$OUT" 2>"$ERR" </dev/null || RC=$?
exits 125 "an overlay over two of them: is refused"
like "$ERR" 'is on an overlay over others' "with the cause"

# --- how it is mounted ---------------------------------------------------------------------------------

# Without `volatile` the end of a task writes all of the host's dirty pages; `index` makes links between names that the
# upper does not hold.
fresh
box 'sed -n "s,^[^ ]* [^ ]* [^ ]* [^ ]* $PWD [^-]*- overlay [^ ]* ,,p" /proc/self/mountinfo' 'read src'
like "$OUT" '(^|[,=])volatile(,|$)' "the overlay is volatile"
like "$OUT" '(^|,)userxattr(,|$)' "keeps its marks where users may"
unlike "$OUT" 'index=on|xino=on|metacopy=on|redirect_dir=on' "and has no option that changes what it means"

# --- directories of another owner ----------------------------------------------------------------------

# Inside they are shown as the caller's, or nothing could be made in them that their mode allows. What it does not
# allow is refused when it is to be moved.
if [ "$(id -u)" = 0 ]; then
	fresh
	cd "$W" || exit 99
	put vx.config.json <<-'E2'
		{ "name": "w", "tasks": { "t": {
			"exec": { "command": "echo n >theirs/new && rm theirs/own && echo n >open/new && echo n >out",
				"sandbox": { "allow": { "write": ["theirs", "open", "out"] } } },
			"cache": { "inputs": { "files": [] }, "outputs": { "files": ["out"] } } } } }
	E2
	mkdir theirs open
	echo own >theirs/own
	chown -R 54321:54321 .
	chown 1005:1005 theirs open
	chmod 777 open
	as_other() {
		RC=0
		as_user timeout 60 "$VX" run t >"$OUT" 2>"$ERR" </dev/null || RC=$?
	}
	as_other
	exits 1 "a write that the mode of a directory forbids fails the task"
	said 'not moved into the workspace: theirs/new: Permission denied \(and 1 more\)' "which says so"
	is "$(find open theirs out -type f | sort | tr '\n' ' ')" "open/new out theirs/own " "nothing of it is there, what the mode allows is"
	as_other
	said '0 cached' "and nothing was saved"
	cd "$T" || exit 99
fi

# --- mounts ----------------------------------------------------------------------------------------

fresh
box 'mv ../ws ../ws2; cd ..; rmdir ws; "$PROBE" rename ws ws2; cat ws/src/s' 'read src'
like "$OUT" '^(EBUSY|EROFS)$' "the workspace itself cannot be renamed"
like "$OUT" '^s$' "nor removed"

# A namespace within has no more to see: what it could take away is locked. (Root has lost the right to map its own
# id and becomes somebody else for it.)
cat >"$T/as.py" <<'PY'
import os, sys
if not os.getuid():
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
os.execvp(sys.argv[1], sys.argv[1:])
PY
box "as='python3 $T/as.py'"'; $as unshare --user --map-root-user --mount sh -c "
	umount . ; umount -l $PWD; umount -R /; umount ~; umount /proc; mount -o remount,rw /; mount -o remount,bind,rw /usr
	mkdir -p /tmp/m; mount --bind $PWD /tmp/m; mount --bind / /tmp/m; cat /tmp/m$PWD/priv/key; cat priv/key
	cd /; cat $PWD/priv/key; touch /usr/vx-test-x && echo written; echo end" 2>/dev/null' 'read src' nested
prints end "a nested namespace uncovers nothing"

# A sandbox within one, where that is granted. Root has a /proc there of which parts are covered, and may not map
# ids: it is told so.
fresh
mkdir -p "$W/src/inner/src" "$W/src/inner/priv"
echo inner >"$W/src/inner/src/i"
echo k >"$W/src/inner/priv/key"
cp "$VX_SANDBOX" "$T/vx-sandbox"
spec 'cat src/i; cat priv/key ../../priv/key; echo w >src/w' 'read src'
sed -e "s|^workspace .*|workspace $W/src/inner|" -e 's|^scratch .*|scratch /tmp/s2|' "$T/spec" >"$T/inner"
box "mkdir /tmp/s2 && $T/vx-sandbox --spec $T/inner" 'read src' nested
if [ "$(id -u)" = 0 ]; then
	exits 125 "a sandbox within one, for root: is refused"
	like "$ERR" 'weakerWhenNested' "with the remedy"
else
	exits 0 "a sandbox within one: runs"
	prints inner "it sees what both grant"
	like "$ERR" '^vx-sandbox: file 0644 src/w$' "and its writes are told"
fi

# --- whiteouts by the ten thousand -------------------------------------------------------------------

# All of them are names of one inode; disk file systems end at 65,000.
fresh
cat >"$T/many.sh" <<'E2'
mount -t tmpfs -o mode=0755,nr_inodes=0 none "$1" && mkdir "$1/many" && cd "$1/many" &&
	seq 70000 | xargs touch granted && cd / && shift && exec "$@"
E2
for MODE in '' fuse-off; do
	spec 'ls many' 'read many/granted'
	with_mounts sh "$T/many.sh" "$W" timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null
	prints granted "${MODE:-FUSE}: 70,000 hidden names are not listed"
done
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# A workspace, or a home, that the kernel takes for no layer of an overlay: something is mounted in it, it is on overlays
# over overlays, or its files belong to others. The helper serves it then, and all that a sandbox promises holds.
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

# A tmpfs at W/src/m, with files in it; a bind of a file.
cat >"$T/mounted.sh" <<'SH'
top=$1
shift
mkdir -p "$top/src/m" && mount -t tmpfs none "$top/src/m" &&
	mkdir -p "$top/src/m/sub/deep" && echo in >"$top/src/m/in" && echo deep >"$top/src/m/sub/deep/f" &&
	echo key >"$top/src/m/key" && ln -s in "$top/src/m/link" && ln -s ../s "$top/src/m/out" &&
	echo one >"$top/src/m/sub/one" && echo two >"$top/src/m/sub/two" &&
	touch "$top/src/bound" && mount --bind "$top/src/s" "$top/src/bound" || exit 99
cd "$top" && [ -z "${SETUP:-}" ] || eval "$SETUP" || exit 99
"$@"
rc=$?
[ -z "${AFTER:-}" ] || (cd "$top" && eval "$AFTER")
exit $rc
SH
fresh() {
	chmod -R u+rwX "$W" "$HOMEDIR" 2>/dev/null
	rm -rf "$W" "${HOMEDIR:?}"
	mkdir -p "$W/src/sub" "$W/priv" "$HOMEDIR/.cache"
	echo s >"$W/src/s"
	echo k >"$W/priv/key"
}
# As box, in a namespace with the mounts.
mounted() {
	spec "$@"
	RC=0
	with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
}
export VX

# --- what it is, and that it is said -------------------------------------------------------------

for MODE in '' attached; do
	with=${MODE:-detached}
	fresh
	mounted 'cat src/s src/bound src/m/in src/m/link src/m/out src/m/sub/deep/f
		cat src/m/key priv/key; ls src/m; ls src/m/nosuch 2>/dev/null; find src | LC_ALL=C sort' \
		'read src' 'deny-read src/m/key'
	exits 0 "$with, a mount inside: runs"
	prints "s
s
in
in
s
deep
in
link
out
sub
src
src/bound
src/m
src/m/in
src/m/link
src/m/out
src/m/sub
src/m/sub/deep
src/m/sub/deep/f
src/m/sub/one
src/m/sub/two
src/s
src/sub" "$with, a mount inside: all that is granted is seen, and nothing else"
	is "$(grep -c 'is served by a mirror' "$ERR")" 1 "$with: it is said once"
	like "$ERR" "^vx-sandbox: note: the workspace $W is served by a mirror: $W/src/(m|bound) is mounted in it$" "$with: with the reason"
	like "$ERR" 'denied read src/m/key' "$with: what is denied in the mount is told"
	like "$ERR" 'denied read priv' "$with: and beside it"
done
MODE=

# --- content -------------------------------------------------------------------------------------

# Larger than what one request brings, with a hole, and a program; a thousand names in one listing.
fresh
seq 200000 >"$W/src/large"
truncate -s 3G "$W/src/sparse"
echo end >>"$W/src/sparse"
printf '#!/bin/sh\necho ran\n' >"$W/src/program"
chmod 755 "$W/src/program"
mkdir "$W/src/many"
(cd "$W/src/many" && seq -f 'a-rather-long-name-of-which-there-are-many-%05g' 3000 | xargs touch)
mounted 'cmp src/large src/copy; cksum <src/large; src/program; ls src/many | cksum; ls src/many | wc -l
	tail -c 4 src/sparse; echo more >>src/sparse; stat -c %s src/sparse; [ "$(stat -c %b src/sparse)" -lt 1000 ] && echo has a hole
	python3 -c "
import mmap, os
f = open(\"src/large\", \"rb\")
m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
print(m[-7:].decode().strip(), os.pread(f.fileno(), 6, 700000).decode().split()[0])
print(sorted((e.name, e.is_dir(), e.is_symlink()) for e in os.scandir(\"src/m\")))
"' 'write src'
(cd "$W/src" && cksum <large && echo ran && seq -f 'a-rather-long-name-of-which-there-are-many-%05g' 3000 | cksum && echo 3000 && echo end && echo $((3221225472 + 9)) && echo has a hole &&
	echo "200000 $(python3 -c 'import os; print(os.pread(os.open("large", 0), 6, 700000).decode().split()[0])')" &&
	echo "[('in', False, False), ('key', False, False), ('link', False, True), ('out', False, True), ('sub', True, False)]") >"$T/want"
is "$(cat "$OUT")" "$(cat "$T/want")" "content, holes, programs, mappings and listings are what they are outside"

# --- writing -------------------------------------------------------------------------------------

fresh
mounted 'echo more >>src/m/in && cat src/m/in && mv src/m/sub/one src/m/sub/uno && rm src/m/sub/two && ls src/m/sub
	rm -rf src/m/sub && mkdir src/m/sub && ls -A src/m/sub; echo n >src/m/new && ln src/m/new src/new && chmod 600 src/m/in
	ls -l src/m/in | cut -c1-10; "$PROBE" rename src/m src/m2; ls src' 'write src'
prints "in
more
deep
uno
-rw-------
EXDEV
bound
m
new
s
sub" "what is in the mount can be written, renamed and removed"
sed -n 's/^vx-sandbox: \(file\|dir\|link\|deleted\)/\1/p' "$ERR" | LC_ALL=C sort >"$T/told"
is "$(cat "$T/told")" "dir (merged) 0755 src
dir (merged) 1777 src/m
dir (replaces) 0755 src/m/sub
file 0600 src/m/in
file 0644 src/m/new
file 0644 src/new" "and it is told as ever"

# --- the core: judged, committed, saved -----------------------------------------------------------

fresh
put "$W/vx.config.json" <<'J'
{ "name": "w", "tasks": {
	"t": { "exec": { "command": "cat src/s priv/key; echo n >src/m/new; echo x >>src/m/in; rm -r src/m/sub; mkdir -p src/m/d/e; echo f >src/m/d/e/f; echo o >out",
		"sandbox": { "allow": { "read": ["src", "priv"], "write": ["src", "out"] } } } },
	"c": { "exec": { "command": "cat src/s && cat src/m/in && echo c >out",
		"sandbox": { "allow": { "read": ["src"], "write": ["out"] } } },
		"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["out"] } } },
	"d": { "exec": { "command": "cat priv/key; echo stray >src/m/stray; true",
		"sandbox": { "allow": { "read": ["src"] } } } } } }
J
vx_mounted() { # AFTER ARGS...
	AFTER=$1
	export AFTER
	shift
	RC=0
	with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX" "$@" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	unset AFTER
}
vx_mounted '(cd src/m && find . | sort && cat in new d/e/f) >../after; cat out >>../after' run t
exits 0 "vx runs a task in a workspace with mounts inside"
said 'served by a mirror: ' "says what it is served by"
is "$(cat "$T/after")" ".
./d
./d/e
./d/e/f
./in
./key
./link
./new
./out
in
x
n
f
o" "and commits into the mount"
vx_mounted '"$VX" run c >../again 2>&1; rm out; "$VX" run c >../restored 2>&1; cat out >>../restored; "$VX" last >../last 2>&1' run c
exits 0 "a result is saved"
like "$T/again" '1 cached|up to date' "and found again"
like "$T/restored" '^c$' "and restored"
vx_mounted 'ls src/m >../after' run d
exits 1 "what is not granted fails the task"
said 'priv/key' "a denied read is told"
said 'src/m/stray' "an undeclared write into the mount"
unlike "$T/after" stray "which is not committed"

# Many tasks: what is the same for all is said once.
fresh
put "$W/vx.workspace.json" <<'J'
{ "projects": ["p/*"] }
J
for p in a b c; do
	put "$W/p/$p/vx.config.json" <<J
{ "name": "$p", "tasks": { "t": { "exec": { "command": "cat ../../src/s", "sandbox": { "allow": { "read": ["../../src"] } } } } } }
J
done
vx_mounted true run t --all
exits 0 "several tasks over a mirror"
cat "$OUT" "$ERR" >"$T/both"
is "$(grep -c 'is served by a mirror' "$T/both")" 1 "it is said once for all of them"
is "$(grep -c 'src/bound is not shown' "$T/both")" 0 "and nothing of what is granted by both its paths"
SETUP='mount --bind priv src/sub'
export SETUP
vx_mounted true run t --all
unset SETUP
cat "$OUT" "$ERR" >"$T/both"
is "$(grep -c 'src/sub is not shown' "$T/both")" 1 "what is hidden for its second path, once, too"

# --- what the host does meanwhile ----------------------------------------------------------------

# Names and files that were looked up stay what they were, or are not there any more; never something else.
fresh
fifo to from
SETUP="seq 100000 >src/big"
export SETUP
spec "cat src/s; head -c 10 src/big >/dev/null; [ -f src/late ] && echo unread; echo told >$T/from; read -r _ <$T/to
	cat src/s; cat src/late || echo refused; cat src/other; tail -n 1 src/big" 'read src'
with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null &
BOX=$!
echo late >"$W/src/late"
await from >/dev/null
for f in s late; do
	echo replaced >"$W/src/new"
	mv "$W/src/new" "$W/src/$f"
done
echo other >"$W/src/other"
echo go | timeout 30 tee "$T/to" >/dev/null
wait "$BOX"
unset SETUP
prints "s
unread
s
refused
other
100000" "a file that was read stays, one that was replaced before is refused, a new one is seen"
like "$ERR" 'Stale file handle' "as what it is"

# An input that changes while it is read: the result is not what its key says.
fresh
put "$W/vx.config.json" <<J
{ "name": "w", "tasks": { "c": { "exec": { "command": "cat src/s >out; echo told >$T/from; read -r _ <$T/to; cat src/s >>out",
	"sandbox": { "allow": { "read": ["src"], "write": ["out"] } } },
	"cache": { "inputs": { "files": ["src/s"] }, "outputs": { "files": ["out"] } } } } }
J
(
	await from >/dev/null
	echo changed >"$W/src/s"
	echo go | timeout 30 tee "$T/to" >/dev/null
) &
with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX" run c >"$OUT" 2>&1 </dev/null
wait
like "$OUT" 'not saved' "where an input changes meanwhile, the result is not saved"

# --- its own scratch ------------------------------------------------------------------------------

# In a lower layer of the kernel's it would be ELOOP.
fresh
spec 'echo x >src/x; cat scratch/u/src/x; ls scratch; echo end' 'write .'
mkdir "$W/scratch"
sed "s|^scratch .*|scratch $W/scratch|" "$T/spec" >"$T/spec2"
RC=0
with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" </dev/null || RC=$?
prints end "the task's own scratch is not seen through the mirror"

# --- overlays over overlays ------------------------------------------------------------------------

fresh
mkdir -p "$T/m/u" "$T/m/w" "$T/m2/u" "$T/m2/w"
cat >"$T/deep.sh" <<'E2'
mount -t overlay -o "userxattr,lowerdir=$1,upperdir=$2/u,workdir=$2/w" none "$1" &&
	mount -t overlay -o "userxattr,lowerdir=$1,upperdir=$3/u,workdir=$3/w" none "$1" && shift 3 && exec "$@"
E2
spec 'cat src/s; echo w >>src/s; cat src/s; cat priv/key' 'read src' 'write src/s'
RC=0
unshare --user --map-root-user --mount sh "$T/deep.sh" "$W" "$T/m" "$T/m2" timeout 60 "$VX_SANDBOX" --spec "$T/spec" \
	>"$OUT" 2>"$ERR" </dev/null || RC=$?
prints "s
s
w" "a workspace on an overlay over another is served"
like "$ERR" 'mirror: it is on an overlay over others' "with the reason"

# --- the home ---------------------------------------------------------------------------------------

for MODE in '' attached; do
	fresh
	mkdir -p "$HOMEDIR/src" "$HOMEDIR/.ssh"
	echo s >"$HOMEDIR/src/s"
	echo id >"$HOMEDIR/.ssh/id"
	echo p >"$HOMEDIR/plain"
	set -- 'cat ~/plain ~/src/m/in; cat ~/.ssh/id; echo x >~/new && echo y >>~/src/m/in && cat ~/new ~/src/m/in; cat src/s' 'read .'
	spec "$@"
	RC=0
	with_mounts sh "$T/mounted.sh" "$HOMEDIR" timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	prints "p
in
x
in
y
s" "${MODE:-detached}: a home with a mount inside is read and written"
	like "$ERR" "note: the home directory $HOMEDIR is served by a mirror: $HOMEDIR/src/(m|bound) is mounted in it" "which is said"
	is "$(grep -c mirror "$ERR")" 1 "of it alone"
	like "$ERR" "denied read $HOMEDIR/.ssh" "its stores are hidden, and told"
	not_ok "nothing of it is written" test -e "$HOMEDIR/new"
	# Both at once.
	mkdir -p "$HOMEDIR/ws/src"
	echo w >"$HOMEDIR/ws/src/s"
	spec "$@"
	sed "s|^workspace .*|workspace $HOMEDIR/ws|" "$T/spec" >"$T/spec2"
	SETUP='mount -t tmpfs none ws/src && echo tmpfs >ws/src/s'
	export SETUP
	with_mounts sh "$T/mounted.sh" "$HOMEDIR" timeout 60 "$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" </dev/null
	unset SETUP
	prints "p
in
x
in
y
tmpfs" "${MODE:-detached}: and a workspace in it with one, too"
	is "$(grep -c 'is served by a mirror' "$ERR")" 2 "each is said"
done
MODE=

# --- files of other owners, and of other groups -------------------------------------------------------

# Only root can make them. An ordinary user in a further group of his meets them.
if [ "$(id -u)" = 0 ]; then
	BOX=$T/vx-sandbox
	cp "$VX_SANDBOX" "$BOX"
	shared() {
		fresh
		mkdir -p "$W/state/d"
		echo f >"$W/state/f"
		echo g >"$W/state/d/g"
		echo t >"$W/state/theirs"
		chown -R 54321:54321 "$W" "$HOMEDIR"
		chgrp 1005 "$W/state/f" "$W/state/d" "$W/state/d/g"
		chmod 2775 "$W/state/d"
		chown 1005:1005 "$W/state/theirs"
		chmod 666 "$W/state/theirs"
	}
	# In the workspace, as such a user.
	member() {
		(cd "$W" && exec setpriv --reuid 54321 --regid 54321 --groups 1005 env HOME="$HOMEDIR" timeout 60 "$@") \
			>"$OUT" 2>"$ERR" </dev/null
	}
	member_box() {
		spec "$@"
		chown 54321:54321 "$S"
		RC=0
		member "$BOX" --spec "$T/spec" || RC=$?
	}
	ops='echo x >>state/f && cat state/f && chmod 600 state/f && touch state/d/g && mv state/d/g state/d/h && echo n >state/d/new &&
		ls state/d && echo x >>state/theirs && touch -d 2001-01-01 state/theirs && mv state/theirs state/ours && cat state/ours'
	want='f
x
h
new
t
x'
	for MODE in '' fuse-off; do
		shared
		member_box "$ops" 'write state'
		exits 0 "${MODE:-FUSE}, a small granted tree with files of another group and owner: all can be changed"
		prints "$want" "${MODE:-FUSE}: as outside"
		unlike "$ERR" mirror "${MODE:-FUSE}: it is copied, and needs no mirror"
	done
	MODE=
	shared
	seq -f "$W/state/d/n%g" 1100 | xargs touch
	member_box "$ops" 'write state'
	exits 0 "one that is too large for that"
	like "$ERR" "served by a mirror: state/(f|theirs) belongs to another user or group" "has the mirror, and the reason"
	for MODE in '' attached; do
		shared
		member_box "$ops" 'write-glob state/**'
		prints "$want" "${MODE:-detached}: and one that a pattern grants"
		sed '/^home /d' "$T/spec" >"$T/spec2"
		shared
		rm -rf "$S"
		mkdir "$S"
		chown 54321:54321 "$S"
		member "$BOX" --spec "$T/spec2"
		prints "$want" "${MODE:-detached}: also without a home"
	done
	MODE=
	like "$ERR" "served by a mirror: state/(f|theirs) belongs to another user or group" "is served, too"
	shared
	member_box 'cat state/f; echo x >src/x' 'read state' 'write src'
	prints f "what is only read"
	unlike "$ERR" mirror "needs none"
	shared
	member_box 'cat state/f; mkdir state; echo n >state/f; cat state/f' 'write-glob state/**' 'output-glob state/**'
	prints n "outputs, which are hidden"
	unlike "$ERR" mirror "need none"

	# What cannot be read outside cannot be inside, where the owner is shown to be the caller.
	shared
	mkdir "$W/state/closed" "$W/state/unlisted"
	echo in >"$W/state/closed/in"
	echo in >"$W/state/unlisted/in"
	echo k >"$W/state/secret"
	echo m >"$W/state/members"
	mkfifo "$W/state/fifo" # keeps it from being copied
	chown -R 1005:1005 "$W/state/closed" "$W/state/unlisted" "$W/state/secret" "$W/state/members" "$W/state/fifo"
	chmod 600 "$W/state/secret"
	chmod 040 "$W/state/members"
	chmod 700 "$W/state/closed"
	chmod 711 "$W/state/unlisted"
	ops='cat state/secret; test -r state/secret || echo closed; cat state/members; cat state/closed/in; ls state/closed; ls state/unlisted; cat state/unlisted/in'
	member sh -c "$ops"
	cp "$OUT" "$T/want"
	grep -o '^[a-z]*: .*' "$ERR" >"$T/wanterr"
	member_box "$ops" 'write state'
	like "$ERR" mirror "among files that the caller cannot read"
	is "$(cat "$OUT")" "$(cat "$T/want")" "what can be read is what can be read outside"
	is "$(grep -v '^vx-sandbox' "$ERR")" "$(cat "$T/wanterr")" "and the errors are the same"

	# Moved into the workspace; a copy keeps the group.
	shared
	put "$W/vx.config.json" <<'J'
{ "name": "w", "tasks": { "t": { "exec": { "command": "echo x >>state/f; chmod 600 state/d/g; echo n >state/d/new",
	"sandbox": { "allow": { "write": ["state"] } } } } } }
J
	chown 54321:54321 "$W/vx.config.json"
	RC=0
	member "$VX" run t || RC=$?
	exits 0 "vx runs a task on such files"
	is "$(cd "$W/state" && stat -c '%n %u:%g %a' f d d/g d/new theirs)" "f 54321:1005 644
d 54321:1005 2775
d/g 54321:1005 600
d/new 54321:1005 644
theirs 1005:1005 666" "what it changed keeps its group, the rest stays"
fi
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# The cache on a file system that can clone (an XFS in a loop file): what goes into the store and comes out of it shares
# its blocks with the workspace, and still nobody writes into anybody else's content; and between such a file system
# and another, where it is copied and packed.
outer=${VX_CLONES_OUTER:-}
if [ -z "$outer" ]; then
	skip() { printf '1..0 # SKIP %s\n' "$1" && exit 0; }
	[ "$(id -u)" = 0 ] || skip "only root can mount a file system"
	command -v mkfs.xfs >/dev/null || skip "mkfs.xfs is not installed"
	outer=$(mktemp -d "${VX_TEST_DIR:-/var/tmp}/vx-clones.XXXXXX") || exit 99
	trap 'rm -rf "$outer"' EXIT
	chmod 755 "$outer"
	mkdir "$outer/disk"
	truncate -s 512M "$outer/image"
	mkfs.xfs -q -m reflink=1 "$outer/image" || skip "mkfs.xfs does not make one"
	# In a mount namespace of its own: with its last process the mount is gone, and with that the loop device.
	# shellcheck disable=SC2016 # for that shell
	unshare --mount sh -c 'mount -o loop "$1/image" "$1/disk" || exit 77
		chmod 755 "$1/disk" && VX_CLONES_OUTER=$1 VX_TEST_DIR=$1/disk exec sh "$2"' - "$outer" "$0"
	rc=$?
	[ "$rc" != 77 ] || skip "a loop file cannot be mounted here"
	exit "$rc"
fi
. "${VX_SRCDIR:?}/tests/lib.sh"
require_sandbox
require_program python3
cd "$W" || exit 99

# 2 MiB that shrink, 1 MiB that do not, and 64 MiB of a hole: all of them over 64 KiB, and none in both tasks.
cat >make.sh <<'S'
mkdir -p "$1"
{ echo "$1" && seq -s '                ' 1 100000; } | head -c 2097152 >"$1/words"
{ echo "$1" && cat ../noise; } >"$1/noise"
printf '%s' "$1" >"$1/sparse" && truncate -s 64M "$1/sparse"
echo small >"$1/small"
S
head -c 1048576 /dev/urandom >noise
put p/vx.config.json <<'E2'
{ "name": "p", "tasks": {
	"free": {
		"exec": { "command": "sh ../make.sh free" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["free/**"] } }
	},
	"boxed": {
		"exec": { "command": "sh ../make.sh boxed", "sandbox": { "allow": {
			"read": ["../make.sh", "../noise"], "write": ["boxed/**"] } } },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["boxed/**"] } }
	}
} }
E2
echo 1 >p/in
echo '{ "projects": ["p"] }' >vx.workspace.json

# FILE: whether all its blocks are those of another file, too. FS_IOC_FIEMAP, with the file synced before.
shared() {
	python3 - "$1" <<'P'
import fcntl, struct, sys

room = bytearray(struct.pack("=QQIIII", 0, 1 << 62, 1, 0, 500, 0) + bytes(56 * 500))
with open(sys.argv[1], "rb") as f:
    fcntl.ioctl(f, 0xC020660B, room)
n = struct.unpack_from("=I", room, 20)[0]
flags = [struct.unpack_from("=I", room, 32 + 56 * i + 40)[0] for i in range(n)]
sys.exit(not (flags and all(flag & 0x2000 for flag in flags)))
P
}
digest() { sha256sum <"$1" | cut -c1-64; }
# CACHE FILE: where its blob is, in its plain form.
blob() {
	d=$(digest "$2")
	printf '%s/blobs/%.2s/%s' "$1" "$d" "${d#??}"
}
packed() { find "$1/blobs" -name '*.zst' | wc -l; }

tasks="free boxed"
# Where the workspace is somebody else's, the scratch of a sandboxed task is not in it, but on another disk.
if [ -n "${VX_TEST_OWNER:-}" ]; then
	tasks=free
	run run p#boxed
	exits 0 "boxed: not cloned"
	cp -R p/boxed "$T/boxed"
	rm -rf .vx
fi
for t in $tasks; do
	run run "p#$t"
	exits 0 "$t: a result is saved"
	cp -R "p/$t" "$T/$t"
	for f in words noise sparse; do
		ok "$t/$f is cloned into the store" shared "$(blob .vx/cache "p/$t/$f")"
		ok "$t/$f: its blob has its content" cmp "$(blob .vx/cache "p/$t/$f")" "p/$t/$f"
	done
	is "$(packed .vx/cache)" 0 "$t: what is cloned is not packed"
	ok "$t: the hole is one in the store" test "$(stat -c %b "$(blob .vx/cache "p/$t/sparse")")" -lt 4096

	rm -rf "p/$t"
	run run "p#$t"
	said 'restored' "$t: restored"
	ok "$t: byte for byte" diff -r "p/$t" "$T/$t"
	for f in words noise sparse; do
		ok "$t/$f is cloned out of the store" shared "p/$t/$f"
	done

	# In place, so that the blocks that are shared are written.
	printf evil | dd of="p/$t/words" conv=notrunc status=none
	is "$(digest "$(blob .vx/cache "$T/$t/words")")" "$(digest "$T/$t/words")" "$t: writing to an output does not reach its blob"
	run run "p#$t"
	said 'restored' "$t: the changed output is restored"
	ok "$t: byte for byte again" diff -r "p/$t" "$T/$t"

	b=$(blob .vx/cache "p/$t/words")
	chmod 644 "$b"
	printf evil | dd of="$b" conv=notrunc status=none
	ok "$t: damage of a blob does not reach the output" diff -r "p/$t" "$T/$t"
	rm -rf "p/$t"
	run run "p#$t"
	exits 0 "$t: a damaged blob"
	said 'the stored result is gone or damaged; running the task' "$t: is a miss"
	ok "$t: never wrong bytes" diff -r "p/$t" "$T/$t"
	is "$(digest "$b")" "$(digest "p/$t/words")" "$t: it is stored again"
done

# --- between two file systems ------------------------------------------------------------------

far=$outer/far
run run p#free p#boxed --cache-dir "$far/cache"
exits 0 "a cache on another file system"
is "$(packed "$far/cache")" 4 "is packed: the words and the holes"
ok "what does not shrink is a copy" cmp "$(blob "$far/cache" p/free/noise)" p/free/noise
rm -rf p/free p/boxed
run run p#free p#boxed --cache-dir "$far/cache"
said 'all cached' "restored from there"
ok "byte for byte" diff -r p/free "$T/free"
ok "as is the other" diff -r p/boxed "$T/boxed"
ok "with its hole" test "$(stat -c %b p/free/sparse)" -lt 4096

# And the other way: plain blobs, which were cloned, into a workspace that cannot share their blocks.
mkdir "$far/ws"
cp -R p/in p/vx.config.json make.sh noise vx.workspace.json "$far/ws/"
mkdir "$far/ws/p"
mv "$far/ws/in" "$far/ws/vx.config.json" "$far/ws/p/"
near=$PWD/.vx/cache
run run p#free p#boxed
cd "$far/ws" || exit 99
[ -z "${VX_TEST_OWNER:-}" ] || chown -R "$VX_TEST_OWNER:$VX_TEST_OWNER" .
run run p#free p#boxed --cache-dir "$near"
said 'all cached' "a cache of clones serves a workspace elsewhere"
ok "byte for byte" diff -r p/free "$T/free"
ok "and the hole stays one" test "$(stat -c %b p/free/sparse)" -lt 4096
cd "$W" || exit 99
done_testing

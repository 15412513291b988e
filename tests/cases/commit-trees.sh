#!/bin/sh
# SPDX-License-Identifier: MIT
# The commit of trees that are made to break who walks them, and what stays in its place while it is done.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

names() { (cd "${1:-$W}" && python3 -c '
import hashlib, os
digest, n = hashlib.sha256(), 0
stack = [(os.open(".", os.O_RDONLY), b"", sorted(os.listdir(b"."), reverse=True))]
while stack:
    fd, path, left = stack[-1]
    if not left:
        os.close(fd)
        stack.pop()
        continue
    name = left.pop()
    st = os.stat(name, dir_fd=fd, follow_symlinks=False)
    n += 1
    what = os.readlink(name, dir_fd=fd) if os.path.stat.S_ISLNK(st.st_mode) else b""
    digest.update(b"%s/%s\0%o %d %s\0" % (path, name, st.st_mode, 0 if what or os.path.stat.S_ISDIR(st.st_mode) else st.st_size, what))
    if os.path.stat.S_ISDIR(st.st_mode):
        sub = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
        stack.append((sub, path + b"/" + name, sorted((os.fsencode(x) for x in os.listdir(sub)), reverse=True)))
print(n, digest.hexdigest())'); }
# COMMAND NAME: makes the same tree in the directory out, inside and outside.
same() {
	rm -rf out "$T/like"
	mkdir "$T/like"
	printf '%s\n' "$1" >"$T/make.py"
	box '{ "allow": { "write": ["out"] } }' <<-E
		mkdir out && cd out && exec python3 $T/make.py
	E
	findings 0 "$2"
	(cd "$T/like" && umask 022 && python3 "$T/make.py")
	is "$(names out)" "$(names "$T/like")" "$2: all of it is committed, and nothing else"
	# Over what is there, and away again.
	box '{ "allow": { "write": ["out"] } }' <<-E
		find out -mindepth 1 -delete; cd out && exec python3 $T/make.py
	E
	findings 0 "$2: over itself"
	is "$(names out)" "$(names "$T/like")" "$2: over itself: the same"
	box '{ "allow": { "write": ["out"] } }' <<-E
		rm -rf out
	E
	findings 0 "$2: removed"
	not_ok "$2: removed: nothing is left" test -e out
}
umask 022
before out

same '
import os
for name in [b"a\nb", b"\n", b" ", b"-rf", b"\\n", b"\x01\x1b[31m", b"\xff\xfe", "é".encode(), "e\u0301".encode(), b"*", b"?[a]", b"{a,b}", b"!", b"#", b"$HOME",
             b"x" * 255, b"\xfe" * 255, b"end", b"a;b", b".git ", b".gitx", b"git"]:
    os.makedirs(b"d/" + name)
    open(b"d/" + name + b"/" + name, "wb").write(name)
    os.symlink(name, b"d/" + name + b"/l")
os.symlink(b"../../../../../etc/passwd", b"climbs")
os.symlink(b"x" * 4000, b"long")
os.symlink(b".", b"self")' "odd names"

same '
import os
for _ in range(1000):
    os.mkdir("d")
    open("f", "w").close()
    os.chdir("d")' "a deep tree"

same '
import os
for i in range(50):
    os.mkdir("%d" % i)
    for k in range(100):
        open("%d/%d" % (i, k), "w").write("x")' "many names"

# Deeper than a path can name: refused as a whole, with one line.
box '{ "allow": { "write": ["out", "fine"] } }' <<'E'
echo 1 >fine; mkdir out && cd out && python3 -c '
import os
for _ in range(4000):
    os.mkdir("d")
    os.chdir("d")'
E
exits 1 "deeper than a path can be"
said 'too long to be named' "says so"
not_ok "nothing of it is there" test -e out/d
not_ok "nor anything else" test -e fine

# What an existing directory is to others stays: who watches it, is in it, or has a file of it open.
rm -rf out
mkdir -p out/sub out/gone
echo old >out/sub/f
own
cat >"$T/watch.py" <<'E'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
if libc.inotify_add_watch(fd, b"out/sub", 0x3c0) < 0:  # CREATE, MOVED, DELETE
    sys.exit("inotify")
inside = os.open("out/sub", os.O_RDONLY)
opened = open("out/sub/f")
with open(sys.argv[1] + "/up", "w") as f:
    f.write("up\n")
open(sys.argv[1] + "/go").read()
seen, data, at = set(), os.read(fd, 1 << 16), 0
while at < len(data):
    length = struct.unpack_from("iIII", data, at)[3]
    seen.add(data[at + 16:at + 16 + length].rstrip(b"\0").decode())
    at += 16 + length
print("f" in seen, "new" in seen, sorted(os.listdir(inside)), opened.read().strip())
E
fifo up go
python3 "$T/watch.py" "$T" >"$T/watched" 2>&1 &
watcher=$!
is "$(await up)" up "somebody watches"
inode=$(stat -c %i out/sub)
box '{ "allow": { "write": ["out"] } }' <<'E'
mkdir new && cp -r out/sub new/ 2>/dev/null
rm -rf out/sub out/gone && mkdir out/sub && echo new >out/sub/f && echo new >out/sub/new
E
echo go >"$T/go"
wait "$watcher"
is "$(stat -c %i out/sub)" "$inode" "a directory that the task made anew is the one that it was"
is "$(cat "$T/watched")" "True True ['f', 'new'] old" "who watched it, was in it or read in it goes on"
not_ok "what the task removed is gone" test -e out/gone

# ACLs and attributes stay behind.
rm -rf out
cat >"$T/attributes.py" <<'E'
import errno, os, struct, sys
acl = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, 6, who) for tag, who in [(1, -1 & 0xffffffff), (2, os.getuid()), (4, 0xffffffff), (16, 0xffffffff), (32, 0xffffffff)])
os.makedirs("out/d")
open("out/f", "w").close()
for name, value, paths in [("user.mine", b"x", ["out/f", "out/d"]), ("system.posix_acl_access", acl, ["out/f", "out/d"]),
                           ("system.posix_acl_default", acl, ["out/d"])]:
    for path in paths:
        try:
            os.setxattr(path, name, value)
        except OSError as e:
            if e.errno != errno.EOPNOTSUPP:
                raise
            print("none of", name)
E
box '{ "allow": { "write": ["out"] } }' <<E
python3 $T/attributes.py && exec python3 -c 'import os; print("set", len(os.listxattr("out/d")))'
E
findings 0 "a task that sets attributes and ACLs"
said '^(set [123]|none of .*)$' "they are there for it"
is "$(python3 -c 'import os; print(*(n for p in ["out", "out/f", "out/d"] for n in os.listxattr(p)))')" "" "none of them is committed"
clean "commit of trees"
done_testing

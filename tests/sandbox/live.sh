#!/bin/sh
# SPDX-License-Identifier: MIT
# The live view: what the command sees of a workspace that goes on changing, what it may write there, and
# what becomes of what it must not leave.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program python3 git flock

fresh() {
	chmod -R u+rwX "$W" 2>/dev/null
	rm -rf "$W" "$HOMEDIR"
	mkdir -p "$W/src/sub" "$W/priv" "$W/out" "$W/conf" "$HOMEDIR/.ssh"
	echo s >"$W/src/s"
	echo sub >"$W/src/sub/f"
	echo k >"$W/priv/key"
	echo one >"$W/conf/one.json"
	echo two >"$W/conf/two.txt"
	echo r >"$W/README"
	echo secret >"$HOMEDIR/.ssh/id"
	own
}
live() { # SHELL-TEXT SPEC-LINE...
	live_text=$1
	shift
	box "$live_text" live "$@"
}
# The command and this test in turns: inside `told` waits for a line of ours, `tell` sends one.
fifo to from
turns='told() { read -r line <"'$T'/to"; }; tell() { echo "$*" >"'$T'/from"; }
until_() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 200000 ] || exit 9; done; }
'
start() { # SHELL-TEXT SPEC-LINE...
	start_text=$1
	shift
	spec "$turns$start_text" live "$@"
	timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null &
	BOX=$!
}
say() { echo "$*" | timeout 30 tee "$T/to" >/dev/null; }
end() {
	RC=0
	wait "$BOX" || RC=$?
}

# --- what is seen --------------------------------------------------------------------------------

fresh
live 'ls; cat src/s src/sub/f README; cat priv/key; cat priv/key; cat none; ls -a priv; ls conf' 'read src' 'read README' \
	'read-glob conf/*.json'
prints "README
conf
src
s
sub
r
one.json" "granted is seen, the rest is not there"
like "$ERR" '^vx-sandbox: denied read priv by cat' "a denied read is reported, with the program"
is "$(grep -c 'denied read' "$ERR")" 1 "once"
unlike "$ERR" 'denied read none' "what the host lacks is no denied read"
live 'cat conf/two.txt; cat conf/*' 'read-glob conf/*.json'
prints one "a glob is exact"
like "$ERR" 'denied read conf/two.txt' "and what it does not match is denied by its own name"
live 'cat ~/.ssh/id; ls -A ~; echo x >~/f && cat ~/f'
prints x "credential stores of the home are hidden as ever, and it may be written"
like "$ERR" "denied read $HOMEDIR/.ssh by cat" "and told"
not_ok "nothing of it reaches the host's home" test -e "$HOMEDIR/f"

ln -s ../priv/key "$W/src/l"
ln -s "$W/priv/key" "$W/conf/l.json"
ln -s one.json "$W/conf/i.json"
live 'cat src/l conf/l.json; cat conf/i.json; readlink src/l' 'read src' 'read-glob conf/*.json'
prints "one
../priv/key" "a link is granted, what it leads to is not"

live 'ls; exit 3' 'quiet src' 'read src'
exits 3 "the command's code"
prints "" "quiet names are not there"
unlike "$ERR" denied "without a word"
live 'pwd; ls -A'
prints "$W" "without any grant the workspace is empty"

fresh
live 'cat src/s; cat src/sub/f; ls src' 'read src' 'deny-read src/sub'
prints "s
s" "a denied directory in a granted one"
like "$ERR" 'denied read src/sub by cat' "is told"

# --- what is written -----------------------------------------------------------------------------

fresh
start 'echo 1 >out/n; mkdir -p new/d; echo 2 >new/d/f; tell written; told; cat out/host new/host; rm out/n new/d/f' \
	'write out' 'write new'
is "$(await from)" written "writes are granted, also of a tree that is not there yet"
is "$(cat "$W/out/n" "$W/new/d/f")" "1
2" "and stand in the workspace at once"
echo h1 >"$W/out/host"
echo h2 >"$W/new/host"
not_ok "the helper itself keeps others off its scratch" flock --exclusive --nonblock "$S" true
say go
end
ok "until it ends" flock --exclusive --nonblock "$S" true
exits 0 "and what the host adds is seen"
prints "h1
h2" "at once"
not_ok "what is removed is removed" test -e "$W/out/n" -o -e "$W/new/d/f"
unlike "$ERR" 'denied|planted' "nothing is told of that"

fresh
mkdir "$W/w"
live 'for c in "echo x >src/s" "echo x >src/new" "mkdir src/d" "rm src/s" "mv src/s w/s" "ln src/s w/l" "chmod 700 src/s" \
	"touch src/s" "ln -s x src/l" "echo x >README" "echo x >new" "mkdir d" "rm README" "mv README w/r" "mv w/f README" \
	"ln README w/l" "chmod 700 README" "truncate -s 0 README" "ln -s x l" "touch README" "mkdir priv" "echo x >priv/n" \
	"mv -T w/f priv" "rmdir src" "mv src w/src" "mkfifo w/p"; do
	echo f >w/f
	sh -c "$c" 2>/dev/null && echo "did $c"
	rm -f w/s w/r
	done; ls w' 'read src' 'read README' 'write w' 'deny-write w/none'
prints f "nothing is written outside the write grants, by no call"
is "$(cat "$W/src/s" "$W/README" "$W/priv/key"; ls "$W" "$W/src" "$W/priv")" "$(printf 's\nr\nk\n%s:\nREADME\nconf\nout\npriv\nsrc\nw\n\n%s:\nkey\n\n%s:\ns\nsub' "$W" "$W/priv" "$W/src")" \
	"and the host is as before"
for p in new d README l priv; do
	like "$ERR" "denied write $p " "the refusal is told: $p"
done
like "$ERR" 'denied delete README by rm' "of a removal as well"

# a second name, or another one, changes what a rule says of it
fresh
mkdir -p "$W/a/dir" "$W/a/deny" "$W/a/.cargo" "$W/b"
echo c >"$W/a/.cargo/config.toml"
echo hidden >"$W/a/deny/key"
echo ro >"$W/a/ro"
cat >"$T/moves.py" <<'PY'
import os
os.mkdir("a/new")
for f, a, b in [(os.rename, "a/deny", "b/x"), (os.rename, "a", "b/y"), (os.rename, "b", "a"), (os.link, "a/ro", "b/ro"),
        (os.rename, "a/ro", "b/ro"), (os.rename, "a", "c"), (os.rename, "a/dir", "b/dir"), (os.rename, "a/new", "b/new"),
        (os.rename, "b/new", "a/deny"), (os.rename, "a/.cargo", "a/x")]:
    try:
        f(a, b)
        print("did", a, b)
    except OSError as e:
        print(e.strerror)
PY
live "python3 $T/moves.py; cat b/ro b/*/deny/key" \
	'write a' 'write b' 'deny-read a/deny' 'deny-write a/ro' 'deny-write b/none'
prints "No such file or directory
Invalid cross-device link
Invalid cross-device link
Read-only file system
Read-only file system
Read-only file system
Device or resource busy
did a/new b/new
Read-only file system
Invalid cross-device link" "a directory with a wall in it is not renamed, nor one with a name that is never committed, a read-only file neither linked nor renamed"
is "$(cat "$W/a/deny/key" "$W/a/ro")" "hidden
ro" "the host has them where they were"

# --- a workspace that changes --------------------------------------------------------------------

fresh
start 'cat README conf/one.json src/s; tell a; told; cat README conf/one.json conf/new.json src/s src/n; cat conf/new.txt priv/key; tell b; told
	until_ "[ \"\$(cat src/s 2>/dev/null)\" = again ]"; cat src/s; ls src; cat conf/one.json' \
	'read README' 'read-glob conf/*.json' 'read src'
await from >/dev/null
for f in README conf/one.json src/s; do
	echo "saved $f" >"$W/$f.tmp"
	mv "$W/$f.tmp" "$W/$f"
done
for f in conf/new.json conf/new.txt src/n; do echo "new $f" >"$W/$f"; done
say go
is "$(await from)" b "files are replaced and made"
rm -rf "$W/src" "$W/conf"
mkdir "$W/src" "$W/conf"
echo again >"$W/src/s"
echo again >"$W/conf/one.json"
say go
end
exits 0 "directories are removed and made again"
prints "r
one
s
saved README
saved conf/one.json
new conf/new.json
saved src/s
new src/n
again
s
again" "all of that is seen, and no more"

# What hides must go on hiding when the host replaces it.
fresh
echo .env >"$W/src/.env"
start 'cat src/.env; ls -A src; tell a; told; cat src/.env src/sub/f; ls -A src src/sub' 'read src' 'deny-read src/.env' \
	'deny-read src/sub/f'
await from >/dev/null
echo saved >"$W/src/.env.tmp"
mv "$W/src/.env.tmp" "$W/src/.env"
rm -r "$W/src/sub"
mkdir "$W/src/sub"
echo more >"$W/src/sub/f"
rm "$W/src/s"
say go
end
prints "s
sub
src:
sub

src/sub:" "a wall stands when the host saves over what is behind it, or removes its directory"

# A link that the host, or another task, puts where a file was.
fresh
start 'cat README; tell a; told; cat README; echo x >out.log; echo x >out/f' 'read README' 'write out.log' 'write out' 'deny-write out/none'
await from >/dev/null
ln -sf priv/key "$W/README"
ln -s priv/key "$W/out.log"
rm -rf "$W/out"
ln -s priv "$W/out"
say go
end
prints r "a link in a file's place leads to what the rules say of its end"
is "$(cat "$W/priv/key"; ls "$W/priv")" "k
key" "and is not written through"

fresh
start 'exec 8<README 9>>out/log; rm out/log; tell a; told; cat <&8; echo late >&9; [ -e out/log ]' 'read README' 'write out' \
	'deny-write out/none'
await from >/dev/null
echo saved >"$W/README.tmp"
mv "$W/README.tmp" "$W/README"
say go
end
prints r "an open file is the one that was opened"
exits 1 "also when it has lost its name"

# Watchers are told of what the host does in a directory that is bound.
fresh
cat >"$T/watch.py" <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if libc.inotify_add_watch(fd, b"src", 0x80 | 0x8) < 0:  # MOVED_TO, CLOSE_WRITE
    sys.exit("inotify")
with open(sys.argv[1], "w") as f:
    f.write("ready\n")
data = os.read(fd, 4096)
print(data[16:].rstrip(b"\0").decode())
PY
start "python3 $T/watch.py $T/from" 'read src'
await from >/dev/null
echo x >"$W/src/edited"
end
prints edited "a watcher in a granted directory is told what the host does"

# --- names that are never committed --------------------------------------------------------------

fresh
git_ init -q "$W/app"
mkdir -p "$W/app/lib" "$W/app/.cargo"
echo '{}' >"$W/app/vx.config.json"
own
live 'cd app
	echo x >.git/hooks/pre-commit; echo x >.git/hooks/post-commit; echo x >.git/config; echo x >.git/commondir; mv .git/hooks h; mv .git g
	mv .git/config c; rm .git/config; rm -r .git/hooks; ln .git/config c; chmod 777 .git/config
	mkdir .husky .vscode; echo x >.envrc; echo x >.npmrc; echo x >.ENVRC; echo x >vx.config.json; echo x >vx.config.ts; echo x >.cargo/config.toml
	echo x >f; mv f .envrc; ln f .envrc; ln -s f .envrc; ln -s lib .claude; mkdir -p d/.husky; mkdir e; echo x >e/.envrc; mv e .husky; git init -q e
	mkdir r; mkdir r/objects r/refs; echo x >r/HEAD
	echo x >.git/description; ls -A; ls -A e r; cat .git/description' 'write app'
prints ".cargo
.git
d
e
f
lib
r
vx.config.json
e:

r:
objects
refs
x" "where names are served those never committed are refused, whichever way they come, existing or not"
is "$(cat "$W/app/vx.config.json")" '{}' "and those that exist are as before"
not_ok "no hook was made" test -e "$W/app/.git/hooks/pre-commit" -o -e "$W/app/.git/hooks/post-commit" -o -e "$W/app/.git/commondir"
for p in app/.git/hooks/post-commit app/.git/commondir app/.husky app/.envrc app/.ENVRC app/vx.config.ts app/.cargo/config.toml \
	app/.claude app/d/.husky app/e/.envrc app/e/.git app/r/HEAD; do
	like "$ERR" "denied write $(echo "$p" | sed 's/\./\\./g') " "told: $p"
done
unlike "$ERR" planted "there is nothing to move out"
live 'cd app; echo mine >.envrc; mkdir .husky; echo y >.husky/pre-commit; echo t >vx.config.ts; cat .envrc .husky/pre-commit' \
	'write app' 'write app/.envrc' 'write app/.husky'
prints "mine
y" "those that a rule names may be written"
like "$ERR" 'denied write app/vx.config.ts' "others not"

fresh
mkdir -p "$W/out/deep/er" "$W/out/.keep"
own
live 'cd out
	git init -q deep/rep; echo x >deep/rep/.git/hooks/pre-commit
	git init -q --bare bare
	mkdir .husky; echo x >.husky/pre-commit; echo x >deep/er/.EnvRc; ln -s x .claude
	mkdir -p closed/.vscode; echo x >closed/.vscode/tasks.json; chmod 0 closed
	echo "{}" >package.json; mkdir -p node_modules/p; echo "{}" >node_modules/p/package.json
	echo x >suid; chmod 4755 suid; echo x >fine; echo x >.npmrc; echo y >.keep/y' 'write out' 'write out/.npmrc'
for p in out/deep/rep/.git out/bare/HEAD out/.husky out/deep/er/.EnvRc out/.claude out/closed/.vscode; do
	like "$ERR" "planted $p, now at $S/out/[0-9]+-$(basename "$p")\$" "found at the end and moved out: $p"
	not_ok "it is not in the workspace: $p" test -e "$W/$p" -o -L "$W/$p"
done
like "$ERR" 'planted out/package.json, which stands' "a package.json is told, to be looked into"
is "$(grep -c planted "$ERR")" 7 "no more than that"
is "$(cat "$W/out/fine" "$W/out/.keep/y" "$W/out/.npmrc" "$W/out/node_modules/p/package.json")" "x
y
x
{}" "all else stands, also what a rule names"
is "$(cat "$S"/out/*-.husky/pre-commit)" x "what was moved out is whole"
is "$(stat -c %a "$W/out/suid")" 755 "a set-id bit is taken away"
like "$ERR" 'note: 1 file lost the set-user-ID' "and that is said"
# A package.json that is a link, and those that a rename has brought out of node_modules, unchanged.
fresh
mkdir -p "$W/out/node_modules/p/deep" "$W/out/old"
for d in node_modules/p node_modules/p/deep old; do echo '{"workspaces":["*"]}' >"$W/out/$d/package.json"; done
own
live 'cd out; echo "{}" >x.json; ln -s x.json package.json; mkfifo fifo; mkdir f; mv fifo f/package.json
	mv node_modules/p p; echo x >old/file' 'write out'
is "$(sed -n 's/.*planted \(.*\), which stands/\1/p' "$ERR" | sort | tr '\n' ' ')" \
	"out/f/package.json out/p/deep/package.json out/p/package.json out/package.json " \
	"links, fifos and moved ones are told, what stood there is not"
if [ "$(id -u)" = 0 ]; then
	mkdir "$T/other"
	if ! mount -t tmpfs other "$T/other" 2>/dev/null; then
		skip "with the scratch elsewhere" "no tmpfs can be mounted"
	elif ! python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.x", b"")' "$T/other" 2>/dev/null; then
		skip "with the scratch elsewhere" "a tmpfs has no attributes before Linux 6.6"
		umount "$T/other"
	else
		fresh
		spec 'mkdir out/.husky; echo x >out/.husky/h' live 'write out'
		mkdir "$T/other/s"
		sed "s|^scratch .*|scratch $T/other/s|" "$T/spec" >"$T/spec2"
		"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" </dev/null
		like "$ERR" "planted out/.husky, now at $W/out/vx-moved-out\\.[0-9]+\\.0\$" "with the scratch elsewhere it gets another name"
		is "$(ls -A "$W/out")" "$(cd "$W/out" && echo vx-moved-out.*)" "and nothing else is there"
		umount "$T/other"
	fi
fi

# What the command could write in is looked through, wherever the host has put it; what that put in its place is not.
fresh
start 'cd out; tell a; told; mkdir .husky; echo x >.husky/h' 'write out'
await from >/dev/null
mv "$W/out" "$W/old"
mkdir "$W/out"
echo mine >"$W/out/.envrc"
own
say go
end
like "$ERR" 'planted out/.husky, now' "a directory that the host has moved"
is "$(ls -A "$W/old")" "" "is looked through where it is"
is "$(cat "$W/out/.envrc")" mine "what is in its place is the host's"

# However it ends: killed by the core's word, or because the core is gone.
fresh
cat >"$T/core.py" <<'PY'
import os, struct, sys
word, sandbox, spec = sys.argv[1:]
sr, sw = os.pipe()
tr, tw = os.pipe()
kr, kw = os.pipe()
pid = os.fork()
if not pid:
    fds = [os.dup2(sr, 60), os.dup2(tw, 61)]
    os.dup2(kr, 3)
    for fd in fds + [3]:
        os.set_inheritable(fd, True)
    os.closerange(4, 60)
    os.execv(sandbox, [sandbox, "60", "61"])
for fd in sr, tw, kr:
    os.close(fd)
with os.fdopen(sw, "wb") as f:
    f.write(open(spec, "rb").read())
frames = os.fdopen(tr, "rb")
open(spec + ".ready").read()
if word == "gone":
    os.close(kw)
else:
    os.write(kw, word.encode() + b"\n")
data = frames.read()
kinds = []
while data:
    n, kind = struct.unpack_from("<IB", data)
    kinds.append(kind)
    data = data[4 + n:]
print(*kinds)
os.waitpid(pid, 0)
PY
mkfifo "$T/spec.ready"
for word in KILL TERM gone; do
	fresh
	spec "trap 'exit 0' TERM; mkdir out/.husky; echo ready >$T/spec.ready; while :; do read -r x <$T/to; done" live 'write out'
	timeout 60 python3 "$T/core.py" "$word" "$VX_SANDBOX" "$T/spec" >"$OUT" 2>"$ERR" </dev/null
	not_ok "$word: what was planted is moved out" test -e "$W/out/.husky"
	[ "$word" = gone ] || prints "0 1 2 5 10 7" "$word: and told: HELLO, VIEW, STARTED, EXIT, PLANTED, DONE"
done

# --- the mounts ----------------------------------------------------------------------------------

fresh
mkdir -p "$W/out/a" "$W/src/a"
own
live 'cat /proc/self/mountinfo' 'read src' 'write out' 'read README'
# The last one is the one that is seen.
point() { awk -v p="$1" '$5 == p { is = $6 } END { print is }' "$OUT" | sed 's/,relatime//;s/,noatime//'; }
is "$(point "$W") $(point "$W/src") $(point "$W/out")" "rw,nosuid,nodev ro,nosuid,nodev rw,nosuid,nodev" \
	"the wall, and what is bound through it, with the rights of the grant"
is "$(awk -v w="$W/" 'index($5, w) == 1' "$OUT" | wc -l)" 2 "and no other mount in the workspace"
live 'rmdir out; mv out o; mv src s; umount out; umount .; mount --bind src out; unshare -Urm true; ls' 'read src' 'write out'
prints "out
src" "mount points stay"
live 'cd out && ls .. ../..//./ws; cd sub/deep && cd ../../.. && ls' 'read README' 'write out'
like "$OUT" '^README$' "the way up from a bind is the view's"
unlike "$OUT" priv "and shows no more"
if [ "$(id -u)" = 0 ]; then
	fresh
	mkdir "$W/src/m" "$W/out/m"
	spec 'echo x >src/m/f; echo y >out/m/f; cat src/m/g' live 'read src' 'write out'
	unshare --mount sh -c "mount -t tmpfs m $W/src/m && mount -t tmpfs m $W/out/m && echo g >$W/src/m/g &&
		\"\$@\"; cat $W/src/m/f; cat $W/out/m/f" - "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null
	prints "g
y" "mounts inside are shown with the rights of what they are in"
fi

# Another user's processes inside, where root may have them: the helper does not lend them its rights.
if [ "$(id -u)" = 0 ]; then
	fresh
	echo root >"$W/conf/root.json"
	chmod 600 "$W/conf/root.json"
	cat >"$T/other.py" <<'PY'
import os
os.setgroups([])
os.setgid(1000)
os.setuid(1000)
os.execvp("sh", ["sh", "-c", """cat conf/root.json; cat conf/one.json; echo x >conf/f; rm conf/one.json; chmod 777 conf
    echo y >conf/open/f; mkdir conf/open/d; ln -s x conf/open/l; chmod 700 conf/open/f; chown 0 conf/open/f"""])
PY

	live "umask 0; mkdir conf/open; umask 22; python3 $T/other.py"'
		stat -c "%u:%g %a" conf/open/f; stat -c "%u:%g" conf/open/d conf/open/l; cat conf/root.json' 'write conf' 'deny-write conf/none'
	prints "one
1000:1000 700
1000:1000
1000:1000
root" "an ordinary user inside has its own rights"
fi

# --- refused -------------------------------------------------------------------------------------

fresh
live true fuse-off
exits 125 "without FUSE there is no live view"
like "$ERR" 'the live view needs /dev/fuse, which cannot be used here; let this user open /dev/fuse' "and that is said, with what to do"
live true 'output out'
exits 125 "outputs mean nothing in it"
like "$ERR" 'spec: "output" has no meaning in a live view' "and that is said"
live 'ls' attached 'read src'
prints src "on kernels before detached layers"

# --- the calls -----------------------------------------------------------------------------------

fresh
cat >"$T/calls.py" <<'PY'
import ctypes, errno, fcntl, mmap, os, stat, sys, time
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
bad = 0
def check(name, ok):
    global bad
    if not ok:
        bad += 1
        print("differs:", name)
def fails(num, f, *a):
    try:
        f(*a)
    except OSError as e:
        return e.errno == num
    return False
def read(p):
    with open(p, "rb") as f:
        return f.read()
def write(p, data, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    fd = os.open(p, flags, 0o666)
    os.write(fd, data)
    os.close(fd)
write("a", b"one")
check("content", read("a") == b"one" and os.stat("a").st_size == 3)
write("a", b"two", os.O_WRONLY | os.O_APPEND)
check("append", read("a") == b"onetwo")
check("exclusive", fails(errno.EEXIST, os.open, "a", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
os.truncate("a", 2)
check("truncate", read("a") == b"on")
fd = os.open("a", os.O_RDWR)
os.ftruncate(fd, 8192)
m = mmap.mmap(fd, 8192)
m[4096:4100] = b"mmap"
m.flush()
m.close()
check("mmap", os.pread(fd, 4, 4096) == b"mmap" and read("a")[4096:4100] == b"mmap")
os.unlink("a")
check("unlinked", os.fstat(fd).st_size == 8192 and os.pread(fd, 2, 0) == b"on")
os.ftruncate(fd, 1)
os.write(fd, b"zz")
check("unlinked is written", os.fstat(fd).st_size == 2)
os.fsync(fd)
os.close(fd)
check("gone", fails(errno.ENOENT, os.stat, "a"))
big = os.urandom(700000)
write("big", big)
check("large", read("big") == big)
write("b", b"b")
old = os.open("b", os.O_RDONLY)
write("c", b"c")
os.rename("c", "b")
check("replaced", read("b") == b"c" and os.pread(old, 1, 0) == b"b" and not os.path.exists("c"))
os.close(old)
os.link("b", "l")
check("link", os.stat("b").st_ino == os.stat("l").st_ino and os.stat("b").st_nlink == 2)
os.unlink("l")
write("x", b"x")
check("no replace", libc.renameat2(-100, b"x", -100, b"b", 1) < 0 and ctypes.get_errno() == errno.EEXIST)
check("exchange", libc.renameat2(-100, b"x", -100, b"b", 2) == 0 and read("x") == b"c" and read("b") == b"x")
os.makedirs("d/e/f")
write("d/e/f/g", b"g")
held = os.open("d/e/f/g", os.O_RDONLY)
cwd = os.open("d/e", os.O_RDONLY)
os.rename("d", "n")
check("directory renamed", read("n/e/f/g") == b"g" and os.listdir("n") == ["e"] and fails(errno.ENOENT, os.stat, "d"))
check("and used from inside", os.listdir(cwd) == ["f"] and os.pread(held, 1, 0) == b"g")
os.mkdir("empty")
os.rename("n", "empty")
check("over an empty one", read("empty/e/f/g") == b"g")
check("not over a full one", (os.mkdir("m"), fails(errno.ENOTEMPTY, os.rename, "m", "empty"))[1])
check("not empty", fails(errno.ENOTEMPTY, os.rmdir, "empty"))
check("into itself", fails(errno.EINVAL, os.rename, "empty", "empty/e/x"))
os.symlink("b", "s")
check("symlink", os.readlink("s") == "b" and read("s") == b"x" and stat.S_ISLNK(os.lstat("s").st_mode))
os.chmod("b", 0o751)
check("mode", stat.S_IMODE(os.stat("b").st_mode) == 0o751)
os.chmod("b", 0o6751)
check("no set-id", stat.S_IMODE(os.stat("b").st_mode) == 0o751)
os.utime("b", ns=(10**18 + 1, 10**18 + 2))
check("times", os.stat("b").st_mtime_ns == 10**18 + 2 and os.stat("b").st_atime_ns == 10**18 + 1)
os.utime("s", ns=(5, 6), follow_symlinks=False)
check("times of a link", os.lstat("s").st_mtime_ns == 6)
check("access", os.access("b", os.R_OK | os.W_OK | os.X_OK))
os.mkdir("many")
names = ["%04d%s" % (i, "n" * (i % 200)) for i in range(600)]
for n in names:
    write("many/" + n, b"")
check("listing", sorted(os.listdir("many")) == names)
with os.scandir("many") as it:
    k = 0
    for t in it:
        os.unlink(t.path)
        k += 1
check("removed while listed", k == 600 and os.listdir("many") == [])
f1 = open("lock", "w")
f2 = open("lock")
fcntl.flock(f1, fcntl.LOCK_EX)
check("flock", fails(errno.EAGAIN, fcntl.flock, f2, fcntl.LOCK_EX | fcntl.LOCK_NB))
check("long name", fails(errno.ENAMETOOLONG, os.mkdir, "x" * 256))
os.mkdir("x" * 255)
for i in range(40):
    os.mkdir("y" * 200)
    os.chdir("y" * 200)
write("deep", b"deep")
check("deep", read("deep") == b"deep")
check("statfs", os.statvfs(".").f_blocks > 0)
fds = [os.open("deep", os.O_RDONLY) for i in range(300)]
check("many open", os.pread(fds[-1], 4, 0) == b"deep")
print("done", bad)
PY
live "python3 $T/calls.py out/new" 'write out' 'deny-write out/none'
prints "done 0" "file operations in what is served"

fresh
git_ init -q "$W/out"
echo x >"$W/out/f"
own
live 'cd out && git -c user.name=t -c user.email=t@t -c safe.directory="*" add f && git -c user.name=t -c user.email=t@t -c safe.directory="*" commit -qm one &&
	git -c safe.directory="*" status --short && git -c safe.directory="*" log --format=%s && git -c safe.directory="*" checkout -qb next && git -c safe.directory="*" gc -q && git -c safe.directory="*" fsck' \
	'write out'
exits 0 "git works in a served repository"
prints one "and commits"

done_testing

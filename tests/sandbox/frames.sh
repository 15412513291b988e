#!/bin/sh
# SPDX-License-Identifier: MIT
# vx-sandbox as the core starts it: spec and status by fd, signals on 3, frames in their order.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program python3
mkdir -p "$W/src" "$W/priv"
echo s >"$W/src/s"
echo k >"$W/priv/key"

cat >"$T/core.py" <<'PY'
import os, struct, sys
names = ["HELLO", "VIEW", "STARTED", "DENIAL", "NOTE", "EXIT", "ENTRY", "DONE", "SETUP_ERROR"]
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
    os.execv(sys.argv[1], [sys.argv[1], "60", "61"])
for fd in sr, tw, kr:
    os.close(fd)
with os.fdopen(sw, "wb") as f:
    f.write(open(sys.argv[2], "rb").read())
data = os.fdopen(tr, "rb").read()
def text(p):
    n, = struct.unpack_from("<I", p)
    return p[4:4 + n].decode(), p[4 + n:]
while data:
    n, kind = struct.unpack_from("<IB", data)
    payload, data = data[5:4 + n], data[4 + n:]
    word = names[kind]
    if word == "DENIAL":
        path, rest = text(payload[5:])
        program, rest = text(rest)
        exe, rest = text(rest)
        cmdline, rest = text(rest)
        word += " %s %s %s %s" % (path, program, os.path.basename(exe), cmdline)
    elif word == "EXIT":
        word += " %d" % struct.unpack_from("<I", payload)
    elif word == "NOTE":
        word += " " + text(payload)[0].split(":")[0]
    elif word == "SETUP_ERROR":
        word += " " + text(payload)[0]
    elif word == "DONE":
        word += " %d %d" % struct.unpack_from("<QQ", payload)
    print(word)
print("code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
core() {
	spec "$@"
	timeout 60 python3 "$T/core.py" "$VX_SANDBOX" "$T/spec" >"$OUT" 2>"$ERR" </dev/null
}

core 'cat priv/key; echo 1 >src/n; exit 4' 'read src'
prints "HELLO
VIEW
STARTED
DENIAL priv cat cat cat priv/key
EXIT 1024
ENTRY
ENTRY
DONE 1 2
code 4" "a command's frames in their order"

core 'true' 'read src' "write $T/absent"
prints "HELLO
VIEW
STARTED
NOTE $T/absent, granted for writing, is not there
EXIT 0
DONE 0 0
code 0" "notes of the set-up come after its start"

# A core that is busy: it reads nothing before the command has come to its end.
cat >"$T/busy.py" <<'PY'
import collections, os, struct, sys
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
    os.execv(sys.argv[1], [sys.argv[1], "60", "61"])
for fd in sr, tw, kr:
    os.close(fd)
with os.fdopen(sw, "wb") as f:
    f.write(open(sys.argv[2], "rb").read())
with open(sys.argv[3]) as f:
    f.read()
data = os.fdopen(tr, "rb").read()
told, at = collections.Counter(), 0
while at < len(data):
    n, kind = struct.unpack_from("<IB", data, at)
    if kind == 3 and data[at + 5] == 0:
        k, = struct.unpack_from("<I", data, at + 10)
        told[data[at + 14:at + 14 + k].decode().split("/")[0]] += 1
    if kind == 7:
        denials, entries, elsewhere = struct.unpack_from("<QQQ", data, at + 5)
    at += 4 + n
print("%d denied, %d told of near, untold of far: %s, unknown: %d" % (denials, told["near"],
      "some" if told["far"] < 20000 else "none", denials - elsewhere - sum(told.values())))
PY
fifo ended
mkdir "$W/near" "$W/far"
(cd "$W/near" && seq 20000 | xargs touch ok)
(cd "$W/far" && seq 20000 | xargs touch ok)
cat >"$T/ask.py" <<'PY'
import os
for i in range(1, 20001):
    for d in "far", "near":
        try:
            os.stat("%s/%d" % (d, i))
        except OSError:
            pass
PY
long=$(printf '%0900d' 1)
spec "python3 $T/ask.py $long; echo x >$T/ended" 'read src' 'read near/ok' 'read far/ok' 'report near'
timeout 120 python3 "$T/busy.py" "$VX_SANDBOX" "$T/spec" "$T/ended" >"$OUT" 2>"$ERR" </dev/null
prints "40000 denied, 20000 told of near, untold of far: some, unknown: 0" \
	"what a busy core cannot be told is counted by where it is, and what matters is told"
rm -r "$W/near" "$W/far"

core 'true' 'read src' "cwd none"
like "$OUT" '^SETUP_ERROR spec: line [0-9]+: cwd' "a bad spec is a set-up error that names the line"
like "$OUT" '^code 125$' "and its code"

spec 'true' 'read src'
sed 's/^cwd .*/cwd none/' "$T/spec" >"$T/spec2"
timeout 60 python3 "$T/core.py" "$VX_SANDBOX" "$T/spec2" >"$OUT" 2>"$ERR" </dev/null
like "$OUT" '^SETUP_ERROR cannot enter the working directory none: No such file' \
	"a working directory that is not there"
is "$(cat "$ERR")" "" "nothing on stderr, which is the command's"
for args in '' '9 9' '1 2' '60 60' 'x 61' '--spec'; do
	# shellcheck disable=SC2086 # words
	RC=0 && "$VX_SANDBOX" $args >"$OUT" 2>"$ERR" </dev/null || RC=$?
	exits 125 "usage: '$args'"
done
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Processes: signals through fd 3, background processes, sudden death (cases C18-C22).
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
require_program python3
echo s >"$W/s"
fifo up

# Starts the last spec as the core does, with fd 3 at the FIFO $T/sig, whose other end is our fd 8.
start() {
	rm -f "$T/sig"
	mkfifo "$T/sig"
	"$VX_SANDBOX" 4 5 >"$OUT" 2>"$ERR" </dev/null 3<"$T/sig" 4<"$T/spec" 5>"$T/frames" &
	BOX=$!
	exec 8>"$T/sig"
}
wait_box() {
	RC=0
	wait "$BOX" || RC=$?
}

for s in INT TERM; do
	spec "trap 'echo got $s; exit 9' $s; echo up >$T/up; while :; do read -r x <$T/never; done" 'read .'
	rm -f "$T/never"
	mkfifo "$T/never"
	start
	await up >/dev/null
	echo "$s" >&8
	wait_box
	exits 9 "$s over fd 3 reaches the command"
	prints "got $s" "$s: its trap ran"
	exec 8>&-
done

spec "trap 'exit 9' TERM; echo up >$T/up; while :; do read -r x <$T/never; done" 'read .'
start
await up >/dev/null
printf 'QUIT\n%s\nHUP\n\nINTINT\nTERM \n' "$(head -c 100000 /dev/zero | tr '\0' x)" >&8
echo TERM >&8
wait_box
exits 9 "anything else on fd 3 is nothing"
exec 8>&-

spec "exec 9>$T/hold; trap '' TERM INT HUP; (setsid sleep 1000 &) ; echo up >$T/up; while :; do read -r x <$T/never; done" 'read .'
fifo hold
hold hold # before fd 8 is there to be inherited
start
await up >/dev/null
exec 8>&- # the core is gone
wait_box
ok "the end of fd 3 ends the namespace" test "$RC" -ne 0
ok "and everything in it" released
is "$(python3 -c '
import struct, sys
b, at = open(sys.argv[1], "rb").read(), 0
while at < len(b):
    print(b[at + 4])
    at += 4 + struct.unpack_from("<I", b, at)[0]' "$T/frames" | grep -E '^(2|5|6|7)$')" 2 \
	"it had started, and nothing more is told"

spec "exec 9>$T/hold; (setsid sh -c 'trap \"\" TERM; sleep 1000' &); echo up >$T/up; sleep 1000" 'read .'
hold hold # before fd 8 is there to be inherited
start
await up >/dev/null
kill -9 "$BOX"
wait_box
ok "kill -9 of the helper ends the namespace" released
exec 8>&-

spec "exec 9>$T/hold; echo up >$T/up; sleep 1000" 'read .'
hold hold # before fd 8 is there to be inherited
start
await up >/dev/null
kill -STOP "$BOX"
kill -9 "$BOX"
wait_box
ok "also of a stopped one" released
exec 8>&-

# Its own group is all that a command reaches by 0.
box 'echo x >new; kill -TERM 0; sleep 1000' 'read .'
exits 143 "kill 0 ends the command"
like "$ERR" '^vx-sandbox: file 0[0-9]* new$' "and no one else: what it wrote is told"

# C18
spec "exec 9>$T/hold; sleep 300" 'read .'
python3 - "$VX_SANDBOX" "$T" <<'PY' >"$OUT" 2>"$ERR"
import os, random, re, shutil, signal, subprocess, sys, threading
prog, top = sys.argv[1:]
spec = open(top + "/spec").read()
fd = os.open(top + "/hold", os.O_RDONLY | os.O_NONBLOCK)
os.set_blocking(fd, True)
keep = os.open(top + "/hold", os.O_WRONLY)
for i in range(500):
    scratch = "%s/k%d" % (top, i)
    os.mkdir(scratch)
    one = scratch + ".spec"
    open(one, "w").write(re.sub(r"(?m)^scratch .*$", "scratch " + scratch, spec))
    p = subprocess.Popen([prog, "--spec", one], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        p.wait(random.uniform(0, 0.020))
    except subprocess.TimeoutExpired:
        pass
    p.kill()
    p.wait()
os.close(keep)
# end of file: nobody holds it open any more
signal.alarm(20)
while os.read(fd, 100):
    pass
print("gone")
PY
prints gone "C18: killed in its first moments, 500 times: nothing is alive"
is "$(grep -c "$T" /proc/self/mountinfo)" 0 "and nothing is mounted"

# C19
box "exec 9>&-; sleep 600 & echo hi" 'read .'
prints hi "C19: output"
like "$ERR" '^vx-sandbox: 1 background process ended$' "C19: the background process is counted"
exits 0 "C19: exit code"
# the end of the FIFO's writer is the end of its exit: its status is its own by then
box 'mkfifo /tmp/e; ( (exec 9>/tmp/e) & ); cat /tmp/e' 'read .'
unlike "$ERR" 'background' "what ended by itself is not"

# C21
box 'mkdir -p out/a/b; touch out/a/b/f; mkdir out/z; chmod 0 out/z; chmod 555 out/a out/a/b' 'write out'
for line in 'dir \(new\) 0555 out/a' 'dir \(new\) 0555 out/a/b' 'file 0644 out/a/b/f' 'dir \(new\) 0000 out/z'; do
	like "$ERR" "^vx-sandbox: $line\$" "C21: $line"
done
is "$(stat -c %a "$S/u/out/z")" 0 "C21: and is left like that"
chmod -R u+rwX "$S/u"

box 'touch f; chmod 4755 f; mkfifo p' 'write .'
like "$ERR" 'file 4755 f' "set-id bits are told"
like "$ERR" 'special 0644 p' "so are other types"

# deep trees, and many names
box 'python3 -c "
import os
for i in range(3000):
    os.mkdir(\"d\"); os.chdir(\"d\")
open(\"f\", \"w\").close()
"; mkdir many; cd many; seq 5000 | xargs touch' 'write .'
exits 0 "a tree of 3000 levels"
is "$(grep -c ' many/' "$ERR")" 5000 "5000 names too"
is "$(grep -c 'dir (new) 0755 d' "$ERR")" 2049 "of the levels those that a path can name, and the first that none can"

# C22
box 'python3 -c "import multiprocessing as m; m.Lock(); print(\"ok\")"' 'read .'
prints ok "C22: named semaphores"

# C23
box 'python3 -c "import pty; pty.spawn([\"tty\"])"' 'read .'
like "$OUT" '^/dev/pts/0' "C23: a terminal of its own"
done_testing

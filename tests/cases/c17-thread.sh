#!/bin/sh
# SPDX-License-Identifier: MIT
# C17: started by a thread that goes away.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

fifo up go
cat >"$T/thread.py" <<'P'
import os, subprocess, sys, threading

top, *argv = sys.argv[1:]
started = {}
def start():
    started["tid"] = threading.get_native_id()
    started["child"] = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    with open(top + "/up") as f:   # it runs
        f.read()
t = threading.Thread(target=start)
t.start()
t.join()
# Python's word for it comes before the kernel's.
while os.path.exists("/proc/self/task/%d" % started["tid"]):
    os.sched_yield()
with open(top + "/go", "w") as f:  # and goes on without its parent thread
    f.write("go\n")
sys.exit(started["child"].wait())
P
before
echo "exit 9" | box '{}' # writes the config
cat >"$T/command.sh" <<E
echo up >$T/up
read -r x <$T/go
echo done
E
try python3 "$T/thread.py" "$T" "$VX" run t
exits 0 "C17: vx, started by a thread that ends"
said '^done$' "C17: the task came to its end"
unchanged C17

mkdir "$T/scratch"
printf 'vx-spec 1\nworkspace %s\ncwd .\nscratch %s\narg sh\narg %s\nenv PATH=%s\nread .\nend\n' \
	"$W" "$T/scratch" "$T/command.sh" "$PATH" >"$T/spec"
try python3 "$T/thread.py" "$T" "$VX_SANDBOX" --spec "$T/spec"
exits 0 "C17: the helper alone"
said '^done$' "C17: its command came to its end"
unchanged "C17, the helper"
done_testing

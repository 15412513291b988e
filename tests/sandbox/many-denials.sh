#!/bin/sh
# SPDX-License-Identifier: MIT
# A command that touches very many names: the helper stays small, whatever the core does, and counts exactly.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program python3

NAMES=20000 SHOWN=4000
# What a helper may take in all (6 MiB), with the pages of its program.
LIMIT=6144
if nm "$VX_SANDBOX" 2>/dev/null | grep -q __asan_init; then
	NAMES=2000 SHOWN=2000 LIMIT=2000000
fi
mkdir -p "$W/hidden" "$W/shown" "$W/trees"
python3 - "$W" "$NAMES" "$SHOWN" <<'P'
import os, sys
os.chdir(sys.argv[1])
for where, n in ("hidden", sys.argv[2]), ("shown", sys.argv[3]):
    for i in range(int(n)):
        open("%s/a-name-as-long-as-those-of-modules-are-%05d" % (where, i), "w").close()
for i in range(500):
    os.mkdir("trees/%04d" % i)
P
cat >"$T/touch.py" <<'P'
import os, sys
nhidden, nshown = int(sys.argv[2]), int(sys.argv[3])
def there(path):
    try:
        os.stat(path)
        return True
    except OSError:
        return False
name = "%s/a-name-as-long-as-those-of-modules-are-%05d"
print(sum(there(name % ("hidden", i)) for i in range(nhidden)), sum(there(name % ("shown", i)) for i in range(nshown)))
print(len(os.listdir("hidden")), len(os.listdir("shown")))
for i in range(500):
    there("trees/%04d/none" % i)
sys.stdout.flush()
with open(sys.argv[1] + "/up", "w") as f:
    f.write("up\n")
open(sys.argv[1] + "/go").read()
P
fifo up go
# The core's part: reads nothing until the command is done, or all the time.
cat >"$T/core.py" <<'P'
import os, re, struct, sys, threading
helper, spec, where, reads = sys.argv[1:]
sr, sw = os.pipe()
tr, tw = os.pipe()
kr, kw = os.pipe()
pid = os.fork()
if not pid:
    os.dup2(sr, 60)
    os.dup2(tw, 61)
    os.dup2(kr, 3)
    for fd in 60, 61, 3:
        os.set_inheritable(fd, True)
    os.closerange(4, 60)
    os.execv(helper, [helper, "60", "61"])
for fd in sr, tw, kr:
    os.close(fd)
with os.fdopen(sw, "wb") as f:
    f.write(open(spec, "rb").read())
data = b""
def read():
    global data
    with os.fdopen(tr, "rb") as f:
        data = f.read()
reader = threading.Thread(target=read)
if reads == "yes":
    reader.start()
open(where + "/up").read()
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1)
with open(where + "/go", "w"):
    pass
if reads != "yes":
    reader.start()
reader.join()
told = 0
while data:
    n, kind = struct.unpack_from("<IB", data)
    payload, data = data[5:4 + n], data[4 + n:]
    if kind == 3 and payload[0] < 4:
        told += 1
    if kind == 7:
        denials, entries, elsewhere = struct.unpack_from("<QQQ", payload)
        print("told %d denials %d elsewhere %d" % (told, denials, elsewhere))
print("peak", peak)
print("code", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
# NAME READS DENIALS SPEC-LINE...
check() {
	what=$1 reads=$2 denials=$3
	shift 3
	spec "exec python3 $T/touch.py $T $NAMES $SHOWN" 'read-glob shown/a*' 'read-glob hidden/*.none' 'read-glob trees/*/x' "$@"
	timeout 60 python3 "$T/core.py" "$VX_SANDBOX" "$T/spec" "$T" "$reads" >"$OUT" 2>"$ERR" </dev/null
	is "$(sed 2q "$OUT" | tr '\n' ' ')" "0 $SHOWN 0 $SHOWN " "$what: what is hidden is, in listings, too, and the rest is not"
	like "$OUT" " denials $denials elsewhere" "$what: each is counted"
	like "$OUT" '^code 0$' "$what: to the end"
	peak=$(sed -n 's/^peak //p' "$OUT")
	diag "$what: $peak KiB, $(grep ^told "$OUT")"
	ok "$what: the helper took at most $LIMIT KiB" test "${peak:-9999999}" -le "$LIMIT"
}
check transaction yes "$NAMES"
like "$OUT" "^told $NAMES " "a core that reads is told of each"
check "transaction, nobody reads" no "$NAMES"
# Of a live view it keeps a node for each name that is there and that the kernel remembers.
LIMIT=$((LIMIT + SHOWN / 4))
check "live, nobody reads" no "$NAMES" live
check "without the layer" yes 0 fuse-off
done_testing

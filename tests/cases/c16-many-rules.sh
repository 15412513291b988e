#!/bin/sh
# SPDX-License-Identifier: MIT
# C16: a policy with five thousand lines.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

mkdir data
(cd data && seq -f 'secret-%04g.txt' 5000 | xargs touch)
echo s >data/s
before
list=$(cd data && printf '"data/%s", ' secret-*)
for deny in "${list%, }" '"data/secret-*.txt"' "${list}\"data/secret-*.txt\""; do
	name="C16: $(printf %.30s "$deny")"
	box "{ \"allow\": { \"read\": [\"**\"] }, \"deny\": { \"read\": [$deny] } }" <<-'E'
		ls data; cat data/s; test ! -e data/secret-0777.txt || exit 9
		exit 0
	E
	findings 1 "$name"
	is "$(grep -c '^s$' "$OUT")" 2 "$name: what is not denied is listed and read"
	said_not '^secret-' "$name: what is denied is not"
	reported read 'data/secret-0777\.txt'
done
unchanged C16

# What it costs, the policy given on a descriptor: the helper alone, in turns.
mkdir "$T/h"
cat >"$T/cost.py" <<'P'
import os, resource, statistics, subprocess, sys, time

helper, top, work = sys.argv[1:]
head = "vx-spec 1\nworkspace %s\ncwd .\nhome %s/h\narg true\nenv PATH=%s\nread .\n" % (
    work, top, os.environ["PATH"])
names = sorted(n for n in os.listdir(work + "/data") if n.startswith("secret-"))
assert len(names) == 5000
rules = {
    "none": "",
    "list": "".join("deny-read data/%s\n" % n for n in names),
    "pattern": "deny-read-glob data/secret-*.txt\n",
}
rules["both"] = rules["list"] + rules["pattern"]
took = {k: [] for k in rules}
for turn in range(10):
    for kind, text in rules.items():
        scratch = "%s/s.%s.%d" % (top, kind, turn)
        os.mkdir(scratch)
        spec = os.memfd_create("spec", 0)
        os.write(spec, ("%sscratch %s\n%send\n" % (head, scratch, text)).encode())
        os.lseek(spec, 0, os.SEEK_SET)
        t0 = time.monotonic()
        rc = subprocess.run([helper, "--spec", "/dev/fd/%d" % spec], pass_fds=[spec],
                            stdin=subprocess.DEVNULL).returncode
        took[kind].append(time.monotonic() - t0)
        os.close(spec)
        if rc:
            sys.exit("%s: exit code %d" % (kind, rc))
base = statistics.median(took["none"])
for kind in rules:
    print(kind, round((statistics.median(took[kind]) - base) * 1000))
print("memory", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
P
own
ok "C16: ten starts with each policy" python3 "$T/cost.py" "$VX_SANDBOX" "$T" "$W"
cp "$T/.said" "$T/cost"
diag "$(tr '\n' ' ' <"$T/cost") (ms, MiB)"
cost() { sed -n "s/^$1 //p" "$T/cost"; }
ok "C16: the list adds little to a start" test "$(cost list)" -lt 1000
ok "C16: the pattern hardly anything" test "$(cost pattern)" -lt 100
ok "C16: both are no more than the list" test "$(cost both)" -lt 1000
ok "C16: in little memory" test "$(cost memory)" -lt 50
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Core, guard or helper killed, or Ctrl-C, at any moment of a sandboxed task that ends by itself, and while
# it runs: after the survivor and the next start have run, outputs are whole (all old or all new), no
# process, mount or scratch is left.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

export VX_KILL_GRACE_MS=200
fifo held up
cat >"$T/command.sh" <<E
exec 9<>$T/held
read -r n <in
mkdir -p out/sub
for f in 1 2 3 4 5 6 7 8 9; do
	echo \$n >out/\$f
	echo \$n >out/sub/\$f
done
[ ! -e $T/announce ] || { echo up >$T/up; exec sleep 300; }
E
put vx.config.json <<E
{ "name": "w", "tasks": {
	"t": { "exec": { "command": "exec sh $T/command.sh", "sandbox": { "allow": { "read": ["in"], "write": ["out/**"] } } },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out/**"] } } },
	"next": { "exec": { "command": "true" } }
} }
E
echo first >in
run run t
exits 0 "an undisturbed run"

# The next start cleans up; then 18 files of one generation stand in out and no scratch in .vx.
cat >"$T/check.sh" <<E
cd $W || exit
timeout 60 $VX run next >$T/next 2>&1 || { cat $T/next; exit 1; }
[ "\$(find out -type f | wc -l)" -eq 18 ] || { echo "partial output:"; find out; exit 1; }
[ "\$(cat out/* out/sub/* 2>/dev/null | sort -u | wc -l)" -eq 1 ] || { echo "mixed output:"; grep -r . out; exit 1; }
left=\$(find .vx/scratch -mindepth 1 -maxdepth 1)
[ -z "\$left" ] || { echo "left: \$left"; exit 1; }
E
mounts=$(wc -l </proc/self/mountinfo)
base=0
kills() { # NAME VICTIM ROUNDS MOMENT
	ok "$1" timeout 120 python3 "$VX_SRCDIR/tests/cases/kill.py" --victim "$2" --rounds "$3" \
		--moment "$4" --held "$T/held" --input in --base "$base" --after "$T/check.sh" -- "$VX" run t
}
for victim in helper core guard int; do
	rm -f "$T/announce"
	kills "$victim, at a random moment, 40 times" "$victim" 40 60
	base=$((base + 40))
	: >"$T/announce"
	kills "$victim, while the task runs, 10 times" "$victim" 10 "$T/up"
	base=$((base + 10))
done

# The same while a known result is restored: it is no commit, but as little may be left half done.
rm -f "$T/announce"
known=0
while [ $known -lt 20 ]; do
	echo $((base + known)) >in
	run run t
	known=$((known + 1))
done
exits 0 "results to restore"
kills "core, while outputs are restored, 20 times" core 20 30
is "$(wc -l </proc/self/mountinfo)" "$mounts" "no mount is left"
rm -f "$T/announce"
run run t
exits 0 "and a run afterwards"
is "$(cat out/1)" "$(cat in)" "has the right output"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# C18: the helper is killed in its first moments, and when the task is up: nothing is left.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

export VX_KILL_GRACE_MS=200
mkdir out
fifo held up
cat >"$T/command.sh" <<E
exec 9<>$T/held
echo partial >out/partial
setsid sleep 300 &
[ ! -e $T/announce ] || echo up >$T/up
exec sleep 300
E
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "exec sh $T/command.sh", "sandbox": { "allow": { "write": ["out/**"] } } },
	"cache": { "inputs": { "files": [] }, "outputs": { "files": ["out/**"] } } } } }
E
before
mounts=$(wc -l </proc/self/mountinfo)
ok "C18: killed at a random moment, 100 times" timeout 200 python3 "$VX_SRCDIR/tests/cases/kill.py" \
	--victim helper --rounds 100 --moment 20 --held "$T/held" -- "$VX" run t
is "$(find out -mindepth 1)" "" "C18: no partial output"
unchanged "C18, random"

: >"$T/announce"
ok "C18: killed when the task is up, 10 times" timeout 100 python3 "$VX_SRCDIR/tests/cases/kill.py" \
	--victim helper --rounds 10 --moment "$T/up" --held "$T/held" -- "$VX" run t
is "$(find out -mindepth 1)" "" "C18: no partial output"
unchanged "C18, announced"
is "$(wc -l </proc/self/mountinfo)" "$mounts" "C18: no mount is left"
done_testing

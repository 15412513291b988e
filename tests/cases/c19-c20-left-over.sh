#!/bin/sh
# SPDX-License-Identifier: MIT
# C19: a left-over background process holds the output pipe. C20: a time limit against a stubborn
# program.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

ms() { echo $(($(date +%s%N) / 1000000)); }
fifo held
hold held
before
t0=$(ms)
box '{}' <<E
exec 9>$T/held
sleep 600 & echo hi
E
t1=$(ms)
findings 0 "C19: a left-over background process"
said '^hi$' "C19: output is complete"
ok "C19: the task ended soon ($((t1 - t0)) ms)" test $((t1 - t0)) -lt 10000
ok "C19: the sleeper is gone" released
said '1 background process' "C19: the note says so"
unchanged C19
before

hold held
export VX_KILL_GRACE_MS=1000
cat >"$T/command.sh" <<E
exec 9>$T/held
trap "" TERM INT
(trap "" TERM; setsid sleep 100) &
while :; do :; done
E
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "exec sh $T/command.sh", "timeout": 1000, "sandbox": {} } } } }
E
t0=$(ms)
run run t
t1=$(ms)
exits 1 "C20: a time limit"
said 'timed out' "C20: the status says so"
ok "C20: not before limit and grace were over ($((t1 - t0)) ms)" test $((t1 - t0)) -ge 2000
ok "C20: soon after" test $((t1 - t0)) -lt 30000
ok "C20: nothing is alive" released
unchanged C20
done_testing

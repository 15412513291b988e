#!/bin/sh
# SPDX-License-Identifier: MIT
# A command that failed is run again: exec.retries and --retry.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
. "$VX_SRCDIR/tests/cases/both.sh"
fifo turns up never
exec 7<>"$T/turns" 6<>"$T/never"

# WORD...: what the attempts are told, one each.
turns() { printf '%s\n' "$@" >&7; }
# COMMAND [EXEC [TASK]]: the task t of package a. In its command $x is what it is told.
task() {
	package a "\"t\": { \"exec\": { \"command\": $(noting t "read -r x <$T/turns; $1")${2:-} }${3:-} }"
	workspace
}
cached=', "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } }'
play() { go t --output-logs=full "$@"; }
# Of the only task of the last run.
attempts() {
	python3 -c 'import sqlite3
for row in sqlite3.connect(".vx/history.db").execute(
    "SELECT attempts, status FROM tasks WHERE run = (SELECT max(id) FROM runs)"):
    print(*row)'
}

again() {
	task 'ls dist; echo said $x; mkdir -p dist; echo $x >dist/$x; [ $x = ok ]' ', "retries": 3' "$cached"
	turns bad worse ok
	play --summarize=s.json
	exits 0 "$C the last attempt decides"
	said '^note: flaky: it succeeded in attempt 3$' "$C which is flaky"
	is "$(python3 -c 'import json
print(*sorted(json.load(open("s.json"))["tasks"][0]["flaky"].items()))')" \
		"('attempts', 3) ('failures', 0) ('passes', 1)" "$C also in writing"
	is "$(nran a.t)" 3 "$C it is the third"
	is "$(grep retrying "$ERR")" "vx: retrying a#t (attempt 2/4) after exit 1
vx: retrying a#t (attempt 3/4) after exit 1" "$C each is said"
	is "$(grep -E '^(┌|└|said)' "$OUT" | sed 's/(.*s) //')" "┌─ a#t > failed (exit 1), attempt 1/4
said bad
└─ a#t ── failed (exit 1), attempt 1/4
┌─ a#t > failed (exit 1), attempt 2/4
said worse
└─ a#t ── failed (exit 1), attempt 2/4
┌─ a#t > success
said ok
└─ a#t ── success" "$C each has its frame"
	is "$(attempts)" "3 success" "$C and their number is kept"
	is "$(ls packages/a/dist)" ok "$C outputs are cleaned before each"
	said_not '^(bad|worse)$' "$C none sees those of another"
	zero
	rm -r packages/a/dist
	play
	is "$(nran a.t)-$(cat packages/a/dist/ok)" 0-ok "$C what it made is stored"
	said '^said ok$' "$C with what it printed"
	said_not '^said (bad|worse)$' "$C and nothing of the others"
}

number() {
	task '[ $x = ok ] || exit 5' ', "retries": 2'
	turns bad bad bad
	play
	exits 1 "$C all of them failed"
	said '└─ a#t ── .* failed \(exit 5\)' "$C the last one's code"
	is "$(nran a.t)" 3 "$C 2 retries are 3 attempts"
	is "$(attempts)" "3 failed" "$C which is kept"
	task '[ $x = ok ]' ', "retries": 0'
	zero
	turns bad
	play --retry=2
	is "$(nran a.t)" 1 "$C exec.retries outranks --retry"
	task '[ $x = ok ]'
	zero
	turns bad ok
	play --retry 2
	exits 0 "$C --retry is for those that say nothing"
	said 'retrying a#t \(attempt 2/3\) after exit 1' "$C its number is the limit"
	zero
	turns bad
	play
	is "$(nran a.t)$(attempts)" "11 failed" "$C without either there is one"
}

timed() {
	task '[ $x = ok ] || sleep 100' ', "timeout": 1500, "retries": 1' "$cached"
	turns bad ok
	play
	exits 0 "$C one that took too long"
	said '^vx: retrying a#t \(attempt 2/2\) after a timeout$' "$C is run again"
	zero
	play
	is "$(nran a.t)" 0 "$C and is stored when that goes well"
}

# Its key is that of what it was before.
own_input() {
	if sandboxed; then
		task '[ $x = ok ] || { echo 2 >>src/in.txt; cat src/in.txt; exit 1; }' ', "retries": 1' "$cached"
	else
		task '[ $x = ok ] || { echo 2 >>src/in.txt; exit 1; }' ', "retries": 1' "$cached"
	fi
	turns bad ok
	play
	exits 0 "$C one that writes its input before it fails"
	if sandboxed; then
		is "$(cat packages/a/src/in.txt)" 1 "$C has written nothing into the workspace"
	else
		said '^note: not saved: packages/a/src/in\.txt changed before it ran$' "$C is not saved after that"
	fi
}

violations() {
	sandboxed || { pass "$C has none"; return; }
	task '[ $x = ok ] || cat hid || true' ', "sandbox": {}, "retries": 1'
	echo h >packages/a/hid
	turns bad ok
	play
	exits 0 "$C one that read what it may not"
	said '^vx: retrying a#t \(attempt 2/2\) after exit 1, 1 sandbox violation$' "$C is run again"
	said '^read packages/a/hid  by cat' "$C what it read stands in its frame"
	turns bad ok
	go t --output-logs=errors-only
	said '^vx: a#t: denied read packages/a/hid  by cat .*; to allow it: allow\.read: \["hid"\]$' "$C and without one is named all the same"
}

stopped() {
	task "echo up >$T/up; sleep 100" ', "retries": 2'
	turns x
	if sandboxed; then bg run --all t --sandbox; else bg run --all t; fi
	await up >/dev/null || fail "$C did not start"
	kill -s INT "$BG"
	bg_wait
	exits 130 "$C a run that is stopped"
	said_not retrying "$C runs nothing again"
	is "$(nran a.t)" 1 "$C it was one attempt"
}

# What an attempt that failed has started would write into the outputs of the next, or hold its port.
left() {
	task "[ \$x = ok ] || { sleep 1000 >/dev/null 2>&1 & echo left \$!; exit 1; }" ', "retries": 1' "$cached"
	turns bad ok
	play
	exits 0 "$C one that leaves a process before it is run again"
	sandboxed || is "$(grep '^State:' "/proc/$(sed -n 's/^left //p' "$OUT")/status" 2>/dev/null | grep -v zombie)" "" "$C that is ended before"
	said_not 'not saved' "$C and is saved"
}

# What does not come as far as its command has no attempts.
unstarted() {
	task 'true' ', "retries": 2' "$cached"
	sed -i 's|dist/\*\*|src/**|; s|"src/\*\*"\] }, "outputs"|"other/**"] }, "outputs"|' packages/a/vx.config.json
	echo changed >packages/a/src/in.txt
	play
	exits 1 "$C a task that vx does not start"
	said_not retrying "$C is not started again"
	is "$(attempts)" "0 failed" "$C it had no attempt"
}

each again number timed own_input violations left stopped unstarted
done_testing

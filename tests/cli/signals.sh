#!/bin/sh
# SPDX-License-Identifier: MIT
# Timeouts, Ctrl-C, kill -9: what ends how, and that nothing is left.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program setsid git
cd "$W" || exit 99
fifo up cleaned held

echo '{ "projects": ["p/*"] }' >vx.workspace.json
cat >"$T/server.sh" <<E
exec 9>$T/held
trap 'echo cleaned >$T/cleaned.txt; exit 0' INT TERM HUP
echo up >$T/up
while :; do read -r x <$T/never; done
E
mkfifo "$T/never"
cat >"$T/deaf.sh" <<E
exec 9>$T/held
trap '' INT TERM HUP
(trap '' INT TERM HUP; exec setsid sleep 1000) &
echo up >$T/up
while :; do read -r x <$T/never; done
E
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"serve": { "exec": { "command": "sh $T/server.sh" } },
	"deaf": { "exec": { "command": "sh $T/deaf.sh" } },
	"slow": { "exec": { "command": "exec 9>$T/held; sleep 1000", "timeout": 300 } },
	"forever": { "exec": { "command": "exec 9>$T/held; sleep 1000" } },
	"stubborn": { "exec": { "command": "exec 9>$T/held; trap '' TERM; while :; do :; done", "timeout": 300 } },
	"halt": { "exec": { "command": "exec 9>$T/held; kill -STOP \$PPID; echo up >$T/up; sleep 1000" } },
	"leaves": { "exec": { "command": "sleep 1000 & echo \$! >$T/left; echo said" } },
	"next": { "dependsOn": ["serve"], "exec": { "command": "touch $T/next" } }
} }
E
export VX_KILL_GRACE_MS=500

hold held
run run a#slow
exits 1 "a timeout"
said 'timed out after 300ms \(exec\.timeout\)' "is said, with the limit and who set it"
said '143' "with the code of SIGTERM"
ok "nothing of the task is left" released

hold held
run run a#stubborn
exits 1 "a timeout of a task that does not listen"
said 'timed out' "is said"
said '137' "with the code of SIGKILL"
ok "nothing of it is left" released

limit() { # WHO ARGS...: ends what has no limit of its own
	l_who=$1
	shift
	hold held
	run run a#forever "$@"
	said "timed out after $l_who" "$l_who is named"
	ok "nothing of it is left" released
}
limit '200ms \(--timeout\)' --timeout 200
export VX_TASK_TIMEOUT=1000
limit '1s \(VX_TASK_TIMEOUT\)'
for bad in 100ms 0; do
	export VX_TASK_TIMEOUT="$bad"
	run run a#forever --timeout 200
	said "vx: VX_TASK_TIMEOUT: '$bad' is no number of milliseconds; it is ignored" "VX_TASK_TIMEOUT=$bad is not ignored in silence"
done
unset VX_TASK_TIMEOUT
for knob in VX_KILL_GRACE_MS=abc VX_KILL_GRACE_MS=-1 VX_READY_NOTICE_MS=10s VX_READY_NOTICE_MS=99999999999; do
	try env "$knob" "$VX" run a#forever --timeout 200
	exits 2 "$knob is refused"
	is "$(cat "$OUT" "$ERR")" "vx: ${knob%=*}: '${knob#*=}' is not a whole number from 0 to 2147483647" "$knob: in one line"
done
try env VX_READY_NOTICE_MS= "$VX" run a#slow
exits 1 "an empty knob is none"
echo '{ "projects": ["p/*"], "timeout": 150 }' >vx.workspace.json
limit '150ms \(timeout in vx\.workspace\.json\)'
echo '{ "projects": ["p/*"] }' >vx.workspace.json

# The command's own exit ends the task; what it left behind does not hold the run, and is left alone: a
# task without a sandbox may start a daemon.
run run a#leaves
exits 0 "a background process that holds the pipes"
said '^said$' "output is complete"
said '250|still held|left running' "and the cut is said"
ok "what it left is left alone" kill "$(cat "$T/left")"

stopped() { # SIGNAL CODE
	rm -f "$T/cleaned.txt" "$T/next"
	hold held
	bg run a#next
	await up >/dev/null || fail "the task did not start"
	kill -s "$1" "$BG"
	bg_wait
	exits "$2" "SIG$1: exit code"
	ok "SIG$1: the task cleaned up before vx ended" test -e "$T/cleaned.txt"
	ok "SIG$1: what needs it did not start" test ! -e "$T/next"
	ok "SIG$1: nothing is left" released
}
stopped INT 130
stopped TERM 143
stopped HUP 129

# Of the two processes of vx, the guard is the one that was started, the core its child.
core() { tr ' ' '\n' <"/proc/$1/task/$1/children" | head -n 1; }

# A signal that is ignored at the start, as by nohup, stays so.
unheard() { # SIGNAL
	hold held
	own
	env --default-signal=INT,QUIT,TERM,HUP --ignore-signal="$1" "$VX" run a#next >"$OUT" 2>"$ERR" </dev/null &
	BG=$!
	await up >/dev/null || fail "the task did not start"
	kill -s "$1" "$BG"
	kill -s "$1" "$(core "$BG")"
	kill -s TERM "$BG"
	bg_wait
	exits 143 "SIG$1, ignored at the start: it takes another one to end it"
	ok "SIG$1, ignored at the start: nothing is left" released
}
unheard HUP
unheard INT
unheard QUIT

hold held
bg run a#deaf
await up >/dev/null || fail "the task did not start"
kill -s INT "$BG"
bg_wait
exits 130 "Ctrl-C with a task that does not listen"
ok "nothing is left, not even what made a session of its own" released

hold held
bg run a#deaf
await up >/dev/null || fail "the task did not start"
is "$(cat "/proc/$BG/comm")" vx-guard "the parent is the guard"
kill -s KILL "$BG"
bg_wait
exits 137 "kill -9 of the guard"
ok "nothing is left" released

hold held
bg run a#deaf
await up >/dev/null || fail "the task did not start"
kill -s KILL "$(core "$BG")"
bg_wait
exits 137 "kill -9 of the core"
ok "nothing is left" released

# git that never ends: it opens a .gitignore that is a fifo. It holds $T/held as a task does.
mkdir "$T/bin"
put "$T/bin/git" <<E
#!/bin/sh
exec 9>$T/held
echo up >$T/up
exec $(command -v git) "\$@"
E
chmod 755 "$T/bin/git"
mkfifo .gitignore
PATH_WITHOUT=$PATH

listing_stopped() { # SIGNAL CODE WHAT ARGS...: the guard gets the signal while git lists files
	l_sig=$1 l_code=$2 l_what=$3
	shift 3
	hold held
	PATH=$T/bin:$PATH_WITHOUT
	bg run "$@"
	PATH=$PATH_WITHOUT
	await up >/dev/null || fail "git did not start"
	kill -s "$l_sig" "$BG"
	ok "$l_what: the run ends" timeout 20 tail --pid="$BG" -f /dev/null
	bg_wait
	exits "$l_code" "$l_what: exit code"
	said_not 'anceled' "$l_what: no error is said"
	ok "$l_what: git is gone" released
}
listing_stopped INT 130 "SIGINT while git lists files" a#next
listing_stopped TERM 143 "SIGTERM while git lists files" a#next
listing_stopped TERM 143 "SIGTERM while git lists files for a dry run" a#next --dry
listing_stopped KILL 137 "kill -9 of the guard while git lists files" a#next
rm .gitignore

run run a#leaves
exits 0 "the next run finds a clean place"
kill "$(cat "$T/left")"
# A task can stop the core, which is its parent.
hold held
bg run a#halt
ok "a task that stops its parent" await up
kill -TERM "$BG"
ok "does not hold up a signal" timeout 40 tail --pid="$BG" -f /dev/null
# shellcheck disable=SC2046 # pids
kill -CONT $(cat "/proc/$BG/task/$BG/children" 2>/dev/null) 2>/dev/null
bg_wait
is "$RC" 143 "which ends the run"
ok "nothing is left" released
done_testing

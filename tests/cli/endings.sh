#!/bin/sh
# SPDX-License-Identifier: MIT
# Whatever ends a run, and however hard its tasks are to end: nothing is left, plain and sandboxed. Every
# process of a task holds a FIFO open; it is released when the last one is gone.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99
fifo up held notices
cp "$VX_BUILDDIR/unruly" "$T/unruly"
ways="deaf forks sessions stopped"
WAYS="plain"
if can_sandbox; then
	WAYS="plain sandboxed"
elif [ -n "$MUST_WORK" ]; then
	# shellcheck disable=SC2154 # can_sandbox sets it
	fail "no namespaces here: $tap_why"
else
	skip "sandboxed:" "no namespaces here: $tap_why"
fi

{
	echo '{ "name": "w", "tasks": {'
	for way in $ways; do
		echo "\"plain-$way\": { \"exec\": { \"command\": \"exec 9>$T/held; exec $T/unruly $way $T/up\" } },"
		echo "\"sandboxed-$way\": { \"exec\": { \"command\": \"exec 9>$T/held; exec $T/unruly $way $T/up\", \"sandbox\": {} } },"
	done
	cat <<J
	"last": { "exec": { "command": "exec 9>$T/held; exec $T/unruly deaf $T/up", "timeout": 100 } },
	"daemon": { "exec": { "command": "exec 9>$T/held; setsid sleep 1000 & echo \$! >$T/daemon" } },
	"tidy": { "exec": { "command": "exec 9>$T/held; trap 'echo x >out; exit 0' INT TERM; echo up >$T/up; while :; do read -r x <$T/never; done" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out"] } } },
	"orphans": { "exec": { "command": "exec 9>$T/held; n=0; while [ \$n -lt 40 ]; do (true & ); n=\$((n + 1)); done; echo up >$T/up; read -r x <$T/never" } }
} }
J
} >vx.config.json
echo 1 >in
mkfifo "$T/never"
core() { tr ' ' '\n' <"/proc/$1/task/$1/children" | head -n 1; }

begin() { # ARGS...: a run whose task is up
	hold held
	bg run "$@"
	await up >/dev/null || fail "$*: did not start"
}
# What is said goes to a FIFO, of which each line is looked at.
begin_told() {
	hold held
	own
	env --default-signal=INT,QUIT,TERM,HUP "$VX" run "$@" >"$OUT" 2>"$T/notices" </dev/null &
	BG=$!
	exec 7<"$T/notices"
	await up >/dev/null || fail "$*: did not start"
}
told() { # REGEX: a line of what is said
	timeout 30 sed "/$1/q" <&7 | grep -qE -e "$1"
}
# In the middle of its grace there is nothing but the second signal, or SIGCONT, that could end it.
over() {
	timeout 30 tail --pid="$BG" -f /dev/null || {
		kill -s KILL "$BG"
		return 1
	}
}

# One signal; the stubborn are killed after their grace.
export VX_KILL_GRACE_MS=100
for kind in $WAYS; do
	for way in $ways; do
		for s in INT:130 TERM:143 HUP:129; do
			[ "$way" = deaf ] || [ $s = INT:130 ] || continue
			begin "$kind-$way"
			kill -s "${s%:*}" "$BG"
			bg_wait
			exits "${s#*:}" "$kind: SIG${s%:*}, $way"
			ok "$kind: SIG${s%:*}, $way: nothing is left" released
		done
		for who in guard core; do
			begin "$kind-$way"
			pid=$BG
			[ $who = guard ] || pid=$(core "$BG")
			kill -s KILL "$pid"
			bg_wait
			exits 137 "$kind: kill -9 of the $who, $way"
			ok "$kind: kill -9 of the $who, $way: nothing is left" released
		done
	done
done

# The second one does not wait for the grace.
export VX_KILL_GRACE_MS=600000
for kind in $WAYS; do
	for s in INT:130 TERM:143 HUP:129; do
		begin_told "$kind-deaf"
		kill -s "${s%:*}" "$BG"
		ok "$kind: SIG${s%:*} asks its task to end" told 'asked to end'
		kill -s "${s%:*}" "$BG"
		ok "$kind: a second SIG${s%:*} ends at once" over
		bg_wait
		exits "${s#*:}" "$kind: two of SIG${s%:*}"
		ok "$kind: two of SIG${s%:*}: nothing is left" released
		exec 7<&-
	done
	begin "$kind-stopped"
	kill -s INT "$BG"
	ok "$kind: what is stopped goes on to hear of it" over
	bg_wait
	exits 130 "$kind: Ctrl-C with a stopped child"
	ok "$kind: Ctrl-C with a stopped child: nothing is left" released
done

# What is stopped by vx counts for nothing.
begin tidy
kill -s INT "$BG"
bg_wait
exits 130 "a task that ends well when it is asked to"
ok "does end so" test -e out
released
run run tidy --dry
said '^▶ //#tidy  miss' "it is no hit"
is "$(python3 -c '
import os, sqlite3
print(sqlite3.connect(".vx/history.db").execute("SELECT count(*) FROM runs").fetchone()[0] if os.path.exists(".vx/history.db") else 0)')" \
	0 "and no run is recorded"

# Not when vx ends by itself.
export VX_KILL_GRACE_MS=100
hold held
"$VX" run last >"$OUT" 2>"$ERR" </dev/null &
BG=$!
await up >/dev/null
bg_wait
exits 1 "a timeout of one that does not hear"
said 'timed out after 100ms .* 137' "is a kill"
ok "nothing is left of its group" released
hold held
run run daemon
exits 0 "a daemon of a task without a sandbox"
ok "is its own" kill "$(cat "$T/daemon")"
released

# Orphans come to the core, and are reaped while it goes on.
begin orphans
cat >"$T/zombies.py" <<'P'
import sys
import time
core, end = sys.argv[1], time.monotonic() + 30
def zombies():
    n = 0
    for pid in open(f"/proc/{core}/task/{core}/children").read().split():
        try:
            n += open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            pass
    return n
while zombies() and time.monotonic() < end:
    pass
print(zombies())
P
is "$(python3 "$T/zombies.py" "$(core "$BG")")" 0 "no zombie stays while a task goes on"
kill -s TERM "$BG"
bg_wait
exits 143 "and it ends"
released
done_testing

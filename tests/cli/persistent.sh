#!/bin/sh
# SPDX-License-Identifier: MIT
# Persistent tasks: when they are ready, what waits for that, how long they stay, and how they end.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99
fifo up go held never stop said

# NAME [WHEN]: writes a line to `up`, waits for one from `go` where WHEN is given, says that it is ready, and
# serves; a line from `stop` is the code of its own end. What ends it is noted.
cat >"$T/server.sh" <<E
exec 9>$T/held
trap 'echo "\$1" >>$T/ended; exit 0' INT TERM HUP
[ ! -p /dev/stdin ] || echo "\$1" >>$T/piped
echo "\$1 begins"
echo "\$1" >$T/up
[ -z "\${2-}" ] || read -r x <$T/go
echo "\$1" >>$T/order
echo "\$1 is ready"
while :; do
	read -r code <$T/\${3-never}
	echo "\$1 says \$code"
	exit "\$code"
done
E
cat >"$T/deaf.sh" <<E
exec 9>$T/held
trap '' INT TERM HUP
(trap '' INT TERM HUP; exec setsid sleep 1000) &
echo up >$T/up
while :; do read -r x <$T/never; done
E
echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"db": { "exec": { "command": "sh $T/server.sh db wait", "persistent": { "readyWhen": "db is \\\\w+y\$" } } },
	"api": { "exec": { "command": "sh $T/server.sh api", "persistent": { "readyWhen": "ready" } }, "dependsOn": ["db"] },
	"test": { "exec": { "command": "echo test >>$T/order" }, "dependsOn": ["api"] },
	"dev": { "exec": { "command": "sh $T/server.sh dev '' stop", "persistent": {} } },
	"cached": { "exec": { "command": "echo cached >>$T/order" }, "dependsOn": ["all"],
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out"] } } },
	"all": { "dependsOn": ["web"] },
	"web": { "exec": { "command": "sh $T/server.sh web", "persistent": { "readyWhen": "ready" } } },
	"both": { "exec": { "command": "echo 3 >$T/stop; read -r x <$T/go" }, "dependsOn": ["dev"] },
	"bad": { "exec": { "command": "read -r x <$T/go; exit 1" } },
	"quick": { "exec": { "command": "echo quick >>$T/order" } },
	"mute": { "exec": { "command": "exec 9>$T/held; echo mute >$T/up; read -r x", "persistent": {} } },
	"deaf": { "exec": { "command": "sh $T/deaf.sh", "persistent": {} } },
	"late": { "exec": { "command": "exec 9>$T/held; sleep 1000", "timeout": 200, "persistent": { "readyWhen": "x" } } },
	"exits": { "exec": { "command": "exit 5", "persistent": { "readyWhen": "x" } } },
	"well": { "exec": { "command": "true", "persistent": { "readyWhen": "x" } } },
	"needs": { "exec": { "command": "echo needs >>$T/order" }, "dependsOn": ["exits", "well"] }
} }
E
for name in b c; do
	put p/$name/vx.config.json <<E
{ "name": "$name", "tasks": { "dev": { "exec": { "command": "sh $T/server.sh $name", "persistent": {} } } } }
E
done
echo 1 >p/a/in
export VX_KILL_GRACE_MS=500

# Held open, so that nobody who says that he is up waits, and no word is lost between two.
exec 8<>"$T/up"
up() { timeout 30 sh -c 'read -r who && echo "$who"' <&8; }

begin() {
	rm -f "$T/order" "$T/ended" "$T/piped"
	touch "$T/order" "$T/ended"
	hold held
}
lines() { tr '\n' ' ' <"$1"; }
answer() { timeout 30 sh -c "echo '$2' >'$T/$1'"; } # FIFO LINE
# The run has given up its lock: only servers are left of it.
stays() {
	OUT=$T/out-other ERR=$T/err-other
	run run a#quick
	exits 0 "$1"
	# shellcheck disable=SC2034 # lib.sh reads it
	OUT=$T/out ERR=$T/err
}
# FIFO REGEX ARGS...: a run in the background whose notices go to the FIFO, until one matches.
bg_notice() {
	n_fifo=$1 n_regex=$2
	shift 2
	own
	"$VX" "$@" >"$OUT" 2>"$T/$n_fifo" </dev/null &
	BG=$!
	timeout 30 sed "/$n_regex/q" "$T/$n_fifo" >"$T/notice"
	up >/dev/null
}

begin
bg run a#test
is "$(up)" db "what a task needs is started"
is "$(lines "$T/order")" "" "what needs it waits until it is ready"
answer go now
is "$(up)" api "then goes on"
bg_wait
exits 0 "a task that needs two servers"
is "$(lines "$T/order")" "db api test " "each waited for the one before"
ok "nothing is left of the servers" released
is "$(lines "$T/ended")" "api db " "they were asked to end, dependants first"
is "$(lines "$T/piped")" "db api " "their standard input is a pipe"
said 'result   3 tasks' "all are counted"
said_not 'is ready' "of those nobody asked for nothing is shown"

# A server that stays.
begin
bg run a#dev
is "$(up)" dev "a requested server"
stays "stays, and lets other runs go on"
answer stop 0
bg_wait
exits 0 "its own end ends the run"
ok "nothing is left" released
said 'vx: a#dev exited with code 0' "which says so"
said '^└─ a#dev ── \(.*\) ready' "its frame was closed when it was ready"
said '^tasks .* 1 running' "and the footer counts it"
sed -n '/^result/,$p' "$OUT" >"$T/below"
like "$T/below" '^dev says 0$' "what it prints later comes below the footer, as it is"

begin
bg run a#dev
up >/dev/null
stays "a server that will fail"
answer stop 3
bg_wait
exits 1 "fails the run"
said 'vx: a#dev exited with code 3' "and is named"
released

# More of them than places; the first end is the end of all.
begin
bg run dev --all --concurrency 1
{ up; up; up; } >"$T/names"
is "$(sort "$T/names" | tr '\n' ' ')" "b c dev " "all are up, whatever --concurrency says"
stays "all stay"
answer stop 0
bg_wait
exits 0 "one ends by itself"
ok "then nobody is left" released
is "$(sort "$T/ended" | tr '\n' ' ')" "b c " "as the others are asked to end"
said '^▸ +[0-9]+ms  ready +no-cache  b#dev' "each has a line when it is ready"
sed -n '/^result/,$p' "$OUT" >"$T/below"
like "$T/below" '^a#dev │ dev says 0$' "below the footer each line names its task"
like "$T/below" '^b#dev │ b begins$' "from the first one on"
said 'vx: a#dev exited with code 0' "it is said who ended it"

# On a terminal the summary is there though the server says nothing more, and no live region is.
cat >"$T/terminal.py" <<'E'
import os, pty, select, sys
up = os.open(sys.argv[1], os.O_RDWR)
pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
while b"1 running \xc2\xb7" not in said and select.select([fd], [], [], 30)[0]:
    said += os.read(fd, 65536)
seen = b"1 running \xc2\xb7" in said
os.read(up, 100)
os.write(fd, b"\3")
try:
    while select.select([fd], [], [], 30)[0]:
        said += os.read(fd, 65536)
except OSError:
    pass
sys.stdout.buffer.write(said.replace(b"\r", b""))
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if seen else 99)
E
for words in "a#mute" "mute --filter=a"; do
	begin
	# shellcheck disable=SC2086 # words
	try env TERM=xterm NO_COLOR=1 python3 "$T/terminal.py" "$T/up" "$VX" run $words
	exits 130 "on a terminal, Ctrl-C: $words"
	sed -n '/result  /,$p' "$OUT" >"$T/below"
	like "$T/below" 'result   1 task .* 1 running' "the summary is there"
	unlike "$T/below" 'tasks$' "and nothing of a live region below it"
	ok "nothing is left" released
done

for mode in none errors-only hash-only; do
	begin
	bg run a#dev b#dev --output-logs=$mode
	up >/dev/null
	up >/dev/null
	stays "--output-logs=$mode"
	answer stop 3
	bg_wait
	exits 1 "--output-logs=$mode: a server that fails"
	ok "nothing is left" released
	said_not '│ ' "--output-logs=$mode: nothing of what they print"
	[ $mode != hash-only ] || said '^ready a#dev [0-9a-f]{64}$' "a line for one that is ready"
	[ $mode != errors-only ] || said '^dev says 3$' "but the frame of the one that failed"
done

try env CI=1 timeout 60 "$VX" run a#needs
exits 1 "CI: a server that ends before it is ready"
said '┌─ a#exits > failed \(never ready: exit 5\)' "is called that, with its own code"
said 'skipped • blocked by a#exits' "what needs it is not run"
try env CI=1 timeout 60 "$VX" run a#well
exits 0 "one that ends well"
said '┌─ a#well > success' "counts as ready"

hold held
run run a#late
exits 1 "a server that is not ready in time"
said 'failed \(never ready: timed out after 200ms \(exec\.timeout\), exit 143\)' "is called that"
ok "and is ended" released

hold held
try env VX_READY_NOTICE_MS=1 "$VX" run a#late
said '^vx: a#late is not ready yet: .*; it is ended after 200ms by exec\.timeout$' "what limits it is named before that"
released

# Longer than an argument may be.
mkdir -p p/d
python3 - >p/d/vx.config.json <<'E'
import json
print(json.dumps({"name": "d", "tasks": {"big": {"exec": {"command": "true " + "x" * 200000, "persistent": {}}}}}))
E
run run d#big
exits 1 "a server that cannot be started"
said 'd#big .* failed \(never ready: could not be started\)' "is called that, without an exit that it never had"
rm -r p/d

# It is waited for in silence for a while, then with a word.
begin
export VX_READY_NOTICE_MS=1
bg_notice said 'not ready yet' run a#db
unset VX_READY_NOTICE_MS
like "$T/notice" '^vx: a#db is not ready yet: no line matches readyWhen db is .w\+y\$; nothing limits how long it may take$' \
	"readyWhen that does not come is named, and what limits it"
kill -s TERM "$BG"
bg_wait
exits 143 "a server that is not ready can be ended"
ok "nothing is left" released

# Not started when nothing needs it.
begin
bg run a#cached
up >/dev/null
bg_wait
exits 0 "a task with a cache"
released
rm "$T/order"
run run a#cached
exits 0 "once more"
said 'all cached' "now a hit"
ok "starts no server" test ! -e "$T/order"
run run a#cached --dry
said '^− a#web  not needed, not started' "--dry says so"
run run a#dev --dry
said '^· a#dev  persistent' "and what a server is"

# A failure keeps none, unless everything is to go on.
begin
bg run a#dev a#bad
up >/dev/null
answer go on
bg_wait
exits 1 "a server beside a failure"
ok "does not stay" released
is "$(lines "$T/ended")" "dev " "it is asked to end"
begin
bg run a#dev a#bad --continue=always
up >/dev/null
answer go on
stays "--continue=always: it stays"
answer stop 0
bg_wait
exits 1 "the failure is what counts"
released

begin
bg_notice said 'exited with code 3' run a#both
answer go on
bg_wait
exits 1 "a server that dies under a task"
like "$T/notice" '^vx: a#dev exited with code 3$' "is named"
said '^◼ .*failed \(exit 3\).*a#dev' "and has failed"
ok "nothing is left" released

# Signals; nothing is left whoever dies.
core() { tr ' ' '\n' <"/proc/$1/task/$1/children" | head -n 1; }
ended() { # SIGNAL WHO CODE TASKS... : a run with its servers up
	e_sig=$1
	e_who=$2
	e_code=$3
	shift 3
	begin
	bg run "$@"
	up >/dev/null
	stays "$*: up"
	pid=$BG
	[ "$e_who" = guard ] || pid=$(core "$BG")
	kill -s "$e_sig" "$pid"
	bg_wait
	exits "$e_code" "SIG$e_sig for the $e_who of $*"
	ok "nothing is left" released
}
for task in a#dev a#deaf; do
	ended INT guard 130 $task
	ended TERM guard 143 $task
	ended HUP guard 129 $task
	ended KILL guard 137 $task
	ended KILL core 137 $task
done
begin
bg run a#test
up >/dev/null
kill -s INT "$BG"
bg_wait
exits 130 "Ctrl-C before it is ready"
ok "nothing is left" released
is "$(lines "$T/order")" "" "nothing else was begun"

put p/e/vx.config.json <<'E'
{ "name": "e", "tasks": { "s": { "exec": { "command": "true", "persistent": { "readyWhen": "a(?=b)" } } } } }
E
run run e#s
exits 2 "a pattern that is not supported"
said 'p/e/vx\.config\.json:1:[0-9]+: tasks\.s\.exec\.persistent\.readyWhen: is no regular expression: at character 2: looks ahead' \
	"is refused with its place"
done_testing

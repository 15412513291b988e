#!/bin/sh
# SPDX-License-Identifier: MIT
# A persistent task in a sandbox: what it sees of a workspace that goes on changing, what is told of it while it runs,
# and what is left of it however it ends.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3
fifo to from said held never
# Held open, so that no line is lost between two readers.
exec 6<>"$T/from" 7<>"$T/said" 8<>"$T/to"
export VX_KILL_GRACE_MS=500

# A server that does what it is told, and answers.
cat >"$T/server.sh" <<E
exec 9>$T/held
echo "\$1 is ready"
while read -r line <$T/\${2:-to}; do
	eval "\$line" >/tmp/answer 2>&1
	tr '\n' ' ' </tmp/answer >/tmp/line
	echo >>/tmp/line
	cat /tmp/line >$T/from
done
E
cat >"$T/watch.py" <<'E'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if libc.inotify_add_watch(fd, b"src", 0x8) < 0:  # CLOSE_WRITE
    sys.exit("inotify")
with open(sys.argv[1], "w") as f:
    f.write("watching\n")
print(os.read(fd, 4096)[16:].rstrip(b"\0").decode())
E
echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"dev": { "exec": { "command": "exec sh $T/server.sh dev", "persistent": { "readyWhen": "dev is ready" },
		"sandbox": { "allow": { "read": ["src"], "write": ["out"] } } } },
	"deaf": { "exec": { "command": "trap '' TERM INT HUP; exec sh $T/server.sh deaf", "persistent": { "readyWhen": "ready" },
		"sandbox": { "allow": { "write": ["out"] } } } },
	"start": { "exec": { "command": "exec sh $T/server.sh start", "persistent": {}, "sandbox": {} } },
	"never": { "exec": { "command": "exec sh $T/server.sh no never", "timeout": 300, "persistent": { "readyWhen": "up" }, "sandbox": {} } },
	"plain": { "exec": { "command": "exec sh $T/server.sh plain", "persistent": { "readyWhen": "ready" } } },
	"test": { "exec": { "command": "echo 'cat src/s' >$T/to; read -r x <$T/from; echo \"it says \$x\"", "sandbox": {} }, "dependsOn": ["dev"] },
	"kept": { "exec": { "command": "echo 'cat secret' >$T/to; read -r x <$T/from; echo tested", "sandbox": {} }, "dependsOn": ["dev"],
		"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } },
	"nosy": { "exec": { "command": "echo 'cat secret' >$T/to; read -r x <$T/from; echo tested", "sandbox": {} }, "dependsOn": ["dev"] },
	"box": { "exec": { "command": "echo box >out/box", "sandbox": { "allow": { "write": ["out"] } } } }
} }
E
put p/b/vx.config.json <<E
{ "name": "b", "tasks": { "dev": { "exec": { "command": "exec sh $T/server.sh b never", "persistent": {}, "sandbox": {} } } } }
E
mkdir -p p/a/src p/a/out
echo one >p/a/src/s
echo key >p/a/secret
echo far >p/b/file

# ARGS...: a run in the background. All that it says goes through a FIFO into $T/log.
serve() {
	: >"$T/log"
	hold held
	own
	env --default-signal=INT,TERM,HUP "$VX" "$@" >"$T/said" 2>&1 </dev/null &
	BG=$!
}
# REGEX: waits until it says a line like that.
heard() { timeout 30 sed -u -E "\\%$1%q" <&7 >>"$T/log"; tail -n 1 "$T/log" | grep -qE "$1"; }
tell() { echo "$1" >&8; }
# TEXT: the server's answer.
ask() {
	tell "$1"
	answer
}
answer() { timeout 30 sh -c 'read -r line && echo "$line"' <&6; }
# CODE NAME: the run has ended, and nobody is left.
ends() {
	bg_wait
	echo "that is all" >&7
	heard '^that is all$'
	cp "$T/log" "$OUT"
	: >"$ERR"
	exits "$1" "$2"
	ok "$2: nobody is left" released
}
scratches() { find .vx/scratch* -maxdepth 1 -name 'vx-scratch-*' 2>/dev/null | wc -l; }
# NAME: what was moved out is there, and goes; then no scratch is left.
moved_out() {
	m_path=$(sed -n 's/^note: p.a.out.\.husky .* now //p' "$OUT")
	is "$(cat "$m_path/h" 2>&1)" planted "$1: it is whole where it is now"
	not_ok "$1: and not where it was" test -e p/a/out/.husky
	case $m_path in
	*/vx-moved-out-*) rm -r "${m_path%/*}" ;;
	esac
	clean "$1"
}
plant='mkdir out/.husky; echo planted >out/.husky/h'

# --- while it runs -------------------------------------------------------------------------------

serve run a#dev
ok "ready by its output" heard '^└─ a#dev ── .* ready$'
is "$(ask 'readlink /proc/self/fd/0 | cut -d: -f1')" pipe "its standard input is a pipe"
is "$(ask 'cat src/s; ls -A; ls ../b 2>&1 | wc -l')" "one out src 1" "it sees what is granted, and no more"
tell "python3 $T/watch.py $T/from"
is "$(answer)" watching "it watches"
echo two >p/a/src/s
is "$(answer)" s "an edit of a granted file is told to it"
is "$(ask 'cat src/s')" "two" "and seen"
is "$(ask 'cat secret >/dev/null 2>&1 || echo no')" "no" "what is not granted cannot be read"
ok "which is told while it runs" heard '^vx: denied read p/a/secret  by cat \(pid [0-9]+\)$'
ok "with what would allow it" heard '^    to allow it: allow\.read: \["secret"\]$'
ask 'cat secret ../b/file' >/dev/null
is "$(ask 'echo new >out/n; echo mark >/tmp/mark; echo done')" "done" "it writes where that is granted"
is "$(cat p/a/out/n)" new "which is there at once"
ask 'echo x >note' >/dev/null
ok "a refused write is told, too" heard '^vx: denied write p/a/note  by sh'
run run a#box
exits 0 "another run, with a scratch of its own"
is "$(cat p/a/out/box)" box "ends as ever"
is "$(scratches)" 1 "and leaves alone that of the server"
is "$(ask 'cat /tmp/mark')" "mark" "which goes on"
ask "$plant" >/dev/null
tell 'exit 0'
ends 1 "a server with violations that ends by itself"
said '^vx: a#dev exited with code 0$' "its own code is told"
said 'SANDBOX VIOLATIONS \([0-9]+\)' "and what it did"
is "$(grep -c '^vx: denied read' "$OUT")" 1 "a name is told once while it runs"
is "$(sed -n '/VIOLATIONS/,$p' "$OUT" | grep -c '^read p/a/secret  by cat')" 1 "and once at the end"
said_not 'denied read p/b/file' "what is walled off elsewhere is no violation"
said '^write p/a/out/\.husky$' "what it planted is found"
said '^note: p/a/out/\.husky came to be .* now .*/vx-moved-out-' "and named, with where it is now"
said '^└─ a#dev ── .* failed \(exit 1, [0-9]+ sandbox violations\)' "it has failed"
moved_out "a server that ends"

serve run dev --all
ok "of several" heard 'result .* 2 running'
ask 'cat secret' >/dev/null
ok "the line is below its name" heard '^a#dev │ vx: denied read p/a/secret '
kill -s TERM "$BG"
ends 143 "SIGTERM"
clean "SIGTERM"

# Bounded.
for k in $(seq 25); do echo "$k" >"p/a/k$k"; done
serve run a#dev
heard ' ready$'
ask 'for k in $(seq 25); do cat k$k; done' >/dev/null
ok "many" heard '^vx: a#dev: more is denied to it, and told when it ends$'
tell 'exit 0'
ends 1 "many violations"
is "$(grep -c '^vx: denied read' "$OUT")" 10 "the first ones of a directory are told while it runs"
said 'SANDBOX VIOLATIONS \(25\)' "all are counted"
said '^… and 22 more to read in p/a$' "and told at the end"
rm p/a/k*

serve run a#start --output-logs=none
ask 'cat secret' >/dev/null
ok "where its output is not shown, a notice" heard '^vx: a#start: denied read p/a/secret  by cat .*; to allow it: allow\.read: \["secret"\]$'
tell 'exit 3'
ends 1 "ready at its start"
said '^vx: a#start: 1 sandbox violation$' "and their number"

# --- however it ends -----------------------------------------------------------------------------

for word in "INT 130" "TERM 143" "HUP 129"; do
	for task in dev deaf; do
		name="SIG${word% *}, $task"
		serve run a#$task
		heard ' ready$'
		ask "$plant" >/dev/null
		kill -s "${word% *}" "$BG"
		ends "${word#* }" "$name"
		said '^write p/a/out/\.husky$' "$name: what it planted is found"
		moved_out "$name"
	done
done
serve run a#deaf
heard ' ready$'
ask "$plant" >/dev/null
export VX_KILL_GRACE_MS=1000000
kill -s INT "$BG"
heard '^vx: stopping'
kill -s INT "$BG"
ends 130 "a second Ctrl-C"
moved_out "a second Ctrl-C"
export VX_KILL_GRACE_MS=500

# Nobody is left to report it.
serve run a#dev
heard ' ready$'
ask "$plant" >/dev/null
kill -s KILL "$(tr ' ' '\n' <"/proc/$BG/task/$BG/children" | head -n 1)"
ends 137 "kill -9 of the core"
not_ok "kill -9 of the core: what it planted is moved out" test -e p/a/out/.husky
m_tag=$(printf %s "$W" | sha256sum | cut -c 1-12)
m_path=$(find .vx/scratch* "/var/tmp/vx-scratch-$(id -u)" -maxdepth 1 -name "vx-moved-out-$m_tag-*" 2>/dev/null)
is "$(cat "$m_path"/*.husky/h 2>&1)" planted "kill -9 of the core: and kept"
[ -z "$m_path" ] || rm -r "$m_path"
clean "kill -9 of the core"

# What needs it.
serve run a#test
ends 0 "a task that needs it"
said '^it says two$' "waits until it is ready, and uses it"
said_not 'violation' "nothing is wrong"
clean "torn down"
serve run a#nosy
ends 1 "one whose server does what it may not"
said '^tested$' "goes through"
said '^vx: a#dev: denied read p/a/secret  by cat' "which is told while it runs"
said 'a#dev > failed \(exit 1, 1 sandbox violation\)' "and fails the run"
said '^read p/a/secret  by cat' "by name"
said '^failed +a#dev$' "though vx ended it"
clean "torn down"
serve run a#kept
ends 1 "one that would be saved"
said 'not saved: a#dev, which it needs, has sandbox violations' "is not"
serve run a#kept
ends 1 "so it is no hit"
clean "torn down"

# --- without a block -----------------------------------------------------------------------------

serve run a#plain --sandbox
ok "--sandbox" heard '^└─ a#plain ── .* ready$'
is "$(ask 'cat src/s secret ../b/file 2>/dev/null; echo plain >new; echo y >src/s; echo done')" "two key done" "its project is granted, and no other"
is "$(cat p/a/new p/a/src/s | tr '\n' ' ')" "plain y " "what it writes there is there at once"
tell 'exit 0'
ends 0 "as a task without a cache has it"
said_not 'violation' "nothing is wrong"

# --- never ready ---------------------------------------------------------------------------------

serve run a#never
ends 1 "one that is not ready in time"
said 'failed \(never ready: timed out after 300ms \(exec\.timeout\), exit 143\)' "is called that"
clean "a time-out"
try "$VX_BUILDDIR/deny" namespaces -- "$VX" run a#test
exits 1 "without namespaces"
said 'never ready: could not be started' "it is never ready"
said 'sandbox not available: .*namespace' "with the cause"
said 'skipped • blocked by a#dev' "what needs it is not run"
if [ "$(id -u)" = 0 ]; then
	try unshare --mount sh -c 'mount --bind /dev/null /dev/fuse && exec "$@"' - "$VX" run a#dev
	exits 1 "without /dev/fuse"
	said 'never ready: could not be started' "it is never ready"
	said 'sandbox not available: the live view needs /dev/fuse' "with the cause"
fi
clean "never ready"
done_testing

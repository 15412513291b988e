#!/bin/sh
# SPDX-License-Identifier: MIT
# Frames, the footer, plain output in a pipe, colour variables, --output-logs, a closed pipe.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/a/vx.config.json <<'E'
{ "name": "a", "tasks": {
	"hello": { "exec": { "command": "echo to-stdout; echo to-stderr >&2" } },
	"color": { "exec": { "command": "printf '\\033[31mred\\033[0m force=%s no=%s\\n' \"${FORCE_COLOR-}\" \"${NO_COLOR-}\"" } },
	"big": { "exec": { "command": "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done" } },
	"bad": { "exec": { "command": "echo why; exit 4" } }
} }
E
put p/b/vx.config.json <<'E'
{ "name": "b", "tasks": { "hello": { "exec": { "command": "echo b-speaks" } }, "bad": { "exec": { "command": "true" } } } }
E
esc=$(printf '\033')

run run a#hello
exits 0 "one requested task"
said '^┌─ a#hello' "a frame opens"
said '^\$ echo to-stdout; echo to-stderr >&2' "with the command"
said '^to-stdout$' "content streams, raw, without a prefix"
said '^to-stderr$' "both streams"
said '^└─ a#hello ── \(.*\) success' "and it closes with time and outcome"
said '─ vx [0-9]' "the footer"
said '1 task ' "counts"
run run a#hello b#hello
exits 0 "several requested tasks"
said '^┌─ a#hello > success' "whole frames, with the outcome in front"
said '^├─ STDOUT, STDERR ─' "sections only for what was printed: both"
said '^├─ STDOUT ──' "one"
not_ok "no escape bytes in a pipe" grep -q "$esc" "$OUT" "$ERR"
not_ok "no carriage returns in a pipe" grep -q "$(printf '\r')" "$OUT" "$ERR"

run run hello --all
exits 0 "broad"
said '^⏺ .*a#hello' "one line per task"
said_not 'to-stdout' "no output of tasks that went well"

run run bad --all
exits 1 "broad with a failure"
said '┌─ a#bad > failed \(exit 4\)' "its frame is shown"
said '^why$' "with what it printed"
cat "$OUT" "$ERR" | grep -n 'why' | tail -n 1 | cut -d: -f1 >"$T/why"
cat "$OUT" "$ERR" | grep -n '─ vx ' | tail -n 1 | cut -d: -f1 >"$T/footer"
ok "above the footer" test "$(cat "$T/why")" -lt "$(cat "$T/footer")"

run run hello --all --output-logs=full
said '^to-stdout$' "--output-logs=full shows it all"
run run hello --all --output-logs=none
said_not 'a#hello' "--output-logs=none: the footer only"
said '2 tasks' "which is there"
run run bad --all --output-logs=errors-only
said_not '^⏺' "--output-logs=errors-only: only failures"
said '^why$' "which are there"
run run hello --all --output-logs=hash-only
said 'success a#hello' "--output-logs=hash-only"

# Colours.
try env NO_COLOR=1 "$VX" run a#color
said 'no=1$' "NO_COLOR reaches the task"
not_ok "and vx prints plain: the task's escapes are stripped" grep -q "$esc" "$OUT" "$ERR"
try env FORCE_COLOR=1 "$VX" run a#color
ok "FORCE_COLOR colours a pipe" grep -q "$esc" "$OUT"
run run a#color
said 'force=1' "a task is told to colour unless someone said no"

# A reader that goes away changes nothing.
own
("$VX" run a#big --output-logs=full 2>"$ERR"; echo $? >"$T/rc") </dev/null | head -n 1 >/dev/null
is "$(cat "$T/rc")" 0 "a closed pipe"

# The crash tests hold vx at a line by the bytes before it.
try env VX_DEBUG=phase "$VX" run a#color
not_ok "what VX_DEBUG says begins with a time of nine digits" grep -vE '^vx\[[a-z]+\] [0-9]{9} us: ' "$ERR"

# CI: frames for everything.
try env CI=1 "$VX" run hello --all
said '┌─ a#hello > success' "CI shows frames in broad runs"

# On a terminal there is a live region, gone at the end, and colour.
terminal='import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'
try env TERM=xterm python3 -c "$terminal" "$VX" run hello --all
exits 0 "on a terminal"
ok "coloured" grep -q "$esc" "$OUT"
like "$OUT" 'vx [0-9]' "and the footer is there"
try env TERM=xterm NO_COLOR=1 python3 -c "$terminal" "$VX" run hello --all
not_ok "NO_COLOR on a terminal: no colour" grep -qE "$esc\[[0-9;]*m" "$OUT"
like "$OUT" 'vx [0-9]' "NO_COLOR on a terminal: the footer is there"
done_testing

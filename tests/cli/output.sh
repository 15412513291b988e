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

# GitHub Actions: a group for each frame, an error for each failure, and nothing that a task prints is a command.
put p/g/vx.config.json <<'E'
{ "name": "g", "tasks": {
	"evil": { "exec": { "command": "echo '::set-output name=x::y'; echo ' ##[endgroup]'; printf '::no-newline'" } },
	"bad%": { "exec": { "command": "echo '::error::mine'; exit 3" } }
} }
E
gha() { try env CI=true GITHUB_ACTIONS=true "$VX" "$@"; }
gha run evil --all
exits 0 "GitHub Actions"
is "$(sed -E 's/^(::(stop-commands::)?)[0-9a-f]{32}/\1TOKEN/; s/\([0-9.ms]+\)/(TIME)/; s/──+/─/' "$OUT" | sed '/^─ vx/,$d')" "::group::g#evil > success
::stop-commands::TOKEN
┌─ g#evil > success
\$ echo '::set-output name=x::y'; echo ' ##[endgroup]'; printf '::no-newline'
├─ STDOUT ─
::set-output name=x::y
 ##[endgroup]
::no-newline
└─ g#evil ─ (TIME) success

::TOKEN::
::endgroup::" "a group, in which nothing is a command"
cp "$OUT" "$T/first"
gha run evil --all
is "$(sort "$T/first" "$OUT" | uniq -d | grep -c '^::stop-commands')" 0 "the token is another one in each run"
gha run evil bad% --all --continue=always
is "$(grep '^::stop-commands' "$OUT" | sort -u | wc -l)" 2 "and in each frame: a task may have read the log"
gha run bad% --all
exits 1 "a failure"
is "$(head -n 1 "$OUT")" "::error title=g#bad%25::g#bad%25 failed (exit 3)" "opens with an error, escaped"
is "$(grep -c '^::error' "$OUT")" 2 "which vx says once"
said_not '^::group::' "and is not folded"
is "$(awk '/^::stop-commands::/ { t = $0; sub(/.*::/, "", t); on = 1; next } $0 == "::" t "::" { on = 0; next } /^::error::mine/ { print on }' "$OUT")" 1 \
	"the task's own is none"
try env GITHUB_ACTIONS=true "$VX" run evil --all --output-logs=full
said_not '^::(group|stop)' "only under CI"
fifo up go
put p/g/vx.config.json <<E
{ "name": "g", "tasks": { "serve": { "exec": { "command": "echo ::add-mask::x; echo up >$T/up; read -r x <$T/go; printf ::no-newline", "persistent": {} } } } }
E
CI=true
GITHUB_ACTIONS=true
export CI GITHUB_ACTIONS
bg run g#serve
await up >/dev/null || fail "the server did not start"
echo >"$T/go"
bg_wait
unset CI GITHUB_ACTIONS
is "$(sed -n '/^─ vx/,$p' "$OUT" | sed '1,/^result/d' | sed -E 's/[0-9a-f]{32}/TOKEN/')" "::stop-commands::TOKEN
::add-mask::x
::no-newline
::TOKEN::" "nor is what a server prints below the footer"
rm p/g/vx.config.json

# A failure is not printed twice in one place, but comes again where it is out of sight.
put p/c/vx.config.json <<'E'
{ "name": "c", "tasks": {
	"bad": { "exec": { "command": "echo reason; exit 4" } },
	"short": { "dependsOn": ["bad"], "exec": { "command": "echo short" } },
	"long": { "dependsOn": ["bad"], "exec": { "command": "i=0; while [ $i -lt 50 ]; do echo $i; i=$((i+1)); done" } }
} }
E
run run c#bad c#short --continue
is "$(grep -c '^reason$' "$OUT")" 1 "two requested tasks, the first of which fails: one frame"
said_not 'once more' "and no more"
run run c#bad c#long --continue
is "$(grep -c '^reason$' "$OUT")" 2 "a lot is printed after it: once more above the footer"
is "$(sed -n '/^─ once more, what failed/,/^─ vx/p' "$OUT" | grep -c '^reason$')" 1 "under a heading that says so"
rm p/c/vx.config.json

# A table of all tasks.
run run a#hello b#hello --verbosity=1
said '^status  *cache  *time  *cpu  *peak  *key  *task$' "--verbosity=1: a table"
said '^success  *no-cache  *[0-9.]+m?s  .*[0-9a-f]{8}  a#hello$' "of all tasks"
is "$(grep '^status \|^─ vx' "$OUT" | cut -c1-6 | head -n 1)" "status" "above the footer"
run run a#hello --verbosity 0
said_not '^status' "--verbosity=0: none"
run run a#hello --verbosity=much
exits 2 "--verbosity=much"

# A task that leaves a colour on leaves it to nobody.
put p/c/vx.config.json <<'E'
{ "name": "c", "tasks": { "red": { "exec": { "command": "printf '\\033[31mred'" } } } }
E
try env FORCE_COLOR=1 "$VX" run c#red b#hello
ok "a frame ends what a task has switched on" grep -q "^$esc\[31mred$esc\[0m$" "$OUT"
try env FORCE_COLOR=1 "$VX" run c#red
ok "so does one that streams" grep -q "^$esc\[31mred$esc\[0m$" "$OUT"

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

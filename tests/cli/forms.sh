#!/bin/sh
# SPDX-License-Identifier: MIT
# What of a task is printed: each outcome, in each flow and under each --output-logs: a frame, a line, or nothing.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
# TASK COMMAND: one with a cache.
with_cache() {
	printf '"%s": { "exec": { "command": "%s; echo >out-%s" }, "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out-%s"] } } }' "$1" "$2" "$1" "$1"
}
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	$(with_cache made 'echo says-made'),
	$(with_cache mute ':'),
	"bad": { "exec": { "command": "echo says-bad; exit 3" } },
	"none": { "exec": { "command": "echo says-none" } },
	"after": { "dependsOn": ["bad"], "exec": { "command": "true" } },
	"top": { "dependsOn": ["made", "none"], "exec": { "command": "true" } },
	"all": { "dependsOn": ["made", "none"] },
	"one": { "dependsOn": ["none"] }
} }
E
echo 1 >p/a/in

# ID: "frame", "line", "line frame" (at the end), "stream" (a frame that began before its outcome was known), "".
form() {
	sed '/^─ vx /,$d' "$OUT" | awk -v id="$1" '
	index($0, "┌─ " id " > ") == 1 { at = at " frame" }
	$0 == "┌─ " id { at = at " stream" }
	/^[^ ]+ +[0-9.]+m?s  / { for (i = 3; i <= NF; i++) if ($i == id && $(i - 1) != "by") at = at " line" }
	END { print substr(at, 2) }'
}
# ID WANT NAME
shown() { is "$(form "$1")" "$2" "$3"; }
edit() { echo x >>p/a/in; }
lose() { rm -f p/a/out-*; }
ci() { try env CI=true "$VX" run "$@"; }

# --- executed, up to date, restored -----------------------------------------------------------------
run run a#made a#mute
shown a#made frame "focused, requested: executed"
run run a#made a#mute
shown a#made frame "focused, requested: up to date"
said '^┌─ a#made > up-to-date$' "with that outcome"
said '^says-made$' "and what it had printed"
shown a#mute frame "also where that was nothing"
lose
run run a#made a#mute
shown a#made frame "focused, requested: restored"
said '^┌─ a#made > restored-local$' "as its frame says"
edit
run run a#made
shown a#made stream "focused, one requested: it streams"

edit
run run a#top
shown a#made "" "focused, needed: executed"
shown a#none "" "focused, needed, without a cache: executed"
shown a#top stream "while what was requested streams"
run run a#top
shown a#made "" "focused, needed: up to date"
lose
run run a#top
shown a#made "" "focused, needed: restored"
edit
run run a#all
shown a#made frame "focused: a requested group stands for what it needs"
run run a#one
shown a#none stream "also one that stands for a single one"

edit
run run made mute --all
shown a#made line "broad: executed"
said '^⏺ +[0-9.]+m?s  success +miss +a#made · p/a/in changed$' "its line: glyph, time, outcome, cache, name, and why it missed"
run run made mute --filter a
shown a#made "" "broad: up to date"
lose
run run made mute --filter a
shown a#made "" "broad: restored"
run run none --filter a
said '^⏺ +[0-9.]+m?s  success +no-cache  a#none$' "one without a cache"

edit
ci made mute --all
shown a#made frame "CI: executed"
ci made mute --all
shown a#made frame "CI: up to date, where it had printed something"
shown a#mute line "and where it had not"
said '^► +[0-9.]+m?s  up-to-date +fresh +a#mute$' "its line: up to date"
lose
ci made mute --all
shown a#made frame "CI: restored, where it had printed something"
shown a#mute line "and where it had not: restored"
said '^⇢ +[0-9.]+m?s  restored-local +local +a#mute$' "its line: restored"
try env CI=false "$VX" run made --all
shown a#made "" "CI=false is no CI"
try env CI=0 "$VX" run made --all
shown a#made "" "CI=0 is no CI"

# --- failed, skipped --------------------------------------------------------------------------------
run run a#bad a#none
shown a#bad frame "focused, requested: failed"
run run a#bad
shown a#bad stream "focused, one requested: failed"
run run a#after
shown a#bad "line frame" "focused, needed: failed, and the frame at the end"
shown a#after line "focused: skipped"
said '^⊘ +0ms  skipped • blocked by a#bad +a#after$' "its line: skipped"
said '^◼ +[0-9.]+m?s  failed \(exit 3\) +no-cache  a#bad$' "its line: failed"
is "$(sed -n '/^└─ a#bad/{n;p;}' "$OUT")" "" "a blank line behind a frame"
is "$(grep -B 1 '^┌─ a#bad' "$OUT" | head -n 1)" "" "and between the lines and it"
run run bad after --all
shown a#bad "line frame" "broad: failed"
shown a#after line "broad: skipped"
ci bad after --all
shown a#bad frame "CI: failed"
shown a#after line "CI: skipped"

# --- --output-logs ----------------------------------------------------------------------------------
edit
run run made bad after --all --output-logs=full
is "$(form a#made), $(form a#bad), $(form a#after)" "frame, frame, line" "full"
run run made bad after --all --output-logs=full
is "$(form a#made)" "frame" "full: a hit"
edit
run run made bad after --all --output-logs=errors-only
is "$(form a#made), $(form a#bad), $(form a#after)" ", line frame, line" "errors-only"
edit
run run made bad after --all --output-logs=hash-only
is "$(sed '/^$/,$d' "$OUT" | sed -E 's/[0-9a-f]{64}$/KEY/' | sort)" "failed (exit 3) a#bad KEY
skipped • blocked by a#bad a#after -
success a#made KEY" "hash-only: a line each, with outcome, name and key"
run run made bad after --all --output-logs=none
is "$(head -n 1 "$OUT" | cut -d ' ' -f 1,2)" "─ vx" "none: the footer alone"

# --- stopped ----------------------------------------------------------------------------------------
fifo up go
put p/w/vx.config.json <<E
{ "name": "w", "tasks": {
	"wait": { "exec": { "command": "echo up >$T/up; read -r x <$T/go" } },
	"next": { "dependsOn": ["wait"], "exec": { "command": "true" } } } }
E
bg run wait next --all
await up >/dev/null || fail "the task did not start"
kill -s INT "$BG"
bg_wait
exits 130 "a run that is stopped"
shown w#wait line "what was running: a line"
said '^✗ +[0-9.]+m?s  aborted +w#wait$' "its line: aborted"
shown w#next "" "what had not begun: none"
said '^tasks    [━╌]+ 1 aborted · 1 not run$' "the footer has both"
said '^result   0 tasks · 0 cached \(0%\) · stopped by a signal · ' "outside of its totals"
rm -r p/w

# --- the footer -------------------------------------------------------------------------------------
edit
run run made none bad after all --all
is "$(sed -n '/^─ vx /,$p' "$OUT" | sed -E 's/[0-9.]+m?s/TIME/g; s/[━╌]+/BAR/; s/ ─+$/ ─/; s/[0-9]+ workers?/N workers/; s/vx [0-9.]+/vx V/; s|cache /.*|cache DIR|')" \
	"─ vx V ─
projects 1
tasks    BAR 2 ok · 1 failed · 1 skipped
failed   a#bad
cache    BAR 1 missed · 2 without cache
info     N workers · cache DIR
time     TIME · max TIME avg TIME min TIME
result   4 tasks · 0 cached (0%) · 1 failed · 1 skipped · TIME" "the footer, in which a group does not count"
run run made mute --all
run run made mute --all
said '^cache    (━){24} 2 up to date$' "a bar of what was cached"
said '^result   2 tasks · 2 cached \(100%\) · all cached · ' "all cached"
not_ok "no blank at the end of a line" grep -q ' $' "$OUT"

put p/m/vx.config.json <<'E'
{ "name": "m", "tasks": { "lines": { "exec": { "command": "echo one\n\ncat <<X\ntwo\nX\n" } } } }
E
run run m#lines
is "$(sed -n '2,/^one/p' "$OUT")" "\$ echo one
  cat <<X
  two
  X
one" "a command of several lines"
done_testing

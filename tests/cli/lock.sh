#!/bin/sh
# SPDX-License-Identifier: MIT
# One run at a time in a workspace: a second one waits, and says for whom.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99
fifo up go

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"wait": { "exec": { "command": "echo up >$T/up; read -r x <$T/go; echo first >>$T/order" } },
	"quick": { "exec": { "command": "echo second >>$T/order" } }
} }
E
bg run a#wait
await up >/dev/null || fail "the first run did not start"
first=$BG

# The second one's word that it waits is the event that lets the first one end.
mkfifo "$T/says"
"$VX" run a#quick >"$T/says" 2>&1 </dev/null &
second=$!
timeout 30 sed -n "/$first\|wait/{p;q}" "$T/says" >"$T/notice" &
reader=$!
wait "$reader"
like "$T/notice" 'wait' "a second run says that it waits"
like "$T/notice" '[0-9]+' "and names the process"
ok "it has not started its task" test ! -e "$T/order"
echo go >"$T/go"
wait "$first"
is $? 0 "the first ends"
wait "$second"
is "$(tr '\n' ' ' <"$T/order")" "first second " "then the second runs"

# A lock of a run that died does not hold anybody.
bg run a#wait
await up >/dev/null || fail "it did not start"
kill -s KILL "$BG"
bg_wait
run run a#quick
exits 0 "after kill -9"

# --dry reads only: it does not wait.
bg run a#wait
await up >/dev/null || fail "it did not start"
run run a#quick --dry
exits 0 "--dry during a run"
echo go >"$T/go"
bg_wait
exits 0 "the run it looked past"

ok ".vx hides itself from git" grep -qx '\*' .vx/.gitignore
done_testing

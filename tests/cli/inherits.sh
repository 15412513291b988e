#!/bin/sh
# SPDX-License-Identifier: MIT
# What a task has of the process that vx was started as, and what it has not: neither vx's own preparations nor
# whether that was by nohup change what a command does.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99
fifo up go
put vx.config.json <<'E'
{ "name": "w", "tasks": {
	"plain": { "exec": { "command": "sh ./told.sh" } },
	"sandboxed": { "exec": { "command": "sh ./told.sh", "sandbox": { "allow": { "read": ["told.sh"] } } } },
	"live": { "exec": { "command": "sh ./told.sh", "sandbox": { "view": "live", "allow": { "read": ["told.sh"] } } } },
	"waits": { "exec": { "command": "echo up >$UP; read -r x <$GO", "env": { "passThrough": ["UP", "GO"] } } }
} }
E
# The low 28 signals: a libc keeps two above 31 for itself, as they came.
put told.sh <<'E'
echo "files $(ulimit -Sn) of $(ulimit -Hn)"
sed -n 's/^Sig\(Blk\|Ign\):.*\(.......\)$/\1 \2/p' /proc/self/status
echo "umask $(umask)"
E
hard=$(sed -n 's/^Max open files *[0-9a-z]* *\([0-9a-z]*\).*/\1/p' /proc/self/limits)
case $hard in
unlimited | ? | ??) skip_all "the hard limit of open files is $hard" ;;
esac

kinds=plain
if can_sandbox; then
	kinds="plain sandboxed live"
elif [ -n "$MUST_WORK" ]; then
	# shellcheck disable=SC2154 # can_sandbox sets it
	fail "no namespaces here: $tap_why"
else
	skip "sandboxed:" "no namespaces here: $tap_why"
	skip "live:" "no namespaces here: $tap_why"
fi
for kind in $kinds; do
	try sh -c "ulimit -Sn 90; umask 027; exec env --ignore-signal=HUP,PIPE,USR1 --block-signal=USR2 '$VX' run --output-logs=full $kind"
	exits 0 "$kind: a task"
	said "^files 90 of $hard\$" "$kind: has the limits of open files that vx was started with"
	said '^Blk 0000000$' "$kind: no signal is blocked"
	said '^Ign 0000000$' "$kind: none is ignored"
	said '^umask 0027$' "$kind: the umask is as it was"
done

export UP="$T/up" GO="$T/go"
sh -c "ulimit -Sn 90; exec '$VX' run waits" >"$OUT" 2>"$ERR" </dev/null &
BG=$!
await up >/dev/null
core=$(tr ' ' '\n' <"/proc/$BG/task/$BG/children" | head -n 1)
most=131072
[ "$hard" -ge $most ] || most=$hard
is "$(sed -n 's/^Max open files *\([0-9]*\).*/\1/p' "/proc/$core/limits")" "$most" "vx itself has more"
echo x >"$T/go"
bg_wait
exits 0 "and ends"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# What a task left in a directory that it was granted outside of the workspace is looked through, however the task
# ends: nothing of it is undone by dropping a scratch.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

export VX_KILL_GRACE_MS=200
fifo held up
D=$T/d
fresh() {
	rm -rf "$D"
	mkdir "$D"
	[ -z "${VX_TEST_OWNER:-}" ] || chown "$VX_TEST_OWNER" "$D"
}
# MORE-OF-EXEC END-OF-COMMAND
task() {
	fresh
	cat >"$T/command.sh" <<-E
		exec 9<>$T/held
		mkdir $D/.husky && echo planted >$D/.husky/h
		echo mine >$D/file
		echo x >out
		$2
	E
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": { "exec": { "command": "exec sh $T/command.sh", $1
			"sandbox": { "allow": { "write": ["out", "$D"] } } } } } }
	E
}
moved() { # NAME
	not_ok "$1: what is never written is gone" test -e "$D/.husky"
	is "$(cat "$D"/vx-moved-out.*/h 2>&1)" planted "$1: but kept, beside its place"
	is "$(cat "$D/file")" mine "$1: what was granted stays"
}
told() { # NAME
	said "^write $D/\\.husky\$" "$1: it is a violation"
	said "^note: $D/\\.husky came to be .* it is now $D/vx-moved-out\\.[0-9]+\\.[0-9]+\$" "$1: with where it is now"
}

before 'out'
task '' ''
run run t
findings 1 "a task that ends"
told "a task that ends"
moved "a task that ends"
is "$(cat out)" x "its other writes are committed"

rm out
task '' 'exit 3'
run run t
exits 1 "a task that fails"
told "a task that fails"
moved "a task that fails"

rm -f out
task '"timeout": 1000,' 'trap "" TERM; while :; do sleep 1000; done'
run run t
exits 1 "a task that takes too long"
told "a task that takes too long"
moved "a task that takes too long"
not_ok "a task that takes too long: nothing is committed" test -e out

# Nobody is left to report it.
for who in core helper; do
	task '' "echo up >$T/up; while :; do sleep 1000; done"
	hold held
	own
	"$VX" run t >"$OUT" 2>"$ERR" </dev/null &
	BG=$!
	is "$(await up)" up "$who: it runs"
	pid=$(tr ' ' '\n' <"/proc/$BG/task/$BG/children" | head -n 1)
	[ "$who" = core ] || pid=$(tr ' ' '\n' <"/proc/$pid/task/$pid/children" | head -n 1)
	kill -s KILL "$pid"
	wait "$BG"
	released
	not_ok "$who: nothing is committed" test -e out
	if [ "$who" = core ]; then
		moved "kill -9 of the core"
	else
		like "$OUT" 'was not looked through for git hooks' "kill -9 of the helper: that nobody looked is said"
	fi
done
run run --dry t
unchanged "stopped" 'out'
done_testing

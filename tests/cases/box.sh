# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that are one sandboxed command in a workspace of one project. Sourced after lib.sh.

require_fuse
cd "$W" || exit 99

# SANDBOX [MORE]: stdin is the command; runs it as task `t` with that exec.sandbox. MORE is more text
# for the task object, after "exec".
box() {
	cat >"$T/command.sh"
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": {
			"exec": { "command": "exec sh $T/command.sh", "sandbox": $1 }${2:-}
		} } }
	E
	run run t
}
# N NAME: the last run failed with exactly N findings; 0: it succeeded.
findings() {
	if [ "$1" = 0 ]; then
		exits 0 "$2"
		said_not 'sandbox violation' "$2: no finding"
	else
		exits 1 "$2"
		said "failed \\(exit [0-9]+, $1 sandbox violations?\\)" "$2: $1 finding(s)"
	fi
}
# OP PATH-REGEX [PROGRAM]: a line of the report.
reported() {
	said "^$1 $2(  by ${3:-.*}( \\(pid [0-9]+\\))?)?\$" "reported: $1 $2${3:+ by $3}"
}
# Check Z: what stands outside the write grants is as before, no scratch is left. `before` first. (box
# writes the config anew.)
before() {
	own
	listing "$W" | grep -v 'vx\.config\.json' >"$T/z-before"
}
unchanged() { # NAME
	listing "$W" | grep -v 'vx\.config\.json' >"$T/z-after"
	ok "$1: the workspace is as it was" diff "$T/z-before" "$T/z-after"
	clean "$1"
}
clean() { # NAME
	is "$(find "$W/.vx/scratch" -mindepth 1 -maxdepth 1 2>/dev/null)" "" "$1: no scratch is left"
}

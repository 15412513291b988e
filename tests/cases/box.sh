# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that are one sandboxed command in a workspace of one project. Sourced after lib.sh.

require_fuse
cd "$W" || exit 99
# Each process of a task of `box` holds this FIFO open, if it does not close what it did not open.
fifo alive
HOME=$T/home
export HOME
mkdir "$HOME"
[ -z "${VX_TEST_OWNER:-}" ] || chown "$VX_TEST_OWNER:$VX_TEST_OWNER" "$HOME"

# SANDBOX [MORE]: stdin is the command; runs it as task `t` with that exec.sandbox. MORE is more text
# for the task object, after "exec".
box() {
	cat >"$T/command.sh"
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": {
			"exec": { "command": "exec 7<>$T/alive; exec sh $T/command.sh", "sandbox": $1 }${2:-}
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
# Check Z, the end of a case: what stands outside the write grants, in the workspace and at home, is as
# before; no process of the task is alive; no scratch, mount or socket is left. (vx makes no cgroup, and on a
# machine with others some come and go.) `before` first.
# (box writes the config anew.)
everything() { # [GRANTED]: an extended expression for the paths that the task may write
	(listing "$W" && listing "$HOME" | sed 's|\./|~/|') |
		grep -vE "(^| )\./(vx\.config\.json${1:+|$1})( |/|\$)"
}
mounts_and_sockets() { cat /proc/self/mountinfo /proc/net/unix | grep -F "$T" | sed 's/^[^ ]*: //'; }
before() { # [GRANTED]
	own
	mounts_and_sockets >"$T/z-mounts"
	everything "${1:-}" >"$T/z-before"
}
unchanged() { # NAME [GRANTED]
	everything "${2:-}" >"$T/z-after"
	ok "$1: what it may not write is as it was" diff "$T/z-before" "$T/z-after"
	clean "$1"
}
clean() { # NAME
	is "$(find "$W/.vx/scratch" -mindepth 1 -maxdepth 1 2>/dev/null)" "" "$1: no scratch is left"
	is "$(mounts_and_sockets)" "$(cat "$T/z-mounts" 2>/dev/null)" "$1: no mount and no socket"
	ok "$1: no process of it is alive" all_gone
}
# The FIFO has no writer: its reader is at the end of it.
all_gone() (
	# shellcheck disable=SC2094 # one end after the other
	exec 8<>"$T/alive" 7<"$T/alive" 8>&-
	exec timeout 30 cat <&7
)

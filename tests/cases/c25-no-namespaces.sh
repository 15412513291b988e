#!/bin/sh
# SPDX-License-Identifier: MIT
# C25: the machine forbids user namespaces, in three ways. One message each, with cause and remedy, and
# nothing runs unsandboxed.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

before
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "echo ran; : >$T/ran", "sandbox": {} } } } }
E

refused() { # NAME COMMAND...: runs vx through it
	r_name=$1
	shift
	try "$@" "$VX" run t
	exits 1 "$r_name: a failed task"
	cat "$OUT" "$ERR" | grep -iE 'namespace|uid_map|user\.max_user' | sort -u >"$T/why"
	is "$(wc -l <"$T/why" | tr -d ' ')" 1 "$r_name: one line says why"
	diag "$(cat "$T/why")"
	said_not '^ran$' "$r_name: the command was not run"
	said_not 'STDERR' "$r_name: nor is it said to have printed that"
	ok "$r_name: nothing of it is there" test ! -e "$T/ran"
	said_not 'loopback|RTNETLINK' "$r_name: the message is not about loopback"
	cat "$T/why" >>"$T/texts"
}
: >"$T/texts"
refused "a seccomp filter" "$VX_BUILDDIR/deny" namespaces --
said 'seccomp' "and it names the filter"
if [ -n "${VX_TEST_OWNER:-}" ]; then
	skip "in a namespace of one user" "the workspace belongs to a user who is nobody there"
	done_testing
fi
refused "user.max_user_namespaces=0" unshare --user --map-root-user sh -c \
	'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' -
said 'max_user_namespaces' "and it names the setting"
refused "a uid map that cannot be written" unshare --user --map-root-user --mount sh -c \
	'mount -o bind,ro /proc /proc && exec "$@"' -
is "$(sort -u "$T/texts" | wc -l | tr -d ' ')" 3 "three causes, three texts"
unchanged C25
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports about task runners: exit codes, signals, what depends on what has failed or is not there.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/both.sh"

# A task that is killed counts as a success.
C30() {
	package a "$(cached build 'kill -9 $$' '"src/**"' '')"
	package b "$(cached build true '"src/**"' '')"
	workspace
	go build
	exits 1 "$C a task that is killed fails"
	said 'a#build ── .* failed \(exit 137.*SIGKILL' "$C by name, with its signal"
	go build
	is "$(nran a.build)$(nran b.build)" 21 "$C nothing of it is stored"
}

# SIGINT does not reach the tasks, or they are gone before they have cleaned up.
C31() {
	package a "\"dev\": { \"exec\": { \"command\": $(noting dev "exec 9>$T/held; trap 'read -r x <$T/clean; echo cleaned >$T/told; exit 0' INT TERM; (trap '' INT; exec sleep 300) & echo up >$T/told; while :; do wait; done") } }"
	workspace
	hold held
	if sandboxed; then
		bg run --all --sandbox dev
	else
		bg run --all dev
	fi
	is "$(heard)" up "$C a task with a trap and a child that is deaf"
	kill -s INT "$BG"
	# It does not end before it is told to: within the grace, vx waits for it.
	echo now >&7
	is "$(heard)" cleaned "$C it cleans up"
	bg_wait
	exits 130 "$C then vx ends"
	ok "$C and nobody is left" released
}
heard() { timeout 30 sh -c 'read -r line && echo "$line"' <&6; }

# What depends on a failure runs all the same, under --continue.
C33() {
	package a "$(cached build 'exit 3' '"src/**"' '')"
	for p in b c x; do
		package $p "$(cached build true '"src/**"' '' '' ', "dependsOn": ["^build"]')" "$(case $p in b) echo '"a": "*"' ;; c) echo '"b": "*"' ;; esac)"
	done
	workspace
	if sandboxed; then
		run run --all --sandbox --continue=deps-ok build
	else
		run run --all --continue=deps-ok build
	fi
	exits 1 "$C a failure"
	is "$(nran a.build)$(nran b.build)$(nran c.build)$(nran x.build)" 1001 "$C what needs it is skipped, the rest goes on"
	go build
	is "$(nran a.build)" 2 "$C it is not stored"
}

# A task that does not exist is depended on, and nobody says so.
C35() {
	package a "$(cached build true '"src/**"' '' '' ', "dependsOn": ["b#genrate"]'), $(cached ok true '"src/**"' '' '' ', "dependsOn": ["^nothing"]')"
	package b "$(cached other true '"src/**"' '')"
	workspace
	go build
	exits 2 "$C a task that is not there"
	said '^vx: .*packages/a/vx.config.json.*genrate' "$C by name and place"
	is "$(nran a.build)$(nran b.other)" 00 "$C before anything runs"
	go ok
	is "$RC$(nran a.ok)" 01 "$C ^nothing is fine"
}

# A package between two that have the task, but has none itself, breaks their order.
C36() {
	package c "$(cached build true '"src/**"' '' '' ', "dependsOn": ["^build"]')"
	package b '' '"c": "*"'
	package a "$(cached build true '"src/**"' '' '' ', "dependsOn": ["^build"]')" '"b": "*"'
	workspace
	if sandboxed; then
		run run --sandbox a#build
	else
		run run a#build
	fi
	drain
	is "$(tr '\n' ' ' <"$T/ran.log")" "c.build a.build " "$C in order, over the one between"
	echo 2 >packages/c/src/in.txt
	go build
	is "$(nran c.build)$(nran a.build)" 22 "$C and its key moves with that"
}

fifo held clean told
exec 7<>"$T/clean" 6<>"$T/told"
each C30 C31 C33 C35 C36
done_testing

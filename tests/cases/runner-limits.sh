#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports about task runners: several runs at once, and tasks that go on.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/both.sh"

# A run that ends with "database is locked", or a cache that is broken by two.
C27() {
	for p in a b c d; do
		package $p "$(cached build 'mkdir -p dist; cat src/in.txt >dist/out' '"src/**"' '"dist/**"'), $(cached lint true '"src/**"' '')"
	done
	workspace '*.log'
	own
	failed=
	for round in 1 2 3; do
		for p in a b c d; do echo $round >packages/$p/src/in.txt; done
		pids=
		for n in 1 2 3 4; do
			(go_at_once build lint) >"$T/log.$n" 2>&1 </dev/null &
			pids="$pids $!"
		done
		n=0
		for pid in $pids; do
			n=$((n + 1))
			wait "$pid" || {
				failed="$failed $round.$n($?)"
				diag_file "run $n" "$T/log.$n"
			}
		done
	done
	is "$failed" "" "$C runs at once succeed"
	go build lint
	exits 0 "$C so does one afterwards"
	is "$(cat packages/*/dist/out | tr '\n' ' ')" "3 3 3 3 " "$C every output is right"
	zero
	go build lint
	is "$(nran a.build)$(nran d.build)$(nran a.lint)$(nran d.lint)" 0000 "$C every result is known"
}
go_at_once() {
	if sandboxed; then
		set -- --sandbox "$@"
	fi
	exec timeout 120 "$VX" run --all "$@"
}

# More tasks that go on than places: the rest waits forever.
C29() {
	if sandboxed && ! sh -c 'exec 3<>/dev/fuse' 2>/dev/null; then
		skip "$C three that go on, with one place" "cannot open /dev/fuse"
		return
	fi
	for p in a b c; do
		package $p "\"dev\": { \"exec\": { \"command\": $(noting dev "exec 9>$T/held; read -r x"), \"persistent\": {} } }"
	done
	workspace
	hold held
	if sandboxed; then
		bg run --all --sandbox --concurrency 1 dev
	else
		bg run --all --concurrency 1 dev
	fi
	for n in 1 2 3; do timeout 30 sh -c 'read -r who && echo "$who"' <&8; done >"$T/up"
	is "$(sort "$T/up" | tr '\n' ' ')" "a.dev b.dev c.dev " "$C three that go on, with one place, are all up"
	kill -s TERM "$BG"
	bg_wait
	exits 143 "$C SIGTERM ends them"
	ok "$C and nobody is left" released
}

fifo held
each C27 C29
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports about task runners: several runs at once.
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

each C27
done_testing

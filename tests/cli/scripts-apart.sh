#!/bin/sh
# SPDX-License-Identifier: MIT
# What one config does to a file that it shares with others does not reach them: what they yield would depend on which
# of them are evaluated together, and be remembered.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
mkdir -p p/a p/b p/c lib
echo 'let n = 0; exports.count = () => n++;' >lib/required.cjs
echo 'import { count } from "./required.cjs"; let n = 10; export const next = () => `${n++}.${count()}`;' >lib/counter.ts
printf '\n\n  throw new Error("at " + import.meta.url);' >lib/throws.mts

# What `t` of each says.
all_say() {
	run_only run t --all --output-logs full
	is "$(cat p/a/said p/b/said p/c/said | tr '\n' ' ')" "$1 " "$2"
	[ "$RC" = 0 ] || diag_file stderr "$ERR"
}

for r in $RUNTIMES; do
	only "$r"
	rm -rf .vx p/*/vx.config.*
	for p in a b; do
		echo "import { next } from '../../lib/counter.ts'; export default { tasks: { t: { exec: { command: 'echo >said ' + next() } } } };" \
			>p/$p/vx.config.ts
	done
	echo "const { count } = require('../../lib/required.cjs'); module.exports = { tasks: { t: { exec: { command: 'echo >said ' + count() } } } };" \
		>p/c/vx.config.cjs
	all_say "10.0 10.0 0" "$r: each config counts for itself"
	is "$(starts)" 1 "$r: in one process"

	rm p/*/vx.config.*
	echo 'export const tasks = { t: { exec: { command: "echo plain >said" } } };' >lib/preset.mts
	echo "import { tasks } from '../../lib/preset.mts'; tasks.t.exec.command = 'echo mine >said'; export default { tasks };" >p/a/vx.config.mts
	for p in b c; do echo "import { tasks } from '../../lib/preset.mts'; export default { tasks };" >p/$p/vx.config.mts; done
	all_say "mine plain plain" "$r: a preset that one changes is as it was for the others"

	echo "import '../../lib/throws.mts'; export default {};" >p/a/vx.config.mts
	run_only run t --all
	exits 2 "$r: a file that throws"
	said 'p/a/vx.config.mts: throws Error: at file:///.*/lib/throws.mts \(lib/throws.mts:3:[0-9]+\)$' "$r: is named as it is called"
done
done_testing

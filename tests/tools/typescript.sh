#!/bin/sh
# SPDX-License-Identifier: MIT
# A workspace in TypeScript as people have them, with packages of npm and configs that import them and each other's presets: built
# and tested cold, warm without a runtime, and after each kind of edit with exactly those configs evaluated that rest on it.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git node
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
MODULES=${VX_NPM:-$VX_SRCDIR/build/npm}/node_modules
[ -d "$MODULES/typescript" ] || cannot "no npm packages here: ./bootstrap deps tools"
# shellcheck disable=SC2154 # of runtimes.sh
[ -d "$tap_at/deepmerge" ] || cannot "no npm packages beside the runtimes: npm ci in a copy of tests/runtimes"
began=$(date +%s)
HOME=$T/home
export HOME
mkdir "$HOME"
cd "$W" || exit 99

# --- the workspace -----------------------------------------------------------------------------

# What is installed: hoisted, but for deepmerge, which stands as pnpm has it. The tasks' node is no runtime for vx, as it
# lies in the workspace.
mkdir -p node_modules/.bin node_modules/@acme node_modules/.pnpm/deepmerge@4.2.2/node_modules node_modules/.pnpm/deepmerge@4.3.1/node_modules
cp -R --reflink=auto "$MODULES/typescript" "$MODULES/esbuild" "$MODULES/@esbuild" node_modules/
cp -R "$tap_at/defu" "$tap_at/picocolors" node_modules/
cp -R "$tap_at/deepmerge-before" node_modules/.pnpm/deepmerge@4.2.2/node_modules/deepmerge
cp -R "$tap_at/deepmerge" node_modules/.pnpm/deepmerge@4.3.1/node_modules/
ln -s .pnpm/deepmerge@4.2.2/node_modules/deepmerge node_modules/deepmerge
ln -s ../typescript/bin/tsc ../esbuild/bin/esbuild "$(command -v node)" node_modules/.bin/
for p in preset core text app; do ln -s ../../packages/$p node_modules/@acme/$p; done

put package.json <<'J'
{ "name": "acme", "private": true, "type": "module", "workspaces": ["packages/*"] }
J
put tsconfig.base.json <<'J'
{ "compilerOptions": { "module": "nodenext", "strict": true, "declaration": true, "lib": ["es2022"], "types": [], "skipLibCheck": true } }
J
echo '{ "extends": "./tsconfig.base.json", "files": [] }' >tsconfig.json
printf '%s\n' node_modules dist '*.tsbuildinfo' .vx >.gitignore
put vx.workspace.ts <<'J'
import { defineWorkspace } from "@vzn/vx";
import { affectedBase } from "./tools/branches.ts";
export default defineWorkspace({ affectedBase });
J
echo 'export const affectedBase: string = "HEAD";' | put tools/branches.ts

# NAME DEPENDENCIES: a package with sources in TypeScript.
package() {
	mkdir -p "packages/$1/src"
	cd "packages/$1" || exit 99
	put package.json <<-J
		{
			"name": "@acme/$1", "version": "1.0.0", "type": "module", "dependencies": { $2 },
			"exports": { ".": { "types": "./dist/index.d.ts", "default": "./dist/index.js" } }
		}
	J
	echo '{ "extends": "../../tsconfig.base.json", "compilerOptions": { "rootDir": "src", "outDir": "dist" }, "include": ["src"] }' >tsconfig.json
	echo "declare module 'node:test'; declare module 'node:assert';" >src/node.d.ts
	put src/index.test.ts <<-J
		import test from "node:test";
		import assert from "node:assert";
		import * as it from "./index.js";
		test("$1", () => assert.equal(it.check(), "$1"));
	J
}
mkdir -p packages/preset
echo '{ "name": "@acme/preset", "version": "1.0.0", "type": "module", "exports": { ".": "./index.ts" } }' >packages/preset/package.json
put packages/preset/index.ts <<'J'
export { library } from "./library.ts";
export * from "./checks.ts";
J
put packages/preset/library.ts <<'J'
import type { Project, Task } from "@vzn/vx";
import { defu } from "defu";
import { test } from "./checks.ts";
const build: Task = {
	exec: { command: "tsc -b" },
	dependsOn: ["^build"],
	cache: {
		inputs: { files: ["tsconfig.json", "package.json", "src/**"], workspaceFiles: ["tsconfig.base.json"] },
		outputs: { files: ["dist/**", "*.tsbuildinfo"] },
	},
};
export const library = (more: Project = {}): Project => defu(more, { tags: ["library"], tasks: { build, test } });
J
put packages/preset/checks.ts <<'J'
import type { Task } from "@vzn/vx";
export const test: Task = {
	exec: { command: "node --test dist/" },
	dependsOn: ["build"],
	cache: { inputs: { files: ["package.json"] }, outputs: { files: [] } },
};
J
echo 'export const unused = 1;' >packages/preset/unused.ts

package core ''
echo 'export const twice = (n: number): number => 2 * n; export const check = () => "core";' >src/index.ts
put vx.config.ts <<'J'
import { library } from "@acme/preset";
export default library();
J
cd "$W" || exit 99
package text '"@acme/core": "workspace:*", "@acme/preset": "workspace:*"'
# shellcheck disable=SC2016 # a template of TypeScript
echo 'import { twice } from "@acme/core"; export const text = (n: number) => `${twice(n)}`; export const check = () => "text";' >src/index.ts
put vx.config.mts <<'J'
import { defineProject } from "@vzn/vx";
import merge from "deepmerge";
import { library } from "@acme/preset";
export default defineProject(merge(library(), { tags: ["text"] }));
J
cd "$W" || exit 99
package app '"@acme/text": "workspace:*"'
echo 'import { text } from "@acme/text"; console.log(text(21)); export const check = () => "app";' >src/index.ts
put vx.config.ts <<'J'
import { bundle } from "../../tools/bundle.ts";
export default { tasks: { build: bundle("src/index.ts"), test: { exec: { command: 'test "$(node dist/app.js)" = 42' }, dependsOn: ["build"] } } };
J
cd "$W" || exit 99
put tools/bundle.ts <<'J'
export const bundle = (entry: string) => ({
	exec: { command: `esbuild ${entry} --bundle --platform=node --format=esm --outfile=dist/app.js --log-level=warning` },
	dependsOn: ["^build"],
	cache: { inputs: { files: ["package.json", "src/**"] }, outputs: { files: ["dist/**"] } },
});
J
mkdir packages/old
echo '{ "name": "@acme/old", "version": "1.0.0" }' >packages/old/package.json
put packages/old/vx.config.cjs <<'J'
const merge = require("deepmerge");
module.exports = merge({ tasks: { test: { exec: { command: "true" } } } }, { tags: ["old"] });
J
git_ init -q
git_ add -A
git_ commit -qm start

# --- cold and warm -----------------------------------------------------------------------------

PRESET='packages/core/vx.config.ts packages/text/vx.config.mts'
MERGE='packages/old/vx.config.cjs packages/text/vx.config.mts'
# WHAT CONFIG...: the next run evaluates these alone, and the one after it none: it starts no runtime.
evaluates() {
	e_what=$1
	shift
	VX_DEBUG=config run_only run build --all
	exits 0 "$r: $e_what"
	is "$(sed -n 's/.* us: \(.*\): evaluated.*/\1/p' "$ERR" | sort | tr '\n' ' ')" "$(printf '%s\n' "$@" | grep . | sort | tr '\n' ' ')" \
		"$r: $e_what: exactly what rests on it is evaluated"
	settle
}
still() {
	run_only run build --all
	exits 0 "$r: $1"
	is "$(starts)" 0 "$r: $1: no runtime is started"
}

for r in $RUNTIMES; do
	only "$r"
	rm -f .vx/configs
	rm -rf packages/*/dist packages/*/*.tsbuildinfo
	settle
	run_only run build test --all
	exits 0 "$r: cold: tsc, esbuild and node --test work"
	is "$(starts)" 2 "$r: cold: one runtime for the workspace, one for all configs"
	ok "$r: cold: what tsc made" test -s packages/text/dist/index.d.ts
	settle
	evaluates "warm"
	is "$(starts)" 0 "$r: warm: no runtime is started"
	said 'all cached' "$r: warm: all hits"

	# --- edits -------------------------------------------------------------------------------
	echo '// edited' >>packages/preset/unused.ts
	echo 'export const none = 1;' >packages/preset/new.ts
	still "an edit of what nobody imports"
	touch packages/preset/checks.ts tools/bundle.ts
	still "times alone"
	echo "// $r" >>packages/preset/checks.ts
	# shellcheck disable=SC2086 # lists of words, here and below
	evaluates "an edit behind a re-export of a package of the workspace" $PRESET
	still "the same again"
	echo "// $r" >>tools/bundle.ts
	evaluates "an edit of a relative import" packages/app/vx.config.ts
	echo "// $r" >>packages/old/vx.config.cjs
	evaluates "an edit of a config" packages/old/vx.config.cjs
	echo "// $r" >>tools/branches.ts
	evaluates "an edit of what the workspace's config imports" vx.workspace.ts
	sed -i "s|\"version\": \"1.0.0\"|\"version\": \"1.0.0\", \"description\": \"$r\"|" packages/preset/package.json
	# shellcheck disable=SC2086
	evaluates "an edit of the package's manifest" $PRESET
	git_ checkout -q packages tools
	evaluates "all as it was" vx.workspace.ts packages/app/vx.config.ts packages/core/vx.config.ts packages/old/vx.config.cjs packages/text/vx.config.mts
	still "and again"

	# What follows asks nothing of the third runtime that scripts-pure.sh and scripts-hostile.sh do not.
	[ "$r" != deno ] || continue

	# --- another version ---------------------------------------------------------------------
	ln -sfn .pnpm/deepmerge@4.3.1/node_modules/deepmerge node_modules/deepmerge
	# shellcheck disable=SC2086
	evaluates "an upgrade of a package by its link" $MERGE
	sed -i 's/"version": "[^"]*"/"version": "6.99.'"$(date +%N)"'"/' node_modules/defu/package.json
	# shellcheck disable=SC2086
	evaluates "an upgrade of a package in its place" $PRESET
	mkdir packages/text/node_modules
	cp -R node_modules/.pnpm/deepmerge@4.2.2/node_modules/deepmerge packages/text/node_modules/
	evaluates "a nearer one" packages/text/vx.config.mts
	rm -r packages/text/node_modules
	evaluates "and without it" packages/text/vx.config.mts
	ln -sfn .pnpm/deepmerge@4.2.2/node_modules/deepmerge node_modules/deepmerge
	# shellcheck disable=SC2086
	evaluates "the former one" $MERGE
	mv node_modules/deepmerge node_modules/away
	run_only run build --all
	exits 2 "$r: one that is gone"
	said 'imports "deepmerge", which no node_modules at or above it provides: install first' "$r: one that is gone: by name"
	mv node_modules/away node_modules/deepmerge

	# --- one that cannot be remembered, and what it reaches --------------------------------------
	mkdir packages/colour
	echo '{ "name": "@acme/colour" }' >packages/colour/package.json
	echo 'import c from "picocolors"; export default { tasks: { test: { exec: { command: "true" } } }, tags: [typeof c.red] };' >packages/colour/vx.config.mjs
	evaluates "one with a package that asks for the environment" packages/colour/vx.config.mjs
	evaluates "the same again: in each run" packages/colour/vx.config.mjs
	said 'packages/colour/vx.config.mjs: evaluated, as in each run: node_modules/picocolors/picocolors.js mentions process' "$r: and why"
	rm -r packages/colour
	echo "// $r" >>packages/preset/checks.ts
	run_only run test --affected --dry=json
	is "$(grep -o '"id": *"[^"]*#test"' "$OUT" | cut -d'"' -f4 | sort | tr '\n' ' ')" "@acme/app#test @acme/core#test @acme/text#test " \
		"$r: --affected: a preset reaches those whose configs import it, and what depends on them"
	git_ checkout -q packages

	# --- hostile ones: tests/cli/scripts-hostile.sh has many more ---------------------
	mkdir packages/evil
	echo '{ "name": "@acme/evil" }' >packages/evil/package.json
	export VX_CONFIG_WORKER_TIMEOUT_MS=20000
	while IFS='|' read -r what text want; do
		[ "$what" != "a loop" ] || VX_CONFIG_WORKER_TIMEOUT_MS=2000
		printf 'import { library } from "@acme/preset";\n%s\nexport default library();\n' "$text" >packages/evil/vx.config.ts
		run_only run build --all
		exits 2 "$r: $what: refused"
		said "^vx: packages/evil/vx.config.ts: .*$want" "$r: $what: by name"
		VX_CONFIG_WORKER_TIMEOUT_MS=20000
	done <<-'J'
		an exit|process.exit(0);|ended with exit code 0: a config must not end its process
		a loop|for (;;);|has not come to an end within 2000 ms
		pollution|(Object.getPrototypeOf(JSON.parse('{"a":1}')) as any).polluted = 1;|changes what all configs share: Object.prototype.polluted
		a late error|setTimeout(() => { throw new Error("late"); }, 0); await new Promise((done) => setTimeout(done, 9000));|throws Error: late
		a directory|process.chdir("/");|changes what all configs share: the working directory;
	J
	printf 'import { library } from "@acme/preset";\nconsole.log("not for standard output");\nexport default library({ tasks: { build: { exec: { command: "true" } } } });\n' >packages/evil/vx.config.ts
	run_only run build --all --dry=json
	exits 0 "$r: words on standard output: no error"
	not_ok "$r: words on standard output: not there" grep -q 'not for' "$OUT"
	ok "$r: words on standard output: but beside it" grep -q 'not for' "$ERR"
	rm -r packages/evil
	unset VX_CONFIG_WORKER_TIMEOUT_MS
done

diag "took $(($(date +%s) - began)) s"
done_testing

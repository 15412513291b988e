#!/bin/sh
# SPDX-License-Identifier: MIT
# Which configs in JavaScript and TypeScript are remembered: those whose text shows that nothing but files decides what
# they yield. One that is judged wrongly here would be out of date, or cost each run a runtime.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
cd "$W" || exit 99

n=0
: >"$T/wanted"
# WANT [ENDING]: the config on standard input, judged so ("pure", or a word of why it is not).
config() {
	n=$((n + 1))
	dir=$(printf 'p%03d' $n)
	mkdir "$dir"
	cat >"$dir/vx.config.${2:-mjs}"
	echo "$dir/vx.config.${2:-mjs}|$1" >>"$T/wanted"
}
echo '{ "projects": ["p*"] }' >vx.workspace.json
mkdir lib
echo 'export const v = {}; // process' >lib/v.ts
echo 'export { v } from "./v.ts";' >lib/again.ts
echo 'export * from "./v.ts"; export * as all from "./again.ts";' >lib/star.ts
echo 'export const v = { tags: [String(Date.now() > 0)] };' >lib/clock.ts
echo 'import { v } from "./clock.ts"; export { v };' >lib/behind.ts
echo 'import { w } from "./two.ts"; export const v = {}; export const u = () => w;' >lib/one.ts
echo 'import { v } from "./one.ts"; export const w = () => v;' >lib/two.ts
echo '{ "tags": ["x"] }' >lib/v.json
ln -s v.ts lib/link.ts
mkdir -p node_modules/installed
echo '{ "name": "installed", "exports": "./x.mjs", "type": "module" }' >node_modules/installed/package.json
echo 'export const v = {};' >node_modules/installed/x.mjs

config pure <<'J'
export default {};
J
config pure <<'J'
// process.env
/* Date.now() ' " ` */
export default { tags: ["process.env", 'Date', `fetch`, "a\"process\"", 'it\'s'] };
J
config pure <<'J'
import { v } from "../lib/v.ts"; import { v as w } from "../lib/again.ts"; import * as s from "../lib/star.ts";
export default { ...v, ...w, tags: [typeof s.all] };
J
config pure <<'J'
import { v } from "../lib/one.ts"; export default v;
J
config pure <<'J'
import v from "../lib/v.json" with { type: "json" }; export default v;
J
config pure ts <<'J'
import type { X } from "not-installed"; import { defineProject } from "@vzn/vx";
type Y = { process?: string; name: X }; interface Z { fetch: () => void }
const f = (name: string, n?: number): string => `${name}${"}"}${`${n}`}`;
export default defineProject({ tags: [f("a", 1)] as string[] });
J
config pure cjs <<'J'
const { defineProject } = require("@vzn/vx/config"); module.exports = defineProject({});
J
config pure <<'J'
const half = 4 / 2 / 1, re = /["'`/\/]process/g, list = [1].map((x) => x / 2), o = { a: /'/ };
export default { tags: [String(half), String(re.test("x")), String(list[0] / 2)] };
J
config pure <<'J'
const x = { process: 1, fetch: 2, date: new Map(), y: {}.process };
export default { tags: [Math.max(1, 2), x.process, JSON.stringify({})].map(String) };
J
config 'mentions random' <<'J'
export default { tags: ["x" + Math.random()] };
J
config 'mentions random' <<'J'
const { random: r } = Math; export default { tags: ["x" + r()] };
J
config 'mentions process' <<'J'
export default { tags: [process.env.HOME ? "x" : "y"] };
J
config 'mentions process' <<'J'
const { HOME } = process.env; export default {};
J
config 'mentions process' <<'J'
const p = `${`${process.version}`}`; export default {};
J
config 'mentions process' <<'J'
const re = /'/, x = process.version, y = "'"; export default {};
J
config 'mentions process' <<'J'
const a = 4, g = 2; const x = a / process.pid / g; export default {};
J
config 'mentions Date' <<'J'
export default { tags: [String(new Date().getDay() > 7)] };
J
config 'mentions fetch' <<'J'
export default { tags: [typeof fetch] };
J
config 'mentions await' <<'J'
export default await Promise.resolve({});
J
config 'mentions import' <<'J'
export default Promise.resolve({}).then(() => ({ tags: [typeof import("../lib/v.ts")] }));
J
config 'mentions import' <<'J'
export default { tags: [typeof import.meta.url] };
J
config 'mentions globalThis' <<'J'
const all = globalThis; export default { tags: [typeof all["pro" + "cess"]] };
J
config 'mentions constructor' <<'J'
export default { tags: [typeof (() => 1).constructor] };
J
config 'mentions eval' <<'J'
export default { tags: [typeof eval("1")] };
J
config 'mentions console' <<'J'
console.error("said"); export default {};
J
config 'mentions stack' <<'J'
export default { tags: [typeof new Error("x").stack] };
J
config 'mentions toLocaleString' <<'J'
export default { tags: [(1000).toLocaleString()] };
J
config 'mentions this' cjs <<'J'
const f = function () { return this; }; module.exports = { tags: [typeof f()] };
J
config 'mentions require' cjs <<'J'
const r = require; module.exports = { tags: [typeof r("fs")] };
J
config 'mentions module' cjs <<'J'
module.exports = { tags: [typeof module.id] };
J
config 'mentions __dirname' cjs <<'J'
module.exports = { tags: [typeof __dirname] };
J
config 'outside of strings' <<'J'
const pr\u006fcess = 1; export default { tags: ["x" + pr\u006fcess] };
J
config 'outside of strings' <<'J'
const é = 1; export default { tags: ["x" + é] };
J
config 'may begin a regular expression' <<'J'
const f = () => 4, x = f() / 2; export default { tags: ["x" + x] };
J
config 'imports "node:path"' <<'J'
import { sep } from "node:path"; export default { tags: [sep] };
J
config 'imports "installed"' <<'J'
import { v } from "installed"; export default v;
J
config 'imports "installed"' <<'J'
export { v as default } from "installed";
J
config 'lib/clock.ts: mentions Date' <<'J'
import { v } from "../lib/behind.ts"; export default v;
J
config 'lib/link.ts: lies behind a link' <<'J'
import { v } from "../lib/link.ts"; export default v;
J
mkdir "$T/outside"
echo 'export const v = {};' >"$T/outside/v.mjs"
config 'outside of the workspace' <<'J'
import { v } from "../../outside/v.mjs"; export default v;
J
mkdir p900
ln -s ../lib/v.ts p900/vx.config.ts
echo 'export const v = {}; export default v;' >lib/v.ts
echo 'p900/vx.config.ts|lies behind a link' >>"$T/wanted"
settle

export VX_DEBUG=config
for r in $RUNTIMES; do
	only "$r"
	rm -rf .vx
	run_only run none --all
	while IFS='|' read -r path want; do
		got=$(grep " us: $path: evaluated" "$ERR" | sed 's/.*: evaluated$/pure/;s/.*: evaluated, as in each run: it //')
		case $got in
		*"$want"*) pass "$r: $path: $want" ;;
		*) is "$got" "$want" "$r: $path: $(cat "$path")" ;;
		esac
	done <"$T/wanted"
	is "$(grep -c ': evaluated' "$ERR")" "$(wc -l <"$T/wanted" | tr -d ' ')" "$r: all were evaluated"
	cp "$ERR" "$T/first"
	run_only run none --all
	is "$(grep -c ': evaluated$' "$ERR")" 0 "$r: those that are pure are not evaluated again"
	is "$(grep -c ': evaluated' "$ERR")" "$(grep -c ': evaluated, as' "$T/first")" "$r: the others are"
done
done_testing

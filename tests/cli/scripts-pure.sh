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
echo 'export const v = { tags: [String(Date.now() > 0)] }; export default v;' >lib/typed.ts
ln -s v.ts lib/link.ts
# PACKAGE MANIFEST: with the module x.mjs.
package() {
	mkdir -p "$1"
	echo "$2" >"$1/package.json"
	echo 'export const v = {};' >"$1/x.mjs"
}
package node_modules/installed '{ "name": "installed", "exports": "./x.mjs", "type": "module" }'
package node_modules/@s/parts '{ "exports": { ".": { "types": "./x.d.ts", "import": { "node": "./x.mjs", "default": "./x.mjs" }, "require": "./x.cjs" }, "./x": "./x.mjs", "./all/*": "./*.mjs" } }'
echo 'exports.v = {}; require("./inner");' >node_modules/@s/parts/x.cjs
echo 'exports.v = {};' >node_modules/@s/parts/inner.js
package node_modules/optional '{ "main": "./o.js" }'
echo 'exports.v = {}; try { require("absent") } catch {}' >node_modules/optional/o.js
package node_modules/unsteady '{ "exports": { ".": { "import": "./x.mjs", "require": "./clock.cjs" } } }'
echo 'exports.v = Date.now();' >node_modules/unsteady/clock.cjs
package node_modules/old '{ "main": "lib" }'
mkdir node_modules/old/lib
echo 'module.exports = require("../two"); module.exports.again = require("again");' >node_modules/old/lib/index.js
echo 'exports.v = {};' >node_modules/old/two.js
package node_modules/again '{}'
echo 'exports.v = {};' >node_modules/again/index.js
package node_modules/large '{ "main": "x.js" }'
{ echo 'exports.v = {};'; dd if=/dev/zero bs=1024 count=300 2>/dev/null | tr '\0' '\n'; } >node_modules/large/x.js
package node_modules/sources '{ "exports": { "bun": "./y.js", "default": "./x.mjs" } }'
echo 'export const v: {} = { tags: [String(Date.now() > 0)] };' >node_modules/sources/y.ts
# Of the workspace, and as pnpm has them.
package shared/preset '{ "name": "@w/preset", "exports": "./index.ts" }'
echo 'import { v as w } from "installed"; export * from "./inner.ts"; export { w };' >shared/preset/index.ts
echo 'export const v = {};' >shared/preset/inner.ts
mkdir -p node_modules/@w
ln -s ../../shared/preset node_modules/@w/preset
package node_modules/.store/kept@1/node_modules/kept '{ "main": "x", "module": "x.mjs" }'
echo 'exports.v = require("beside").v;' >node_modules/.store/kept@1/node_modules/kept/x.js
package node_modules/.store/beside@1/node_modules/beside '{}'
echo 'exports.v = {};' >node_modules/.store/beside@1/node_modules/beside/index.js
ln -s .store/kept@1/node_modules/kept node_modules/kept
ln -s ../../beside@1/node_modules/beside node_modules/.store/kept@1/node_modules/beside
ln -s kept node_modules/twice-linked
package "$T/outside-package" '{ "exports": "./x.mjs" }'
ln -s "$T/outside-package" node_modules/outside
package node_modules/beside-file '{ "exports": "./x.mjs" }'
echo >node_modules/beside-file.js

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
config pure <<'J'
import { v } from "installed"; export default v;
J
config pure <<'J'
export { v as default } from "installed";
J
config pure <<'J'
import { v } from "@s/parts"; import { v as w } from "@s/parts/x"; export default { ...v, ...w };
J
config pure cjs <<'J'
module.exports = { ...require("@s/parts").v, ...require("old").again.v };
J
config pure <<'J'
import old from "old"; export default old.v;
J
config pure ts <<'J'
import { v } from "@w/preset"; export default v;
J
config pure <<'J'
import kept from "kept"; export default kept.v ?? {};
J
config 'node_modules/unsteady/clock.cjs mentions Date' <<'J'
import { v } from "unsteady"; export default v;
J
config 'node_modules/sources/y.ts mentions Date' <<'J'
import { v } from "sources"; export default v;
J
config 'node_modules/large/x.js is too large' cjs <<'J'
module.exports = require("large").v;
J
config 'node_modules/optional/o.js imports "absent"' <<'J'
import o from "optional"; export default o.v;
J
config 'imports "@s/parts/all/x"' <<'J'
import { v } from "@s/parts/all/x"; export default v;
J
config 'imports "twice-linked"' <<'J'
import t from "twice-linked"; export default t.v ?? {};
J
config 'imports "outside"' <<'J'
import { v } from "outside"; export default v;
J
config 'imports "beside-file"' <<'J'
import { v } from "beside-file"; export default v;
J
config 'lib/clock.ts mentions Date' <<'J'
import { v } from "../lib/behind.ts"; export default v;
J
config 'lib/typed.ts mentions Date' <<'J'
import type, { v } from "../lib/typed.ts"; export default v ?? type;
J
config 'lib/link.ts lies behind a link' <<'J'
import { v } from "../lib/link.ts"; export default v;
J
mkdir "$T/outside"
echo 'export const v = {};' >"$T/outside/v.mjs"
config 'outside of the workspace' <<'J'
import { v } from "../../outside/v.mjs"; export default v;
J
mkdir p900
ln -s ../lib/v.ts p900/vx.config.ts
# One that imports itself, and one whose manifest is a link.
mkdir p901 p902
echo '{ "name": "installed", "exports": "./x.mjs" }' >p901/package.json
echo 'export const v = {};' >p901/x.mjs
echo 'import { v } from "installed"; export default v;' >p901/vx.config.mjs
echo 'p901/vx.config.mjs|imports "installed"' >>"$T/wanted"
echo '{}' >lib/manifest.json
ln -s ../lib/manifest.json p902/package.json
echo 'export default {};' >p902/vx.config.js
# What bun alone reads.
mkdir p903
echo '{ "extends": "../lib/tsconfig" }' >p903/tsconfig.json
echo '{ "compilerOptions": { "paths": { "x": ["./y"] } } }' >lib/tsconfig.json
echo 'import { v } from "installed"; export default v;' >p903/vx.config.mjs
echo 'p903/vx.config.mjs|mapped' >>"$T/wanted"
echo 'p902/vx.config.js|rests on p902/package.json, which is a link' >>"$T/wanted"
echo 'export const v = {}; export default v;' >lib/v.ts
echo 'p900/vx.config.ts|lies behind a link' >>"$T/wanted"
settle

export VX_DEBUG=config
for r in $RUNTIMES; do
	only "$r"
	rm -rf .vx
	run_only run none --all
	while IFS='|' read -r path want; do
		got=$(grep " us: $path: evaluated" "$ERR" | sed 's/.*: evaluated$/pure/;s/.*: evaluated, as in each run: //')
		case $want$r in mappedbun) want='imports "installed"' ;; mapped*) want=pure ;; esac
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

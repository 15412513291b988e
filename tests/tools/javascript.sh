#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# Programs of npm packages in a sandbox: tsc, eslint, jest, webpack, vite. They are hoisted in the root's node_modules.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program node
MODULES=${VX_NPM:-$VX_SRCDIR/build/npm}/node_modules
[ -d "$MODULES/vite" ] || cannot "no npm packages here: ./bootstrap deps tools"
cp -R --reflink=auto "$MODULES" "$W/node_modules"
echo node_modules >>"$W/.gitignore"

# --- tsc ---------------------------------------------------------------------------------------

tool tsc 'tsc --incremental' 'tsc' '"package.json", "tsconfig.json", "src/**"' '"dist/**", "tsc.tsbuildinfo"'
echo '{ "name": "tsc", "type": "module" }' >package.json
put tsconfig.json <<'J'
{
	"compilerOptions": {
		"incremental": true, "tsBuildInfoFile": "tsc.tsbuildinfo", "module": "nodenext",
		"declaration": true, "strict": true, "rootDir": "src", "outDir": "dist", "lib": ["es5"], "types": []
	},
	"include": ["src"]
}
J
put src/index.ts <<'J'
import { twice } from "./twice.js";
export const answer: number = twice(21);
J
echo 'export const twice = (n: number): number => 2 * n;' >src/twice.ts
works dist/index.js dist/index.d.ts tsc.tsbuildinfo
not_without tsconfig.json 'read tsc/tsconfig.json'
not_without tsc.tsbuildinfo 'write tsc/tsc.tsbuildinfo'
# Where it is no output. (An old one beside outputs that are not there would have tsc make none.)
OUTPUTS='"dist/**"'
derived '1 write to tool caches discarded: tsc/tsc.tsbuildinfo'

# Without a cache it sees what it made the last time.
COMMAND='tsc --listEmittedFiles'
uncached
run run tsc#t
silent "incremental, first"
echo 'export const twice = (n: number): number => n * 2;' >src/twice.ts
run run tsc#t
silent "incremental, after an edit"
is "$(grep -o 'TSFILE: .*' "$OUT" | sed 's|.*/tsc/||' | sort | tr '\n' ' ')" \
	"dist/twice.d.ts dist/twice.js tsc.tsbuildinfo " "tsc: incremental: it made what the edit changes"
run run tsc#t
silent "incremental, once more"
is "$(grep -c TSFILE "$OUT")" 0 "tsc: incremental: nothing, when nothing changed"

# --- eslint ------------------------------------------------------------------------------------

tool eslint 'eslint --cache' 'eslint --cache src' '"package.json", "eslint.config.js", "src/**"' ''
echo '{ "name": "eslint", "type": "module" }' >package.json
put eslint.config.js <<'J'
export default [{ rules: { "no-undef": "error", "prefer-const": "error" } }];
J
echo 'export const twice = (n) => 2 * n;' | put src/twice.js
works
ok "eslint: its cache is kept" test -s .eslintcache
not_without src 'read eslint/src'
not_without .eslintcache 'write eslint/.eslintcache'
rm .eslintcache
derived '1 write to tool caches discarded: eslint/.eslintcache'
not_ok "eslint: --sandbox: it is thrown away" test -e .eslintcache

# --- jest --------------------------------------------------------------------------------------

tool jest 'jest' 'jest --ci --coverage' '"package.json", "src/**"' '"coverage/**"'
echo '{ "name": "jest", "jest": { "collectCoverageFrom": ["src/**/*.js"] } }' >package.json
echo 'exports.twice = (n) => 2 * n;' | put src/twice.js
put src/twice.test.js <<'J'
const { twice } = require("./twice");
test("twice", () => expect(twice(21)).toBe(42));
J
works coverage/lcov.info
not_without package.json 'read jest/package.json'
not_without coverage 'write jest/coverage/lcov.info'
derived

# --- webpack -----------------------------------------------------------------------------------

tool webpack 'webpack' 'webpack' '"package.json", "webpack.config.js", "src/**"' '"dist/**"'
echo '{ "name": "webpack" }' >package.json
put webpack.config.js <<'J'
module.exports = { mode: "production", entry: "./src/index.js", cache: { type: "filesystem" } };
J
echo 'export const twice = (n) => 2 * n;' | put src/twice.js
put src/index.js <<'J'
import { twice } from "./twice.js";
document.title = twice(21);
J
works dist/main.js
ok "webpack: its cache is kept" test -d node_modules/.cache/webpack
derived '[0-9]+ writes to tool caches discarded: webpack/node_modules/.cache/webpack/.*'
said_not 'cached modules' "webpack: --sandbox: and what was in it is not there"
not_without src 'read webpack/src'
rm -r node_modules
not_without node_modules/.cache 'write webpack/node_modules/.cache.*'

# --- vite --------------------------------------------------------------------------------------

tool vite 'vite build' 'vite build' '"package.json", "vite.config.js", "index.html", "public/**", "src/**"' '"dist/**"'
echo '{ "name": "vite", "type": "module" }' >package.json
put vite.config.js <<'J'
import { defineConfig } from "vite";
export default defineConfig({ build: { target: "es2022" } });
J
echo '<!doctype html><title>vx</title><script type="module" src="/src/index.ts"></script>' >index.html
put src/index.ts <<'J'
import { twice } from "./twice";
import "./style.css";
document.title = String(twice(21));
J
echo 'export const twice = (n: number): number => 2 * n;' >src/twice.ts
echo 'body { color: #333 }' >src/style.css
echo 'User-agent: *' | put public/robots.txt
NOTE='1 write discarded, as ignore.write says: node_modules/.vite-temp'
works dist/index.html dist/robots.txt
not_ok "vite: what it bundled its config in is gone" test -e "$W/node_modules/.vite-temp"
not_without public 'read vite/public'
not_without "../node_modules/.vite-temp" 'write node_modules/.vite-temp'
derived '1 write to tool caches discarded: node_modules/.vite-temp'

finish

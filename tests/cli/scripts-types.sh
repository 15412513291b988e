#!/bin/sh
# SPDX-License-Identifier: MIT
# TypeScript in which types can be hard to see: what a config yields is what it says without them. (helpers/config.mjs has a runtime take as
# JavaScript what surely has none.)
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
cd "$W" || exit 99

n=0
# The config on standard input declares the task t, which says "right"; in a package of modules, and in one that does not say what it is of.
config() {
	n=$((n + 1))
	mkdir -p "m$n" "u$n"
	tee "m$n/vx.config.ts" >"u$n/vx.config.ts"
	echo "{ \"name\": \"m$n\", \"type\": \"module\" }" >"m$n/package.json"
	echo "{ \"name\": \"u$n\" }" >"u$n/package.json"
}
echo '{ "projects": ["[mu]*"] }' >vx.workspace.json
mkdir lib
cat >lib/typed.ts <<'J'
export const id = <T>(x: T, _more?: unknown): T => x;
export const say = (command: string) => ({ tasks: { t: { exec: { command } } } });
export type Named = string;
J
cat >lib/plain.ts <<'J'
export const say = (command) => ({ tasks: { "t": { exec: { command, env: { define: { A: `${[command].map((c) => `${c}`)}` } } } } } });
J

config <<'J'
import { say } from "../lib/plain.ts"; export default say("echo right");
J
config <<'J'
import { say } from "../lib/plain.ts"; const o = { a: "right", "b": { c: [{ d: 1 }] } }; export default { ...say(`echo ${o.a}`), tags: ["x"] };
J
config <<'J'
import { id, say } from "../lib/typed.ts"; export default say(id<string>("echo right"));
J
config <<'J'
import { id, say } from "../lib/typed.ts"; export default say(id < string > ("echo right"));
J
config <<'J'
import { say } from "../lib/typed.ts"; export default say("echo right") satisfies object;
J
config <<'J'
import { say } from "../lib/typed.ts"; const f = () => { let a = 1, b: string = "right"; return b; }; export default say("echo " + f());
J
config <<'J'
import { say } from "../lib/typed.ts"; const f = (a = `${1}`, b: string) => b; export default say(f(`${2}${3}`, "echo right"));
J
config <<'J'
import { say } from "../lib/typed.ts"; const f = ({ a }: { a: string }) => a; export default say(f({ a: "echo right" }));
J
config <<'J'
import { say } from "../lib/typed.ts"; const f = ({ a, b: c }, d: string) => d; export default say(f({ a: 1, b: 2 }, "echo right"));
J
config <<'J'
import { say } from "../lib/typed.ts"; const o = { f(): string { return "echo right"; } }; export default say(o.f());
J
config <<'J'
import { say } from "../lib/typed.ts"; const x = ["echo right"]; export default say(x[0]!);
J
config <<'J'
import { say } from "../lib/typed.ts"; let x!: string; x = "echo right"; export default say(x);
J
config <<'J'
import { say, type Named } from "../lib/typed.ts"; const x = "echo right" as Named; export default say(x);
J
config <<'J'
import { say } from "../lib/typed.ts"; class A { private x = "echo right"; get y() { return this.x; } } export default say(new A().y);
J
config <<'J'
import { say } from "../lib/typed.ts"; const f = (a, b?) => a; export default say(f("echo right"));
J
config <<'J'
import { say } from "../lib/typed.ts"; const v = 1 ? "echo right" : "echo wrong"; export default say(v);
J
config <<'J'
import { say } from "../lib/typed.ts"; export const f = (x) => { switch (x) { case 1: return "echo right"; default: return ""; } }; export default say(f(1));
J
config <<'J'
import { say } from "../lib/typed.ts"; function f(x); function f(x) { return x; } export default say(f("echo right"));
J
config <<'J'
import { say } from "../lib/typed.ts"; const o = { async: "echo", of: (x) => x, from: ["right"] }; export default say(`${o.async} ${o.of(`${o.from[0]}`)}`);
J

for r in $RUNTIMES; do
	only "$r"
	for at in $(seq $n); do
		run_only run "m$at#t" "u$at#t" --output-logs=full
		exits 0 "$r: $(cat "m$at/vx.config.ts")"
		is "$(grep -cE '^(. )?right$' "$OUT")" 2 "$r: $at: both say so"
	done
done
done_testing

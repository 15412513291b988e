#!/bin/sh
# SPDX-License-Identifier: MIT
# Configs in JavaScript that yield no data, or do to their process what they may not: refused by name, under each runtime.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
cd "$W" || exit 99

put vx.workspace.json <<'J'
{ "projects": ["*"] }
J
good='export default { tasks: { t: { exec: { command: "true" } } } };'
# NAME WANT [TEXT], else standard input: the config of b, between two that are as they should be.
refused() {
	if [ $# = 3 ]; then printf '%s\n' "$3" >b/vx.config.mjs; else cat >b/vx.config.mjs; fi
	run_only run t --all
	exits 2 "$r: $1: refused"
	said "^vx: b/vx.config.mjs: $2" "$r: $1: by name"
}
# NAME VALUE WANT: a value that is no data.
no_data() { refused "$1" "$3" "export default { tasks: { t: { exec: { command: 'true', env: { define: { A: $2 } } } } } };"; }
# NAME: the config on standard input is as good as any.
accepted() {
	cat >b/vx.config.mjs
	run_only run t --all
	exits 0 "$r: $1"
}

for r in $RUNTIMES; do
	only "$r"
	rm -rf a b c
	mkdir a b c
	for p in a c; do echo "$good" >$p/vx.config.mjs; done
	# Short where it has to pass, long enough for a machine that is busy.
	export VX_CONFIG_WORKER_TIMEOUT_MS=20000

	refused "an exit" "the $r that evaluated it ended with exit code 0: a config must not end its process" \
		"process.exit(0); $good"
	refused "a kill" "the $r that evaluated it ended by signal 9 SIGKILL" \
		"process.kill(process.pid, 'SIGKILL'); await new Promise((done) => setTimeout(done, 60000)); $good"
	# The settings are evaluated before the guard of a run is there: who watches instead can be killed, too.
	mv vx.workspace.json "$T"
	printf '%s\n' "process.kill(process.ppid, 'SIGKILL'); await new Promise((done) => setTimeout(done, 60000)); export default { projects: ['*'] };" >vx.workspace.mjs
	run_only run t --all
	exits 2 "$r: a kill of who watches: refused"
	said '^vx: .*/vx.workspace.mjs: the process that watches over its evaluation was killed: ' "$r: a kill of who watches: by name"
	rm vx.workspace.mjs
	mv "$T/vx.workspace.json" .
	VX_CONFIG_WORKER_TIMEOUT_MS=3000
	refused "an endless loop" 'has not come to an end within 3000 ms \(VX_CONFIG_WORKER_TIMEOUT_MS\)' "for (;;); $good"
	refused "an endless wait" 'has not come to an end within 3000 ms' \
		"setInterval(() => {}, 1000); await new Promise(() => {}); $good"
	VX_CONFIG_WORKER_TIMEOUT_MS=20000
	refused "a promise that never settles" 'never settles' 'export default new Promise(() => {});'
	# deno waits for what it loads without an end.
	[ "$r" = deno ] || refused "nothing that could settle it" 'never settles' "await new Promise(() => {}); $good"
	refused "a late error" 'throws Error: too late' \
		'setTimeout(() => { throw new Error("too late"); }, 0); export default new Promise((done) => setTimeout(done, 5000));'

	refused "a built-in with more" 'changes what all configs share: Array.prototype.last; a config may not' \
		"Array.prototype.last = 1; $good"
	refused "a built-in that is another" 'changes what all configs share: .*JSON.stringify' \
		"JSON.stringify = () => '{}'; $good"
	refused "a built-in that breaks" 'changes what all configs share: .*Array.prototype.push' \
		"Array.prototype.push = () => { throw new Error('x'); }; $good"
	refused "a built-in with less" 'changes what all configs share: .*String.prototype.at' \
		"delete String.prototype.at; $good"
	refused "a frozen one" 'changes what all configs share: .*Map.prototype' "Object.freeze(Map.prototype); $good"
	refused "a module of the runtime" 'changes what all configs share: node:fs.readFileSync; a config may not' \
		"import fs from 'node:fs'; fs.readFileSync = () => 'x'; $good"
	refused "a global" 'changes what all configs share: leak; ' "globalThis.leak = 1; $good"
	refused "a global that is another" 'changes what all configs share: fetch; ' "globalThis.fetch = () => {}; $good"
	refused "a global that is made late" 'changes what all configs share: FormData; ' "globalThis.FormData = class {}; $good"
	refused "a variable" 'changes what all configs share: process.env.LEAK; ' "process.env.LEAK = '1'; $good"
	refused "one that is gone" 'changes what all configs share: process.env.PATH; ' "delete process.env.PATH; $good"
	refused "the directory" 'changes what all configs share: the working directory; ' "process.chdir('/'); $good"
	refused "the umask" 'changes what all configs share: the umask; ' "process.umask(0o177); $good"
	refused "several" 'changes what all configs share: .* and [0-9]+ more; ' \
		"for (let i = 0; i < 9; i++) globalThis['leak' + i] = i; $good"
	# Without a word that would show it: found at the end, so that the last one is named.
	printf '%s\n' "[]['constr' + 'uctor']['proto' + 'type'].last = 1; $good" >b/vx.config.mjs
	run_only run t --all
	exits 2 "$r: a change by no name: refused"
	said '^vx: c/vx.config.mjs: changes what all configs share: Array.prototype.last; a config may not: this one, or one' "$r: a change by no name: found"
	accepted "what is in modules of the runtime is there to be used" <<-J
		import fs from 'node:fs';
		import { readFile } from 'node:fs/promises';
		fs.promises;
		fs.ReadStream.name;
		await readFile('/dev/null');
		fs.readFileSync('/dev/null', 'utf8');
		$good
	J
	accepted "globals that are made when they are used" <<-J
		[fetch, crypto, performance, navigator, Headers, WebSocket, structuredClone, CompressionStream].map(String);
		new URL("http://x/"), new Intl.NumberFormat("en").format(1), new Error("x").stack, console;
		$good
	J

	refused "words on the channel" 'what came from the runtime is no message' <<-J
		import fs from "node:fs";
		fs.writeSync(fs.openSync("/proc/self/fd/3", "w"), "hello\n");
		$good
	J
	refused "a message on the channel" 'what came from the runtime is no message' <<-J
		import fs from "node:fs";
		fs.writeSync(fs.openSync("/proc/self/fd/3", "w"), '["value", 7, "{}", "", []]\n');
		$good
	J
	accepted "much that is printed" <<-J
		console.log("x".repeat(3 << 20));
		$good
	J
	refused "too much data" 'the default export is larger than 16 MiB' \
		'export default { name: "x".repeat(17 << 20) };'
	refused "data that grows" 'the default export is larger than 16 MiB' <<-'J'
		let v = ["x".repeat(99)];
		for (let i = 0; i < 60; i++) v = [v, v];
		export default { tags: v };
	J

	refused "a function" 'the default export is a function: export what it returns' 'export default () => ({});'
	refused "none" 'the default export is missing' 'export const x = 1;'
	refused "a string" 'the default export is a string: export an object' 'export default "x";'
	refused "an array" 'the default export is an array: export an object' 'export default [];'
	refused "null" 'the default export is null: export an object' 'export default null;'
	at='tasks.t.exec.env.define.A'
	no_data "a function inside" '() => 1' "$at: is a function: write data"
	no_data "a symbol" 'Symbol("x")' "$at: is a symbol"
	no_data "a bigint" '1n' "$at: is a bigint: write a number"
	no_data "no number" 'NaN' "$at: is NaN: JSON has no such number"
	no_data "infinity" '-Infinity' "$at: is -Infinity: JSON has no such number"
	no_data "a number that is too large" '2 ** 63' "$at: is 9223372036854776000: too large"
	no_data "a gap" '["x", undefined]' "$at\[1\]: is undefined: an array has no gaps"
	no_data "a hole" '["x", , "y"]' "$at\[1\]: is undefined"
	no_data "an array with more" 'Object.assign(["x"], { y: 1 })' "$at: is an array with properties"
	no_data "a date" 'new Date(0)' "$at: is an instance of Date: write plain data"
	no_data "a map" 'new Map()' "$at: is an instance of Map"
	no_data "an instance" 'new (class Thing {})()' "$at: is an instance of Thing"
	no_data "an array of another kind" 'new (class extends Array {})()' "$at: is an "
	no_data "half a character" '"\ud83d"' "$at: holds half a character"
	no_data "a NUL in a name" '{ ["x\0y"]: 1 }' "$at.*: has a NUL in its name"
	no_data "a symbol as a key" '{ [Symbol("k")]: 1 }' "$at: has the symbol Symbol\(k\) as a key"
	refused "a getter" 'tasks: is a getter or setter' 'export default { get tasks() { return {}; } };'
	refused "a circle" 'tags\[0\]: holds itself' 'const tags = []; tags.push(tags); export default { tags };'
	refused "a circle far away" 'tasks\["a.b"\].x\[1\]: holds itself' <<-'J'
		const x = [1];
		x.push(x);
		export default { tasks: { "a.b": { x } } };
	J
	refused "depth" '.*: is nested too deep' 'let v = {}; for (let i = 0; i < 200; i++) v = { v }; export default v;'
	# What is data is looked at as in any other config; there are no lines.
	refused "an unknown field" "tasks.t.exec.cmd: " 'export default { tasks: { t: { exec: { cmd: "x" } } } };'
	refused "a NUL" 'tasks.t.exec.command: holds a NUL' 'export default { tasks: { t: { exec: { command: "a\0b" } } } };'
	accepted "undefined properties and values that two share" <<-'J'
		const exec = { command: "true", timeout: undefined };
		export default Object.assign(Object.create(null), { tasks: { t: { exec }, u: { exec } }, tags: undefined });
	J

	refused "an error" 'throws TypeError: no way \(b/vx.config.mjs:2:[0-9]+\)' <<-'J'
		const f = () => {
			throw new TypeError("no\n way");
		};
		export default f();
	J
	refused "an error that is none" 'throws what is no error: 7' 'throw 7;'
	refused "one that cannot be shown" 'throws' 'throw { get message() { throw 1; } };'
	# node does not say where.
	refused "what cannot be read" 'cannot be loaded: .*(b/vx.config.mjs:1|SyntaxError: Unexpected)' 'export default {{;'
	refused "a file that is not there" 'cannot be loaded: .*nowhere' 'import "./nowhere.mjs"; export default {};'
	refused "a package that is not installed" \
		'imports "@some/thing/part", which no node_modules at or above it provides: install first' \
		'import x from "@some/thing/part"; export default {};'
	refused "vx by the name of its command" \
		'imports "vx", which no node_modules at or above it provides: what vx gives to configs is "@vzn/vx"' \
		'import { defineProject } from "vx"; export default {};'
	: >.pnp.cjs
	refused "one of Plug'n'Play" "imports \"some\", which Plug'n'Play keeps out of sight: set \"nodeLinker: node-modules\"" \
		'import x from "some"; export default {};'
	rm .pnp.cjs
	mkdir -p node_modules/some
	echo '{ "name": "some", "main": "x.js" }' >node_modules/some/package.json
	echo 'module.exports = "true";' >node_modules/some/x.js
	accepted "one that is installed" <<-'J'
		import command from "some";
		import { join } from "node:path";
		import { tmpdir } from "os";
		export default { tasks: { t: { exec: { command: command + " " + join(tmpdir(), "x") } } } };
	J
	rm -r node_modules
	echo 'import "some";' >b/one.mjs
	refused "one that what it imports wants" 'b/one.mjs: imports "some", which no node_modules' 'import "./one.mjs"; export default {};'
done

# Asked to stop, vx stops who evaluates, wherever it is; killed, it takes that with it.
first=${RUNTIMES# }
only "${first%% *}"
fifo began
# One that has begun, and has started what leaves its session.
endless() {
	cat <<-J
		import fs from "node:fs";
		import { spawn } from "node:child_process";
		const held = fs.openSync("$T/began", "w");
		spawn("sh", ["-c", "while :; do :; done"], { stdio: ["ignore", held, "inherit"], detached: true });
		fs.writeSync(held, "x\\n");
		for (;;);
	J
}
endless >b/vx.config.mjs
# NAME SIGNAL CODE [COMMAND...]
stopped() {
	name=$1 signal=$2 code=$3
	shift 3
	[ $# != 0 ] || set -- run t --all
	PATH=$T/bin bg "$@"
	exec 8<"$T/began"
	read -r line <&8
	is "$line" x "$name: a config has begun"
	kill -s "$signal" "$BG"
	bg_wait
	is "$RC" "$code" "$name: the exit code"
	timeout 30 cat <&8 >"$T/rest"
	is $? 0 "$name: nothing that it was or started is left"
	exec 8<&-
}
stopped "an interrupt" INT 130
stopped "a polite end" TERM 143
stopped "a kill" KILL 137

# A workspace config is of the same kind, and evaluated before there is a guard.
rm vx.workspace.json
endless >vx.workspace.mjs
stopped "the settings, an interrupt" INT 130
stopped "the settings, a polite end" TERM 143
stopped "the settings, a kill" KILL 137
stopped "the settings of vx cache prune, a kill" KILL 137 cache prune --older-than=1d
(endless | sed '$d' && echo 'export default { projects: ["a"] };') >vx.workspace.mjs
PATH=$T/bin bg run t --all
exec 8<"$T/began"
timeout 30 cat <&8 >"$T/rest"
is $? 0 "settings that leave something behind: it goes"
bg_wait
is "$RC" 0 "and the run goes on"
exec 8<&-
put vx.workspace.mjs <<'J'
export default { projects: ["a"], plugins: [{ name: "x", setup() {} }] };
J
run_only run t --all
exits 2 "plugins in a workspace config"
said "^vx: $W/vx.workspace.mjs: plugins: is not in this vx" "are refused by name"
echo 'export default { projects: ["a"], timeout: -1 };' >vx.workspace.mjs
run_only run t --all
said "^vx: $W/vx.workspace.mjs: timeout: " "a bad value is refused with its path"
echo '{}' >vx.workspace.json
run_only run t --all
said "vx.workspace.mjs: a second workspace config beside vx.workspace.json: remove one" "two are refused"
rm vx.workspace.json
echo 'export default { projects: ["a"] };' >vx.workspace.mjs
run_only run t --all
exits 0 "one that is sound"
run_only cache prune --older-than=1d
exits 0 "vx cache prune reads it, too"
run_only version
is "$(starts)" 0 "vx version evaluates nothing"
run_only help
is "$(starts)" 0 "vx help neither"
echo 'process.exit(1);' >vx.workspace.mjs
run_only
exits 0 "nor does vx alone"

# Code of others is not run because it lies above.
if [ "$(id -u)" = 0 ]; then
	echo 'console.log("run by root"); export default { projects: ["*"] };' >vx.workspace.mjs
	chown 54321 vx.workspace.mjs
	cd a || exit 99
	run_only run t
	exits 2 "a script above that belongs to somebody else"
	said "vx.workspace.mjs: is not evaluated: it belongs to uid 54321, which is neither you nor who owns $W/a" "is not evaluated"
	said_not 'run by root' "indeed"
	rm ../vx.workspace.mjs
	echo 'export default { projects: ["*"] };' >../real.mts
	ln -s real.mts ../vx.workspace.mts
	chown -h 54321 ../vx.workspace.mts
	run_only run t
	exits 2 "a link of somebody else to a file that is not"
	said 'vx.workspace.mts: is not evaluated: it belongs to uid 54321' "is not evaluated either"
	chown -h 0 ../vx.workspace.mts
	chown 54321 ../real.mts .
	rm ../b/*
	run_only run t
	exits 0 "who owns the directory where one stands may have one above"
else
	skip "scripts of others" "this user cannot make any"
fi
done_testing

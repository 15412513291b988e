#!/bin/sh
# SPDX-License-Identifier: MIT
# A workspace in TypeScript under each runtime: what configs say holds, a run in which nothing has changed starts none, and
# an edit evaluates exactly what rests on it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"

workspace() {
	rm -rf "$W"
	mkdir "$W"
	cd "$W" || exit 99
	git_ init -q
	put vx.workspace.ts <<-'J'
		import { defineWorkspace } from "@vzn/vx";
		export default defineWorkspace({ projects: ["packages/*"], concurrency: 2 });
	J
	put tools/preset.ts <<-'J'
		import type { Anything } from "not-installed";
		import { greeting } from "./words.ts";

		/** It's a "preset": process.env is mentioned here alone. */
		export const task = (name: string, more: object = {}): Anything => ({
			exec: { command: `echo ${greeting} ${name}` },
			cache: { inputs: { files: ["*.txt"] }, outputs: { files: [] } },
			...more,
		});
	J
	echo 'export const greeting: string = "hello";' >tools/words.ts
	# The others want the ending.
	[ "$1" != bun ] || sed -i 's,/words.ts,/words,' tools/preset.ts
	put packages/lib/vx.config.ts <<-'J'
		import { defineProject } from "@vzn/vx/config";
		import { task } from "../../tools/preset.ts";

		interface Options { name?: string }
		const options: Options = { name: "lib" };
		export default defineProject({ ...options, tasks: { build: task("lib") }, tags: undefined });
	J
	put packages/app/package.json <<-'J'
		{ "name": "app", "type": "module", "dependencies": { "lib": "*" } }
	J
	put packages/app/vx.config.js <<-'J'
		import { task } from "../../tools/preset.ts";

		export default Promise.resolve({ tasks: { build: task("app", { dependsOn: ["^build"] }) } });
	J
	put packages/old/vx.config.cts <<-'J'
		const { defineProject } = require("@vzn/vx");
		const words = require("./words.json");

		module.exports = defineProject({ name: "old", tasks: { build: { exec: { command: words.command as string } } } });
	J
	echo '{ "command": "echo old" }' >packages/old/words.json
	put packages/data/vx.config.json <<-'J'
		{ "tasks": { "build": { "exec": { "command": "echo data" } } } } // no script
	J
	mkdir packages/lib/node_modules
	for p in lib app old data; do echo x >packages/$p/x.txt; done
	settle
}

# evaluated NAME PATHS: in the last run these were, and no other.
evaluated() {
	is "$(sed -n 's/^vx\[config\].* us: \(.*\): evaluated.*/\1/p' "$ERR" | sort | tr '\n' ' ' | sed 's/ $//')" "$2" "$1"
}
edit() { # FILE: what it says stays
	echo '// edited' >>"$1"
	settle
}

export VX_DEBUG=config
for r in $RUNTIMES; do
	only "$r"
	workspace "$r"
	run_only run build --all --output-logs=full
	exits 0 "$r: a first run"
	said 'hello lib' "$r: a shared preset has its say"
	said '(^|[^a-z])old$' "$r: CommonJS, JSON and a type"
	evaluated "$r: everything is evaluated" "packages/app/vx.config.js packages/lib/vx.config.ts packages/old/vx.config.cts vx.workspace.ts"
	is "$(starts)" 2 "$r: by two processes: for the root, then for all projects"

	run_only run build --all --output-logs=full
	exits 0 "$r: a second run"
	is "$(starts)" 0 "$r: starts none"
	said '2 cached' "$r: with the same keys"
	run_only
	is "$(starts)" 0 "$r: nor does vx alone"

	# A run in a config would wait for the run that waits for it.
	ln -s "$VX" "$T/bin/vx"
	put packages/nest/vx.config.mjs <<-'J'
		import { spawnSync } from "node:child_process";
		const said = [["run", "app#build"], ["run", "app#build", "--dry"], ["run", "build", "--graph"]].map((args) => {
			const { status, stderr } = spawnSync("vx", args, { encoding: "utf8" });
			return `${status} ${stderr.replace(/^vx\[.*\n/gm, "").trim()}`;
		});
		export default { tasks: { build: { exec: { command: `echo '${said.join("\n")}'` } } } };
	J
	settle
	run_only run nest#build
	# Some put a runtime of their own on its PATH: for that one it is the settings that are not remembered.
	is "$(grep -c '^2 vx: .*inside a config of the same workspace would' "$OUT")" 3 \
		"$r: a run in a config is refused"
	rm -r packages/nest "$T/bin/vx"
	mv vx.workspace.ts "$T/kept"
	ln -s "$VX" "$T/bin/vx"
	put vx.workspace.mjs <<-'J'
		import { spawnSync } from "node:child_process";
		const { status, stderr } = spawnSync("vx", ["run", "app#build"], { encoding: "utf8" });
		console.error(`${status} ${stderr.replace(/^vx\[.*\n/gm, "").trim()}`);
		export default { projects: ["packages/*"] };
	J
	settle
	run_only run app#build
	exits 0 "$r: settings that run vx"
	is "$(grep '^[0-9] ' "$ERR")" "2 vx: $W/vx.workspace.mjs: vx inside a config of the same workspace would evaluate that config again" \
		"$r: are told that they do"
	rm vx.workspace.mjs "$T/bin/vx"
	mv "$T/kept" vx.workspace.ts
	settle
	run_only run build --all

	# What leads nowhere stays out of it.
	edit packages/lib/vx.config.ts
	run_only run build --all --output-logs=full
	evaluated "$r: an edit of a config evaluates that" "packages/lib/vx.config.ts"
	said '2 cached' "$r: which yields what it did"
	edit tools/words.ts
	run_only run build --all --output-logs=full
	evaluated "$r: an edit of what they import evaluates those" "packages/app/vx.config.js packages/lib/vx.config.ts"
	is "$(starts)" 1 "$r: in one process"
	touch tools/words.ts packages/*/vx.config.*
	settle
	run_only run build --all --output-logs=full
	is "$(starts)" 0 "$r: files that are only touched evaluate nothing"
	sed -i 's/hello/hi/' tools/words.ts
	settle
	run_only run build --all --output-logs=full
	said 'hi lib' "$r: and what it says moves the keys"
	sed -i 's/hi/hello/' tools/words.ts
	settle
	run_only run build --all --output-logs=full
	echo '{ "command": "echo older" }' >packages/old/words.json
	settle
	run_only run build --all --output-logs=full
	evaluated "$r: JSON that is imported counts, too" "packages/old/vx.config.cts"
	said 'older' "$r: and has its say"
	edit vx.workspace.ts
	run_only run build --all --output-logs=full
	evaluated "$r: an edit of the settings evaluates them" "vx.workspace.ts"
	if [ "$r" = bun ]; then
		mv tools/words.ts tools/words.tsx
		settle
		run_only run build --all --output-logs=full
		evaluated "$r: another file that the import means does" "packages/app/vx.config.js packages/lib/vx.config.ts"
		mv tools/words.tsx tools/words.ts
		settle
		run_only run build --all --output-logs=full
	fi
	run_only run build --all --output-logs=full
	is "$(starts)" 0 "$r: it is remembered again"

	# What has changed is asked of git, and what rests on it of the memory, or of the evaluation itself.
	git_ add -A
	git_ commit -qm one
	echo '// more' >>tools/words.ts
	for memory in filled none; do
		run_only run --dry=json build --affected=HEAD
		is "$(sed -n 's/.*"id":"\([^"]*\)".*"requested":true.*/\1/p' "$OUT" | sort | tr '\n' ' ')" \
			'app#build lib#build ' "$r: an import affects those that rest on it ($memory)"
		rm -rf .vx
	done
	git_ checkout -q tools/words.ts
	settle
	run_only run build --all --output-logs=full

	# The same binary at another place is another runtime.
	cp "$T/bin/$r" "$T/bin/copy"
	mv "$T/bin/copy" "$T/bin/$r"
	run_only run build --all --output-logs=full
	is "$(starts)" 2 "$r: another runtime evaluates all"
	evaluated "$r: those of the projects, and the settings" "packages/app/vx.config.js packages/lib/vx.config.ts packages/old/vx.config.cts vx.workspace.ts"

	# The same as data: the same keys.
	put packages/lib/vx.config.json <<-'J'
		{ "name": "lib", "tasks": { "build": {
			"cache": { "outputs": { "files": [] }, "inputs": { "files": ["*.txt"] } },
			"exec": { "command": "echo hello lib" } } } }
	J
	run_only run build --all --output-logs=full
	exits 2 "$r: two configs are refused"
	said 'packages/lib holds two configs, vx.config.json and vx.config.ts' "$r: by name"
	rm packages/lib/vx.config.ts
	run_only run build --all --output-logs=full
	exits 0 "$r: data in its place"
	said '2 cached' "$r: has the same key"
	is "$(starts)" 0 "$r: and evaluates nothing"
done

# What a value rests on beside files is asked for in each run.
first=${RUNTIMES# }
only "${first%% *}"
rm -rf "$W"
mkdir "$W"
cd "$W" || exit 99
put vx.config.mjs <<'J'
export default { tasks: { t: { exec: { command: `echo <${process.env.WORD}>` } } } };
J
settle
WORD=one run_only run t
said '<one>' "a variable has its say"
WORD=two run_only run t
said '<two>' "and its next value"
is "$(starts)" 1 "by another evaluation"
put vx.config.mjs <<'J'
console.log("printed by the config");
export default { tasks: { t: { exec: { command: "echo x" } } } };
J
run_only run t --dry
exits 0 "a config that prints"
like "$ERR" '^printed by the config$' "prints to standard error"
unlike "$OUT" 'printed' "never among what vx says"
NODE_OPTIONS="--require $T/none.cjs" BUN_OPTIONS="--preload $T/none.js" run_only run t
exits 0 "options of a runtime in the environment do not count"

# No runtime, one that is too old, one that a package brings.
rm -f "$T/bin/bun" "$T/bin/node" "$T/bin/deno"
run_only run t
exits 2 "without a runtime"
said 'vx.config.mjs: no runtime of JavaScript is on the PATH \(outside of the workspace\); install bun, node 22.18 or later, or deno, or write vx.config.json' "what to do is said"
mkdir -p node_modules/.bin
cp "$(command -v env)" node_modules/.bin/bun
try env PATH="$W/node_modules/.bin:$T/bin" "$VX" run t
said 'no runtime of JavaScript is on the PATH' "one in the workspace is none"
printf '#!/bin/sh\necho %s >&3\n' "'[\"old\", \"18.20.4\"]'" >"$T/bin/node"
chmod +x "$T/bin/node"
run_only run t
exits 2 "with an old one"
said "vx.config.mjs: $T/bin/node is version 18.20.4, too old; install" "it is named"
printf '#!/bin/sh\necho unheard of; exit 9\n' >"$T/bin/node"
run_only run t
exits 2 "with one that cannot do it"
said "$T/bin/node, which is to evaluate vx.config.mjs, ended with exit code 9 before it began" "it is named, too"
said '^unheard of$' "and heard"
done_testing

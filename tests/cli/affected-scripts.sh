#!/bin/sh
# SPDX-License-Identifier: MIT
# --affected where configs are in JavaScript: a change of what they rest on, and of nothing else, affects their projects.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"

# NAME ENDING: the project's config is standard input; its tasks are keyed on src alone.
project() {
	mkdir -p "p/$1/src"
	echo x >"p/$1/src/f"
	cat >"p/$1/vx.config.$2"
}
TASKS='{ build: { exec: { command: "true" }, cache: { inputs: { files: ["src/**"] }, outputs: { files: [] } } } }'

# ENDING: of the workspace's config.
workspace() {
	rm -rf "${W:?}"
	mkdir "$W"
	cd "$W" || exit 99
	git_ init -q
	printf '.vx\nnode_modules\n' >.gitignore
	put package.json <<-'J'
		{ "private": true, "type": "module", "version": "1.0.0" }
	J
	if [ "$1" = json ]; then
		echo '{ "projects": ["p/*"] }' >vx.workspace.json
	else
		echo 'export default { projects: ["p/*"] };' >"vx.workspace.$1"
	fi
	project data json <<-'J'
		{ "tasks": { "build": { "exec": { "command": "true" },
		  "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }
	J
	project plain js <<-J
		export default { name: "plain", tasks: $TASKS };
	J
	project relative js <<-'J'
		import { tasks } from "../../shared/tasks.js";
		export default { name: "relative", tasks };
	J
	mkdir shared
	echo "export const tasks = $TASKS;" >shared/tasks.js
	project packaged mjs <<-'J'
		import { tasks } from "@w/preset";
		export default { name: "packaged", tasks };
	J
	mkdir -p preset node_modules/@w
	ln -s ../../preset node_modules/@w/preset
	echo '{ "name": "@w/preset", "version": "1.0.0", "type": "module", "exports": "./index.js" }' >preset/package.json
	echo 'export { tasks } from "./tasks.js";' >preset/index.js
	cp shared/tasks.js preset/
	echo x >preset/unused.js
	project env mjs <<-J
		export default { name: "env", tags: [process.env.NOBODY ?? "none"], tasks: $TASKS };
	J
	project presetenv mjs <<-'J'
		import path from "node:path";
		import { tasks } from "@w/preset";
		export default { name: "presetenv", tags: [path.basename("a/b") + (process.env.NOBODY ?? "")], tasks };
	J
	project fs mjs <<-J
		import { readFileSync } from "node:fs";
		export default { name: "fs", tags: [readFileSync("notes/tags", "utf8").trim()], tasks: $TASKS };
	J
	mkdir notes
	echo t >notes/tags
	echo x >notes/others
	put p/above/vx.config.json <<-'J'
		{ "dependencies": ["fs"], "tasks": { "build": { "exec": { "command": "true" }, "dependsOn": ["^build"],
		  "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }
	J
	mkdir p/above/src
	echo x >p/above/src/f
	git_ add -A
	git_ commit -qm one
	settle
}

# WANT NAME COMMAND: the projects whose build is left, after it, by --affected, cold and warm; then by "[HEAD]".
edit() {
	e_want=$1 e_name=$2
	eval "$3"
	for e_how in cold warm; do
		run_only run build --affected=HEAD --dry=json
		is "$(sed -n 's/.*"id":"\([^"]*\)#build".*"requested":true.*/\1/p' "$OUT" | sort | tr '\n' ' ')" "${e_want:+$e_want }" "$r: $e_name, $e_how"
		[ "$RC" = 0 ] || { fail "$r: $e_name: exit 0"; diag_file stderr "$ERR"; }
	done
	git_ reset -q --hard
	git_ clean -qfd
}

ALL='above data env fs packaged plain presetenv relative'
for r in $RUNTIMES; do
	only "$r"
	workspace json
	edit '' "nothing" ':'
	edit 'above fs' "any file, for one that may have read it, and who needs it" 'echo y >notes/tags'
	edit 'above fs' "whichever" 'echo y >notes/new'
	edit 'above data fs' "one of another project's" 'echo y >p/data/src/f'
	edit 'above env fs' "the environment leads to no file" 'echo >>p/env/vx.config.mjs'
	edit 'above fs relative' "what one imports by its path" 'echo >>shared/tasks.js'
	edit 'above fs packaged presetenv' "a preset in a package of the workspace" 'echo >>preset/index.js'
	edit 'above fs packaged presetenv' "what that imports" 'echo >>preset/tasks.js'
	edit 'above fs' "what nobody imports of it" 'echo >>preset/unused.js'
	edit 'above fs' "its version alone" 'sed -i s/1.0.0/2.0.0/ preset/package.json'
	edit 'above fs packaged presetenv' "its entry" 'sed -i s/index.js/tasks.js/ preset/package.json'
	edit 'above fs' "the version of the root" 'sed -i s/1.0.0/2.0.0/ package.json'
	edit 'above fs packaged plain presetenv relative' "what the root's modules are" 'sed -i "s/\"type\": \"module\", //" package.json'
	edit 'above fs plain' "a manifest between" 'echo "{ \"type\": \"module\" }" >p/plain/package.json'

	workspace ts
	edit '' "a workspace's config in TypeScript: nothing" ':'
	edit 'above fs' "the version of the root, as with one in JSON" 'sed -i s/1.0.0/2.0.0/ package.json'
	edit 'above fs' "scripts and dependencies of the root" 'sed -i "s/\"version\"/\"scripts\": { \"x\": \"y\" }, \"devDependencies\": { \"z\": \"1\" }, \"version\"/" package.json'
	edit "$ALL" "what its modules are" 'sed -i "s/\"type\": \"module\", //" package.json'
	edit "$ALL" "which it has" 'sed -i "s/\"version\"/\"workspaces\": [\"p\/*\"], \"version\"/" package.json'
	rm vx.workspace.ts
	put vx.workspace.mjs <<-'J'
		import root from "./package.json" with { type: "json" };
		export default { projects: [root.version ? "p/*" : "q/*"] };
	J
	git_ add -A
	git_ commit -qm json
	settle
	edit "$ALL" "the version of the root where the workspace's config reads it" 'sed -i s/1.0.0/2.0.0/ package.json'
	edit 'above fs' "no other file" 'echo y >notes/tags'
	put vx.workspace.mjs <<-'J'
		import { existsSync } from "node:fs";
		export default { projects: [existsSync("notes") ? "p/*" : "q/*"] };
	J
	git_ commit -qam any
	edit '' "one that may read any file: nothing" ':'
	edit "$ALL" "any" 'echo y >notes/others'
done

# Which are judged how: each line is an expression whose value is thrown away, or an import.
n=0
judge() { # any|blind TEXT [IMPORT]
	n=$((n + 1))
	j_name=$1-$n
	project "$j_name" mjs <<-J
		${3-}
		export default { name: "$j_name", tags: [typeof (${2}) ? "t" : "u"], tasks: $TASKS };
	J
}
for r in $RUNTIMES; do
	only "$r"
	workspace json
	rm -rf p/fs p/above
	n=0
	judge blind 'process.env.A'
	judge blind 'process.env["A"]'
	judge blind 'Date.now() + Math.random()'
	judge blind 'await Promise.resolve(performance.now())'
	judge blind 'path.join("a", "b") + os.EOL' 'import path from "node:path"; import os from "node:os";'
	judge blind 'url.pathToFileURL("/a") + util.format("b") + assert.ok' 'import url from "node:url"; import util from "node:util"; import assert from "node:assert";'
	judge any 'process["env"].A'
	judge any 'process.env.A + process.cwd()'
	judge any '(({ env }) => env.A)(process)'
	judge any 'process.env.constructor'
	judge any 'new Date().constructor'
	judge any '(await import("../../shared/tasks.js")).tasks'
	judge any 'import.meta.url'
	judge any 'fetch'
	judge any 'globalThis'
	judge any 'this'
	judge any 'eval("1")'
	judge any 'fs.existsSync("notes") + path.sep' 'import path from "node:path"; import fs from "node:fs";'
	judge any 'all.existsSync' 'import * as all from "node:fs/promises";'
	judge any 'child' 'import child from "node:child_process";'
	git_ add -A
	git_ commit -qm judged
	edit "$(cd p && printf '%s\n' any-* | sort | tr '\n' ' ' | sed 's/ $//')" "what may have read any file" 'echo y >notes/others'
done

# A preset in a submodule, which is one path for git.
# shellcheck disable=SC2086 # the first of them
set -- $RUNTIMES
r=$1
only "$r"
workspace json
git_ init -q "$T/sub"
cp shared/tasks.js "$T/sub/"
git_ -C "$T/sub" add -A
git_ -C "$T/sub" commit -qm sub
git_ -c protocol.file.allow=always submodule --quiet add "$T/sub" vendor
project vendored mjs <<'J'
import { tasks } from "../../vendor/tasks.js";
export default { name: "vendored", tasks };
J
git_ add -A
git_ commit -qm submodule
settle
edit 'above fs vendored' "a preset in a submodule" 'echo >>vendor/tasks.js'
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# A directory in which a task may see every name passes as a whole. What comes to be there while it runs
# it may read: then nothing is stored. What other tasks of the project are known to make stays hidden.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program git
cd "$W" || exit 99

fresh() {
	rm -rf "${W:?}/src" "${W:?}/dist" "${W:?}/lib" "${W:?}/out" "${W:?}/.vx"
	rm -f "$T/here" "$T/there"
	fifo here there
	mkdir -p "$W/src/deep"
	echo a >"$W/src/a.js"
	echo b >"$W/src/deep/b.js"
}
git_ init -q
printf 'gen.js\n*.o\n*.swp\nlate/\nout\ndist/\n*.gen.js\n' >.gitignore

# SANDBOX FIRST: `bundle` does FIRST and lists src; then `gen`, which it does not wait for, makes there what
# stdin says; when that is in the workspace, `told` has `bundle` read on.
config() {
	cat >"$T/gen.sh"
	put vx.config.json <<-E
		{ "name": "w", "tasks": {
			"gen": { "exec": { "command": "read x <$T/here; . $T/gen.sh" } },
			"told": { "exec": { "command": "echo go >$T/there" }, "dependsOn": ["gen"] },
			"bundle": {
				"exec": { "command": "$2 ls -R src; echo here >$T/here; read x <$T/there; cat src/*.js src/*/*.js >out; exit 0"$1 },
				"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["out"] } } },
			"pack": {
				"exec": { "command": "cat out" }, "dependsOn": ["bundle"],
				"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }
	E
}
side_by_side() { run run "$@" --sandbox --concurrency 4; }
# TASK NAME: a result is there for it / is not.
is_saved() {
	run run "$1" --sandbox
	said '(cached|up to date)' "$2"
}
is_not_saved() {
	run run "$1" --sandbox --dry
	said "#$1  miss" "$2"
}

fresh
config '' '' <<-'E'
	echo GENERATED >src/gen.js
E
side_by_side gen told bundle pack
exits 0 "a name that comes in a directory that passed"
said 'not saved: src/gen.js came while it ran' "is told, and nothing is saved"
said 'name that in dependsOn' "with what to do"
rm src/gen.js
is_not_saved bundle "no result is there under the key of a tree without it"
is_not_saved pack "nor one of a task that used it"

fresh
config '' '' <<-'E'
	mkdir src/late
	for i in 1 2 3 4 5; do echo "$i" >src/late/$i.js; done
E
side_by_side gen told bundle
exits 0 "a directory that comes"
said 'not saved: src/late(/..js, src/late/..js, src/late/..js, …)? came' "is told, of what is in it three at most"

# What the patterns of grants select may come: that only keeps the result from being proven.
explicit=', "sandbox": { "allow": { "read": ["src/**/*.js"], "write": ["src/*.o", "out"] } }'
fresh
config "$explicit" '' <<-'E'
	echo new >src/deep/gen.js
E
side_by_side gen told bundle
exits 0 "a name that a pattern grants"
said_not 'not saved' "is none of these"
like out '^new$' "it was read"

# One that came after the files were listed, for whose sake they are not listed anew: git is not asked of it.
fresh
put vx.config.json <<'J'
{ "name": "w", "tasks": {
	"make": { "exec": { "command": "mkdir -p more; echo 1 >more/here", "sandbox": { "allow": { "write": ["more"] } } },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } },
	"use": { "exec": { "command": "cat more/here", "sandbox": { "allow": { "read": ["more"] } } }, "dependsOn": ["make"],
		"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }
J
run run use
exits 0 "a name that no list has"
said 'not proven: it may read more/here, which no key covers \(it came after vx had listed the files\)' "is told as what it is"
rm -r more

fresh
config "$explicit" '' <<-'E'
	echo x >src/deep/x.swp
E
side_by_side gen told bundle
exits 0 "one that no pattern grants"
said 'not saved: src/deep/x.swp came while it ran' "is"

fresh
config "$explicit" 'echo o >src/a.o; echo o >src/deep/b.o;' <<-'E'
	:
E
sed -i 's|src/\*\.o|src/**/*.o|' vx.config.json
side_by_side gen told bundle
exits 0 "what the task makes itself"
said_not 'not saved' "is no name that came"

# `told` needs a command without a cache, so the files are listed anew for its key while `bundle` runs.
fresh
config "$explicit" '' <<-'E'
	:
E
side_by_side gen told bundle
exits 0 "a list made anew while a task runs, and no name came"
said_not 'not proven' "its result is proven: all that it may read is in its key"

# Tasks of one project run side by side, and the first time nothing of what they make is there yet. All that
# is there is granted.
echo '{ "projects": ["p"] }' >vx.workspace.json
rm -f vx.config.json
beside() { # MORE
	fresh
	rm -rf p
	mkdir -p p/lib
	echo a >p/a.js
	echo i >p/lib/i.js
	put p/vx.config.json <<-E
		{ "name": "p", "tasks": {
			"build": { "exec": { "command": "read x <$T/here; mkdir -p dist lib; echo d >dist/d; echo l >lib/l.gen.js" },
				"cache": { "inputs": { "files": ["*.js"] }, "outputs": { "files": ["dist/**", "lib/*.gen.js"] } } },
			"told": { "exec": { "command": "echo go >$T/there" }, "dependsOn": ["build"] },
			"lint": { "exec": { "command": "ls -A . lib; cat a.js; echo here >$T/here; read x <$T/there; $1 exit 0" },
				"cache": { "inputs": { "files": ["*.js", "*.json", "lib/i.js"] }, "outputs": { "files": [] } } } } }
	E
	side_by_side p#build p#told p#lint
}
beside ''
exits 0 "beside a task that makes its outputs"
said_not 'not saved' "both are saved"
is_saved p#lint "and found again"
beside 'cat dist/d lib/l.gen.js;'
exits 0 "a task that asks for what came after it had listed the directory"
said_not '^[dl]$' "does not read it"
said_not 'violation' "and asked for nothing that was there"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# What is refused, with which exit code, and where the message points.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

run
exits 2 "vx alone outside any workspace"
said 'no workspace' "says so"
said 'vx COMMAND' "and what it can do"
run frobnicate
exits 2 "an unknown verb"
said 'frobnicate' "is named"
said 'if it is a task, run it with .vx run frobnicate' "with the command that a task of that name is run by"
run list
exits 2 "a verb near to one that is not there yet"
said_not 'did you mean' "offers none that does not exist"
run --version
exits 0 "--version"
like "$OUT" '[0-9]+\.[0-9]+\.[0-9]+' "prints the version"
run run --help
exits 0 "run --help"
run help run
exits 0 "help run"
run help nope
exits 2 "help of no command"
said "'nope' is no command" "says so"
run -C app run build
exits 2 "a flag before the command"
said 'unknown flag -C: flags follow the command, as in .vx run build --all.; for another directory, .cd DIR && vx run ….$' "says where they go"
run -V
exits 2 "another one for the version"
said 'unknown flag -V: .*; or .vx version.$' "says which it is"
run help rum
exits 2 "help of nearly a command"
said 'did you mean .vx run' "offers it"
run help watch
exits 2 "help of a command that is not there yet"
said 'not in this vx yet' "says so"

for later in lock why last; do
	run $later
	exits 2 "vx $later"
	said "vx $later. is not in this vx yet" "vx $later is refused by name"
done

run run build
exits 2 "outside any workspace"
said 'vx.workspace.json' "says what would make one"

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/a/vx.config.json <<E
{
	"name": "a",
	"tasks": {
		"build": { "exec": { "command": "touch $T/ran" } }
	}
}
E

run
exits 0 "vx alone in a workspace"
said 'vx COMMAND' "says what it can do"

refused() { # NAME REGEX: run says it with exit 2 and starts nothing
	run run build --all
	exits 2 "$1"
	said "$2" "$1: $2"
	ok "$1: nothing was run" test ! -e "$T/ran"
}

usage() { # NAME REGEX ARGS...
	u_name=$1 u_re=$2
	shift 2
	run run "$@"
	exits 2 "$u_name"
	said "$u_re" "$u_name: $u_re"
	ok "$u_name: nothing was run" test ! -e "$T/ran"
}
usage "unknown option" 'unknown (option|flag).*--concurency' build --all --concurency 2
said '--concurrency' "the nearest option is offered"
usage "a number that is none" '--concurrency' build --all --concurrency two
said "'two' is neither a whole number from 1 to 10000 nor, like 50%, a share of the cores" "both ways are named"
usage "a share that is none" "'x%' is neither" build --all --concurrency x%
usage "a number out of range" '--concurrency' build --all --concurrency 0
for n in 0x2 1e1 -2 1.5 ' 2' 1001 99999999999999999999; do
	usage "--retry=$n" "--retry: '$n' is not a whole number from 0 to 1000" build --all "--retry=$n"
done
usage "--retry=+2" "--retry: '[+]2' is not a whole number" build --all --retry=+2
usage "the same for a dry run" '--concurrency' build --all --dry --concurrency 0
usage "one of nobody" 'unknown flag --frobnicate \(.vx run --help. lists them\)' build --all --frobnicate
usage "one as of another runner" 'unknown flag --jobs: write --concurrency N$' build --all --jobs
usage "with its value" 'unknown flag --since: write --affected=BASE$' build --all --since=main
usage "one of what is to come" 'unknown flag --watch: .vx watch. is not in this vx yet$' build --all --watch
usage "none of them is offered" 'unknown flag --parallol [(]' build --all --parallol
usage "a value without its =" 'no project declares a task "json"; did you mean --dry=json\?$' build --all --dry json
usage "a short one" 'unknown flag -x4 \(flags are spelled out: .vx run --help. lists them\)' build --all -x4
usage "a short one as of another runner" 'unknown flag -j: write --concurrency N$' build --all -j4
usage "one near another" 'unknown flag --concurency; did you mean --concurrency\?' build --all --concurency=2
usage "a value where none can be" '--force takes no value' build --all --force=yes
usage "no value at the end" '--filter needs a value: --filter=PATTERN' build --filter
usage "a flag for a value" "--filter needs a value, but '--all' follows; write --filter=PATTERN" build --filter --all
usage "an empty value" '--filter= has an empty value: write --filter=PATTERN$' build --filter=
usage "an empty value that could be left out" '--continue= has an empty value: write --continue alone, or --continue=never\|deps-ok\|always$' build --all --continue=
usage "a flag for the name of a file" "--report-file needs a value, but '-x' follows; write --report-file=FILE" build --report-file -x
usage "and of a directory" "--cache-dir needs a value, but '-x' follows; write --cache-dir=PATH" build --cache-dir -x
usage "a cache that is none" '--cache: write local:rw, local:r \(only read\), local:w \(only write\) or local: \(neither\)' build --all --cache=local
usage "force without a cache" '--force and --no-cache contradict each other' build --all --force --no-cache
CI=1
export CI
usage "no sandbox under CI" '--sandbox=off is refused under CI; set VX_SANDBOX_OFF=1 if it is meant' build --all --sandbox=off
unset CI
run version x
exits 2 "version with a word"
said 'vx version takes no arguments' "says so"
run cache prune --format=xml
exits 2 "a form that is none"
said '--format: write pretty or json' "says so"
usage "unknown task" 'biuld' biuld --all
said 'build' "the nearest task is offered"
usage "unknown project" 'nope' nope#build
usage "a filter that matches nothing" 'nope' build --filter nope
usage "a bad --continue" '--continue' build --all --continue=maybe
usage "a bad --output-logs" '--output-logs' build --all --output-logs=loud
usage "a value missing" '--filter' build --filter
usage "an option of another runner's" '--parallel' build --all --parallel
usage "--frozen" '--frozen is not in this vx yet' build --all --frozen
usage "--download" '--download is not in this vx yet' build --all --download=none
usage "a bad --dry" '--dry=yaml: write text or json' build --all --dry=yaml
usage "two plans" '--dry and --graph are two plans: ask for one of them' build --all --dry --graph
usage "a graph as a picture" '--graph=x/y\.SVG: vx writes the DOT language alone: vx run … --graph \| dot -Tsvg' build --all --graph=x/y.SVG
usage "a graph where none can be written" '^vx: --graph=nowhere/x\.dot: No such file or directory$' build --all --graph=nowhere/x.dot
usage "names to leave out that are none" '--exclude-dependencies= has an empty value' build --all --exclude-dependencies=
usage "an empty one among them" '--exclude-dependencies: an empty name; write --exclude-dependencies=build,app#test' build --all --exclude-dependencies=build,,x
usage "one that there is not" '--exclude-dependencies: there is no task "biuld"; did you mean "build"\?' build --all --exclude-dependencies=biuld
usage "one of a project" '--exclude-dependencies: there is no task "a#biuld"; did you mean "a#build"\?' build --all --exclude-dependencies=a#biuld
usage "one of no project" '--exclude-dependencies: there is no project of "aa#build"; did you mean "a#build"\?' build --all --exclude-dependencies=aa#build
usage "one like no other" '--exclude-dependencies: there is no task "nothing-like"; there is build' build --all --exclude-dependencies=nothing-like
usage "no task" 'no task named; here there is: build$' --all
cd p || exit 99
usage "a directory outside any project" 'project' build
cd .. || exit 99

# Scripts of a package manager are no tasks.
mkdir "$T/bare"
cd "$T/bare" || exit 99
echo '{ "name": "root", "workspaces": ["lib"] }' >package.json
echo '{ "name": "lib", "scripts": { "build": "true" } }' | put lib/package.json
usage "a workspace without tasks" 'no project declares a task "build", nor any other: scripts in a package.json are no tasks; write \{ "tasks": \{ "build": ' build --all
cd lib || exit 99
usage "the same in a member" ' in lib/vx\.config\.json$' build
echo '{ "projects": ["lib"], "concurrency": 0 }' >../vx.workspace.json
usage "a setting" "^vx: $T/bare/vx\.workspace\.json:1:[0-9]+: concurrency: " build
cd "$W" || exit 99

# Config errors: file, line, column and the path of the value.
config() { put p/b/vx.config.json; }
config <<'E'
{
	"name": "b",
	"tasks": {
		"build": {
			"exec": { "comand": "true" }
		}
	}
}
E
refused "unknown field" 'p/b/vx\.config\.json:5:[0-9]+: .*comand'
said 'command' "the nearest field is offered"
said 'tasks\.build\.exec' "with the path of the value"

config <<'E'
{ "name": "b",
  "tasks": { "build": { "exec": { "command": 7 } } } }
E
refused "wrong type" 'p/b/vx\.config\.json:2:[0-9]+: .*tasks\.build\.exec\.command'

config <<'E'
{ "name": "b",
  "tasks": { "build": { "exec": { "command": "true", "timeout": 0 } } } }
E
refused "bad value" 'p/b/vx\.config\.json:2:[0-9]+: .*timeout'

config <<'E'
{ "name": "b",
  "tasks": { "build": { "exec": { "command": "true" } }
E
refused "not JSON" 'p/b/vx\.config\.json:[0-9]+:[0-9]+'

config <<'E'
{ "name": "b", "tasks": { "build": { "exec": { "command": "true" },
  "cache": { "inputs": { "files": ["/etc/passwd"] }, "outputs": { "files": [] } } } } }
E
refused "an absolute input" 'p/b/vx\.config\.json:2:[0-9]+: .*files'
config <<'E'
{ "name": "b", "tasks": { "build": { "exec": { "command": "true" },
  "cache": { "inputs": { "files": ["../a/**"] }, "outputs": { "files": [] } } } } }
E
refused "an input outside the project" 'p/b/vx\.config\.json:2:[0-9]+: .*files'
config <<'E'
{ "name": "b", "tasks": { "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [] } } } } }
E
refused "cache without outputs" 'outputs'
config <<'E'
{ "name": "b", "tasks": { "build": { "exec": { "command": "true", "interactive": true } } } }
E
refused "what this vx does not have" 'interactive.*not in this vx'
config <<'E'
{ "name": "b", "tasks": { "build": { "exec": { "command": "true", "persistent": true } } } }
E
refused "a persistent task of the wrong shape" 'persistent'
config <<'E'
{ "name": "b", "tasks": { "build": { "dependsOn": ["genrate"], "exec": { "command": "true" } } } }
E
refused "a dependency that does not exist" 'task b#build: dependsOn "genrate": b has no task "genrate"'
config <<'E'
{ "name": "b", "tasks": { "build": { "dependsOn": ["a#genrate"], "exec": { "command": "true" } } } }
E
refused "a dependency in another project that does not exist" 'genrate'
config <<'E'
{ "name": "b", "tasks": {
  "build": { "dependsOn": ["two"], "exec": { "command": "true" } },
  "two": { "dependsOn": ["three"], "exec": { "command": "true" } },
  "three": { "dependsOn": ["build"], "exec": { "command": "true" } } } }
E
refused "a cycle" 'b#build -> b#two -> b#three -> b#build|b#two -> b#three -> b#build -> b#two|b#three -> b#build -> b#two -> b#three'
{
	echo '{ "name": "b", "tasks": {'
	for i in $(seq 14); do
		echo "\"t$i\": { \"dependsOn\": [\"t$((i % 14 + 1))\"] },"
	done
	echo '"build": { "dependsOn": ["t1"] } } }'
} | config
refused "a long cycle" 'b#t1 -> .* -> \(2 more\) -> b#t1$'
config <<'E'
{ "name": "b", "tasks": {
  "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": ["dist/**"] } } },
  "too": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": ["dist/x"] } } } } }
E
run run build too --all
exits 2 "two tasks with one output"
said 'b#build' "names the one"
said 'b#too' "and the other"

config <<'E'
{ "name": "a", "tasks": { "build": { "exec": { "command": "true" } } } }
E
refused "two projects of one name" 'p/a'
said 'p/b' "both are named"
config <<'E'
{ "name": "b" }
E
put p/b/vx.config.ts <<'E'
export default {};
E
refused "two configs in one directory" 'vx\.config\.json'
said 'vx\.config\.ts' "both are named"
rm -r p/b

# Comments, trailing commas and $schema are fine.
put p/b/vx.config.json <<E
// what builds b
{
	"\$schema": "./schema.json",
	"name": "b", /* not the directory's */
	"tasks": { "build": { "exec": { "command": "touch $T/ran", }, }, },
}
E
run run b#build
exits 0 "comments and trailing commas"
ok "it ran" test -e "$T/ran"

# A config that was put where no glob of the workspace leads.
mkdir -p "$T/big/tools/x"
echo '{ "projects": ["p/*"] }' >"$T/big/vx.workspace.json"
echo '{ "tasks": { "t": { "exec": { "command": "true" } } } }' >"$T/big/tools/x/vx.config.json"
cd "$T/big/tools/x" || exit 99
run run t
exits 0 "a config outside of the workspace"
said '^vx: .*/big/vx.workspace.json does not name tools/x, which so is a workspace of its own: add "tools/x" there' "is said to be one"
echo '{}' >vx.workspace.json
run run t
said_not 'does not name' "unless it says so itself"
cd "$W" || exit 99

# A workspace that its reader cannot write in.
mkdir "$T/ro" "$T/ro/.vx"
echo '{ "projects": ["p/*"] }' >"$T/ro/vx.workspace.json"
put "$T/ro/p/a/vx.config.json" <<'E'
{ "name": "a", "tasks": { "build": { "exec": { "command": "true" } } } }
E
cd "$T/ro" || exit 99
# shellcheck disable=SC2034 # RC is read by exits
plan() { # WHAT
	chmod 555 . .vx 2>/dev/null
	RC=0
	as_user timeout 60 "$VX" run build --all --dry >"$OUT" 2>"$ERR" </dev/null || RC=$?
	exits 2 "a dry run where vx cannot $1"
	is "$(wc -l <"$ERR")" 1 "is one error"
	like "$ERR" "cannot $1 .*/ro/\.vx, where vx keeps its state.*: Permission denied" "that says why"
}
plan 'write in'
ok "nothing is written" test -z "$(ls -A .vx)"
chmod 755 . && rmdir .vx
plan make
chmod 755 .
cd "$W" || exit 99

# A name cannot forge lines of the report.
run run "$(printf 'x\n\033[31mfailed')"
exits 2 "control bytes in a name"
not_ok "no escape byte reaches the terminal" grep -q "$(printf '\033')" "$ERR"

# --- what is no error and yet said

mkdir "$T/unmet"
cd "$T/unmet" || exit 99
echo 'packages: [p/*]' >pnpm-workspace.yaml
put p/lib/package.json <<'E'
{ "name": "lib", "version": "1.0.0" }
E
put p/app/package.json <<'E'
{ "name": "app", "dependencies": { "lib": "workspace:^2.0.0" } }
E
put p/app/vx.config.json <<'E'
{ "tasks": { "build": { "exec": { "command": "true" } } } }
E
for how in '' --dry --dry=json --graph; do
	# shellcheck disable=SC2086
	run run build --all $how
	exits 0 "a workspace: that is not met is no error ($how)"
	is "$(grep -c '^vx: p/app/package.json: "lib": "workspace:^2.0.0" is not met: lib is 1.0.0 here' "$ERR")" 1 "and is said once ($how)"
done
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Configs that are scripts are evaluated when the run needs them: which ones, that all others may be as broken as they like, and
# what is remembered of them. That the answers are those of a workspace all of which is known: tests/prop/scoped.py.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/runtimes/runtimes.sh"
first=${RUNTIMES# }
first=${first%% *}
only "$first"
cd "$W" || exit 99

# NAME DEPENDENCIES TASKS
project() {
	mkdir -p "p/$1/src"
	echo "{ \"name\": \"$1\", \"dependencies\": { $2 } }" >"p/$1/package.json"
	echo "export default { $3 };" >"p/$1/vx.config.mjs"
	echo "$1" >"p/$1/src/a"
}
# DEPENDS_ON: a task that does nothing.
task() { echo "{ exec: { command: 'true' }, dependsOn: [$1], cache: { inputs: { files: ['src/**'] }, outputs: { files: [] } } }"; }
put vx.workspace.json <<'J'
{ "projects": ["p/*"] }
J
git_ init -q
project app '"lib": "*"' "tasks: { build: $(task "'^build'"), lint: $(task '') }"
project gen '' "tasks: { gen: $(task "'tool#make'") }"
project lib '"base": "*"' "tasks: { build: $(task "'^build'") }"
project base '' "tasks: { build: $(task ''), b: $(task '') }, tags: ['core']"
project tool '"dep": "*"' "tasks: { make: $(task "'^make'") }"
project dep '' "tasks: { make: $(task '') }"
project far '' "dependencies: ['mid'], tasks: { build: $(task "'^build'") }"
project mid '' "dependencies: ['dep'], tasks: { build: $(task '') }"
project reads '' "tasks: { build: { exec: { command: 'true' }, cache: {
	inputs: { files: [], workspaceFiles: ['p/dep/src/**'] }, outputs: { files: [] } } } }"
project odd '' "tasks: { odd: $(task "'^nowhere'"), slip: $(task "'^biuld'") }"
all='app base dep far gen lib mid odd reads tool'
settle

# NAMES NAME ARGS...: a run evaluates the configs of these.
evaluates() {
	want=$1 name=$2
	shift 2
	VX_DEBUG=config run_only run --dry=json "$@"
	is "$(sed -n 's,^vx\[config\].* us: p/\(.*\)/vx.config.mjs: evaluated.*,\1,p' "$ERR" | sort | tr '\n' ' ' | sed 's/ $//')" "$want" "$name"
}
# The same, of a run to which nothing is known.
needs() {
	rm -rf .vx
	evaluates "$@"
	is "$(starts)" 1 "$2: by one process"
}
needs 'app' 'no dependencies: that project alone' app#lint
exits 0 'which is enough'
needs 'app base lib' '"^": what it depends on, too' app#build
needs 'dep gen tool' '"pkg#task": that project, and for its "^" what it depends on' gen#gen
needs 'base' 'a name selects a project' --filter=base build
needs 'app base lib' '"p...": those on the way' '--filter=app...' build
needs "$all" '"...p": all, as any may name what it depends on' --filter=...base build
needs "$all" '"tag:": all' --filter=tag:core build
needs 'dep far mid' 'dependencies of a config: as far as they lead' far#build
needs 'dep reads' 'inputs in another project: that one' reads#build
needs "$all" '--all: all' --all build
needs 'app base lib odd' 'a filter that leaves others out' --filter=odd --filter=app build '--filter=!far'
needs 'base' 'a task that one project lacks: that project' base#biuld
said 'base has no task "biuld"; did you mean "base#build"' 'and what it has'
needs "$all" 'a bare name that is nowhere: all' --filter=base biuld
said 'no project declares a task "biuld"; did you mean "build"' 'so that the nearest is found'
needs "$all" '"^" of a name that nobody there has: all' odd#odd
exits 0 'and where no name is near it is none'
needs "$all" 'or a slip' odd#slip
exits 2 'which is refused'
said 'no project declares "biuld"; did you mean "\^build"' 'with the name that was meant'
needs 'app base lib' '--exclude-dependencies of a task that is known: no more' --exclude-dependencies=build app#build
needs 'app base dep lib' 'of one in another project: that one' --exclude-dependencies=dep#make app#build
needs "$all" 'of one that nobody there has: all' --exclude-dependencies=make app#build

# What is not asked for goes on to be remembered, while it holds.
for p in app lib; do sed -i "s,^,import './../../preset.mjs'; ," p/$p/vx.config.mjs; done
echo 'export const x = 1;' >preset.mjs
settle
rm -rf .vx
evaluates "$all" 'everything once' --all build
evaluates '' 'then nothing' app#build
evaluates '' 'nor of what the run before had nothing to do with' far#build
evaluates '' 'or of all' --all build
echo '// edited' >>preset.mjs
settle
evaluates 'app' 'an import of two is edited: the one that is asked for' app#lint
evaluates '' 'is remembered' app#lint
evaluates 'lib' 'and the other evaluated when it is its turn' app#build
evaluates '' 'as is all else' --all build
echo '// edited' >>preset.mjs
settle
evaluates 'app' 'edited once more' app#lint
sed -i '$d' preset.mjs
settle
evaluates 'app lib' 'what was remembered of the text before is of no use any more' app#build

# Nobody is kept from work by a config that has nothing to do with it.
echo 'throw new Error("as broken as can be");' >p/far/vx.config.mjs
echo 'for (;;);' >p/mid/vx.config.mjs
echo 'export default { tasks: { build: { exec: { cmd: "x" } } } };' >p/tool/vx.config.mjs
settle
export VX_CONFIG_WORKER_TIMEOUT_MS=3000
run_only run app#build lib#build
exits 0 'broken configs that are not needed'
run_only run --filter='app...' --filter='!far' build
exits 0 'by a filter'
run_only run odd#odd
exits 0 'a name that could only be looked up there is let through'
run_only run odd#slip
exits 0 'a slip, too'
run_only run far#build
exits 2 'one that is needed'
said '^vx: p/far/vx.config.mjs: throws Error: as broken as can be' 'fails by name'
run_only run gen#gen
exits 2 'of a dependency'
said '^vx: p/tool/vx.config.mjs: tasks.build.exec.cmd: ' 'too'
run_only run build --all
exits 2 'of all'
said '^vx: p/far/vx.config.mjs: throws' 'too'
run_only run build --filter=mid
exits 2 'one that never ends'
said '^vx: p/mid/vx.config.mjs: has not come to an end within 3000 ms' 'too'
run_only run nope#build
exits 2 'a project that is not there'
said 'there is no project "nope"; there are app, base' 'is told without asking any'
run_only run app#biuld
said 'did you mean "app#build"' 'as is a task of a project'
run_only run biuld --filter=app
exits 2 'a task that could be anywhere'
said '^vx: p/far/vx.config.mjs: throws' 'is looked for everywhere'

# The name of a project is known without its config only where a manifest says it.
rm p/*/vx.config.mjs
mkdir p/nameless
echo 'export default { name: "given", tasks: { t: { exec: { command: "true" } } } };' >p/nameless/vx.config.mjs
evaluates 'nameless' 'a project that no manifest gives a name' app#build
run_only run given#t
exits 0 'is found by the one that its config says'

# What a task writes elsewhere is compared with what is declared there.
cache() { echo "{ exec: { command: 'true' }, cache: { inputs: { files: [] }, outputs: { $1 } } }"; }
project writes '' "tasks: { w: $(cache "files: [], workspaceFiles: ['p/dep/gen']") }"
project dep '' "tasks: { idle: $(cache "files: ['gen']") }"
needs 'dep nameless writes' 'a task with outputs in another project: that one' writes#w
exits 2 'which has the same output'
said 'task dep#idle: cache.outputs.files "gen" overlaps the output "p/dep/gen" of writes#w' 'and is refused by name'
done_testing

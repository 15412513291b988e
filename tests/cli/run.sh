#!/bin/sh
# SPDX-License-Identifier: MIT
# Selection, --dry, --continue, forwarded arguments, environment, exit codes.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

task() { # COMMAND [MORE-FIELDS]
	printf '{ "exec": { "command": "%s" }%s }' "$1" "${2:-}"
}
project() { # NAME DEPENDENCIES TASKS
	printf '{ "name": "%s", "dependencies": [%s], "tags": ["t"], "tasks": { %s } }\n' "$1" "$2" "$3" |
		put "p/$1/vx.config.json"
}
note() { printf 'echo %s >>%s/ran' "$1" "$T"; }
build() { printf '"build": %s' "$(task "$(note "$1")" ', "dependsOn": ["^build"]')"; }
echo '{ "projects": ["p/*"] }' >vx.workspace.json
project lib '' "$(build lib)"
project mid '"lib"' '' # holds no task: passed through
project app '"mid"' "$(build app), \"test\": $(task "$(note app-test)" ', "dependsOn": ["build"]')"
project top '"app"' "$(build top)"
project alone '' "$(build alone)"

ran() { tr '\n' ' ' <"$T/ran"; }
fresh() { : >"$T/ran"; }
selects() { # WANT NAME ARGS...: which ran, sorted
	s_want=$1 s_name=$2
	shift 2
	fresh
	run run "$@"
	exits 0 "$s_name"
	is "$(sort "$T/ran" | tr '\n' ' ')" "$s_want" "$s_name: what ran"
}

selects "alone app lib top " "--all" build --all
fresh
run run build --all --concurrency 1
is "$(tr '\n' ' ' <"$T/ran" | sed 's/alone //')" "lib app top " "dependencies first, through a project without the task"
cd p/app || exit 99
selects "app lib " "the project of the current directory and what it needs" build
mkdir -p deep/er && cd deep/er || exit 99
selects "app lib " "also from a directory inside it" build
cd "$W" || exit 99
selects "app lib " "pkg#task" app#build
selects "app lib " "--filter by name" build --filter app
selects "app lib top " "a dependent needs its dependencies" build --filter top
selects "alone app lib " "--filter by glob" build --filter 'a*'
selects "alone " "--filter by directory" build --filter ./p/alone
selects "app lib top " "...name: dependents too" build --filter '...app'
selects "app lib " "name...: dependencies too" build --filter 'app...'
selects "app lib top " "exclusion" build --filter '*' --filter '!alone'
selects "app app-test lib " "two tasks" build test --filter app
fresh
run run build --filter top --frozen
exits 2 "an option that this vx does not have"
said 'not in this vx' "is refused by name"

fresh
run run build --all --dry
exits 0 "--dry"
is "$(ran)" "" "--dry runs nothing"
like "$OUT" 'lib#build' "and lists the plan"
ok "it leaves nothing to lock or restore behind" test ! -e p/lib/dist

# Failures.
project lib '' "\"build\": $(task "$(note lib); exit 7" ', "dependsOn": ["^build"]')"
fresh
run run build --all --concurrency 1
exits 1 "a failed dependency"
is "$(sort "$T/ran" | tr '\n' ' ')" "alone lib " "what depends on it is skipped, the rest goes on"
said 'failed \(exit 7\)' "with the code of the failure"
said 'app#build.*skipped|skipped.*app#build' "the skipped are named"
said 'blocked by lib#build' "with what blocks them"
fresh
run run build --all --continue=always
exits 1 "--continue=always still fails"
is "$(sort "$T/ran" | tr '\n' ' ')" "alone app lib top " "but runs everything"
fresh
run run build --all --continue=never --concurrency 1
exits 1 "--continue=never"
is "$(ran | tr ' ' '\n' | grep -cE 'app|top')" 0 "nothing after the failure that needs it"
is "$(ran)" "lib " "--continue=never: nor anything else"
said '^⊘ +0ms  skipped +alone#build$' "which is skipped without a cause"

project lib '' "\"build\": $(task 'kill -9 $$')"
run run lib#build
exits 1 "a task killed by a signal"
said '137' "is 128 + signal"
said 'SIGKILL' "which is named"
project lib '' "\"build\": $(task 'nosuchprogram --x')"
run run lib#build
exits 1 "a program that is not there"
said '127' "is 127"
said 'nosuchprogram' "and named"

# Forwarded arguments reach what was asked for, quoted, and nothing else.
project lib '' "\"build\": $(task "printf '<%s>' lib >>$T/args; printf '<%s>' ")"
project app '"lib"' "\"build\": $(task "printf '<%s>' app >>$T/args; printf '<%s>'" ', "dependsOn": ["^build"]')"
run run app#build -- 'two words' "it's" '$HOME' -x
exits 0 "forwarded arguments"
said "<two words><it's><[\$]HOME><-x>" "arrive as they were given"
said_not 'lib.*two words' "not at a dependency"
put p/group/vx.config.json <<'E'
{ "name": "group", "tasks": { "all": { "dependsOn": ["app#build"] } } }
E
run run group#all -- x
exits 2 "arguments for a group alone"
said 'arguments after -- reach requested commands, and only groups are requested' "are refused"
rm -r p/group

# The environment is isolated.
put p/env/vx.config.json <<'E'
{ "name": "env", "tasks": { "show": { "exec": {
	"command": "echo s=${SEEN-unset} h=${HIDDEN-unset} d=$DEFINED u=${EMPTY-unset}",
	"env": { "passThrough": ["SEEN", "EMPTY"], "define": { "DEFINED": "a b" } } } } } }
E
try env SEEN=1 HIDDEN=2 EMPTY='' "$VX" run env#show
exits 0 "environment"
said 's=1 h=unset d=a b u=$' "only what is passed through or defined is seen"

# How many at a time. The machine is one processor here.
one=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
workers() { # WANT NAME ARGS...
	w_want=$1 w_name=$2
	shift 2
	try taskset -c "$one" "$VX" run env#show "$@"
	said "^info +$w_want worker" "$w_name"
}
if command -v taskset >/dev/null; then
	workers 1 "as many as processors may be used"
	workers 5 "--concurrency: as many as that" --concurrency 5
	workers 3 "--concurrency: a share of the processors" --concurrency=350%
	workers 1 "--concurrency: but one at least" --concurrency 10%
	echo '{ "projects": ["p/*"], "concurrency": 4 }' >vx.workspace.json
	workers 4 "concurrency in the settings"
	workers 2 "--concurrency outranks it" --concurrency 2
	echo '{ "projects": ["p/*"] }' >vx.workspace.json
else
	skip "as many as processors may be used" "no taskset here"
fi

# Standard input is empty, not the caller's.
put p/in/vx.config.json <<'E'
{ "name": "in", "tasks": { "read": { "exec": { "command": "cat; echo end" } } } }
E
echo "not for the task" >"$T/input"
try sh -c 'exec "$1" run in#read <"$2"' - "$VX" "$T/input"
exits 0 "standard input"
said_not 'not for the task' "is not the caller's"

# Where its time goes.
put p/in/vx.config.json <<'E'
{ "name": "in", "tasks": { "made": {
	"exec": { "command": "true" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }
E
try env VX_TIMING=1 "$VX" run in#made
exits 0 "VX_TIMING"
is "$(sed -n '/^vx: timing$/,/ in all; of that$/s/^ *[0-9]*\.[0-9][0-9] ms  //p' "$ERR" | tr '\n' ',')" \
	"startup,workspace config,discover projects,load configs,package graph,build graph,git enumeration,open cache,plan,classify + probe,run graph,record history,close,in all; of that," \
	"the stages of a run, each once, in their order"
is "$(sed '1,/ in all; of that$/d; s/^ *[0-9]*\.[0-9][0-9] ms  //; s/ ([1-9][0-9]*)$//' "$ERR" | sort | tr '\n' ',')" \
	"cache.get,output glob,task hash," "and what is done for each task"
for value in 0 ''; do
	try env VX_TIMING=$value "$VX" run in#made
	is "$(grep -c timing "$ERR")" 0 "only where it is asked for"
done

# vx inside vx on the same workspace is refused.
printf '{ "name": "in", "tasks": { "nest": { "exec": { "command": "%s run in#read" } } } }\n' "$VX" >p/in/vx.config.json
run run in#nest
exits 1 "a nested run on the same workspace"
said 'vx run inside task in#nest of the same workspace would wait for itself' "is refused, naming the task"
# A command can have cleared the environment that says so.
printf '{ "name": "in", "tasks": { "nest": { "exec": { "command": "env -i %s run in#read" } } } }\n' "$VX" >p/in/vx.config.json
run run in#nest
exits 1 "one that does not know"
said "vx run inside a command of another run in this workspace \(pid [0-9]+: vx run in#nest\) would wait for itself" "is refused, naming the run that waits for it"
mkdir "$T/other"
echo '{ "name": "o", "tasks": { "t": { "exec": { "command": "echo of the other" } } } }' >"$T/other/vx.config.json"
printf '{ "name": "in", "tasks": { "nest": { "exec": { "command": "cd %s/other && %s run t" } } } }\n' "$T" "$VX" >p/in/vx.config.json
run run in#nest
exits 0 "one on another workspace is none"
said 'of the other' "and runs"
done_testing

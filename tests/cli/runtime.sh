#!/bin/sh
# SPDX-License-Identifier: MIT
# cache.inputs.runtime and workspaceRuntime: commands whose output is in the key. When they run, how
# often, what counts of what they say, and how they end.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99
fifo up other held

probes() { sort "$T/probes" | tr '\n' ' '; }
ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() {
	: >"$T/probes"
	: >"$T/ran"
}
# PROJECT INPUTS [MORE]: a project with two tasks that have these inputs.
project() {
	put "p/$1/vx.config.json" <<-E
		{ "name": "$1", "tasks": {
			"build": { "exec": { "command": "echo $1.build >>$T/ran" },
				"cache": { "inputs": { "files": ["in"], $2 }, "outputs": { "files": [] } } },
			"test": { "exec": { "command": "echo $1.test >>$T/ran" },
				"cache": { "inputs": { "files": ["in"], $2 }, "outputs": { "files": [] } } }${3:-}
		} }
	E
	echo "$1" >"p/$1/in"
}
# PROJECT COMMAND
probing() { project "$1" "\"runtime\": [\"$2\"]"; }

echo '{ "projects": ["p/*"] }' >vx.workspace.json
both="\"runtime\": [\"echo project \$(basename \$PWD) >>$T/probes; cat $T/version\"],
	\"workspaceRuntime\": [\"echo workspace \$(basename \$PWD) >>$T/probes; cat $T/version\"]"
project a "$both"
project b "$both"
echo 1 >"$T/version"

fresh
run run build test --all
exits 0 "cold"
is "$(probes)" "project a project b workspace ws " "once for each project, and once for the workspace"
is "$(ran)" "a.build a.test b.build b.test " "all ran"
fresh
run run build test --all
is "$(probes)" "project a project b workspace ws " "each run asks anew"
is "$(ran)" "" "they say the same: nothing runs"
fresh
echo 2 >"$T/version"
run run build --all
is "$(ran)" "a.build b.build " "they say something else: all run"
fresh
printf '\n \t2\n\n' >"$T/version"
run run build --all
is "$(ran)" "" "blanks before and after do not count"
fresh
run run a#build
is "$(probes)" "project a workspace ws " "only what the chosen tasks ask for"
fresh
run run a#build --dry
exits 0 "--dry"
is "$(probes)" "project a workspace ws " "--dry runs them, too"
said 'a#build +hit' "and predicts by them"
fresh
run run a#build --no-cache
is "$(probes)" "project a workspace ws " "--no-cache, too"
is "$(ran)" "a.build " "and runs the task"

# What counts.
probing a "cat $T/says; cat $T/complains >&2"
# shellcheck disable=SC2059 # its escapes are what is wanted
says() { # STDOUT STDERR RUNS NAME
	fresh
	printf "$1" >"$T/says"
	printf "$2" >"$T/complains"
	run run a#build
	exits 0 "$4"
	is "$(ran)" "$3" "$4"
}
says 'x' '' 'a.build ' "something on standard output"
says 'x\n' ' \n' '' "blanks on standard error are nothing"
says '' 'x' 'a.build ' "the same on standard error is not the same"
says 'x' 'x' 'a.build ' "nor on both"
says 'xx' '' 'a.build ' "nor one after the other"
says 'x\0x' '' 'a.build ' "a NUL is a byte like others"
says 'x\\0x' '' 'a.build ' "and not its spelling"
says 'x\0x' '' '' "all is remembered"
says '\303\266' '' 'a.build ' "UTF-8"

failed() { # COMMAND REGEX NAME
	probing a "$1"
	fresh
	run run build --all --force
	exits 1 "$3: the run fails"
	said "$2" "$3: it says so"
	is "$(ran)" "b.build " "$3: the task did not run, others did"
}
project b '"env": []'
project c '"env": []' ', "next": { "dependsOn": ["a#build"], "exec": { "command": "echo c.next >>'"$T"'/ran" } }'
rm -r p/c
failed 'echo out; echo one >&2; echo two >&2; exit 3' \
	'a#build: cache.inputs.runtime "echo out.*": exit code 3: two' "a command that fails"
failed 'kill -9 $$' 'exit code 137 \(SIGKILL\)' "one that is killed"
failed "printf '\\\\377'" 'what is not UTF-8' "one that prints other bytes"
failed "printf '\\\\355\\\\240\\\\200' >&2" 'what is not UTF-8' "half a surrogate"
failed 'yes' 'prints more than 1048576 bytes' "one without an end"
run run a#build --dry
exits 2 "in a dry run the failure is the end"
said 'prints more than' "and named"
project c '"env": []' ', "next": { "dependsOn": ["a#build"], "exec": { "command": "echo c.next >>'"$T"'/ran" } }'
fresh
run run c#next
exits 1 "what needs a task whose probe fails"
is "$(ran)" "" "is skipped"
said 'skipped' "which is said"
rm -r p/c

# Where and with what it runs.
mkdir -p p/a/node_modules/.bin node_modules/.bin
for w in own root; do
	[ $w = own ] && d=p/a/node_modules/.bin || d=node_modules/.bin
	printf '#!/bin/sh\necho %s >>%s\n' $w "$T/probes" >"$d/only-$w"
	printf '#!/bin/sh\necho both.%s >>%s\n' $w "$T/probes" >"$d/both"
	printf '#!/bin/sh\necho wrong >>%s\n' "$T/probes" >"$d/sh"
	chmod +x "$d/only-$w" "$d/both" "$d/sh"
done
project a "\"runtime\": [\"only-own; only-root; both; echo \$SEEN \$VX_RUN_TASK. >>$T/probes\"], \"workspaceRuntime\": [\"both\"]"
fresh
export SEEN=seen VX_RUN_TASK=outer
run run a#build
unset SEEN VX_RUN_TASK
exits 0 "programs of the project and of the root"
is "$(probes)" "both.own both.root own root seen . " "the environment of vx, and where programs are looked for"
rm -r node_modules p/a/node_modules
probing a "$VX run b#build 2>&1 >/dev/null"
run run a#build
exits 1 "a vx run in a probe"
said 'inside a command of cache.inputs or an executor of the same workspace' "is refused, it would wait for itself"
probing a "cat; echo \$((0\$(wc -c)))"
run run a#build
exits 0 "standard input is empty"

# At once, as many as may run; and one only where one may.
meet() { echo "echo x >$T/$1; read -r x <$T/$2; echo met"; }
project a "\"runtime\": [\"$(meet up other)\"]"
project b "\"runtime\": [\"read -r x <$T/up; echo x >$T/other\"]"
run run build --all --concurrency 2
exits 0 "probes run at the same time"

# Their end.
export VX_KILL_GRACE_MS=300
core() { tr ' ' '\n' <"/proc/$1/task/$1/children" | head -n 1; }
forever="exec 9>$T/held; (exec setsid sleep 1000) & echo up >$T/up; sleep 1000"
deaf="exec 9>$T/held; trap '' INT TERM; (trap '' INT TERM; sleep 1000) & echo up >$T/up; while :; do sleep 1000; done"
ends() { # HOW CODE NAME ARGS...
	e_how=$1 e_code=$2 e_name=$3
	shift 3
	hold held
	fresh
	bg run a#build "$@"
	await up >/dev/null || fail "the probe did not start"
	case $e_how in
	guard) kill -s KILL "$BG" ;;
	core) kill -s KILL "$(core "$BG")" ;;
	*) kill -s "$e_how" "$BG" ;;
	esac
	bg_wait
	exits "$e_code" "$e_name"
	ok "$e_name: nothing is left" released
	is "$(ran)" "" "$e_name: nothing ran"
}
for d in '' --dry; do
	probing a "$forever"
	ends INT 130 "SIGINT $d" $d
	ends TERM 143 "SIGTERM $d" $d
	ends guard 137 "kill -9 of the guard $d" $d
	ends core 137 "kill -9 of the core $d" $d
	probing a "$deaf"
	ends INT 130 "SIGINT, not listened to $d" $d
done
probing a "exec 9>$T/held; sleep 1000"
hold held
run run a#build --timeout 200
exits 1 "a time-out"
said 'timed out after 200ms \(--timeout\)' "is said"
ok "and nothing is left" released
unset VX_KILL_GRACE_MS

# One that may read what another task has yet to make.
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"gen": { "exec": { "command": "echo a.gen >>$T/ran; cat in >gen" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["gen"] } } },
	"folds": { "dependsOn": ["gen"], "exec": { "command": "echo a.folds >>$T/ran" },
		"cache": { "inputs": { "files": [], "runtime": ["echo probe >>$T/probes"] }, "outputs": { "files": [] } } },
	"all": { "dependsOn": ["gen"] },
	"build": { "dependsOn": ["all"], "exec": { "command": "echo a.build >>$T/ran" },
		"cache": { "inputs": { "files": [], "tasks": [], "runtime": ["echo probe >>$T/probes; cat gen 2>/dev/null"] }, "outputs": { "files": [] } } },
	"test": { "dependsOn": ["build"], "exec": { "command": "echo a.test >>$T/ran" },
		"cache": { "inputs": { "files": [], "tasks": ["build"], "runtime": ["echo probe >>$T/probes; cat gen 2>/dev/null"] }, "outputs": { "files": [] } } }
} }
E
rm -f p/a/gen
echo one >p/a/in
fresh
run run a#test
exits 0 "a probe of what a task makes whose key is not taken in"
is "$(probes)" "probe probe " "each task has its own"
fresh
rm p/a/gen
run run a#test
is "$(ran)" "" "it runs behind that task: the same value, though the file was not there at the start"
echo two >p/a/in
run run a#test
is "$(ran)" "a.build a.gen a.test " "another value: the next run sees it at once"
fresh
run run a#test --dry
is "$(probes)" "" "a dry run cannot ask before that one has run"
said 'known when its dependencies have run' "which it says"
fresh
run run a#folds
is "$(probes)" "probe " "where the key is taken in it runs at the start"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# cache.inputs.tasks: which keys of the tasks before it are in a task's key. And the key of a task that
# is not cached, which has every file of its project.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
# NAME DEPENDENCIES: gen and build, cached.
library() {
	put "p/$1/vx.config.json" <<-E
		{ "name": "$1", "dependencies": [$2], "tasks": {
			"build": { "dependsOn": ["^build"], "exec": { "command": "echo $1.build >>$T/ran; cat in >out" },
				"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out"] } } }
		} }
	E
	echo 1 >"p/$1/in"
}
# TASKS: app#build, with this list.
app() {
	put p/app/vx.config.json <<-E
		{ "name": "app", "dependencies": ["lib", "util"], "tasks": {
			"gen": { "exec": { "command": "echo app.gen >>$T/ran; cat in >gen.out" },
				"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["gen.out"] } } },
			"build": { "dependsOn": ["gen", "^build"], "exec": { "command": "echo app.build >>$T/ran" },
				"cache": { "inputs": { "files": ["own"], "tasks": $1 }, "outputs": { "files": [] } } },
			"after": { "dependsOn": ["build"], "exec": { "command": "echo app.after >>$T/ran" },
				"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } }
		} }
	E
	echo 1 >p/app/in
	echo 1 >p/app/own
}
echo '{ "projects": ["p/*"] }' >vx.workspace.json
library base ''
library lib '"base"'
library util ''

# LIST GEN LIB BASE UTIL: whether an edit there runs app#build again ("x"), in each case.
selects() {
	app "$1"
	for f in app lib base util; do echo 1 >"p/$f/in"; done
	run run app#build
	shift
	for f in app lib base util; do
		fresh
		echo 2 >"p/$f/in"
		run run app#build
		case $(ran) in *app.build*) now=x ;; *) now=- ;; esac
		is "$now" "$1" "$(grep -o '"tasks": \[[^]]*\]' p/app/vx.config.json | tail -n 1 | tr -d '"'): an edit of $f"
		shift
	done
}
selects '["*", "^*"]' x x x x
selects '["*"]' x - - -
selects '["^*"]' - x x x
selects '[]' - - - -
selects '["^build"]' - x x x
selects '["gen", "lib#build"]' x x x -
selects '["*", "^*", "!util#build"]' x x x -
selects '["*", "^*", "!^build"]' x - - -
selects '["^*", "!lib#*", "lib#b*"]' - x x x
selects '["u*#*"]' - - - x

# What is not taken in still comes before, and its failure counts.
app '[]'
for f in app lib base util; do echo 3 >"p/$f/in"; done
run run app#after
fresh
echo 4 >p/lib/in
echo 2 >p/app/own
run run app#after
is "$(tr '\n' ' ' <"$T/ran")" "lib.build app.build app.after " "what is not taken in comes before all the same"
fresh
sed -i 's/cat in >out/exit 1/' p/lib/vx.config.json
echo 3 >p/app/own
run run app#after
exits 1 "where it fails"
is "$(ran)" "lib.build " "what needs it is skipped"
library lib '"base"'

app '["test"]'
run run app#build
exits 2 "a name that dependsOn does not have"
said "p/app/vx.config.json:[0-9:]+ tasks.build.cache.inputs.tasks\[0\]: 'test' names nothing in 'dependsOn'" \
	"is refused, with its place"

# A task that is not cached: every file that counts, its own outputs too, what git ignores not.
rm -r p
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"gen": { "exec": { "command": "echo a.gen >>$T/ran" } },
	"build": { "dependsOn": ["gen"], "exec": { "command": "echo a.build >>$T/ran" },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": ["out"] } } }
} }
E
mkdir -p p/a/deep p/a/nested
echo '{ "projects": ["p/*", "p/a/nested"] }' >vx.workspace.json
echo '{ "name": "nested", "tasks": {} }' >p/a/nested/vx.config.json
echo ignored >.gitignore
echo 1 >p/a/deep/tracked
git_ init -q
git_ add -A
edited() { # COMMAND WANT NAME
	fresh
	eval "$1"
	run run a#build
	is "$(ran)" "$2" "$3"
}
edited : "a.build a.gen " "behind a task that is not cached"
edited : "a.gen " "nothing is edited"
edited 'echo 2 >p/a/deep/tracked' "a.build a.gen " "a tracked file"
edited 'echo 2 >p/a/untracked' "a.build a.gen " "a new one"
edited 'echo 3 >p/a/untracked' "a.build a.gen " "one that is not tracked"
edited 'chmod +x p/a/untracked' "a.build a.gen " "its mode"
edited 'rm p/a/untracked' "a.gen " "it is gone: as before"
edited "printf x >\"p/a/\$(printf 'odd\\377\\nname')\"" "a.build a.gen " "a name that is no UTF-8"
edited 'echo 1 >p/a/ignored' "a.gen " "one that git ignores"
edited 'echo 1 >p/a/nested/x' "a.gen " "one of the project inside"
edited 'echo 1 >other' "a.gen " "one elsewhere"
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"gen": { "exec": { "command": "echo a.gen >>$T/ran; date +%s.%N >made" } },
	"build": { "dependsOn": ["gen"], "exec": { "command": "echo a.build >>$T/ran" },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } }
} }
E
run run a#build
edited : "a.build a.gen " "what it makes itself counts"

# The same of a server: without a cache, it is never started for a hit.
put p/a/vx.config.json <<E
{ "name": "a", "tasks": {
	"serve": { "exec": { "command": "cat", "persistent": {} } },
	"build": { "dependsOn": ["serve"], "exec": { "command": "echo a.build >>$T/ran" },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } }
} }
E
run run a#build
edited : "" "what needs a server is a hit"
edited 'echo 2 >p/a/tracked' "a.build " "what needs a server runs again when a file of its project changes"

# Names are bytes: one that a pattern selects is an input like others.
odd=$(printf 'src\377')
put p/a/vx.config.json <<E
{ "name": "a", "tasks": { "build": { "exec": { "command": "echo a.build >>$T/ran; cp src*/* out" },
	"cache": { "inputs": { "files": ["src*/**"] }, "outputs": { "files": ["out/**"] } } } } }
E
mkdir "p/a/$odd" p/a/out
echo 1 >"p/a/$odd/$odd"
edited : "a.build " "a name that is no UTF-8 under a pattern"
ok "the output has it, too" test -e "p/a/out/$odd"
edited 'rm -r p/a/out' "" "it is restored"
is "$(cat "p/a/out/$odd")" 1 "with its content"
edited "echo 2 >'p/a/$odd/$odd'" "a.build " "an edit is seen"
done_testing

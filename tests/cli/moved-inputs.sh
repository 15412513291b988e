#!/bin/sh
# SPDX-License-Identifier: MIT
# A result is saved only if the task's inputs were the same all the while it ran: also when they are the
# same again at its end.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

# COMMAND: as a task whose inputs are all of p/src; the files are put back before.
task() {
	rm -rf p
	mkdir -p p/src/deep/er p/evil/deep/er
	for f in a deep/b deep/er/c; do
		echo good >p/src/$f
		echo evil >p/evil/$f
	done
	echo '{ "name": "p" }' >p/package.json
	printf '%s\n' "$1" >"$T/command.sh"
	put p/vx.config.json <<-E
		{ "tasks": { "t": {
			"exec": { "command": "exec sh -e $T/command.sh" },
			"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**", "src/gen/**", "src/deep/er/*.js"] } } } } }
	E
	echo '{ "name": "w", "workspaces": ["p"] }' >package.json
	eval "${BEFORE:-}"
	run run p#t --force
}
# COMMAND WHAT NAME
missed() {
	task "$1"
	exits 0 "$3: it succeeds"
	said "not saved: $2 changed while it ran" "$3: it is not saved, and $2 is named"
}
kept() { # COMMAND NAME
	task "$1"
	exits 0 "$2: it succeeds"
	said_not 'not saved' "$2: it is saved"
	run run p#t
	said 'up to date|restored' "$2: the next run has it"
}

missed 'mv src/a b; cp evil/a src/a; cat src/a; mv b src/a' p/src/a "a file that is swapped and swapped back"
missed 'mv src s; mv evil src; cat src/a; mv src evil; mv s src' p/src "a directory"
missed 'mv src/deep d; cp -r evil/deep src/deep; cat src/deep/er/c; rm -r src/deep; mv d src/deep' p/src/deep \
	"one further down"
missed 'cd ..; mv p q; cp -r q p; cat p/src/a; rm -r p; mv q p' p \
	"one above the project"
missed 'cp src/a s; echo evil >src/a; cat src/a; cat s >src/a' p/src/a \
	"a file that is written, and written back"
missed 'touch src/a' p/src/a "a file that is touched: it could have been written"
missed 'cp -p src/a s; echo evil >src/a; cat src/a; cp -p s src/a' p/src/a "a file that is written, and put back with its time"
missed 'ln src/a dist-a; rm dist-a' p/src/a "a file that gets another name, for a while: it could be written by that"
missed 'chmod 644 src/a; cat src/a' p/src/a "a file that gets the permissions that it has"
missed 'chmod 755 src/deep' p/src/deep "a directory, too: it looks as if it had been moved"
missed 'mv src/deep/b src/deep/er/c' p/src/deep/b "a file that is moved over another"
missed 'echo evil >src/deep/b' p/src/deep/b "a file that stays written"
missed 'chmod +x src/a' p/src/a "a file that becomes executable"
missed 'chmod 700 src/deep' p/src/deep "a directory that gets other permissions"
missed 'mv src/a b; cp evil/a src/a; cat src/a; mv b src/a; chmod 644 src/a; touch -d @1 src' p/src/a \
	"a swapped file, made to look like one with permissions set"
missed 'echo new >src/new' p/src/new "a file that is added"
missed 'rm src/deep/b' p/src/deep/b "a file that is removed"
missed 'mv package.json m; echo "{}" >package.json; mv m package.json' p/package.json "the manifest"

kept 'cat src/a src/deep/er/c' "a task that reads"
kept 'mkdir -p dist src/gen; cp -r src/deep dist; cp src/a src/gen' "one that writes its outputs, among the inputs too"
kept 'echo x >src/deep/tmp; cat src/deep/tmp; rm src/deep/tmp; ls src/deep' "one with a temporary file there"
kept 'mkdir src/deep/tmp; rmdir src/deep/tmp' "one with a temporary directory there"

# Where outputs are looked for, and removed, by vx.
kept 'mkdir -p src/gen; echo x >src/gen/x; chmod 555 src/gen' "one whose outputs, among the inputs, may not be removed"
if [ "$(id -u)" = 0 ]; then
	BEFORE='chmod 311 p/src/deep/er'
	kept 'cat src/deep/er/c' "one with inputs in a directory that vx opens to look for outputs"
else
	skip "a directory that may not be read" "who is not root has no inputs there"
fi
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Shapes of commands: what sh is given, what the end is called, what explains it, what is kept of the output.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
. "$VX_SRCDIR/tests/cases/both.sh"
fifo held stop
export VX_KILL_GRACE_MS=300

# An sh that says what it is given.
mkdir "$T/bin"
put "$T/bin/sh" <<'E'
#!/bin/sh
echo "given: $2" >&2
exec /bin/sh "$@"
E
chmod +x "$T/bin/sh"
# Where a directory of PATH may not be looked into, shells say 126 of what is not found.
for d in $(echo "$PATH" | tr ':' ' '); do
	[ ! -x "$d" ] || open=${open:-}:$d
done
PATH=$T/bin$open

# JSON of the fields of exec: package a has one task, t.
task() {
	package a "\"t\": { \"exec\": { $1 }${2:+, $2} }"
	put packages/a/node_modules/.bin/own <<'E'
#!/bin/sh
read -r pid comm state parent group session rest </proc/self/stat
[ "$pid" != "$session" ] || echo "own leads its session: $*"
[ "$1" != -k ] || kill -TERM "$pid"
E
	chmod +x packages/a/node_modules/.bin/own
	workspace
}
play() { go t --output-logs=full "$@"; }
cached='"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } }'

program() {
	task '"command": "own -b \"$VX_RUN_TASK\" x"'
	play
	exits 0 "$C one program"
	said '^given: exec own -b "\$VX_RUN_TASK" x$' "$C is run in the place of the shell"
	said "^own leads its session: -b a#t x\$" "$C which has put in what it puts in"
	task '"command": "own -k"'
	play
	said 'a#t ── .* failed \(exit 143, 128 \+ SIGTERM\)' "$C its signal is the task's"
	said_not '^note: ' "$C and SIGTERM needs no word"
	task '"command": "python3 -c \"x = bytearray(96 << 20); [i * i for i in range(300000)]\""'
	play
	figures 't.cpu_us > 5000 AND t.peak_rss_kb BETWEEN 90000 AND 200000' "$C so is its use of CPU and memory"
	task '"command": "own -b"'
	play
	figures 't.peak_rss_kb < 30000' "$C the peak of vx is not"
}
# CONDITION NAME: on the row of the only task of the last run.
figures() {
	is "$(python3 -c 'import sqlite3, sys
for row in sqlite3.connect(".vx/history.db").execute(
    f"SELECT {sys.argv[1]}, t.cpu_us, t.peak_rss_kb FROM tasks t WHERE run = (SELECT max(id) FROM runs)"):
    print(row[0] or row)' "$1")" 1 "$2"
}

input() {
	task '"command": "cat; echo over"'
	mkfifo never
	exec 6<>never
	set -- "$VX" run --all t --output-logs=full
	sandboxed && set -- "$@" --sandbox
	ok "$C standard input is nothing" sh -c 'out=$1; shift; timeout 60 "$@" <&6 >"$out"' - "$OUT" "$@"
	exec 6<&-
	said '^over$' "$C whatever that of vx is"
}

assignment() {
	task '"command": "FOO=1 own x.js"'
	play
	exits 0 "$C an assignment first"
	said '^given: FOO=1 own x\.js$' "$C is the shell's"
}

shell() {
	for s_command in 'own a && own b' 'own x | cat' 'echo hi' 'own >/dev/null' 'own $(echo x)' '[ -d . ]' \
		'time own' "'own' a" '$PWD/own || true' 'own; true'; do
		task "\"command\": \"$s_command\""
		play
		is "$(grep '^given: ' "$OUT")" "given: $s_command" "$C for the shell: $s_command"
	done
}

left() {
	task "\"command\": \"(exec 9>$T/held; read -r x <$T/stop) & echo up\""
	hold held
	play
	exits 0 "$C a command that leaves a process behind"
	said '^up$' "$C has its own output"
	if sandboxed; then
		said '^note: 1 background process ended' "$C which ends with it in a sandbox"
	else
		said "^note: output after the command's exit was cut: .* 250 ms later" "$C and a line says what is cut"
		ok "$C which goes on" timeout 30 sh -c "echo x >$T/stop"
	fi
	released
	pass "$C and nothing is left at last"
}

timeouts() {
	task '"command": "sleep 100", "timeout": 100' "$cached"
	play
	exits 1 "$C a command that takes too long"
	said 'a#t ── .* failed \(timed out after 100ms \(exec\.timeout\), exit 143\)' "$C is ended by SIGTERM"
	said_not '^note: SIG' "$C which needs no word"
	play
	said 'timed out' "$C and is never cached"
	play --timeout=60000
	said 'timed out after 100ms \(exec\.timeout\)' "$C exec.timeout outranks --timeout"
	task '"command": "sleep 100"'
	VX_TASK_TIMEOUT=60000 play --timeout 200
	said 'timed out after 200ms \(--timeout\)' "$C which outranks VX_TASK_TIMEOUT"
	echo '{ "timeout": 60000 }' >vx.workspace.json
	VX_TASK_TIMEOUT=200 play
	said 'timed out after 200ms \(VX_TASK_TIMEOUT\)' "$C which outranks the workspace"
	task "\"command\": \"trap '' TERM; sleep 100\", \"timeout\": 100"
	play
	said 'failed \(timed out after 100ms \(exec\.timeout\), exit 137\)' "$C one that does not hear: by SIGKILL, and timed out all the same"
	task "\"command\": \"(trap '' TERM; exec 9>$T/held; while :; do sleep 100; done) & wait\", \"timeout\": 100"
	hold held
	play
	said 'timed out after 100ms' "$C one whose child does not hear"
	released
	pass "$C is waited for with all of its group"
}

killed() {
	task '"command": "kill -9 $$"'
	play
	exits 1 "$C a command that is killed"
	said 'a#t ── .* failed \(exit 137, 128 \+ SIGKILL\)' "$C is called that"
	said '^note: SIGKILL: .*memory ran out' "$C with what usually does it"
	task '"command": "(exit 139)"'
	play
	said 'failed \(exit 139, 128 \+ SIGSEGV\)' "$C a code that a shell has from a child's signal"
	said '^note: SIGSEGV: ' "$C is read as one"
	task '"command": "kill -INT $$"'
	play
	said_not '^note: SIG' "$C SIGINT needs no word"
}

no_program() {
	task '"command": "nosuch --x"'
	mkdir -p packages/b/node_modules/.bin
	play
	exits 1 "$C a program that is not there"
	said 'failed \(exit 127\)' "$C has that code"
	said '^note: nosuch was not found: its PATH begins with packages/a/node_modules/\.bin and node_modules/\.bin, and what other projects install is not on it$' \
		"$C the word, and where it was looked for"
	task '"command": "true && nosuch --x"'
	play
	said '^note: 127 usually says that a program was not found: its PATH begins with packages/a/' "$C without the word where the shell is needed to know it"
	task '"command": "(exit 127)"' "$cached"
	play
	exits 1 "$C the code alone"
}

# NOTE NAME
explains() {
	play
	exits 1 "$C $2"
	said "^note: $1\$" "$C is explained"
}
paths() {
	task '"command": "./missing.sh x"'
	explains '\./missing\.sh does not exist in packages/a' "a path that is not there"
	task '"command": "./dir x"'
	mkdir packages/a/dir && echo x >packages/a/dir/x
	explains '\./dir is a directory' "a directory"
	task '"command": "./plain.sh x"'
	echo 'echo hi' >packages/a/plain.sh
	explains '\./plain\.sh may not be executed: chmod \+x' "a file without the bit"
	printf '#!/no/such/lua\n' >packages/a/plain.sh
	chmod +x packages/a/plain.sh
	explains '\./plain\.sh wants to be run by /no/such/lua, which does not exist' "a missing interpreter"
	printf '#!/usr/bin/env no-such-lua -x\n' >packages/a/plain.sh
	explains '\./plain\.sh wants to be run by no-such-lua, which is not on its PATH' "one that env is to find"
	printf '#!/bin/sh\r\necho hi\r\n' >packages/a/plain.sh
	explains '\./plain\.sh has lines that end in CR LF, and no interpreter is called "/bin/sh\\r": write it with LF' "lines that end in CR LF"
	printf 'no-such-word\n' >packages/a/plain.sh
	explains '\./plain\.sh has no #! line, so the shell took it for a script of its own' "a script without its first line"
	task '"command": "tool x"'
	printf '#!/no/such/lua\n' | put node_modules/.bin/tool
	chmod +x node_modules/.bin/tool
	explains 'node_modules/\.bin/tool wants to be run by /no/such/lua, which does not exist' "the same of one on its PATH"
}

# A program that is there and not granted.
hidden() {
	sandboxed || { pass "$C has nothing hidden"; return; }
	task '"command": "../../tools/gen.sh x"'
	printf '#!/bin/sh\necho hi\n' | put tools/gen.sh
	chmod +x tools/gen.sh
	explains '\.\./\.\./tools/gen\.sh is hidden from it by the sandbox \(tools.*\); to allow it: .*' "a program outside of its project"
	task '"command": "./gen.sh x", "sandbox": {}'
	cp tools/gen.sh packages/a/gen.sh
	explains '\./gen\.sh is hidden from it by the sandbox \(packages/a/gen\.sh\); to allow it: allow\.read: \["gen\.sh"\]' "one in it"
	task '"command": "./gen.sh x", "sandbox": { "allow": { "read": ["gen.sh"] } }'
	play
	exits 0 "$C granted, it runs"
}

much() {
	task '"command": "yes x | head -c 41943040"' "$cached"
	play
	exits 0 "$C 40 MB"
	play
	said 'up-to-date' "$C are replayed"
	said '^\[vx: 25165824 bytes left out here: the first 8 MiB and the last 8 MiB are kept\]$' "$C with a line in the place of the middle"
	is "$(grep -cx x "$OUT")" 8388608 "$C between the first 8 MiB and the last"
}
# What one requested task prints is shown as it comes: all of it.
live() {
	task '"command": "yes x | head -c 41943040"'
	cd packages/a || exit 99
	if sandboxed; then run run t --sandbox; else run run t; fi
	is "$(grep -cx x "$OUT")" 20971520 "$C 40 MB, live"
}

each program input assignment shell left timeouts killed no_program paths hidden
PATH=${PATH#"$T/bin:"}
each much live

# The shell is one that no package brings.
mkdir bin
cp "$T/bin/sh" bin/sh
try env PATH="$T/none:$W/bin" "$VX" run --all t
exits 2 "no sh but one in the workspace"
said 'no `sh` on PATH outside the workspace: tasks cannot be run' "is none"
done_testing

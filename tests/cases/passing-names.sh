#!/bin/sh
# SPDX-License-Identifier: MIT
# A name that comes and goes while a sandboxed task runs, where a grant of its own would show it whatever
# comes: no listing afterwards has it, but the result is not proven.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
cd "$W" || exit 99
fifo begun come read_all go

# GRANTS COMES GOES: two commands, before and after the task has read.
passes() {
	rm -rf p
	mkdir -p p/src/deep p/src/empty
	echo a >p/src/a
	echo b >p/src/deep/b
	put p/vx.config.json <<-E
		{ "name": "p", "tasks": { "t": {
			"exec": { "command": "echo x >$T/begun; read x <$T/come; cat src/* src/deep/* opt opts/x 2>/dev/null; echo x >$T/read_all; read x <$T/go",
				"sandbox": { "allow": { "read": [$1] } } },
			"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }
	E
	bg run p#t --force
	await begun >/dev/null
	eval "$2"
	echo x >"$T/come"
	await read_all >/dev/null
	eval "$3"
	echo x >"$T/go"
	bg_wait
}
proven() { # NAME GRANTS COMES GOES
	passes "$2" "$3" "$4"
	exits 0 "$1: it succeeds"
	said_not 'not saved|not proven' "$1: it is saved, and proven"
}
doubted() { # NAME DIRECTORY GRANTS COMES GOES
	passes "$3" "$4" "$5"
	exits 0 "$1: it succeeds"
	said 'evil' "$1: it has read it"
	said "not proven: names came or went in $2 while it ran" "$1: it is not proven, and the directory is named"
	said_not 'not saved' "$1: it is saved"
}
echo '{ "projects": ["p"] }' >vx.workspace.json
new='echo evil >p/src/new'
for grant in '"src"' '"src/**"'; do
	doubted "$grant, a file" p/src "$grant" "$new" 'rm p/src/new'
	proven "$grant, nothing" "$grant" : :
	proven "$grant, elsewhere" "$grant" 'echo evil >p/new' 'rm p/new'
done
doubted 'further down' p/src/deep '"src"' 'echo evil >p/src/deep/new' 'rm p/src/deep/new'
doubted 'a file that is granted by its name, and was missing' p '"src", "opt"' 'echo evil >p/opt' 'rm p/opt'
doubted 'one in a directory that was missing' p '"src", "opts/**"' 'mkdir p/opts; echo evil >p/opts/x' 'rm -r p/opts'
done_testing

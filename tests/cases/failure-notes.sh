#!/bin/sh
# SPDX-License-Identifier: MIT
# The notes beside a command that failed by itself (spec/sandbox.md §17): what is said, and that it is said of no
# other task. Those of them that this sandbox has no use for are here by what works instead.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program python3
cd "$W" || exit 99
HOME=$T/home
export HOME
mkdir "$HOME"
[ -z "${VX_TEST_OWNER:-}" ] || chown "$VX_TEST_OWNER:$VX_TEST_OWNER" "$HOME"
echo '{ "projects": ["p/*"] }' >vx.workspace.json
mkdir -p p/app/src p/lib/sub p/tools
echo '{ "name": "lib" }' >p/lib/vx.config.json
echo s >p/app/src/s
echo a >p/lib/sub/a
echo z >p/lib/z
printf '#!/bin/sh\necho made\n' >p/tools/gen
printf '#!/bin/sh\necho made\n' >p/app/gen
chmod +x p/tools/gen p/app/gen

# SANDBOX [EXEC-FIELDS]: stdin is the command.
task() {
	cat >"$T/command.sh"
	put p/app/vx.config.json <<-E
		{ "name": "app", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "sandbox": $1${2:-} } } } }
	E
	run run app#t
}
notes() { # NAME [REGEX...]: each is a note, and there is no other
	tap_what=$1
	shift
	# The command lies outside, in no key: to vx it is one that now fails and now does not.
	is "$(grep "^note: " "$OUT" | grep -vc "^note: flaky: ")" $# "$tap_what: $# note(s)"
	for tap_re in "$@"; do
		said "^note: $tap_re\$" "$tap_what: says so"
	done
}

# --- nothing in the working directory is granted -------------------------------------------------

cwd='nothing in its working directory is granted, so it looks empty; to show it: allow\.read: \["\."\]'
task '{}' <<'E'
ls | grep .
E
exits 1 "an empty directory"
notes "an empty directory" "$cwd"
task '{ "allow": { "write": ["../lib/out"], "read": ["~/x"] } }' <<'E'
false
E
notes "grants elsewhere" "$cwd"
task '{}' <<'E'
ls
E
exits 0 "a command that does not fail"
notes "a command that does not fail"
for grant in '"read": ["."]' '"read": ["src/*.x"]' '"write": ["dist/"]' '"read": ["../*/none"]' '"read": ["../.."]' '"read": ["*"]'; do
	task "{ \"allow\": { $grant } }" <<'E'
false
E
	exits 1 "$grant"
	notes "$grant"
done
task '{}' <<'E'
cat src/s
E
exits 1 "a finding says as much"
notes "a finding says as much"
task '{}' <<'E'
cat src/s; exit 0
E
exits 1 "a finding alone"
notes "a finding alone"
task '{}' ', "timeout": 1' <<E
read x <$T/none
trap '' TERM
while :; do :; done
E
exits 1 "stopped at its time-out"
said 'timed out' "stopped at its time-out"
notes "stopped at its time-out"

# --- hidden past the wall --------------------------------------------------------------------------

task '{ "allow": { "read": ["."] } }' <<'E'
cat ../lib/z
E
notes "one of another project" 'hidden from it, outside its project; to show it: allow\.read: \["\.\./lib"\]'
task '{ "allow": { "read": [".", "../lib/none", "../lib/sub/none"] } }' <<'E'
ls ../lib/sub ../tools; cat ../lib/sub/a ../lib/z
E
notes "files and directories" 'hidden from it, outside its project; to show it: allow\.read: \["\.\./lib/sub/a"\]' \
	'hidden from it, outside its project; to show it: allow\.read: \["\.\./lib/z"\]' \
	'hidden from it, outside its project; to show it: allow\.read: \["\.\./tools"\]'
is "$(grep '^note: ' "$OUT" | tail -n 1 | grep -c tools)" 1 "files and directories: files first"
task '{ "allow": { "read": ["."] } }' <<'E'
cat ../lib/z; exit 0
E
exits 0 "who goes on without"
notes "who goes on without"
task '{ "allow": { "read": ["."] } }' <<'E'
cat ../none
E
exits 1 "what there is nowhere"
notes "what there is nowhere"
task '{ "allow": { "read": ["."] } }' ', "timeout": 300' <<'E'
cat ../lib/z
while :; do :; done
E
said 'timed out' "stopped, though something was hidden"
notes "stopped, though something was hidden"

# --- programs --------------------------------------------------------------------------------------

task '{ "allow": { "read": ["src"] } }' <<'E'
../tools/gen
E
exits 1 "a program outside"
said 'exit 127' "a program outside: is not found"
notes "a program outside" 'hidden from it, outside its project; to show it: allow\.read: \["\.\./tools"\]'
task '{ "allow": { "read": ["src"] } }' <<'E'
./gen
E
said 'failed \(exit 127, 1 sandbox violation\)' "a program inside: a finding"
said '^    to allow it: allow\.read: \["gen"\]$' "a program inside: with the grant"
notes "a program inside"

# --- sockets and owners: unix-sockets.sh, c09-owners.sh ----------------------------------------------

task '{ "allow": { "read": ["src"] } }' <<'E'
python3 -c 'import socket; socket.socket(socket.AF_UNIX)' || cat ../lib/z
E
notes "what is known to be hidden comes before a socket" 'hidden from it.*'
task '{}' <<'E'
python3 -c 'import socket; socket.socket(socket.AF_UNIX)'
E
notes "so does an empty directory" "$cwd"

# --- what needs no note --------------------------------------------------------------------------

task '{ "allow": { "write": ["dist/x"] } }' <<'E'
mkdir -p dist/x || exit; echo >dist/x/y
E
exits 0 "no placeholder is in the way"
task '{ "allow": { "write": ["dist"] } }' <<'E'
rm -rf dist
E
exits 0 "a granted directory can be removed"
task '{ "allow": { "read": ["src"] } }' <<'E'
echo >../lib/new
E
notes "what is written past the wall" 'hidden from it.*: allow\.read: \["\.\./lib"\]'
task '{ "allow": { "read": ["src", "../lib/z"] } }' <<'E'
echo >../lib/new
E
said 'failed \(exit 1, 1 sandbox violation\)' "a write where it sees something is a finding"
said '^    to allow it: allow\.write: \["\.\./lib/new"\]' "with the grant"
notes "a write where it sees something"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Known files are looked at while configs are read. What a run itself changes before keys are made is
# not missed for that: a command of cache.inputs.runtime that writes an input.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

ran() { tr '\n' ' ' <"$T/ran"; }
# Until the file's last change is no longer near: before, no look at it is believed.
settle() {
	until [ "$(date +%s%N)" -gt $(($(date -d "$(stat -c %z "$1")" +%s%N) + 60000000)) ]; do :; done
}

put vx.config.json <<E2
{ "tasks": { "t": { "exec": { "command": "cat in >>$T/ran" }, "cache": {
	"inputs": { "files": ["in"], "runtime": ["if test -e $T/write; then cat $T/write >in; fi"] },
	"outputs": { "files": [] } } } } }
E2
echo one >in
settle in
: >"$T/ran"
run run t
exits 0 "cold"
run run t
is "$(ran)" "one " "the input is known"
echo two >"$T/write"
run run t
is "$(ran)" "one two " "a probe's write to it is seen in the same run"
settle in
run run t
is "$(ran)" "one two " "and it is known again"
echo six >"$T/write"
settle in
run run t
is "$(ran)" "one two six " "so is one that size does not tell"

# Outputs are looked at while keys are made.
put vx.config.json <<E2
{ "tasks": { "t": { "exec": { "command": "mkdir -p out && echo built >out/f; echo t >>$T/ran" }, "cache": {
	"inputs": { "files": ["in"], "runtime": ["if test -e $T/remove; then rm -r out; rm $T/remove; fi"] },
	"outputs": { "files": ["out/**"] } } } } }
E2
: >"$T/ran"
run run t
run run t
said "up to date" "the outputs are there"
: >"$T/remove"
run run t
is "$(cat out/f)" "built" "a probe that removes them is seen in the same run"
is "$(ran)" "t " "and they are restored"
run run t
said "up to date" "and are there again"

# The memory is cut short in the middle of a run.
mkdir -p many/src cut
i=0
while [ $i -lt 300 ]; do
	echo $i >"many/src/a-file-with-a-name-of-some-length-$i"
	i=$((i + 1))
done
echo '{ "projects": ["many", "cut"] }' >vx.workspace.json
put cut/vx.config.json <<'E'
{ "name": "cut", "tasks": { "t": { "exec": { "command": ": >../.vx/stat" } } } }
E
put many/vx.config.json <<'E'
{ "name": "many", "tasks": { "t": { "dependsOn": ["cut#t"], "exec": { "command": "true" },
	"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }
E
run run many#t
run run many#t
echo x >many/src/new
run run many#t
exits 0 "the memory is emptied while it is in use"
done_testing

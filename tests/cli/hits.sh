#!/bin/sh
# SPDX-License-Identifier: MIT
# When hits are served: not after what they depend on, and after it when they turn out to be none.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99
fifo up go

ran() { tr '\n' ' ' <"$T/ran"; }
fresh() { : >"$T/ran"; }
echo '{ "projects": ["p"] }' >vx.workspace.json
echo one | put p/in
put p/vx.config.json <<E
{ "name": "p", "tasks": {
	"lib": { "exec": { "command": "echo lib >>$T/ran; mkdir -p lib; cat in >lib/out" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["lib/**"] } } },
	"app": { "dependsOn": ["lib"], "exec": { "command": "echo app >>$T/ran; mkdir -p app; cat lib/out >app/out" },
		"cache": { "inputs": { "files": [] }, "outputs": { "files": ["app/**"] } } },
	"slow": { "exec": { "command": "if test -e $T/wait; then echo up >$T/up; read -r x <$T/go; fi" },
		"cache": { "inputs": { "files": ["slow"] }, "outputs": { "files": [] } } },
	"after": { "dependsOn": ["slow"], "exec": { "command": "echo after >>$T/ran; mkdir -p after; cat in >after/out" },
		"cache": { "inputs": { "files": ["in"], "tasks": [] }, "outputs": { "files": ["after/**"] } } }
} }
E
fresh
echo 1 >p/slow
run run --all app after
exits 0 "cold"
is "$(grep -v after "$T/ran" | tr '\n' ' ')" "lib app " "in order"

# A hit that needs a task which runs: the first thing said of it comes while that one waits.
rm -r p/after
echo 2 >p/slow
: >"$T/wait"
fresh
mkfifo "$T/says"
"$VX" run --all app after --output-logs=hash-only >"$T/says" 2>"$ERR" </dev/null &
vx=$!
exec 3<"$T/says"
await up >/dev/null || fail "the slow task did not start"
timeout 30 sed -n '/p#after/{p;q}' <&3 >"$T/line"
like "$T/line" 'after' "a hit is told while a task that it depends on runs"
is "$(cat p/after/out)" one "it is restored"
is "$(ran)" "" "without having run"
echo x >"$T/go"
cat <&3 >/dev/null
wait "$vx"
is $? 0 "and the run succeeds"
rm "$T/wait"

# Both results are gone: a miss each, in the order of the graph.
blobs() { find .vx/cache/blobs -type f "$@"; }
rm -r p/lib p/app
blobs -delete
fresh
run run --all app
exits 0 "results whose content is gone"
is "$(ran)" "lib app " "are made again, in order"
said 'p#lib: the stored result is gone or damaged; running the task' "which is said"
is "$(cat p/app/out)" one "and are right"
fresh
rm -r p/lib p/app
run run --all app
is "$(ran)" "" "they are stored again"

# Outputs that are as they were need no content.
blobs -delete
run run --all app --output-logs=errors-only
exits 0 "nothing is stored, all is in place"
is "$(ran)" "" "up to date all the same"

# A file in the place of a directory in which one cannot be written: the modes of what was below are
# given back last, and there is nothing left to give them to.
put p/vx.config.json <<'E'
{ "name": "p", "tasks": { "shape": {
	"exec": { "env": { "passThrough": ["FLAT"] }, "command":
		"mkdir out; if [ \"$FLAT\" ]; then echo f >out/aux; else mkdir -p out/aux/d/e; echo f >out/aux/d/e/f; chmod 555 out/aux/d/e; fi" },
	"cache": { "inputs": { "files": [], "env": ["FLAT"] }, "outputs": { "files": ["out/**"] } } } } }
E
for flat in 1 "" 1 "" 1; do
	try env FLAT="$flat" "$VX" run p#shape
	exits 0 "now ${flat:-not} flat"
	is "$(cd p && find out ! -type d)" "$(test "$flat" && echo out/aux || echo out/aux/d/e/f)" "as it should be"
done
if can_sandbox; then
	try env FLAT= "$VX" run p#shape --sandbox
	try env FLAT=1 "$VX" run p#shape --sandbox --force
	exits 0 "by a commit, too"
fi
chmod -R u+w p/out

# A directory that the result does not have, with something in it that is no output.
put p/vx.config.json <<'E'
{ "name": "p", "tasks": { "some": {
	"exec": { "env": { "passThrough": ["FLAT"] }, "command": "mkdir -p out; [ \"$FLAT\" ] || { mkdir -p out/aux; echo f >out/aux/f; }" },
	"cache": { "inputs": { "files": [], "env": ["FLAT"] }, "outputs": { "files": ["out/**", "!out/aux/keep"] } } } } }
E
try env FLAT=1 "$VX" run p#some
try env FLAT= "$VX" run p#some
echo mine >p/out/aux/keep
for way in once again; do
	try env FLAT=1 "$VX" run p#some
	exits 0 "restored around it, $way"
	is "$(cd p && find out | sort | tr '\n' ' ')" "out out/aux out/aux/keep " "it stays"
done
said 'up.to.date' "and that is all"
done_testing

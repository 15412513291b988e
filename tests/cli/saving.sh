#!/bin/sh
# SPDX-License-Identifier: MIT
# What is saved of a run, what is not, and what is said of it; whose outputs are removed before.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
# NAME DEPENDS COMMAND INPUTS OUTPUTS
task() {
	printf '"%s": { "dependsOn": [%s], "exec": { "command": "echo %s >>%s/ran; %s" }, "cache": { "inputs": { "files": [%s] }, "outputs": { "files": [%s] } } }' \
		"$1" "$2" "$1" "$T" "$3" "$4" "$5"
}
project() { printf '{ "name": "p", "tasks": { %s } }\n' "$1" | put p/vx.config.json; }
echo '{ "projects": ["p"] }' >vx.workspace.json
printf 'dist\n' >.gitignore
git_ init -q
mkdir -p p/src

# What cannot be saved is removed like any other output, so that the next run can go on.
project "$(task one '' 'mkdir -p gen; echo 1 >gen/x; mkfifo gen/p' '' '"gen/**"')"
echo 1 >p/src/in
git_ add -A
git_ commit -qm start
for n in first second; do
	fresh
	run run --all one
	exits 0 "a fifo among the outputs: the $n run"
	is "$(ran)" "one " "runs"
	said 'not saved: output p/gen/p is a fifo' "and says why it is not saved"
done
project "$(task one '' 'mkdir -p gen; echo 1 >gen/x' '' '"gen/**"')"
run run --all one
ok "it goes with the other outputs" test ! -e p/gen/p
mkfifo p/gen/p
fresh
run run --all one
is "$(ran)" "" "one that somebody put there"
ok "goes when the result is restored" test ! -e p/gen/p
rm -rf p/gen .git .vx
git_ init -q

# An input that another task changes after the key was made, and before the command starts.
echo 1 >p/src/in
project "$(task one '' 'cat '"$T"'/new >src/in' '' ''), $(task two '"one"' 'mkdir -p dist; cat src/in >dist/two' '"src/**"' '"dist/two"' | sed 's/"files": \["src/"tasks": [], &/'), $(task three '"two"' true '' '')"
echo 2 >"$T/new"
fresh
run run --all three
exits 0 "an input that changes before the command starts"
is "$(ran)" "one three two " "all of it runs"
said 'not saved: p/src/in changed before it ran' "the result is not saved, which is said"
said 'not saved: p#two, which it needs, was not' "nor is that of a task that needs it"
is "$(grep -c 'not saved' "$OUT")" 2 "each is said once"
fresh
echo 1 >p/src/in
run run --all three
is "$(ran)" "three two " "nor is what has its key: the old input finds neither"
is "$(cat p/dist/two)" 1 "it is made of it"
fresh
run run --all three
is "$(ran)" "" "then all is saved"

# A task that needs a failed one, and one that needs that.
project "$(task one '' false '"src/**"' ''), $(task two '"one"' true '' ''), \
	\"all\": { \"dependsOn\": [\"two\"] }, $(task three '"all"' true '' ''), $(task four '"three"' false '' '')"
run run --all four --continue=always
exits 1 "a run that goes on after a failure"
said 'not saved: p#one, which it needs, failed' "a task that needs the failed one is not saved, which is said"
said 'not saved: p#two, which it needs, was not' "nor is one that needs that, by a group"
is "$(grep -c 'not saved' "$OUT")" 2 "of one that fails it goes without saying"
run run --all four --continue=always --cache local:r
said_not 'not saved' "so it does in a run that saves nothing"

# Nothing selected: most likely a slip.
project "$(task none '' true '"lib/**"' '"dist/none/**"')"
run run --all none
said 'cache.inputs matched no files \(p/lib/\*\*\)|cache.inputs matched no files \(lib/\*\*\)' "inputs that select nothing are said"
said 'cache.outputs matched no files' "so are outputs"
echo 1 | put p/lib/a
run run --all none
said_not 'cache.inputs matched' "not so when there are some"
said 'cache.outputs matched no files' "each time it runs"
run run --all none
said_not 'matched no files' "a hit has nothing to say"

# Outputs are removed before a run whose result is to be saved, and before a restore. No others.
project "$(task build '' 'mkdir -p dist; cat src/in >dist/out' '"src/**"' '"dist/**"')"
run run --all build
echo 3 >p/src/in
echo stray >p/dist/stray
run run --all build --cache local:r
ok "a run that saves nothing leaves what is there" test -e p/dist/stray
run run --all build --no-cache
ok "nor does one without a cache" test -e p/dist/stray
run run --all build
ok "one that saves removes it" test ! -e p/dist/stray
echo stray >p/dist/stray
echo 1 >p/src/in
run run --all build --cache local:r
said 'restored' "a run that only reads restores"
ok "and removes it" test ! -e p/dist/stray

# What is in the way and cannot be removed.
project "$(task build '' 'mkdir -p dist; cat src/in >dist/out' '"src/**"' '"dist/**"')"
fresh
held='mount --bind p/dist/out p/dist/out && exec "$1" run --all build --force'
if ! unshare --user --map-root-user --mount true 2>/dev/null; then
	skip "an output that cannot be removed" "no namespaces here"
else
	try unshare --user --map-root-user --mount sh -c "$held" - "$VX"
	exits 1 "an output that cannot be removed fails the task"
	said 'p/dist/out: Device or resource busy' "and is named"
	is "$(ran)" "" "it does not run"
fi

# A cache elsewhere is ignored by git; so is the workspace's own.
run run --all build --cache-dir cache
is "$(cat cache/.gitignore .vx/.gitignore)" "*
*" "a cache directory has a .gitignore for all of it"
is "$(git_ status --porcelain -uall -- cache .vx)" "" "and git sees nothing of it"
ok "index and blobs are in it" test -f cache/index.db -a -d cache/blobs
ok "the workspace keeps its state" test -f .vx/state.db -a -f .vx/history.db
done_testing

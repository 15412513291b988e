#!/bin/sh
# SPDX-License-Identifier: MIT
# Why a task missed, in the line of the miss: each kind, and nothing where nothing is sure. Flaky tasks.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
# COMMAND: of app#build.
app() {
	put p/app/vx.config.json <<E
{ "name": "app", "dependencies": ["lib"], "tasks": {
	"build": { "dependsOn": ["^build"], "exec": { "command": "$1" },
		"cache": { "inputs": { "files": ["src/**"], "env": ["MODE"], "runtime": ["cat $T/version"] }, "outputs": { "files": [] } } },
	"bad": { "exec": { "command": "cat $T/verdict; exit \$(cat $T/verdict)" },
		"cache": { "inputs": { "files": ["src/a"] }, "outputs": { "files": [] } } }
} }
E
}
app "cat src/a"
put p/lib/vx.config.json <<'E'
{ "name": "lib", "tasks": { "build": { "exec": { "command": "true" },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
E
echo '{ "name": "app" }' >p/app/package.json
echo 1 >"$T/version"
mkdir p/app/src
echo 1 >p/app/src/a
echo 1 >p/app/src/b
echo 1 >p/lib/in

# PHRASE NAME [FLAGS...]: app#build misses, and says so; "" says nothing.
misses() {
	phrase=$1 name=$2
	shift 2
	run run --all build "$@"
	if [ -n "$phrase" ]; then
		is "$(sed -n 's/^⏺ .*success  *miss  *app#build · //p' "$OUT")" "$phrase" "$name"
	else
		is "$(grep -c '^⏺ .*success  *miss  *app#build$' "$OUT")" 1 "$name"
	fi
}
misses "no earlier run recorded" "the first run"
said 'lib#build · no earlier run recorded' "the first run of another one"
run run --all build
said_not '^⏺' "hits have no reason"
echo 2 >p/app/src/a
misses "p/app/src/a changed" "a file"
echo 2 >p/app/src/b
echo 3 >p/app/src/a
misses "p/app/src/a changed, and 1 more" "two files"
echo 1 >p/app/src/c
misses "p/app/src/c is new" "a file that came"
rm p/app/src/c
echo 4 >p/app/src/a
rm p/app/src/b
misses "p/app/src/a changed, and 2 more" "more than one difference"
echo 1 >p/app/src/b
run run --all build
rm p/app/src/b
echo 5 >p/app/src/b2
misses "p/app/src/b is gone, and 1 more" "one file went, another came"
chmod +x p/app/src/a
misses "mode of p/app/src/a changed" "a mode"
MODE=fast
export MODE
misses "env MODE changed" "a variable that is set"
unset MODE
echo 2 >"$T/version"
run run --all build # with both as they were last
MODE=fast
export MODE
misses "env MODE changed" "a variable, over other runs"
echo 3 >"$T/version"
misses "what \`cat $T/version\` prints changed" "a probe"
misses "the arguments after -- changed, and 1 more" "arguments" -- src/b2
run run --all build
app "cat src/a # another"
misses "its config changed" "a config"
echo '{ "name": "app", "version": "2.0.0" }' >p/app/package.json
misses "p/app/package.json changed" "the manifest"
echo 2 >p/lib/in
misses "upstream lib#build changed" "a dependency"
said 'lib#build · p/lib/in changed' "which says why itself"
echo 3 >p/lib/in
echo 6 >p/app/src/a
misses "p/app/src/a changed, and 1 more" "a file and a dependency"
echo "lockfileVersion: 9" >pnpm-lock.yaml
misses "a lock file or setting of the package manager changed" "a lock file"
is "$(grep -c ' · a lock file' "$OUT")" 2 "which moves every key"

# The key that it had last.
"$VX" cache prune --max-size=1B >/dev/null
rm -rf .vx/cache
misses "its last result is not in the cache any more" "an entry that was removed"
run run --all build
rm -rf .vx/cache
misses "its last result is not in the cache any more" "the same after a hit"
find .vx/cache/blobs -type f -exec rm -f {} +
run run app#build --output-logs=full
said 'its stored result was damaged or gone' "a blob that is lost"
echo 7 >p/app/src/a
run run app#build --exclude-dependencies
run run app#build --exclude-dependencies
said '^miss: its last result was not saved$' "one that was not saved"
echo 7 >"$T/verdict"
run run app#bad
exits 1 "a task that fails"
run run app#bad
said '^miss: it failed last time$' "fails again"
said_not 'flaky' "which is no wonder"
echo 0 >"$T/verdict"
run run app#bad
said '^miss: it failed last time$' "and then succeeds"
said '^note: flaky: with the same key it failed 2 times before$' "which is told of it"
run run app#bad
said_not 'flaky|^miss' "not of a hit"
run run app#bad --force
said 'flaky: with the same key it failed 2 times before' "of each that runs"
said_not '^miss' "what is not looked up has no reason"
echo 1 >"$T/verdict"
run run app#bad --force
said 'flaky: with the same key it succeeded 2 times before' "and of the next failure"
echo 8 >p/app/src/a
run run app#bad
said '^miss: p/app/src/a changed$' "what failed is compared, too"
said_not 'flaky' "another key has no past"

# Back to what it was, and on: compared with the last run, not with the last that was executed.
run run --all build
echo b >p/app/src/b2
run run --all build
echo 5 >p/app/src/b2
run run --all build
said_not '^⏺' "back again, a hit"
echo 9 >p/app/src/a
misses "p/app/src/a changed" "what differs from that"

# Values are nobody's business.
MODE=top-secret
export MODE
echo top-secret >"$T/version"
run run --all build
unset MODE
not_ok "no value is kept" grep -rqa top-secret .vx/history.db
echo 1 >"$T/version"
run run --all build

# Not known.
python3 - <<'E'
import sqlite3
db = sqlite3.connect(".vx/history.db")
db.execute("DELETE FROM task_texts")
db.commit()
E
echo 10 >p/app/src/a
misses "" "without the last key nothing is said"
python3 - <<'E'
import sqlite3
db = sqlite3.connect(".vx/history.db")
db.execute("UPDATE task_texts SET text = x'28b52ffd2480'")
db.commit()
E
echo 11 >p/app/src/a
misses "" "nor with rubbish in its place"
python3 - <<'E'
import sqlite3
db = sqlite3.connect(".vx/history.db")
db.execute("UPDATE runs SET hits = zeroblob(57)")
db.execute("UPDATE task_texts SET text = 'vx-key 1' || char(10) || 'task:app#build' || char(10) || 'platform'")
db.commit()
E
echo 12 >p/app/src/a
misses "" "nor with half of it"
# Many inputs: what is kept is packed.
i=0
while [ $i -lt 200 ]; do
	echo $i >"p/app/src/a-file-with-a-long-name-$i"
	i=$((i + 1))
done
run run --all build
echo x >p/app/src/a-file-with-a-long-name-150
misses "p/app/src/a-file-with-a-long-name-150 changed" "one of many files"
is "$(python3 -c '
import sqlite3
print(sqlite3.connect(".vx/history.db").execute("SELECT max(n), max(size) < 20000 FROM (SELECT count(*) AS n, max(length(text)) AS size FROM task_texts GROUP BY task)").fetchone())')" \
	"(4, 1)" "four keys of a task are kept, packed"
echo y >p/app/src/"$(printf 'odd\n\\name\033')"
misses 'p/app/src/odd\x0a\name\x1b is new' "names are made safe"
if can_sandbox; then
	run run lib#build
	run run --all build --sandbox
	said 'lib#build · its stored result was not made in a sandbox' "--sandbox: a result of without"
else
	skip "--sandbox: a result of without" "no namespaces here"
fi
done_testing

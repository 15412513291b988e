#!/bin/sh
# SPDX-License-Identifier: MIT
# What a run leaves in history.db, and which runs and tasks leave nothing.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99
fifo up go

echo '{ "projects": ["p"] }' >vx.workspace.json
put p/vx.config.json <<E
{ "name": "p", "tasks": {
	"build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } },
	"bad": { "exec": { "command": "exit 3" } },
	"next": { "dependsOn": ["bad"], "exec": { "command": "true" } },
	"all": { "dependsOn": ["build"] },
	"slow": { "exec": { "command": "echo up >$T/up; read -r x <$T/go" } }
} }
E
echo 1 >p/in

# SQL: its rows, values apart by blanks; NULL is "-".
sql() {
	python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]):
    print(*("-" if v is None else v for v in row))' .vx/history.db "$1"
}
nruns() { sql 'SELECT count(*) FROM runs'; }
# Of the last run, by name: code, and what it was blocked by.
last() {
	sql 'SELECT n.name, t.exit_code, (SELECT name FROM names WHERE id = t.blocked_by) FROM tasks t JOIN names n ON n.id = t.task
		WHERE run = (SELECT max(id) FROM runs) ORDER BY n.name'
}
summary() { sql 'SELECT exit_code, ntasks, coalesce(length(hits), 0) / 56 FROM runs ORDER BY id DESC LIMIT 1'; }

run run --all all
exits 0 "a group"
is "$(last)" "p#build 0 -" "the task behind it is recorded, the group is not"
is "$(summary)" "0 1 0" "as one task that was no hit"
run run --all all
is "$(last)" "" "a hit is no row"
is "$(summary)" "0 1 1" "it is counted with its run"
run run --all next
is "$(last)" "p#bad 3 -
p#next 1 p#bad" "a failure has its code, what is skipped for it has its name"
n=$(nruns)
is "$n" 3 "each run is one"
run run --all next --dry
is "$(nruns)" "$n" "a dry run leaves nothing"
bg run --all build slow
await up >/dev/null || fail "the task did not start"
kill -s INT "$BG"
bg_wait
exits 130 "a run that is stopped"
is "$(nruns)" "$n" "leaves nothing"

# Kept with the run: its tags; and whether results were saved.
run run --all build next --force --tag a=1 --tag b= --tag a=2
is "$(sql 'SELECT tags FROM runs ORDER BY id DESC LIMIT 1')" '{"a":"2","b":""}' "tags"
is "$(sql 'SELECT n.name, t.saved FROM tasks t JOIN names n ON n.id = t.task WHERE run = (SELECT max(id) FROM runs) ORDER BY n.name')" \
	"p#bad 0
p#build 1
p#next 0" "what was saved"

# One of before.
rm .vx/history.db*
python3 -c 'import sqlite3, sys
sqlite3.connect(".vx/history.db").executescript(open(sys.argv[1]).read())' "$VX_SRCDIR/tests/data/history-2.sql"
echo 2 >p/in
run run p#build
said_not '^miss' "of a run of an older vx no more is known than it kept"
is "$(sql 'SELECT count(*), count(saved) FROM tasks')" "2 1" "which is kept"
ok "in its file" test ! -e .vx/history.db.broken
done_testing

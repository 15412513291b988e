#!/bin/sh
# SPDX-License-Identifier: MIT
# Full disks, limits, and cache directories that are none: one clear line each. The work of a task is
# never lost or left out because of the cache, and a restore that cannot be leaves what was there.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_sandbox
require_program git python3
cd "$W" || exit 99
C=$T/cache

put a/vx.config.json <<E
{ "name": "a", "tasks": {
	"build": {
		"exec": { "command": "echo ran >>$T/ran; mkdir -p dist; cat in >dist/small; head -c 4000000 /dev/urandom >dist/big" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } }
	},
	"quiet": {
		"exec": { "command": "mkdir -p out; cat in >out/small; head -c 4000000 /dev/urandom >out/big" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["out/**"] } }
	},
	"say": {
		"exec": { "command": "echo said" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } }
	}
} }
E
echo one >a/in
echo '{ "projects": ["a"] }' >vx.workspace.json
printf 'dist\nout\n' >.gitignore
git_ init -q --template=
git_ add -A
: >"$T/ran"
chmod 666 "$T/ran"

nran() { grep -c ran "$T/ran"; }
# The last run said exactly one line on stderr, which matches.
one_line() { # REGEX NAME
	like "$ERR" "$1" "$2"
	is "$(wc -l <"$ERR")" 1 "$2: and nothing else"
}
# SIZE COMMANDS: sh, with vx as $1 and $T as $2, in a mount namespace of its own where $T/small is a
# tmpfs of that size.
mkdir "$T/small"
small() {
	set -- sh -c "mount -t tmpfs -o size=$1 none '$T/small' || exit 99; $2" - "$VX" "$T"
	if [ "$(id -u)" = 0 ]; then
		try unshare --mount "$@"
	else
		try unshare --user --map-root-user --mount "$@"
	fi
}

# --- full disks --------------------------------------------------------------------------------

small 512k '"$1" run a#build --cache-dir "$2/small/cache"; rc=$?; ls "$2/small/cache/tmp" 2>/dev/null; exit $rc'
exits 0 "the disk of the cache fills up: the task succeeds"
said 'not saved: output a/dist/big: cache: write a blob: No space left on device' \
	"and says why it was not saved"
is "$(cat a/dist/small) $(wc -c <a/dist/big)" "one 4000000" "its outputs are there"
unlike "$OUT" 'blob-' "nothing half-written is left"

echo two >a/in
: >"$T/ran"
small 1m 'mkdir "$2/small/cache"; cat /dev/zero >"$2/small/fill" 2>/dev/null
	"$1" run a#build --cache-dir "$2/small/cache"'
exits 0 "the disk of the cache is full from the start: the task runs"
said "$T/small/cache/index.db: No space left on device: this run goes without the cache" "and says so"
is "$(nran) $(cat a/dist/small)" "1 two" "its outputs are there"

small 512k '"$1" run a#quiet --sandbox --cache-dir "$2/small/cache"'
exits 0 "sandboxed: the task succeeds"
said 'not saved: .*No space left' "it was not saved"
is "$(wc -c <a/out/big)" 4000000 "its outputs are committed"

# What the cache holds does not fit where it is restored.
run run a#build --cache-dir "$C"
exits 0 "a result is saved"
: >"$T/ran"
rm -r a/dist a/out
small 3m 'cp -R a .git .gitignore vx.workspace.json "$2/small" && cd "$2/small" && mkdir a/dist &&
	echo precious >a/dist/small && cp -R a "$2/before" || exit 98
	"$1" run a#build --cache-dir "$2/cache"; rc=$?
	diff -r a "$2/before" >"$2/differs"; ls .vx/scratch >"$2/left"; exit $rc'
exits 1 "a restore on a full disk fails the task"
said 'restore: restore a/dist/big: write: No space left on device' "and says what did not fit"
is "$(cat "$T/differs" "$T/left")" "" "the workspace is as it was, and nothing is left of the attempt"
is "$(nran)" 0 "the task did not run"

# --- limits of the process ---------------------------------------------------------------------

run run a#build --cache-dir "$C"
said 'restored' "the result is there"
# From hardly enough to none at all: whatever is refused is refused in words.
bad=
for n in 64 40 32 24 20 16 14 12 10 8; do
	try sh -c 'ulimit -n "$1"; shift; exec "$@"' - "$n" "$VX" run a#build a#say --force --cache-dir "$C"
	[ "$RC" = 0 ] && continue
	limited=$n
	grep -q 'Too many open files.*ulimit -n' "$OUT" "$ERR" || bad="$bad $n($RC)"
done
is "$bad" "" "too few descriptors: every failure names ulimit -n"
ok "there were failures" test -n "${limited:-}"
run run a#build --cache-dir "$C"
exits 0 "the next run is right again"

# A file that may not grow is an error like others: SIGXFSZ would end vx in the middle of it, guard and all.
bad='' limited=''
for n in 0 1 2 4 8 16 24 32 48 64; do
	try sh -c 'ulimit -f "$1"; shift; exec "$@"' - "$n" "$VX" run a#build --force --cache-dir "$C"
	[ "$RC" = 0 ] && continue
	[ "$RC" -lt 128 ] || bad="$bad $n($RC)"
	! grep -q 'File too large' "$OUT" "$ERR" || limited=$n
done
is "$bad" "" "files that may not grow: no signal ends it"
ok "and it says so" test -n "$limited"
run run a#build --cache-dir "$C"
exits 0 "the next run is right again, too"

# --- no directory, no file ---------------------------------------------------------------------

: >"$T/ran"
: >"$T/file"
run run a#build --cache-dir "$T/file"
exits 2 "a file in the place of the directory"
one_line "^vx: .*cache directory $T/file.*Not a directory" "is named"
run run a#build --cache-dir "$T/file/below"
exits 2 "a directory that cannot be made"
one_line "^vx: make the cache directory $T/file/below: Not a directory" "is named"
run run a#build --cache-dir /proc/nothing
exits 2 "where nobody can make one"
one_line "^vx: make the cache directory /proc/nothing" "it is named"
# DIRECTORY ARGS...: `vx run` with this cache, which cannot be written.
read_only() {
	at=$1
	shift
	if [ "$(id -u)" = 0 ]; then
		try unshare --mount sh -c 'at=$1; shift; mount --bind "$at" "$at" && mount -o remount,bind,ro "$at" &&
			exec "$@" --cache-dir "$at"' - "$at" "$VX" run "$@"
	else
		chmod -R a-w "$at"
		run run "$@" --cache-dir "$at"
		chmod -R u+w "$at"
	fi
}
read_only "$C" a#build
exits 2 "a directory that is read-only"
one_line "^vx: the cache directory $C cannot be written: .*; --cache=local:r only reads it$" "is named"
is "$(nran)" 0 "none of them ran the task"

# With and without the log and its index, that the last one to close may have left.
rm -rf "$T/logged" "$T/folded"
cp -R "$C" "$T/logged"
cp -R "$C" "$T/folded"
python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$T/folded/index.db"
rm -f "$T/folded/index.db-wal" "$T/folded/index.db-shm"
cp -R "$T/folded" "$T/empty"
rm -r "$T/empty/index.db" "$T/empty/blobs"
for way in logged folded; do
	rm -rf a/dist
	: >"$T/ran"
	read_only "$T/$way" a#build --cache=local:r
	exits 0 "$way, read-only, --cache=local:r"
	said 'all cached' "$way: it is read"
	is "$(cat a/dist/small)" two "$way: and restored"
	echo three >a/in
	read_only "$T/$way" a#build --cache=local:r
	exits 0 "$way: a miss"
	is "$(nran)" 1 "$way: runs"
	read_only "$T/$way" a#build --dry
	exits 0 "$way: --dry"
	read_only "$T/$way" a#build --no-cache
	exits 0 "$way: --no-cache"
	is "$(nran)" 2 "$way: runs, too"
	echo two >a/in
done
: >"$T/ran"
read_only "$T/empty" a#build --cache=local:r
exits 0 "nothing in it, read-only, --cache=local:r"
is "$(nran)" 1 "it runs"
rm -rf "$T/none"
for how in --cache=local:r --no-cache --dry; do
	run run a#build "$how" --cache-dir "$T/none"
	exits 0 "no cache directory, $how"
	not_ok "none is made, $how" test -e "$T/none"
done
: >"$T/ran"

# --- the index ---------------------------------------------------------------------------------

# FILE SQL: and no log is left beside it.
sql() {
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute(sys.argv[2])
c.commit()
c.execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$1" "$2"
	rm -f "$1-wal" "$1-shm"
}
sql "$C/index.db" 'DELETE FROM entries WHERE 0'

cp -R "$C" "$T/newer"
sql "$T/newer/index.db" 'PRAGMA user_version = 99'
run run a#build --cache-dir "$T/newer"
exits 2 "an index of a newer vx"
one_line "index.db was written by a newer vx \(version 99, this one reads up to [0-9]+\)" \
	"is refused with both versions"
run cache prune --older-than 1d --cache-dir "$T/newer"
exits 2 "by prune too"
one_line "index.db was written by a newer vx" "in the same words"

if [ "$(id -u)" != 0 ]; then
	cp -R "$C" "$T/ro"
	chmod 444 "$T/ro/index.db"
	run run a#build --cache-dir "$T/ro"
	exits 0 "an index that is read-only"
	said 'all cached' "is read"
	: >"$T/ran"
	run run a#build --force --cache-dir "$T/ro"
	exits 0 "what it cannot be told"
	is "$(nran)" 1 "is done all the same"
	said 'not saved: .*index.db cannot be written: it or its directory is read-only' "and said"
fi

: >"$T/ran"
cp -R "$C" "$T/broken"
head -c 8192 /dev/urandom >"$T/broken/index.db"
run run a#build --cache-dir "$T/broken"
exits 0 "a damaged index"
like "$ERR" "index.db was damaged .*it is now .*index.db.broken, and a new one was made" \
	"is moved aside"
is "$(nran)" 1 "the task runs"
run run a#build --cache-dir "$T/broken"
is "$(nran)" 1 "and is a hit the next time"

# Damage that shows only when a row is looked for.
cp -R "$C" "$T/page"
python3 - "$T/page/index.db" <<'P'
import sqlite3, sys

c = sqlite3.connect(sys.argv[1])
page = c.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries'").fetchone()[0]
size = c.execute("PRAGMA page_size").fetchone()[0]
c.close()
with open(sys.argv[1], "r+b") as f:
    f.seek((page - 1) * size)
    f.write(b"\xff" * size)
P
rm -f "$T/page/index.db-wal" "$T/page/index.db-shm"
: >"$T/ran"
run run a#build --cache-dir "$T/page"
exits 0 "a damaged page of the index"
is "$(nran)" 1 "the task runs"
like "$ERR" "index.db is damaged .*the next run makes a new one" "it is said"
run run a#build --cache-dir "$T/page"
run run a#build --cache-dir "$T/page"
said 'all cached' "after that all is well again"

# --- locks of others ---------------------------------------------------------------------------

# SQL FILE...: what is done in each, by somebody else who has them open until let_go.
mkfifo "$T/go" "$T/held"
hold() {
	python3 -c 'import sqlite3, sys
all = [sqlite3.connect(f, isolation_level=None) for f in sys.argv[2:]]
for c in all:
    for sql in sys.argv[1].split(";"):
        c.execute(sql).fetchall()
print("held", flush=True)
sys.stdin.read()' "$@" <"$T/go" >"$T/held" &
	holder=$!
	exec 8>"$T/go"
	held=
	read -r held <"$T/held"
	is "$held" held "somebody does: $1"
}
let_go() {
	exec 8>&-
	wait "$holder" 2>/dev/null
}
nruns() {
	python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM runs").fetchone()[0])' .vx/history.db
}
READ='BEGIN; SELECT count(*) FROM sqlite_schema'
LOCK='PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE'

put a/cut <<E
truncate -s 0 "$W/.vx/state.db-shm" "$W/.vx/history.db-shm"
E
run run a#build --cache-dir "$C"
before=$(nruns)
rm -r a/dist
hold "$READ" .vx/state.db .vx/history.db
run run a#build --cache-dir "$C"
exits 0 "somebody reads the state: the run goes on"
said '1 restored' "it restores"
run run a#build --cache-dir "$C"
exits 0 "and once more"
# Who gives all away before each run has it restored each time.
[ -n "${VX_TEST_OWNER:-}" ] || said '1 up to date' "the stamp was written"
is "$(cat "$ERR")" "" "nothing is said of it"
let_go
is "$(nruns)" $((before + 2)) "both are in the history"

hold "$READ" .vx/state.db .vx/history.db
echo 3 >a/in
put vx.workspace.json <<E
{ "projects": ["a", "b"] }
E
put b/vx.config.json <<E
{ "name": "b", "tasks": { "cut": {
	"exec": { "command": "sh ../a/cut; echo x >o" },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["o"] } }
} } }
E
echo o >>.gitignore
run run b#cut --cache-dir "$C"
exits 0 "it is cut short: no signal ends the run"
said 'state.db: somebody has cut its -shm short' "it is said of the stamps"
said 'not in the history: .*history.db: somebody has cut its -shm short' "and of the history"
let_go

hold "$LOCK" .vx/state.db .vx/history.db
: >"$T/ran"
run run a#build --force --cache-dir "$C"
exits 0 "somebody locks the state altogether: the run goes on"
is "$(nran)" 1 "the task runs"
said 'state.db: another process keeps it locked' "it is said of the stamps"
said 'not in the history: .*history.db: another process keeps it locked' "and of the history"
let_go
run run a#build --cache-dir "$C"
exits 0 "nothing of it is damaged"

hold "$LOCK" "$C/index.db"
: >"$T/ran"
run run a#build --cache-dir "$C"
exits 0 "somebody locks the index: the run goes on"
one_line "index.db: another process keeps it locked: this run goes without the cache" "it is said"
let_go

hold 'BEGIN IMMEDIATE' "$C/index.db"
start=$(date +%s)
run run a#build a#quiet a#say --force --cache-dir "$C"
took=$(($(date +%s) - start))
exits 0 "somebody writes to the index without an end: the tasks run"
said 'and 2 others not saved: .*index.db: another process keeps it locked' "it is said once"
# 5 seconds each, and for the cleaning.
ok "it is waited for once: $took s" test "$took" -lt 13
rm -r a/dist
run run a#build --cache=local:r --cache-dir "$C"
said '1 restored' "look-ups go on"
let_go
done_testing

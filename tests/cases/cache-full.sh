#!/bin/sh
# SPDX-License-Identifier: MIT
# A disk that the cache has filled: a save that finds no room leaves nothing, is said once whoever
# asked for what, and there is always a way to make room, by `vx cache prune` and by cacheRetention.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_sandbox
require_program git python3 flock
cd "$W" || exit 99
S=$T/small
C=$S/cache

# Ten of 24 KiB, one that is too large for what they leave, and one that needs it.
all=
ten=
for n in 0 1 2 3 4 5 6 7 8 9; do
	all="$all a#t$n"
	ten="$ten \"t$n\": {
		\"exec\": { \"command\": \"echo t$n >>$T/ran; mkdir -p out$n; head -c 20000 /dev/urandom >out$n/a; echo t$n >out$n/b\" },
		\"cache\": { \"inputs\": { \"files\": [\"in\"] }, \"outputs\": { \"files\": [\"out$n/**\"] } } },"
done
put a/vx.config.json <<E
{ "name": "a", "tasks": {$ten
	"many": {
		"exec": { "command": "mkdir -p many; for i in 1 2 3 4 5 6 7 8; do head -c 8000 /dev/urandom >many/\$i; done; head -c 4000000 /dev/urandom >many/z; cp shared many/0" },
		"cache": { "inputs": { "files": ["in", "shared"] }, "outputs": { "files": ["many/**"] } }
	},
	"late": {
		"exec": { "command": "mkdir -p late; head -c 30000 /dev/urandom >late/a; cp shared late; echo more >>in" },
		"cache": { "inputs": { "files": ["in", "shared"] }, "outputs": { "files": ["late/**"] } }
	},
	"share": {
		"exec": { "command": "mkdir -p share; cp shared share" },
		"cache": { "inputs": { "files": ["shared"] }, "outputs": { "files": ["share/**"] } }
	},
	"talk": {
		"exec": { "command": "echo talked >>$T/ran" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } }
	},
	"use": {
		"dependsOn": ["many"],
		"exec": { "command": "echo used" },
		"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } }
	}
} }
E
echo in >a/in
seq 1 2000 >a/shared
settings() { echo "{ \"projects\": [\"a\"]$1 }" >vx.workspace.json; }
settings ''
printf 'out*\nmany\nlate\nshare\n' >.gitignore
git_ init -q --template=
git_ add -A

# What the scripts below begin with.
cat >"$T/begin" <<E
C='$C' S='$S' T='$T' VX='$VX' ALL='$all'
E
cat >>"$T/begin" <<'E'
blobs() { find "$C/blobs" -type f | wc -l; }
vx() { "$VX" "$@" --cache-dir "$C"; }
# It ends as if killed: what is shared of an open index stays beside it, as vx leaves it.
sql() {
	python3 -c 'import os, sqlite3, sys
c = sqlite3.connect(sys.argv[1])
for row in c.execute(sys.argv[2]).fetchall():
    print(row[0], flush=True)
c.commit()
os._exit(0)' "$C/index.db" "$1"
}
# Nothing of that is left.
fold() {
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("DELETE FROM entries WHERE 0")
c.commit()
c.close()' "$C/index.db"
	! [ -e "$C/index.db-shm" ] || exit 93
}
# Not a byte more fits.
fill() {
	cat /dev/zero >"$S/fill" 2>/dev/null
	! { echo x >"$S/more"; } 2>/dev/null || exit 97
}
# VALUE NAME: for the test outside.
tell() { printf '%s\n' "$1" >"$T/got.$2"; }
E
mkdir "$S"
# SIZE: runs the script on stdin in a mount namespace of its own where $S is a tmpfs of that size.
small() {
	{
		cat "$T/begin"
		cat
	} >"$T/script"
	rm -f "$T"/got.*
	: >"$T/ran"
	chmod 666 "$T/ran"
	# shellcheck disable=SC2016 # the inner shell's
	set -- sh -c 'mount -t tmpfs -o size="$1" none "$2" && exec sh "$3"' - "$1" "$S" "$T/script"
	if [ "$(id -u)" = 0 ]; then
		try unshare --mount "$@"
	else
		try unshare --user --map-root-user --mount "$@"
	fi
}
got() { cat "$T/got.$1" 2>/dev/null; }
# Lines of the last run, on either stream.
nlines() { cat "$OUT" "$ERR" | grep -c -e "$1"; }

# --- prune -------------------------------------------------------------------------------------

for how in '--max-size 1B' '--older-than 1d'; do
	echo "how='$how'" >>"$T/begin"
	small 1m <<'E'
vx run $ALL >/dev/null || exit 98
sql 'UPDATE entries SET accessed_ns = accessed_ns - 2 * 86400000000000'
tell "$(sql 'SELECT count(*) FROM entries')" before
fill
vx cache prune $how || exit
tell "$(sql 'SELECT count(*) FROM entries')" after
tell "$(blobs)" blobs
E
	exits 0 "full to the last byte: prune $how"
	is "$(got before) $(got after) $(got blobs)" "10 0 0" "everything goes: $how"
	said '^Pruned 10 entries \([1-9][0-9.]* KiB freed\)$' "which is told: $how"
done
small 1m <<'E'
vx run $ALL >/dev/null || exit 98
fold
fill
vx cache prune --max-size 1B || exit
tell "$(sql 'SELECT count(*) FROM entries')" after
rm "$S/fill"
vx run $ALL >/dev/null || exit
tell "$(vx run $ALL | grep -c 'all cached')" again
E
exits 0 "there is no room to open the index as usual"
is "$(got after) $(got again)" "0 1" "everything goes, and can be saved again"

# Killed when some blobs are gone and all rows are there; a row without its blobs is a miss.
cat >"$T/kill.py" <<'E'
import fcntl, os, signal, subprocess, sys

F_SETPIPE_SZ = 1031
r, w = os.pipe2(os.O_DIRECT)  # of one packet: the second line is not written before the first is read
fcntl.fcntl(w, F_SETPIPE_SZ, 4096)
p = subprocess.Popen(sys.argv[1:], stderr=w, env=dict(os.environ, VX_DEBUG="phase"))
os.close(w)
seen = []
while seen.count(b"blob removed") < 5:
    line = os.read(r, 4096)
    if not line:
        sys.exit("it ended: %s" % seen)
    seen.append(line.strip().rpartition(b": ")[2])
os.kill(p.pid, signal.SIGKILL)
p.wait()
if b"rows committed" in seen:
    sys.exit("the rows were gone before")
E
small 1m <<'E'
vx run $ALL >/dev/null || exit 98
mkdir "$T/made"
cp -R a/out? "$T/made"
fill
python3 "$T/kill.py" "$VX" cache prune --max-size 1B --cache-dir "$C" || exit 96
rm "$S/fill"
tell "$(sql 'SELECT count(*) FROM entries')" rows
rm -r a/out?
: >"$T/ran"
vx run $ALL || exit
tell "$(wc -l <"$T/ran") $(sort -u "$T/ran" | wc -l)" ran
for n in 0 1 2 3 4 5 6 7 8 9; do
	grep -qx "t$n" "$T/ran" || cmp "a/out$n/a" "$T/made/out$n/a" || exit 95
	grep -qx "t$n" "a/out$n/b" || exit 94
done
rm -r a/out?
tell "$(vx run $ALL | grep -c 'all cached')" again
E
exits 0 "prune is killed when blobs are gone and no row: the next run is right"
is "$(got rows)" 10 "the rows were there"
like "$T/got.ran" '^([1-9]) \1$' "those whose blobs were gone ran, once"
is "$(got again)" 1 "and are saved again"

# Another save is under way: what rows needed that go, goes all the same; what else is young stays.
small 1m <<'E'
vx run $ALL >/dev/null || exit 98
echo lost >"$C/blobs/$(ls "$C/blobs" | head -n 1)/$(printf '%062d' 0)"
fill
exec 9<"$C/blobs"
flock -s 9 || exit 96
vx cache prune --max-size 1B || exit
tell "$(sql 'SELECT count(*) FROM entries')" after
tell "$(blobs)" blobs
E
exits 0 "full, while a save is under way"
is "$(got after) $(got blobs)" "0 1" "what the rows needed goes, what may be of that save stays"

# --- at the end of a run -----------------------------------------------------------------------

small 1m <<'E'
vx run $ALL >/dev/null || exit 98
tell "$(sql 'SELECT count(*) FROM entries')" before
fill
echo '{ "projects": ["a"], "cacheRetention": { "maxSize": "100K" } }' >vx.workspace.json
vx run a#share || exit
tell "$(sql 'SELECT count(*) FROM entries')" after
vx run a#share >/dev/null || exit
rm -r a/share
tell "$(vx run a#share | grep -c 'all cached')" saved
E
exits 0 "full, and more than cacheRetention has it: the task succeeds"
like "$ERR" '^vx: a#share not saved: .*No space left' "and is not saved"
is "$(got before)" 10 "there was much"
like "$T/got.after" '^[123]$' "the run makes room, down to the limit"
is "$(got saved)" 1 "so the next one saves"
settings ''
small 1m <<'E'
vx run $ALL >/dev/null || exit 98
fill
echo '{ "projects": ["a"], "cacheRetention": { "maxSize": "100K" } }' >vx.workspace.json
vx run a#talk || exit
tell "$(sql 'SELECT count(*) FROM entries')" after
E
exits 0 "a result that is nothing but a row"
like "$ERR" '^vx: a#talk not saved: write .*/index.db: No space left' "is not saved either"
like "$T/got.after" '^[123]$' "and the run makes room"
settings ''

# --- the workspace is on that disk, too --------------------------------------------------------

small 3m <<'E'
cp -R a .git .gitignore vx.workspace.json "$S"
cd "$S" || exit 98
rm -rf a/out?
"$VX" run $ALL >/dev/null || exit 98
fill
"$VX" run $ALL || exit
: >"$T/ran"
"$VX" run a#talk || exit 95
tell "$(cat "$T/ran")" ran
"$VX" cache prune --max-size 1B || exit 94
tell "$(find .vx/cache/blobs -type f | wc -l)" blobs
E
exits 0 "all is on the full disk: vx still runs"
like "$OUT" 'all cached' "finds its results"
is "$(got ran)" talked "and runs a task"
is "$(got blobs)" 0 "and prune makes room"
rm -rf .vx

# --- a save that fails -------------------------------------------------------------------------

small 1m <<'E'
vx run a#share >/dev/null || exit 98
tell "$(blobs)" before
vx run a#many || exit
tell "$(blobs)" after
rm -r a/share
tell "$(vx run a#share | grep -c 'all cached')" share
vx run $ALL >/dev/null || exit 98
rm -r a/out?
tell "$(vx run $ALL | grep -c 'all cached')" small
E
exits 0 "a result that does not fit: the task succeeds"
is "$(got after)" "$(got before)" "nothing of it is left in the cache"
is "$(got share) $(got small)" "1 1" "what was there before is, and something smaller is saved"
run run a#share --cache-dir "$T/large"
n=$(find "$T/large/blobs" -type f | wc -l)
run run a#late --cache-dir "$T/large"
said 'not saved: a/in changed while it ran' "one whose input changed"
is "$(find "$T/large/blobs" -type f | wc -l)" "$n" "leaves nothing either"

# --- what is said ------------------------------------------------------------------------------

for flag in --concurrency=2 --sandbox --output-logs=full --output-logs=none; do
	echo "flag=$flag" >>"$T/begin"
	small 512k <<'E'
vx run a#use $flag
E
	exits 0 "it befalls one that nobody asked for: $flag"
	is "$(nlines 'not saved: ')" 1 "it is said once: $flag"
	like "$ERR" '^vx: a#many not saved: output a/many/z: cache: write a blob: No space left on device$' \
		"and of whom: $flag"
done
small 160k <<'E'
vx run $ALL --concurrency=1
E
exits 0 "it befalls several"
is "$(nlines 'not saved')" 1 "they are one line"
like "$ERR" '^vx: a#t[0-9] and [2-9] others not saved: .*: No space left on device$' "with the first and how many"

# --- what is no cache --------------------------------------------------------------------------

mkdir "$T/other" "$T/none"
echo mine >"$T/other/file"
for dir in . "$T/other"; do
	for words in 'run a#use' 'cache prune --max-size 1B' 'cache prune --older-than 1d --dry-run'; do
		# shellcheck disable=SC2086 # words
		run $words --cache-dir "$dir"
		exits 2 "what is no cache: $words, $dir"
		like "$ERR" '^vx: the cache directory .* holds what is no cache of vx: name an empty directory, or a new one$' \
			"is refused in the same words: $words, $dir"
	done
done
run cache prune --max-size 1B --cache-dir "$T/none"
exits 0 "an empty directory could be one"
run cache prune --max-size 1B --cache-dir "$T/missing"
exits 2 "one that is not there"
like "$ERR" "^vx: open the cache directory $T/missing: No such file or directory$" "is named"
run cache prune --max-size 1B --cache-dir "$T/other/file"
exits 2 "a file"
like "$ERR" "^vx: open the cache directory $T/other/file: Not a directory$" "is named"
done_testing

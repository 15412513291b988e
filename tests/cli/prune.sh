#!/bin/sh
# SPDX-License-Identifier: MIT
# What leaves the cache: by age, by size, orphans; at the end of a run and by `vx cache prune`.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git python3 flock
cd "$W" || exit 99

for p in a b c; do
	put $p/vx.config.json <<-E
		{ "name": "$p", "tasks": { "build": {
			"exec": { "command": "echo $p >>$T/ran; mkdir -p dist; cat in >dist/out; cat in in in in >dist/more" },
			"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } } } } }
	E
	seq "$(printf '%d' "'$p")" 9999 >$p/in
done
settings() { echo "{ \"projects\": [\"a\", \"b\", \"c\"]$1 }" >vx.workspace.json; }
settings ''
echo dist >.gitignore
git_ init -q
git_ add -A

ran() { sort "$T/ran" 2>/dev/null | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
# CACHE SQL: what it selects; a change is committed.
sql() {
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
rows = c.execute(sys.argv[2]).fetchall()
if rows:
    print("" if rows[0][0] is None else rows[0][0])
c.commit()' "$1/index.db" "$2"
}
# CACHE TASK DAYS: it was last used so long ago.
unused() { sql "$1" "UPDATE entries SET accessed_ns = accessed_ns - $3 * 86400000000000 WHERE task = '$2'"; }
blobs() { find "$1/blobs" -type f | wc -l; }
# Everything in it was written long ago.
aged() { find "$1/blobs" -type f -exec touch -d '3 hours ago' {} +; }
due() { sql "$1" 'UPDATE upkeep SET swept_ns = 0'; }

run cache prune --older-than 1d
exits 0 "a workspace that never ran"
is "$(cat "$OUT")" "Pruned 0 entries (0 B freed)" "has nothing to prune"
ok "and nothing is made" test ! -e .vx

run run build --all
exits 0 "three results"
own_cache=.vx/cache
n=$(blobs $own_cache)

rm $own_cache/index.db*
run cache prune --max-size 1T
exits 0 "a cache whose index was lost"
is "$(blobs $own_cache)" 0 "needs none of what it led to"
rm -rf a/dist b/dist c/dist
run run build --all
exits 0 "three results again"

# --- the words ---------------------------------------------------------------------------------

run cache prune
exits 2 "prune without a bound"
said 'older-than 30d, --max-size 10G, or cacheRetention' "says what bounds there are"
for bad in '--older-than=0d' '--older-than=30' '--max-size=0' '--max-size=1.5G' '--max-size' '--bogus' 'now' '--format=xml'; do
	run cache prune "$bad"
	exits 2 "prune $bad is refused"
done
run cache
exits 2 "vx cache alone"
said 'vx cache prune' "names its command"
run cache prune --older-than 1d --cache-dir "$T/none"
exits 2 "a named directory that is not there"
said "$T/none: No such file" "is named"
ok "and not made" test ! -e "$T/none"
run cache prune --help
exits 0 "help"
said 'max-size' "lists the bounds"
is "$(blobs $own_cache)" "$n" "nothing went"

# --- by age and by size ------------------------------------------------------------------------

unused $own_cache a#build 40
run cache prune --older-than 30d --dry
exits 2 "a part of a flag"
said '^vx: unknown flag --dry; did you mean --dry-run\?$' "is no flag"
run cache prune --older-than 30d --jobs
said '^vx: unknown flag --jobs \(.vx cache prune --help. lists them\)$' "and its own help lists them"
run cache prune -n
said 'spelled out: .vx cache prune --help. lists them' "that of a short one, too"
run cache prune --older-than 30d --dry-run
exits 0 "dry"
said '^Would prune 1 entry \([0-9.]+ KiB freed\)$' "says what would go"
is "$(blobs $own_cache)" "$n" "and nothing went"
run cache prune --older-than 30d --format json
exits 0 "by age"
like "$OUT" '^\{"dryRun":false,"evicted":1,"bytesFreed":[1-9][0-9]*,"orphans":0,"orphanBytes":0\}$' "as JSON"
is "$(sql $own_cache 'SELECT group_concat(task) FROM (SELECT task FROM entries ORDER BY task)')" "b#build,c#build" "the old entry is gone"
fresh
rm -rf a/dist b/dist c/dist
run run build --all
is "$(ran)" "a " "it runs again; the others are restored"
unused $own_cache b#build 2
unused $own_cache c#build 1
run cache prune --max-size 90K
exits 0 "by size"
is "$(sql $own_cache 'SELECT group_concat(task) FROM entries')" "a#build" "the longest unused go first"

# Orphans, and what is not ours.
mkdir -p $own_cache/blobs/ab
echo lost >"$own_cache/blobs/ab/$(printf '%062d' 0)"
echo mine >$own_cache/blobs/ab/README
run cache prune --max-size 1T
said '^Pruned 0 entries \(0 B freed\), reaped 1 orphaned file \(4.0 KiB\)$' "an orphan is reaped"
ok "what has no name of ours stays" test -e $own_cache/blobs/ab/README

# --- at the end of a run -----------------------------------------------------------------------

run run build --all
settings ', "cacheRetention": { "olderThan": "30d" }'
unused $own_cache b#build 31
due $own_cache
fresh
run run a#build c#build
is "$(sql $own_cache 'SELECT count(*) FROM entries')" 3 "a warm run leaves the cache alone"
run run a#build --force
is "$(sql $own_cache 'SELECT count(*) FROM entries')" 3 "as does one that wrote nothing new"
echo new >a/in
run run a#build
is "$(sql $own_cache 'SELECT group_concat(task) FROM (SELECT DISTINCT task FROM entries ORDER BY task)')" "a#build,c#build" "a run that writes removes what is too old"
said_not 'prune|evict|retention' "and says nothing"
unused $own_cache c#build 31
echo newer >a/in
run run a#build
is "$(sql $own_cache "SELECT count(*) FROM entries WHERE task = 'c#build'")" 1 "not again within the hour"
unused $own_cache c#build -31
run run c#build

settings ', "cacheRetention": { "maxSize": "40K" }'
run run c#build
seq 2 9999 >b/in
run run b#build
is "$(sql $own_cache 'SELECT group_concat(task) FROM (SELECT DISTINCT task FROM entries ORDER BY task)')" "" "beyond the limit at once, down to nothing where one result is too much"
settings ', "cacheRetention": { "maxSize": "150K" }'
run run a#build b#build --force
run run c#build --force
seq 3 9999 >c/in
run run c#build
is "$(sql $own_cache "SELECT count(*) FROM entries WHERE task = 'c#build'")" 1 "what was made last stays"
run run c#build
said 'up to date' "and is a hit"

# The notice, once a day, and only where there is no limit.
sql $own_cache 'UPDATE upkeep SET bytes = 20000000000'
settings ''
echo notice >a/in
run run a#build
said "the cache in .* has grown to 18.6 GiB: to limit it, write \"cacheRetention\": \{ \"maxSize\": \"10G\" \} in vx.workspace.json" "a large cache is said"
echo again >a/in
run run a#build
said_not 'has grown' "once a day"

# --- shared ------------------------------------------------------------------------------------

# Another workspace's save may need what no row names yet: while one is under way, young blobs stay.
S=$T/shared
run run build --all --cache-dir "$S"
exec 9<"$S/blobs"
flock -s 9
run cache prune --older-than 1s --max-size 1K --cache-dir "$S"
exits 0 "a shared cache"
is "$(sql "$S" 'SELECT count(*) FROM entries')" 0 "its rows go"
said '^[1-9][0-9.]* [KM]?i?B that no result needs stay: files younger than an hour may be in use' "it says what stays"
ok "its young blobs stay" test "$(blobs "$S")" -gt 5
aged "$S"
run run a#build --force --cache-dir "$S"
run cache prune --max-size 1T --cache-dir "$S"
exec 9<&-
is "$(sql "$S" 'SELECT group_concat(task) FROM entries')" "a#build" "old ones go, what a save has found there stays"
rm -rf a/dist
run run a#build --cache-dir "$S"
said 'restored' "and is whole"
run cache prune --max-size 1K --cache-dir "$S"
is "$(blobs "$S")" 0 "where no save is under way, everything goes at once"
said_not 'stay' "and none is said to stay"

# Two workspaces, one cleaning all the time while the other saves and restores.
mkdir "$T/two"
cp -R a b c .git .gitignore vx.workspace.json "$T/two/"
(
	cd "$T/two" || exit
	"$VX" run build --all --cache-dir "$S" >/dev/null 2>&1
	while [ ! -e "$T/enough" ]; do
		aged "$S" 2>/dev/null
		"$VX" cache prune --max-size 1K --cache-dir "$S" || echo "failed: $?"
	done >"$T/pruning" 2>&1
) &
pruner=$!
bad=
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	seq $((i % 4 + 1)) 9999 >a/in
	rm -rf a/dist b/dist
	run run build --all --cache-dir "$S"
	[ "$RC" = 0 ] && cmp -s a/in a/dist/out && cmp -s b/in b/dist/out || bad="$bad $i($RC)"
done
: >"$T/enough"
wait "$pruner"
is "$bad" "" "every run is right while another workspace empties the cache"
unlike "$T/pruning" 'failed|vx:' "and so is every pruning"
ok "there were some" test -s "$T/pruning"

# One run at a time: it waits for its turn.
fifo up go
put d/vx.config.json <<E
{ "name": "d", "tasks": { "wait": { "exec": { "command": "echo up >$T/up; read -r x <$T/go; echo ran >>$T/order" } } } }
E
echo '{ "projects": ["a", "b", "c", "d"] }' >vx.workspace.json
bg run d#wait
await up >/dev/null || fail "the run did not start"
mkfifo "$T/says"
("$VX" cache prune --max-size 1T; echo pruned >>"$T/order") >"$T/says" 2>&1 </dev/null &
pruner=$!
timeout 30 sed -n '/wait/{p;q}' "$T/says" >"$T/notice"
like "$T/notice" 'waiting for another run' "prune waits for a run, and says so"
mkfifo "$T/says2"
env --default-signal=TERM "$VX" cache prune --max-size 1T >"$T/says2" 2>&1 </dev/null &
stopped=$!
timeout 30 sed -n '/wait/{p;q}' "$T/says2" >"$T/notice"
kill -s TERM "$stopped"
wait "$stopped"
is $? 143 "a signal ends the wait"
echo go >"$T/go"
bg_wait
wait "$pruner"
is "$(tr '\n' ' ' <"$T/order")" "ran pruned " "then it prunes"
done_testing

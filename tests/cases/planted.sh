#!/bin/sh
# SPDX-License-Identifier: MIT
# A repository or an archive that brings a .vx with it: what vx did not write there itself is not obeyed.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git
[ -z "${VX_TEST_OWNER:-}" ] || skip_all "what lies in a scratch of another user is not looked at"

put vx.config.json <<'E'
{ "name": "w", "tasks": { "t": { "exec": { "command": "true", "sandbox": {} } } } }
E
s=.vx/scratch/vx-scratch-0123456789abcdef

# As anybody can write it who does not know the inodes: for all of them.
plant() { # HEAD
	mkdir -p $s/u
	echo ': pwned' >$s/u/victim
	{
		printf '%s' "$1"
		seq -f 'place %.0f victim' $(($(stat -c %i $s/u/victim) - 5)) $(($(stat -c %i $s/u/victim) + 5))
		echo 'mode 0777 vx.config.json'
		echo end
	} >$s/moves
}
chmod 644 vx.config.json
for head in 'vx-moves 1
' 'vx-moves 2
' "vx-moves 2
scratch $(stat -c %i .) 0
"; do
	plant "$head"
	run run t
	exits 2 "a planted list of moves is an error"
	said 'list of moves' "and is named"
	ok "nothing of it was done" test ! -e victim -a "$(stat -c %a vx.config.json)" = 644
	run run t
	exits 0 "then it is gone"
done

# The right inode and no birth, or that of another directory.
plant "vx-moves 2
scratch INO 0
"
sed -i "s/INO/$(stat -c %i $s)/" $s/moves
run run t
if [ "$(stat -c %W .)" = 0 ]; then
	skip "a list that names its directory by inode alone" "no birth times on this file system"
else
	exits 2 "a list that names its directory by inode alone"
	ok "nothing of it was done" test ! -e victim
fi

# A list that can be neither read nor waited for.
mkdir -p $s/u
mkfifo $s/moves
run run t
exits 2 "a list that is a fifo"
mkdir -p $s/u
ln -s /dev/zero $s/moves
run run t
exits 2 "a list that is a link"
run run t
exits 0 "all is well then"

# Git tracks something in it: the state of another machine, made by who knows.
git_ init -q
git_ add -f .vx/.gitignore
run run t
exits 2 "a .vx that git tracks"
said 'git tracks \.vx/\.gitignore.*git rm -r --cached \.vx' "and what to do"
run run t --dry
exits 2 "also for a dry run"
git_ rm -rq --cached .vx
run run t
exits 0 "untracked it is vx's own again"
mkdir -p sub/.vx && echo x >sub/.vx/x
git_ add -f sub/.vx/x
run run t
exits 0 "one that belongs to no workspace is any directory"

# --- databases ---------------------------------------------------------------------------------

# FILE VICTIM: beside FILE a journal that is to be rolled back, and then VICTIM, what it is a part of, removed.
journal() {
	python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$1"
	rm -f "$1-wal" "$1-shm"
	python3 - "$1" "$2" <<-'P'
		import os, struct, sys

		db, victim = sys.argv[1], sys.argv[2].encode()
		magic = bytes.fromhex("d9d505f920a163d7")
		head = magic + struct.pack(">IIIII", 0, 1, os.path.getsize(db) // 4096, 512, 4096)
		with open(db + "-journal", "wb") as f:
		    f.write(head.ljust(512, b"\0") + struct.pack(">I", 0x40000000 // 4096 + 1) + victim +
		            struct.pack(">II", len(victim), sum(victim)) + magic)
	P
}
require_program python3
put vx.config.json <<'E'
{ "name": "w", "tasks": { "t": {
	"exec": { "command": "mkdir -p dist; cat in >dist/a" },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } }
} } }
E
echo one >in
git_ rm -rqf --cached .
rm -rf .git .vx
run run t
exits 0 "a cache is made"
for how in 'run t' 'run t --cache=local:r' 'run t --no-cache' 'run t --dry' 'cache prune --older-than 30d'; do
	for f in cache/index.db state.db history.db; do
		rm -rf .vx
		run run t
		echo mine >"$T/victim"
		journal "$W/.vx/$f" "$T/victim"
		# shellcheck disable=SC2086 # words
		run $how
		exits 0 "$f has a journal: $how"
		is "$(cat "$T/victim")" mine "what it names stays"
		is "$(cat dist/a)" one "and the outputs"
	done
done

# Another's cache is not even written. (Root may write anything.)
rm -rf "$T/theirs"
run run t --cache-dir "$T/theirs"
journal "$T/theirs/index.db" "$T/victim"
if [ "$(id -u)" != 0 ]; then
	chmod a-w "$T/theirs"
	for how in --cache=local:r --no-cache --dry; do
		run run t --cache-dir "$T/theirs" $how
		exits 0 "a journal in a cache that is only read: $how"
		is "$(cat "$T/victim")" mine "what it names stays"
	done
	chmod u+w "$T/theirs"
fi

# A table that is a query without end.
endless='WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'
bomb() { # FILE TABLE
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript("ALTER TABLE %s RENAME TO old; CREATE VIEW %s AS SELECT old.* FROM old WHERE (%s SELECT count(*) FROM c) > 0"
	% (sys.argv[2], sys.argv[2], sys.argv[3]))
c.execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$1" "$2" "$endless"
	rm -f "$1-wal" "$1-shm"
}
for what in cache/index.db:entries state.db:stamps history.db:names; do
	rm -rf .vx
	run run t
	bomb ".vx/${what%:*}" "${what#*:}"
	run run t --dry
	exits 0 "${what%:*} has a table that is none: --dry"
	run run t
	exits 0 "and a run"
	ok "it is set aside" test -f ".vx/${what%:*}.broken"
	run run t
	said 'all cached' "after that all is well"
done
rm -rf "$T/theirs"
run run t --cache-dir "$T/theirs"
bomb "$T/theirs/index.db" entries
if [ "$(id -u)" != 0 ]; then
	chmod a-w "$T/theirs"
	run run t --cache-dir "$T/theirs" --cache=local:r
	exits 0 "a table that is none in a cache that is only read"
	said 'theirs/index.db is damaged \(its tables are not those of vx\): this run goes without the cache' \
		"and says so"
	: >"$T/theirs/index.db"
	run run t --cache-dir "$T/theirs" --cache=local:r
	exits 0 "one with nothing in it"
	said 'an older vx \(version 0.*: this run goes without the cache' "the same"
	chmod u+w "$T/theirs"
fi
done_testing

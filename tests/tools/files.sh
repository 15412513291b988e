#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# Programs that keep and move files, in a sandbox: git inside a granted .git, sqlite, tar, rsync; and what tools keep for
# themselves.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program sqlite3 tar gzip rsync

# --- sqlite ------------------------------------------------------------------------------------

tool sqlite 'sqlite3' 'sqlite3 app.db <schema.sql' '"schema.sql"' '"app.db"'
echo 'create table if not exists t (n); insert into t values (1); select count(*) from t;' >schema.sql
works app.db
is "$(sqlite3 app.db 'pragma integrity_check')" ok "sqlite: the database is whole"
not_without schema.sql 'read sqlite/schema.sql'
not_without 'app.db*' 'write sqlite/app.db'
derived

# Without a cache it goes on with the database that is there, with a journal of either kind.
uncached
run run sqlite#t
said '^2$' "sqlite: with a journal it adds to what was there"
silent "with a journal"
echo 'pragma journal_mode = wal; insert into t values (2); select count(*) from t;' >schema.sql
run run sqlite#t
silent "with a log"
said '^3$' "sqlite: with a log it adds to what was there"
run run sqlite#t
silent "with a log, again"
is "$(sqlite3 app.db 'pragma integrity_check; select count(*) from t')" "ok
4" "sqlite: the database is whole"

# --- tar ---------------------------------------------------------------------------------------

tool tar 'tar' 'tar -czf app.tar.gz src && mkdir out && tar -xzf app.tar.gz -C out' '"src/**"' '"app.tar.gz", "out/**"'
echo a | put src/a
echo b | put src/deep/b
ln -s ../a src/deep/link
ln src/a src/hard
chmod 755 src/hard
works app.tar.gz out/src/a out/src/deep/b
is "$(readlink out/src/deep/link) $(stat -c %a out/src/hard)" "../a 755" "tar: links and modes"
said_not 'tar:' "tar: nothing changed while it read"
not_without src 'read tar/src'
not_without out 'write tar/out/.*'
derived

# --- rsync -------------------------------------------------------------------------------------

tool rsync 'rsync' 'rsync -aH --delete src/ out' '"src/**"' '"out/**"'
echo a | put src/a
echo b | put src/deep/b
ln -s ../a src/deep/link
ln src/a src/hard
works out/a out/deep/b out/hard
ok "rsync: the same" diff -r src out
not_without src 'read rsync/src'
not_without out 'write rsync/out/.*'
derived

# Without a cache it sees what it made the last time.
COMMAND='rsync -aH --delete --itemize-changes src/ out'
uncached
run run rsync#t
silent "without a cache"
run run rsync#t
silent "again"
# (The time of the directory itself is that of the last commit.)
said_not '^[<>ch*].{10} |^\.f' "rsync: again: nothing to do"
rm -r src/deep
echo c >src/c
run run rsync#t
silent "after an edit"
ok "rsync: after an edit: the same" diff -r src out

# --- git ---------------------------------------------------------------------------------------

tool git 'git describe, git log' 'git describe --tags >version && git log --oneline >log' '"src/**"' '"version", "log"'
echo a | put src/a
echo b | put src/deep/b
printf '%s\n' version log >.gitignore
git_ add -A "$W"
git_ commit -qm one
git_ tag v1
NOTE='confined, not proven: it may read \.git/.*, which no key covers \(it is git.s own\); narrow what it may read'
works version log
is "$(cat version)" v1 "git: what it says"
SANDBOX='{ "allow": { "write": ["version", "log"] } }'
config "$SANDBOX"
run run git#t
exits 1 "git: without ../.git it finds no repository"
said '^note: .* to show it: allow\.read: \["\.\./\.git"\]' "git: a note says what to write"

# Without a cache, in its place.
cat >"$T/commits" <<'G'
set -e
alias git='git -c user.name=t -c user.email=t@example.invalid -c commit.gpgsign=false'
echo c >src/c
git add src
git commit -qm two
git tag v2
git checkout -qb topic
git mv src lib
git commit -qm three
git checkout -q main
git merge -q topic
git gc -q
git fsck --strict
G
tool git 'git commit' "sh $T/commits" '' ''
git_ add -A "$W"
git_ commit -qm config --allow-empty
uncached
git_ commit -qam uncached
run run git#t
silent "commits"
is "$(git_ log --format=%s | tr '\n' ' ')" "three two uncached config one " "git: they are all there"
is "$(git_ status --porcelain)" "" "git: and the work tree is as they say"
is "$(git_ show --format= --name-status HEAD HEAD~1 | tr '\t\n' '  ')" \
	"R100 git/src/a git/lib/a R100 git/src/c git/lib/c R100 git/src/deep/b git/lib/deep/b A git/src/c " \
	"git: what it does not see it does not take for deleted"
ok "git: the repository is whole" git_ fsck --strict
SANDBOX='{ "allow": { "read": ["lib"], "write": ["../.git"] } }'
COMMAND='echo \"#!/bin/sh\" >../.git/hooks/pre-commit'
uncached
run run git#t
exits 1 "git: a hook is no part of the grant"
said '^write \.git/hooks/pre-commit' "git: and is named"
not_ok "git: and not kept" test -e ../.git/hooks/pre-commit

# What the index says of the times is no longer so: git notes that there, which is thrown away.
DISCARDED='1 write discarded, as ignore\.write says: \.git/index'
SANDBOX=$(recipe 'git status, git diff')
COMMAND='git describe --always --dirty'
uncached
git_ commit -qam status
touch -d 2001-01-01 lib/deep/b
run run git#t
noted "describe --dirty, with a stale index" "$DISCARDED"
said_not '^[^$]*-dirty$' "git: describe: a clean tree"
COMMAND='git status --porcelain; git diff --stat'
uncached
git_ commit -qam status
touch -d 2001-01-02 lib/deep/b
sha256sum ../.git/index >"$T/index"
echo changed >lib/a
run run git#t
noted "status, with a stale index" "$DISCARDED"
ok "git: status: the index is as it was" sha256sum --quiet -c "$T/index"
is "$(sed -n '/^\$ /,/^└/p' "$OUT" | sed -e 1d -e '$d' -e '/^note: /d')" " M git/lib/a
 git/lib/a | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)" "git: status: it sees what is there"

# --- caches of tools ---------------------------------------------------------------------------

# Those of the programs in tests/tools are seen with these; next would be a hundred megabytes more.
tool caches '' 'mkdir -p .next/cache node_modules/.vite .vite && echo a | tee .next/cache/a .vite/a node_modules/.vite/a a' \
	'' '"a"'
derived '3 writes to tool caches discarded: (caches/(\.next/cache|\.vite|node_modules/\.vite)(, )?){3}'
ok "caches: --sandbox: none of them is there" test -s a -a ! -e .next -a ! -e .vite -a ! -e node_modules
SANDBOX='{ "allow": { "write": ["a", ".next/cache", ".vite", "node_modules/.vite"] } }'
config "$SANDBOX"
run run caches#t
silent "granted"
ok "caches: granted: each of them is there" test -s .next/cache/a -a -s .vite/a -a -s node_modules/.vite/a
finish

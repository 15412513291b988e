#!/bin/sh
# SPDX-License-Identifier: MIT
# allow.gitConfig: git may set its config where the repository is granted; what runs by it may not be put there.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

git_ init -q
echo f >f
git_ add f
git_ commit -q -m i
own

cat >"$T/set.sh" <<'E'
git() { command git -c safe.directory='*' "$@"; }
git config user.name "$1"
E
box '{ "allow": { "read": ["."], "write": [".git"] } }' <<E
set -- one; . $T/set.sh
E
findings 1 "without it"
reported write '\.git/config'
is "$(git_ config --file .git/config user.name)" "" "the config stays"
box '{ "allow": { "read": ["."], "gitConfig": true } }' <<E
set -- one; . $T/set.sh
E
exits 1 "it grants nothing by itself"
is "$(git_ config --file .git/config user.name)" "" "the config stays"
box '{ "allow": { "read": ["."], "write": [".git"], "gitConfig": true } }' <<E
set -- two; . $T/set.sh
E
findings 0 "with it, and a grant of the repository"
is "$(git_ config --file .git/config user.name)" two "the config is set"
box '{ "allow": { "read": ["."], "write": [".git"], "gitConfig": true } }' <<E
set -- three; . $T/set.sh
echo evil >.git/hooks/post-commit
echo evil >.git/config.worktree
E
findings 2 "hooks and other configs"
reported write '\.git/hooks/?.*'
reported write '\.git/config\.worktree'
ok "are not put there" test ! -e .git/hooks/post-commit
box '{ "allow": { "read": ["."], "write": ["**"], "gitConfig": true } }' <<'E'
mkdir -p sub/.git && echo evil >sub/.git/config
E
findings 1 "a new repository"
reported write 'sub/\.git'
ok "is not made" test ! -e sub/.git

# C12: commits work, hooks are refused.
box '{ "allow": { "read": ["."], "write": [".", ".git"], "gitConfig": true } }' <<E
set -- four; . $T/set.sh
git config user.email a@b.c
echo 1 >g; git add g; git commit -qm c
echo evil >.git/hooks/post-commit
E
findings 1 "C12"
is "$(git_ log --format=%s -1)" c "C12: the commit is there"
ok "C12: the hook is not" test ! -e .git/hooks/post-commit

# The live view.
cat >"$T/command.sh" <<E
set -- five; . $T/set.sh
echo evil >.git/hooks/post-commit
echo end
E
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "persistent": {},
	"sandbox": { "allow": { "read": ["."], "write": [".git"], "gitConfig": true } } } } } }
E
run run t
findings 1 "live"
reported write '\.git/hooks/post-commit'
is "$(git_ config --file .git/config user.name)" five "live: the config is set"
ok "live: the hook is not" test ! -e .git/hooks/post-commit
done_testing

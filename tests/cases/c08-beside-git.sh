#!/bin/sh
# SPDX-License-Identifier: MIT
# C08: nothing is left or shown in the workspace, during and after.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

names='".bashrc", ".bash_profile", ".profile", ".zshrc", ".netrc", ".npmrc", ".gitconfig", ".gitmodules", ".mcp.json", ".vscode", ".idea", ".git/hooks/x"'
sandbox="{ \"allow\": { \"write\": [\"**\"] }, \"deny\": { \"read\": [$names], \"write\": [$names] } }"
git_ init -q
git config core.x 1
echo k >kept
fifo up go
# What it runs is there before it is committed.
box "$sandbox" </dev/null
git_ add -A
git_ commit -qm workspace
git_ status --porcelain >/dev/null

cat >"$T/command.sh" <<E
ls -A . >/dev/null
echo up >$T/up
read -r x <$T/go
E
# Its index has times of git's own; its config is written anew.
before '\.git/index|\.git/config'
bg run t
await up >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	git_ status --porcelain
	git_ config core.x 1
done >"$T/loop" 2>&1
ok "C08: the task still runs" kill -0 "$BG"
echo go >"$T/go"
bg_wait
exits 0 "C08: a task with rules for twelve names that do not exist"
is "$(cat "$T/loop")" "" "C08: git beside it sees no name and no lock"
is "$(git_ status --porcelain)" "" "C08: nor after it"
unchanged C08 '\.git/index|\.git/config'

# Nor do those who list: what stands there is what stood there.
cat >"$T/command.sh" <<E
mkdir -p .vscode && echo 1 >.vscode/settings.json
echo 1 >.netrc
echo up >$T/up
read -r x <$T/go
E
bg run t
await up >/dev/null
git_ status --porcelain >"$T/loop" 2>&1
echo go >"$T/go"
bg_wait
findings 2 "C08: a task that makes them"
is "$(cat "$T/loop")" "" "C08: while it runs they are not there"
unchanged "C08, made" '\.git/index|\.git/config'
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# C12: commit in a linked worktree, whose repository lies outside of the workspace.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

M=$T/M
git_ init -q "$M"
git_ -C "$M" commit -q --allow-empty -m i
git_ -C "$M" worktree add -q "$W"
[ -z "${VX_TEST_OWNER:-}" ] || chown -R "$VX_TEST_OWNER:$VX_TEST_OWNER" "$M"
repository() { (cd "$M/.git" && find hooks config commondir config.worktree -exec ls -ldn {} + 2>/dev/null); }
cat >"$T/git" <<'E'
git_() {
	git -c safe.directory='*' -c user.name=test -c user.email=test@example.invalid "$@"
}
E
grants="\"read\": [\".git\"], \"write\": [\"**\", \"$M/.git\"]"
was=$(repository)
before 'f|g|\.git'
box "{ \"allow\": { $grants } }" <<E
. $T/git
set -e
echo 1 > f
git_ add f
git_ commit -qm c
E
findings 0 "C12: a commit in a linked worktree"
is "$(git_ -C "$M" log --all --format=%s | sort | tr '\n' ' ')" "c i " "C12: the repository has it"
is "$(git_ status --porcelain -uno)" "" "C12: and the worktree is clean"
is "$(repository)" "$was" "C12: hooks and settings are as they were"
unchanged C12 'f|g|\.git'

box "{ \"allow\": { $grants, \"gitConfig\": true } }" <<E
. $T/git
echo 2 > g
git_ add g
git_ commit -qm d
git_ config core.x 1
E
is "$(git_ -C "$M" log --all --format=%s | sort | tr '\n' ' ')" "c d i " "C12: with gitConfig: the commit works"
is "$(git_ -C "$M" config core.x)" 1 "C12: and so does a setting"
skip "C12: a hook does not reach the repository" \
	"a write grant outside of the workspace keeps nothing out in this vx yet (vx-config(5))"
unchanged "C12, with gitConfig" 'f|g|\.git'
done_testing

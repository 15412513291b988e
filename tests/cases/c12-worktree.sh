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

# The hook: in both views.
was=$(repository)
for view in transaction live; do
	box "{ \"view\": \"$view\", \"allow\": { $grants } }" <<E
. $T/git
echo $view > h
git_ add h
git_ commit -qm $view
echo evil > \$(git_ rev-parse --git-common-dir)/hooks/post-commit
E
	findings 1 "C12, $view: the hook"
	reported write "$M/\.git/hooks/post-commit" sh
	said "allow\.write: \[\"$M/\.git/hooks/post-commit\"\]" "C12, $view: with the entry that would allow it"
	is "$(git_ log --format=%s -1)" $view "C12, $view: the commit works"
	is "$(repository)" "$was" "C12, $view: hooks and settings are as they were"
done
unchanged "C12, with a hook" 'f|g|h|\.git'

# A grant of the file .git alone, which leads to what is not granted.
leads='granted for writing, is a file that leads to'
granted() { # WRITE-LIST
	box "{ \"allow\": { \"write\": [$1] } }" <<-'E'
		true
	E
}
granted '".git"'
exits 0 "a grant of the file .git"
said "^vx: \.git, $leads the repository $M/\.git, which is not: .*to keep it: allow\.write: \[\"$M/\.git\"\]" \
	"says that it keeps nothing, and what would"
granted "\".git\", \"$M/.git\""
said_not "$leads" "with the repository nothing is said"
HOME=$T
granted '".git"'
said 'allow\.write: \["~/M/\.git"\]' "below the home it is named from there"
# Whoever can write such a file shall not have a grant asked for.
git_ init -q "$T/other"
mkdir sub
for line in 'gitdir: ' 'gitdir: /nowhere' 'gitdir: /' "gitdir: $T/other/.git" "gitdir: $M/.git/worktrees/ws" 'else'; do
	printf '%s\n' "$line" >sub/.git
	granted '"sub/.git"'
	exits 0 "a .git that says '$line'"
	said_not "$leads" "a .git that says '$line': no advice"
done
is "$(ls "$M/.git/worktrees")" ws "(the worktree's own directory is the one named above)"
done_testing

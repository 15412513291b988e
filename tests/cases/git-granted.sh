#!/bin/sh
# SPDX-License-Identifier: MIT
# git in a repository that is granted by its path: what it does works, or is refused with a line that says what; and
# nothing comes to be there that git would execute later without being asked. In the workspace as a transaction and
# live, and outside of it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

# In a file: what git starts for a repository beside this one takes no option for it.
export HOME="$T/home"
mkdir "$HOME"
printf '[safe]\n\tdirectory = *\n' >"$HOME/.gitconfig"
cat >"$T/git" <<'E'
git() {
	command git -c protocol.file.allow=always -c user.name=test \
		-c user.email=test@example.invalid -c init.defaultBranch=main -c gc.autoDetach=false "$@"
}
E
# Two branches, a submodule and a linked worktree, each with its own repository in .git.
setup() {
	chmod -R u+rwX "$W/.git" "$T/M" "$T/wt" 2>/dev/null
	rm -rf "$W/.git" "${T:?}/M" "${T:?}/wt" "${T:?}/lib"
	find "$W" -mindepth 1 -maxdepth 1 ! -name .vx ! -name vx.config.json -exec rm -rf {} +
	git_ init -q "$T/lib"
	echo l >"$T/lib/l"
	git_ -C "$T/lib" add l
	git_ -C "$T/lib" commit -q -m lib
	git_ init -q "$1"
	(
		cd "$1" || exit
		printf '/.vx/\n/vx.config.json\n/wt\n' >.git/info/exclude
		echo 1 >f
		git_ add f
		git_ commit -q -m one
		git_ -c protocol.file.allow=always submodule -q add "$T/lib" sub
		git_ commit -q -m submodule
		git_ branch side
		echo 2 >>f
		git_ commit -qam two
		git_ checkout -q side
		echo 3 >g
		git_ add g
		git_ commit -q -m three
		git_ checkout -q main
		git_ worktree add -q -b third "$2"
	)
	[ "$1" = "$W" ] || rm -rf "$W/.git" # of a failed run
	[ -z "${VX_TEST_OWNER:-}" ] || chown -R "$VX_TEST_OWNER:$VX_TEST_OWNER" "$1" "$2" "$T/lib"
	own
}
# What git obeys, in the repository, its submodule's and its worktree's.
obeyed() (
	cd "$G" && find . \( -name hooks -o -name 'config*' -o -name commondir \) \
		-exec find {} -exec ls -ldn {} + -type f -exec cksum {} + \; 2>/dev/null
	find . -type l
)
works() { # NAME COMMAND: stdin is what must hold afterwards
	box "$policy" <<-E
		. $T/git
		cd $at
		set -e
		$2
	E
	exits 0 "$where: $1"
	said_not 'sandbox violation' "$where: $1: no finding"
	ok "$where: $1: done" sh -c ". $T/git; cd $at && $(cat)"
	is "$(obeyed)" "$was" "$where: $1: what git obeys is as it was"
}
refused() { # NAME PATH-REGEX COMMAND
	box "$policy" <<-E
		. $T/git
		cd $at
		$3
	E
	exits 1 "$where: $1: refused"
	said "^write $2(  by .*)?\$" "$where: $1: and says what"
	is "$(obeyed)" "$was" "$where: $1: what git obeys is as it was"
}

everything() {
	works commit 'echo c >>f; git commit -qam c' <<-'E'
		test "$(git log -1 --format=%s)" = c && git diff --quiet HEAD
	E
	works merge 'git merge -q -m merged side' <<-'E'
		test "$(git log -1 --format=%s)" = merged && test -f g && git diff --quiet HEAD
	E
	works stash 'echo d >>f; git stash -q; git stash list | grep -q . ; git stash pop -q; git commit -qam d' <<-'E'
		test "$(git log -1 --format=%s)" = d && test -z "$(git stash list)"
	E
	works rebase 'git checkout -q -b topic HEAD~1; echo t >t; git add t; git commit -qm t; git rebase -q main; git checkout -q main' <<-'E'
		test "$(git merge-base main topic)" = "$(git rev-parse main)"
	E
	works 'a rebase that stops' 'git checkout -q side; GIT_SEQUENCE_EDITOR=: git rebase -q -i -x false HEAD~1 || :; git status | grep -q "rebase in progress"' <<-'E'
		git status | grep -q 'rebase in progress'
	E
	works 'a rebase that is given up' 'git rebase --abort; git checkout -q main' <<-'E'
		! git status | grep -q 'rebase in progress'
	E
	works gc 'git gc -q --prune=now; git pack-refs --all; git repack -qad' <<-'E'
		git fsck --full --strict && ls "$(git rev-parse --git-common-dir)"/objects/pack/*.pack
	E
	works 'a commit in a submodule' 'cd sub; echo m >>l; git commit -qam m' <<-'E'
		test "$(git -C sub log -1 --format=%s)" = m
	E
	# git writes that file anew each time.
	refused 'an update of a submodule' "$told/modules/sub/config" 'git submodule -q update'
	works 'what only lies there' 'G=$(git rev-parse --git-common-dir); echo "* text" >$G/info/attributes
		echo /nowhere >$G/objects/info/alternates; : >$G/config.lock; rm $G/config.lock' <<-'E'
		test -f "$(git rev-parse --git-common-dir)/info/attributes" && rm "$(git rev-parse --git-common-dir)/objects/info/alternates"
	E
	for p in hooks/post-commit config.worktree commondir modules/sub/hooks/post-commit modules/sub/config \
		worktrees/wt/config.worktree; do
		refused "$p" "$told/$(echo "$p" | sed 's/\./\\./g')" "echo evil >$G_IN/$p"
	done
	refused 'a setting' "$told/config" 'git config core.fsmonitor evil'
	refused 'commondir of a worktree' "$told/worktrees/wt/commondir" "echo /evil >$G_IN/worktrees/wt/commondir"
	refused 'hooks replaced' "$told/hooks(/.*)?" "rm -rf $G_IN/hooks; mkdir $G_IN/h; echo evil >$G_IN/h/x; mv $G_IN/h $G_IN/hooks"
	refused 'worktrees by a link' "$told/worktrees(/.*)?" "mv $G_IN/worktrees $G_IN/w || rm -rf $G_IN/worktrees; ln -s /evil $G_IN/worktrees"
	refused 'a submodule by a link' "$told/modules/.*" "mv $G_IN/modules/sub $G_IN/m || rm -rf $G_IN/modules/sub; ln -s /evil $G_IN/modules/sub"
	refused 'a new worktree' "$told/worktrees/new(/commondir)?" 'git worktree add -q /tmp/new'
	refused 'a new submodule' '([^ ]*/)?(sub2/\.git|\.git/modules/sub2.*|\.gitmodules)' "git submodule -q add $T/lib sub2"
}

for view in transaction live; do
	where=$view
	G=$W/.git G_IN=.git told='\.git' at=$W
	setup "$W" "$T/wt"
	was=$(obeyed)
	policy="{ \"view\": \"$view\", \"allow\": { \"read\": [\".\"], \"write\": [\"**\", \".git\", \"sub/.git\"] } }"
	everything
done

# Outside of the workspace, in both views the same.
where=outside
G=$T/M/.git G_IN=$T/M/.git told="$T/M/\\.git" at=$T/M
setup "$T/M" "$T/wt"
was=$(obeyed)
policy="{ \"allow\": { \"write\": [\"$T/M\", \"$T/M/.git\", \"$T/M/sub/.git\"] } }"
everything
done_testing

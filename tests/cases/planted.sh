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
done_testing

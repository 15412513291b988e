#!/bin/sh
# SPDX-License-Identifier: MIT
# Write-granted directories that stand in the upper directory from the start: they can be renamed, look
# as the host's do, and what the command leaves alone is not told.
# shellcheck disable=SC2016,SC2034 # the command's own variables; MODE is read by box
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox

fresh() {
	chmod -R u+rwx "$W" 2>/dev/null
	rm -rf "$W"
	mkdir -p "$W/src" "$W/pk/out/d/sub" "$W/pk/other" "$W/pk/ext"
	echo s >"$W/src/s"
	echo f >"$W/pk/out/f"
	echo x >"$W/pk/out/d/x"
	echo y >"$W/pk/out/d/sub/y"
	ln -s d/x "$W/pk/out/l"
	ln "$W/pk/out/d/x" "$W/pk/out/h"
	echo o >"$W/pk/other/o"
	chmod 640 "$W/pk/out/f"
	chmod 2750 "$W/pk/out/d"
	chmod 555 "$W/pk/out/d/sub"
	touch -d '2001-02-03 04:05:06.789' "$W/pk/out/f" "$W/pk/out/d/sub" "$W/pk/out/d" "$W/pk/out" "$W/pk"
	touch -h -d '2002-02-03 04:05:06' "$W/pk/out/l"
}
# What was told of entries, one a line.
told() { sed -n 's/^vx-sandbox: \(dir\|file\|link\|deleted\|special\)/\1/p' "$ERR" | LC_ALL=C sort; }
# WANT NAME
tells() { is "$(told)" "$1" "$2"; }

all='find . pk pk/out -maxdepth 0 -printf "%p %m %U:%G %T@\n"
find pk/out -mindepth 1 -printf "%p %y %m %U:%G %T@ %l\n" | sort'

preload() { # NAME OF THE MODE
	m=$1
	fresh
	host=$(cd "$W" && eval "$all")
	box "$all" 'write pk/out'
	prints "$host" "$m: owners, modes, times and targets are the host's"
	tells "" "$m: who only looks leaves nothing to tell"

	box 'cat pk/out/f pk/out/d/x pk/out/d/sub/y pk/out/l pk/out/h; stat -c %h pk/out/h' 'write pk/out'
	prints "f
x
y
x
x
2" "$m: so is the content, and two names of one file are that"
	tells "" "$m: who only reads neither"

	box '"$PROBE" rename pk/out/d pk/out/e; cat pk/out/e/x; ls pk/out' 'write pk/out'
	prints "ok
x
e
f
h
l" "$m: rename of a directory"
	tells "deleted 0000 pk/out/d
dir (merged) 0755 pk
dir (merged) 0755 pk/out
dir (new) 0555 pk/out/e/sub
dir (new) 2750 pk/out/e
file 0644 pk/out/e/sub/y
file 0644 pk/out/e/x" "$m: what moved, and where it was"

	box '"$PROBE" rename pk/out/d pk/other/d; cat pk/other/d/x' 'write pk/out' 'write pk/other'
	prints "ok
x" "$m: from one grant to another"

	box '"$PROBE" rename pk/out pk/new; cat pk/new/f' 'write pk/out' 'write pk/new'
	prints "ok
f" "$m: of the granted directory itself"
	told >"$T/told"
	like "$T/told" '^deleted 0000 pk/out$' "$m: its old name is told as deleted"
	like "$T/told" '^dir \(replaces\) 0755 pk/new$' "$m: the new one as a directory"

	box '"$PROBE" rename pk/out/d pk/out/t && "$PROBE" rename pk/out/t pk/out/d' 'write pk/out'
	tells "" "$m: there and back again is nothing"

	box 'echo 2 >pk/out/f; chmod 600 pk/out/d/x; echo n >pk/out/d/n' 'write pk/out'
	tells "dir (merged) 0755 pk
dir (merged) 0755 pk/out
dir (merged) 2750 pk/out/d
file 0600 pk/out/d/x
file 0600 pk/out/h
file 0640 pk/out/f
file 0644 pk/out/d/n" "$m: changed and new files, and the directories that they are in"

	box 'echo F >pk/out/f; touch -d "2001-02-03 04:05:06.789" pk/out/f' \
		'write pk/out'
	tells "dir (merged) 0755 pk
dir (merged) 0755 pk/out
file 0640 pk/out/f" "$m: a change with size, mode and time as before"

	box 'rm pk/out/f pk/out/l; rm -r pk/out/h' 'write pk/out'
	tells "deleted 0000 pk/out/f
deleted 0000 pk/out/h
deleted 0000 pk/out/l
dir (merged) 0755 pk
dir (merged) 0755 pk/out
dir (merged) 2750 pk/out/d
file 0644 pk/out/d/x" "$m: deleted names, and the file that has one name less"

	box 'chmod 700 pk/out/d' 'write pk/out'
	tells "dir (merged) 0755 pk
dir (merged) 0755 pk/out
dir (merged) 2700 pk/out/d" "$m: a directory with another mode"

	box 'chmod 700 pk/out/d/sub; rm -r pk/out/d; mkdir pk/out/d; echo z >pk/out/d/z' 'write pk/out'
	tells "deleted 0000 pk/out/d/sub
deleted 0000 pk/out/d/x
dir (merged) 0755 pk
dir (merged) 0755 pk/out
dir (merged) 0755 pk/out/d
file 0644 pk/out/d/z
file 0644 pk/out/h" "$m: a directory made anew"

	box 'chmod 700 pk/out/d/sub; rm -r pk/out/d; echo z >pk/out/d' 'write pk/out'
	tells "dir (merged) 0755 pk
dir (merged) 0755 pk/out
file 0644 pk/out/d
file 0644 pk/out/h" "$m: a file in the place of a directory"

	box 'rm pk/out/f; mkdir pk/out/f; echo z >pk/out/f/z' 'write pk/out'
	like "$ERR" '^vx-sandbox: dir \(replaces\) 0755 pk/out/f$' "$m: a directory in the place of a file"
	like "$ERR" '^vx-sandbox: file 0644 pk/out/f/z$' "$m: with what is in it"

	box 'chmod 700 pk/out/d/sub; rm -r pk/out && mkdir pk/out && echo g >pk/out/g; ls pk/out' 'write pk/out'
	prints g "$m: the granted directory made anew"
	tells "deleted 0000 pk/out/d
deleted 0000 pk/out/f
deleted 0000 pk/out/h
deleted 0000 pk/out/l
dir (merged) 0755 pk
dir (merged) 0755 pk/out
file 0644 pk/out/g" "$m: is told by what is new and what is gone"

	box 'chmod 700 pk/out/d/sub; rm -r pk/out' 'write pk/out'
	tells "deleted 0000 pk/out
dir (merged) 0755 pk" "$m: the granted directory deleted"

	box 'echo 1 >pk/ext/new; echo 2 >src/s' 'write pk/out' 'read pk/ext' 'read src'
	tells "dir (merged) 0755 pk
dir (merged) 0755 pk/ext
dir (merged) 0755 src
file 0644 pk/ext/new
file 0644 src/s" "$m: beside it nothing changes"

	box '"$PROBE" rename pk/out pk/q && "$PROBE" rename pk/q pk/out' 'write pk/out' 'write pk/q'
	tells "" "$m: the granted directory there and back again"

	is "$(cd "$W" && eval "$all")" "$host" "$m: the host is as it was"
}

MODE=
if (exec 3<>/dev/fuse) 2>/dev/null; then
	preload fuse
	MODE=attached
	preload attached
fi
MODE=fuse-off
preload wall
MODE="fuse-off
attached"
preload 'wall, attached'
unset MODE

# What is not copied is a lower directory as ever: usable, told as before, only not to be renamed.
stays() { # NAME SPEC-LINE...
	what=$1
	shift
	box '"$PROBE" rename pk/out/d pk/out/e; echo n >pk/out/d/new' "$@"
	prints "EXDEV" "$what: not renamed"
	like "$ERR" '^vx-sandbox: file 0644 pk/out/d/new$' "$what: but written to"
	not_ok "$what: no copy is left" test -e "$S/u/pk/out/f"
}
fresh
stays 'something in it is denied' 'write pk/out' 'deny-read pk/out/f'
stays 'something in it may not be written' 'write pk/out' 'deny-write pk/out/none'
stays 'something in it is quiet' 'write pk/out' 'quiet pk/out/f'
stays 'outputs in it' 'write pk/out' 'output-glob pk/out/*.js'
mkfifo "$W/pk/out/d/fifo"
stays 'a fifo in it' 'write pk/out'
rm "$W/pk/out/d/fifo"
if setfattr -n user.x -v y "$W/pk/out/f" 2>/dev/null; then
	stays 'a file with attributes of its own' 'write pk/out'
	setfattr -x user.x "$W/pk/out/f"
fi
truncate -s 70M "$W/pk/out/d/big"
if ! cp --reflink=always "$W/pk/out/d/big" "$T/clone" 2>/dev/null; then
	stays 'too much in it' 'write pk/out'
fi
rm -f "$W/pk/out/d/big" "$T/clone"
i=$(find "$W/pk/out" -mindepth 1 | wc -l)
while [ "$i" -lt 1001 ]; do
	: >"$W/pk/out/d/sub2.$i"
	i=$((i + 1))
done
stays 'more than 1000 names' 'write pk/out'
rm "$W/pk/out/d/sub2.1000"
box '"$PROBE" rename pk/out/d pk/out/e' 'write pk/out'
prints ok "1000 names: renamed"

fresh
box '"$PROBE" rename pk/out/d pk/out/e' 'write pk/out' 'write pk/absent' 'write pk/ext' 'write pk/out/f' \
	'write pk/out/d' 'write pk/out'
prints ok "grants of what is not there, empty, a file, or granted already"

# A granted directory may lie in one that was not copied.
fresh
mkfifo "$W/pk/out/fifo"
box '"$PROBE" rename pk/out/d/sub pk/out/d/z; "$PROBE" rename pk/out/d pk/out/e' 'write pk/out' 'write pk/out/d'
prints "ok
ok" "a grant within another"

if [ "$(id -u)" != 0 ]; then
	fresh
	chmod 0 "$W/pk/out/f"
	box '"$PROBE" rename pk/out/d pk/out/e' 'write pk/out'
	prints "EXDEV" "what the command cannot read is not copied"
else
	fresh
	chown -R -h 1000:1000 "$W"
	chown 1001 "$W/pk/out/f"
	box '"$PROBE" rename pk/out/d pk/out/e; stat -c "%u %a" pk pk/out pk/out/e pk/out/e/x pk/out/f pk/out/l' \
		'write pk/out'
	prints "ok
1000 755
1000 755
1000 2750
1000 644
1001 640
1000 777" "root, on the files of other users: theirs they stay"
fi
done_testing

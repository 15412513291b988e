#!/bin/sh
# SPDX-License-Identifier: MIT
# C04: remove and re-create a granted directory. C06: rename between two grants.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

mkdir -p dist/a
echo 1 >dist/a/f
inode=$(stat -c %i dist)
before dist
box '{ "allow": { "write": ["dist/**"] } }' <<'E'
set -e
rm -rf dist
mkdir dist
echo 2 >dist/g
E
findings 0 "C04: rm -rf dist && mkdir dist"
is "$(find dist -mindepth 1 | sort | tr '\n' ' ')" "dist/g " "the host has what the task left"
is "$(cat dist/g)" 2 "with its content"
is "$(stat -c %i dist)" "$inode" "the directory itself was never replaced"
unchanged C04 dist

# The same where dist is a declared output: the task does not see it at first.
box '{ "allow": { "write": ["dist/**"] } }' \
	', "cache": { "inputs": { "files": [] }, "outputs": { "files": ["dist/**"] } }' <<'E'
set -e
test ! -e dist
mkdir dist
echo 3 >dist/h
E
findings 0 "declared outputs are absent at the start"
is "$(find dist -mindepth 1 | sort | tr '\n' ' ')" "dist/h " "and wholly replaced at the end"
is "$(stat -c %i dist)" "$inode" "in the same directory"

rm -rf dist
mkdir out cache out/before
echo x >out/f
i=0
while [ $i -lt 20 ]; do
	echo $i >out/before/$i
	i=$((i + 1))
done
before 'out|cache'
box '{ "allow": { "write": ["out/**", "cache/**"] } }' <<'E'
set -e
mkdir out/d
echo y >out/d/y
exec python3 - <<'P'
import os
os.rename("out/f", "cache/f")
os.rename("out/d", "cache/d")
os.rename("out/before", "cache/before")
P
E
findings 0 "C06: rename(2) of a file, a new directory and one that was there"
is "$(cat cache/f)" x "the file has moved"
is "$(cat cache/d/y)" y "the new directory too"
is "$(find cache/before -type f | wc -l | tr -d ' ')" 20 "and the one with 20 files"
is "$(find out -mindepth 1)" "" "nothing stayed behind"
unchanged C06 'out|cache'

# Both were there before, with more in them than moves: what stays is not touched.
rm -rf "$W/out" "$W/cache"
mkdir -p out/d/sub cache/old
i=0
while [ $i -lt 20 ]; do
	echo $i >out/d/sub/$i
	echo $i >out/stays$i
	i=$((i + 1))
done
ln -s sub/1 out/d/link
chmod 750 out/d
chmod 400 out/d/sub/1
touch -d '2001-02-03 04:05:06' out/d/sub/2
echo y >cache/old/y
tree() { (cd "$1" && find . -printf '%p %y %m %l\n' | sort && stat -c %Y sub/2); }
inodes() { stat -c '%i %n' out cache cache/old/y out/stays*; }
moves=$(tree out/d)
stays=$(inodes | grep -v 'stays[34]$')
box '{ "allow": { "write": ["out", "cache/**"] } }' <<'E'
set -e
echo new >out/stays3
rm out/stays4
exec python3 -c 'import os; os.rename("out/d", "cache/d")'
E
findings 0 "C06: rename(2) between two directories that are in use"
is "$(tree cache/d)" "$moves" "what has moved is what it was"
is "$(cat cache/d/sub/* | sort -n | tr '\n' ' ')" "$(seq 0 19 | tr '\n' ' ')" "with its content"
not_ok "nothing of it stayed behind" test -e out/d
is "$(cat out/stays3)" new "a changed file beside it is changed"
not_ok "a removed one removed" test -e out/stays4
is "$(inodes | grep -v 'stays[34]$')" "$stays" "all others are the files that they were"
clean C06

# A task that changes nothing there changes nothing there.
own
stays=$(find out cache -printf '%i %p\n' | sort)
box '{ "allow": { "write": ["out", "cache"] } }' <<'E'
cat out/stays* cache/d/sub/2 >/dev/null
E
findings 0 "a task that only reads what it might write"
is "$(find out cache -printf '%i %p\n' | sort)" "$stays" "leaves every inode as it was"

# Tools that rename directories, and do not copy instead when that is refused.
box '{ "allow": { "write": ["out", "cache"] } }' <<'E'
exec python3 -c 'import os; os.rename("cache/d", "out/python")'
E
findings 0 "python os.rename"
ok "it is there" test -f out/python/sub/19
if command -v node >/dev/null; then
	box '{ "allow": { "write": ["out", "cache"] } }' <<'E'
exec node -e 'require("fs").renameSync("out/python", "out/node")'
E
	findings 0 "node fs.renameSync"
	ok "it is there" test -f out/node/sub/19
	not_ok "and only there" test -e out/python
fi

# A process of the host that stands in an output directory sees the next build there.
rm -rf out cache
mkdir -p lib/dist
echo first >lib/dist/page
fifo ask
(
	cd lib/dist || exit
	exec 8<.
	read -r go <"$T/ask"
	echo "$go" >/dev/null
	cat page
	cat /proc/self/fd/8/page
) >"$T/served" &
server=$!
box '{ "allow": { "write": ["lib/dist/**"] } }' \
	', "cache": { "inputs": { "files": [] }, "outputs": { "files": ["lib/dist/**"] } }' <<'E'
mkdir -p lib/dist && echo second >lib/dist/page
E
findings 0 "a build under a running server"
echo go >"$T/ask"
wait "$server"
is "$(tr '\n' ' ' <"$T/served")" "second second " "the server sees the second build"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Rules compare bytes: what is on a file system that folds case is refused, with the reason.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox

# Nothing of the kind: two names of one file, one directory under two names, and links.
mkdir -p "$W/src/dir"
echo x >"$W/src/name"
ln "$W/src/name" "$W/src/NAME"
ln -s dir "$W/src/Dir"
own
box 'cat src/name src/NAME' 'read src'
exits 0 "names that differ in case alone, of one file"
prints "x
x" "are there"

# KIND MKFS-COMMAND MOUNT-OPTIONS: a file system of that kind at $T/fs.
mounted() {
	[ "$(id -u)" = 0 ] || return 1
	truncate -s 16M "$T/image" && mkdir -p "$T/fs" || return 1
	$2 "$T/image" >/dev/null 2>&1 && mount -o loop -t "$1" "$T/image" "$T/fs" 2>/dev/null
}
trap 'umount "$T/fs" 2>/dev/null; tap_cleanup' EXIT
refused() { # PATH NAME
	exits 125 "$2: refused"
	like "$ERR" "^vx-sandbox: $1 takes upper and lower case of a name for the same, .*tells them apart" "$2: with the reason and a remedy"
}

if mounted ext4 'mkfs.ext4 -q -O casefold -E encoding=utf8'; then
	mkdir "$T/fs/folds" "$T/fs/plain" "$T/fs/plain/sub"
	chattr +F "$T/fs/folds" "$T/fs/plain/sub"
	was=$W
	W=$T/fs/folds
	box true 'read .'
	refused "$T/fs/folds" "a workspace"
	W=$T/fs/plain
	box true 'read sub'
	refused "$T/fs/plain/sub" "a granted directory"
	box true
	exits 0 "a workspace beside it"
	W=$was
	box true "write $T/fs/folds"
	refused "$T/fs/folds" "a directory outside"
	umount "$T/fs"
else
	skip "ext4 that folds case" "this kernel, or this user, mounts none"
fi

# Any other, by what it answers.
# shellcheck disable=SC2188 # opening is the question
if command -v python3 >/dev/null && (: <>/dev/fuse) 2>/dev/null; then
	mkdir -p "$T/fs"
	fifo up hold
	spec true "write $T/fs"
	RC=0
	timeout 60 unshare --user --map-root-user --mount sh -c 'exec 8<>"$1/hold"
		python3 "$2/tests/tool/folding-fs.py" "$1/fs" <"$1/hold" >"$1/up" 8>&- &
		read -r line <"$1/up" && [ "$line" = mounted ] && "$3" --spec "$1/spec"' sh "$T" "$VX_SRCDIR" "$VX_SANDBOX" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	refused "$T/fs" "one that is known by its answers"
else
	skip "one that is known by its answers" "no python3, or no /dev/fuse"
fi

if mounted vfat mkfs.vfat; then
	box true "write $T/fs"
	refused "$T/fs" "vfat outside"
	umount "$T/fs"
else
	skip "vfat" "this kernel, or this user, mounts none"
fi
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# A file system whose times are whole seconds: outputs that are changed in the second in which they were stamped are
# told by their content.
if [ -z "${VX_TEST_MOUNTS:-}" ] && unshare --mount true 2>/dev/null; then
	VX_TEST_MOUNTS=1 exec unshare --mount sh "$0"
fi
. "${VX_SRCDIR:?}/tests/lib.sh"
[ -n "${VX_TEST_MOUNTS:-}" ] || skip_all "cannot mount here"
require_program mkfs.ext4 mount truncate
truncate -s 64M "$T/image"
mkfs.ext4 -q -I 128 "$T/image" >/dev/null 2>&1 || skip_all "no ext4 with small inodes here"
mount -o loop "$T/image" "$W" 2>/dev/null || skip_all "cannot mount an image here"
trap 'cd /; umount "$W"; tap_cleanup' EXIT
cd "$W" || exit 99
rmdir lost+found

put vx.config.json <<'E'
{ "tasks": { "build": { "exec": { "command": "mkdir -p dist/sub; cat in >dist/a; cat in >dist/sub/b" },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["dist/**"] } } } } }
E
echo 0 >in
run run build
[ "$(stat -c %Z dist/a)" = "$(date -r dist/a +%s)" ] || exit 99
like /proc/self/mounts "$W ext4" "the workspace is on such a file system"

# CHANGE NAME: in the second in which the outputs were made; where the second ends between the two, again.
made() { stat -c '%Y %Z' dist dist/a dist/sub dist/sub/b; }
in_one_second() {
	n=100
	while :; do
		n=$((n + 1))
		rm -rf dist
		echo $n >in
		# shellcheck disable=SC2086 # options
		run run build ${3:-}
		then=$(made)
		eval "$1"
		[ "$(made)" != "$then" ] || break
		[ $n -lt 160 ] || exit 99
	done
	# shellcheck disable=SC2086 # options
	run run build ${3:-}
	said restored "$2: is seen"
	is "$(cat dist/a dist/sub/b; ls dist/sub)" "$n
$n
b" "$2: the outputs are those of the key"
	# shellcheck disable=SC2086 # options
	run run build ${3:-}
	said 'up to date' "$2: afterwards they are up to date"
	is "$(cat dist/a)" $n "$2: as they were"
}
both() {
	in_one_second 'printf new 1<>dist/a' "${2:-}a write of the same size" "$1"
	in_one_second 'rm dist/a; echo new >dist/a; :' "${2:-}another file" "$1"
	in_one_second ': >dist/sub/c' "${2:-}a new name" "$1"
}
both ''
if can_sandbox; then
	both --sandbox "in a sandbox, "
else
	skip "the same in a sandbox" "no namespaces here"
fi
done_testing

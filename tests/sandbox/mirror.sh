#!/bin/sh
# SPDX-License-Identifier: MIT
# A workspace, or a home, that the kernel takes for no layer of an overlay: something is mounted in it, it is on overlays
# over overlays, or its files belong to others. The helper serves it then, and all that a sandbox promises holds.
# shellcheck disable=SC2016,SC2034 # the command's own variables; RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program python3

if [ "$(id -u)" = 0 ]; then
	with_mounts() { unshare --mount "$@"; }
else
	with_mounts() { unshare --user --map-root-user --mount "$@"; }
fi

# A tmpfs at W/src/m, with files in it; a bind of a file.
cat >"$T/mounted.sh" <<'SH'
top=$1
shift
mkdir -p "$top/src/m" && mount -t tmpfs none "$top/src/m" &&
	mkdir -p "$top/src/m/sub/deep" && echo in >"$top/src/m/in" && echo deep >"$top/src/m/sub/deep/f" &&
	echo key >"$top/src/m/key" && ln -s in "$top/src/m/link" && ln -s ../s "$top/src/m/out" &&
	echo one >"$top/src/m/sub/one" && echo two >"$top/src/m/sub/two" &&
	touch "$top/src/bound" && mount --bind "$top/src/s" "$top/src/bound" || exit 99
cd "$top" && [ -z "${SETUP:-}" ] || eval "$SETUP" || exit 99
"$@"
rc=$?
[ -z "${AFTER:-}" ] || (cd "$top" && eval "$AFTER")
exit $rc
SH
fresh() {
	chmod -R u+rwX "$W" "$HOMEDIR" 2>/dev/null
	rm -rf "$W" "${HOMEDIR:?}"
	mkdir -p "$W/src/sub" "$W/priv" "$HOMEDIR/.cache"
	echo s >"$W/src/s"
	echo k >"$W/priv/key"
}
# As box, in a namespace with the mounts.
mounted() {
	spec "$@"
	RC=0
	with_mounts sh "$T/mounted.sh" "$W" timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
}

# --- what it is, and that it is said -------------------------------------------------------------

for MODE in '' attached; do
	with=${MODE:-detached}
	fresh
	mounted 'cat src/s src/bound src/m/in src/m/link src/m/out src/m/sub/deep/f
		cat src/m/key priv/key; ls src/m; ls src/m/nosuch 2>/dev/null; find src | LC_ALL=C sort' \
		'read src' 'deny-read src/m/key'
	exits 0 "$with, a mount inside: runs"
	prints "s
s
in
in
s
deep
in
link
out
sub
src
src/bound
src/m
src/m/in
src/m/link
src/m/out
src/m/sub
src/m/sub/deep
src/m/sub/deep/f
src/m/sub/one
src/m/sub/two
src/s
src/sub" "$with, a mount inside: all that is granted is seen, and nothing else"
	is "$(grep -c 'is served by a mirror' "$ERR")" 1 "$with: it is said once"
	like "$ERR" "^vx-sandbox: note: the workspace $W is served by a mirror: $W/src/(m|bound) is mounted in it$" "$with: with the reason"
	like "$ERR" 'denied read src/m/key' "$with: what is denied in the mount is told"
	like "$ERR" 'denied read priv' "$with: and beside it"
done
MODE=
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# File operations outside and inside of a sandbox: they differ where tests/data/fileops.different says so, and
# nowhere else.
# shellcheck disable=SC2034 # MODE is read by box
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
LIST=$VX_SRCDIR/tests/data/fileops.different
# Where the sandbox shows it, and any user can run it.
OPS=$T/fileops
BOX=$T/vx-sandbox
cp "$VX_BUILDDIR/fileops" "$OPS"
cp "$VX_SANDBOX" "$BOX"

# FILE FILE: "NAME: OUTSIDE -> INSIDE" for each name whose results are not the same.
different() {
	awk 'match($0, /^.*: /) {
			name = substr($0, 1, RLENGTH - 2)
			result = substr($0, RLENGTH + 1)
			if (FNR == NR) { order[++n] = name; out[name] = result; in_[name] = "-"; next }
			if (!(name in out)) { order[++n] = name; out[name] = "-" }
			in_[name] = result
		}
		END { for (i = 1; i <= n; i++) if (out[order[i]] != in_[order[i]])
			print order[i] ": " out[order[i]] " -> " in_[order[i]] }' "$1" "$2" | sort
}
# WORD...: the lines of the list for a run of which these words hold, without what this file system does
# outside as well.
listed() {
	awk -F ' [|] ' -v words=" all $* " 'FNR == NR { seen[$0]; next }
		/^#/ || !NF { next }
		{
			n = split($1, need, " ")
			for (i = 1; i <= n; i++) if (!index(words, " " need[i] " ")) next
			split($2, half, " -> ")
			sub(/: [^:]*$/, "", half[1])
			if (!((half[1] ": " half[2]) in seen)) print $2
		}' "$T/outside" "$LIST" | sort
}
# NAME WORD...: after a run, outside and inside.
compare() {
	name=$1
	shift
	exits 0 "$name: runs"
	different "$T/outside" "$OUT" >"$T/got"
	listed "$@" >"$T/want"
	if diff "$T/want" "$T/got" >"$T/diff"; then
		pass "$name: differs as listed"
	else
		fail "$name: differs as listed"
		diag 'listed <, found >'
		sed 's/^/#   /' "$T/diff"
	fi
}

fresh() {
	chmod -R u+rwx "$W" 2>/dev/null
	rm -rf "$W"
	mkdir "$W"
	(cd "$W" && "$OPS" make) || exit 99
}
view() { # NAME WORDS SPEC-LINE...
	name=$1 words=$2
	shift 2
	fresh
	box "$OPS run" "$@"
	# shellcheck disable=SC2086 # words
	compare "$name" $words $who $kernel
}
# What changed between kernels is marked with the first that has it.
kernel=$(for v in 6.2 6.7; do
	if printf '%s\n%s\n' "$v" "$(uname -r)" | sort -V | head -n 1 | grep -qx "$v"; then
		echo "linux>=$v"
	else
		echo "linux<$v"
	fi
done)
if [ "$(id -u)" = 0 ]; then who=root; else who=user; fi
fresh
(cd "$W" && "$OPS" run >"$T/outside") || exit 99
if grep -qx 'FICLONE: ok' "$T/outside"; then kernel="$kernel reflink"; else kernel="$kernel no-reflink"; fi
is "$(sed 's/: [^:]*$//' "$T/outside" | sort | uniq -d)" "" "each operation has a name of its own"

groups=$(cd "$W" && echo *)
# shellcheck disable=SC2086 # words
each=$(printf 'write %s\n' $groups)
for MODE in '' fuse-off; do
	[ "$MODE" ] || (exec 3<>/dev/fuse) 2>/dev/null || continue
	with=${MODE:-FUSE}
	view "$with, granted for writing" 'once lower plain' 'write .'
	view "$with, granted for reading" 'once lower plain' 'read .'
	view "$with, name by name" "once lower plain names" 'write .' 'deny-read-glob **/denied'
	view "$with, copied at start" 'once copied plain' "$each"
	view "$with, with Unix sockets" 'once lower' 'write .' unix-sockets
done
# Something mounted in the workspace: the helper serves it (the mirror). An ordinary user becomes himself again
# once he has mounted it.
cat >"$T/mounted.sh" <<'SH'
mount -t tmpfs none "$1" && shift && exec "$@"
SH
if [ "$who" = root ]; then
	mounted() { unshare --mount sh "$T/mounted.sh" "$@"; }
else
	mounted() {
		mount=$1
		shift
		unshare --user --map-root-user --mount sh "$T/mounted.sh" "$mount" \
			unshare --user --map-user="$(id -u)" --map-group="$(id -g)" "$@"
	}
fi
mirrored() { # NAME WORDS SPEC-LINE...
	name=$1 words=$2
	shift 2
	fresh
	mkdir "$W/mounted"
	spec "$OPS run" "$@"
	RC=0
	mounted "$W/mounted" timeout 60 "$BOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	# shellcheck disable=SC2086 # words
	compare "$name" $words $who $kernel
	like "$ERR" 'is served by a mirror' "$name: it is one"
}
if (exec 3<>/dev/fuse) 2>/dev/null; then
	MODE=
	mirrored 'mirror, granted for writing' 'once lower plain mirror' 'write .'
	mirrored 'mirror, granted for reading' 'once lower plain mirror' 'read .'
	mirrored 'mirror, name by name' 'once lower plain names mirror' 'write .' 'deny-read-glob **/denied'
	MODE=live
	view 'live, bound' bound 'write .' unix-sockets
	view 'live, served' served 'write .' unix-sockets 'deny-read-glob **/denied'
fi

# Files of another owner: only root can make them. An ordinary user meets them, and root itself.
owners() {
	chmod -R u+rwx "$W"
	rm -rf "$W" "${HOMEDIR:?}"
	mkdir -p "$W/mine" "$W/d755" "$W/d777/empty" "$HOMEDIR"
	cd "$W" || exit 99
	for f in mine/f644 mine/r644 mine/u644 mine/o644 mine/f666 mine/t666 mine/m666 mine/r666 mine/u666 \
		mine/group d755/own d755/theirs d777/own d777/theirs d777/u; do
		echo text | tr -d '\n' >"$f"
	done
	chown -R 1005:1005 .
	chown "$1:$1" . mine mine/group d755/own d777/own "$HOMEDIR"
	chgrp 1005 mine/group
	chmod 666 mine/?666 d755/theirs d777/theirs
	chmod 777 d777
	cd "$T" || exit 99
}
meet() { # NAME WORDS RUNNER UID SPEC-LINE...
	name=$1 words=$2 runner=$3 uid=$4
	shift 4
	owners "$uid"
	(cd "$W" && $runner "$OPS" own >"$T/outside")
	owners "$uid"
	spec "$OPS own" "$@"
	chown "$uid:$uid" "$S"
	RC=0
	$runner timeout 60 "$BOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	# shellcheck disable=SC2086 # words
	compare "$name" $words
}
if [ "$who" = root ]; then
	for MODE in '' fuse-off; do
		[ "$MODE" ] || (exec 3<>/dev/fuse) 2>/dev/null || continue
		with=${MODE:-FUSE}
		if [ "$MODE" ]; then words='owners hidden'; else words='owners shown'; fi
		meet "$with, a user among files of others" "$words" as_user 54321 'write .'
		meet "$with, root that maps one id among files of others" "$words" \
			'unshare --user --map-root-user' 0 'write .'
		meet "$with, a user, copied at start" 'owners shown' as_user 54321 'write mine' 'write d755' 'write d777'
		meet "$with, root among files of others" none '' 0 'write .'
	done
fi
done_testing

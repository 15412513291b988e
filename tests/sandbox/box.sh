# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For tests of vx-sandbox alone: a spec written by hand, one run of it. Sourced after tests/lib.sh.
# shellcheck disable=SC2034 # RC is read by exits

# Where the sandbox shows it, too: the build may lie below /tmp.
PROBE=$T/probe
cp "$VX_BUILDDIR/probe" "$PROBE"
HOMEDIR=$T/home
mkdir -p "$HOMEDIR"
nbox=0

# SHELL-TEXT SPEC-LINE...: writes $T/spec for `sh -c TEXT` at the workspace, with a fresh scratch $S.
spec() {
	nbox=$((nbox + 1))
	S=$T/scratch.$nbox
	mkdir "$S"
	{
		printf 'vx-spec 1\nworkspace %s\ncwd .\nscratch %s\nhome %s\n' "$W" "$S" "$HOMEDIR"
		printf 'arg sh\narg -c\narg '
		printf '%s\n' "$1" | sed -e 's/\\/\\\\/g' -e 's/$/\\n/' | tr -d '\n'
		printf '\nenv PATH=%s\nenv HOME=%s\nenv PROBE=%s\n' "$PATH" "$HOMEDIR" "$PROBE"
		shift
		[ "$#" = 0 ] || printf '%s\n' "$@"
		[ -z "${MODE:-}" ] || printf '%s\n' "$MODE"
		echo end
	} >"$T/spec"
}
# The same, run: RC, OUT, ERR.
box() {
	spec "$@"
	RC=0
	timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
}
# WANT NAME: stdout of the last box is exactly that.
prints() { is "$(cat "$OUT")" "$1" "$2"; }

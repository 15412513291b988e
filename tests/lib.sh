# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The shell-test harness: TAP on stdout, POSIX sh. A test file is
#
#	. "${VX_SRCDIR:?}/tests/lib.sh"
#	ok "name" command args...
#	done_testing
#
# Every test gets a directory $T of its own on a disk file system (never /tmp, which may be a tmpfs and
# which a sandbox replaces) with a workspace place $W = $T/ws in it. Both are gone when the test ends,
# however it ends. Nothing here sleeps: a test waits for an event through a FIFO (announce, held).

set -u
export LC_ALL=C.UTF-8
# What the caller's terminal and CI like must not change what tests see.
unset NO_COLOR FORCE_COLOR CI VX_CACHE_DIR VX_TASK_TIMEOUT VX_SCRATCH_DIR VX_SANDBOX_OFF \
	VX_RUN_WORKSPACE VX_RUN_TASK GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

: "${VX_SRCDIR:?the top of the source tree}" "${VX_BUILDDIR:?the top of the build tree}"
VX=${VX:-$VX_BUILDDIR/vx}
VX_SANDBOX=${VX_SANDBOX:-$VX_BUILDDIR/vx-sandbox}
MUST_WORK=${VX_SANDBOX_MUST_WORK:-}

tap_n=0
tap_failed=0

T=$(mktemp -d "${VX_TEST_DIR:-/var/tmp}/vx-test.XXXXXX") || exit 99
T=$(cd "$T" && pwd -P)
chmod 755 "$T"
W=$T/ws
mkdir "$W"
OUT=$T/out # stdout of the last `run`
ERR=$T/err # stderr of the last `run`
RC=0

tap_cleanup() {
	# One attempt covers the plain case; the second, what a task left without permissions.
	rm -rf "$T" 2>/dev/null || { chmod -R u+rwX "$T" 2>/dev/null; rm -rf "$T"; }
}
trap tap_cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# --- results -----------------------------------------------------------------------------------

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }
diag_file() { # NAME FILE
	diag "$1:"
	sed 's/^/#   /' "$2" | head -n 60
}
pass() {
	tap_n=$((tap_n + 1))
	printf 'ok %d - %s\n' "$tap_n" "$1"
}
fail() {
	tap_n=$((tap_n + 1))
	tap_failed=$((tap_failed + 1))
	printf 'not ok %d - %s\n' "$tap_n" "$1"
}
# NAME COMMAND...: the command succeeds. On failure what it said is shown.
ok() {
	tap_name=$1
	shift
	if "$@" >"$T/.said" 2>&1; then
		pass "$tap_name"
	else
		tap_rc=$?
		fail "$tap_name"
		diag "exit $tap_rc: $*"
		diag_file "it said" "$T/.said"
	fi
}
# NAME COMMAND...: the command fails.
not_ok() {
	tap_name=$1
	shift
	if "$@" >"$T/.said" 2>&1; then
		fail "$tap_name"
		diag "unexpected success: $*"
		diag_file "it said" "$T/.said"
	else
		pass "$tap_name"
	fi
}
# GOT WANT NAME
is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3"
		diag "got:  $1"
		diag "want: $2"
	fi
}
# FILE EXTENDED-REGEX NAME: some line matches / none does.
like() {
	if grep -qE -e "$2" "$1" 2>/dev/null; then
		pass "$3"
	else
		fail "$3"
		diag "no line matches: $2"
		[ ! -e "$1" ] || diag_file "$1" "$1"
	fi
}
unlike() {
	if grep -qE -e "$2" "$1" 2>/dev/null; then
		fail "$3"
		diag "a line matches: $2"
		diag_file "$1" "$1"
	else
		pass "$3"
	fi
}
skip() { # NAME REASON
	tap_n=$((tap_n + 1))
	printf 'ok %d - %s # SKIP %s\n' "$tap_n" "$1" "$2"
}
skip_all() { # REASON
	printf '1..0 # SKIP %s\n' "$1"
	exit 0
}
done_testing() {
	printf '1..%d\n' "$tap_n"
	[ "$tap_failed" = 0 ]
	exit
}

# --- what this machine can do ------------------------------------------------------------------

# REASON: skip the whole file, or fail it where VX_SANDBOX_MUST_WORK is set (a skip must not hide a
# broken sandbox).
cannot() {
	[ -n "$MUST_WORK" ] || skip_all "$1"
	fail "$1"
	done_testing
}
# The kernel lets this user make the namespaces a sandbox is made of, else tap_why says why not. Asked of
# the kernel, not of vx: a sandbox that vx breaks is a failure, never a skip.
can_sandbox() {
	tap_why=$(unshare --user --map-root-user --mount --pid --fork --net --ipc --uts --cgroup \
		true 2>&1)
}
require_sandbox() { can_sandbox || cannot "no namespaces here: $tap_why"; }
# Denied reads are reported only where there is FUSE.
require_fuse() {
	require_sandbox
	# shellcheck disable=SC2188 # opening is the question
	(exec 3<>/dev/fuse) 2>/dev/null || cannot "cannot open /dev/fuse"
}
require_program() {
	for tap_p in "$@"; do
		command -v "$tap_p" >/dev/null || cannot "no $tap_p here"
	done
}

# COMMAND...: as an ordinary user. Root becomes one (VX_TEST_UID, else a number that nobody has).
as_user() {
	if [ "$(id -u)" = 0 ]; then
		tap_uid=${VX_TEST_UID:-54321}
		setpriv --reuid "$tap_uid" --regid "$tap_uid" --clear-groups \
			env HOME="$T" USER=user LOGNAME=user "$@"
	else
		"$@"
	fi
}

# --- workspaces and runs -----------------------------------------------------------------------

# PATH: stdin becomes the file, its directories made.
put() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
}
# git as this test uses it: never a hook, a signature or the user's settings, and at home in a
# workspace that belongs to someone else (VX_TEST_OWNER).
git_() {
	git -c safe.directory='*' -c core.hooksPath=/dev/null -c commit.gpgsign=false \
		-c user.name=test -c user.email=test@example.invalid -c init.defaultBranch=main "$@"
}
# With VX_TEST_OWNER (a uid) the whole workspace belongs to that user before each run of vx. What does so already keeps
# its ctime: git writes anew what has another one than a second ago.
own() {
	[ -z "${VX_TEST_OWNER:-}" ] || find "$W" \( ! -uid "$VX_TEST_OWNER" -o ! -gid "$VX_TEST_OWNER" \) \
		-exec chown -h "$VX_TEST_OWNER:$VX_TEST_OWNER" {} +
}
# COMMAND...: at most a minute, without input. Sets RC; OUT and ERR hold what it said.
try() {
	own
	RC=0
	timeout 60 "$@" >"$OUT" 2>"$ERR" </dev/null || RC=$?
}
# ARGS...: vx in the current directory.
run() { try "$VX" "$@"; }
# WANT NAME: the last run's exit code; on a failure what it said is shown.
exits() {
	if [ "$RC" = "$1" ]; then
		pass "$2"
	else
		fail "$2"
		diag "exit code $RC, want $1"
		diag_file stdout "$OUT"
		diag_file stderr "$ERR"
	fi
}
# REGEX NAME: the last run said it, on either stream / on neither.
said() {
	cat "$OUT" "$ERR" >"$T/.both"
	like "$T/.both" "$1" "$2"
}
said_not() {
	cat "$OUT" "$ERR" >"$T/.both"
	unlike "$T/.both" "$1" "$2"
}
# ARGS...: vx in the background with default signal handling, BG is its pid.
bg() {
	own
	env --default-signal=INT,QUIT,TERM,HUP "$VX" "$@" >"$OUT" 2>"$ERR" </dev/null &
	BG=$!
}
# Waits for BG: RC.
bg_wait() {
	RC=0
	wait "$BG" || RC=$?
}

# --- events ------------------------------------------------------------------------------------
# A task says that it has come to a place by `echo x >FIFO`; the writer waits for the reader. FIFOs
# stand in $T, outside the workspace, where a sandboxed task sees them (read-only, which for a FIFO
# does not forbid writing).

fifo() { # NAME...
	for tap_f in "$@"; do
		mkfifo "$T/$tap_f"
		chmod 666 "$T/$tap_f"
	done
}
# FIFO: one line of it, at most 30 s. Fails when nobody came.
await() { timeout 30 head -n 1 "$T/$1"; }
# FIFO: begins to watch it. A task does `exec 9>FIFO`; all its processes then hold it open.
hold() {
	timeout 60 cat "$T/$1" >/dev/null &
	HOLD=$!
}
# The last process that held the FIFO open is gone.
released() { wait "$HOLD"; }

# DIR: names, types, modes, owners, sizes and content of everything below, sorted: for comparing.
listing() {
	(cd "$1" && find . -mindepth 1 \( -name .vx -prune -o -printf '%p %y %m %U:%G %s %l\n' \) | sort
	find . -name .vx -prune -o -type f -print0 | sort -z | xargs -0r sha256sum)
}

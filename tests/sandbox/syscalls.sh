#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls that a sandboxed command may not make, by every call table (security: S11-S18, S20).
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
require_program python3
[ "$(uname -m)" = x86_64 ] || skip_all "the numbers here are those of x86-64"

# NAME NR WANT [ARGS]: native / i386
native() {
	name=$1 nr=$2 want=$3
	shift 3
	text="$text
printf '%s ' '$name'; \"\$PROBE\" call $nr $*"
	wants="$wants
$name $want"
}
compat() {
	name=$1 nr=$2 want=$3
	shift 3
	text="$text
printf '%s ' 'i386 $name'; \"\$PROBE\" call32 $nr $*"
	wants="$wants
i386 $name $want"
}
start() { text=true wants=''; }
check() { # NAME SPEC-LINE...
	tap_what=$1
	shift
	box "$text" 'read .' "$@"
	printf '%s\n' "$wants" | sed 1d >"$T/wants"
	if cmp -s "$T/wants" "$OUT"; then
		pass "$tap_what"
	else
		fail "$tap_what"
		diff "$T/wants" "$OUT" | sed 's/^/# /'
		diag_file stderr "$ERR"
	fi
}

start
native 'unshare user' 272 EPERM 0x10000000
native 'unshare mnt' 272 EPERM 0x20000
native 'unshare net, garbage above' 272 EPERM 0xdead000040000000
native 'unshare time' 272 EPERM 0x80
native 'clone user' 56 EPERM 0x10000011
native 'setns' 308 EPERM 0 0
native mount 165 EPERM
native umount2 166 EPERM
native pivot_root 155 EPERM
native open_tree 428 EPERM
native move_mount 429 EPERM
native fsopen 430 EPERM
native fsconfig 431 EPERM
native fsmount 432 EPERM
native fspick 433 EPERM
native mount_setattr 442 EPERM
native open_tree_attr 467 EPERM
native add_key 248 EPERM
native request_key 249 EPERM
native keyctl 250 EPERM 0 -3
native bpf 321 EPERM
native perf_event_open 298 EPERM
native userfaultfd 323 EPERM 1
native io_uring_setup 425 ENOSYS
native io_uring_enter 426 ENOSYS
native io_uring_register 427 ENOSYS
native kexec_load 246 EPERM
native init_module 175 EPERM
native finit_module 313 EPERM
native delete_module 176 EPERM
native open_by_handle_at 304 EPERM
native syslog 103 EPERM 10
native 'personality read' 135 ok 0xffffffff
native 'personality READ_IMPLIES_EXEC' 135 EPERM 0x400000
native 'personality no randomisation' 135 ok 0x40000
native 'socket unix' 41 EPERM 1 1 0
native 'socket unix, garbage above' 41 EPERM 0x100000001 1 0
native 'socket netlink route' 41 ok 16 3 0
native 'socket netlink audit' 41 EAFNOSUPPORT 16 3 9
native 'socket vsock' 41 EAFNOSUPPORT 40 1 0
native 'socket packet' 41 EAFNOSUPPORT 17 3 0
native 'socket alg' 41 EAFNOSUPPORT 38 5 0
native 'newer' 470 ENOSYS
native 'much newer' 600 ENOSYS
check "refused calls"

start
compat clone 120 EPERM 0x10000011
compat clone3 435 ENOSYS
compat unshare 310 EPERM 0x10000000
compat setns 346 EPERM
compat mount 21 EPERM
compat umount 22 EPERM
compat umount2 52 EPERM
compat pivot_root 217 EPERM
compat keyctl 288 EPERM
compat bpf 357 EPERM
compat userfaultfd 374 EPERM
compat io_uring_setup 425 ENOSYS
compat 'socket unix' 359 EPERM 1 1
compat 'socketcall socket' 102 EPERM 1
compat vm86 166 EPERM
compat newer 480 ENOSYS
# Some kernels have no such table, and some machines end whoever asks for it.
if "$PROBE" call32 20 >"$T/32" 2>&1 && grep -q ok "$T/32"; then
	check "refused 32-bit calls"
else
	skip "refused 32-bit calls" "this machine runs none"
fi

box '"$PROBE" clone3; "$PROBE" x32 165; "$PROBE" x32 39' 'read .'
prints "ENOSYS
ENOSYS
ENOSYS" "clone3 and the x32 table"

box '"$PROBE" sockets' 'read .'
prints "2
10
16" "inet, inet6 and netlink are all the families there are"
box '"$PROBE" pair 1; "$PROBE" pair 5; "$PROBE" pair 2; "$PROBE" pair 3' 'read .'
prints "ok
ok
EPERM
EPERM" "pairs of connected sockets only"
box '"$PROBE" sockets; "$PROBE" pair 2' 'read .' 'unix-sockets'
prints "1
2
10
16
ok" "unix sockets where they are granted"

# A terminal of the command's own: without one, ioctl answers ENOTTY before anybody judges it.
box 'script -qec "for r in 0x5412 0x541c 0xdead00005412; do \"$PROBE\" call 16 0 \$r; done" /dev/null' 'read .'
is "$(tr -d '\r' <"$OUT")" "EPERM
EPERM
EPERM" "no bytes into a terminal's input"

start
native 'unshare user' 272 ok 0x10000000
native clone3 435 EINVAL
check "nested sandboxes where they are granted" nested

# Whoever is below another's listener can have none, and refuses by itself.
box '"$PROBE" call 41 1 1 0' 'read .'
prints EPERM "a unix socket"
like "$ERR" '^vx-sandbox: denied socket unix by probe \(pid [0-9]+\)$' "is told of"
cat >"$T/below.py" <<'P'
import ctypes, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
fd = libc.syscall(317, 1, 8, struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
print("listener", fd >= 0)
sys.stdout.flush()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
P
spec '"$PROBE" call 41 1 1 0' 'read .'
try python3 "$T/below.py" "$VX_SANDBOX" --spec "$T/spec"
prints "listener True
EPERM" "so it is below a listener"
unlike "$ERR" 'denied socket' "without a word"

box 'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status' 'read .'
if [ "$(id -u)" = 0 ]; then
	like "$OUT" '^CapEff:	00000000000000ff$' "root keeps what concerns files and processes" || :
else
	unlike "$OUT" '^Cap...:	0*[1-9a-f]' "no capability in any set"
fi
like "$OUT" '^CapAmb:	0000000000000000$' "no ambient ones"
like "$OUT" '^NoNewPrivs:	1$' "no new privileges"
like "$OUT" '^Seccomp:	2$' "the filter"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# What the command could get hold of: fds, pid 1, environments, the host's kernel settings (security:
# S02, S07-S10, S15, S31, S51).
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
echo s >"$W/s"

spec 'ls -l /proc/self/fd | sed 1d | wc -l; for f in 3 4 5 6 7 8 9; do ls /proc/self/fd/$f/.. 2>/dev/null; done; for f in /proc/1/fd/* /proc/1/cwd /proc/1/root /proc/1/exe; do readlink $f; done' 'read .'
"$PROBE" keep-open / 200 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR"
# 0, 1, 2 and the directory that ls itself has open
is "$(head -n 1 "$OUT")" 4 "nothing inherited is open"
is "$(wc -l <"$OUT")" 1 "and pid 1's fds lead nowhere"

box 'for f in exe root cwd environ mem maps; do cat /proc/1/$f >/dev/null 2>&1 && echo "$f is open"; done; (: >/proc/1/mem) || echo no; ls /proc/1/root/ 2>&1 | tail -1' 'read .'
unlike "$OUT" 'is open' "pid 1 shows nothing"
like "$OUT" '^no$' "nor can be written"
like "$OUT" 'Permission denied' "nor entered"
box 'kill -9 1; kill -STOP 1; kill -TERM 1; echo alive' 'read .'
prints alive "pid 1 is out of reach of signals"

spec 'cat /proc/*/environ 2>/dev/null | tr "\0" "\n" | grep -c SECRET; tr "\0" "\n" </proc/1/cmdline | head -n 1' 'read .'
SECRET=hush "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR"
is "$(head -n 1 "$OUT")" 0 "the caller's environment is nowhere"

box 'env | sed "s/=.*//" | sort' 'read .'
like "$OUT" '^PROBE$' "the environment is the spec's"
unlike "$OUT" '^VX_SRCDIR$' "and nothing else"

box 'for f in sys/kernel/core_pattern sys/vm/swappiness sysrq-trigger sys/kernel/modprobe; do { echo x >/proc/$f; } 2>/dev/null && echo "$f written"; done; echo x 2>/dev/null >/sys/kernel/uevent_helper && echo sys; true' 'read .'
prints "" "kernel settings cannot be written"
box 'for f in kcore kmsg keys; do head -c 1 /proc/$f 2>/dev/null | wc -c; done; head -c1 /dev/kmsg /dev/mem /dev/fuse 2>/dev/null | wc -c; ls /dev/fuse /dev/kmsg 2>&1 | grep -c "No such"' 'read .'
is "$(tail -n 1 "$OUT")" 2 "devices of the kernel are not there"
unlike "$OUT" '^1$' "nor can its memory and messages be read"

box 'ulimit -c; ulimit -Hc' 'read .'
prints "0
0" "no core dumps"

box 'ls /proc | grep -cE "^[0-9]+$"' 'read .'
like "$OUT" '^[1-9]$' "only our own processes"
box 'ps -o sid=,pgid=,pid= -p $$ | xargs -n1 | sort -u | wc -l' 'read .'
prints 1 "a session and a group of its own"

umask 027
box 'umask' 'read .'
prints 0027 "the caller's umask"
umask 022

# ignored and blocked signals of the caller do not reach the command
spec 'grep -E "^Sig(Blk|Ign)" /proc/self/status' 'read .'
(
	trap '' INT TERM USR1
	"$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR"
)
# 32 and 33 are the C library's own
is "$(cut -f 2 "$OUT" | sed 's/00000001800/00000000000/' | sort -u)" 0000000000000000 "signals are at their defaults"

# what the kernel reads from attributes of the upper layer is not the task's to set
mkdir -p "$W/d"
echo hid >"$W/d/f"
box 'setfattr -n user.overlay.opaque -v y d; ls d; setfattr -n trusted.overlay.opaque -v y d; ls d' 'write d'
prints "f
f" "overlay attributes from inside are not obeyed"
mknod_ok='mknod w c 0 0 2>/dev/null && echo made'
box "$mknod_ok" 'write .'
prints "" "no whiteouts from inside"
# The nodes in /dev are the host's: they are used, and stay as they are.
before=$(stat -c '%a %u %n' /dev/null /dev/full)
box 'echo x >/dev/null && head -c 1 /dev/zero | wc -c; chmod 640 /dev/full /dev/null; chown 12345 /dev/full; :' 'read src'
prints 1 "devices work"
is "$(stat -c '%a %u %n' /dev/null /dev/full)" "$before" "and cannot be changed"

done_testing

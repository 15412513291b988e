#!/bin/sh
# SPDX-License-Identifier: MIT
# C23: opening a terminal; the caller's own is out of reach.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

before
echo 'exec python3 -c "import pty; pty.spawn([\"tty\"])"' | box '{}'
findings 0 "C23: a task opens a terminal"
said '^/dev/pts/[0-9]' "C23: its name"
# A task has no terminal, whatever vx has.
cat >"$T/inject.py" <<'E'
import errno, fcntl, os, sys, termios

def inject(fd, name):
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b"x")
        print(name, "INJECTED")
    except OSError as e:
        print(name, errno.errorcode[e.errno])

for fd in 0, 1, 2:
    inject(fd, fd)
try:
    inject(os.open("/dev/tty", os.O_RDWR), "tty")
except OSError as e:
    print("tty", errno.errorcode[e.errno])
# One of its own, of which it is the session leader: the call is refused as such.
pid, fd = os.forkpty()
if pid == 0:
    inject(0, "own")
    sys.stdout.flush()
    os._exit(0)
got = b""
try:
    while True:
        got += os.read(fd, 100)
except OSError:
    pass
os.waitpid(pid, 0)
print(got.decode().strip())
E
# COMMAND...: with a terminal for standard input, output and error, and to control it. What it printed,
# and what came to be typed.
cat >"$T/terminal.py" <<'E'
import fcntl, os, sys, termios

pid, fd = os.forkpty()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
out = b""
try:
    while True:
        out += os.read(fd, 4096)
except OSError:
    pass
rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(out.decode().replace("\r", ""))
sys.exit(rc)
E
echo "exec python3 $T/inject.py" | box '{}'
try python3 "$T/terminal.py" "$VX" run t
exits 0 "C23: vx in a terminal"
said '^tty ENXIO$' "C23: the task has none"
said '^0 (EPERM|ENOTTY)$' "C23: nor at its standard input"
said '^own EPERM$' "C23: and cannot type into its own"
said_not INJECTED "C23: nothing is typed"

nspecs=0
spec() {
	nspecs=$((nspecs + 1))
	mkdir "$T/scratch.$nspecs"
	printf 'vx-spec 1\nworkspace %s\ncwd .\nscratch %s\nenv PATH=%s\nread .\n' \
		"$W" "$T/scratch.$nspecs" "$PATH" >"$T/spec"
	printf 'arg %s\n' "$@" >>"$T/spec"
	echo end >>"$T/spec"
}
spec python3 "$T/inject.py"
try python3 "$T/terminal.py" "$VX_SANDBOX" --spec "$T/spec"
exits 0 "C23: the helper alone in a terminal, which its command has, too"
said '^0 EPERM$' "C23: what it would type is refused"
said '^tty ENXIO$' "C23: it does not control it"
said_not INJECTED "C23: nothing is typed"
spec python3 -c 'import pty; pty.spawn(["tty"])'
try python3 "$T/terminal.py" "$VX_SANDBOX" --spec "$T/spec"
exits 0 "C23: it opens another one"
said '^/dev/pts/0$' "C23: of its own"
spec python3 -c 'import pty; pty.spawn(["tty"])'
# shellcheck disable=SC2016 # the shell without standard input expands it
try sh -c 'exec "$@" <&-' - "$VX_SANDBOX" --spec "$T/spec"
exits 0 "C23: with standard input closed"
said '^/dev/pts/0' "C23: it opens one, too"
# shellcheck disable=SC2016
echo 'exec python3 -c "import pty; pty.spawn([\"tty\"])"' | box '{}'
# shellcheck disable=SC2016
try sh -c 'exec "$@" <&-' - "$VX" run t
exits 0 "C23: vx with standard input closed"
said '^/dev/pts/0' "C23: likewise"
unchanged C23
done_testing

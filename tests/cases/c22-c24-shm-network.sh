#!/bin/sh
# SPDX-License-Identifier: MIT
# C22: named semaphores. C24: offline, but loopback works.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

ls -A /dev/shm >"$T/shm" 2>/dev/null
cat >"$T/lock.py" <<'E'
import multiprocessing as m
m.Lock()
print("ok")
E
before
echo "python3 $T/lock.py" | box '{}'
findings 0 "C22: a named semaphore"
said '^ok$' "can be made"
ok "C22: the host's /dev/shm is unchanged" sh -c 'ls -A /dev/shm 2>/dev/null | cmp - "$1"' - "$T/shm"
if [ "$(id -u)" = 0 ]; then
	try unshare --mount sh -c 'umount /dev/shm 2>/dev/null; exec "$@"' - "$VX" run t
	exits 0 "C22: where the host has no /dev/shm"
	said '^ok$' "too"
else
	skip "C22: where the host has no /dev/shm" "only root can take it away"
fi

unchanged C22

before
cat >"$T/net.py" <<'E'
import socket, threading, time

def exchange(family, address):
    server = socket.socket(family)
    server.bind((address, 0))
    server.listen()
    def serve():
        c, _ = server.accept()
        c.sendall(c.recv(100).upper())
        c.close()
    t = threading.Thread(target=serve)
    t.start()
    client = socket.create_connection((address, server.getsockname()[1]), 5)
    client.sendall(b"hello")
    got = client.recv(100)
    t.join()
    print(address, got.decode())

def fails(what, fn):
    t0 = time.monotonic()
    try:
        fn()
        print(what, "WORKED")
    except OSError as e:
        print(what, "refused", "at once" if time.monotonic() - t0 < 5 else "LATE", type(e).__name__)

exchange(socket.AF_INET, "127.0.0.1")
exchange(socket.AF_INET6, "::1")
fails("connect", lambda: socket.create_connection(("192.0.2.1", 80), 20))
fails("look-up", lambda: socket.getaddrinfo("example.org", 80))
fails("unix", lambda: socket.socket(socket.AF_UNIX))
a, b = socket.socketpair()
a.sendall(b"pair")
print("socketpair", b.recv(10).decode())
E
echo "python3 $T/net.py" | box '{}'
exits 0 "C24: offline"
said '^127\.0\.0\.1 HELLO$' "C24: IPv4 loopback works"
said '^::1 HELLO$' "C24: IPv6 loopback works"
said '^connect refused at once' "C24: the outside is refused at once"
said '^look-up refused at once' "C24: a look-up too"
said '^unix refused at once PermissionError' "socket(AF_UNIX) is refused"
said '^socketpair pair$' "socketpair is not"
unchanged C24

# A place for temporary files that the sandbox does not have.
TMPDIR=/var/tmp TMP=/var/tmp TEMP=/var/tmp
export TMPDIR TMP TEMP
box '{}' <<'E'
mktemp
echo "in $TMPDIR, ${TMP-none}, ${TEMP-none}"
E
unset TMPDIR TMP TEMP
exits 0 "mktemp, where TMPDIR is another place"
said '^/tmp/tmp\.' "it is made in the task's own /tmp"
said '^in /tmp, none, none$' "which TMPDIR says"
unchanged TMPDIR
done_testing

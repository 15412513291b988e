#!/bin/sh
# SPDX-License-Identifier: MIT
# C24: offline, but loopback works.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox
require_program python3
cat >"$W/net.py" <<'PY'
import errno, socket, threading
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    s = socket.socket(family)
    s.bind((address, 0))
    s.listen()
    def serve():
        c, _ = s.accept()
        c.sendall(b"pong")
        c.close()
    t = threading.Thread(target=serve)
    t.start()
    c = socket.create_connection(s.getsockname()[:2])
    print(address, c.recv(9).decode())
    t.join()
try:
    socket.create_connection(("192.0.2.1", 80), 20)
except OSError as e:
    print(errno.errorcode[e.errno])
try:
    socket.getaddrinfo("example.org", 80)
    print("resolved")
except OSError:
    print("not resolved")
PY
box 'python3 net.py' 'read .'
prints "127.0.0.1 pong
::1 pong
ENETUNREACH
not resolved" "loopback answers, the world is unreachable at once"
box 'ls /sys/class/net 2>/dev/null | grep -c . >/dev/null; sed 1,2d /proc/net/dev | wc -l' 'read .'
prints 1 "one interface"
# It is made beside the view. Where there can be no second thread it is made all the same.
cat >"$W/up.py" <<'PY'
import socket
s = socket.create_server(("127.0.0.1", 0))
socket.create_connection(s.getsockname())
print("up")
PY
spec 'readlink /proc/self/ns/net; python3 up.py; sed 1,2d /proc/net/dev | wc -l' 'read .'
"$PROBE" refuse-threads "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null
unlike "$OUT" "$(readlink /proc/self/ns/net | tr '[]' '..')" "a namespace of its own without a thread"
like "$OUT" '^up$' "with a loopback"
like "$OUT" '^1$' "and nothing else"
done_testing

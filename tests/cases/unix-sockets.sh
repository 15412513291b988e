#!/bin/sh
# SPDX-License-Identifier: MIT
# allow.unixSockets: none, any, or those that are named, wherever they are; and what that hides.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3

mkdir -p "$T/home" "$T/far" "$T/live" src sub
export HOME="$T/home"
ln -s ../far "$T/live/link"
TMPSOCK=/tmp/${T##*/}.sock
trap 'kill "$SERVER" 2>/dev/null; rm -f "$TMPSOCK"; tap_cleanup' EXIT
fifo up

# The host's: each says its name to who comes.
cat >"$T/server.py" <<'E'
import os, selectors, socket, sys
sel = selectors.DefaultSelector()
for path in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, 0o777)
    s.listen(64)
    sel.register(s, selectors.EVENT_READ, os.path.basename(path))
with open(sys.argv[1], "w") as f:
    f.write("up\n")
while True:
    for key, _ in sel.select():
        c, _ = key.fileobj.accept()
        c.sendall(key.data.encode())
        c.close()
E
cat >"$T/ask.py" <<'E'
import os, socket, sys
for path in sys.argv[1:]:
    name = os.path.basename(path)
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        print(name, "says", s.recv(100).decode())
    except OSError as e:
        print(name, "is", os.strerror(e.errno))
E
far=$T/far/far.sock other=$T/far/other.sock tmp=$TMPSOCK
home=$T/home/home.sock ws=$W/src/ws.sock bound=$T/live/bound.sock
python3 "$T/server.py" "$T/up" "$far" "$other" "$tmp" "$home" "$W/src/home2.sock" "$ws" "$bound" &
SERVER=$!
ok "the host's sockets are there" await up
all="$far $other $tmp $home $ws $bound"
tmpname=${tmp##*/}
# LINE...: exactly that was answered.
answers() {
	tap_what=$1
	shift
	is "$(grep -E '\.sock (is|says)' "$OUT" | sort | tr '\n' ';')" \
		"$(printf '%s\n' "$@" | sort | tr '\n' ';')" "$tap_what"
}

box '{ "allow": { "read": ["src"] } }' <<E
python3 $T/ask.py $far
E
answers "none without a grant" "far.sock is Operation not permitted"
said_not '^note:' "who goes on without is told nothing"
box '{ "allow": { "read": ["src"] } }' <<E
python3 -c 'import socket; socket.socketpair(); socket.socket(); socket.socket(socket.AF_UNIX)'
E
exits 1 "who fails"
# (Where python3 is a wrapper in bash, bash may have asked as well: without SHELL in its environment it looks its user up.)
said '^note: Unix sockets are refused, and (.*, )?python3 asked .* allow\.unixSockets: true, or the paths' "is told what to write"
said_not 'sandbox violation' "which is no finding"
box '{ "allow": { "read": ["src"] } }' <<'E'
python3 -c 'import socket
for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
    try: socket.socket(socket.AF_UNIX, kind)
    except PermissionError: print("refused")
socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)'
E
is "$(grep -c '^refused$' "$OUT")" 2 "each has its error"
said '^note: Unix sockets are refused' "a pair that could send to any is told as well"
box '{ "allow": { "read": ["src"], "unixSockets": true } }' <<'E'
python3 -c 'import socket; socket.socket(socket.AF_UNIX)' && false
E
said_not '^note: Unix sockets' "what is granted is not asked about"
box '{ "allow": { "read": ["src"] }, "nested": true }' <<'E'
python3 -c 'import socket; socket.socket(socket.AF_UNIX)'
E
exits 1 "where sandboxes may be made inside"
said 'Operation not permitted' "it is refused"
said_not '^note: Unix sockets' "without a word, as the one listener is left to those"
box '{ "allow": { "read": ["src"], "unixSockets": [] } }' <<E
python3 $T/ask.py $far
E
answers "an empty list is none" "far.sock is Operation not permitted"
box '{ "allow": { "read": ["src"], "unixSockets": true } }' <<E
python3 $T/ask.py $all
E
answers "true: what it sees" "far.sock says far.sock" "other.sock says other.sock" \
	"$tmpname is No such file or directory" "home.sock is Connection refused" \
	"ws.sock is Connection refused" "bound.sock says bound.sock"

before
box "{ \"allow\": { \"read\": [\"src\"], \"write\": [\"$T/live\"], \"unixSockets\": [\"$far\"] } }" <<E
python3 $T/ask.py $all $T/live/link/far.sock
ls $T/far
E
findings 0 "one that is named"
answers "one that is named, by either path" "far.sock says far.sock" "far.sock says far.sock" \
	"other.sock is Connection refused" "$tmpname is No such file or directory" \
	"home.sock is Connection refused" "ws.sock is Connection refused" \
	"bound.sock is Connection refused"
box "{ \"allow\": { \"unixSockets\": [\"$tmp\", \"~/home.sock\", \"src/ws.sock\"] } }" <<E
python3 $T/ask.py $all
E
findings 0 "in /tmp, at home and in the workspace"
answers "in /tmp, at home and in the workspace" "far.sock is Connection refused" \
	"other.sock is Connection refused" "$tmpname says $tmpname" "home.sock says home.sock" \
	"ws.sock says ws.sock" "bound.sock is Connection refused"
unchanged "named sockets"

# The live view binds directories of the host.
for sockets in '"src/ws.sock"' '"src/none.sock"'; do
	box "{ \"allow\": { \"read\": [\"src\"], \"unixSockets\": [$sockets] }, \"view\": \"live\" }" <<E
python3 $T/ask.py $ws $far $W/src/home2.sock
E
	findings 0 "live: $sockets"
	[ "$sockets" = '"src/ws.sock"' ] && want="says ws.sock" || want="is Connection refused"
	answers "live: $sockets" "ws.sock $want" "far.sock is Connection refused" \
		"home2.sock is Connection refused"
done
box '{ "allow": { "unixSockets": ["src/ws.sock"] }, "view": "live" }' <<E
python3 $T/ask.py $ws
E
answers "live: alone" "ws.sock says ws.sock"

# One of its own.
cat >"$T/own.py" <<'E'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
c = socket.socket(socket.AF_UNIX)
c.connect(sys.argv[1])
print("connected")
E
box '{ "allow": { "unixSockets": ["/tmp/own.sock"] } }' <<E
python3 $T/own.py /tmp/own.sock && python3 $T/ask.py $far
E
said '^connected$' "one of its own, where it can write"
said_not 'there is no such socket' "of which there is nothing to say"
answers "and none of the host's" "far.sock is Connection refused"

box "{ \"allow\": { \"unixSockets\": [\"$T/far/none.sock\"] } }" <<'E'
true
E
findings 0 "a missing one"
said "allow.unixSockets $T/far/none\\.sock: there is no such socket" "is said"
box "{ \"allow\": { \"unixSockets\": [\"$T/ask.py\"] } }" <<'E'
true
E
exits 1 "what is no socket"
said "allow\\.unixSockets: $T/ask\\.py is no socket; name the socket itself" "is refused"
ln -s "$other" sub/link.sock
box '{ "allow": { "unixSockets": ["sub/link.sock"] } }' <<E
python3 $T/ask.py $W/sub/link.sock
E
said_not 'says' "a link in the workspace leads to none"

echo i >in
box '{ "allow": { "read": ["in"], "unixSockets": true } }' \
	', "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } }' <<'E'
cat in
E
findings 0 "a cached task"
said 'allow\.unixSockets: .* never proven' "is not proven, and says so"
run run t
said 'up to date' "but kept"
done_testing

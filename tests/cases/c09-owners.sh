#!/bin/sh
# SPDX-License-Identifier: MIT
# C09: owners in an archive. An ordinary user can give files to nobody else, inside as outside; root can.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program tar python3

python3 - "$T/t.tar" <<'E'
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w") as t:
    f = tarfile.TarInfo("f")
    f.uid = f.gid = 1234
    f.mode = 0o640
    f.size = 4
    t.addfile(f, io.BytesIO(b"text"))
E
mkdir x "$T/outside"
before x
box '{ "allow": { "write": ["x"] } }' <<E
tar -C x -xpf $T/t.tar
E
findings 0 "C09: as tar does it for its caller"
said_not '^note:' "C09: of which there is nothing to say"
is "$(cat x/f)" text "C09: the file is there"
is "$(stat -c %a x/f)" 640 "C09: with its mode"
unchanged C09 x

rm -f x/f
box '{ "allow": { "write": ["x"] } }' <<E
tar -C x --same-owner -xpf $T/t.tar
E
tar -C "$T/outside" --same-owner -xpf "$T/t.tar" 2>"$T/tar"
native=$?
if [ "$native" = 0 ]; then
	exits 0 "C09: with the owner of the archive, who may do so"
	is "$(stat -c '%u:%g' x/f)" 1234:1234 "C09: it is that of the archive"
else
	exits 1 "C09: with the owner of the archive"
	said "failed \\(exit $native\\)" "C09: it is tar's own failure"
	said '^tar: f: Cannot change ownership to uid 1234, gid 1234' "C09: that names the ids"
	is "$(cat x/f)" text "C09: and leaves what it leaves outside"
	said '^note: tar would give files to 1234:1234: only root can, .*\(tar: --no-same-owner\)$' \
		"C09: a note says why"
fi
unchanged "C09, with owners" x

box '{ "allow": { "write": ["x"] } }' <<'E'
python3 - <<'P'
import os
for uid, gid in (5, -1), (-1, 6), (7, 8), (9, 10), (7, 8):
    try:
        os.chown("x/f", uid, gid)
    except OSError as e:
        print(uid, gid, e.errno)
P
E
if [ "$native" = 0 ]; then
	findings 0 "C09: root gives them away"
else
	is "$(grep -c ' 22$' "$OUT")" 5 "C09: each call has the kernel's own answer"
	findings 0 "C09: who lives with that"
	said_not '^note:' "C09: is told nothing"
	rm -f x/f
	box '{ "allow": { "write": ["x"] } }' <<'E'
: >x/f
for ids in 5 :6 7:8 9:10; do chown $ids x/f; done
E
	said '^note: chown would give files to 5:, 7:8, 9:10, …: ' "C09: of each pair, a few"
fi
done_testing

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
fi
unchanged "C09, with owners" x
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# A task that may write where scratches can lie makes one there that looks like a commit that was broken off. The next
# run does none of it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git python3
[ -z "${VX_TEST_OWNER:-}" ] || skip_all "what lies in a scratch of another user is not looked at"

A=$T/area
mkdir -p "$A"
git_ init -q .
cat >forge.py <<'E'
import ctypes, hashlib, os, sys

root, area = sys.argv[1:]
tag = hashlib.sha256(root.encode()).hexdigest()[:12]
s = "%s/vx-scratch-%d/vx-scratch-%s-0123456789abcdef" % (area, os.getuid(), tag)
os.umask(0o77)
os.makedirs(s + "/u")
with open(s + "/u/1", "w") as f:
    f.write("#!/bin/sh\necho pwned\n")
buf = (ctypes.c_uint64 * 32)()
ctypes.CDLL(None).statx(-100, s.encode(), 0, 0xfff, buf)
born = buf[10] * 10**9 + (buf[11] & 0xffffffff)
with open(s + "/moves", "w") as f:
    f.write("vx-moves 2\nscratch %d %d\n" % (os.stat(s).st_ino, born))
    f.write("bring %d 1 .git/hooks/pre-commit\nend\n" % os.stat(s + "/u/1").st_ino)
print("made")
E
put vx.config.json <<E
{ "name": "w", "tasks": {
  "forge": { "exec": { "command": "python3 forge.py '$W' '$A'", "sandbox": { "allow": { "read": ["forge.py"], "write": ["$A"] } } } },
  "next": { "exec": { "command": "true", "sandbox": {} } } } }
E
own
untouched() { # NAME
	not_ok "$1" test -e .git/hooks/pre-commit
}

# What it does is what a run would obey, or this tests nothing.
python3 forge.py "$W" "$A" >"$OUT"
VX_SCRATCH_DIR=$A run run next
ok "made outside of a sandbox it is rolled forward" test -e .git/hooks/pre-commit
rm -f .git/hooks/pre-commit
rm -rf "$A"
mkdir "$A"

VX_SCRATCH_DIR=$A run run forge
exits 1 "scratches cannot be made where a run looks for them"
VX_SCRATCH_DIR=$A run run next
untouched "nothing of one is done"
rm -rf "$A"
mkdir "$A"

# A place that is none yet.
run run forge
exits 1 "nor where none are yet"
like "$OUT" "$A/vx-scratch-" "and it is named"
VX_SCRATCH_DIR=$A run run next
untouched "nothing of that one is done either"
done_testing

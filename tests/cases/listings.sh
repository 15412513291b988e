#!/bin/sh
# SPDX-License-Identifier: MIT
# Listing a directory reports nothing, using a hidden name reports it once: whatever the order, from
# however many threads, over whichever handle.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program cc

ok "the program builds" cc -std=gnu11 -O1 -Wall -Wextra -Werror -o "$T/lister" \
	"$VX_SRCDIR/tests/cases/lister.c" -lpthread
mkdir d
for i in 0 1 2 3; do echo v >d/v$i; done
i=0
while [ $i -lt 200 ]; do
	echo h >d/h$i
	i=$((i + 1))
done

scenario() { # NAME FINDINGS
	box '{ "allow": { "read": ["d/v*"] } }' <<-E
		exec $T/lister $1
	E
	findings "$2" "$1"
	said_not '^lister:' "$1: no complaint"
}
scenario list-and-stat 0
scenario list-then-open 5
scenario list-again-and-again 1
scenario small-buffer 4
scenario rewind-in-threads 8
scenario list-beside-access 200
scenario crowd 200
scenario fork-after-list 2
scenario seek 2
scenario open-list-open 2
scenario rounds 200

# Real tools over the same view.
box '{ "allow": { "read": ["d/v*"] } }' <<'E'
set -e
find d >/dev/null
ls -laR d >/dev/null
grep -r v d >/dev/null
du -a d >/dev/null
tar -cf /tmp/d.tar d
cp -R d /tmp/copy
[ "$(ls d | tr '\n' ' ')" = "v0 v1 v2 v3 " ]
E
findings 0 "find, ls, grep, du, tar, cp"

# Twenty thousand hidden names.
mkdir big
echo v >big/v0
(cd big && seq 1 20000 | sed 's/^/h/' | xargs touch)
box '{ "allow": { "read": ["big/v*"] } }' <<'E'
[ "$(ls big)" = v0 ] || exit 3
cat big/h7
exit 0
E
findings 1 "20,000 hidden names"
reported read big/h7 cat
done_testing

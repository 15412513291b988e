#!/bin/sh
# SPDX-License-Identifier: MIT
# A file may include only its own layer and those to its left; sandbox/ and helpers/ see util and proto.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

order='util proto config workspace graph cache exec run cli'
rank_awk='
BEGIN {
	n = split(order, o, " ")
	for (i = 1; i <= n; i++)
		rank[o[i]] = i
	rank["sandbox"] = rank["helpers"] = 100
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	inc = q[2]
	from = FILENAME
	sub(/^src\//, "", from)
	sub(/\/.*/, "", from)
	to = inc
	if (!sub(/\/.*/, "", to)) {
		print FILENAME ":" FNR ": \"" inc "\" names no layer: write \"layer/file.h\""
		next
	}
	if (!(to in rank)) {
		print FILENAME ":" FNR ": \"" inc "\" is of no layer"
		next
	}
	if (to == from)
		next
	limit = rank[from] == 100 ? rank["proto"] : rank[from] - 1
	if (rank[to] > limit)
		print FILENAME ":" FNR ": " from " may not include \"" inc "\""
}'

find src sandbox helpers -name '*.[ch]' 2>/dev/null | sort | xargs awk -v order="$order" "$rank_awk" >"$T/bad"
is "$(cat "$T/bad")" "" "includes go down the layers only"

# Planted: the rule can fail.
mkdir -p "$T/p/src/util" "$T/p/sandbox"
echo '#include "cache/key.h"' >"$T/p/src/util/x.c"
echo '#include "run/plan.h"' >"$T/p/sandbox/y.c"
(cd "$T/p" && awk -v order="$order" "$rank_awk" src/util/x.c sandbox/y.c) >"$T/planted"
is "$(wc -l <"$T/planted" | tr -d ' ')" 2 "planted upward includes are found"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Each reason for which file operations differ inside (tests/data/fileops.different) is a row of docs/SANDBOX.md, and
# each row has an operation that shows it.
. "${VX_SRCDIR:?}/tests/lib.sh"

sed -n '/^## What is different inside/,$p' "$VX_SRCDIR/docs/SANDBOX.md" | sed -e 1d -e '/^## /,$d' |
	sed -n 's/^| \*\*\([^*]*\)\*\* |.*/\1/p' | sort >"$T/rows"
grep -v -e '^#' -e '^$' "$VX_SRCDIR/tests/data/fileops.different" >"$T/lines"
sed 's/.* | //' "$T/lines" | sort -u >"$T/reasons"
ok "there are rows" test -s "$T/rows"
is "$(cat "$T/reasons")" "$(cat "$T/rows")" "reasons are the rows of docs/SANDBOX.md"
is "$(grep -vE '^[a-zFUSE0-9.<>= -]+ \| .+: .* -> .+ \| .+$' "$T/lines")" "" "each line is words, operation and reason"
is "$(sort "$T/lines" | uniq -d)" "" "none stands there twice"
done_testing

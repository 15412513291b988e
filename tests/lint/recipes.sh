#!/bin/sh
# SPDX-License-Identifier: MIT
# Each recipe of docs/SANDBOX.md is run by a test in tests/tools.
. "${VX_SRCDIR:?}/tests/lib.sh"

sed -n '/^## Recipes/,$p' "$VX_SRCDIR/docs/SANDBOX.md" | sed -e 1d -e '/^## /,$d' |
	sed -n 's/^| \([^|]*\) | `{.*}` | .*/\1/p' | sort >"$T/rows"
sed -n -e "s/^tool [^ ]* '\([^']\{1,\}\)' .*/\1/p" -e "s/.*recipe '\([^']*\)'.*/\1/p" "$VX_SRCDIR"/tests/tools/*.sh |
	sort -u >"$T/used"
ok "there are recipes" test -s "$T/rows"
is "$(cat "$T/used")" "$(cat "$T/rows")" "tests run each of them"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# All C is as .clang-format says. Version 14 decides: others format differently.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

command -v clang-format-14 >/dev/null || {
	[ -z "$MUST_WORK" ] || cannot "no clang-format-14 here"
	skip_all "no clang-format-14 here"
}
for f in $(find src sandbox helpers tests -name '*.[ch]' 2>/dev/null | sort); do
	ok "$f" clang-format-14 --style=file --dry-run -Werror "$f"
done
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Every shell script is clean under shellcheck, and is what its first line says.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

command -v shellcheck >/dev/null || cannot "no shellcheck here"
find bootstrap .ci tests docs/examples -type f | sort | while read -r f; do
	case $f in
	*.sh) echo "$f" ;;
	*) if head -n 1 "$f" | grep -qE '^#!.*\b(ba)?sh\b'; then echo "$f"; fi ;;
	esac
done >"$T/scripts"
# 1091: the sourced file is checked by itself. 2016: '$x' in single quotes is meant, for awk and sh -c.
while read -r f; do
	ok "$f" shellcheck -e SC1091,SC2016 "$f"
done <"$T/scripts"
ok "there are scripts" test -s "$T/scripts"
done_testing

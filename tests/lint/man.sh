#!/bin/sh
# SPDX-License-Identifier: MIT
# The man pages are sound mdoc.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

command -v mandoc >/dev/null || cannot "no mandoc here"
for page in docs/man/*.[1-8]; do
	# "style" would ask for things of the BSDs (a RCS id, their own names).
	ok "$page" mandoc -Tlint -Wwarning "$page"
done
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# The schemas are what the tables of fields say now (`make schema` writes them).
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_BUILDDIR" || exit 99

for of in 'project vx.config' 'workspace vx.workspace'; do
	file=$VX_SRCDIR/schema/${of#* }.schema.json
	./schema-tool print "${of% *}" >"$T/printed"
	is $? 0 "${file##*/}: printed"
	ok "${file##*/}: the committed one is the same" cmp -s "$T/printed" "$file"
	# Every field that is there has a text, which says something and ends as a sentence does.
	sed -nE 's/.*"(description|deprecationMessage)": "([^"]*)".*/\2/p' "$file" >"$T/texts"
	ok "${file##*/}: there are texts" test -s "$T/texts"
	is "$(grep -vE '^[^"]{8,}\.$' "$T/texts")" "" "${file##*/}: each is a sentence"
done
done_testing

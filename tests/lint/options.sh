#!/bin/sh
# SPDX-License-Identifier: MIT
# The option tables (which `vx COMMAND --help` prints) and the man page name the same options.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

for command in 'run' 'cache prune'; do
	# shellcheck disable=SC2086 # two words
	"$VX" $command --help >"$T/help"
	is $? 0 "vx $command --help"
	grep -oE -e '--[a-z][a-z-]*' "$T/help" | sort -u >"$T/in-help"
	# mdoc spells --all as `It Fl -all` at the head of its item.
	awk -v begin=".Ss vx $command" '/^\.S[hs] / { on = 0 } on; $0 == begin { on = 1 }' \
		"$VX_SRCDIR/docs/man/vx.1" | grep -oE '^\.It Fl -[a-z][a-z-]*' |
		sed 's/^\.It Fl -/--/' | sort -u >"$T/in-man"
	is "$(comm -23 "$T/in-help" "$T/in-man" | tr '\n' ' ')" "" \
		"every option of vx $command --help is in the man page"
	is "$(comm -13 "$T/in-help" "$T/in-man" | tr '\n' ' ')" "" "the man page has no other"
	ok "there are options at all" test -s "$T/in-help"
done
done_testing

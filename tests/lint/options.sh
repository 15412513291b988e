#!/bin/sh
# SPDX-License-Identifier: MIT
# The option table (which `vx run --help` prints) and the man page name the same options.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

ok "vx run --help" sh -c '"$1" run --help >"$2"' - "$VX" "$T/help"
grep -oE -e '--[a-z][a-z-]*' "$T/help" | sort -u >"$T/in-help"
# mdoc spells --all as `Fl -all`; several may stand in one line.
sed -n '/^\.Ss run/,/^\.Ss [^r]/p; /^\.Sh OPTIONS/,/^\.Sh [^O]/p' "$VX_SRCDIR/docs/man/vx.1" |
	grep -oE 'Fl -[a-z][a-z-]*' | sed 's/^Fl -/--/' | sort -u >"$T/in-man"
[ -s "$T/in-man" ] || grep -oE 'Fl -[a-z][a-z-]*' "$VX_SRCDIR/docs/man/vx.1" |
	sed 's/^Fl -/--/' | sort -u >"$T/in-man"
is "$(comm -23 "$T/in-help" "$T/in-man" | tr '\n' ' ')" "" "every option of --help is in the man page"
is "$(comm -13 "$T/in-help" "$T/in-man" | tr '\n' ' ')" "" "the man page has no other"
ok "there are options at all" test -s "$T/in-help"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# docs/CONFORMANCE.md tells of each statement of the cache specification which tests show it, or that vx
# does otherwise and why; docs/CONFORMANCE-config.md the same of configs and selection, docs/CONFORMANCE-execution.md of
# execution. Here: no section is left out, no row is empty, and each test that is named was run and went well. The results are the logs of the other tests, so this one runs last
# (tests/Makemodule.am).
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$T" || exit 99

# The numbers of the sections that a document has.
sections() {
	case $1 in
	*-execution.md) echo 1 2 3 4 5 6 7 8 9 10 11 12 ;;
	*-executors.md) echo 1 ;;
	*-cli.md) echo 1 2 3 4 5 ;;
	*-config.md) echo 1 2 3 4 5 6 7 8 ;;
	*) echo 1 2 3 4 5 6 7 8 9 10 11 ;;
	esac
}

# DOC: "LINE TAB none" for a row without tests or a difference, "LINE TAB section TAB …" for what is wrong
# with sections, "LINE TAB test TAB PROGRAM TAB NAME" for each test that is named.
read_document() {
	awk -v wanted="$(sections "$1")" '
	BEGIN { nsections = split(wanted, sections, " ") }
	function close_section() {
		if (section && !rows)
			print at "\tsection\tno row: " section
	}
	/^##+ / {
		close_section()
		section = $0
		at = NR
		rows = 0
		if (match($0, /^## [0-9]+\. /)) {
			if (substr($0, 4) + 0 != sections[++seen])
				print NR "\tsection\twanted is section " sections[seen] ": " $0
		}
		next
	}
	/^\|/ && !/^\| *(statement *\||---)/ {
		rows++
		sub(/ *\|$/, "")
		n = split($0, cell, / \| /)
		shown = cell[n]
		found = shown ~ /^(differs|not in this vx yet): [^ ]/
		while (match(shown, /`[^`"]+: "[^`]*"`/)) {
			id = substr(shown, RSTART + 1, RLENGTH - 2)
			shown = substr(shown, RSTART + RLENGTH)
			colon = index(id, ": \"")
			print NR "\ttest\t" substr(id, 1, colon - 1) "\t" substr(id, colon + 3, length(id) - colon - 3)
			found = 1
		}
		if (!found || n != 2)
			print NR "\tnone"
	}
	END {
		close_section()
		if (seen != nsections)
			print NR "\tsection\tof " nsections " sections there are " seen + 0
	}' "$1"
}

# LOG NAME: passed, skipped, failed or absent. A test that was skipped may stand for those whose names
# begin with its own; a program that was skipped, for all of them.
result_of() {
	NAME=$2 awk '
	BEGIN { name = ENVIRON["NAME"]; result = "absent" }
	/^1\.\.0 # SKIP/ { print "skipped"; found = 1; exit }
	/^(not )?ok [0-9]+ - / {
		bad = /^not /
		sub(/^(not )?ok [0-9]+ - /, "")
		skip = sub(/ # SKIP.*$/, "")
		if (bad && $0 == name) { print "failed"; found = 1; exit }
		if (skip && index(name, $0) == 1 && result == "absent") result = "skipped"
		if (!skip && $0 == name) result = "passed"
	}
	END { if (!found) print result }' "$1"
}

# DOC BUILD KNOWN ALL: what is wrong, a line each: "wrong …"; and "skipped …", "missing …" for what cannot
# be told. KNOWN: a file with the test programs there are. ALL: all of them were run ("yes").
judge() {
	read_document "$1" | while IFS="$(printf '\t')" read -r line what program name; do
		log=$2/${program%.[sp][hy]}.log
		case $what in
		none) echo "wrong line $line: neither a test nor a difference" ;;
		section) echo "wrong line $line: $program" ;;
		test)
			if ! grep -qxF -e "$program" "$3"; then
				echo "wrong line $line: no such test program: $program"
			elif [ ! -e "$log" ]; then
				[ "$4" = yes ] && echo "wrong line $line: did not run: $program" ||
					echo "missing $program"
			else
				case $(result_of "$log" "$name") in
				passed) echo passed ;;
				skipped) echo "skipped line $line: $program: \"$name\"" ;;
				failed) echo "wrong line $line: failed: $program: \"$name\"" ;;
				absent) echo "wrong line $line: no such test: $program: \"$name\"" ;;
				esac
			fi
			;;
		esac
	done
}

# --- of this test itself -----------------------------------------------------------------------

mkdir -p fake/tests/cli
printf 'ok 1 - one\nok 2 - two\nok 3 - two\n' >fake/test-a.log
printf 'ok 1 - one\nnot ok 2 - two\nok 3 - two\nok 4 - in a sandbox # SKIP none here\n' >fake/tests/cli/b.log
echo '1..0 # SKIP no' >fake/tests/cli/c.log
printf '%s\n' test-a tests/cli/b.sh tests/cli/c.sh tests/cli/d.py >known
# ROW...: section 3 has these; the others are in order.
document() {
	for i in 1 2 3 4 5 6 7 8 9 10 11; do
		printf '## %d. Title\n\n| statement | shown by |\n| --- | --- |\n' $i
		if [ $i = 3 ]; then
			printf '%s\n' "$@"
		else
			echo '| it holds | `test-a: "one"` |'
		fi
	done
}
finds() { # WANT NAME: of the document fake/doc.md
	judge fake/doc.md fake known "${ALL:-}" | grep -v '^passed$' >fake/says
	is "$(cat fake/says)" "$1" "$2"
}
document '| a `code` word | `test-a: "two"`, `tests/cli/b.sh: "one"` |' '| x | differs: so it is |' >fake/doc.md
finds "" "a document of which all is true"
document '| it holds | somehow |' >fake/doc.md
finds "wrong line 15: neither a test nor a difference" "a row without a test"
document '| it holds | differs: |' >fake/doc.md
finds "wrong line 15: neither a test nor a difference" "a difference that is not told"
document '' >fake/doc.md
finds "wrong line 11: no row: ## 3. Title" "a section without a row"
document '| x | `test-a: "one"` |' | grep -v '^## 7' >fake/doc.md
finds "wrong line 35: wanted is section 7: ## 8. Title
wrong line 40: wanted is section 8: ## 9. Title
wrong line 45: wanted is section 9: ## 10. Title
wrong line 50: wanted is section 10: ## 11. Title
wrong line 54: of 11 sections there are 10" "a section that is not there"
document '| x | `test-a: "one"` |' '### Below' >fake/doc.md
finds "wrong line 16: no row: ### Below" "a heading below one"
document '| x | `test-a: "three"` |' >fake/doc.md
finds 'wrong line 15: no such test: test-a: "three"' "a test that did not run"
document '| x | `test-a: "on"` |' >fake/doc.md
finds 'wrong line 15: no such test: test-a: "on"' "part of a name"
document '| x | `tests/cli/b.sh: "one"`, `tests/cli/b.sh: "two"` |' >fake/doc.md
finds 'wrong line 15: failed: tests/cli/b.sh: "two"' "a test that failed once"
document '| x | `tests/cli/b.sh: "in a sandbox: it works"` |' '| x | `tests/cli/c.sh: "any"` |' >fake/doc.md
finds 'skipped line 15: tests/cli/b.sh: "in a sandbox: it works"
skipped line 16: tests/cli/c.sh: "any"' "what was skipped"
document '| x | `tests/cli/e.sh: "one"` |' >fake/doc.md
finds 'wrong line 15: no such test program: tests/cli/e.sh' "a program that is none"
document '| x | `tests/cli/d.py: "one"` |' >fake/doc.md
finds 'missing tests/cli/d.py' "a program that was not chosen"
ALL=yes
finds 'wrong line 15: did not run: tests/cli/d.py' "and that was"
unset ALL

# --- of the document ---------------------------------------------------------------------------

# What there is, whatever was chosen of it (VX_TESTS) for this run.
env -u MAKEFLAGS -u MAKEOVERRIDES -u MFLAGS -u TESTS make -s -C "$VX_BUILDDIR" print-tests |
	tr ' ' '\n' >known
ok "there are test programs" test -s known
printf %s "${VX_TESTS:-}" | tr ' ' '\n' >chosen
all=yes
while read -r program; do
	grep -qxF -e "$program" chosen || all=no
done <known
for doc in CONFORMANCE.md CONFORMANCE-cli.md CONFORMANCE-config.md CONFORMANCE-execution.md CONFORMANCE-executors.md; do
	judge "$VX_SRCDIR/docs/$doc" "$VX_BUILDDIR" known $all >verdict
	is "$(grep '^wrong' verdict)" "" "docs/$doc is true"
	ok "$doc names tests" grep -qE '^(passed|skipped|missing)' verdict
	if [ -n "$MUST_WORK" ]; then
		is "$(grep '^skipped' verdict)" "" "no test that $doc names was skipped"
	elif grep '^skipped' verdict >said; then
		skip "no test that $doc names was skipped" "$(wc -l <said) were, such as $(head -n 1 said)"
	fi
	if [ $all = no ]; then
		grep '^missing' verdict | sort -u | sed 's/^missing //' >said
		skip "every test that $doc names was run" \
			"not all were chosen: some results may be of earlier runs, and these have none: $(tr '\n' ' ' <said)"
	fi
done
done_testing

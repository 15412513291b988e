#!/bin/sh
# SPDX-License-Identifier: MIT
# The field tables of src/config and vx-config(5) name the same fields; what else the page lists by
# name (variables, names that are never committed) is what the code has.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99
page=docs/man/vx-config.5

# FILE...: "KIND PATH" of each field that a table has, FOREIGN ones left out.
fields() {
	awk '
	BEGIN {
		prefix["workspace_fields"] = prefix["project_fields"] = prefix["task_fields"] = ""
		prefix["rules_fields"] = "rules."
		prefix["retention_fields"] = "cacheRetention."
		prefix["exec_fields"] = "exec."
		prefix["env_fields"] = "exec.env."
		prefix["persistent_fields"] = "exec.persistent."
		prefix["sandbox_fields"] = "exec.sandbox."
		prefix["allow_fields"] = "exec.sandbox.allow."
		prefix["deny_fields"] = "exec.sandbox.deny."
		prefix["ignore_fields"] = "exec.sandbox.ignore."
		prefix["cache_fields"] = "cache."
		prefix["inputs_fields"] = "cache.inputs."
		prefix["outputs_fields"] = "cache.outputs."
	}
	/^static const struct field [a-z_]+\[\]/ {
		table = $5
		sub(/\[.*/, "", table)
		if (!(table in prefix))
			print "UNKNOWN " FILENAME ":" table
	}
	/^};/ { table = "" }
	table != "" && match($0, /\{"[^"]+", FIELD_(HERE|LATER|IGNORED|NOT),/) {
		entry = substr($0, RSTART, RLENGTH)
		split(entry, q, "\"")
		kind = entry
		sub(/.*FIELD_/, "", kind)
		sub(/,/, "", kind)
		print kind " " prefix[table] q[2]
	}' "$@"
}

# shellcheck disable=SC2046 # our own file names
fields $(find src/config -name '*.c') | sort -u >"$T/fields"
is "$(sed -n 's/^UNKNOWN //p' "$T/fields")" "" "every table is known here"
ok "there are fields" test "$(wc -l <"$T/fields")" -gt 40

# What is described (an item of a list, or a word in one), and what is said not to be there.
sed -n '/^\.Sh VX\.WORKSPACE/,/^\.Ss What counts/p' "$page" |
	sed -n 's/^\.\(It \)\{0,1\}Li \([^ ]*\).*/\2/p' | sort -u >"$T/described"
sed -n '/^\.Sh VX\.WORKSPACE/,/^\.Ss What counts/s/^\.It Li \([a-z$][A-Za-z.$]*\)\( :.*\)\{0,1\}$/\1/p' "$page" |
	grep -v '^gen' | sort -u >"$T/items"
sed -n '/^\.Sh NOT IN/,/^\.Sh FILES/s/^\.Li \([^ ]*\).*/\1/p' "$page" | sort -u >"$T/absent"

sed -n 's/^HERE //p' "$T/fields" | sort -u >"$T/here"
sed -nE 's/^(LATER|NOT|IGNORED) //p' "$T/fields" | sort -u >"$T/not-here"
is "$(comm -23 "$T/here" "$T/described" | tr '\n' ' ')" "" "every field is described"
is "$(comm -23 "$T/items" "$T/here" | tr '\n' ' ')" "" "the page describes no other"
is "$(comm -23 "$T/not-here" "$T/absent" | tr '\n' ' ')" "" \
	"every field that is not in this vx, or without effect, is said to be so"
is "$(comm -13 "$T/not-here" "$T/absent" | tr '\n' ' ')" "" "no other is"

# The types that editors are given.
sed -nE 's,^/\*\* \(.*\) \*/$,PREFIX ,p; s,^/\*\* ([a-zA-Z.]+\.) \*/$,PREFIX \1,p; s,^	([a-zA-Z$]+)\??: .*,\1,p' \
	helpers/vx.d.ts | awk '$1 == "PREFIX" { prefix = $2; next } { print prefix $1 }' | sort -u >"$T/typed"
is "$(comm -23 "$T/here" "$T/typed" | tr '\n' ' ')" "" "every field is in helpers/vx.d.ts"
is "$(comm -13 "$T/here" "$T/typed" | tr '\n' ' ')" "" "which has no other"

sed -n '/essentials\[\]/,/};/p' src/exec/env.c | grep -oE '"[^"]+"' | tr -d '"' | sort -u >"$T/variables"
sed -n '/^\.Sh THE ENVIRONMENT/,/^\.Sh THE SANDBOX/s/^\.Ev \([A-Z_]*\).*/\1/p' "$page" | sort -u >"$T/said"
ok "there are variables" test -s "$T/variables"
is "$(comm -23 "$T/variables" "$T/said" | tr '\n' ' ')" "" "every variable that a task sees is named"
sed -n '/^} names\[\]/,/^};/p' src/proto/never.c |
	sed -nE 's/.*\{NULL, "([^"]*)"\},/\1/p; s/.*\{"([^"]*)", "([^"]*)"\},/\1\/\2/p' | sort -u >"$T/never"
sed -n '/^\.Ss What is never/,/^\.Sh/s/^\.Pa \([^ ]*\).*/\1/p' "$page" | sort -u >"$T/said"
ok "there are names" test -s "$T/never"
is "$(comm -23 "$T/never" "$T/said" | tr '\n' ' ')" "" "every name that is never committed is named"

# Planted: the rule can fail.
cat >"$T/planted.c" <<'C'
static const struct field exec_fields[] = {
	{"command", FIELD_HERE, NULL},
	{"args", FIELD_FOREIGN, "write them into 'command'"},
};
static const struct field new_fields[] = {
	{"x", FIELD_LATER, NULL},
};
C
is "$(fields "$T/planted.c" | tr '\n' ' ')" "HERE exec.command UNKNOWN $T/planted.c:new_fields LATER x " \
	"a table is read, one that is new is told"
done_testing

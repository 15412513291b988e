# shellcheck shell=sh
# shellcheck disable=SC2154 # what lib.sh sets
# SPDX-License-Identifier: MIT
#
# For cases from reports about task runners: a case is one function that runs twice, plain and with
# --sandbox, each time in a workspace of its own. Sourced after lib.sh.
#
# MODE is plain or --sandbox; C, with which every name of a test begins, is "C02 plain:". A task notes
# its execution in a FIFO, which it can in a sandbox too: what ran is not what vx says ran.

require_program git
fifo ran
exec 8<>"$T/ran"

# ID...: each case (the function of that name) in both ways.
each() {
	for b_id in "$@"; do
		for MODE in plain --sandbox; do
			C="$b_id $MODE:"
			if [ "$MODE" = --sandbox ] && ! can_sandbox; then
				[ -z "$MUST_WORK" ] || fail "$C no namespaces here"
				[ -n "$MUST_WORK" ] || skip "$C" "no namespaces here: $tap_why"
				continue
			fi
			cd "$T" || exit 99
			rm -rf "$W"
			mkdir "$W"
			cd "$W" || exit 99
			zero
			b_before=$tap_n
			"$b_id"
			[ "$tap_n" -gt "$b_before" ] || fail "$C tests nothing"
		done
	done
}
sandboxed() { [ "$MODE" = --sandbox ]; }

# What tasks have noted since the last time goes to ran.log.
drain() {
	echo end >&8
	while read -r b_line <&8 && [ "$b_line" != end ]; do
		printf '%s\n' "$b_line"
	done >>"$T/ran.log"
}
zero() {
	drain
	: >"$T/ran.log"
}
# PACKAGE.TASK: how often its command was executed since the last `zero`.
nran() {
	drain
	grep -cxF -e "$1" "$T/ran.log"
}

# NAME COMMAND: the command, as a JSON string, that notes its execution first.
noting() { printf '"echo $(basename $PWD).%s >%s/ran; %s"' "$1" "$T" "$2"; }
# NAME COMMAND INPUTS OUTPUTS [EXEC [TASK]]: a cached task, as a field of "tasks". Both lists are JSON
# without brackets; EXEC and TASK are more fields of these, each with a comma before it.
cached() {
	printf '"%s": { "exec": { "command": %s%s }, ' "$1" "$(noting "$1" "$2")" "${5:-}"
	printf '"cache": { "inputs": { "files": [%s] }, "outputs": { "files": [%s] } }%s }' "$3" "$4" "${6:-}"
}
# NAME TASKS [DEPENDENCIES]: packages/NAME with one source.
package() {
	printf '{ "name": "%s", "version": "0.0.0", "private": true, "dependencies": { %s } }\n' \
		"$1" "${3:-}" | put "packages/$1/package.json"
	printf '{ "tasks": { %s } }\n' "$2" | put "packages/$1/vx.config.json"
	echo 1 | put "packages/$1/src/in.txt"
}
# IGNORED...: the workspace of these packages, committed.
workspace() {
	echo '{ "name": "root", "private": true, "workspaces": ["packages/*"] }' >package.json
	printf '%s\n' node_modules dist .vx "$@" >.gitignore
	git_ init -q
	commit
}
commit() {
	git_ add -A
	git_ commit -qm workspace
}
# ARGS...: vx run, as MODE says.
go() {
	if sandboxed; then
		run run --all --continue=never --sandbox "$@"
	else
		run run --all --continue=never "$@"
	fi
}

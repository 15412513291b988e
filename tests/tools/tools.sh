# shellcheck shell=sh
# shellcheck disable=SC2154 # what lib.sh sets
# SPDX-License-Identifier: MIT
#
# For tests of real programs in a sandbox. Sourced after lib.sh.
#
# Each program is a project of one workspace with the task `t`. Its exec.sandbox is that of the program's row in
# docs/SANDBOX.md ("Recipes"), which also says what it needs that for: what users read there is what runs here.

require_fuse
require_program git
# The system's programs. Those that a developer has at home may be stand-ins that look for more there.
PATH=/usr/bin:/bin:/usr/local/bin
HOME=$T/home
export PATH HOME
mkdir "$HOME"
began=$(date +%s)
cd "$W" || exit 99
echo '{ "projects": ["*"] }' >vx.workspace.json
echo .vx >.gitignore
git_ init -q

# NAME: the exec.sandbox of that row.
recipe() { sed -n "s/^| $1 | \`\(.*\)\` | .*/\1/p" "$VX_SRCDIR/docs/SANDBOX.md"; }

# PROJECT ROW COMMAND INPUTS OUTPUTS: a project, in which the test is from then on. The row may be '', the command is JSON text, the
# lists are JSON without brackets. MORE is text after the cache of the task.
tool() {
	P=$1
	COMMAND=$3
	INPUTS=$4
	OUTPUTS=$5
	mkdir -p "$W/$P"
	cd "$W/$P" || exit 99
	SANDBOX=$(recipe "$2")
	NOTE=
	MORE=
	[ -z "$2" ] || [ -n "$SANDBOX" ] || fail "$2 has no recipe in docs/SANDBOX.md"
}
# [SANDBOX]: the project's config, with that exec.sandbox; none: as --sandbox derives it.
config() {
	put vx.config.json <<-E
		{ "name": "$P", "tasks": { "t": {
			"exec": { "command": "$COMMAND"${1:+, \"sandbox\": $1} },
			"cache": { "inputs": { "files": [$INPUTS] }, "outputs": { "files": [$OUTPUTS] } }
			$MORE
		} } }
	E
}
# The same without a cache.
uncached() {
	put vx.config.json <<-E
		{ "name": "$P", "tasks": { "t": { "exec": { "command": "$COMMAND", "sandbox": $SANDBOX } } } }
	E
}
# WHAT: the last run succeeded, with nothing found, and vx had nothing else to say.
silent() {
	exits 0 "$P: $1"
	said_not 'sandbox violation|^(note|warning|hint):' "$P: $1: nothing to say"
}
# WHAT NOTE: as silent, but for that note.
noted() {
	exits 0 "$P: $1"
	said "^note: $2\$" "$P: $1: a note"
	is "$(cat "$OUT" "$ERR" | grep -cE 'sandbox violation|^(note|warning|hint):')" 1 "$P: $1: and nothing else to say"
}
# RESULT...: with its recipe the tool makes these, cold, with the note NOTE, if that is set; then again as a hit that
# puts them back.
works() {
	config "$SANDBOX"
	git_ add -A "$W"
	run run "$P#t"
	if [ -n "$NOTE" ]; then
		noted "cold" "$NOTE"
	else
		silent "cold"
	fi
	for tool_f; do
		ok "$P: cold: $tool_f" test -s "$tool_f"
	done
	[ $# = 0 ] || tool_before=$(sha256sum "$@")
	for tool_f; do
		rm -f "$tool_f"
	done
	run run "$P#t"
	silent "warm"
	said 'all cached' "$P: warm: a hit"
	[ $# = 0 ] || is "$(sha256sum "$@")" "$tool_before" "$P: warm: what it made is there again"
}
# GRANT FINDING: without that entry of the recipe the task fails, and the finding names it.
not_without() {
	tool_re=$(printf '%s' "$1" | sed 's/[.*]/\\&/g')
	tool_less=$(printf '%s\n' "$SANDBOX" | sed -e "s|\"$tool_re\", ||" -e t -e "s|, \"$tool_re\"||" -e t -e "s|\"$tool_re\"||")
	[ "$tool_less" != "$SANDBOX" ] || fail "$P: no \"$1\" in its recipe"
	config "$tool_less"
	run run "$P#t"
	exits 1 "$P: without \"$1\""
	said "failed \\(exit [0-9]+, [0-9]+ sandbox violations?\\)" "$P: without \"$1\": a violation"
	said "^$2(  by .*)?\$" "$P: without \"$1\": $2"
}
# [NOTE]: it works without an exec.sandbox as well; caches of it, as in the note, are thrown away.
derived() {
	config
	run run --sandbox "$P#t"
	if [ $# = 0 ]; then
		silent "--sandbox"
	else
		noted "--sandbox" "$1"
	fi
}

finish() {
	diag "took $(($(date +%s) - began)) s"
	done_testing
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# The values of secrets are in nothing that vx prints or keeps.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/cases/both.sh"
fifo up stop
MY_TOKEN=hunter2-value
DB_URL='pg://u:pass\word@h'
DEPLOY_KEY='-----BEGIN
line-one-of-it
  tab	in it

-----END'
KEY_FILE=/where/it/is
SHORT_KEY=12345
export MY_TOKEN DB_URL DEPLOY_KEY KEY_FILE SHORT_KEY
pass='"env": { "passThrough": ["MY_TOKEN", "DB_URL", "DEPLOY_KEY", "KEY_FILE", "SHORT_KEY"], "secret": ["DB_URL"],
	"define": { "api_key": "defined-secret", "MODE": "not-one-of-them" } }'
cached='"cache": { "inputs": { "files": ["src/**"], "env": ["DB_URL"] }, "outputs": { "files": ["dist/**"] } }'
# COMMAND [TASK]
task() {
	package a "\"t\": { \"exec\": { \"command\": $1, $pass }${2:+, $2} }"
	workspace
}
play() { go t --output-logs=full "$@"; }
# NAME: neither printed nor kept.
nowhere() {
	cat "$OUT" "$ERR" >"$T/printed"
	is "$(grep -aoE 'hunter2-value|pass.{1,2}word|line-one-of-it|tab	in it|-----END|defined-secret' "$T/printed" | sort -u)" "" "$C $1"
	# Names and configs are remembered as they are.
	is "$(grep -rlaE --exclude=stat --exclude=sources 'hunter2-value|pass.{1,2}word|line-one-of-it|tab	in it' .vx)" "" "$C and nothing of it is kept"
}

printed() {
	task '"echo 1 $MY_TOKEN; echo 2 $DB_URL >&2; echo \"$DEPLOY_KEY\"; echo 3 $api_key $MODE $KEY_FILE $SHORT_KEY"' "$cached"
	play
	exits 0 "$C a task that prints what it knows"
	said '^1 \*\*\*$' "$C a variable whose name says so"
	said '^2 \*\*\*$' "$C one that is listed, on standard error"
	said '^3 \*\*\* not-one-of-them /where/it/is 12345$' "$C one that is defined; not what is no secret, nor too short"
	nowhere "line by line, too"
	MY_TOKEN=other-value play
	said '^1 \*\*\*$' "$C a hit has what was stored"
	said 'up-to-date' "$C which it is"
	nowhere "replayed, too"
	cd packages/a || exit 99
	if sandboxed; then run run t --force --sandbox; else run run t --force; fi
	cd "$W" || exit 99
	said '^1 \*\*\*$' "$C shown as it comes"
	nowhere "nor so"
	task '"mkdir -p dist; echo $MY_TOKEN >dist/o"' "$cached"
	play
	is "$(cat packages/a/dist/o)" hunter2-value "$C what it writes is its own"
}

pieces() {
	# Each letter by a write of its own, between other bytes.
	task "\"printf 'a\\\\000'; for c in h u n t e r 2 - v a l u e; do printf \$c; done; printf '\\\\377b\\\\n'; printf 'hunter2-\\\\n'; printf hunter2-val\""
	play
	is "$(grep -aA2 '^├─ STDOUT' "$OUT" | sed '1d; /^hunter2-val/,$d' | od -An -c | tr -d ' \n')" 'a\0***377b\nhunter2-\n' "$C byte by byte, whatever is around it"
	said '^hunter2-val$' "$C what only begins like one is shown"
}

told() {
	task '"hunter2-value x"'
	play -- "$MY_TOKEN"
	said '^\$ \*\*\* x \*\*\*$' "$C a command and its arguments"
	said '^note: \*\*\* was not found: ' "$C a note"
	nowhere "nowhere else"
	play --summarize="$T/s.json" --profile="$T/p.json" --report --tag "of=$MY_TOKEN" -- "$MY_TOKEN"
	like "$T/s.json" '"command":"vx run .* of=\*\*\* -- \*\*\*","tags":\{"of":"\*\*\*"\}' "$C the command and the tags of a summary"
	cat "$T/s.json" "$T/p.json" >>"$OUT"
	nowhere "nor in what is written of a run"
	task '"true"' '"cache": { "inputs": { "files": [], "runtime": ["echo $MY_TOKEN >&2; false"] }, "outputs": { "files": [] } }'
	play
	said 'cache\.inputs\.runtime ".*": exit code 1.*\*\*\*' "$C an error"
	nowhere "in no other place of it"
	task '"true"' "$cached"
	run run --all t --dry=json
	said '"keyText":".*DB_URL.u0000\*\*\*.n' "$C a plan with the text of a key"
	nowhere "which has them nowhere"
}

denied() {
	sandboxed || { pass "$C nothing is denied"; return; }
	package a '"t": { "exec": { "command": "cat hunter2-value", "sandbox": {} } }'
	echo x >packages/a/hunter2-value
	workspace
	play
	said '^read packages/a/\*\*\*  by cat' "$C the name of a file"
	said '^    to allow it: allow\.read: \["\*\*\*"\]$' "$C and what would allow it"
	nowhere "nor as data"
}

waited_for() {
	task "\"echo up >$T/up; read -r x <$T/stop\""
	bg run --all t -- "$MY_TOKEN"
	await up >/dev/null || fail "$C did not start"
	like .vx/lock 'vx run --all t -- \*\*\*$' "$C those that wait are told the command"
	echo x >"$T/stop"
	bg_wait
	nowhere "without it"
}

each printed pieces told denied waited_for
done_testing

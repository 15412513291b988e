#!/bin/sh
# SPDX-License-Identifier: MIT
# Undeclared accesses as rows of the history: operation, path, class, program and grant of each; exact totals and
# bounded, grouped lists for very many.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
require_program python3
python3 -c 'import sqlite3' 2>/dev/null || cannot "python has no sqlite3"
cd "$W" || exit 99
HOME=$T/home
export HOME
mkdir -p "$HOME/.ssh"
echo key >"$HOME/.ssh/id"
[ -z "${VX_TEST_OWNER:-}" ] || chown -R "$VX_TEST_OWNER:$VX_TEST_OWNER" "$HOME"
echo '{ "projects": ["p/*"] }' >vx.workspace.json
mkdir -p p/app/src p/app/old p/lib
echo '{ "name": "lib" }' >p/lib/vx.config.json
for f in p/app/secret p/app/log p/app/src/s p/app/old/o p/lib/x; do echo x >$f; done

task() { # SANDBOX [EXEC-FIELDS]: stdin is the command
	cat >"$T/command.sh"
	put p/app/vx.config.json <<-E
		{ "name": "app", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "sandbox": $1${2:-} } } } }
	E
	run run app#t
}
# Of the last run: "findings N", then a row each.
rows() {
	python3 - <<'P'
import sqlite3
db = sqlite3.connect("file:.vx/history.db?mode=ro", uri=True)
run, n = db.execute("SELECT run, sum(findings) FROM tasks GROUP BY run ORDER BY run DESC LIMIT 1").fetchone()
print("findings", n)
for row in db.execute("SELECT class, op, path, program, grant_text FROM denials WHERE run = ? ORDER BY n", (run,)):
    print(*["-" if x is None else x.replace("\n", "\\n") for x in row])
P
}
row() { like "$T/rows" "^$1\$" "a row: $1"; }

task '{ "allow": { "read": ["src"], "write": ["old/none"] }, "ignore": { "read": ["log"] } }' <<E
cat secret log ../lib/x none ~/.ssh/id
python3 -c 'import socket; socket.socket(socket.AF_UNIX)'
echo new >src/stray; rm src/s
true
E
said 'failed \(exit 1, 4 sandbox violations\)$' "the label"
said '^├─ SANDBOX VIOLATIONS \(4\) ─' "the section"
rows >"$T/rows"
row 'findings 4'
row 'finding read p/app/secret cat allow\.read: \["secret"\]'
row "finding read $HOME/\\.ssh cat allow\\.read: \\[\"~/\\.ssh\"\\]"
row 'finding write p/app/src/stray - allow\.write: \["src/stray"\], or ignore\.write to throw it away'
row 'finding delete p/app/src/s - allow\.write: \["src/s"\].*'
row 'walled read p/lib cat allow\.read: \["\.\./lib"\]'
row 'walled socket unix python3 allow\.unixSockets: true'
row 'probe probe p/app/none cat -'
row 'ignored read p/app/log cat allow\.read: \["log"\]'
is "$(sed 1d "$T/rows" | cut -d' ' -f1 | uniq | tr '\n' ' ')" "finding walled probe ignored " "findings come first"

task '{ "allow": { "read": ["src"] } }' <<'E'
cat src/s src/none
E
rows >"$T/rows"
is "$(cat "$T/rows")" "findings 0" "what is granted is no row, nor what is not there"

# --- a persistent task ------------------------------------------------------------------------------

fifo quiet
cat >"$T/command.sh" <<E
cat secret; echo x >src/new; rm src/s; echo ready; exec cat $T/quiet
E
put p/app/vx.config.json <<E
{ "name": "app", "tasks": {
	"serve": { "exec": { "command": "sh $T/command.sh", "persistent": { "readyWhen": "^ready" },
		"sandbox": { "allow": { "read": ["src/s"] } } } },
	"t": { "exec": { "command": "true" }, "dependsOn": ["serve"] } } }
E
run run app#t
exits 1 "a persistent task"
said 'denied read p/app/secret' "what a live view denies is told at once"
rows >"$T/rows"
row 'finding read p/app/secret cat .*'
row 'finding write p/app/src/new sh .*'
row 'finding delete p/app/src/s rm .*'
ok "nothing of it happened" test -e p/app/src/s

# --- very many ----------------------------------------------------------------------------------------

python3 - <<'P'
import os
for i in range(40):
    os.makedirs("p/app/many/%02d" % i)
    for k in range(i == 0 and 2050 or 50):
        open("p/app/many/%02d/%04d" % (i, k), "w").close()
P
cat >"$T/all.py" <<'P'
import os
for i in range(40):
    for k in range(i == 0 and 2050 or 50):
        try:
            os.stat("many/%02d/%04d" % (i, k))
        except OSError:
            pass
P
for view in transaction live; do
	task "{ \"allow\": { \"read\": [\"many/*/none\"] }, \"view\": \"$view\" }" <<E
python3 $T/all.py
E
	said 'exit 1, 4000 sandbox violations\)$' "$view: the total is exact"
	said '^… and 2047 more to read in p/app/many/00$' "$view: a directory is a few names, a count"
	said '^    to allow all of it: allow\.read: \["many/00"\]$' "$view: and one grant"
	said '^… and [0-9]+ more$' "$view: and there is an end"
	rows >"$T/rows"
	row 'findings 4000'
	is "$(grep -c '^finding ' "$T/rows")" 100 "$view: rows are bounded"
	ok "$view: so is what is printed" test "$(wc -l <"$OUT")" -le 90
	# What is shown, what its directories count, and the rest are all there are.
	is "$(sed -n -e 's/^read p.*/1/p' -e 's/^… and \([0-9]*\) more.*/\1/p' "$OUT" | paste -sd+ - | tr -d '\n' |
		sed 's/$/\n/' | python3 -c 'print(eval(input()))')" 4000 "$view: the parts add up"
done
python3 - <<'P'
open("p/app/write.py", "w").write("""
import os
for i in range(3000):
    open("src/n%04d" % i, "w").close()
""")
P
task '{ "allow": { "read": ["src", "write.py"] } }' <<'E'
python3 write.py
E
said 'exit 1, 3000 sandbox violations\)$' "stray writes: the total"
said '^… and 2997 more to write in p/app/src$' "stray writes: are grouped as well"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# view: "live" for a task that is no server: it sees what comes, and what it writes stands at once.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
fifo here go never

git_ init -q
mkdir src out
echo one >src/one
echo k >secret
own

# SANDBOX: the task writes, waits for the host, and reads what that has made.
live() {
	cat >"$T/command.sh" <<-E
		echo early >out/early
		echo x >$T/here
		read -r line <$T/go
		cat src/late
	E
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "sandbox": $1 } } } }
	E
	bg run t
	ok "it has come there" await here
	early=$(cat out/early 2>/dev/null)
	echo two >src/late
	echo x >"$T/go"
	bg_wait
	rm -rf src/late out/early
}
live '{ "allow": { "read": ["src"], "write": ["out"] }, "view": "live" }'
exits 0 "live: it ends well"
is "$early" early "live: what it writes stands at once"
said '^two$' "live: it sees what came"
live '{ "allow": { "read": ["src"], "write": ["out"] }, "view": "transaction" }'
is "$early" "" "transaction: what it writes does not"
clean "either"

box '{ "allow": { "read": ["src"], "write": ["out"] }, "view": "live" }' <<'E'
cat secret
echo n >src/one
echo n >new
echo fine >out/fine
mkdir -p out/repo/.git/hooks
true
E
exits 1 "findings fail it"
reported read secret cat
reported write new sh
is "$(cat src/one)" one "a refused write is refused"
is "$(cat out/fine)" fine "what was granted stands"
ok "what is never kept is moved out" test ! -e out/repo/.git
is "$(grep -c 'read secret' "$T/.both")" 1 "each is told once"
rm -rf .vx/vx-moved-out* .vx/scratch/vx-moved-out*

# A directory that is bound is a file system of its own to git.
git_ add src
git_ commit -qm in-src
box '{ "allow": { "read": ["src", ".git"] }, "view": "live" }' <<'E'
cd src && git -c safe.directory='*' log --oneline && echo "$GIT_DISCOVERY_ACROSS_FILESYSTEM"
E
findings 0 "git in a directory of a granted repository"
said ' in-src$' "it finds the repository"
said '^1$' "as it is told to"
box '{ "allow": { "read": ["src"] }, "view": "live" }' <<'E'
echo "<$GIT_DISCOVERY_ACROSS_FILESYSTEM>"
E
said '^<>$' "without a repository there is nothing to tell"

cat >"$T/command.sh" <<E
echo half >out/half
echo x >$T/here
read -r line <$T/never
E
put vx.config.json <<E
{ "name": "w", "tasks": { "t": { "exec": { "command": "sh $T/command.sh", "timeout": 3000,
	"sandbox": { "allow": { "write": ["out"] }, "view": "live" } } } } }
E
bg run t
ok "it has come there" await here
bg_wait
exits 1 "a time-out"
is "$(cat out/half)" half "what it wrote stands"
clean "the time-out"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# --exclude-dependencies: what is not run, what may be a hit, what is not saved, and which order stays.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

# app#test -> app#build -> lib#build -> lib#gen; app#test -> app#all (a group) -> app#lint
echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/lib/vx.config.json <<E
{ "name": "lib", "tasks": {
  "gen": { "exec": { "command": "echo gen >>$T/log; cp in gen.out" },
    "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": ["gen.out"] } } },
  "build": { "exec": { "command": "echo build >>$T/log; cp gen.out out" }, "dependsOn": ["gen"],
    "cache": { "inputs": { "files": ["src"] }, "outputs": { "files": ["out"] } } } } }
E
put p/app/vx.config.json <<E
{ "name": "app", "dependencies": ["lib"], "tasks": {
  "build": { "exec": { "command": "echo app >>$T/log; cat ../lib/out src >out" }, "dependsOn": ["^build"],
    "cache": { "inputs": { "files": ["src"] }, "outputs": { "files": ["out"] } } },
  "lint": { "exec": { "command": "echo lint >>$T/log" } },
  "all": { "dependsOn": ["lint"] },
  "loose": { "exec": { "command": "echo loose >>$T/log" }, "dependsOn": ["^build"],
    "cache": { "inputs": { "files": ["src"], "tasks": [] }, "outputs": { "files": [] } } },
  "test": { "exec": { "command": "echo test >>$T/log; cat out >seen" }, "dependsOn": ["build", "all"],
    "cache": { "inputs": { "files": ["test"] }, "outputs": { "files": ["seen"] } } } } }
E
# else the key of lint, which has no cache, holds them
printf 'out\ngen.out\nseen\n' >.gitignore
echo 1 >p/lib/in
echo 1 >p/lib/src
echo 1 >p/app/src
echo 1 >p/app/test

ran() { # WANT NAME ARGS...
	r_want=$1 r_name=$2
	shift 2
	rm -f "$T/log"
	: >"$T/sorted"
	run run "$@"
	[ ! -e "$T/log" ] || sort -o "$T/sorted" "$T/log"
	is "$(tr '\n' ' ' <"$T/sorted")" "${r_want:+$r_want }" "$r_name"
	[ "$RC" = 0 ] || { fail "$r_name: exit 0"; diag_file stdout "$OUT"; diag_file stderr "$ERR"; }
}

ran 'app build gen lint test' "all of it" app#test
ran '' "none of it: what is keyed on what is left out may be a hit" app#test --exclude-dependencies
said 'up-to-date' "and it is one"
said '1 task ' "what is left out is not counted"
said_not 'lib#build' "nor told"
rm p/lib/gen.out p/lib/out p/app/out
ran '' "what is left out is not restored" app#test --exclude-dependencies
ok "it is not" test ! -e p/app/out
ran 'lint' "and comes back without the flag" app#test
ok "it does" test -e p/app/out

echo 2 >p/app/test
ran 'test' "a miss alone" app#test --exclude-dependencies
said 'not saved: its key holds that of app#lint, which --exclude-dependencies leaves out' "is not saved, which is said"
ran 'test' "so it runs again" app#test --exclude-dependencies
ran 'lint test' "until it runs with what it needs" app#test
ran '' "of which it is a hit then" app#test --exclude-dependencies
echo 2 >p/app/test.x
echo 2 >p/lib/in
ran '' "what is left out is keyed: nothing of it runs" app#test --exclude-dependencies --dry
said '^− lib#gen  left out by --exclude-dependencies  [0-9a-f]{8}$' "a plan says so"
said '^▶ app#test  miss' "and that the key has moved"
said '; 5 left out$' "and how many"
ran 'test' "a key far away" app#test --exclude-dependencies
said 'not saved: ' "counts as well"
ran 'app build gen lint test' "and is no other than without" app#test
echo 3 >p/app/src
ran 'loose' "a task whose key holds none of them" app#loose --exclude-dependencies
ran '' "is saved" app#loose --exclude-dependencies
ran 'app lint test' "(put right)" app#test

echo 4 >p/lib/src
ran 'app lint test' "by name: what is needed by that alone" app#test --exclude-dependencies=lib#build
ran 'app lint test' "nothing of which was saved" app#test --exclude-dependencies=lib#build,gen
ran 'app gen lint test' "one that is asked for runs" app#test lib#gen --exclude-dependencies=lib#build --force
ran 'gen test' "two that were asked for" app#test lib#gen --exclude-dependencies --force --concurrency 4
is "$(head -n 1 "$T/log")" gen "in their order, though what is between them is left out"
ran 'app build test' "a group can be left out" app#test --exclude-dependencies=all
ran 'lint' "a task of that name which was asked for is not" app#lint --exclude-dependencies=lint
run run app#test --exclude-dependencies=app#all --graph
like "$OUT" '^	"app#lint" \[style = dashed\];$' "a graph shows it"
like "$OUT" '^	"app#test" \[style = bold\];$' "and what was asked for"
like "$OUT" '^	"app#test" -> "app#build";$' "and what needs what"
run run app#test --exclude-dependencies --dry=json
like "$OUT" '"id":"app#build".*"hash":"[0-9a-f]{64}","cacheStatus":"left-out"' "so does JSON"

# A failure goes through what is left out.
sed -i 's/cp in gen.out/false/' p/lib/vx.config.json
rm -f "$T/log"
run run app#test lib#gen --exclude-dependencies
exits 1 "a task that fails before one that is left out"
said 'skipped • blocked by lib#gen' "blocks what comes after"

# A server that only what is left out needs is not started; nor is one that is left out.
put p/srv/vx.config.json <<E
{ "name": "srv", "tasks": {
  "serve": { "exec": { "command": "echo serve >>$T/log; exec sleep 1000", "persistent": {} } },
  "probe": { "exec": { "command": "echo probe >>$T/log" }, "dependsOn": ["serve"] },
  "e2e": { "exec": { "command": "echo e2e >>$T/log" }, "dependsOn": ["probe"] } } }
E
ran 'e2e' "a server of what is left out" srv#e2e --exclude-dependencies=probe
ran 'e2e probe' "a server that is left out" srv#e2e --exclude-dependencies=serve
done_testing

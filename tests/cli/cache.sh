#!/bin/sh
# SPDX-License-Identifier: MIT
# Cold, warm, restored, edited: what runs again, what comes back and how.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

# lib <- app <- site; other stands alone. Every command notes its own execution.
project() { # NAME DEPENDENCIES
	put "packages/$1/src/in" <<-E
		$1 one
	E
	put "packages/$1/vx.config.json" <<-E
		{
			"name": "$1",
			"dependencies": [$2],
			"tasks": {
				"build": {
					"dependsOn": ["^build"],
					"exec": { "command": "echo $1.build >>$T/ran; mkdir -p dist/d; cat src/in >dist/d/out; cp src/in dist/tool; chmod 750 dist/tool; ln -sf d/out dist/link; ln -sf nowhere dist/dead; mkdir -p dist/empty; echo built $1; echo noise >&2" },
					"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } }
				},
				"test": {
					"dependsOn": ["build"],
					"exec": { "command": "echo $1.test >>$T/ran; test -s dist/d/out" },
					"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } }
				}
			}
		}
	E
}
echo '{ "projects": ["packages/*"] }' >vx.workspace.json
echo dist >.gitignore
project lib ''
project app '"lib"'
project site '"app"'
project other ''
git_ init -q
git_ add -A
git_ commit -qm workspace

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
fresh

run run lib#build --dry
said '^▶ lib#build  miss' "what would be cached misses where there is no cache yet"
said ' 1 to miss, 0 without cache' "and is counted so"
run run lib#build --dry --no-cache
said '^· lib#build  no-cache' "with --no-cache it is not cached"
ok "none is made" test ! -e .vx/cache
run run lib#build --cache=local:r
said ' 1 missed' "a run that only reads misses, too"
rm -rf packages/lib/dist .vx
fresh

run run build test --all
exits 0 "cold"
is "$(ran)" "app.build app.test lib.build lib.test other.build other.test site.build site.test " \
	"cold: every task ran once"
said '8 tasks' "the footer counts them"
listing packages >"$T/cold"

fresh
run run build test --all
exits 0 "warm"
is "$(ran)" "" "warm: nothing ran"
said 'all cached' "the footer says so"
listing packages >"$T/warm"
ok "warm: nothing changed" cmp "$T/cold" "$T/warm"

fresh
rm -rf packages/app/dist
run run build test --all
exits 0 "one output tree deleted"
is "$(ran)" "" "it is restored, nothing ran"
listing packages >"$T/restored"
ok "restored byte for byte, with modes and links" cmp "$T/cold" "$T/restored"

fresh
rm packages/app/dist/tool
echo tampered >packages/app/dist/d/out
echo stray >packages/app/dist/d/stray
chmod 700 packages/lib/dist/tool
run run build --all
exits 0 "outputs tampered with"
is "$(ran)" "" "they are restored, nothing ran"
listing packages >"$T/restored"
ok "the output tree is the stored one, no more and no less" cmp "$T/cold" "$T/restored"

fresh
rm -rf packages/lib/dist
run run lib#build
exits 0 "a restored task"
said 'built lib' "replays its standard output"
said 'noise' "and its standard error"

fresh
echo "app two" >packages/app/src/in
run run build test --all
exits 0 "one source edited"
is "$(ran)" "app.build app.test site.build site.test " "exactly what depends on it ran"
is "$(cat packages/app/dist/d/out)" "app two" "with the new content"

fresh
echo "app one" >packages/app/src/in
run run build test --all
is "$(ran)" "" "the old content again: the old results"
is "$(cat packages/app/dist/d/out)" "app one" "with the old content"

fresh
touch packages/lib/src/in
run run build test --all
is "$(ran)" "" "a new time alone changes nothing"
chmod +x packages/lib/src/in
run run lib#build
is "$(ran)" "lib.build " "the executable bit is part of a file"
chmod -x packages/lib/src/in

fresh
run run lib#build --force
is "$(ran)" "lib.build " "--force runs what is cached"
fresh
run run lib#build --no-cache
is "$(ran)" "lib.build " "--no-cache too"

mkdir packages/bad
echo x >packages/bad/in
fresh
run run lib#build --cache-dir "$T/elsewhere"
exits 0 "another cache directory"
is "$(ran)" "lib.build " "knows nothing"
ok "it is made" test -d "$T/elsewhere"
fresh
run run lib#build --cache-dir "$T/elsewhere"
is "$(ran)" "" "and knows it then"

# A cache's directory is ignored by git and cleaned by vx, so it must be one.
run run lib#build --cache-dir packages/bad
exits 2 "a cache directory in which something else is"
said 'packages/bad holds what is no cache of vx: name an empty directory' "it is named"
is "$(ls -A packages/bad)" "in" "nothing is put there"
mkdir "$T/empty"
run run lib#build --cache-dir "$T/empty"
exits 0 "an empty one"

# --cache: reading and writing apart.
fresh
echo "other two" >packages/other/src/in
run run other#build --cache local:r
is "$(ran)" "other.build " "only reading: a miss runs"
run run other#build --cache local:r
is "$(ran)" "other.build other.build " "and is not saved"
echo "other one" >packages/other/src/in
run run other#build --cache=local:r
exits 0 "what was saved before"
is "$(ran)" "other.build other.build " "is read"
is "$(cat packages/other/dist/d/out)" "other one" "and restored"
fresh
echo "other two" >packages/other/src/in
run run other#build --cache local:w
is "$(ran)" "other.build " "only writing: it runs"
run run other#build --cache local:w
is "$(ran)" "other.build other.build " "though it is there"
run run other#build
is "$(ran)" "other.build other.build " "for others"
touch packages/other/dist/kept
run run other#build --cache local:
is "$(ran)" "other.build other.build other.build " "neither: it runs"
said 'no cache' "without a cache"
ok "and outputs are not cleaned before" test -e packages/other/dist/kept
fresh
run run other#build --cache local:r --force
is "$(ran)" "other.build " "--force outranks it"
run run other#build --cache local:rw,remote: --no-cache
is "$(ran)" "other.build other.build " "so does --no-cache"
for bad in local r rw local:x local:rr local:rww disk:r 'local:r,' remote:r local:r,remote:w; do
	run run other#build --cache "$bad"
	exits 2 "--cache $bad is refused"
done
said 'a remote cache is not in this vx yet' "a remote one in words"
echo "other one" >packages/other/src/in
run run other#build

# A failure is never stored.
put packages/bad/vx.config.json <<E
{ "name": "bad", "tasks": { "build": {
	"exec": { "command": "echo bad.build >>$T/ran; exit 3" },
	"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }
E
fresh
run run bad#build
exits 1 "a failing task"
said 'exit 3' "says its exit code"
run run bad#build
is "$(ran)" "bad.build bad.build " "and runs again"

# What goes on may still write into the outputs.
mkfifo "$T/never"
put packages/bad/vx.config.json <<E
{ "name": "bad", "tasks": { "build": {
	"exec": { "command": "mkdir -p dist; exec 3<>$T/never; (read -r x <&3; echo half >dist/x) >/dev/null 2>&1 & echo \$! >$T/left" },
	"cache": { "inputs": { "files": [] }, "outputs": { "files": ["dist/**"] } } } } }
E
run run bad#build
exits 0 "a task that leaves a background process"
said 'not saved: it left background processes' "is not saved"
ok "which goes on" kill "$(cat "$T/left")"

# A damaged store is a miss, not a wrong hit.
fresh
rm -rf packages/other/dist
find .vx -type f -size -1k -path '*/??/*' -exec sh -c 'for f; do chmod u+w "$f"; echo damage >"$f"; done' - {} +
run run other#build
exits 0 "a damaged store"
is "$(cat packages/other/dist/d/out)" "other one" "still gives the right output"
done_testing

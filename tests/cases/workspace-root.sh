#!/bin/sh
# SPDX-License-Identifier: MIT
# A task does not make its project, or a directory in it, the root of a workspace: who stands there later
# would run another vx.config.json. The file that could and has no name of its own is package.json.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

why='a workspace root'
all='{ "allow": { "write": ["**"] } }'

# TEXT NAME: written as a/package.json, it is refused. Without a text: a link.
refused() {
	rm -rf a
	printf '%s' "$1" >"$T/text"
	box "$all" <<-E
		mkdir a && echo fine >a/fine
		cp $T/text a/package.json
	E
	findings 1 "$2"
	reported write 'a/package\.json'
	said "$why" "$2: and why"
	is "$(ls a)" fine "$2: it is not there, the rest is"
}
refused '{ "name": "a", "workspaces": ["*"] }' "workspaces"
refused '{ "name": "a", "workspaces": { "packages": ["*"] } }' "workspaces as an object"
refused '{ "name": "a", "workspaces": [] }' "none of them"
refused '{ "work\u0073paces": ["*"] }' "an escape in the key"
refused '{ "workspaces": ["*"], "workspaces": null }' "the key twice"
refused "$(printf '\357\273\277{ "workspaces": ["*"] }')" "a byte order mark"

# TEXT NAME: written as a/package.json, vx does not take it for a root. So it may go there.
harmless() {
	rm -rf a
	printf '%s' "$1" >"$T/text"
	box "$all" <<-E
		mkdir a && cp $T/text a/package.json
	E
	findings 0 "$2"
	ok "$2: it is there" cmp "$T/text" a/package.json
	cd a || exit 99
	run run t
	cd .. || exit 99
	ok "$2: nor is it a root" test ! -e a/.vx
}
harmless '{ /* */ "workspaces": ["*"] }' "what only some read"
harmless '["workspaces"]' "no object"
harmless 'workspaces' "no JSON"
harmless '' "nothing at all"
harmless "$(printf '{ "workspaces": ["*"], "name": "%017000000d" }' 1)" "one that is too large to be read"

rm -rf a
box "$all" <<'E'
mkdir -p a/b a/c && cd a
echo '{ "workspaces": ["*"] }' >b/pkg.json
mv b/pkg.json b/PACKAGE.json
echo '{ "workspaces": ["*"] }' >c/manifest
ln -s manifest c/package.json
ln c/manifest package.json
E
findings 3 "renamed, in capitals; a link; a hard link"
is "$(find a ! -type d | sort | tr '\n' ' ')" "a/c/manifest " "none of them is there"

# What is harmless, or was so before, or is named.
rm -rf a
mkdir -p a/old
echo '{ "workspaces": ["x/*"] }' >a/old/package.json
box '{ "allow": { "write": ["**", "a/named/package.json"] } }' <<'E'
mkdir -p a/plain a/named a/node_modules/dep
echo '{ "name": "p", "dependencies": { "workspaces": "1" } }' >a/plain/package.json
echo '{ "workspaces": ["*"] }' >a/named/package.json
echo '{ "workspaces": ["*"] }' >a/node_modules/dep/package.json
echo '{ "workspaces": ["y/*"] }' >a/old/package.json
E
findings 0 "what may be kept"
is "$(find a -name package.json -exec cat {} + | grep -c .)" 4 "it is there"
like a/old/package.json 'y/' "a root that was one may be changed"
box "$all" <<'E'
echo '{ "workspaces": ["*"] }' >a/plain/package.json
E
findings 1 "a plain one gains workspaces"
like a/plain/package.json '"name": "p"' "it is as it was"

# The attack as a whole.
rm -rf a
mkdir -p p/sub
put p/vx.config.json <<'E'
{ "tasks": { "t": { "exec": { "command": "echo outer", "sandbox": {} } } } }
E
echo '{ "name": "p" }' >p/package.json
echo '{ "name": "w", "workspaces": ["p"] }' >package.json
put vx.config.json <<'E'
{ "tasks": { "t": { "exec": { "command": "printf '{ \"name\": \"p\", \"workspaces\": [\"sub\"] }' >p/package.json", "sandbox": { "allow": { "write": ["p"] } } } } } }
E
run run '//#t'
exits 1 "a task that would turn a project into a root"
cd p || exit 99
run run t
exits 0 "a run in that project"
ok "is one of the whole workspace" test ! -e .vx
cd ..

# The cache is no way around it, nor is a task without a sandbox.
rm -rf p package.json
cached() { # COMMAND OUTPUTS
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": {
			"exec": { "command": "$1" },
			"cache": { "inputs": { "files": ["vx.config.json"] }, "outputs": { "files": [$2] } } } } }
	E
	run run t
}
pkg="mkdir -p dist; echo '{ \\\"workspaces\\\": [] }' >dist/package.json"
cached "$pkg" '"dist/**"'
exits 0 "a task without a sandbox leaves a workspace root among its outputs"
said 'not saved: output dist/package\.json: .*workspace root.* unless cache\.outputs names it itself' \
	"its result is not saved, and why"
cached "mkdir -p dist; : >dist/package.json" '"dist/**"'
said_not 'not saved' "an empty one is saved"
rm -rf dist
run run t
said 'restored' "and restored"
cached "$pkg" '"dist/**", "dist/package.json"'
said_not 'not saved' "named, it is saved"
rm -rf dist
run run t
said 'restored' "and restored"
ok "with the file" test -s dist/package.json
cached "mkdir -p dist/.husky; echo x >dist/.husky/pre-push" '"dist/**"'
said 'not saved: output dist/\.husky: .* unless cache\.outputs names it itself' \
	"so it is with names that others obey"
cached "mkdir -p dist/.husky; echo x >dist/.husky/pre-push" '"dist/**", "dist/.husky"'
said_not 'not saved' "named, they are saved"
rm -rf dist
run run t
ok "and restored" test -s dist/.husky/pre-push
clean "workspace root"
done_testing

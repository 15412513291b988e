#!/bin/sh
# SPDX-License-Identifier: MIT
# A symbolic link opens nothing: it is read where its own name is granted, and what it leads to where
# that is. Else a task could put a link among its outputs and have the next one read whatever it chose.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
cd "$W" || exit 99

mkdir -p packages/a packages/b packages/other/deep packages/c
echo 'secret' >packages/other/secret
echo 'deep' >packages/other/deep/file
echo 'shared' >packages/c/shared
put vx.workspace.json <<'E2'
{ "projects": ["packages/*"] }
E2
put packages/other/vx.config.json <<'E2'
{ "name": "other" }
E2
put packages/c/vx.config.json <<'E2'
{ "name": "c" }
E2
# OUTPUTS: the task that plants links among its outputs.
planter() {
	rm -rf packages/a/dist
	put packages/a/vx.config.json <<-E2
		{ "name": "a", "tasks": { "build": {
			"exec": { "command": "mkdir dist && cd dist && ln -s ../../other/secret x && ln -s ../../other d && ln -s $W/packages/other/secret abs && ln -s ../../c/shared y && ln -s y hop && echo own >own && ln -s own l" },
			"cache": { "inputs": { "files": [] }, "outputs": { "files": [$1] } }
		} } }
	E2
}
# SANDBOX COMMAND: the task that is granted them. It depends on the other.
reader() {
	put packages/b/vx.config.json <<-E2
		{ "name": "b", "tasks": { "build": {
			"exec": { "command": "$2"$1 }, "dependsOn": ["a#build"],
			"cache": { "inputs": { "files": [] }, "outputs": { "files": [] } }
		} } }
	E2
	run run b#build --sandbox
}
steal='ls ../a/dist; cat ../a/dist/own ../a/dist/l; cat ../a/dist/x ../a/dist/d/secret ../a/dist/d/deep/file ../a/dist/abs ../a/dist/y ../a/dist/hop; exit 3'

for outputs in '"dist/**"' '"dist/*"' '"dist/?", "dist/{a??,h??,ow?}"'; do
	planter "$outputs"
	reader '' "$steal"
	exits 1 "derived grants, outputs $outputs"
	ok "the link was committed" test -L packages/a/dist/x
	said '^hop$' "the links are listed"
	is "$(grep -cx own "$OUT")" 3 "a link within the grant is followed"
	said_not '^(secret|deep|shared)$' "no other is"
	said 'hidden from it, outside its project; to show it: .*"packages/other"\]' "the target is named"
	said 'hidden from it, outside its project; to show it: .*"packages/c"\]' "so is the one behind two links"
done

planter '"dist/**"'
for read in '"../a/dist"' '"../a/dist/*"' '"../a/dist/**/*"' \
	'"../a/dist/own", "../a/dist/x", "../a/dist/d", "../a/dist/abs", "../a/dist/y", "../a/dist/hop", "../a/dist/l"'; do
	reader ", \"sandbox\": { \"allow\": { \"read\": [$read] } }" "$steal"
	exits 1 "allow.read $read"
	is "$(grep -cx own "$OUT")" 3 "a link within the grant is followed"
	said_not '^(secret|deep|shared)$' "no other is"
	said 'hidden from it, outside its project; to show it: .*"packages/other"\]' "the target is named"
done

# What the link leads to is granted by its own path.
reader ', "sandbox": { "allow": { "read": ["../a/dist", "../other/secret"] } }' \
	'cat ../a/dist/x ../a/dist/abs; cat ../a/dist/d/deep/file; exit 0'
exits 0 "granted by its own path"
is "$(grep -cx secret "$OUT")" 2 "it is read through the links"
said_not '^deep$' "and nothing beside it"

# What a package manager links in node_modules: packages, and places in a store. A link there to anything
# else opens no more than one elsewhere.
mkdir -p node_modules/.pnpm/dep/node_modules/dep packages/b/node_modules packages/c/src
echo dep >node_modules/.pnpm/dep/node_modules/dep/index
echo src >packages/c/src/index
ln -s .pnpm/dep/node_modules/dep node_modules/hoisted
ln -s ../../../node_modules/.pnpm/dep/node_modules/dep packages/b/node_modules/dep
ln -s ../../c packages/b/node_modules/c
ln -s ../packages/b node_modules/b
ln -s ../../other/deep packages/b/node_modules/deep
ln -s ../.. packages/b/node_modules/all
modules='cat ../../node_modules/hoisted/index node_modules/dep/index node_modules/c/src/index ../../node_modules/c/x; cat node_modules/deep/file node_modules/all/other/secret; exit 0'
put packages/b/vx.config.json <<E2
{ "name": "b", "tasks": { "look": { "exec": { "command": "$modules", "sandbox": {} } } } }
E2
run run b#look
exits 1 "links in node_modules"
is "$(grep -Ecx 'dep|src' "$OUT")" 3 "packages and stores are read through them"
said_not '^(secret|deep)$' "no other directory is"
said '^read packages/other(/deep)?  by cat' "what is linked and not granted is a finding"
rm -r packages/b/node_modules node_modules

# Where nothing is hoisted, what a package needs is linked in its own node_modules.
mkdir -p packages/app/node_modules packages/lib/node_modules packages/util
ln -s ../../lib packages/app/node_modules/lib
ln -s ../../util packages/lib/node_modules/util
echo util >packages/util/index
for project in lib util; do
	put packages/$project/vx.config.json <<-E2
		{ "name": "$project", "tasks": { "build": { "exec": { "command": "true" }, "dependsOn": ["^build"],
			"cache": { "inputs": { "files": ["index"] }, "outputs": { "files": [] } } } } }
	E2
	echo "{ \"name\": \"$project\" }" >packages/$project/package.json
done
echo lib >packages/lib/index
echo '{ "name": "lib", "version": "1.0.0", "dependencies": { "util": "*" } }' >packages/lib/package.json
echo '{ "name": "util", "version": "1.0.0" }' >packages/util/package.json
echo '{ "name": "app", "dependencies": { "lib": "*" } }' >packages/app/package.json
app() { # DEPENDS
	put packages/app/vx.config.json <<-E2
		{ "name": "app", "tasks": { "build": { "dependsOn": [$1],
			"exec": { "command": "cat node_modules/lib/index node_modules/lib/node_modules/util/index; exit 0" },
			"cache": { "inputs": { "files": ["package.json"] }, "outputs": { "files": [] } } } } }
	E2
	run run app#build --sandbox
}
app '"^build"'
exits 0 "a package that a linked package links"
is "$(grep -Ecx 'lib|util' "$OUT")" 2 "is read"
said_not 'not proven' "and all that can be read of the two is in the key"
echo 'throw 1' >packages/util/vx.workspace.mjs
echo more >>packages/util/index
app '"^build"'
exits 0 "what such a package says to vx"
said_not 'not proven' "cannot be read"
echo util >packages/util/README.md
echo more >>packages/util/index
app '"^build"'
exits 0 "a file of it that is in no key"
said 'not proven.*: (add|it may read) .*util/README.md' "can, and the note names it"
sed -i 's/"dependsOn": \["^build"\],//' packages/lib/vx.config.json
app '"^build"'
exits 1 "one of which the key has nothing"
said_not '^util$' "is not"
said '^read packages/util' "and that is told"
rm -r packages/app packages/lib packages/util

# In its own project such a read is a finding, with the grant to write.
ln -s ../b/own.txt packages/b/link
ln -s .. packages/b/up
echo mine >packages/b/own.txt
reader ', "sandbox": { "allow": { "read": ["link", "up"] } }' 'cat link; cat up/other/secret; exit 0'
exits 1 "a link to a file of its own"
said_not '^(mine|secret)$' "is not followed"
said '^read packages/b/own\.txt  by cat' "the target is the finding"
said 'allow\.read: \["own\.txt"\]' "with the grant to write"
done_testing

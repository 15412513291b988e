#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# npm ci in a granted node_modules, from a cache of npm at home: nothing is fetched.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program node npm openssl
export npm_config_update_notifier=false

# VERSION FILES: that version of the package `twice`. Its script is run where it is installed.
publish() {
	put "$T/$1/package/package.json" <<-J
		{ "name": "twice", "version": "$1", "bin": "twice.js", "scripts": { "postinstall": "echo $1 >installed" } }
	J
	printf '#!/usr/bin/env node\nconsole.log(2 * process.argv[2]);\n' >"$T/$1/package/twice.js"
	# As many packages do. It is obeyed in a repository, not here.
	mkdir "$T/$1/package/lib" "$T/$1/package/.github"
	echo 'github: twice' >"$T/$1/package/.github/FUNDING.yml"
	p_i=0
	while [ "$p_i" -lt "$2" ]; do
		p_i=$((p_i + 1))
		echo "$1" >"$T/$1/package/lib/$p_i.js"
	done
	tar -czf "$T/twice-$1.tgz" -C "$T/$1" package
}
# VERSION: what the project depends on, and the lockfile for it. (The host is never asked.)
depend() {
	d_digest=sha512-$(openssl dgst -sha512 -binary "$T/twice-$1.tgz" | base64 -w0)
	put package.json <<-J
		{ "name": "npm", "version": "1.0.0", "dependencies": { "twice": "$1" } }
	J
	put package-lock.json <<-J
		{
			"name": "npm", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
			"packages": {
				"": { "name": "npm", "version": "1.0.0", "dependencies": { "twice": "$1" } },
				"node_modules/twice": {
					"version": "$1", "resolved": "https://example.invalid/twice-$1.tgz", "integrity": "$d_digest", "hasInstallScript": true, "bin": { "twice": "twice.js" }
				}
			}
		}
	J
}

tool npm 'npm ci --offline' 'npm ci --offline --no-audit --no-fund' '"package.json", "package-lock.json"' '"node_modules/**"'
echo node_modules >>"$W/.gitignore"
publish 1.0.0 3
publish 2.0.0 1100
publish 3.0.0 2
ok "npm: they are in its cache" npm cache add --silent "$T/twice-1.0.0.tgz" "$T/twice-2.0.0.tgz" "$T/twice-3.0.0.tgz"
depend 1.0.0
works node_modules/twice/installed node_modules/twice/.github/FUNDING.yml node_modules/twice/lib/3.js node_modules/.package-lock.json
is "$(node_modules/.bin/twice 21)" 42 "npm: what it linked in .bin runs"
not_without package-lock.json 'read npm/package-lock.json'
not_without node_modules 'write npm/node_modules/.*'
derived

# Where another version is installed, and that has more files than are copied when a task starts.
depend 2.0.0
uncached
run run npm#t
silent "ci, over another version"
is "$(cat node_modules/twice/installed node_modules/twice/lib/1100.js | tr '\n' ' ')" "2.0.0 2.0.0 " "npm: ci: the new one is there"
COMMAND="npm ci --offline --no-audit --no-fund --cache $T/cache"
uncached
cp -R "$HOME/.npm" "$T/cache"
mv "$HOME/.npm" "$T/no-cache"
run run npm#t
silent "ci, over a large one, from a cache elsewhere, which is read-only"
mv "$T/no-cache" "$HOME/.npm"
depend 3.0.0
COMMAND='npm install --offline --no-audit --no-fund'
SANDBOX='{ "allow": { "read": ["package.json"], "write": ["package-lock.json", "node_modules"] } }'
uncached
run run npm#t
silent "install, over a large one"
is "$(cat node_modules/twice/installed node_modules/twice/lib/2.js | tr '\n' ' ')" "3.0.0 3.0.0 " "npm: install: the new one is there"
is "$(find node_modules/twice/lib -type f | wc -l)" 2 "npm: install: and of the old one nothing"
finish

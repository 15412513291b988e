#!/bin/sh
# SPDX-License-Identifier: MIT
# Where the cache lives: .vx/cache, or what the workspace says, or VX_CACHE_DIR, or --cache-dir; each outranks
# the one before.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

put vx.config.json <<'J'
{ "tasks": { "t": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }
J
# DIR...: of these, those that hold an index.
caches() {
	for dir in "$W/.vx/cache" "$W/said" "$T/env" "$T/flag"; do
		[ ! -e "$dir/index.db" ] || printf '%s ' "${dir##*/}"
	done
}

run run t
exits 0 "by default"
is "$(caches)" "cache " "it is in .vx"
echo '{ "cacheDir": "said" }' >vx.workspace.json
run run t
said '1 miss' "another directory is another cache"
is "$(caches)" "cache said " "the workspace says where"
export VX_CACHE_DIR="$T/env"
run run t
is "$(caches)" "cache said env " "VX_CACHE_DIR outranks it"
run run t --cache-dir "$T/flag"
is "$(caches)" "cache said env flag " "--cache-dir outranks that"
rm "$T/flag/index.db"
VX_CACHE_DIR='' run run t
is "$(caches)" "cache said env " "an empty variable says nothing"
# shellcheck disable=SC2088 # as it is
run run t --cache-dir '~/x'
exits 2 "a ~ that no shell has replaced"
said '^vx: --cache-dir=~/x: ~ is the shell.s, which leaves it as it is there: write --cache-dir ".HOME/…"$' "says so"
unset VX_CACHE_DIR
for dir in '~root/x' '~'; do
	echo "{ \"cacheDir\": \"$dir\" }" >vx.workspace.json
	run run t
	exits 2 "$dir"
	said "^vx: the cache directory \"$dir\": of homes only one's own is known: write ~/…, or the whole path$" "is not understood"
done
echo '{ "cacheDir": "~/said" }' >vx.workspace.json
try env -u HOME "$VX" run t
exits 2 "a home without a HOME"
said '^vx: the cache directory "~/said": HOME is not set: write the whole path$' "is not understood either"
HOME=$T try "$VX" run t
exits 0 "one with it"
ok "which holds the cache" test -e "$T/said/index.db"
is "$(find . -name '~*')" "" "and nothing is called ~"
done_testing

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
done_testing

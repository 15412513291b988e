#!/bin/sh
# SPDX-License-Identifier: MIT
# Second paths: what no task may see is not seen by any other path to it either, be that in the workspace, in the home or
# elsewhere, of the whole, of a part or of a single file. And a mount that shows nothing hidden stays.
# shellcheck disable=SC2016,SC2034 # the set-up's own variables; RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse

HOMEDIR=$T/home
H=$HOMEDIR
export W T H
if [ "$(id -u)" = 0 ]; then
	with_mounts() { unshare --mount "$@"; }
else
	with_mounts() { unshare --user --map-root-user --mount "$@"; }
fi
fresh() {
	rm -rf "$W" "${HOMEDIR:?}" "$T/else" "$T/cache" "$T/out.d"
	mkdir -p "$W/src/x" "$W/lib" "$W/priv/sub" "$W/p" "$W/dist/x" "$W/.vx/mine" "$HOMEDIR/.ssh" "$HOMEDIR/k" \
		"$T/else" "$T/out.d"
	echo s >"$W/src/s"
	touch "$W/src/f"
	for f in "$W/priv/key" "$W/priv/sub/key" "$W/.vx/mine/key" "$HOMEDIR/.ssh/key"; do
		echo the-secret >"$f"
	done
	echo shown-file >"$W/lib/key"
	echo shown-file >"$HOMEDIR/plain"
	echo shown-file >"$T/out.d/key"
	[ -z "${CACHE:-}" ] || make_cache
}
# What holds anything else is taken for no cache.
make_cache() {
	config transaction '{}' none
	(cd "$W" && HOME=$HOMEDIR "$VX" run t --cache-dir "$CACHE") >"$OUT" 2>&1 </dev/null
	echo the-secret >"$CACHE/key"
	rm -rf "$T/cache.d"
	cp -R "$CACHE" "$T/cache.d"
}
# SETUP-TEXT COMMAND...
cat >"$T/there.sh" <<'SH'
eval "$1" || exit 99
shift
exec "$@"
SH
# VIEW ALLOW-JSON PATHS
config() {
	put "$W/vx.config.json" <<-J
		{ "name": "w", "tasks": { "t": { "exec": { "command": "cat $3; ls -d $3; true", "sandbox": { "view": "$1", "allow": $2 } } } } }
	J
}
# SETUP: runs `vx run t` with it, in the workspace $AT.
run_there() {
	RC=0
	(cd "$W" && HOME=$HOMEDIR with_mounts sh "$T/there.sh" "$1" timeout 60 sh -c 'cd "$1" && shift && exec "$@"' - \
		"${AT:-$W}" "$VX" run t --force ${CACHE:+--cache-dir "$CACHE"}) >"$OUT" 2>"$ERR" </dev/null || RC=$?
	cat "$ERR" >>"$OUT"
}

# name | what is mounted | allowed | the path that is read | seen: shown, hidden, said (hidden, with a note)
rows() {
	while IFS='|' read -r name setup allow path want; do
		case $name in '' | \#*) continue ;; esac
		path=$(eval "echo $path")
		for view in transaction live; do
			fresh
			config "$view" "$(printf '%s' "$allow" | sed "s|@T|$T|g")" "$path"
			run_there "$setup"
			case $want in
			shown) like "$OUT" 'shown-file' "$view, $name: shown" ;;
			hidden | said) unlike "$OUT" 'the-secret' "$view, $name: hidden" ;;
			esac
			exits 0 "$view, $name: the task ran"
			is "$(grep -cE 'is not shown in the sandbox' "$OUT")" "$([ "$want" = said ] && echo 1 || echo 0)" \
				"$view, $name: what is said of it"
		done
	done
}

unset AT CACHE
rows <<'TABLE'
in the workspace, of vx's directory|mount --bind .vx src/x|{"read": ["src"]}|src/x/mine/key|said
in the workspace, of a part of it|mount --bind .vx/mine src/x|{"read": ["src"]}|src/x/key|said
in the workspace, of what is not granted|mount --bind priv src/x|{"read": ["src"]}|src/x/key|said
in the workspace, of a part of that|mount --bind priv/sub src/x|{"read": ["src"]}|src/x/key|said
in the workspace, of a file|mount --bind priv/key src/f|{"read": ["src"]}|src/f|said
in the workspace, named by a grant|mount --bind priv src/x|{"read": ["src/x", "src/x/key"]}|src/x/key|said
in the workspace, named by a pattern|mount --bind priv src/x|{"read": ["src/**"]}|src/x/key|said
in the workspace, of all of it|mount --bind . src/x|{"read": ["src", "priv/sub"]}|src/x/priv/key|said
in the workspace, of all of it with what is mounted|mount --rbind . src/x|{"read": ["src"]}|src/x/priv/key|said
in the workspace, where nothing is granted|mount --bind priv lib|{"read": ["src"]}|lib/key|hidden
in the workspace, of what is a mount itself|mount -t tmpfs none priv && echo the-secret >priv/key && mount --bind priv src/x|{"read": ["src"]}|src/x/key|said
in the workspace, of what is granted too|mount --bind lib src/x|{"read": ["src", "lib"]}|src/x/key|shown
in the workspace, of what is granted in part|mount --bind lib src/x|{"read": ["src", "lib/other"]}|src/x/none|said
in the workspace, of what is granted, to be written|mount --bind lib src/x|{"read": ["lib"], "write": ["src"]}|src/x/none|said
in the workspace, of another place|mount --bind "$T/out.d" src/x|{"read": ["src"]}|src/x/key|shown
in the workspace, of a credential store|mount --bind "$H/.ssh" src/x|{"read": ["src"]}|src/x/key|said
in the workspace, of a file of one|mount --bind "$H/.ssh/key" src/f|{"read": ["src"]}|src/f|said
in the workspace, of the home: its store|mount --bind "$H" src/x|{"read": ["src"]}|src/x/.ssh/key|said
in the home, of the workspace|mount --bind . "$H/k"|{"read": ["src"]}|$HOMEDIR/k/priv/key|hidden
in the home, of a part of it|mount --bind priv "$H/k"|{"read": ["src"]}|$HOMEDIR/k/key|hidden
in the home, of a store|mount --bind "$H/.ssh" "$H/k"|{"read": ["src"]}|$HOMEDIR/k/key|hidden
in the home, with nothing hidden|mount --bind "$T/out.d" "$H/k"|{"read": ["src"]}|$HOMEDIR/k/key|shown
elsewhere, of the workspace|mount --bind . "$T/else"|{"read": ["src"]}|$T/else/priv/key|hidden
elsewhere, of a part of it|mount --bind priv "$T/else"|{"read": ["src"]}|$T/else/key|hidden
elsewhere, of a file|touch "$T/else/f" && mount --bind priv/key "$T/else/f"|{"read": ["src"]}|$T/else/f|hidden
elsewhere, of vx's directory|mount --bind .vx "$T/else"|{"read": ["src"]}|$T/else/mine/key|hidden
elsewhere, of what is granted|mount --bind lib "$T/else"|{"read": ["lib"]}|$T/else/key|shown
elsewhere, of what holds the workspace|mount --bind "$T" "$T/else"|{"read": ["src"]}|$T/else/ws/priv/key|hidden
elsewhere, of what holds a home|mount --bind "$T" "$T/else"|{"read": ["src"]}|$T/else/home/.ssh/key|hidden
elsewhere, the rest of what holds them|mount --bind "$T" "$T/else"|{"read": ["src"]}|$T/else/out.d/key|shown
elsewhere, granted|mount --bind . "$T/else"|{"read": ["src", "@T/else/priv"], "write": ["@T/else"]}|$T/else/priv/key|hidden
elsewhere, over which something else is mounted|mount --bind priv "$T/else" && mount --bind "$T/out.d" "$T/else"|{"read": ["src"]}|$T/else/key|shown
in /tmp, granted|mkdir -p "/tmp/vx-else.$$" && mount --bind . "/tmp/vx-else.$$" && mount --bind "/tmp/vx-else.$$" "$T/else"|{"read": ["src"]}|$T/else/priv/key|hidden
TABLE
rmdir /tmp/vx-else.* 2>/dev/null

CACHE=$T/cache
rows <<'TABLE'
the cache elsewhere, in its place|true|{"read": ["src"]}|$T/cache/key|hidden
the cache elsewhere, in the workspace|mount --bind "$T/cache" src/x|{"read": ["src"]}|src/x/key|said
the cache elsewhere, in the home|mount --bind "$T/cache" "$H/k"|{"read": ["src"]}|$HOMEDIR/k/key|hidden
the cache elsewhere, and elsewhere|mount --bind "$T/cache" "$T/else"|{"read": ["src"]}|$T/else/key|hidden
TABLE
CACHE=$W/c
rows <<'TABLE'
the cache in the workspace|true|{"read": ["src", "c"]}|c/key|hidden
the cache in the workspace, by a second path in it|mount --bind c src/x|{"read": ["src", "c"]}|src/x/key|said
the cache in the workspace, elsewhere|mount --bind c "$T/else"|{"read": ["src", "c"]}|$T/else/key|hidden
the cache in the workspace, a mount of its own|mount -t tmpfs none c && cp -R "$T/cache.d/." c && mount --bind c src/x|{"read": ["src", "c"]}|src/x/key|said
TABLE
unset CACHE

# The workspace is itself a second path, or holds one that holds it.
AT=$T/else
rows <<'TABLE'
the workspace at a second path|mount --bind . "$T/else"|{"read": ["src"]}|$W/priv/key|hidden
the workspace at a second path, in place|mount --bind . "$T/else"|{"read": ["lib"]}|lib/key|shown
the workspace on a tmpfs, of which it is a part|mount -t tmpfs none "$T/out.d" && cp -R . "$T/out.d/ws" && mount --bind "$T/out.d/ws" "$T/else"|{"read": ["src"]}|$T/out.d/ws/priv/key|hidden
the workspace on an overlay|mkdir "$T/out.d/u" "$T/out.d/w" && mount -t overlay -o "userxattr,lowerdir=$W,upperdir=$T/out.d/u,workdir=$T/out.d/w" none "$T/else" && mount --bind "$T/else/priv" "$T/else/src/x"|{"read": ["src"]}|src/x/key|said
TABLE
AT=$W/dist/x
rows <<'TABLE'
the workspace bound into itself, and there|mount --bind . dist/x|{"read": ["src"]}|$W/priv/key|hidden
the workspace bound into itself, and there: what is granted|mount --bind . dist/x|{"read": ["lib"]}|lib/key|shown
TABLE
unset AT

# What is written by a second path reaches nothing.
for view in transaction live; do
	fresh
	put "$W/vx.config.json" <<-J
		{ "name": "w", "tasks": { "t": { "exec": { "command": "mkdir -p src/x/sub; echo bad >src/x/key; echo bad >src/x/sub/key; echo bad >src/f; rm -rf src/x; true",
			"sandbox": { "view": "$view", "allow": { "write": ["src"] } } } } } }
	J
	run_there 'mount --bind priv src/x && mount --bind priv/key src/f'
	is "$(cat "$W/priv/key" "$W/priv/sub/key")" "the-secret
the-secret" "$view: nothing is written or removed by a second path"
	like "$OUT" 'to allow it: no entry does, as what is mounted there has another path' "$view: no grant is offered for it"
	unlike "$OUT" 'allow\.write: \["src/' "$view: not even one"
done
fresh
put "$W/vx.config.json" <<'J'
{ "name": "w", "tasks": { "t": { "exec": { "command": "rm -rf dist; mkdir dist; echo o >dist/o", "sandbox": { "allow": { "write": ["dist"] } } },
	"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }
J
run_there 'mount --bind priv dist/x'
is "$(cat "$W/priv/key" "$W/priv/sub/key")" "the-secret
the-secret" "nor is it where that is an output"
done_testing

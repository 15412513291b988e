#!/bin/sh
# SPDX-License-Identifier: MIT
# Credential stores are hidden wherever a home is: the one that HOME names, the one of the password database,
# other users', above the workspace, the workspace itself, inside it. Each case reads the file of one store.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
require_fuse
cd "$W" || exit 99

# Run as root of a namespace of its own, where the password database is ours: root's home and another's.
mkdir -p "$T/pw" "$T/alice" "$T/home" "$W/p/inner"
cat >"$T/passwd" <<E
root:x:0:0::$T/pw:/bin/sh
alice:x:1005:1005::$T/alice:/bin/sh
E
cat >"$T/in.sh" <<'E'
mount --bind "$1" /etc/passwd && shift && exec "$@"
E
if [ "$(id -u)" = 0 ]; then
	inside() { unshare --mount sh "$T/in.sh" "$T/passwd" "$@"; }
else
	inside() { unshare --user --map-root-user --mount sh "$T/in.sh" "$T/passwd" "$@"; }
fi

echo '{ "projects": [".", "p"] }' >vx.workspace.json
config() { # DIRECTORY GRANTS NAME FILE: a task that reads the file and does not mind that it cannot
	cat >"$1/vx.config.json" <<E
{ "name": "$3", "tasks": { "t": { "exec": { "command": "cat $4 2>/dev/null; echo end",
	"sandbox": { "allow": { "read": [$2] } } } } } }
E
}
try_home() { # HOME ARGS...
	th_home=$1
	shift
	own
	RC=0
	HOME=$th_home inside timeout 60 "$VX" run "$@" >"$OUT" 2>"$ERR" </dev/null || RC=$?
}

# NAME | HOME | store's directory | what is asked for | project | grants | seen: said by name, hidden, shown
while IFS='|' read -r name home at store project grants want; do
	case $name in '' | \#*) continue ;; esac
	eval "home=$home at=$at"
	grants=$(printf '%s' "$grants" | sed "s|@T|$T|g")
	mkdir -p "$at/$(dirname "$store")"
	echo the-secret >"$at/$store"
	config . '"."' root true
	config p '"."' p true
	if [ "$project" = root ]; then config . "$grants" root "$at/$store"; else config p "$grants" p "$at/$store"; fi
	try_home "$home" "$project#t"
	case $want in
	shown)
		exits 0 "$name: runs"
		like "$OUT" the-secret "$name: shown"
		;;
	hidden)
		exits 0 "$name: runs"
		unlike "$OUT" the-secret "$name: hidden"
		;;
	said)
		exits 1 "$name: fails"
		unlike "$OUT" the-secret "$name: hidden"
		like "$OUT" "read +.*$(dirname "$store")" "$name: said by name"
		;;
	esac
	rm -rf "${at:?}/${store%%/*}"
done <<'TABLE'
HOME|$T/home|$T/home|.ssh/id|p|"."|said
HOME, deep|$T/home|$T/home|.config/gh/hosts.yml|p|"."|said
HOME, a file that tools read at each start|$T/home|$T/home|.npmrc|p|"."|hidden
HOME, granted|$T/home|$T/home|.ssh/id|p|".", "~/.ssh"|shown
HOME, in a store something else is granted|$T/home|$T/home|.aws/id|p|".", "~/.aws/config"|hidden
HOME, which is no home|/nonexistent|$T/home|.ssh/id|p|"."|shown
the password database|$T/home|$T/pw|.ssh/id|p|"."|hidden
the password database, HOME is empty||$T/pw|.ssh/id|p|"."|said
the password database, granted|$T/home|$T/pw|.ssh/id|p|".", "@T/pw/.ssh"|shown
another user|$T/home|$T/alice|.gnupg/key|p|"."|hidden
another user, a file|$T/home|$T/alice|.netrc|p|"."|hidden
HOME above the workspace|$T|$T|.ssh/id|p|"."|said
HOME is the workspace|$W|$W|.ssh/id|root|"."|said
HOME is the workspace, granted|$W|$W|.ssh/id|root|".", ".ssh/id"|shown
HOME is the workspace, another project|$W|$W|.aws/id|p|".", "../**"|hidden
HOME is the workspace, a file that tools read at each start|$W|$W|.npmrc|root|"."|hidden
HOME is in the workspace|$W/p/inner|$W/p/inner|.ssh/id|p|"."|said
HOME is elsewhere, the password database above the workspace|/|$T/pw|.ssh/id|p|"."|hidden
TABLE

# Links in the place of stores: whoever may write in a home can make one. LINK -> TARGET | what is read | seen
mkdir -p "$T/tool" "$W/plain"
config . '"."' root true
while IFS='|' read -r name link target file want; do
	case $name in '' | \#*) continue ;; esac
	eval "link=$link target=$target file=$file"
	mkdir -p "$(dirname "$file")" "$(dirname "$link")"
	echo the-secret >"$file"
	ln -s "$target" "$link"
	config p '"."' p "$file"
	try_home "$T/home" p#t
	exits 0 "$name: runs"
	case $want in
	shown) like "$OUT" the-secret "$name: its other end is shown" ;;
	hidden) unlike "$OUT" the-secret "$name: its other end is hidden" ;;
	esac
	rm -rf "${link:?}" "${T:?}/home" "${T:?}/alice" "${T:?}/tool"
	mkdir "$T/home" "$T/alice" "$T/tool"
done <<'TABLE'
another user, out of the home|$T/alice/.pgpass|$T/tool/h|$T/tool/h|shown
another user, a directory|$T/alice/.kube|$T/tool|$T/tool/h|shown
another user, to a home|$T/alice/.kube|$T/home/tool|$T/home/tool/h|shown
another user, in the home|$T/alice/.kube|dot/kube|$T/alice/dot/kube/h|hidden
another user, by an absolute path|$T/alice/.kube|$T/alice/dot|$T/alice/dot/h|hidden
another user, a link above the store|$T/alice/.config|dot|$T/alice/dot/gh/h|hidden
another user, the home itself|$T/alice/.kube|.|$T/alice/h|shown
another user, out and in|$T/alice/.kube|../alice/dot|$T/alice/dot/h|shown
HOME, out of the home|$T/home/.pgpass|$T/tool/h|$T/tool/h|shown
HOME, a directory|$T/home/.config/gh|$T/tool|$T/tool/h|shown
HOME, in the home|$T/home/.config/gh|../dot|$T/home/dot/h|hidden
TABLE

# The far end belongs to somebody else than the home: an owner's link does not make it a store. (Only root can
# make such files, and sees both owners.)
if [ "$(id -u)" = 0 ]; then
	mkdir "$T/alice/theirs"
	echo the-secret >"$T/alice/theirs/h"
	chown 1005 "$T/alice"
	ln -s theirs "$T/alice/.kube"
	config p '"."' p "$T/alice/theirs/h"
	try_home "$T/home" p#t
	like "$OUT" the-secret "an end that is not of the home's owner is shown"
	chown 1005 "$T/alice/theirs"
	try_home "$T/home" p#t
	unlike "$OUT" the-secret "one that is, is hidden"
	rm -rf "$T/alice"
	mkdir "$T/alice"
fi

# A store that may not be listed can be used all the same.
mkdir "$T/alice/.ssh"
echo the-secret >"$T/alice/.ssh/id"
config p '"."' p "$T/alice/.ssh/id"
chmod 0711 "$T/alice/.ssh"
if [ "$(id -u)" = 0 ]; then
	chmod 0755 "$T" "$T/alice" "$T/pw" "$T/home"
	chown -R 54321 "$W"
	own() { :; }
	inside() { unshare --mount sh "$T/in.sh" "$T/passwd" setpriv --reuid 54321 --regid 54321 --clear-groups "$@"; }
else
	chmod 0311 "$T/alice/.ssh"
fi
try_home "$T/home" p#t
exits 0 "a store of mode 0711: runs"
unlike "$OUT" the-secret "a store of mode 0711 is hidden"
chmod 0755 "$T/alice/.ssh"
done_testing

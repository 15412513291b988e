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
HOME is in the workspace|$W/p/inner|$W/p/inner|.ssh/id|p|"."|said
HOME is elsewhere, the password database above the workspace|/|$T/pw|.ssh/id|p|"."|hidden
TABLE
done_testing

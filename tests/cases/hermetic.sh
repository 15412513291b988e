#!/bin/sh
# SPDX-License-Identifier: MIT
# exec.sandbox.hermetic: of the machine the task sees its system and what it was granted, no more.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

# Not below /tmp, which is hidden anyway.
mkdir -p "$T/home/bin" "$T/home/.config" "$T/far/data" "$T/far/none"
export HOME="$T/home" PATH=/usr/local/bin:/usr/bin:/bin
echo c >"$T/home/.config/tool"
echo d >"$T/far/data/d"
echo in >in
printf '#!/bin/sh\necho from PATH\n' >"$T/home/bin/tool"
chmod 755 "$T/home/bin/tool"

# SANDBOX, stdin the command: all of it in the config, as $T is hidden.
hermetic() {
	put command.sh
	put vx.config.json <<-E
		{ "name": "w", "tasks": { "t": { "exec": { "command": "exec sh command.sh",
			"sandbox": { "hermetic": true, "allow": { "read": ["in", "command.sh"$1] }${2:-} } } } } }
	E
	run run t
}
before
hermetic '' <<E
cat in
ls -A ~ /var /home /root /srv /mnt 2>/dev/null | sed 's/^/listed /'
ls $T/far 2>/dev/null && echo visible
cat ~/.config/tool 2>/dev/null && echo visible
echo x >~/written && cat ~/written
mkdir /var/x || echo no mkdir
touch /var/x || echo no touch
ls /usr/bin >/dev/null && test -e /etc/passwd && echo system
E
exits 0 "the system is enough"
said '^in$' "the workspace is there"
said '^system$' "so is the system"
said_not '^visible$|listed [^/].*tool' "files of the machine are not"
said '^x$' "the home can be written"
said '^no mkdir$' "the rest cannot"
said '^no touch$' "not even files"
is "$(ls "$T/home")" bin "what was written at home is thrown away"
is "$(sed -n 's/^listed //p' "$OUT" | grep -vE '^(/|$|vx-test|tmp$)' | sort -u | tr '\n' ' ')" "" \
	"nothing is listed but the way to the workspace"
hermetic ", \"$T/far/data\", \"~/.config\"" <<E
cat $T/far/data/d ~/.config/tool
ls $T/far | sed 's/^/far /'
ls -A ~ | sed 's/^/home /'
E
exits 0 "what is granted"
said '^d$' "is seen"
said '^c$' "at home as well"
is "$(grep -E '^(far|home) ' "$OUT" | tr '\n' ';')" "far data;home .config;" "and nothing beside it"
if [ "$(id -u)" = 0 ] && [ -w / ]; then
	plain=$(mktemp /vx-test.XXXXXX)
	trap 'rm -f "$plain"; tap_cleanup' EXIT
	echo plain >"$plain"
	chmod 644 "$plain"
	hermetic '' <<-E
		cat $plain; echo read
	E
	rm -f "$plain"
	said '^read$' "a file in the root directory"
	said_not '^plain$' "is not seen"
fi
HOME=$T
hermetic '' <<'E'
cat in; ls -A ~ | sed 's/^/home /'
E
HOME=$T/home
said '^in$' "a workspace below the home is there"
is "$(grep '^home ' "$OUT")" "home ws" "and nothing beside it"
PATH=$T/home/bin:$PATH
hermetic '' <<'E'
tool; ls -A ~
E
said '^from PATH$' "what is in PATH is there"
said_not 'config' "and no more of the home"
hermetic '' ', "view": "live"' <<E
cat in; ls $T/far 2>/dev/null && echo visible
true
E
exits 0 "live"
said '^in$' "live: the workspace"
said_not '^visible$' "live: no more"
clean "hermetic"
done_testing

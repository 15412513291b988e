#!/bin/sh
# SPDX-License-Identifier: MIT
# What the command sees and what becomes of what it writes, in each way of building the view.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_sandbox

fresh() {
	rm -rf "$W" "$HOMEDIR" "$T/out.d"
	mkdir -p "$W/src/sub" "$W/priv" "$W/dist" "$HOMEDIR/.ssh" "$HOMEDIR/.config/gh" \
		"$HOMEDIR/.cache" "$T/out.d" "$T/hidden"
	echo s >"$W/src/s"
	echo sub >"$W/src/sub/f"
	echo k >"$W/priv/key"
	echo old >"$W/dist/old"
	echo secret >"$HOMEDIR/.ssh/id"
	echo secret >"$HOMEDIR/.config/gh/hosts.yml"
	echo plain >"$HOMEDIR/.config/plain"
	echo store >"$T/hidden/blob"
}

view() { # NAME OF THE MODE
	m=$1
	fresh
	box 'ls; cat src/s; cat priv/key; ls -a priv' 'read src'
	prints "src
s" "$m: granted is seen, the rest is not there"

	fresh
	ln -s ../priv/key "$W/src/l"
	ln -s ../priv "$W/src/d"
	ln -s "$W/priv/key" "$W/src/a"
	ln -s s "$W/src/i"
	box 'cat src/l src/d/key src/a; cat src/i; readlink src/l' 'read-glob src/*' 'read src/l' 'read src/d'
	prints "s
../priv/key" "$m: a link is granted, what it leads to is not"
	box 'cat src/l src/d/key src/a' 'read src' 'read priv/key'
	prints "k
k
k" "$m: unless that is granted by its own path"

	fresh
	box 'echo n >src/new; echo t >src/s; rm src/sub/f; mkdir -p lib/a; ln -s src lib/l; exit 3' \
		'read src' 'write lib'
	exits 3 "$m: the command's code"
	like "$ERR" '^vx-sandbox: dir \(merged\) 0755 src$' "$m: a directory over the host's"
	like "$ERR" '^vx-sandbox: file 0644 src/new$' "$m: a new file"
	like "$ERR" '^vx-sandbox: file 0644 src/s$' "$m: a changed file"
	like "$ERR" '^vx-sandbox: deleted 0000 src/sub/f$' "$m: a deleted file"
	like "$ERR" '^vx-sandbox: dir \(new\) 0755 lib/a$' "$m: a new directory"
	like "$ERR" '^vx-sandbox: link 0777 lib/l -> src$' "$m: a link with its target"
	is "$(cat "$W/src/s" "$W/src/sub/f"; ls "$W/src")" "s
sub
s
sub" "$m: the host is as before"

	fresh
	box 'ls dist; rm -rf dist && mkdir dist && echo 2 >dist/g; ls dist' 'output dist' 'write dist'
	exits 0 "$m: outputs are absent at start, and can be made"
	like "$ERR" '^vx-sandbox: file 0644 dist/g$' "$m: the new output is listed"
	is "$(cat "$W/dist/old")" old "$m: the old output still stands on the host"

	fresh
	box 'rm -rf src; mkdir src; echo 1 >src/x' 'write src' 'deny-write src/none'
	like "$ERR" '^vx-sandbox: dir \(replaces\) 0755 src$' "$m: a directory that replaces"

	fresh
	box 'rm -r src/sub' 'write src'
	like "$ERR" '^vx-sandbox: deleted 0000 src/sub$' "$m: a deleted directory"

	fresh
	box 'cat ~/.ssh/id; cat ~/.config/gh/hosts.yml; ls -A ~ ~/.config; cat ~/.config/plain; echo x >~/.cache/f; cat ~/.cache/f' \
		'read src'
	prints "$HOMEDIR:
.cache
.config

$HOMEDIR/.config:
plain
plain
x" "$m: credential stores are not there, the rest of home is, and writable"
	not_ok "$m: nothing of it reaches the host's home" test -e "$HOMEDIR/.cache/f"

	fresh
	box 'cat ~/.ssh/id; ls ~/.config/gh' 'read src' "read $HOMEDIR/.ssh"
	prints "secret" "$m: a store that is granted by name is there, no other"

	fresh
	echo known >"$HOMEDIR/.ssh/known_hosts"
	box 'ls ~/.ssh; cat ~/.ssh/known_hosts' 'read src' "read $HOMEDIR/.ssh/known_hosts"
	prints "known_hosts
known" "$m: a grant inside a store frees that path only"

	fresh
	box 'ls ~/.config/gh; echo w >~/.config/new' 'read src' "write $HOMEDIR/.config"
	prints "" "$m: a grant above a store does not free it"
	is "$(cat "$HOMEDIR/.config/new")" w "$m: and is live"

	fresh
	mkdir "$HOMEDIR/dot"
	mv "$HOMEDIR/.ssh" "$HOMEDIR/dot/ssh"
	ln -s dot/ssh "$HOMEDIR/.ssh"
	box "cat ~/.ssh/id ~/dot/ssh/id" 'read src' "store $HOMEDIR/dot/ssh"
	prints "" "$m: a store behind a link is hidden at both ends"

	fresh
	mkdir "$T/tool"
	echo tool >"$T/tool/t"
	rm -r "$HOMEDIR/.ssh"
	ln -s "$T/tool" "$HOMEDIR/.ssh"
	ln -s "$T/tool" "$HOMEDIR/.aws"
	ln -s "$T/tool/t" "$HOMEDIR/.netrc"
	ln -s "$T/tool" "$T/home2"
	box "cat ~/.ssh/t ~/.aws/t ~/.netrc; cat $T/tool/t" 'read src' "write $HOMEDIR/.config" \
		"store $HOMEDIR/.aws" "store $T/home2" "store $T/home2/t"
	prints "tool" "$m: a link in the place of a store hides nothing at its other end"
	ln -s "$T/tool" "$HOMEDIR/.config/hub"
	box "cat $T/tool/t; cat ~/.config/hub/t" 'read src' "write $HOMEDIR/.config" \
		"write $HOMEDIR/.aws/none" 'read .'
	like "$OUT" '^tool$' "$m: nor one below a grant, nor one in which something is granted"
	rm -r "$T/tool" "$T/home2"

	fresh
	box "echo 1 >$T/out.d/f; ls $T/hidden; echo 2 >$T/hidden/g; touch $T/x" 'read src' \
		"write $T/out.d" "hide $T/hidden"
	prints "" "$m: a hidden directory is empty"
	is "$(cat "$T/out.d/f")" 1 "$m: a write grant outside the workspace is live"
	is "$(ls "$T/hidden")" blob "$m: a hidden directory stays as it was"
	not_ok "$m: outside the grants the host is read-only" test -e "$T/x"

	fresh
	box "true" 'read src' "write $T/absent"
	exits 0 "$m: a write grant that does not exist is no failure"
	like "$ERR" "note: $T/absent, granted for writing, is not there: what the task writes there cannot be written; make it first" "$m: but it is said"
	fresh
	box "mkdir $HOMEDIR/absent" 'read src' "write $HOMEDIR/absent" "write /tmp/absent"
	exits 0 "$m: at home it can be made"
	like "$ERR" "note: $HOMEDIR/absent, granted for writing, is not there: what the task writes there is thrown away; make it first" \
		"$m: and it is said that it does not stay"
	like "$ERR" "note: /tmp/absent, .* is thrown away" "$m: as in /tmp"
	unlike "$ERR" 'allow\.write' "$m: in the words of the spec"
	not_ok "$m: nor does it" test -e "$HOMEDIR/absent"

	fresh
	chmod 750 "$W"
	box 'stat -c "%a %u" .' 'read src'
	prints "750 $(id -u)" "$m: the workspace shows its own mode and owner"
	chmod 755 "$W"
}

MODE=
if (exec 3<>/dev/fuse) 2>/dev/null; then
	view fuse
	box 'cat priv/key; cat priv/key; cat none' 'read src'
	like "$ERR" '^vx-sandbox: denied read priv by cat' "a denied read is reported with the program"
	is "$(grep -c 'denied read' "$ERR")" 1 "once"
	unlike "$ERR" 'denied read none' "a name that the host lacks is no denied read"
	MODE=attached
	view attached
fi
MODE=fuse-off
view wall
MODE="fuse-off
attached"
view 'wall, attached'
MODE=

fresh
box 'echo x >/tmp/f; ls /tmp; touch /dev/x; ls /dev/shm; echo y >/dev/shm/s; cat /dev/shm/s; ls /run; [ -c /dev/null ] && echo z >/dev/null && head -c3 /dev/zero | wc -c' \
	'read src'
prints "f
y
3" "/tmp, /dev, /dev/shm and /run are private"
box 'for d in /dev /dev/shm /run; do findmnt -no SOURCE --target $d | tail -1; done' 'read src'
prints "vx-dev
vx-shm
vx-run" "each is a mount of its own"

# what is in PATH, and the links on the way to it
theirs=$(mktemp -d /tmp/vx-test.XXXXXX) || exit 99
mkdir "$T/bin" "$theirs/real" "$theirs/bin" "$theirs/other"
for d in "$T/bin/a" "$theirs/real/b" "$theirs/bin/c"; do
	printf '#!/bin/sh\necho %s\n' "${d##*/}" >"$d"
	chmod 755 "$d"
done
chmod 755 "$theirs"
ln -s "$T/bin" "$theirs/first"
ln -s "../${theirs#/tmp/}/first" "$theirs/second"
ln -s real "$theirs/way"
ln -s ../way/../way "$theirs/other/way"
spec 'a; b; c; ls -A /tmp/*; ls "$D/other"; readlink "$D/second"' 'read src'
sed "s|^env PATH=|&$theirs/second:$theirs/other/way:$theirs/bin:/proc/self/none:/proc/self/cwd:/tmp/none:|
s|^arg sh|env D=$theirs\n&|" "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
prints "a
b
c
bin
first
other
real
second
way
way
../${theirs#/tmp/}/first" "entries of PATH in /tmp that are links, or behind links, are there, and nothing else"
rm -r "$theirs"

# a home that is one of them shows nothing of the host's
theirs=$(mktemp /tmp/vx-test.XXXXXX) || exit 99
for d in /tmp /dev/shm; do
	spec "ls -A $d; echo x >$d/x; cat $d/x" 'read src'
	sed "s|^home .*|home $d|" "$T/spec" >"$T/spec2"
	try "$VX_SANDBOX" --spec "$T/spec2"
	prints x "a home that is $d is fresh, and written to"
	is "$(cat "$ERR")" "" "a home that is $d: nothing is said"
done
rm "$theirs"

# a directory without a grant is where the command starts, and empty
fresh
spec 'pwd; ls -A' 'read src'
sed 's/^cwd .*/cwd priv/' "$T/spec" >"$T/spec2"
"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR"
prints "$W/priv" "an ungranted working directory is empty"

# root in a checkout of somebody else: files are made and changed, owners are what they are
if [ "$(id -u)" = 0 ]; then
	fresh
	chown -R 1000:1000 "$W"
	box 'echo n >src/n; echo t >>src/s; mkdir new; rm src/sub/f; stat -c "%u %n" . src src/s src/n new' 'write .'
	prints "1000 .
1000 src
1000 src/s
0 src/n
0 new" "root on a workspace of another user"
	is "$(stat -c %u "$S/u" "$S/u/src" "$S/u/src/s" | tr '\n' ' ')" "1000 1000 1000 " "and in the scratch"
	fresh
fi

# scratch in use
box true 'read src'
ok "the scratch is left for who made it" test -d "$S/u"
sed "s|^scratch .*|scratch $S|" "$T/spec" >"$T/spec2"
RC=0
"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" || RC=$?
exits 125 "a used scratch is refused"

box 'exit 7' 'read src'
exits 7 "exit code"
box 'kill -9 $$' 'read src'
exits 137 "death by signal, as a shell says it"

# the file to execute, and what it is called
box 'echo "$0"' 'read src' "program $(command -v sh)"
prints sh "the command is called as its first word says"
spec 'echo "$0"; tr "\0" " " </proc/$$/cmdline | head -c 8; echo' 'read src' "program $(command -v sh)"
sed 's/^arg sh$/arg my sh/' "$T/spec" >"$T/spec2"
"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR"
prints "my sh
my sh -c" "even where that is no program's name"
box true 'read src' "program $T/none/sh"
exits 127 "no such file to execute"
like "$ERR" "cannot run $T/none/sh: No such file" "it is named"

spec true 'read src'
sed -e '/^arg/d' -e 's/^end/arg no-such-program\nend/' "$T/spec" >"$T/spec2"
RC=0
"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" || RC=$?
exits 127 "no such program"
echo text >"$W/src/text"
sed -e '/^arg/d' -e 's|^end|arg ./src/text\nend|' -e "s|^scratch .*|scratch $T/sc3|" "$T/spec" >"$T/spec2"
mkdir "$T/sc3"
RC=0
"$VX_SANDBOX" --spec "$T/spec2" >"$OUT" 2>"$ERR" || RC=$?
exits 126 "a program that cannot be run"
# Containers are kept from the device by another one in its place.
if [ "$(id -u)" = 0 ]; then
	masked() { unshare --mount sh -c 'mount --bind /dev/null /dev/fuse && exec "$@"' - "$@"; }
else
	masked() { unshare --user --map-root-user --mount sh -c 'mount --bind /dev/null /dev/fuse && exec "$@"' - "$@"; }
fi
if [ -e /dev/fuse ]; then
	fresh
	spec 'cat src/s priv/key' 'read src'
	RC=0
	masked "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null || RC=$?
	prints s "/dev/fuse is another device: as if there were none"
fi

# A home whose group has no id in this user namespace: only a caller that maps itself alone meets it.
if [ "$(id -u)" = 0 ]; then
	chgrp 54321 "$HOMEDIR"
	spec 'echo up'
	RC=0
	unshare --user --map-root-user "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null ||
		RC=$?
	prints up 'a home of an unmapped group'
	chgrp 0 "$HOMEDIR"
fi

done_testing

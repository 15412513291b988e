#!/bin/sh
# SPDX-License-Identifier: MIT
# Lock files and the like at the root, which every key rests on: what happens when a task changes one.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$W" || exit 99

ran() { sort "$T/ran" | tr '\n' ' '; }
fresh() { : >"$T/ran"; }
# PROJECT DEPENDS-ON COMMAND
cached() {
	put "p/$1/vx.config.json" <<-E
		{ "name": "$1", "tasks": { "build": { "dependsOn": [$2], "exec": { "command": "echo $1.build >>$T/ran; $3" },
			"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
	E
	echo "$1" >"p/$1/in"
}
# COMMAND: the task of the root, cached or not (CACHE).
root() {
	put vx.config.json <<-E
		{ "name": "root", "tasks": { "install": { "exec": { "command": "echo install >>$T/ran; $1" }${CACHE:-} } } }
	E
}
echo '{ "projects": ["p/*"] }' >vx.workspace.json
echo 1 >yarn.lock
moved='yarn.lock changed: every key rests on it'

cached a '"root#install"' ''
cached b '"a#build"' ''
root 'echo 2 >yarn.lock'
fresh
run run b#build
exits 0 "a task that rewrites a lock file"
said "$moved" "is told"
is "$(cat "$OUT" "$ERR" | grep -c "$moved")" 1 "once"
fresh
run run b#build
is "$(ran)" "a.build b.build install " "nothing behind it was stored"
said_not "$moved" "the same content once more is no change"
fresh
run run b#build
is "$(ran)" "install " "and from then on it is"

root "cat $T/lock >yarn.lock"
echo 3 >"$T/lock"
run run b#build
run run b#build
echo 4 >"$T/lock"
fresh
run run b#build
is "$(ran)" "a.build b.build install " "what is stored for the old content is not taken"
said "$moved" "and it is told"
echo 3 >"$T/lock"
run run b#build
fresh
run run b#build
is "$(ran)" "install " "with the old content it is taken again"
root 'cat yarn.lock >n; mv n yarn.lock'
run run b#build
fresh
run run b#build
is "$(ran)" "install " "a new file with the old content is no change"
root 'rm yarn.lock'
fresh
run run b#build
is "$(ran)" "a.build b.build install " "a lock file that is removed"
said "$moved" "is told"
root 'echo 4 >bun.lock'
run run b#build
said 'bun.lock changed' "one that is made, too"
rm -f bun.lock

# Behind a link the content counts.
echo 1 >target
ln -s target yarn.lock
root 'echo 2 >target'
run run b#build
said "$moved" "one that is a link: what it leads to"
rm yarn.lock target
echo 1 >yarn.lock

# A cached task of the root: keys behind it wait for it.
CACHE=', "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } }'
echo 1 >in
root 'cat in >yarn.lock'
run run root#install b#build
said_not "$moved" "the same bytes, written by one that may"
said_not 'not saved' "are no change"
fresh
run run b#build
is "$(ran)" "" "all is stored"
echo 2 >in
fresh
run run b#build
is "$(ran)" "a.build b.build install " "the lock file is new, and with it all keys"
said "$moved" "which is told"
echo 1 >in
echo 1 >yarn.lock
fresh
run run b#build
is "$(ran)" "" "the old content: the old results"
sed -i 's/"files": \["in"\]/&, "tasks": []/' p/a/vx.config.json
run run b#build
fresh
run run b#build
is "$(ran)" "" "one that does not take in its key"
echo 2 >in
run run b#build
is "$(ran)" "a.build b.build install " "waits for it, too"
unset CACHE

# A task that changes it under its own feet, in any project; and one that runs meanwhile.
root true
fifo started changed
cached a '' "echo x >$T/started; read -r x <$T/changed"
cached b '' "read -r x <$T/started; echo 5 >../../yarn.lock; echo x >$T/changed"
fresh
run run build --all --concurrency 2
exits 0 "two tasks at once, one of which changes a lock file"
said "$moved" "it is told"
fresh
cached a '' "true"
cached b '' "true"
run run build --all
said_not "$moved" "nothing changes any more"
echo 1 >yarn.lock
run run build --all
cached a '' "echo x >$T/started; read -r x <$T/changed"
cached b '' "read -r x <$T/started; echo 5 >../../yarn.lock; echo x >$T/changed"
run run build --all --concurrency 2
fresh
run run build --all --concurrency 2
is "$(ran)" "a.build b.build " "neither was stored"

# One after the other: the second one finds the other lock file, and puts the first back.
echo 1 >yarn.lock
put p/a/vx.config.json <<E
{ "name": "a", "tasks": { "build": { "exec": { "command": "echo 5 >../../yarn.lock" } } } }
E
cached b '' "cat ../../yarn.lock >>$T/seen; echo 1 >../../yarn.lock"
run run build --all --concurrency 1
is "$(cat "$T/seen")" 5 "a task that starts with the changed lock file"
run run b#build
is "$(tr '\n' ' ' <"$T/seen")" "5 1 " "is not stored, though it is as before at its end"

# Another one for a while, and the first again before the command ends: it may have read the other. What
# starts later has not.
rm -r p/a p/b
fifo begun other was_read again
echo 1 >yarn.lock
meanwhile() { # SAVED NAME COMMAND-TO-CHANGE COMMAND-TO-CHANGE-BACK [OPTIONS]
	fresh
	cp -p yarn.lock "$T/first"
	# shellcheck disable=SC2086 # options
	bg run a#build z#build --concurrency 1 --force ${5:-}
	await begun >/dev/null
	eval "$3"
	echo x >"$T/other"
	await was_read >/dev/null
	eval "$4"
	echo x >"$T/again"
	bg_wait
	exits 0 "$2: it succeeds"
	is "$(ran)" "a.build z.build " "$2: both run"
	if [ "$1" = saved ]; then
		said_not 'not saved' "$2: it is saved"
	else
		said 'not saved: yarn.lock was written while it ran' "$2: it is not saved, and the file is named"
		is "$(grep -c 'not saved' "$OUT")" 1 "$2: it alone"
	fi
	said_not "$moved" "$2: all keys still say what is there"
}
both() { # OPTIONS KIND
	# shellcheck disable=SC2016 # for eval
	meanwhile unsaved "$2, written in place, with its times" 'echo 2 >yarn.lock' 'cp -p "$T/first" yarn.lock' "$1"
	# shellcheck disable=SC2016 # for eval
	meanwhile unsaved "$2, moved away" 'mv yarn.lock "$T/first"; echo 2 >yarn.lock' 'mv "$T/first" yarn.lock' "$1"
	meanwhile saved "$2, left alone" true true "$1"
}
put p/a/vx.config.json <<E
{ "name": "a", "tasks": { "build": {
	"exec": { "command": "echo a.build >>$T/ran; echo x >$T/begun; read -r x <$T/other; cat ../../yarn.lock; echo x >$T/was_read; read -r x <$T/again" },
	"cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } } } }
E
echo a >p/a/in
cached z '' true
both "" "a lock file"
if can_sandbox; then
	sed -i 's/echo [az].build >>[^;]*; //; s/"exec": {/& "sandbox": { "allow": { "read": ["..\/..\/yarn.lock"] } },/' p/?/vx.config.json
	fresh() { printf 'a.build\nz.build\n' >"$T/ran"; }
	both "--sandbox" "in a sandbox, a lock file"
	fresh() { : >"$T/ran"; }
else
	skip "the same in a sandbox" "no namespaces here"
fi
rm -r p/a p/z
mkdir p/a p/b
echo b >p/b/in

# bun applies patches that its lock only names.
rm -r yarn.lock vx.config.json p/a p/b
cached a '' true
mkdir patches
echo 1 >patches/x.patch
echo 1 >patches/other.patch
cat >bun.lock <<'E'
{
  "lockfileVersion": 1,
  "patchedDependencies": {
    "x@1.0.0": "patches/x.patch",
    "y@1.0.0": "../outside.patch",
    "z@1.0.0": "patches/missing.patch",
  },
}
E
edited() { # COMMAND WANT NAME
	fresh
	eval "$1"
	run run build --all
	exits 0 "$3"
	is "$(ran)" "$2" "$3"
}
edited : "a.build " "a lock file of bun"
edited : "" "as it was"
edited 'echo 2 >patches/x.patch' "a.build " "a patch that it names"
edited 'echo 2 >patches/other.patch' "" "one that it does not name"
edited 'echo 1 >patches/missing.patch' "a.build " "one that was missing"
cached a '' 'cd ../..; mv patches p2; cp -r p2 patches; echo 9 >patches/x.patch; cat patches/x.patch; rm -r patches; mv p2 patches'
run run --all build
said 'not saved: patches was written while it ran' "the directory of the patches, swapped and swapped back"
mv patches real
ln -s real patches
run run build --all
exits 2 "patches behind a link"
said 'bun.lock: the patch patches/.*.patch lies behind a link' "are refused, by name"
rm patches
mv real patches
cached a '' 'echo 3 >../../patches/x.patch'
run run build --all
said 'patches/x.patch changed: every key rests on it' "a patch that a task rewrites"
echo '{ "patchedDependencies": { ]' >bun.lock
run run build --all
exits 2 "a lock file of bun that cannot be read"
said 'bun.lock:1:' "is named, with the place"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# vx-sandbox used by a person, as vx-sandbox(1) has it.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"

try "$VX_SANDBOX" --help
exits 0 "--help"
like "$OUT" '^usage: vx-sandbox --spec FILE$' "--help: how it is called"
try "$VX_SANDBOX" --version
exits 0 "--version"
is "$(cat "$OUT")" "$("$VX" version)" "--version: is that of vx"
for args in '' '--spec' '--spec a b' '--nonsense' '1 2 3' '4 5 6'; do
	# shellcheck disable=SC2086 # words
	try "$VX_SANDBOX" $args
	exits 125 "usage: '$args'"
	like "$ERR" '^usage: ' "usage: '$args': says how"
done

# What is wrong with a spec is said with the line, and nothing is made.
bad() { # NAME MESSAGE SED-SCRIPT
	spec true
	sed "$3" "$T/spec" >"$T/spec2"
	try "$VX_SANDBOX" --spec "$T/spec2"
	exits 125 "$1: exit code"
	like "$ERR" "^vx-sandbox: $2" "$1: message"
	is "$(ls -A "$S")" "" "$1: nothing is in the scratch"
}
bad 'another version' 'spec: line 1 is "vx-spec 2", and "vx-spec 1" is what this version reads$' '1s/1/2/'
bad 'lines of another system' 'spec: line 1 is "vx-spec 1.*", and "vx-spec 1"' "s/\$/$(printf '\r')/"
bad 'an empty file' 'spec: no line "end"' d
bad 'no end' 'spec: no line "end"' '/^end$/d'
bad 'an unknown word' 'spec: line 3: unknown word "cdw"$' 's/^cwd/cdw/'
bad 'an unknown word with control bytes' 'spec: line 3: unknown word "c\\x1b"' "s/^cwd/c$(printf '\033')/"
bad 'an empty line' 'spec: line 3: it is empty' 's/^cwd.*//'
bad 'a blank before a word' 'spec: line 3: it begins with a blank' 's/^cwd/ cwd/'
bad 'a word twice' 'spec: line 4: cwd: given twice$' 's/^cwd.*/&\n&/'
bad 'no command' 'spec: no line "arg"$' '/^arg/d'
bad 'a slash at the end' "spec: line 3: cwd: a path from the workspace without .* a slash at the end is due" 's/^cwd.*/cwd a\//'
bad 'a way out' 'spec: line 3: cwd: a path from the workspace' 's/^cwd.*/cwd ../'
bad 'a relative workspace' 'spec: line 2: workspace: an absolute path' 's/^workspace.*/workspace w/'
bad 'a variable without a value' 'spec: line [0-9]+: env: NAME=value is due$' 's/^env PATH.*/env PATH/'
bad 'a bad pattern' "rule \"\\{a\": '\\{a': '\\{' without '\\}'" 's/^cwd.*/&\nread-glob {a/'
bad 'a deny outside' 'spec: line 4: deny-read: no absolute path is due: "store" and "hide" are for such' 's/^cwd.*/&\ndeny-read \/etc/'
bad 'a flag with a value' 'spec: line 4: nested: no value is due$' 's/^cwd.*/&\nnested yes/'
bad 'a workspace that is not there' 'cannot open the workspace /none: No such file.*; name a directory' 's/^workspace.*/workspace \/none/'
ln -s "$W" "$T/link"
bad 'a workspace that is a link' "cannot open the workspace .*/link: .*; name a directory that is there, by its path without links" \
	"s|^workspace.*|workspace $T/link|"
try "$VX_SANDBOX" --spec "$T/unused"
exits 125 'a file that is not there'
like "$ERR" "^vx-sandbox: cannot open .*/unused: No such file" "a file that is not there: message"
rmdir "$S"
try "$VX_SANDBOX" --spec "$T/spec"
exits 125 'a scratch that is not there'
like "$ERR" "^vx-sandbox: cannot enter the scratch $S: No such file .*; make it: mkdir -p $S\$" \
	'a scratch that is not there: message'
require_sandbox

# Nothing that a person cannot remove is left.
box 'echo x >new; echo x >~/new' 'read .'
is "$(stat -c %a "$S/w/work" "$S/hw/work")" '700
700' "the overlays' own directories can be entered"
ok "a scratch can be removed" rm -r "$S"
unlike "$ERR" 'fuse' "nothing is said of /dev/fuse"

# Without /dev/fuse nobody hears of denied reads, and that is said.
echo s >"$W/secret"
box 'cat secret' fuse-off
unlike "$OUT" . "without /dev/fuse: denied"
like "$ERR" '^vx-sandbox: note: /dev/fuse cannot be used: .* denied reads are not printed$' "without /dev/fuse: and said"
rm "$W/secret"

# The scratch is one, and nobody sees it from behind.
echo keep >"$W/keep"
spec true 'read .'
sed "s|^scratch .*|scratch $W|" "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
exits 125 "a workspace as its own scratch"
like "$ERR" 'the scratch .* is in use; give an empty directory' "is refused"
is "$(ls "$W")" keep "and nothing is made in it"
spec true 'read .'
mkdir "$T/empty"
sed "s|^scratch .*|scratch $T/empty|; s|^workspace .*|workspace $T/empty|" "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
exits 125 "so is an empty one"
is "$(ls -A "$T/empty")" "" "in which nothing is made"
box 'echo x >new' 'read .'
try "$VX_SANDBOX" --spec "$T/spec"
exits 125 "the scratch of a command that was"
like "$ERR" 'is in use; give an empty directory, another for each command' "is used once"
spec 'ls -A; ls s; echo x >new; cat new' 'read .' 'write new'
mkdir "$W/s"
sed "s|^scratch .*|scratch $W/s|" "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
prints "keep
x" "a scratch in the workspace is hidden"
like "$ERR" '^vx-sandbox: file 0[0-9]* new$' "and works"
chmod -R u+rwX "$W/s"
rm -r "$W/s"

if unshare --user --map-root-user --mount mount -t ramfs none "$T/empty" 2>/dev/null; then
	spec true 'read .'
	sed "s|^scratch .*|scratch $T/empty|" "$T/spec" >"$T/spec2"
	try unshare --user --map-root-user --mount sh -c 'mount -t ramfs none "$1" && exec "$2" --spec "$3"' - \
		"$T/empty" "$VX_SANDBOX" "$T/spec2"
	exits 125 "a scratch without extended attributes"
	like "$ERR" 'the scratch .* cannot hold what is written: .*; give one on a disk' "is refused"
fi

# Exit codes.
for c in 'exit 7:7' 'exit 300:44' 'kill -9 $$:137' 'kill -TERM $$:143' 'nosuch-program:127'; do
	box "${c%:*}"
	exits "${c##*:}" "exit code of: ${c%:*}"
done
spec true
sed 's/^arg sh/arg nosuch/' "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
exits 127 "a program that is not there"
like "$ERR" 'cannot run nosuch: No such file' "is named"
spec true 'read .'
sed 's/^arg sh/arg .\/keep/' "$T/spec" >"$T/spec2"
try "$VX_SANDBOX" --spec "$T/spec2"
exits 126 "a file that is no program"

# Signals are for the command. Nothing else is, that the caller has.
fifo up never
hand() { # TEXT COMMAND...: started as $BOX
	spec "$1" 'read .'
	shift
	"$@" "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null &
	BOX=$!
	await up >/dev/null
}
wait_box() {
	RC=0
	wait "$BOX" || RC=$?
}
waits="read -r x <$T/never"
for s in INT:INT TERM:TERM HUP:TERM; do
	# A shell has what it starts with "&" ignore INT and QUIT.
	hand "trap 'echo got ${s#*:}; echo x >made; exit 9' ${s#*:}; echo up >$T/up; while :; do $waits; done" \
		env --default-signal
	kill "-${s%:*}" "$BOX"
	wait_box
	exits 9 "SIG${s%:*} is handed to the command"
	prints "got ${s#*:}" "SIG${s%:*}: its trap ran"
	like "$ERR" '^vx-sandbox: file 0[0-9]* made$' "SIG${s%:*}: what it wrote is told"
done
hand "trap '' INT TERM HUP; echo x >made; echo up >$T/up; while :; do $waits; done" env --default-signal
kill -TERM "$BOX"
kill -QUIT "$BOX"
wait_box
exits 137 "SIGQUIT kills it"
like "$ERR" '^vx-sandbox: file 0[0-9]* made$' "and what it wrote is told"
hand "trap 'exit 9' TERM; echo up >$T/up; while :; do $waits; done" nohup
kill -HUP "$BOX"
kill -TERM "$BOX"
wait_box
exits 9 "under nohup"
rm -f "$T/never"
spec 'cat <&3' 'read .'
try sh -c 'printf "one\nTERM\nKILL\ntwo\n" | (exec 3<&0; "$1" --spec "$2" </dev/null 2>"$3"; cat <&3)' - \
	"$VX_SANDBOX" "$T/spec" "$T/err3"
prints 'one
TERM
KILL
two' "fd 3 is the caller's: it is not read"
like "$T/err3" '3: Bad file descriptor' "and not handed to the command"

# Odd surroundings.
fine() { # NAME COMMAND...
	fine=$1
	shift
	spec "cat keep; echo x >new" 'read .'
	try "$@" "$VX_SANDBOX" --spec "$T/spec"
	exits 0 "$fine"
	prints keep "$fine: reads"
	like "$ERR" '^vx-sandbox: file 0[0-9]* new$' "$fine: what was written is told"
}
fine 'no environment' env -i
fine 'a session of its own' setsid -w
fine 'timeout' timeout 60
fine 'nice' nice -n 19
mkdir "$T/gone"
fine 'a working directory that is gone' sh -c 'cd "$1" && rmdir "$1" && shift && exec "$@"' - "$T/gone"
# (Sanitizers need terabytes.)
if prlimit --as=67108864 "$VX_SANDBOX" --version >/dev/null 2>&1; then
	fine 'little address space' prlimit --as=67108864
fi
fine 'a small stack' prlimit --stack=131072
fine 'nothing locked' prlimit --memlock=0
spec "cat keep; echo x >new" 'read .'
try sh -c 'exec <&- >&- 2>&-; exec "$@"' - "$VX_SANDBOX" --spec "$T/spec"
exits 0 "without 0, 1 and 2"
ok "and nothing of it goes astray" grep -qx x "$S/u/new"
spec true 'read .'
try prlimit --nofile=12 "$VX_SANDBOX" --spec "$T/spec"
exits 125 "few descriptors"
like "$ERR" 'No file descriptors available|Too many open files' "few descriptors: cause"
like "$ERR" '; raise the limit on open files' "few descriptors: remedy"
# The copy of a granted directory at the start is of vx-sandbox's own writing.
mkdir "$W/big"
head -c 300000 /dev/zero >"$W/big/f"
spec true 'write big'
RC=0
sh -c 'ulimit -f 100; exec "$@"' - "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" || RC=$?
unlike "$OUT" . "a limit on the size of files"
ok "is no sudden death" test "$RC" -ne 153

# The example of the manual.
cd "$W" || exit 99
mkdir -p src build
echo int >src/a.c
printf 'test:\n\tcat src/a.c; echo made >build/a.o; echo y >stray; cat secret || true\n' >Makefile
echo s >secret
mkdir "$T/manual"
sed -n '/^\$ mkdir/,/^\$ vx-sandbox/p' "$VX_SRCDIR/docs/man/vx-sandbox.1" | sed -e 's/^\$ //' \
	-e "s|/var/tmp/scratch|$T/manual/s|; s|/tmp/spec|$T/manual/spec|; s|vx-sandbox --|$VX_SANDBOX --|" \
	-e 's/\\e/\\/g; s/\\-/-/g' >"$T/manual/example"
if command -v make >/dev/null; then
	try sh "$T/manual/example"
	exits 0 "the manual's example"
	like "$OUT" '^int$' "reads what it is granted"
	for line in 'denied probe test by make \(pid [0-9]+\)' 'denied read secret by cat \(pid [0-9]+\)' 'file 0[0-9]* stray' \
		'dir \(merged\) 0[0-9]* build' 'file 0[0-9]* build/a.o'; do
		like "$ERR" "^vx-sandbox: $line\$" "and tells: $line"
	done
	ok "its scratch can be removed" rm -r "$T/manual/s"
fi
done_testing

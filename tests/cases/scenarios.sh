#!/bin/sh
# shellcheck disable=SC2317 # rows are called by name
# SPDX-License-Identifier: MIT
# The scenario table of the sandbox's specification, a point of the test for each row. Where vx does
# otherwise, docs/SANDBOX.md says why ("Where the table differs"), and the text of the row says "differs".
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3 git flock

# --- one row -----------------------------------------------------------------------------------

# A workspace with .git, the project app and its sibling lib.
fresh() {
	cd "$T" || exit 99
	chmod -R u+rwX "$W"
	rm -rf "$W"
	mkdir -p "$W/app/src" "$W/app/docs" "$W/lib"
	cd "$W" || exit 99
	echo '{ "projects": ["app", "lib"] }' >vx.workspace.json
	echo '{ "name": "lib" }' >lib/vx.config.json
	echo .vx >.gitignore
	echo a >app/a.txt
	echo readme >app/README
	echo secret >app/secret.txt
	echo s >app/src/s
	echo secret >app/src/secret
	echo doc >app/docs/doc
	echo libx >lib/x
	git_ init -q
}
# SANDBOX COMMAND [MORE]: the task app#t; MORE is text after its exec. The command is JSON text.
task() {
	put app/vx.config.json <<-E
		{ "name": "app", "tasks": { "t": {
			"exec": { "command": "exec 7<>$T/alive; $2", "sandbox": $1 } ${3:-}
		} } }
	E
}
app() {
	task "$@"
	run run app#t
}
# Conditions. What does not hold says so, with what vx said.
no() {
	echo "not so: $*"
	cat "$OUT" "$ERR"
	return 1
}
ends() { [ "$RC" = "$1" ] || no "exit code $1, but $RC"; }
line() { grep -qE -e "$1" "$OUT" "$ERR" || no "a line $1"; }
no_line() { ! grep -qE -e "$1" "$OUT" "$ERR" || no "no line $1"; }
passes() { ends 0 && no_line 'sandbox violation'; }
violation() { # N LINE...: the task fails with that many, which are named
	ends 1 && line "failed \\(exit [0-9]+, $1 sandbox violations?\\)" || return
	shift
	for v_line; do
		line "^$v_line(  by .*)?\$" || return
	done
}
holds() { "$@" || no "$*"; }
absent() { holds test ! -e "$1"; }
# What the command printed: a line of its own.
printed() { line "^$1\$"; }

# NUMBER TEXT: the function row_NUMBER, in a fresh workspace, and check Z after it.
row() {
	fresh
	ok "row ${1%%_*}: $2" all_of "row_$1"
}
all_of() {
	"$1" && holds all_gone &&
		holds test -z "$(find .vx/scratch -mindepth 1 -maxdepth 1 2>/dev/null)" &&
		holds test -z "$(cat /proc/self/mountinfo /proc/net/unix | grep -F "$T")"
}
# FIELD: this vx has it. Else the row waits for it, with its number.
has_field() { # FIELD SANDBOX
	fresh
	task "$2" true
	run run app#t --dry
	! grep -qE "$1.*is not in this vx yet" "$OUT" "$ERR"
}

# --- the table ---------------------------------------------------------------------------------

row_1() {
	app '{}' 'ls -A; true' && passes && no_line '^(a\.txt|README|src|vx\.config\.json)$'
}
row 1 '{}, true: the directory is empty'

row_2() {
	app '{}' 'cat a.txt || true' && violation 1 'read app/a\.txt' && no_line '^a$'
}
row 2 '{}, cat a.txt || true: fails though the exit is 0'

row_3() {
	app '{ "allow": { "read": ["."] } }' 'cat a.txt' && passes && printed a
}
row 3 "read ['.'], cat a.txt"

row_4() {
	app '{ "allow": { "read": ["."] } }' 'cat ../lib/x || true' && passes && no_line '^libx$' &&
		app '{ "allow": { "read": ["."] } }' 'cat ../lib/x' && ends 1 &&
		no_line 'sandbox violation' && line '^note: hidden from it.*allow\.read: \["\.\./lib"\]'
}
row 4 "read ['.'], cat ../lib/x || true: stopped at the wall, noted when the task fails"

row_5() {
	app '{ "allow": { "read": ["src/**"] } }' 'cat README || true' && violation 1 'read app/README'
}
row 5 "read ['src/**'], cat README || true"

row_6() {
	app '{ "allow": { "read": ["."] } }' 'test -e nosuch || true' && passes
}
row 6 "read ['.'], test -e nosuch || true"

row_7() {
	app '{ "allow": { "read": ["src"] } }' 'test -e README || true' && violation 1 'read app/README'
}
row 7 "read ['src'], test -e README || true: stat is seen as open is"

row_7b() {
	app '{ "allow": { "read": ["src"] } }' 'test -e nosuch || true' && passes
}
row 7b "read ['src'], test -e nosuch || true: a probe"

row_7c() {
	app '{ "allow": { "read": ["src"] } }' 'cat nosuch || true' && passes &&
		line '^cat: nosuch: No such file or directory$'
}
row 7c "read ['src'], cat nosuch || true: differs, a probe too"

row_7d() {
	app '{ "allow": { "read": ["src"] } }' 'cd docs || true' && violation 1 'read app/docs'
}
row 7d "read ['src'], cd docs || true"

row_7e() {
	app '{ "allow": { "read": ["src/s"] } }' 'cd src && cat secret || true' &&
		violation 1 'read app/src/secret'
}
row 7e "read ['src/s'], cd src && cat secret || true: named by where it is"

if has_field ignore '{ "ignore": { "read": ["src/secret"] } }'; then
	row_7e_ignore() {
		app '{ "allow": { "read": ["src/s"] }, "ignore": { "read": ["src/secret"] } }' \
			'cd src && cat secret || true' && passes && no_line '^secret$' &&
			app '{ "allow": { "read": ["src/s"] }, "ignore": { "read": ["secret"] } }' \
				'cd src && cat secret || true' && violation 1 'read app/src/secret'
	}
	row 7e_ignore "and ignore matches that path"
else
	skip "row 7e: and ignore matches that path" "exec.sandbox.ignore is not in this vx yet"
fi

row_8() {
	app '{ "allow": { "read": ["."] } }' 'echo x > gen.txt || true' &&
		violation 1 'write app/gen\.txt' && absent app/gen.txt
}
row 8 "read ['.'], echo x > gen.txt || true"

row_9() {
	app '{ "allow": { "read": ["."], "write": ["dist/"] } }' 'mkdir -p dist; echo x > dist/a' &&
		passes && holds grep -q x app/dist/a &&
		app '{ "allow": { "read": ["."], "write": ["dist/"] } }' 'echo y > dist/a' &&
		passes && holds grep -q y app/dist/a
}
row 9 "read ['.'] write ['dist/'], echo x > dist/a"

row_10() {
	echo out >app/out.txt
	app '{ "allow": { "write": ["out.txt"] } }' 'cat secret.txt; true' &&
		violation 1 'read app/secret\.txt' && no_line '^secret$'
}
row 10 "write ['out.txt'], cat secret.txt: differs, it is not widened, so the file is not there"

row_11() {
	echo out >app/out.txt
	app '{ "allow": { "write": ["out.txt"] } }' 'cat out.txt' && passes && printed out
}
row 11 "the same, cat out.txt"

row_12() {
	app '{ "allow": { "write": ["dist/x"] } }' 'test ! -e dist; mkdir -p dist; mkdir dist/x; echo 1 >dist/x/y' &&
		passes && holds test -f app/dist/x/y
}
row 12 "write ['dist/x'], mkdir dist/x: differs, no placeholder stands there"

row_13() {
	mkdir app/dist
	echo old >app/dist/old
	app '{ "allow": { "write": ["dist/**"] } }' 'rm -rf dist' && passes && absent app/dist/old &&
		app '{ "allow": { "write": ["dist/**"] } }' 'rm -rf dist; mkdir dist; echo n >dist/new' &&
		passes && holds test -f app/dist/new
}
row 13 "write ['dist/**'], rm -rf dist: differs, it works"

row_14() {
	app '{ "allow": { "read": ["."], "write": ["gen/*.txt"] } }' 'mkdir gen; echo x >gen/a.txt' &&
		passes && holds grep -q x app/gen/a.txt && no_line '^note' &&
		app '{ "allow": { "read": ["."], "write": ["gen/*.txt"] } }' 'echo x >gen/b.md' &&
		violation 1 'write app/gen/b\.md' && absent app/gen/b.md
}
row 14 "write ['gen/*.txt'] where nothing is yet: differs, what is made there is granted"

row_15() {
	app '{ "allow": { "write": [".*.tmp/**"] } }' \
		'mkdir .x.tmp; echo 1 >.x.tmp/f; cat .x.tmp/f; rm -r .x.tmp' && passes && printed 1 &&
		holds test -z "$(find app -name '.*.tmp')"
}
row 15 "write ['.*.tmp/**']: a tool's own place, of which nothing is left"

row_16() {
	mkdir -p pkg/nested
	echo n >pkg/nested/n
	echo '{ "name": "nested" }' >pkg/nested/vx.config.json
	echo '{ "projects": ["app", "lib", "pkg/nested"] }' >vx.workspace.json
	put vx.config.json <<-'E'
		{ "name": "root", "tasks": { "t": { "exec": {
			"command": "cat .git/config; ls pkg/nested; cat .gitignore",
			"sandbox": { "allow": { "read": ["."] } }
		} } } }
	E
	run run root#t
	violation 2 'read \.git' 'read pkg/nested' && no_line 'repositoryformatversion' &&
		no_line '^n$' && printed '\.vx'
}
row 16 "root project, read ['.'], cat .git/config, ls pkg/nested: walls"

row_17() {
	put vx.config.json <<-'E'
		{ "name": "root", "tasks": { "t": { "exec": {
			"command": "echo x >out.txt; test ! -e .git",
			"sandbox": { "allow": { "write": ["out.txt"] } }
		} } } }
	E
	run run root#t
	violation 1 'read \.git' && holds grep -q x out.txt
}
row 17 "root project, write ['out.txt']: differs, that file alone is granted"

row_18() {
	ln -s ../lib/x app/x
	app '{ "allow": { "write": ["x"] } }' 'echo 1 >x' && ends 1 && holds grep -qx libx lib/x &&
		line "'x' leads through a link to .*lib/x: remove the link" && no_line '^read|^write'
}
row 18 "write grant x -> ../lib/x: refused, the link is named"

# npm's layout: node_modules/lib at the root is a link.
npm() {
	mkdir node_modules
	ln -s ../lib node_modules/lib
	ln -s ../app node_modules/app
	echo '{ "name": "root", "private": true, "workspaces": ["app", "lib"] }' >package.json
	echo '{ "name": "lib", "version": "1.0.0" }' >lib/package.json
	echo '{ "name": "app", "version": "1.0.0", "dependencies": { "lib": "1.0.0" } }' >app/package.json
	put lib/vx.config.json <<-'E'
		{ "tasks": { "build": { "exec": { "command": "true" },
			"cache": { "inputs": { "files": ["x"] }, "outputs": { "files": [] } } } } }
	E
	printf '%s\n' .vx node_modules >.gitignore
}
cache=', "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } }'
row_19() {
	npm
	app '{ "allow": { "read": ["src"] } }' 'cat ../node_modules/lib/x || true' "$cache" &&
		violation 1 'read lib(/x)?' && no_line '^libx$' &&
		line 'allow\.read: \["\.\./lib"\], and cache\.inputs\.workspaceFiles: \["lib"\]' &&
		line '^note: lib, linked as node_modules/lib, is hidden.* dependsOn: \["lib#build"\]'
}
row 19 "cached, reads the linked lib without an edge: fails, and says both remedies"

row_20() {
	npm
	app '{ "allow": { "read": ["src"] } }' 'cat ../node_modules/lib/x || true' \
		"$cache, \"dependsOn\": [\"^build\"]" && passes && printed libx
}
row 20 "the same with dependsOn ['^build']"

row_21() {
	npm
	echo banner >app/banner
	app '{ "allow": { "read": ["src"] } }' 'cat banner || true' && violation 1 'read app/banner' &&
		app '{ "allow": { "read": ["src"] } }' 'cat ../node_modules/app/banner || true' &&
		violation 1 'read app/banner'
}
row 21 "npm's link at the root to the project itself, read ['src'], cat banner"

row_22() {
	echo token >"$HOME/.npmrc"
	app '{}' 'cat ~/.npmrc || true' && ends 0 && no_line '^token$' &&
		app '{ "allow": { "read": ["~/.npmrc"] } }' 'cat ~/.npmrc || true' && passes &&
		printed token
}
row 22 "read ['~/.npmrc'] and without: readable, and not"

cat >"$T/net.py" <<'E'
import errno, socket, time
def fails(what, fn):
    t0 = time.monotonic()
    try:
        fn()
        print(what, "WORKED")
    except OSError as e:
        print(what, "fails", "at once" if time.monotonic() - t0 < 10 else "LATE")
fails("connect", lambda: socket.create_connection(("192.0.2.1", 80), 60))
fails("look-up", lambda: socket.getaddrinfo("example.com", 80))
E
row_23() {
	app '{}' "exec python3 $T/net.py" && ends 0 && printed 'connect fails at once' &&
		printed 'look-up fails at once'
}
row 23 "no network: connect and look-up fail at once"
if has_field network '{ "allow": { "network": ["example.com"] } }'; then
	row_23_named() {
		app '{}' "exec python3 $T/net.py" && violation 2 'connect 192\.0\.2\.1:80' \
			'connect example\.com(:80)?'
	}
	row 23_named "and are violations, with address and name"
	row_24() {
		app '{ "allow": { "network": ["example.com"] }, "deny": { "network": ["example.com"] } }' \
			"exec python3 $T/net.py" && violation 2 'connect example\.com(:80)?'
	}
	row 24 "allow and deny of example.com: denied"
else
	skip "row 23: and are violations, with address and name" "allow.network is not in this vx yet"
	skip "row 24: allow and deny of example.com: denied" "allow.network is not in this vx yet"
fi

cat >"$T/unix.py" <<'E'
import socket, sys
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    print("connected")
except OSError as e:
    print("refused", type(e).__name__)
E
# A listener outside, at $T/s.sock. Ends with standard input.
cat >"$T/listen.py" <<'E'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.listen(9)
with open(sys.argv[2], "w") as f:
    f.write("up\n")
sys.stdin.read()
os.unlink(sys.argv[1])
E
fifo listening stop
with_listener() { # COMMAND...
	timeout 60 python3 "$T/listen.py" "$T/s.sock" "$T/listening" <"$T/stop" &
	listener=$!
	exec 6>"$T/stop"
	await listening >/dev/null
	"$@"
	listened=$?
	exec 6>&-
	wait "$listener"
	return $listened
}
row_25() { with_listener in_row_25; }
in_row_25() {
	app '{}' "exec python3 $T/unix.py $T/s.sock" && passes && printed 'refused PermissionError'
}
row 25 "a unix socket: EPERM, no violation"
if has_field unixSockets '{ "allow": { "unixSockets": true } }'; then
	row_25_granted() { with_listener in_row_25_granted; }
	in_row_25_granted() {
		app '{ "allow": { "unixSockets": true } }' "exec python3 $T/unix.py $T/s.sock" &&
			passes && printed connected &&
			app "{ \"allow\": { \"unixSockets\": [\"$T/s.sock\"] } }" \
				"exec python3 $T/unix.py $T/s.sock" && passes && printed connected
	}
	row 25_granted "by unixSockets it is connected"
else
	skip "row 25: by unixSockets it is connected" "allow.unixSockets is not in this vx yet"
fi

fifo up never
row_26() {
	task '{}' "trap 'echo cleaned up; exit 9' INT; echo up >$T/up; read -r x <$T/never"
	bg run app#t
	await up >/dev/null
	kill -INT "$BG"
	bg_wait
	ends 130 && printed 'cleaned up'
}
row 26 "Ctrl-C: the trap runs"

fifo held
row_27() {
	task '{}' "exec 9>$T/held; trap '' TERM INT HUP; setsid sleep 1000 & echo up >$T/up; read -r x <$T/never"
	hold held
	bg run app#t
	await up >/dev/null
	# Guard and core each have to find the other gone; the pid of the first is ours.
	kill -9 "$BG"
	bg_wait 2>/dev/null
	# The other one holds the lock until it has removed the rest.
	holds released && holds timeout 60 flock .vx/lock true &&
		holds test -z "$(find .vx/scratch -mindepth 1 -maxdepth 1)" &&
		task '{}' true && run run app#t && passes
}
row 27 "kill -9 of vx: nothing is left, a daemon in a session of its own neither"

row_28() {
	t0=$(date +%s)
	hold held
	app '{}' "exec 9>$T/held; sleep 100 & echo hi"
	t1=$(date +%s)
	passes && printed hi && holds released && holds test $((t1 - t0)) -lt 60
}
row 28 'sleep 100 &: the task ends, and it with it'

row_29() {
	# No strace, no bwrap, no socat, no ripgrep.
	mkdir "$T/bin"
	for p in sh cat git python3; do
		ln -s "$(command -v $p)" "$T/bin/$p"
	done
	task '{}' 'cat a.txt || true'
	try env PATH="$T/bin" "$VX" run app#t
	violation 1 'read app/a\.txt' && no_line 'strace|untraced'
}
row 29 "no strace, row 2: differs, it is not needed"

row_30() {
	mkdir -p app/node_modules/.bin
	for p in bwrap socat strace setsid sh vx-sandbox vx newuidmap; do
		printf '#!/bin/sh\n: >%s/used.%s\nexit 7\n' "$T" $p >app/node_modules/.bin/$p
	done
	chmod 755 app/node_modules/.bin/*
	mkdir "$T/bin2"
	printf '#!/bin/sh\n: >%s/used.vx-sandbox\nexit 7\n' "$T" >"$T/bin2/vx-sandbox"
	chmod 755 "$T/bin2/vx-sandbox"
	task '{ "allow": { "read": ["."] } }' 'command -v bwrap; cat a.txt'
	try env PATH="$T/bin2:$PATH" "$VX" run app#t
	passes && printed a && printed "$W/app/node_modules/\\.bin/bwrap" &&
		holds test -z "$(find "$T" -maxdepth 1 -name 'used.*')"
}
row 30 "a dependency's bwrap, sh and vx-sandbox on the task's PATH are not used"
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports about task runners: outputs, and what a hit makes of them. After a hit the output tree is what
# the command left, no more and no less.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/both.sh"

# A restore that merges with what is there: a database is mixed with the journal of another.
C02() {
	package a "$(cached build 'mkdir -p dist/d; cat src/in.txt >dist/d/db' '"src/**"' '"dist/**"')"
	workspace
	go build
	exits 0 "$C a build"
	echo changed >packages/a/dist/d/db
	echo wal >packages/a/dist/d/db-wal
	go build
	exits 0 "$C the outputs were changed"
	is "$(nran a.build)" 1 "$C it is restored, not run"
	is "$(cat packages/a/dist/d/db)" 1 "$C with its content"
	ok "$C what was added is gone" test ! -e packages/a/dist/d/db-wal
}

# A restore that puts a directory in the place of the user's link to one.
#
# A sandbox writes through no link, since a task could have put it there: a refusal that says what to do.
C04() {
	package a "$(cached build 'mkdir -p dist; cat src/in.txt >dist/out' '"src/**"' '"dist/**"')"
	mkdir packages/a/store
	ln -s store packages/a/dist
	workspace store
	go build
	if sandboxed; then
		exits 1 "$C outputs behind a link"
		said "the output 'dist/\*\*' leads through a link to <workspace>/packages/a/store: remove the link, or name the target by its own path" \
			"$C are refused, with what to do"
		is "$(nran a.build)" 0 "$C it did not run"
		is "$(readlink packages/a/dist) $(ls -A packages/a/store)" "store " "$C all is as it was"
		package a "$(cached build 'mkdir -p store; cat src/in.txt >store/out' '"src/**"' '"store/**"')"
		go build
		exits 0 "$C the same by the name of the directory"
		is "$(cat packages/a/dist/out)" 1 "$C is right"
		return
	fi
	exits 0 "$C outputs behind a link"
	is "$(cat packages/a/store/out)" 1 "$C they land where it leads"
	rm packages/a/store/out
	go build
	exits 0 "$C again"
	is "$(nran a.build)" 1 "$C it is restored, not run"
	is "$(readlink packages/a/dist)" store "$C the link is kept"
	is "$(cat packages/a/store/out)" 1 "$C and followed"
}

# A link among the outputs that cannot be stored.
C06() {
	package a "$(cached build 'mkdir -p dist/real; echo r >dist/real/f; ln -sfn real/f dist/file; ln -sfn ../nowhere dist/broken' \
		'"src/**"' '"dist/**"')"
	workspace
	go build
	exits 0 "$C links among the outputs"
	rm -rf packages/a/dist
	go build
	is "$(nran a.build)" 1 "$C they are stored"
	is "$(readlink packages/a/dist/file)" real/f "$C a link has its target"
	is "$(readlink packages/a/dist/broken)" ../nowhere "$C so has one that leads nowhere"
	is "$(cat packages/a/dist/file)" r "$C and leads to the file"
}

# A link to a directory, followed when stored and refused when restored: a miss for ever.
C07() {
	package a "$(cached build 'mkdir -p dist/store/p; echo p >dist/store/p/f; ln -sfn store/p dist/p' \
		'"src/**"' '"dist/**"')"
	workspace
	go build
	go build
	is "$(nran a.build)" 1 "$C a link to a directory among the outputs: the next run is a hit"
	rm -rf packages/a/dist
	go build
	exits 0 "$C the outputs were deleted"
	is "$(nran a.build)" 1 "$C they are restored"
	is "$(readlink packages/a/dist/p)" store/p "$C the link as a link"
	is "$(cat packages/a/dist/p/f)" p "$C to the directory"
}

# Every file restored with one mode.
C08() {
	package a "$(cached build 'umask 022; mkdir -p dist; echo a >dist/a; echo b >dist/b; chmod 755 dist/b; echo c >dist/c; chmod 600 dist/c; echo d >dist/d; chmod 4711 dist/d' \
		'"src/**"' '"dist/**"')"
	workspace
	go build
	exits 0 "$C files of several modes"
	rm -rf packages/a/dist
	go build
	is "$(nran a.build)" 1 "$C they are restored"
	is "$(cd packages/a/dist && stat -c %a a b c d | tr '\n' ' ')" "644 755 600 711 " \
		"$C with their permissions, set-id bits excepted"
}

# One path restored for each content.
C10() {
	package a "$(cached build 'mkdir -p dist/s; for f in a b s/c; do echo same >dist/$f; done; : >dist/e1; : >dist/e2' \
		'"src/**"' '"dist/**"')"
	workspace
	go build
	rm -rf packages/a/dist
	go build
	is "$(cd packages/a/dist && find . -type f | sort | tr '\n' ' ')" "./a ./b ./e1 ./e2 ./s/c " \
		"$C every file of equal content is restored"
	echo other >packages/a/dist/a
	is "$(cat packages/a/dist/b)" same "$C as a file of its own"
	rm -rf packages/a/dist
	go build
	is "$(cat packages/a/dist/a)" same "$C what was written into one has not reached the cache"
	is "$(nran a.build)" 1 "$C it ran once"
}

# What is excluded, stored all the same.
C12() {
	package a "$(cached build 'mkdir -p dist/x/cache; echo o >dist/x/o; echo big >dist/x/cache/big' \
		'"src/**"' '"dist/**", "!dist/x/cache/**"')"
	workspace
	go build
	exits 0 "$C an output that is excluded"
	is "$(cat packages/a/dist/x/cache/big)" big "$C is left where the command made it"
	rm -rf packages/a/dist
	go build
	is "$(nran a.build)" 1 "$C the others are restored, not made"
	is "$(cat packages/a/dist/x/o)" o "$C with their content"
	ok "$C it is not" test ! -e packages/a/dist/x/cache/big
}

# Two halves of a command, cached apart, each restored over the other.
C14() {
	package a "$(cached build 'mkdir -p dist && cp src/1 dist/1 && cp src/2 dist/2 && cat dist/1 dist/2 >dist/all' \
		'"src/**"' '"dist/**"')"
	echo 1 >packages/a/src/1
	echo 2 >packages/a/src/2
	workspace
	go build
	echo two >packages/a/src/2
	go build
	is "$(tr '\n' ' ' <packages/a/dist/all)" "1 two " "$C the second input was edited"
	echo one >packages/a/src/1
	go build
	go build
	is "$(tr '\n' ' ' <packages/a/dist/all)" "one two " "$C then the first"
	is "$(nran a.build)" 3 "$C all of it ran each time"
}

each C02 C04 C06 C07 C08 C10 C12 C14
done_testing

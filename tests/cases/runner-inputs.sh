#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports about task runners: what is an input, and what of it a key holds.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/both.sh"

# A file that git ignores and every build changes, taken in by a glob.
#
# The command writes it undeclared. Without a grant that is refused in a sandbox; with one it is as plain.
C15() {
	stamped() { package a "$(cached build 'date +%s%N >stamp.txt' '"**/*.txt"' '' "$1")"; }
	stamped ''
	workspace stamp.txt
	if sandboxed; then
		go build
		exits 1 "$C an ignored file that is written undeclared"
		said '^write packages/a/stamp.txt' "$C is named"
		ok "$C and not there" test ! -e packages/a/stamp.txt
		stamped ', "sandbox": { "allow": { "read": ["**/*.txt"], "write": ["stamp.txt"] } }'
		zero
	fi
	go build
	exits 0 "$C a command that writes an ignored file under its inputs"
	echo other >packages/a/stamp.txt
	go build
	is "$(nran a.build)" 1 "$C the file is no input"
	echo 2 >packages/a/src/in.txt
	go build
	is "$(nran a.build)" 2 "$C its neighbour is one"
}

# Ignore files that count only as committed.
C16() {
	package a "$(cached build true '"**"' '')"
	workspace logs
	mkdir packages/a/logs
	echo 1 >packages/a/logs/l
	echo '# note' >>.gitignore
	go build
	exits 0 "$C a .gitignore with an uncommitted change"
	echo 2 >packages/a/logs/l
	zero
	go build
	is "$(nran a.build)" 0 "$C ignores what it did"
	echo notes >>.gitignore
	mkdir packages/a/notes
	go build
	zero
	echo 3 >packages/a/notes/n
	go build
	is "$(nran a.build)" 0 "$C and what the change adds"
	echo 2 >packages/a/src/in.txt
	go build
	is "$(nran a.build)" 1 "$C a real change counts"
}

# Patterns of the root that reach into a package, dropped where there is no repository.
C18() {
	package a "$(cached build true '"**"' '')"
	workspace /packages/a/deep/nested packages/a/shallow
	mkdir -p packages/a/deep/nested packages/a/shallow
	for git in with without; do
		[ $git = with ] || rm -rf .git
		echo 1 >packages/a/deep/nested/log
		echo 1 >packages/a/shallow/log
		go build
		exits 0 "$C $git a repository"
		zero
		echo 2 >packages/a/deep/nested/log
		echo 2 >packages/a/shallow/log
		go build
		is "$(nran a.build)" 0 "$C $git a repository, ignored files are no inputs"
		echo $git >packages/a/src/in.txt
		go build
		is "$(nran a.build)" 1 "$C $git a repository, others are"
	done
}

# Names that are not plain ASCII: refused, or their changes missed.
C20() {
	package a "$(cached build 'cat src/* >/dev/null' '"src/**"' '')"
	mkdir -p packages/a/src
	set -- 'plain b' '테스트.ts' 'q"uote' "$(printf 'tab\tname')" "$(printf 'new\nline')" \
		"$(printf 'o\277\275est')" 'back\slash' '-dash'
	for name in "$@"; do echo 1 >"packages/a/src/$name"; done
	workspace
	go build
	exits 0 "$C odd names among the inputs"
	go build
	is "$(nran a.build)" 1 "$C nothing was changed"
	n=1
	for name in "$@"; do
		n=$((n + 1))
		echo 2 >"packages/a/src/$name"
		go build
		is "$(nran a.build)" $n "$C a change of $(printf %s "$name" | od -An -c | tr -s ' \n' ' ')"
	done
}

# What was made of the new content, stored under the key of the old.
C22() {
	rm -f "$T/started" "$T/go"
	fifo started go
	package a "$(cached build "echo x >$T/started; read -r x <$T/go; mkdir -p dist; cat src/in.txt >dist/out" \
		'"src/**"' '"dist/**"')"
	workspace
	(
		await started
		echo 2 >packages/a/src/in.txt
		echo x >"$T/go"
	) >"$T/editor" &
	editor=$!
	go build
	exits 0 "$C an input is edited while the task runs"
	wait "$editor"
	is "$(cat "$T/editor")" x "$C it was"
	is "$(cat packages/a/dist/out)" 2 "$C the task read what was new"
	said 'not saved: packages/a/src/in.txt changed while it ran' "$C its result is not saved"
	echo 1 >packages/a/src/in.txt
	(await started && echo x >"$T/go") >"$T/editor" &
	editor=$!
	go build
	wait "$editor"
	is "$(cat packages/a/dist/out)" 1 "$C with the old input it is made anew"
	go build
	is "$(nran a.build)" 2 "$C which is saved"
}

# Arguments after -- in the keys of what was not asked for.
C24() {
	builds=$(cached build true '"src/**"' '' '' ', "dependsOn": ["^build"]')
	tests=$(cached test 'echo arg' '"src/**"' '' '' ', "dependsOn": ["build"]')
	package b "$builds, $tests"
	package a "$builds, $tests" '"b": "workspace:*"'
	workspace
	go test
	go test --output-logs=full -- --shard=1
	exits 0 "$C arguments for the tests"
	said 'arg --shard=1' "$C reach them"
	is "$(nran b.build)-$(nran a.build)" 1-1 "$C what they need is a hit"
	is "$(nran a.test)" 2 "$C they run for other arguments"
	go test -- --shard=1
	go test
	is "$(nran a.test)" 2 "$C both results are known"
}

# A result of one environment, replayed in another.
C25() {
	package a "\"build\": { \"exec\": { \"command\": $(noting build 'mkdir -p dist; echo ${API_URL:-none} ${STAGE:-none} >dist/out'), \"env\": { \"passThrough\": [\"STAGE\"] } },
		\"cache\": { \"inputs\": { \"files\": [\"src/**\"], \"env\": [\"STAGE\"] }, \"outputs\": { \"files\": [\"dist/**\"] } } }"
	workspace
	export API_URL=staging STAGE=one
	go build
	is "$(cat packages/a/dist/out)" "none one" "$C only a declared variable reaches the task"
	API_URL=production
	go build
	is "$(nran a.build)" 1 "$C another one does not count"
	STAGE=two
	go build
	is "$(nran a.build)" 2 "$C its value does"
	is "$(cat packages/a/dist/out)" "none two" "$C and is what the task sees"
	STAGE=one
	go build
	is "$(nran a.build)" 2 "$C the first value is known"
	is "$(cat packages/a/dist/out)" "none one" "$C with its result"
	unset STAGE
	go build
	export STAGE=
	go build
	is "$(nran a.build)" 4 "$C unset and empty are two values"
	unset API_URL STAGE
}

# A formatter that is a hit, and the file stays as it is.
#
# The command writes an input undeclared. Without a grant that is refused in a sandbox, and the file is
# as before; with one it is as plain.
C26() {
	formats() { package a "$(cached fmt "sed -i 's/ *\$//' src/in.txt" '"src/**"' '' "$1")"; }
	formats ''
	workspace
	printf 'x   \n' >packages/a/src/in.txt
	if sandboxed; then
		go fmt
		exits 1 "$C an input that is written undeclared"
		said '^write packages/a/src/in.txt' "$C is named"
		is "$(cat packages/a/src/in.txt)" 'x   ' "$C and as it was"
		formats ', "sandbox": { "allow": { "read": ["src/**"], "write": ["src/**"] } }'
		printf 'x   \n' >packages/a/src/in.txt
	fi
	go fmt
	exits 0 "$C a task that writes its own input"
	is "$(cat packages/a/src/in.txt)" x "$C it is formatted"
	said 'not saved: packages/a/src/in.txt changed while it ran' "$C which is not saved"
	printf 'x   \n' >packages/a/src/in.txt
	go fmt
	is "$(cat packages/a/src/in.txt)" x "$C so it is formatted the next time"
}

each C15 C16 C18 C20 C22 C24 C25 C26
done_testing

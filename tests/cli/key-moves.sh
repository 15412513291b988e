#!/bin/sh
# SPDX-License-Identifier: MIT
# What moves a key and what does not: one change at a time, and whether the task runs again for it.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

# MORE-EXEC MORE-TASK INPUTS: app's config, which is an input of itself with the default, `**`. lib#build comes before app#build; other stands alone.
app() {
	files=${3:-$default}
	put p/app/vx.config.json <<-E
		{ "name": "app", "dependencies": ["lib"], "tags": [${TAGS:-}], "tasks": { "build": {
			"dependsOn": ["^build"],
			"exec": { "command": "echo app >>$T/ran; mkdir -p dist; cat src/a >dist/out; true"${1:-} },
			"cache": { "inputs": { "files": [$files] }, "outputs": { "files": ["dist/**"] } }${2:-}
		} } }
	E
}
for p in lib other; do
	put p/$p/vx.config.json <<-E
		{ "name": "$p", "tasks": { "build": {
			"exec": { "command": "echo $p >>$T/ran; mkdir -p dist; cat $T/noise >dist/out" },
			"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }
	E
	echo 1 | put p/$p/src/a
done
echo 1 >"$T/noise"
default='"**"'
app
echo '{ "name": "app", "version": "1.0.0" }' >p/app/package.json
echo 1 | put p/app/src/a
printf 'a\nb\n' >p/app/src/lines.txt
echo 1 >p/app/src/b
ln -s a p/app/src/link
echo 1 | put p/app/nested/src/a
echo '{ "name": "nested", "tasks": {} }' >p/app/nested/vx.config.json
echo '{ "projects": ["p/*", "p/app/nested"] }' >vx.workspace.json
printf 'dist\n*.ignored\n' >.gitignore
git_ init -q
git_ add -A
git_ commit -qm workspace

# WANT COMMAND NAME: what runs after the command.
after() {
	: >"$T/ran"
	eval "$2"
	run run build --all
	exits 0 "$3"
	is "$(sort "$T/ran" | tr '\n' ' ')" "$1" "$3: what runs"
}
moves() { after "app " "$@"; }
all_move() { after "app lib other " "$@"; }
stays() { after "" "$@"; }

all_move : "cold"
stays : "nothing"

# Its files.
moves 'echo 2 >p/app/src/a' "an edit"
stays 'git_ commit -qam edit' "the same bytes, committed"
moves 'chmod +x p/app/src/b' "an executable bit"
moves 'chmod -x p/app/src/b; git_ config core.fileMode false; chmod +x p/app/src/lines.txt' \
	"one that git is told not to look at"
moves 'ln -sfn b p/app/src/link' "a link with another target"
moves 'rm p/app/src/link; cp p/app/src/b p/app/src/link' "a file in the place of a link"
moves 'echo new >p/app/src/new' "a file that is added"
stays 'git_ add -A; git_ commit -qm new' "and committed"
moves 'rm p/app/src/new' "a file that is gone"
stays 'touch p/app/src/a' "a new time"
moves 'mv p/app/src/b p/app/src/c' "another name"
moves 'git_ update-index --assume-unchanged p/app/src/a; echo 3 >p/app/src/a' "an edit that git is told not to see"
moves 'git_ update-index --no-assume-unchanged p/app/src/a; git_ commit -qam a;
	git_ update-index --skip-worktree p/app/src/a; echo 4 >p/app/src/a' "one that it skips"
git_ update-index --no-skip-worktree p/app/src/a
echo '*.txt text' >.gitattributes
moves 'printf "a\r\nb\r\n" >p/app/src/lines.txt' "line ends that git takes for the same"
is "$(git_ diff --stat -- p/app/src/lines.txt 2>/dev/null)" "" "which it does"

# What is none of them.
stays 'echo 1 >p/app/src/x.ignored' "a file that git ignores"
stays 'echo 2 >p/app/src/x.ignored' "its edit"
stays 'echo 2 >p/app/nested/src/a' "a file of the project inside"
stays 'echo 2 >p/other/unread' "a file that no glob selects"
stays 'echo 2 | put p/app/node_modules/dep/index' "untracked packages"
stays 'echo 2 >p/app/a.tsbuildinfo' "what tsc notes for itself"
stays 'echo "{}" >vx-lock.json; echo "{}" >p/app/vx-lock.json' "a lock file of vx"
moves 'app "" "" "\"src/**\", \"!src/lines.txt\""' "another list of globs"
stays 'echo 3 >p/app/src/lines.txt' "a file that is taken back"
stays 'echo 3 >p/app/undeclared' "one that is not declared"
default='"src/**", "!src/lines.txt"'

# Manifest, config, settings.
moves 'echo "{ \"name\": \"app\", \"version\": \"1.0.1\" }" >p/app/package.json' "the project's manifest"
moves 'app ", \"timeout\": 60000"' "a time-out"
moves 'app ", \"retries\": 1"' "retries"
moves 'app ", \"env\": { \"define\": { \"V\": \"1\" } }"' "a variable that is defined"
moves 'app ", \"env\": { \"define\": { \"V\": \"2\" } }"' "its value"
moves 'app ", \"env\": { \"passThrough\": [\"SEEN\"] }"' "the name of one that is passed through"
stays 'export SEEN=1' "but not its value"
unset SEEN
moves 'app "" ", \"description\": \"what it does\""' "a description"
app ', "sandbox": {}'
run run app#build --dry
said 'app#build +miss' "a sandbox block"
app
stays : "all as it was"
stays 'TAGS="\"t\"" app' "a tag"
stays 'sed -i "s/\"name\": \"app\",//; s/^{/{ \/* first *\/ /; s/\"tasks\"/\"name\": \"app\", &/" p/app/vx.config.json' \
	"other blanks, comments and order in the config"
stays 'echo "{ \"projects\": [\"p/*\", \"p/app/nested\"], \"concurrency\": 3, \"timeout\": 99999 }" >vx.workspace.json' \
	"the settings of the workspace"

# What every key rests on.
for f in pnpm-lock.yaml package-lock.json npm-shrinkwrap.json yarn.lock bun.lock bun.lockb \
	pnpm-workspace.yaml .yarnrc.yml .npmrc bunfig.toml; do
	all_move "echo '{}' >$f" "$f"
	all_move "echo '{ }' >$f" "$f, edited"
done
stays 'cp yarn.lock p/app/src/x.ignored; cp yarn.lock p/other' "a lock file elsewhere"

# What comes before.
after "app lib " 'echo 2 >p/lib/src/a' "an input of what it depends on"
echo 2 >"$T/noise"
run run lib#build --force
is "$(cat p/lib/dist/out)" 2 "a task that makes something else of the same inputs"
stays : "what follows goes by its key"
: >"$T/ran"
for args in 'x y' 'y x' 'x y'; do
	# shellcheck disable=SC2086 # two words
	run run app#build -- $args >/dev/null 2>&1
done
is "$(cat "$T/ran")" "app
app" "forwarded arguments, and their order"
done_testing

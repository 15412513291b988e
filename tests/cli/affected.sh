#!/bin/sh
# SPDX-License-Identifier: MIT
# --affected and "[ref]" filters: which base, what has changed since, and what that reaches.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

# NAME DEPENDENCIES: build is keyed on src, test on test, check has no cache; all is a group
project() {
	mkdir -p "p/$1/src" "p/$1/test"
	echo "$1" >"p/$1/src/f"
	echo "$1" >"p/$1/test/f"
	echo "$1" >"p/$1/README"
	put "p/$1/vx.config.json" <<-E
		{ "name": "$1", "dependencies": [$2], "tags": ["t-$1"], "tasks": {
		  "build": { "exec": { "command": "true" }, "dependsOn": ["^build"],
		    "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } },
		  "test": { "exec": { "command": "true" }, "dependsOn": ["build"],
		    "cache": { "inputs": { "files": ["test/**"] }, "outputs": { "files": [] } } },
		  "check": { "exec": { "command": "true" } },
		  "all": { "dependsOn": ["build", "test"] } } }
	E
}
echo '{ "projects": ["p/*"] }' >vx.workspace.json
printf 'dist\n.vx\nignored\n' >.gitignore
project base ''
project lib '"base"'
project app '"lib"'
project other ''
git_ init -q .
git_ add -A
git_ commit -qm one
FIRST=$(git_ rev-parse HEAD)
echo more >>p/other/README
git_ commit -qam two

# WANT NAME ARGS...: the requested tasks that are left
reaches() {
	r_want=$1 r_name=$2
	shift 2
	run run --dry=json "$@"
	is "$(sed -n 's/.*"id":"\([^"]*\)".*"requested":true.*/\1/p' "$OUT" | sort | tr '\n' ' ')" \
		"${r_want:+$r_want }" "$r_name"
	[ "$RC" = 0 ] || { fail "$r_name: exit 0"; diag_file stderr "$ERR"; }
}
clean() {
	git_ reset -q --hard
	git_ clean -qfd
}

# --- the base

reaches 'other#build' "without a remote: what the last commit changed" build --affected
said_not 'vx: ' "nothing has to be said"
run run build --affected=HEAD
exits 0 "nothing has changed"
said '^vx: nothing affected since HEAD$' "says so"
said '^vx: the base is HEAD, so only what is not committed counts: --affected=HEAD~1 adds the last commit, --all runs everything$' \
	"a base that is HEAD is noted"
is "$(cat "$OUT")" '' "on standard error alone"
run run build --affected=HEAD --dry=json
is "$(tr -d '\n' <"$OUT")" '{"version":1,"tasks":[],"predicted":{"wallMs":0,"workMs":0,"unknownCount":0}}' "a plan without tasks is one"
run run build --affected=HEAD --graph
like "$OUT" '^digraph vx' "so is a graph"
run run build --affected=
exits 2 "an empty value of --affected"
said '^vx: --affected= has an empty value: write --affected alone, or --affected=BASE$' "is refused, as it is a variable that is not set"
run run --affected main build
exits 2 "a base without its ="
said '^vx: no project declares a task "main"; did you mean --affected=main\?$' "is told apart from a task"
reaches 'other#build' "a task may follow the bare flag" --affected build
reaches 'other#build' "a range with HEAD on its right is its left side" build --affected="$FIRST...HEAD"

git_ clone -q . "$T/origin"
git_ -C "$T/origin" checkout -q -b topic
git_ remote add origin "$T/origin"
git_ fetch -q origin
git_ remote set-head origin -d 2>/dev/null
reaches 'other#build' "a remote's main that is where HEAD is does not count" build --affected
echo x >>p/lib/src/f
git_ commit -qam three
reaches 'app#build lib#build' "one that is not is the base" build --affected
git_ update-ref refs/remotes/origin/side "$FIRST"
git_ symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/side
reaches 'app#build lib#build other#build' "origin/HEAD comes first" build --affected
run run test --affected --filter base
said 'nothing affected since origin/HEAD' "and is named"
git_ symbolic-ref -d refs/remotes/origin/HEAD
git_ update-ref -d refs/remotes/origin/side
git_ tag origin/main "$FIRST"
reaches 'app#build lib#build' "a tag of the same name does not count" build --affected
git_ tag -d origin/main >/dev/null
echo '{ "projects": ["p/*"], "affectedBase": "side" }' >vx.workspace.json
git_ commit -qam 'a base'
run run build --affected
exits 2 "affectedBase: one that is not there"
said "vx\.workspace\.json: affectedBase: git knows no commit 'side'" "is refused with its place"
git_ branch side HEAD
echo y >>p/base/src/f
git_ commit -qam four
reaches 'app#build base#build lib#build' "affectedBase" build --affected
reaches 'app#build base#build lib#build' "the flag outranks it" build --affected=HEAD~1
git_ branch -D side >/dev/null 2>&1
echo '{ "projects": ["p/*"] }' >vx.workspace.json
git_ commit -qam five

# Detached, and from where history parted.
git_ checkout -q --detach HEAD~1
reaches 'app#build base#build lib#build' "a detached HEAD" build --affected=HEAD~1
git_ checkout -q -b parted "$FIRST"
echo x >>p/base/test/f
git_ commit -qam elsewhere
reaches 'base#test' "what the base got since they parted does not count" test --affected=main --filter base --filter other
run run build --affected=main
said 'nothing affected since main' "as nothing of build does"
git_ checkout -q --orphan alone
git_ commit -qm alone
run run build --affected=main
exits 2 "without a common commit"
said "^vx: --affected=main: 'main' and HEAD have no commit in common\$" "says so"
git_ checkout -q main

# --- refusals

refused() { # REGEX ARGS...
	r_re=$1
	shift
	run run build "$@"
	exits 2 "$*"
	said "$r_re" "$*: $r_re"
}
refused "^vx: --affected=-x: '-x' begins with a dash, so it is no commit" --affected=-x
refused "^vx: --affected=--upload-pack=touch: '--upload-pack=touch' begins with a dash" --affected=--upload-pack=touch
refused "'a\.\.b' is a range: name the one commit to compare with, or BASE\.\.\.HEAD" --affected=a..b
refused "'a\.\.\.b' is a range" --affected=a...b
refused "'\.\.\.HEAD' is a range" --affected=...HEAD
refused "'main\.\.HEAD' is a range" --affected=main..HEAD
refused "'a\.\.b\.\.\.HEAD|'a\.\.b' is a range|is a range" --affected=a..b...HEAD
refused "'HEAD:p' names something in a commit: name the commit" --affected=HEAD:p
refused "git knows no commit 'mian'; did you mean 'main'\?" --affected=mian
refused "git knows no commit 'topic'; did you mean 'origin/topic'\?" --affected=topic
refused "git knows no commit 'nothing-like'; there are alone, main, parted, origin/main, origin/topic" --affected=nothing-like
refused "git knows no commit '\^main'" --affected=^main
refused "git knows no commit 'p/lib'" --affected=p/lib
refused '^vx: --filter "\[nope\]": git knows no commit .nope.' --filter '[nope]'
refused '^vx: --filter "\[\]": names no commit' --filter '[]'
refused '^vx: --filter "\[a\.\.b\]": .a\.\.b. is a range' --filter '[a..b]'
refused '^vx: --filter "nope\[main\]" matches no project' --filter 'nope[main]'
run run biuld --affected
exits 2 "a name that no project declares"
said 'no project declares a task "biuld"; did you mean "build"' "is refused by a diff, too"
(
	mkdir "$T/none"
	cd "$T/none" || exit 99
	echo '{ "name": "n", "tasks": { "build": { "exec": { "command": "true" } } } }' >vx.config.json
	GIT_CEILING_DIRECTORIES=$T "$VX" run build --affected
) >"$OUT" 2>"$ERR"
is $? 2 "outside a work tree"
said "none is in no git work tree, so what has changed is not known" "says so"
mkdir "$T/empty-path"
RC=0
PATH=$T/empty-path "$VX" run build --affected >"$OUT" 2>"$ERR" || RC=$?
exits 2 "without git"
said 'there is no git program on PATH outside the workspace to ask what has changed' "says so"
git_ init -q "$T/young"
(cd "$T/young" && cp -r "$W/p" "$W/vx.workspace.json" . && "$VX" run build --affected) >"$OUT" 2>"$ERR"
is $? 2 "a repository without a commit"
said 'HEAD has no commit yet, so there is nothing to compare with' "says so"

# --- what counts as a change

edit() { # WANT NAME COMMAND: with the work tree changed by it; tasks build, test, check
	clean
	eval "$3"
	reaches "$1" "$2" build test check --affected=HEAD
}
edit 'app#build app#test lib#build lib#check lib#test' "an input" 'echo x >>p/lib/src/f'
edit 'lib#check lib#test' "of a test alone" 'echo x >>p/lib/test/f'
edit 'app#build app#test lib#build lib#check lib#test' "what no cached task declares: all of the project" 'echo x >>p/lib/README'
edit 'app#build app#test lib#build lib#check lib#test' "a config" 'echo >>p/lib/vx.config.json'
edit 'app#build app#test lib#build lib#check lib#test' "a new manifest" 'echo "{ \"name\": \"lib\" }" >p/lib/package.json'
edit 'app#build app#test lib#build lib#check lib#test' "an untracked input" 'echo x >p/lib/src/new'
edit '' "what git ignores" 'echo x >p/lib/src/ignored'
edit '' "dependencies that are not tracked" 'mkdir -p p/lib/node_modules/x && echo >p/lib/node_modules/x/f'
edit 'app#build app#test lib#build lib#check lib#test' "an input that is gone" 'rm p/lib/src/f'
edit 'app#build app#test lib#build lib#check lib#test' "one that is in the index" 'echo x >>p/lib/src/f; git_ add -A'
edit 'app#build app#test lib#build lib#check lib#test' "one that is new in the index and gone from the tree" \
	'echo x >p/lib/src/n; git_ add -A; rm p/lib/src/n'
edit 'app#build app#check app#test lib#build lib#check lib#test' "a rename: both names" 'git_ mv p/lib/src/f p/app/src/g'
edit 'app#build app#test lib#build lib#check lib#test' "an executable bit" 'chmod +x p/lib/src/f'
git_ config core.fileMode false
edit 'app#build app#test lib#build lib#check lib#test' "and where git was told to overlook it, as keys do not" \
	'chmod +x p/lib/src/f'
chmod -x p/lib/src/f
git_ config --unset core.fileMode
edit 'app#build app#test lib#build lib#check lib#test' "bytes of as many at the same time, where git was told to go by no more" \
	'touch -d 2020-01-01 p/lib/src/f; git_ update-index -q --refresh; git_ config core.trustctime false
	git_ config core.checkStat minimal; echo bil >p/lib/src/f; touch -d 2020-01-01 p/lib/src/f'
git_ config --unset core.trustctime
git_ config --unset core.checkStat
edit 'app#build app#test lib#build lib#check lib#test' "a link in place of a file" 'ln -sf /x p/lib/src/f'
edit '' "a new time alone" 'touch p/lib/src/f'
edit '' "the same bytes again" 'cp p/lib/src/f x; cat x >p/lib/src/f; rm x'
edit '' "what is in no key: vx-lock.json" 'echo "{}" >vx-lock.json; echo >p/lib/vx-lock.json; echo >p/lib/src/x.tsbuildinfo'
edit '' "a file of no project" 'echo >elsewhere'
ALL='app#build app#check app#test base#build base#check base#test lib#build lib#check lib#test other#build other#check other#test'
edit "$ALL" "a lock file" 'echo >pnpm-lock.yaml'
edit "$ALL" "settings of a package manager" 'echo >.npmrc'
edit "$ALL" "settings of the workspace" 'echo >>vx.workspace.json'
edit '' "a lock file elsewhere is none" 'echo >elsewhere.lock; mkdir -p x; echo >x/yarn.lock'
edit '' "a manifest of the root that lists no members" 'echo "{ \"private\": true }" >package.json'
edit "$ALL" "one that lists some" 'echo "{ \"workspaces\": [\"p/*\"] }" >package.json'
edit 'app#build app#check app#test base#build base#check base#test lib#build lib#check lib#test' \
	"a project that is gone" 'rm -r p/other'
clean
reaches 'app#build app#test' "filters narrow it" build test --affected=HEAD~4 --filter app
reaches 'app#all lib#all' "a group is affected by what it needs" all --affected=HEAD~3 --filter app --filter lib
echo x >>p/lib/test/f
reaches 'lib#all' "by nothing else" all --affected=HEAD
reaches 'lib#test other#build' "tasks that are named with their project run anyway" test other#build --affected=HEAD
reaches 'lib#test other#test' "even when they are named both ways" test other#test --affected=HEAD
run run build --affected=HEAD other#build --output-logs=hash-only
exits 0 "and when nothing else does"
like "$OUT" '^success other#build' "it is run"
clean

# What git is told not to look at.
git_ update-index --assume-unchanged p/lib/src/f
reaches '' "a file that git takes for unchanged, and is" build --affected=HEAD
echo x >>p/lib/src/f
reaches 'app#build lib#build' "and is not" build --affected=HEAD
git_ update-index --no-assume-unchanged p/lib/src/f
git_ checkout -q p/lib/src/f
git_ update-index --skip-worktree p/lib/src/f
echo x >>p/lib/src/f
reaches 'app#build lib#build' "one that it skips" build --affected=HEAD
rm p/lib/src/f
reaches '' "and that is not there" build --affected=HEAD
git_ update-index --no-skip-worktree p/lib/src/f
clean

# A project within one, a task that reads files of others, and names with odd bytes.
put p/lib/inner/vx.config.json <<'E'
{ "name": "inner", "tasks": { "build": { "exec": { "command": "true" },
  "cache": { "inputs": { "files": ["**"], "workspaceFiles": ["p/other/*.md"] }, "outputs": { "files": [] } } } } }
E
echo '{ "projects": ["p/*", "p/lib/inner"] }' >vx.workspace.json
echo x >p/lib/inner/f
echo x >p/other/x.md
git_ add -A
git_ commit -qm inner
edit 'inner#build' "a project inside another" 'echo x >>p/lib/inner/f'
edit 'inner#build other#build other#check other#test' "a file that another project's task reads" 'echo x >>p/other/x.md'
edit 'app#build app#test lib#build lib#check lib#test' "odd bytes in a name" "echo >'p/lib/src/-x
\"é\\'"
edit 'app#build app#test lib#build lib#check lib#test' "a name that could be an option" "echo >p/lib/src/--output=x; git_ add -A"
clean

# --- an edge that is gone, which no file of who had it tells

clean
mkdir p/pinned
echo '{ "name": "base", "version": "1.2.0" }' >p/base/package.json
echo '{ "name": "pinned", "dependencies": { "base": "^1.0.0" } }' >p/pinned/package.json
sed 's/"dependencies": \[[^]]*\], //;s/"name": "[^"]*", //' p/base/vx.config.json >p/pinned/vx.config.json
git_ add -A
git_ commit -qm versions
edit 'app#build app#test base#build base#check base#test lib#build lib#test pinned#build pinned#test' \
	"a version that ranges allow" 'sed -i s/1.2.0/1.3.0/ p/base/package.json'
edit 'app#build app#test base#build base#check base#test lib#build lib#test pinned#build pinned#check pinned#test' \
	"one that they do not: who depended on it" 'sed -i s/1.2.0/2.0.0/ p/base/package.json'
clean
git_ reset -q --hard HEAD~1

# --- "[ref]"

echo x >>p/lib/README
reaches 'lib#build' "[ref]: projects that changed" build --filter '[HEAD]'
reaches 'app#build lib#build' "...[ref]" build --filter '...[HEAD]'
reaches 'app#build' "...^[ref]" build --filter '...^[HEAD]'
reaches 'base#build lib#build' "[ref]..." build --filter '[HEAD]...'
reaches 'base#build' "[ref]^..." build --filter '[HEAD]^...'
reaches 'lib#build' "sel[ref]" build --filter 'l*[HEAD]'
reaches '' "one of which nothing changed" build --filter 'app[HEAD]'
reaches 'app#build' "sel...[ref]: what has changed, or depends on it" build --filter 'app...[HEAD]'
reaches '' "and nothing else" build --filter 'base...[HEAD]'
reaches 'app#build lib#build' "{dir}...[ref]" build --filter '{p}...[HEAD]'
reaches 'lib#build' "tag:t[ref]" build --filter 'tag:t-*[HEAD]'
reaches 'app#build base#build inner#build other#build' "![ref]" build --filter '![HEAD]'
reaches 'lib#build other#build' "beside others" build --filter '[HEAD]' --filter other
run run check --filter 'inner[HEAD]'
exits 0 "nothing changed, and who is asked has no such task"
said 'nothing affected since HEAD' "it is the diff that says so"
clean
run run build --filter '[HEAD]'
is "$(cat "$ERR")" 'vx: nothing affected since HEAD: --filter "[HEAD]" leaves nothing to run' "a filter has no other base to offer"
run run build --filter 'app[HEAD]' --filter lib --filter '!lib'
said '^vx: nothing affected since HEAD: --filter "app\[HEAD\]" leaves nothing to run$' "which it was is said"
run run build --affected=main
said '^vx: main is where HEAD is, or ahead of it, so only what is not committed counts' "a base of another name"
run run build --filter '[HEAD~1]' --affected=HEAD
said 'nothing affected since HEAD$' "the base of --affected is the one that is told"
edit '' "nothing changed" ':'

# --- repositories in the repository

git_ init -q "$T/sub"
echo one >"$T/sub/f"
git_ -C "$T/sub" add -A
git_ -C "$T/sub" commit -qm sub
git_ -c protocol.file.allow=always submodule --quiet add "$T/sub" p/other/vendor
git_ config -f .gitmodules submodule.p/other/vendor.ignore all
git_ add -A
git_ commit -qm submodule
OTHER='other#build other#check other#test'
edit '' "a submodule as it was" ':'
edit "$OTHER" "a file of it" 'echo x >>p/other/vendor/f'
git_ -C p/other/vendor checkout -q -f .
edit "$OTHER" "a new one" 'echo x >p/other/vendor/g'
edit "$OTHER" "another commit of it" 'rm p/other/vendor/g; git_ -C p/other/vendor commit -q --allow-empty -m x'
git_ -C p/other/vendor checkout -q -f HEAD~1
edit '' "back again" ':'
git_ clone -q "$T/sub" p/lib/src/clone
reaches 'app#build lib#build' "a repository that nobody added" build --affected=HEAD
rm -rf p/lib/src/clone
git_ submodule --quiet deinit -f p/other/vendor
edit '' "a submodule that is not there" ':'

# --- another work tree of the same repository

git_ worktree add -q --detach "$T/tree" HEAD
cd "$T/tree" || exit 99
echo x >>p/lib/src/f
reaches 'app#build lib#build' "a linked work tree" build --affected=main
cd "$W" || exit 99
reaches '' "its changes are not ours" build --affected=HEAD
mkdir "$T/deep"
git_ clone -q "$W" "$T/deep/repo"
mkdir -p "$T/deep/repo/up"
cd "$T/deep/repo" || exit 99
git_ mv p vx.workspace.json up
git_ commit -qm deeper
cd up || exit 99
echo x >>p/lib/src/f
echo x >../outside
reaches 'app#build lib#build' "a workspace below the top of its repository" build --affected=HEAD
cd "$W" || exit 99

# --- a clone that has not all of it

git_ clone -q --depth 1 "file://$W" "$T/shallow"
cd "$T/shallow" || exit 99
# shellcheck disable=SC2119
run run build --affected
exits 2 "a shallow clone without anything to compare with"
said "there is nothing to compare with: no origin/HEAD, .* and nothing before HEAD; this clone is shallow; first: git fetch --unshallow\$" "says why, and what to do"
run run build --affected=nothing-like
said "git knows no commit 'nothing-like'; .*; this clone is shallow; a branch of that name will be origin/nothing-like after: git fetch --unshallow origin '\+refs/heads/\*:refs/remotes/origin/\*'\$" "and of a commit that is not there"
echo x >>p/lib/src/f
reaches 'app#build lib#build' "what is not committed is seen" build --affected=HEAD
git_ fetch -q --depth 1 origin "+refs/heads/alone:refs/remotes/origin/alone"
run run build --affected=origin/alone
said "have no commit in common; this clone is shallow; first: git fetch --unshallow\$" "no common commit in a shallow clone"
cd "$W" || exit 99

# What is said has to work, word by word. NAME BRANCH CLONE-ARGS...: a clone of what grew from main, in which vx run --affected is
# refused; then it does what was said, and goes.
remedied() { # NAME WANT BASE CLONE-ARGS...
	m_name=$1 m_want=$2 m_base=$3
	shift 3
	rm -rf "$T/remedy"
	git_ clone -q "$@" "file://$T/grown" "$T/remedy"
	cd "$T/remedy" || exit 99
	run run build --affected"$m_base"
	exits 2 "$m_name: refused"
	sed -n 's/.*: \(git fetch .*\)$/\1/p' "$ERR" >"$T/typed"
	ok "$m_name: something to type" test -s "$T/typed"
	ok "$m_name: it works" env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' sh -e "$T/typed"
	case $(cat "$ERR") in
	*'will be '*) m_base=$(sed -n 's/.*will be \([^ ]*\) after.*/=\1/p' "$ERR") ;;
	esac
	reaches "$m_want" "$m_name: and then" build --affected"$m_base"
	cd "$W" || exit 99
}
git_ clone -q --branch main . "$T/grown"
cd "$T/grown" || exit 99
git_ branch start
git_ tag v1
git_ checkout -q -b grown
echo x >>p/lib/src/f
git_ commit -qam grown
git_ commit -q --allow-empty -m more
git_ checkout -q main
echo x >>p/other/src/f
git_ commit -qam 'main went on'
cd "$W" || exit 99
remedied "a single branch" 'app#build lib#build' '' --depth 1 --branch grown
remedied "main alone" 'other#build' '' --depth 1 --branch main
remedied "all branches" 'app#build lib#build' '=origin/main' --depth 1 --branch grown --no-single-branch
remedied "a deeper one" 'app#build lib#build' '=origin/main' --depth 2 --branch grown
remedied "a branch by its name" 'app#build lib#build' '=main' --depth 2 --branch grown
remedied "a commit" 'app#build lib#build' "=$(git_ -C "$T/grown" rev-parse start)" --depth 1 --branch grown
remedied "one before" 'app#build lib#build' '=HEAD~2' --depth 1 --branch grown
remedied "detached" '' '' --depth 1 --branch v1 --config advice.detachedHead=false
remedied "another name of the remote" 'app#build lib#build' '=main' --depth 1 --branch grown --origin upstream
cd "$W" || exit 99
git_ config uploadpack.allowFilter true
git_ clone -q --filter=tree:0 --no-checkout "file://$W" "$T/partial" 2>/dev/null
cd "$T/partial" || exit 99
git_ checkout -q HEAD 2>/dev/null
mv "$W" "$W.away"
run run build --affected="$FIRST"
mv "$W.away" "$W"
exits 2 "a clone that would have to fetch"
said '^vx: --affected=.*: what has changed since .*: git: ' "does not, and git says why"
cd "$W" || exit 99

# --- nothing that the repository names is started

mark() { # NAME: a program that says that it was started
	printf '#!/bin/sh\necho %s >>%s/started\ncat\n' "$1" "$T" >"$T/$1" && chmod +x "$T/$1"
}
for p in filter process textconv diff fsmonitor; do mark $p; done
mkdir -p "$T/hooks"
printf '#!/bin/sh\necho hook >>%s/started\n' "$T" >"$T/hooks/post-index-change"
chmod +x "$T/hooks/post-index-change"
echo '*.lfs filter=f=x diff=d' >p/other/.gitattributes
echo a >p/other/a.lfs
echo b >p/other/b.lfs
# git reads a file again that is not older than its index
touch -d '+1 hour' p/other/b.lfs
git_ add -A
git_ commit -qm attributes
git config filter.f=x.clean "$T/filter"
git config filter.f=x.process "$T/process"
git config filter.f=x.required true
git config diff.d.textconv "$T/textconv"
git config diff.d.command "$T/diff"
git config diff.external "$T/diff"
git config core.fsmonitor "$T/fsmonitor"
git config core.hooksPath "$T/hooks"
git config diff.relative false
git config diff.orderFile /nonexistent
echo more >>p/other/a.lfs
cp .git/index "$T/index"
reaches 'other#build' "a repository whose config names programs" build --affected=HEAD
ok "none of them is started" test ! -e "$T/started"
ok "the index is not written" cmp -s .git/index "$T/index"
mkdir "$T/old"
printf '#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec %s "$@"\n' "$(command -v git)" >"$T/old/git"
chmod +x "$T/old/git"
PATH=$T/old:$PATH
run run build --affected=HEAD
exits 2 "a git that does not know how to leave them"
said 'this git cannot be kept from starting the filters of its config \(filter\.f=x\.clean\): that takes git 2\.31' "is not asked"
ok "and starts none" test ! -e "$T/started"
done_testing

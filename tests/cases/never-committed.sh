#!/bin/sh
# SPDX-License-Identifier: MIT
# Names that somebody executes or obeys later do not reach the workspace through a grant of a directory
# or a pattern: at any depth, in any case, made in any way. Nor does anything reach vx's own places.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

cat >"$T/names" <<'E'
.bash_profile
.bashrc
.cargo/config
.cargo/config.toml
.claude/agents
.claude/commands
.devcontainer
.envrc
.exrc
.gdbinit
.git
.gitconfig
.github
.gitmodules
.hg/hgrc
.hg/hgrc-not-shared
.hg/sharedpath
.husky
.idea
.lldbinit
.mcp.json
.mise.toml
.mise/config.toml
.npmrc
.pnpmfile.cjs
.profile
.ripgreprc
.vimrc
.vscode
.yarnrc
.yarnrc.yml
.zprofile
.zshrc
mise.toml
vx-lock.json
vx.config.json
vx.config.mts
vx.workspace.json
E
tr '[:lower:]' '[:upper:]' <"$T/names" >"$T/upper"
cat "$T/upper" >>"$T/names"
nnames=$(wc -l <"$T/names")
# What is left in the workspace that is no directory, but the config that box writes.
left() { find . -name .vx -prune -o ! -type d ! -path ./vx.config.json -print | sort | tr '\n' ' '; }

# HOW, with $1 the name: it is made in the task.
made() {
	for grant in '**' '**/*' '*", "**/.*", "**/*.*'; do
		rm -rf a
		box "{ \"allow\": { \"write\": [\"$grant\"] } }" <<E
make() {
	$2
}
for dir in . a/b/c; do
	mkdir -p \$dir/.cargo \$dir/.CARGO \$dir/.claude \$dir/.CLAUDE \$dir/.hg \$dir/.HG \$dir/.mise \$dir/.MISE
	while read -r name; do
		make "\$dir/\$name"
	done <$T/names
done
rm -rf source
echo fine >a/fine.txt
E
		findings $((2 * nnames)) "$1, allow.write '$grant'"
		is "$(left)" "./a/fine.txt " "$1, allow.write '$grant': nothing else is committed"
		like vx.config.json "\"command\"" "$1, allow.write '$grant': the config is what it was"
	done
}
# shellcheck disable=SC2016 # expanded in the task
{
	made 'a file' 'rm -f "$1"; echo x >"$1"'
	made 'a directory' 'rm -f "$1"; mkdir -p "$1/x"; echo x >"$1/x/y"'
	made 'a renamed file' 'echo x >source; mv source "$1"'
	made 'a renamed directory' 'rm -f "$1"; mkdir -p source/x; echo x >source/x/y; mv source "$1"'
	made 'a hard link' 'echo x >source; ln -f source "$1"'
	made 'a symbolic link' 'ln -sfn "$PWD/a/fine.txt" "$1"'
}

# A link that leads to such a name.
rm -rf a
box '{ "allow": { "write": ["**/*"] } }' <<'E'
mkdir -p a/gen/commands
echo x >a/gen/config.toml
echo x >a/gen/commands/c
ln -s gen a/.cargo
ln -s gen a/.Claude
E
findings 2 "a link in the place of .cargo and .claude"
is "$(left)" "./a/gen/commands/c ./a/gen/config.toml " "what it leads to is only a file"

# In any case of letters, some of each.
rm -rf a
git_ init -q a/repo
box '{ "allow": { "write": ["**"] } }' <<'E'
mkdir -p a/.Git/hooks a/x/.gIT
echo x >a/.Git/hooks/post-commit
echo x >a/vx.CONFIG.json
echo x >a/Vx.Workspace.jsoN
echo x >a/.eNvRc
echo x >a/Vx-lock.JSON
echo x >a/repo/.git/Config.Worktree
echo x >a/repo/.git/HOOKS
E
findings 8 "names in mixed case"
is "$(find a -name repo -prune -o ! -type d -print)" "" "none is committed"
is "$(find a/repo/.git -iname 'hooks' -o -iname 'config*' | wc -l)" 2 "nor into a repository"

# What is there already is neither changed nor removed.
rm -rf a
mkdir -p a/.husky
echo old >a/.husky/pre-commit
echo old >a/.npmrc
box '{ "allow": { "write": ["**"] } }' <<'E'
echo new >>a/.husky/pre-commit
rm a/.npmrc
E
findings 2 "changes of what is there"
is "$(cat a/.husky/pre-commit a/.npmrc)" "old
old" "it is as it was"
box '{ "allow": { "write": ["a"] } }' <<'E'
rm -rf a
E
is "$(cat a/.husky/pre-commit a/.npmrc)" "old
old" "also when all around it is removed"

# By its own path it is.
rm -rf a
box '{ "allow": { "write": ["**", "a/.npmrc", "a/.cargo/config.toml", "a/{.envrc,.husky}"] } }' <<'E'
mkdir -p a/.cargo a/.husky
for f in .npmrc .cargo/config.toml .envrc .husky/x .mcp.json; do echo x >a/$f; done
E
findings 1 "names that are granted by their own path"
is "$(left)" "./a/.cargo/config.toml ./a/.envrc ./a/.husky/x ./a/.npmrc " "they are committed"

# The cache in use, wherever it is in the workspace.
rm -rf a
box '{ "allow": { "write": ["**"] } }' </dev/null
run run t --cache-dir store
put "$T/command.sh" <<'E'
ls -A store
mkdir -p store .vx
echo x >store/index.db
echo x >.vx/history.db
E
run run t --cache-dir store
exits 1 "a task that writes into the cache"
said_not '^(index\.db|blobs|\.gitignore)$' "it does not see what is there"
said '^write store/index\.db' "the cache is named"
said '^write \.vx/history\.db' "so is the state"
not_ok "and what it wrote is not there" grep -qx x store/index.db
clean "names never committed"

# A project that lives below such a name is there by its owner's will; what it makes is judged from there.
echo '{ "projects": [".github/actions/*"] }' | put vx.workspace.json
put .github/actions/greet/vx.config.json <<-'E'
	{ "tasks": { "t": {
		"exec": { "command": "mkdir -p dist/.github && echo x >dist/a && echo x >dist/.github/b",
			"sandbox": { "allow": { "write": ["dist/**"] } } }
	} } }
E
run run t --filter greet
findings 1 "a project below .github"
is "$(cd .github/actions/greet && find dist -type f)" "dist/a" "its output is committed, a name below it is not"

# A package brings its .github along, and nothing else of the kind.
rm -rf node_modules
mkdir node_modules
box '{ "allow": { "write": ["node_modules"] } }' <<'E'
mkdir -p node_modules/p/.github node_modules/p/.vscode
echo x >node_modules/p/.github/FUNDING.yml
E
findings 1 "a package with .github and .vscode"
said 'allow\.write: \["node_modules/p/\.vscode"\] \(names that tools obey need an entry of their own\)' "and why the grant does not cover it"
is "$(cd node_modules && find . -type f)" "./p/.github/FUNDING.yml" "its .github is committed"
not_ok "its .vscode is not" test -e node_modules/p/.vscode
done_testing

#!/bin/sh
# SPDX-License-Identifier: MIT
# A repository that a task made among its outputs is not committed, and vx never executes anything of it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program git

git_ init -q
echo i >in
cat >"$T/evil.sh" <<E
#!/bin/sh
: >$T/pwned
E
chmod 755 "$T/evil.sh"
cached=', "cache": { "inputs": { "files": ["in", "dist2/**"] }, "outputs": { "files": ["dist/**"] } }'
box '{ "allow": { "read": ["in"], "write": ["dist/**"] } }' "$cached" <<E
set -e
mkdir -p dist/repo dist/bare/objects dist/bare/refs dist/link dist/plain
git init -q dist/repo
git -C dist/repo config core.fsmonitor $T/evil.sh
printf '#!/bin/sh\n: >$T/pwned\n' >dist/repo/.git/hooks/post-index-change
chmod 755 dist/repo/.git/hooks/post-index-change
echo 'ref: refs/heads/main' >dist/bare/HEAD
printf '[core]\n\tfsmonitor = $T/evil.sh\n' >dist/bare/config
echo "gitdir: ../bare" >dist/link/.git
mkdir dist/upper && echo "gitdir: ../bare" >dist/upper/.GIT
echo fine >dist/plain/file
E
is "$(find dist -iname '.git' -o -name HEAD | sort)" "" "no repository reaches the workspace"
is "$(cat dist/plain/file 2>&1)" fine "the rest of the output does"
said '\.git' "vx says what it left out"
run run t
run run t --dry
ok "nothing of it was executed" test ! -e "$T/pwned"

# Configs of tools and of vx itself are not to be had through a directory grant either.
box '{ "allow": { "write": ["gen/**"] } }' <<'E'
set -e
mkdir -p gen/.vscode gen/.github/workflows gen/ok
echo x >gen/.vscode/tasks.json
echo x >gen/.github/workflows/ci.yml
echo x >gen/.envrc
echo x >gen/.npmrc
echo x >gen/.NPMRC
echo '{}' >gen/vx.config.json
echo fine >gen/ok/file
E
is "$(find gen -type f 2>/dev/null | sort | tr '\n' ' ')" "gen/ok/file " "only the harmless file was committed"
clean "git in outputs"
done_testing

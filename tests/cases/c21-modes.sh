#!/bin/sh
# SPDX-License-Identifier: MIT
# C21: outputs without write permission are stored with their modes, deleted, made again.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

command() {
	cat <<'E'
set -e
umask 022
mkdir -p out/a/b
touch out/a/b/f
echo c >out/exec
chmod 755 out/exec
echo p >out/private
chmod 600 out/private
mkdir out/z
chmod 0 out/z
chmod 555 out/a/b out/a
E
}
modes() { (cd out && find . -mindepth 1 -printf '%p %m\n' | sort | tr '\n' ' '); }
want='./a 555 ./a/b 555 ./a/b/f 644 ./exec 755 ./private 600 ./z 0 '
cached=', "cache": { "inputs": { "files": [] }, "outputs": { "files": ["out/**"] } }'

before out
command | box '{ "allow": { "write": ["out/**"] } }' "$cached"
findings 0 "C21: first run"
is "$(modes)" "$want" "modes as the task left them"
command | box '{ "allow": { "write": ["out/**"] } }' "$cached"
findings 0 "C21: second run"
said 'all cached' "is a hit"

chmod -R u+rwX out
rm -rf out
command | box '{ "allow": { "write": ["out/**"] } }' "$cached"
findings 0 "C21: restored"
said 'all cached' "without running"
is "$(modes)" "$want" "with the same modes"

run run t --force
findings 0 "C21: run again over what is there"
is "$(modes)" "$want" "with the same modes again"
unchanged C21 out

# Set-id and sticky bits never reach the workspace.
box '{ "allow": { "write": ["bits/**"] } }' <<'E'
mkdir bits && echo x >bits/x && chmod 6755 bits/x && mkdir bits/t && chmod 1777 bits/t
E
findings 0 "set-id and sticky bits"
is "$(stat -c '%a' bits/x bits/t | tr '\n' ' ')" "755 777 " "are cleared"
chmod -R u+rwX out
done_testing

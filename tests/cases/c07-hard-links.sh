#!/bin/sh
# SPDX-License-Identifier: MIT
# C07: hard links from a store.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"

mkdir store node_modules
echo x >store/p
before 'store|node_modules'
box '{ "allow": { "write": ["store", "node_modules"] } }' <<'E'
ln store/p node_modules/p && stat -c 'links %h' store/p
echo y >store/q
ln store/q node_modules/q && stat -c 'new %h' node_modules/q
E
findings 0 "C07: hard links from a store"
said '^links 2$' "C07: of a file that was there"
said '^new 2$' "C07: of a new one"
is "$(cat store/p node_modules/p store/q node_modules/q | tr -d '\n')" xxyy "C07: all are on the host"
ok "C07: the new ones are one file there" test store/q -ef node_modules/q
unchanged C07 'store|node_modules'
done_testing

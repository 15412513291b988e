#!/bin/sh
# SPDX-License-Identifier: MIT
# Inputs behind a link to a directory: no key follows one, so none is taken for a key in silence.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program git
cd "$W" || exit 99

task() { # GLOBS
	put vx.config.json <<-J
		{ "tasks": { "build": { "exec": { "command": "mkdir -p out; cat */a >out/a" },
			"cache": { "inputs": { "files": [$1] }, "outputs": { "files": ["out/**"] } } } } }
	J
}
refused() { # ENTRY HINT NAME
	run run build
	exits 2 "$3"
	said "vx: .*task build: the input \"$1\" lies behind the link src, so a change of it would not be seen; name $2" \
		"is told what to name"
	ok "nothing ran" test ! -e out
}

mkdir src
echo one >src/a
echo out >.gitignore
task '"src/**"'
git_ init -q
git_ add -A
git_ commit -qm sources
mv src src2
ln -s src2 src
refused src/a 'it where it is: "src2/a"' "a directory of sources that has become a link"
run run build --dry
exits 2 "a dry run says so, too"
git_ add -A
refused 'src/\*\*' 'its files where they are: "src2"' "committed"
task '"src/a"'
refused src/a 'it where it is: "src2/a"' "a file in it"
task '"src/*", "**/a"'
refused 'src/\*' 'its files where they are: "src2"' "in spite of another way to it"
for globs in '"src", "src2/**"' '"**"'; do
	task "$globs"
	run run build
	exits 0 "the link and what is behind it ($globs)"
	run run build
	said 'all cached' "count"
	echo "$globs" >src2/a
	run run build
	said_not 'all cached' "each by its own name"
	rm -r out
done
rm src
git_ reset -q --hard
task '"**"'
rm -rf out
mv src src3
ln -s src3 src
run run build
exits 0 "a link that git does not know yet, and all counts"
echo two >src/a
run run build
said_not 'all cached' "what is behind it counts, too"
done_testing

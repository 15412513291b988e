#!/bin/sh
# SPDX-License-Identifier: MIT
# What is granted for writing outside of the workspace: the host's own directories, in both views, and what is never
# committed is kept out of them all the same.
# shellcheck disable=SC2034 # RC is read by exits
. "${VX_SRCDIR:?}/tests/lib.sh"
. "$VX_SRCDIR/tests/sandbox/box.sh"
require_fuse
require_program git python3

D=$T/d
fresh() {
	chmod -R u+rwX "$D" 2>/dev/null
	rm -rf "$D"
	mkdir -p "$D/plain/sub" "$D/repo/deep/er" "$D/far"
	echo f >"$D/plain/sub/f"
	git_ init -q "$D/repo/deep/er"
	git_ init -q --bare "$D/bare"
	git_ init -q --bare "$D/named.git"
	echo f >"$D/repo/f"
	[ -z "${VX_TEST_OWNER:-}" ] || chown -R "$VX_TEST_OWNER:$VX_TEST_OWNER" "$D"
	own
}
denied() { # OP PATH NAME
	like "$ERR" "^vx-sandbox: denied $1 $D/$2( |\$)" "$3"
}
moved() { # PATH NAME
	like "$ERR" "^vx-sandbox: planted $D/$1, now at $D/.*vx-moved-out\\.[0-9]+\\.[0-9]+\$" "$2"
}

for view in "" live; do
	v=${view:-transaction}
	# --- nothing in it is of such a name: it is bound ---------------------------------------------
	fresh
	box "stat -c %i $D/plain $D/plain/sub/f; echo new >$D/plain/new; rm $D/plain/sub/f; mv $D/plain/sub $D/plain/moved" \
		$view "write $D/plain"
	exits 0 "$v: a plain directory"
	ok "$v: is written" test -f "$D/plain/new"
	ok "$v: names in it move" test -d "$D/plain/moved"
	unlike "$ERR" 'denied|planted' "$v: and nothing is told"

	fresh
	box "cd $D/plain; mkdir .husky sub/.Vscode; echo h >.husky/h; echo e >sub/.ENVRC
git init -q new; mkdir -p b/objects b/refs; echo ref: refs/heads/x >b/HEAD; ln -s /etc sub/.cargo
echo c >vx.config.ts; chmod 500 sub; : >'a
b'; mkdir 'c
d'; : >'c
d/.npmrc'; test -e .husky/h && echo stands" $view "write $D/plain"
	exits 0 "$v: names that are never written, made in it"
	prints stands "$v: stand until the end"
	for p in plain/.husky plain/sub/.Vscode plain/sub/.ENVRC plain/new/.git plain/b/HEAD plain/sub/.cargo plain/vx.config.ts; do
		moved "$p" "$v: found and moved: $p"
		not_ok "$v: not there any more: $p" test -e "$D/$p"
	done
	like "$ERR" "planted $D/plain/c.*d/.npmrc, now" "$v: in a directory with a newline in its name"
	is "$(grep -c planted "$ERR")" 8 "$v: no more than these"
	is "$(cat "$D"/plain/vx-moved-out.*/h)" h "$v: moved, not removed"
	ok "$v: other names stay" test -f "$D/plain/a
b"

	# --- something is: it is served ---------------------------------------------------------------
	fresh
	obeyed() (cd "$D/repo/deep/er/.git" && find hooks config config.worktree commondir -exec ls -ldn {} + 2>&1)
	was=$(obeyed)
	box "cd $D/repo; echo 1 >new && echo ok; echo 2 >f && echo ok; mkdir d && echo ok >d/f
for p in hooks/post-commit config commondir; do
	echo evil >deep/er/.git/\$p; done
rm -rf deep/er/.git/hooks; mv deep/er/.git deep/er/g; mv deep/er deep/e; mv deep x; rmdir deep; mkdir -p deep/er/.Git
cd deep; mkdir .husky; ln -s /etc .git; echo e >.envrc; git init -q other" $view "write $D/repo"
	ok "$v: served: a new file" test -f "$D/repo/new"
	is "$(cat "$D/repo/f")" 2 "$v: served: a file that was there"
	ok "$v: served: a new directory" test -f "$D/repo/d/f"
	is "$(obeyed)" "$was" "$v: what the repository in it obeys is what it was"
	is "$(ls -A "$D/repo/deep/er")" .git "$v: with nothing beside it"
	for p in hooks/post-commit config commondir; do
		denied write "repo/deep/er/\\.git/$p" "$v: refused and told: $p"
	done
	for p in .husky .git .envrc; do
		denied write "repo/deep/$p" "$v: refused and told: $p"
		not_ok "$v: not there: $p" test -e "$D/repo/deep/$p"
	done
	not_ok "$v: no repository is made" test -e "$D/repo/deep/other/.git"
	unlike "$ERR" planted "$v: there is nothing to move"

	# A thread that maps something over pages that are still to be written holds the lock of all mappings until
	# they are written; meanwhile another one is denied names.
	fresh
	head -c 262144 /dev/zero >"$D/repo/pages"
	mkdir "$W/no"
	echo >"$W/no/one"
	own
	cat >"$W/maps.py" <<-'END'
		import ctypes, os, sys, threading

		libc = ctypes.CDLL(None)
		libc.mmap.restype = ctypes.c_void_p
		libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
		size, over = 262144, False
		fd = os.open(sys.argv[1], os.O_RDWR)
		at = libc.mmap(None, size, 0, 0x22, -1, 0)

		def ask():
		    i = 0
		    while not over:
		        os.path.exists("no/%d" % i)
		        i += 1

		asking = threading.Thread(target=ask)
		asking.start()
		for i in range(100):
		    libc.mmap(at, size, 3, 0x11, fd, 0)
		    ctypes.memset(at, i, size)
		    libc.mmap(at, size, 0, 0x32, -1, 0)
		over = True
		asking.join()
		print("over")
	END
	box "python3 maps.py $D/repo/pages" $view "write $D/repo" "read maps.py" "read no/one"
	prints over "$v: served: pages that are written while names are denied"
	rm -r "$W/maps.py" "$W/no"

	# --- a repository by its own path -------------------------------------------------------------
	for r in bare named.git; do
		fresh
		was=$(cd "$D/$r" && find hooks config -exec ls -ldn {} +)
		box "cd $D/$r; export GIT_DIR=. GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c
c=\$(git commit-tree -m m 4b825dc642cb6eb9a060e54bf8d69288fbee4904 </dev/null) || {
	t=\$(git hash-object -w -t tree /dev/null); c=\$(git commit-tree -m m \$t); }
git update-ref refs/heads/one \$c && git pack-refs --all && git gc -q && git rev-parse -q --verify one >/dev/null && echo kept
echo evil >hooks/post-update; echo evil >hooks/post-update.sample; git config core.fsmonitor evil
echo /evil >commondir; mkdir -p modules/m/hooks; rm -rf hooks; mv hooks h; ln -s /evil config.worktree" \
			$view "write $D/$r"
		prints kept "$v: $r: git works"
		is "$(cd "$D/$r" && find hooks config -exec ls -ldn {} +)" "$was" "$v: $r: hooks and config are what they were"
		for p in hooks/post-update hooks/post-update.sample commondir config.worktree; do
			denied write "$r/$p" "$v: $r: told: $p"
		done
		not_ok "$v: $r: no commondir" test -e "$D/$r/commondir"
	done

	# One that the command makes where a directory that is called so was granted.
	fresh
	mkdir "$D/new.git"
	own
	box "cd $D/new.git; git init -q --bare . && git rev-parse --is-bare-repository; mkdir -p hooks; echo evil >hooks/post-update; ln -s /evil modules" \
		$view "write $D/new.git"
	prints true "$v: a repository is made in a directory that is called one"
	for p in config hooks modules; do
		moved "new.git/$p" "$v: without what it would obey: $p"
		not_ok "$v: not there any more: $p" test -e "$D/new.git/$p" -o -h "$D/new.git/$p"
	done
	is "$(grep -c planted "$ERR")" 3 "$v: all else stays"

	# Names beside what is moved can be taken.
	fresh
	box "cd $D/plain; mkdir .husky; python3 -c 'for i in range(2, 100000): open(\"vx-moved-out.%d.0\" % i, \"w\")' 2>/dev/null" \
		$view "write $D/plain"
	moved plain/.husky "$v: moved though the name for it was taken"
	not_ok "$v: it is not there any more" test -e "$D/plain/.husky"

	# --- what else is named, and what is apart ----------------------------------------------------
	fresh
	box "cd $D/repo/deep/er/.git; echo x >hooks/mine && echo ok; echo y >hooks/other; echo z >config && echo ok" \
		$view "write $D/repo" "write $D/repo/deep/er/.git/hooks/mine" "write $D/repo/deep/er/.git/config"
	prints "ok
ok" "$v: what a rule names is written"
	denied write "repo/deep/er/\\.git/hooks/other" "$v: what is beside it is not"
	fresh
	box "echo y >$D/repo/f && echo ok; echo z >$D/plain/new" $view "write $D/repo/f"
	prints ok "$v: a file by its own path"
	not_ok "$v: and no other" test -e "$D/plain/new"

	# --- what is covered or kept in it cannot be left by a rename of what it is in ------------------
	for d in plain repo; do
		for rule in deny-write store hide; do
			fresh
			mkdir -p "$D/$d/x/y/z"
			echo was >"$D/$d/x/y/z/f"
			own
			box "cd $D/$d; for p in x x/y; do mv \$p moved 2>/dev/null && echo \$p; done
mkdir -p x/y/z; echo evil 2>/dev/null >x/y/z/f; echo n >x/y/beside && mv x/y/beside . && echo ok" \
				$view "write $D/$d" "$rule $D/$d/x/y/z"
			prints ok "$v: $d, $rule: names on the way to it stay, others move"
			is "$(cat "$D/$d/x/y/z/f")" was "$v: $d, $rule: and it is what it was"
		done
	done
	fresh
	OUTER_W=$W W=$D/plain/x/w
	mkdir -p "$W"
	echo was >"$W/f"
	own
	box "cd $D/plain; mv x moved 2>/dev/null && echo moved; mkdir -p x/w; echo n >x/beside" \
		$view "write $D/plain" "read ."
	prints "" "$v: nor can the workspace"
	is "$(cat "$D/plain/x/w/f")" was "$v: it is where it was"
	ok "$v: beside it is written" test -f "$D/plain/x/beside"
	W=$OUTER_W

	# The workspace in what is granted: its own repository is no business of this.
	fresh
	rm -rf "$W/.git" "$W/.husky"
	git_ init -q "$W"
	mkdir "$W/.husky"
	own
	was=$(find "$W" -exec ls -ldn {} +)
	box "echo 1 >$T/besides" $view "write $T"
	ok "$v: beside the workspace" test -f "$T/besides"
	is "$(find "$W" -exec ls -ldn {} +)" "$was" "$v: the workspace in a granted directory is left alone"
	unlike "$ERR" planted "$v: and nothing of it is told"
	rm -rf "$W/.git" "$W/.husky" "$T/besides"
done

# --- without FUSE: what is there is covered by itself, what comes is found at the end ---------------
fresh
ln -s /etc "$D/repo/.cargo"
mkdir "$D/repo/.husky"
obeyed() (cd "$D" && find repo/deep/er/.git bare \( -name hooks -o -name config -o -name commondir \) -exec ls -ldn {} +; ls -dn repo/.husky)
was=$(obeyed)
box "cd $D/repo; echo 1 >new && echo ok; cd deep/er
for p in hooks/post-commit hooks/update.sample config ../../.husky/h; do echo evil 2>/dev/null >.git/\$p && echo \$p; done
rm -rf .git/hooks 2>/dev/null; mv .git/config .git/c 2>/dev/null; mv ../../.husky ../../h 2>/dev/null
echo evil >.git/commondir; echo ref >.git/HEAD; mkdir -p ../../x; echo e >../../x/.envrc
cd $D/bare; mkdir -p modules/m/objects modules/m/refs; echo ref >modules/m/HEAD; echo evil >config.worktree; echo evil 2>/dev/null >config
git init -q $D/repo/other; test -e $D/repo/other/.git && echo made" fuse-off "write $D/repo" "write $D/bare"
prints "ok
made" "no FUSE: what may be written is, and nothing that is there"
is "$(obeyed)" "$was" "no FUSE: what is obeyed is what it was"
for p in repo/deep/er/.git/commondir repo/x/.envrc repo/other/.git bare/modules/m/HEAD bare/config.worktree; do
	moved "$p" "no FUSE: moved: $p"
	not_ok "no FUSE: not there: $p" test -e "$D/$p"
done
is "$(grep -c planted "$ERR")" 5 "no FUSE: no more than these"
is "$(cat "$D/repo/deep/er/.git/HEAD")" ref "no FUSE: a HEAD that was there stays"

# Moved with what it is in, it is what it was; a new one in its place is none.
fresh
box "cd $D/repo/deep/er && mv .git old && echo evil 2>/dev/null >old/hooks/post-commit
mkdir .git && mv old/objects old/refs old/HEAD .git && mkdir .git/hooks && echo evil >.git/hooks/post-commit; echo replaced" fuse-off "write $D/repo"
prints replaced "no FUSE: another repository in its place"
is "$(find "$D/repo/deep/er" -name post-commit ! -path '*vx-moved-out*')" "" "no FUSE: its hooks are not obeyed"

# git sets something meanwhile, outside: that is not taken away.
fresh
fifo to from
spec "echo up >$T/from; read -r line <$T/to" fuse-off "write $D/repo"
timeout 60 "$VX_SANDBOX" --spec "$T/spec" >"$OUT" 2>"$ERR" </dev/null &
BOX=$!
is "$(await from)" up "no FUSE: it runs"
git_ -C "$D/repo/deep/er" config core.x host
echo go >"$T/to"
wait "$BOX"
is "$(git_ -C "$D/repo/deep/er" config core.x)" host "no FUSE: a config that the host has replaced stays"
like "$ERR" "planted $D/repo/deep/er/.git/config, which stands" "no FUSE: and is told, to be looked at"
done_testing

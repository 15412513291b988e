#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The oldest kernel that vx promises, Debian 12's 6.1, in an emulated machine: the sandbox tests, the cases
# and oldest.sh run there, as root and as an ordinary user. Each claim of theirs is one line here, with the
# user and the test that made it.
#
# The machine's disk holds what the tests need of this system: programs and their libraries, the build, the
# tests. It powers itself off at the end; the limit is for one that hangs. Emulated, not virtual: what
# stands at /dev/kvm does not work everywhere. The kernel package and the machine's console are kept in
# kernel/ of the build directory.
. "${VX_SRCDIR:?}/tests/lib.sh"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
LIMIT=7200

# Debian packages whose programs the tests use.
PACKAGES='attr bsdextrautils bsdutils coreutils dash diffutils findutils git grep libc-bin mawk mount procps
	python3-minimal sed tar util-linux'
# In the order of their loading.
MODULES='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk fuse overlay'
# Unit programs that ask this kernel for what another may not have.
UNIT='test-filter test-guard test-layer-mount test-scratch test-wall'
# Tests that ask what the kernel does: how the view is built and served, what passes it, what is left. Not those of what the
# core decides, whatever the kernel: emulated, each takes more than ten times as long as elsewhere. Root runs those that have
# a way of their own for it.
USER_SANDBOX='live mirror outside view fileops homes hygiene layers network preload processes refused syscalls'
USER_CASES='c03-c05-names c04-c06-directories c07-hard-links c12-worktree c17-thread c19-c20-left-over c21-modes c22-c24-shm-network
	c23-terminal live-view nested unix-sockets'
ROOT_SANDBOX='live mirror outside view layers processes syscalls'
ROOT_CASES='c09-owners c19-c20-left-over hermetic nested unix-sockets'

store=$VX_BUILDDIR/kernel
root=$T/root
mkdir -p "$store" "$root"

die() {
	printf 'Bail out! %s\n' "$*"
	exit 99
}

# --- the kernel ----------------------------------------------------------------------------------

# The newest package of the 6.1 series, fetched and unpacked once: sets kernel, modules.
fetch_kernel() {
	name=$(apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-cloud-amd64$' | cut -d' ' -f1 |
		sort -V | tail -n 1)
	[ -n "$name" ] || die "apt knows no package linux-image-6.1.0-*-cloud-amd64 (Debian 12 has it)"
	if [ ! -d "$store/$name" ]; then
		rm -rf "$store/fetched"
		mkdir "$store/fetched"
		(cd "$store/fetched" && apt-get -qq -o APT::Sandbox::User=root download "$name") >&2 ||
			die "cannot fetch $name"
		dpkg-deb -x "$store/fetched"/*.deb "$store/fetched/unpacked" || die "cannot unpack $name"
		mv "$store/fetched/unpacked" "$store/$name"
		rm -rf "$store/fetched"
	fi
	kernel=$(find "$store/$name/boot" -name 'vmlinuz-*')
	modules=$store/$name/lib/modules
}

# SANDBOX CASES: the tests of one user. VX_LANE_TESTS in their place: for who looks into one of them.
tests() {
	# shellcheck disable=SC2046,SC2086 # words
	if [ -n "${VX_LANE_TESTS:-}" ]; then
		echo "$VX_LANE_TESTS"
	else
		echo $UNIT $(printf 'tests/sandbox/%s.sh ' $1) $(printf 'tests/cases/%s.sh ' $2)
	fi
}

# A busybox that loads the drivers and hands over to the disk.
make_initramfs() {
	mkdir -p "$T/init/dev" "$T/init/disk"
	cp "$(command -v busybox)" "$T/init/"
	for m in $MODULES; do
		file=$(find "$modules" -name "$m.ko")
		[ -n "$file" ] || die "the kernel package has no module $m"
		cp "$file" "$T/init/"
	done
	cat >"$T/init/init" <<-E
		#!/busybox sh
		for m in $MODULES; do /busybox insmod /\$m.ko; done
		/busybox mount -t devtmpfs dev /dev
		/busybox mount -t ext4 /dev/vda /disk
		/busybox mount -o move /dev /disk/dev
		exec /busybox switch_root /disk /usr/bin/env ROOT_TESTS='$(tests "$ROOT_SANDBOX" "$ROOT_CASES")' \
			USER_TESTS='$(tests "$USER_SANDBOX" "$USER_CASES")' sh /src/tests/kernel/guest.sh
	E
	chmod +x "$T/init/init"
	(cd "$T/init" && find . | cpio --quiet -o -H newc -R 0:0) >"$T/initramfs" || die "cannot make the initramfs"
}

# --- the disk ------------------------------------------------------------------------------------

# The list of files in $T/take.
needed() {
	# shellcheck disable=SC2086 # a list of words
	dpkg -L $PACKAGES | grep -E '^(/usr)?/s?bin/|/git-core/templates/' | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done
	command -v cc
	python=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
	find "$python" \( -name test -o -name idlelib -o -name dist-packages -o -name __pycache__ \) -prune \
		-o -type f -print
	# The C compiler says itself what it uses to build a program of a test.
	for part in cc1 collect2 lto-wrapper as ld; do
		command -v "$(cc -print-prog-name=$part)"
	done
	cc -print-file-name=liblto_plugin.so
	cc -O1 -M "$VX_SRCDIR/tests/cases/lister.c" | grep -oE '/usr/[^ ]+'
	cc -o "$T/lister" "$VX_SRCDIR/tests/cases/lister.c" -lpthread -Wl,--trace |
		grep -oE '/(usr|lib)[^ )]+\.(o|a|so[.0-9]*)$'
}
# Whole names on stdin: copied as they stand here, links followed. The directories outside /usr are
# links into it.
take() {
	sed -E -e 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,' -e 's,^/,,' | sort -u |
		(cd / && cpio --quiet -pdmL "$root")
}
make_disk() {
	mkdir -p "$root/build" "$root/dev" "$root/etc" "$root/home/user" "$root/mnt" "$root/proc" "$root/root" "$root/run" \
		"$root/src/docs" "$root/sys" "$root/tmp" "$root/usr" "$root/var/tmp"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	printf '%s\n' root:x:0:0::/root:/bin/sh user:x:1000:1000::/home/user:/bin/sh >"$root/etc/passwd"
	printf '%s\n' root:x:0: user:x:1000: >"$root/etc/group"
	cp /etc/os-release "$root/etc/"
	for d in bin sbin lib lib64; do
		ln -s "usr/$d" "$root/$d"
	done

	find "$VX_BUILDDIR" -maxdepth 1 -type f -perm -u+x ! -name 'config*' >"$T/built"
	[ -x "$VX_BUILDDIR/probe" ] || die "the tests are not built: make check TESTS="
	xargs cp -t "$root/build" "$VX_BUILDDIR/config.h" <"$T/built"
	cp -R "$VX_SRCDIR/tests" "$root/src/"
	cp -R "$VX_SRCDIR/docs/examples" "$VX_SRCDIR/docs/man" "$root/src/docs/"
	needed >"$T/take"
	grep -E '/s?bin/|\.so|/cc1$' "$T/take" | cat - "$T/built" | xargs ldd 2>/dev/null |
		grep -oE '/[^ :]+\.so[^ :]*' >"$T/libraries"
	sort -u "$T/take" "$T/libraries" | take
	ln -sf dash "$root/usr/bin/sh"
	ln -sf mawk "$root/usr/bin/awk"
	chmod -R go+rX "$root/src" "$root/build"

	as_root=
	[ "$(id -u)" = 0 ] || as_root='unshare --user --map-root-user'
	truncate -s 1G "$T/disk"
	# shellcheck disable=SC2046,SC2086 # words
	$as_root mkfs.ext4 -q -F -O ^has_journal -d "$root" "$T/disk" || die "cannot make the disk"
	rm -rf "$root"
}

# --- the run -------------------------------------------------------------------------------------

# What its second serial line says.
boot() {
	timeout -k 10 "$LIMIT" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults \
		-display none -no-reboot -serial "file:$store/console" \
		-chardev stdio,id=results -serial chardev:results \
		-drive "file=$T/disk,if=virtio,format=raw,cache=unsafe" -kernel "$kernel" -initrd "$T/initramfs" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off no5lvl" </dev/null
}

# Results of many tests to those of one.
translate() {
	test='' ended=''
	while IFS= read -r line; do
		case $line in
		'@test '*) test=${line#@test } n=0 plan='' ;;
		'@exit 0') [ "$n" = "$plan" ] || fail "$test: gave $n of ${plan:-an unknown number of} results" ;;
		'@exit '*) fail "$test: ended with ${line#@exit }" ;;
		'@end') ended=1 ;;
		'1..0 # SKIP '*)
			skip "$test" "${line#1..0 # SKIP }"
			plan=0
			;;
		1..*) plan=${line#1..} ;;
		'ok '*' # SKIP '*)
			n=$((n + 1)) line=${line#ok * - }
			skip "$test: ${line%% # SKIP *}" "${line#* # SKIP }"
			;;
		'ok '*)
			n=$((n + 1))
			pass "$test: ${line#ok * - }"
			;;
		'not ok '*)
			n=$((n + 1))
			fail "$test: ${line#not ok * - }"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	is "${ended:-no}" 1 "the machine came to its end"
	[ -n "$ended" ] || diag "$(tail -n 40 "$store/console")"
	done_testing
}

[ "$(uname -m)" = x86_64 ] || skip_all "the machine is an x86-64 one, with this system's programs"
[ -L /lib ] || skip_all "/usr is not merged here"
require_program apt-get apt-cache dpkg-deb qemu-system-x86_64 busybox cpio mkfs.ext4 python3 git cc
fetch_kernel
make_initramfs
make_disk
: >"$store/console"
boot | translate

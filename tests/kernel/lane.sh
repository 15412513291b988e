#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The oldest kernel that vx promises, Debian 12's 6.1, booted in an emulated machine: the sandbox tests, the
# cases and tests/kernel/oldest.sh run there, as root and as an ordinary user. Every claim of theirs is one
# line here, under the user and the test that made it.
#
# The machine's disk holds what the tests need of this system: programs, the libraries that they name, the
# build and the tests. It ends by itself (power off); LIMIT is for one that hangs. What it said on its
# console is left in $VX_BUILDDIR/kernel/console.
. "${VX_SRCDIR:?}/tests/lib.sh"
LIMIT=3000

# Packages of programs that tests use, and what is no program in them.
PACKAGES='attr coreutils dash diffutils e2fsprogs findutils git grep mawk mount procps sed tar util-linux
	util-linux-extra bsdutils bsdextrautils python3 python3-minimal python3.11-minimal libc-bin kmod'
MODULES='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk fuse overlay'

export PATH=/usr/sbin:/usr/bin:/sbin:/bin
store=$VX_BUILDDIR/kernel
root=$T/root

die() {
	printf 'Bail out! %s\n' "$*"
	exit 99
}

# --- the kernel ----------------------------------------------------------------------------------

# The newest package of the 6.1 series, fetched once.
fetch_kernel() {
	name=$(apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-cloud-amd64$' |
		cut -d' ' -f1 | sort -V | tail -n 1)
	if [ -n "$name" ] && ! ls "$store/$name"_*.deb >/dev/null 2>&1; then
		(cd "$store" && apt-get -qq -o APT::Sandbox::User=root download "$name") >&2
	fi
	deb=$(find "$store" -name 'linux-image-6.1.*.deb' | sort -V | tail -n 1)
	[ -n "$deb" ] || die "cannot fetch a package linux-image-6.1.*-cloud-amd64"
	dpkg-deb -x "$deb" "$T/kernel" || die "cannot unpack $deb"
	kernel=$(find "$T/kernel/boot" -name 'vmlinuz-*')
}

# A busybox that loads the drivers and hands over to the disk.
make_initramfs() {
	mkdir -p "$T/init/bin" "$T/init/dev" "$T/init/root"
	cp "$(command -v busybox)" "$T/init/bin/sh"
	for m in $MODULES; do
		file=$(find "$T/kernel/lib/modules" -name "$m.ko")
		[ -n "$file" ] || die "the kernel package has no module $m"
		cp "$file" "$T/init/"
	done
	cat >"$T/init/init" <<-E
		#!/bin/sh
		for m in $MODULES; do
			busybox insmod /\$m.ko
		done
		busybox mount -t devtmpfs dev /dev
		busybox mount -t ext4 /dev/vda /root
		busybox mount -o move /dev /root/dev
		exec busybox switch_root /root /bin/sh /src/tests/kernel/guest.sh
	E
	ln "$T/init/bin/sh" "$T/init/bin/busybox"
	chmod +x "$T/init/init"
	(cd "$T/init" && find . | cpio --quiet -o -H newc -R 0:0) >"$T/initramfs" || die "no initramfs"
}

# --- the disk ------------------------------------------------------------------------------------

# Absolute names on stdin: as they stand here, links followed.
take() {
	sed -E -e 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,' -e 's,^/,,' | sort -u |
		(cd / && cpio --quiet -pdmL "$root")
}
libraries_of() { # FILE...
	ldd "$@" 2>/dev/null | grep -oE '/[^ :]+' | sort -u
}
take_programs() {
	for package in $PACKAGES; do
		dpkg -L "$package" 2>/dev/null
	done | grep -E '^(/usr)?/s?bin/' | sort -u >"$T/programs"
	echo "$(command -v cc)" >>"$T/programs"
	while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done <"$T/programs" >"$T/files"
	python=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
	find "$python" \( -name test -o -name __pycache__ -o -name dist-packages -o -name idlelib \) -prune -o \
		-type f -print >>"$T/files"
	take_compiler >>"$T/files"
	find "$VX_BUILDDIR" -maxdepth 1 -type f -perm -u+x ! -name 'config*' >"$T/built"
	# shellcheck disable=SC2046 # names without blanks
	libraries_of $(grep -E '/s?bin/|\.so|/cc1$' "$T/files") $(cat "$T/built") >>"$T/files"
	take <"$T/files"
}
# The compiler of C says itself what it needs to build a program of a test.
take_compiler() {
	for part in cc1 collect2 lto-wrapper as ld; do
		file=$(cc -print-prog-name=$part)
		command -v "$file"
	done
	echo "$(cc -print-file-name=liblto_plugin.so)"
	cc -M "$VX_SRCDIR/tests/cases/lister.c" | tr ' \\' '\n\n' | grep '^/usr/'
	cc -o "$T/lister" "$VX_SRCDIR/tests/cases/lister.c" -lpthread -Wl,--trace | grep -oE '/[^ )]+\.(o|a|so[.0-9]*)$'
}
make_disk() {
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/root" "$root/home/user" \
		"$root/var/tmp" "$root/etc" "$root/src/docs" "$root/build" "$root/usr"
	for d in bin sbin lib lib64; do
		[ -L "/$d" ] || die "no merged /usr here"
		cp -P "/$d" "$root/$d"
		mkdir -p "$root/usr/$d"
	done
	chmod 1777 "$root/tmp" "$root/var/tmp"
	chmod 700 "$root/root"
	printf '%s\n' 'root:x:0:0::/root:/bin/sh' 'user:x:1000:1000::/home/user:/bin/sh' >"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'user:x:1000:' >"$root/etc/group"
	cp /etc/os-release "$root/etc/"
	take_programs
	cp -R "$VX_SRCDIR/tests" "$root/src/"
	cp -R "$VX_SRCDIR/docs/examples" "$root/src/docs/"
	xargs cp -t "$root/build" "$VX_BUILDDIR/config.h" <"$T/built"
	ln -sf dash "$root/usr/bin/sh"
	chmod -R go+rX "$root/src" "$root/build"
	as_root=
	[ "$(id -u)" = 0 ] || as_root='unshare --user --map-root-user'
	truncate -s 1G "$T/disk"
	$as_root mkfs.ext4 -q -F -O ^has_journal -d "$root" "$T/disk" || die "cannot make the disk"
}

# --- the run -------------------------------------------------------------------------------------

boot() {
	timeout -k 10 "$LIMIT" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 \
		-nodefaults -display none -no-reboot \
		-serial "file:$store/console" -chardev stdio,id=results -serial chardev:results \
		-drive "file=$T/disk,if=virtio,format=raw,cache=unsafe" \
		-kernel "$kernel" -initrd "$T/initramfs" \
		-append "console=ttyS0 quiet panic=-1 rdinit=/init" </dev/null
}
# What guest.sh and the tests in it said, as tests of this file.
translate() {
	test='the machine'
	while IFS= read -r line; do
		case $line in
		'@test '*) test=${line#@test } n=0 plan='' ;;
		'@exit 0') [ "$n" = "$plan" ] || fail "$test: said $n results of ${plan:-no plan}" ;;
		'@exit '*) fail "$test: ended with ${line#@exit }" ;;
		'@end') ended=1 ;;
		'1..0 # SKIP'*) skip "$test" "${line#1..0 # SKIP }" plan=0 ;;
		1..*) plan=${line#1..} ;;
		'ok '*' # SKIP '*) n=$((n + 1)) skip "$test: ${line#ok * - }" '' ;;
		'ok '*) n=$((n + 1)) && pass "$test: ${line#ok * - }" ;;
		'not ok '*) n=$((n + 1)) && fail "$test: ${line#not ok * - }" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
}
cat <<E
E
t0=$(date +%s)
mkdir -p "$store"
fetch_kernel
make_initramfs
make_disk
t1=$(date +%s)
diag "prepared in $((t1-t0))"
cp "$T/disk" /tmp/kd/disk; cp "$T/initramfs" "$kernel" /tmp/kd/
boot
t2=$(date +%s)
diag "ran in $((t2-t1))"

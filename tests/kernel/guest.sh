#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Process 1 of the machine that lane.sh boots, its disk mounted at /: sets the system up, runs the tests and
# powers off. What the tests say goes to the second serial line, whole files between "@test NAME" and
# "@exit CODE"; lane.sh reads it there.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
export VX_SRCDIR=/src VX_BUILDDIR=/build VX_TEST_DIR=/scratch VX_SANDBOX_MUST_WORK=1 AWK=mawk

mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs run /run
# /tmp stays on the disk: a tmpfs can hold no upper directory here, which unit programs make there.
chmod 666 /dev/fuse
ln -s /proc/self/fd /dev/fd
chown user: /home/user
# Not in /var/tmp: oldest.sh covers that.
mkdir -m 1777 /scratch
stty -F /dev/ttyS1 raw
cd /scratch || exit

# USER TEST...: each test as that user. Two users may do so at once: a result is sent as a whole.
run_as() {
	who=$1
	shift
	for t; do
		echo "$who $t" >/dev/ttyS0
		out=$(mktemp)
		t0=$(cut -d. -f1 /proc/uptime)
		{
			echo "@test $who: $t"
			case $t in
			*.sh) set -- sh "/src/$t" ;;
			*) set -- "/build/$t" ;;
			esac
			if [ "$who" = root ]; then
				HOME=/root USER=root timeout -k 10 1200 "$@"
			else
				setpriv --reuid user --regid user --clear-groups env HOME=/home/user USER=user \
					timeout -k 10 1200 "$@"
			fi
			echo "@exit $?"
			echo "# $(($(cut -d. -f1 /proc/uptime) - t0)) s: $who: $t"
		} </dev/null >"$out" 2>&1
		flock /run/results cat "$out" >/dev/ttyS1
		rm "$out"
	done
}

# shellcheck disable=SC2086 # a list of words
run_as root $ROOT_TESTS &
# shellcheck disable=SC2086
run_as user $USER_TESTS
wait

run_as root tests/kernel/oldest.sh
run_as user tests/kernel/oldest.sh
rm /dev/fuse
run_as root tests/kernel/oldest.sh
run_as user tests/kernel/oldest.sh

{
	echo "@test the kernel"
	if dmesg | grep -E 'BUG:|WARNING: CPU|Oops|blocked for more than'; then
		echo "not ok 1 - has complaints"
	else
		echo "ok 1 - has no complaint"
	fi
	echo 1..1
	echo "@exit 0"
	echo "@end"
} >/dev/ttyS1
sync
echo o >/proc/sysrq-trigger
read -r _ <>/dev/ttyS0

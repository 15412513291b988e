#!/bin/sh
# SPDX-License-Identifier: MIT
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs -o mode=1777 tmp /tmp
chmod 666 /dev/fuse
stty -F /dev/ttyS1 raw
exec >/dev/ttyS1 2>&1
uname -a
cat /proc/uptime
export VX_SRCDIR=/src VX_BUILDDIR=/build VX_SANDBOX_MUST_WORK=1
cd /src
for t in tests/sandbox/view.sh tests/sandbox/processes.sh tests/cases/listings.sh; do
	echo "@test $t"
	t0=$(date +%s)
	timeout 600 sh $t </dev/null
	echo "@exit $?"
	echo "took $(($(date +%s)-t0))"
done
cat /proc/uptime
echo @end
echo o >/proc/sysrq-trigger
read x

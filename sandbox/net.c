/* SPDX-License-Identifier: MIT */
#include "sandbox/setup.h"
#include "util/cleanup.h"
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

void
net_loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		setup_die(errno, "the kernel needs CONFIG_INET",
			"cannot bring the loopback interface up");
}

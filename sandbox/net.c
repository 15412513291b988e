/* SPDX-License-Identifier: MIT */
/*
 * The network namespace. To make one takes the kernel longer than all the other namespaces together and as long as
 * half of the view, of which it needs nothing: so a second thread does it meanwhile. It is over, and the first thread is
 * in the namespace, before rights are given up, which each thread would have to do for itself.
 */
#include "sandbox/setup.h"
#include "sandbox/view.h"
#include "util/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void
loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r))
		setup_die(errno, "the kernel needs CONFIG_INET",
			"cannot bring the loopback interface up");
}

/* The namespace is this thread's alone. What is open keeps it when the thread is gone. */
static void *
make(void *arg)
{
	struct net *n = arg;

	if (unshare(CLONE_NEWNET))
		ns_refused(n->s, "unshare", errno);
	loopback_up();
	n->fd = openat(n->s->proc, "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (n->fd < 0)
		setup_die(errno, "see the cause", "cannot open the network namespace");
	return NULL;
}

void
net_start(struct net *n, const struct setup *s)
{
	*n = (struct net){.s = s, .fd = -1};
	beside_start(&n->beside, make, n);
}

void
net_enter(struct net *n)
{
	cleanup_close int fd = -1;

	if (!n->beside.running)
		make(n);
	beside_end(&n->beside, false);
	fd = n->fd;
	if (setns(fd, CLONE_NEWNET))
		ns_refused(n->s, "setns", errno);
}

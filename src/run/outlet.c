/* SPDX-License-Identifier: MIT */
#include "run/outlet.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/stop.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LOOK_MS = 100,        /* for a stop, while a reader is waited for */
	KEEP_MAX = 256 << 10, /* of memory, once it is empty */
};

/* O_NONBLOCK belongs to the open file, which others have, too: the shell and what it starts next would
 * have it. So this is an open file of our own on the same pipe or terminal, which others' permissions can refuse. */
static int
open_again(int fd)
{
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return ret >= 0 ? ret : fd;
}

static void
settle(struct outlet *o)
{
	if (outlet_waiting(o))
		return;
	strbuf_reset(&o->waiting);
	if (o->waiting.cap > KEEP_MAX)
		strbuf_release(&o->waiting);
	o->gone = 0;
	if (o->loop)
		loop_remove_fd(o->loop, &o->room);
	if (o->drained)
		o->drained(o);
}

/* As much as the reader takes now. */
static void
pump(struct outlet *o)
{
	while (outlet_waiting(o)) {
		struct pollfd p = {.fd = o->room.fd, .events = POLLOUT};
		size_t n = outlet_waiting(o);
		ssize_t k;

		if (!o->at_once && poll(&p, 1, 0) < 1)
			return;
		/* What has room has room for so much. */
		if (o->patient && n > PIPE_BUF)
			n = PIPE_BUF;
		k = write(o->room.fd, o->waiting.buf + o->gone, n);
		if (k >= 0) {
			o->gone += (size_t)k;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			o->error = errno;
			o->gone = o->waiting.len;
		}
	}
	settle(o);
}

static void
has_room(struct loop_fd *w, unsigned events attr_unused)
{
	pump(container_of(w, struct outlet, room));
}

void
outlet_init(struct outlet *o, int fd, struct loop *loop)
{
	struct stat st;

	*o = (struct outlet){.fd = fd, .waiting = STRBUF_INIT, .loop = loop};
	o->room = (struct loop_fd){.fd = fd, .events = LOOP_WRITE, .ready = has_room};
	o->at_once = fstat(fd, &st) || S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && !isatty(fd));
	if (!o->at_once && !S_ISSOCK(st.st_mode))
		o->room.fd = open_again(fd);
	o->patient = !o->at_once && o->room.fd == fd;
}

void
outlet_release(struct outlet *o)
{
	if (o->loop)
		loop_remove_fd(o->loop, &o->room);
	if (o->room.fd != o->fd)
		fd_close(&o->room.fd);
	strbuf_release(&o->waiting);
	o->gone = 0;
}

void
outlet_add(struct outlet *o, const char *p, size_t n)
{
	bool first = !outlet_waiting(o);

	if (!n || o->error)
		return;
	if (!first && o->gone > o->waiting.len / 2) {
		memmove(o->waiting.buf, o->waiting.buf + o->gone, outlet_waiting(o));
		strbuf_truncate(&o->waiting, outlet_waiting(o));
		o->gone = 0;
	}
	strbuf_add(&o->waiting, p, n);
	if (!first)
		return;
	pump(o);
	if (!outlet_waiting(o))
		return;
	if (o->loop)
		loop_add_fd(o->loop, &o->room);
	else
		outlet_wait(o, 0);
}

bool
outlet_wait(struct outlet *o, size_t most)
{
	while (outlet_waiting(o) > most) {
		struct pollfd p = {.fd = o->room.fd, .events = POLLOUT};

		if (stop_is_asked() || (o->until_ns && clock_monotonic_ns() >= o->until_ns))
			return false;
		if (poll(&p, 1, LOOK_MS) > 0)
			pump(o);
	}
	return true;
}

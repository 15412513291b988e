/* SPDX-License-Identifier: MIT */
/*
 * How a phase says that it cannot go on, and the closing of what does not belong to us.
 */
#include "sandbox/setup.h"
#include "sandbox/tell.h"
#include "util/alloc.h"
#include "util/fd.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int report_fd = -1;

void
setup_report_to(int fd)
{
	report_fd = fd;
}

/* Room for one file beside a report. */
union passed {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

void
setup_report_fd(const struct report *r, int fd)
{
	struct iovec data = {(void *)(uintptr_t)r, sizeof(*r)};
	union passed passed = {{0}};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = passed.room;
		m.msg_controllen = sizeof(passed.room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	while ((n = sendmsg(report_fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	/* The helper is gone: then its death signal is on the way, and nothing else is left to do. */
	if (n != sizeof(*r))
		_exit(EXIT_SETUP);
}

void
setup_report(const struct report *r)
{
	setup_report_fd(r, -1);
}

int
setup_take_report(int from, struct report *ret, int *ret_fd)
{
	struct iovec data = {ret, sizeof(*ret)};
	union passed passed;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = passed.room,
		.msg_controllen = sizeof(passed.room)};
	ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	*ret_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	if (n >= 0 && n != sizeof(*ret))
		errno = EPIPE;
	return n == sizeof(*ret) ? 0 : -1;
}

void
setup_die(int num, const char *remedy, const char *fmt, ...)
{
	struct report r = {.type = REPORT_FAILED};
	char *cause = r.u.failed.cause;
	size_t size = sizeof(r.u.failed.cause), n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, size, fmt, ap);
	va_end(ap);
	n = strlen(cause);
	if (num)
		snprintf(cause + n, size - n, ": %s", strerror(num));
	if (num == EMFILE)
		remedy = "raise the limit on open files (ulimit -n)";
	snprintf(r.u.failed.remedy, sizeof(r.u.failed.remedy), "%s", remedy);
	if (report_fd >= 0)
		setup_report(&r);
	else
		tell_setup_error(cause, remedy);
	_exit(EXIT_SETUP);
}

static void note(enum report_type type, const char *fmt, va_list ap) attr_printf(2, 0);

static void
note(enum report_type type, const char *fmt, va_list ap)
{
	struct report r = {.type = type};

	vsnprintf(r.u.note, sizeof(r.u.note), fmt, ap);
	if (report_fd >= 0)
		setup_report(&r);
	else
		tell_note(type == REPORT_NOTICE ? STATUS_NOTICE : STATUS_NOTE, r.u.note);
}

void
setup_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(REPORT_NOTE, fmt, ap);
	va_end(ap);
}

void
setup_notice(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(REPORT_NOTICE, fmt, ap);
	va_end(ap);
}

struct owner
setup_owner(const struct setup *s)
{
	return (struct owner){s->uid, s->gid, s->maps_all, s->uids.unnamed, s->gids.unnamed};
}

char *
setup_path_of(const struct setup *s, int fd)
{
	char name[32], path[PATH_MAX];
	ssize_t n;

	snprintf(name, sizeof(name), "self/fd/%d", fd);
	n = readlinkat(s->proc, name, path, sizeof(path));
	if (n < 0)
		setup_die(errno, "see the cause; vx works from kernel 6.1 on",
			"cannot read the path of an open directory");
	return xmemdupz(path, (size_t)n);
}

static int
compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

void
setup_keep_only(int *fds, size_t n)
{
	unsigned next = 3;

	qsort(fds, n, sizeof(*fds), compare_ints);
	for (size_t i = 0; i <= n; i++) {
		unsigned end = i < n ? (unsigned)fds[i] : UINT_MAX;

		if (i < n && fds[i] < 3)
			continue;
		if (next < end && syscall(SYS_close_range, next, i < n ? end - 1 : end, 0))
			setup_die(errno,
				"a kernel from 5.9 on is needed, and a container must allow "
				"close_range",
				"cannot close inherited files");
		next = end + 1;
	}
}

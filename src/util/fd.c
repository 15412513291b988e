/* SPDX-License-Identifier: MIT */
#include "util/fd.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void
fd_close(int *fd)
{
	cleanup_close_p(fd);
	*fd = -1;
}

int
fd_write_all(int fd, const void *p, size_t n)
{
	const char *s = p;

	while (n) {
		ssize_t k = write(fd, s, n);

		if (k < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		s += k;
		n -= (size_t)k;
	}
	return 0;
}

int
fd_read_all(int fd, struct strbuf *out, size_t max)
{
	size_t start = out->len;

	for (;;) {
		ssize_t k;

		/* The room that there is will do: the end alone may be left to come. */
		if (out->len + FD_READ_ROOM >= out->cap)
			strbuf_grow(out, 4096);
		k = read(fd, out->buf + out->len, out->cap - 1 - out->len);
		if (k < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		out->len += (size_t)k;
		out->buf[out->len] = '\0';
		if (!k)
			return 0;
		if (out->len - start > max) {
			errno = EFBIG;
			return -1;
		}
	}
}

int
fd_read_file(int dirfd, const char *path, size_t max, struct strbuf *out, struct err *e)
{
	cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(e, ERR_IO, errno, "open %s", path);
	if (fd_read_all(fd, out, max))
		return err_set(e, ERR_IO, errno, "read %s", path);
	return 0;
}

void
fd_open_standard(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			/* the lowest free number is fd itself: those below it are open by now */
			if (open("/dev/null", O_RDWR) < 0) /* NOLINT(android-cloexec-open): 0-2 */
				_exit(2);
}

int
fd_pipe(int ret[2])
{
	return pipe2(ret, O_CLOEXEC);
}

int
fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

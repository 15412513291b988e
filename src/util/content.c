/* SPDX-License-Identifier: MIT */
#include "util/content.h"
#include "util/stop.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

void
content_init(struct content *c, int fd)
{
	struct stat st;

	*c = (struct content){.fd = fd};
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	c->at = lseek(fd, 0, SEEK_CUR);
	if (c->at < 0)
		return;
	c->is_file = true;
	c->size = st.st_size;
	c->is_sparse = st.st_blocks < st.st_size / 512;
}

/* Finds out whether a hole begins at c->at. The position is there again afterwards. */
static int
look_for_hole(struct content *c)
{
	off_t data = lseek(c->fd, c->at, SEEK_DATA);

	if (data < 0 && errno == ENXIO) /* nothing but a hole up to the end, or the end */
		data = lseek(c->fd, 0, SEEK_END);
	if (data < 0)
		return -1;
	if (data > c->size)
		data = c->size;
	if (data > c->at)
		c->hole_end = data;
	return lseek(c->fd, c->at, SEEK_SET) < 0 ? -1 : 0;
}

/* Of n bytes at c->at those that were in the file at the start. A file that programs serve may be longer
 * than the 0 that stat says of it, for good: it has not grown. */
static ssize_t
without_growth(const struct content *c, ssize_t n)
{
	struct stat st;

	if (n <= c->size - c->at || fstat(c->fd, &st) || st.st_size <= c->size)
		return n;
	return c->at < c->size ? (ssize_t)(c->size - c->at) : 0;
}

static ssize_t
next_of_hole(struct content *c, char *buf)
{
	off_t left = c->hole_end - c->at;
	ssize_t n = left < CONTENT_PIECE ? (ssize_t)left : CONTENT_PIECE;

	if (!c->is_zero)
		memset(buf, 0, CONTENT_PIECE);
	c->is_zero = true;
	c->at += n;
	return lseek(c->fd, c->at, SEEK_SET) < 0 ? -1 : n;
}

ssize_t
content_next(struct content *c, char *buf, bool *ret_hole)
{
	ssize_t n;

	if (stop_is_asked()) {
		errno = ECANCELED;
		return -1;
	}
	if (c->is_sparse && c->at >= c->hole_end && c->at < c->size && look_for_hole(c))
		return -1;
	*ret_hole = c->at < c->hole_end;
	if (*ret_hole)
		return next_of_hole(c, buf);
	c->is_zero = false;
	do
		n = read(c->fd, buf, CONTENT_PIECE);
	while (n < 0 && errno == EINTR);
	if (n > 0 && c->is_file)
		n = without_growth(c, n);
	if (n > 0)
		c->at += n;
	return n;
}

/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/content.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SMALL = 256
		<< 10, /* read whole, so that content that is here already is not written again */
	NAME_LEN = DIGEST_HEX - 1 - 2,
	BLOB_MODE = 0444,
	TMP_AGE_S = 3600, /* a temporary this old has no writer any more */
};

struct store {
	int blobs;
	int tmp;         /* "tmp" beside it, -1 until the first use */
	int cachefd;     /* borrowed */
	int shard[256];  /* blobs/ab, opened at first use; -1 */
	bool no_tmpfile; /* this file system has no O_TMPFILE, or there is no /proc to link from */
	char *buf;       /* CONTENT_PIECE bytes */
};

static int
open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdirat(at, name, 0777) && errno != EEXIST)
		return -1;
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Named temporaries exist only where O_TMPFILE does not; killed writers leave them. */
static void
sweep_tmp(int cachefd)
{
	int fd = openat(cachefd, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *en;

	while (d && (en = readdir(d))) {
		struct stat st;

		if (!strncmp(en->d_name, "blob-", 5) &&
			!fstatat(fd, en->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			st.st_ctim.tv_sec < time(NULL) - TMP_AGE_S)
			unlinkat(fd, en->d_name, 0);
	}
}

int
store_open(int cachefd, struct store **ret, struct err *e)
{
	struct store *s;
	int blobs = open_dir(cachefd, "blobs");

	if (blobs < 0)
		return err_set(e, ERR_IO, errno, "cache directory: blobs");
	sweep_tmp(cachefd);
	s = xcalloc(1, sizeof(*s));
	s->blobs = blobs;
	s->tmp = -1;
	s->cachefd = cachefd;
	for (size_t i = 0; i < array_len(s->shard); i++)
		s->shard[i] = -1;
	s->buf = xmalloc(CONTENT_PIECE);
	*ret = s;
	return 0;
}

void
store_close(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < array_len(s->shard); i++)
		fd_close(&s->shard[i]);
	fd_close(&s->tmp);
	fd_close(&s->blobs);
	free(s->buf);
	free(s);
}

/* The directory of a digest and its name there. With `make`, the directory is made. errno on -1. */
static int
shard_of(struct store *s, const struct digest *d, bool make, char ret_name[DIGEST_HEX])
{
	char hex[DIGEST_HEX], dir[3];
	int *fd = &s->shard[d->b[0]];

	digest_hex(d, hex);
	memcpy(dir, hex, 2);
	dir[2] = '\0';
	memcpy(ret_name, hex + 2, NAME_LEN + 1);
	if (*fd < 0)
		*fd = make ? open_dir(s->blobs, dir)
			   : openat(s->blobs, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *fd;
}

bool
store_has(struct store *s, const struct digest *d)
{
	char name[DIGEST_HEX];
	int dir = shard_of(s, d, false, name);
	struct stat st;

	return dir >= 0 && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

/* A blob being written: without a name where the file system can do that. */
struct temp {
	int fd;
	char name[32]; /* in s->tmp; "": none */
};

static int
temp_open(struct store *s, struct temp *t)
{
	t->name[0] = '\0';
	if (!s->no_tmpfile) {
		t->fd = openat(s->blobs, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, BLOB_MODE);
		if (t->fd >= 0)
			return 0;
		if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
			return -1;
		s->no_tmpfile = true;
	}
	if (s->tmp < 0 && (s->tmp = open_dir(s->cachefd, "tmp")) < 0)
		return -1;
	do {
		uint64_t r;

		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -1;
		snprintf(t->name, sizeof(t->name), "blob-%016llx", (unsigned long long)r);
		t->fd = openat(s->tmp, t->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, BLOB_MODE);
	} while (t->fd < 0 && errno == EEXIST);
	if (t->fd < 0)
		t->name[0] = '\0';
	return t->fd < 0 ? -1 : 0;
}

static void
temp_drop(struct store *s, struct temp *t)
{
	int saved = errno;

	fd_close(&t->fd);
	if (t->name[0])
		unlinkat(s->tmp, t->name, 0);
	errno = saved;
}

static int
link_unnamed(int fd, int dir, const char *name)
{
	char proc[40];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW);
}

/* The temporary becomes the blob `d`, or goes where there is one. 1: no /proc to link from. */
static int
temp_keep(struct store *s, struct temp *t, const struct digest *d)
{
	char name[DIGEST_HEX];
	int dir = shard_of(s, d, true, name);
	int r = dir < 0 ? -1 : 0;

	if (!r && t->name[0]) {
		r = renameat(s->tmp, t->name, dir, name);
		if (!r)
			t->name[0] = '\0';
	} else if (!r) {
		r = link_unnamed(t->fd, dir, name);
		if (r && errno == EEXIST)
			r = 0;
		else if (r && errno == ENOENT) {
			s->no_tmpfile = true;
			r = 1;
		}
	}
	temp_drop(s, t);
	return r;
}

/* Whole pieces of zeros become holes: a sparse file does not grow in the store or on its way out. */
static bool
is_zero(const char *p, size_t n)
{
	return n && !p[0] && !memcmp(p, p + 1, n - 1);
}

/* From `from` at its position to the empty `to`, with the digest of what was written. errno on -1;
 * *ret_reading says which side failed. */
static int
copy_digest(struct store *s, int from, int to, struct digest *ret, uint64_t *ret_size,
	bool *ret_reading)
{
	struct digest_state state;
	struct content c;
	uint64_t size = 0;
	bool hole = false;
	ssize_t n;

	digest_init(&state);
	content_init(&c, from);
	*ret_reading = true;
	while ((n = content_next(&c, s->buf, &hole)) > 0) {
		*ret_reading = false;
		digest_update(&state, s->buf, (size_t)n);
		size += (uint64_t)n;
		hole = hole || (n == CONTENT_PIECE && is_zero(s->buf, CONTENT_PIECE));
		if (hole ? lseek(to, n, SEEK_CUR) < 0 : fd_write_all(to, s->buf, (size_t)n) < 0)
			return -1;
		*ret_reading = true;
	}
	if (n < 0)
		return -1;
	*ret_reading = false;
	if (ftruncate(to, (off_t)size)) /* it may end with a hole */
		return -1;
	digest_final(&state, ret);
	*ret_size = size;
	return 0;
}

static int
write_failed(struct err *e)
{
	return err_set(e, ERR_IO, errno, "cache: write a blob");
}

int
store_put_bytes(struct store *s, const void *p, size_t n, struct digest *ret, struct err *e)
{
	struct temp t = {-1, ""};
	struct digest d;
	int r;

	digest_bytes(p, n, &d);
	*ret = d;
	if (store_has(s, &d))
		return 0;
	do {
		if (temp_open(s, &t))
			return write_failed(e);
		if (fd_write_all(t.fd, p, n)) {
			temp_drop(s, &t);
			return write_failed(e);
		}
		r = temp_keep(s, &t, &d);
	} while (r > 0);
	return r ? write_failed(e) : 0;
}

/* A file of at most SMALL bytes, read whole: 1 done, 0 it is larger after all. */
static int
put_small(struct store *s, int fd, struct digest *ret, uint64_t *ret_size, struct err *e)
{
	cleanup_free char *buf = xmalloc(SMALL + 1);
	size_t n = 0;

	for (;;) {
		ssize_t k = pread(fd, buf + n, SMALL + 1 - n, (off_t)n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_set(e, ERR_IO, errno, "read");
		n += (size_t)k;
		if (n > SMALL)
			return 0;
		if (!k)
			break;
	}
	if (store_put_bytes(s, buf, n, ret, e))
		return -1;
	*ret_size = n;
	return 1;
}

/* A clone is a snapshot: it is digested, not its source, which may still change. */
static int
fill_temp(struct store *s, struct temp *t, int fd, struct digest *ret, uint64_t *ret_size,
	struct err *e)
{
	bool reading = false;

	if (!ioctl(t->fd, FICLONE, fd)) {
		if (lseek(t->fd, 0, SEEK_SET) < 0 || digest_fd(t->fd, ret, ret_size))
			return err_set(e, ERR_IO, errno, "read");
		return 0;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, errno, "read");
	if (copy_digest(s, fd, t->fd, ret, ret_size, &reading))
		return reading ? err_set(e, ERR_IO, errno, "read") : write_failed(e);
	return 0;
}

static int
put_large(struct store *s, int fd, struct digest *ret, uint64_t *ret_size, struct err *e)
{
	struct digest d;
	uint64_t size;
	int r;

	if (lseek(fd, 0, SEEK_SET) < 0 || digest_fd(fd, &d, &size))
		return err_set(e, ERR_IO, errno, "read");
	if (!store_has(s, &d)) {
		do {
			struct temp t = {-1, ""};

			if (temp_open(s, &t))
				return write_failed(e);
			if (fill_temp(s, &t, fd, &d, &size, e)) {
				temp_drop(s, &t);
				return -1;
			}
			r = temp_keep(s, &t, &d);
		} while (r > 0);
		if (r)
			return write_failed(e);
	}
	*ret = d;
	*ret_size = size;
	return 0;
}

int
store_put_fd(struct store *s, int fd, struct digest *ret, uint64_t *ret_size, struct err *e)
{
	uint64_t size = 0;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st))
		return err_set(e, ERR_IO, errno, "read");
	if (st.st_size <= SMALL)
		r = put_small(s, fd, ret, &size, e);
	if (!r)
		r = put_large(s, fd, ret, &size, e);
	if (r < 0)
		return -1;
	if (ret_size)
		*ret_size = size;
	return 0;
}

/* 0 after that: the same as never stored. */
static int
drop_damaged(int dir, const char *name)
{
	log_debug("cache", "blob %s is damaged: dropped", name);
	unlinkat(dir, name, 0);
	return 0;
}

static int
open_blob(struct store *s, const struct digest *d, int *ret_dir, char ret_name[DIGEST_HEX])
{
	cleanup_close int fd = -1;
	struct stat st;

	*ret_dir = shard_of(s, d, false, ret_name);
	if (*ret_dir < 0)
		return -1;
	fd = openat(*ret_dir, ret_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	return take_fd(&fd);
}

int
store_get_fd(struct store *s, const struct digest *d, int to, struct err *e)
{
	char name[DIGEST_HEX];
	struct digest got;
	uint64_t size;
	int dir, rc;
	cleanup_close int fd = open_blob(s, d, &dir, name);
	bool reading = false;

	if (fd < 0)
		return 0;
	if (!ioctl(to, FICLONE, fd)) {
		reading = true;
		rc = lseek(to, 0, SEEK_SET) < 0 ? -1 : digest_fd(to, &got, &size);
	} else {
		rc = copy_digest(s, fd, to, &got, &size, &reading);
	}
	if (rc && reading && errno != ECANCELED)
		return drop_damaged(dir, name);
	if (rc)
		return err_set(e, ERR_IO, errno, reading ? "read" : "write");
	return digest_equal(&got, d) ? 1 : drop_damaged(dir, name);
}

int
store_get_bytes(
	struct store *s, const struct digest *d, size_t max, struct strbuf *to, struct err *e)
{
	char name[DIGEST_HEX];
	struct digest got;
	size_t start = to->len;
	int dir;
	cleanup_close int fd = open_blob(s, d, &dir, name);

	if (fd < 0)
		return 0;
	if (fd_read_all(fd, to, max)) {
		int num = errno;

		strbuf_truncate(to, start);
		if (num == EFBIG)
			return err_set(e, ERR_IO, num, "cache: blob %s", name);
		return drop_damaged(dir, name);
	}
	digest_bytes(to->buf + start, to->len - start, &got);
	if (digest_equal(&got, d))
		return 1;
	strbuf_truncate(to, start);
	return drop_damaged(dir, name);
}

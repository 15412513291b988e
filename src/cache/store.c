/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "cache/blob.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A packed blob is told by its name: the content's digest with this behind it. */
#define PACKED ".zst"

enum {
	/* read whole, so that content that is here already is not written again */
	SMALL = BLOB_PACKED_OVER,
	NAME_LEN = DIGEST_HEX - 1 - 2,
	NAME_SIZE = NAME_LEN + sizeof(PACKED),
	BLOB_MODE = 0444,
	TMP_AGE_S = 3600, /* a temporary this old has no writer any more */
	USED_AGE_S = STORE_GRACE_S / 2,
};

static const int64_t SECOND_NS = 1000ll * 1000 * 1000;

struct store {
	int blobs;
	int tmp;        /* "tmp" beside it, -1 until the first use */
	int cachefd;    /* borrowed */
	int shard[256]; /* blobs/ab, opened at first use; -1 */
	/* How many of them, and how many there may be, so that tasks get their descriptors. */
	unsigned nopen, max_open;
	unsigned next_closed;
	bool no_tmpfile; /* this file system has no O_TMPFILE, or there is no /proc to link from */
	struct blob_io *io;
	bool doubted;     /* a damaged blob was met */
	uint64_t written; /* what new blobs take up on the disk */
	bool full;        /* there was no room for one */
	/* The save under way. */
	bool saving, failed;
	bool seen;               /* whoever cleans up meanwhile knows of it */
	struct store_blob *made; /* its new blobs */
	size_t nmade, made_cap;
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
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
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
	getrlimit(RLIMIT_NOFILE, &limit);
	s->max_open = limit.rlim_cur / 4 < array_len(s->shard) ? (unsigned)(limit.rlim_cur / 4)
							       : array_len(s->shard);
	s->io = blob_io_new();
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
	free(s->made);
	blob_io_free(s->io);
	free(s);
}

static void
close_one(struct store *s)
{
	while (s->shard[s->next_closed % array_len(s->shard)] < 0)
		s->next_closed++;
	fd_close(&s->shard[s->next_closed++ % array_len(s->shard)]);
	s->nopen--;
}

/* The directory of a digest, good until the next call, and its name there, which is that of a plain blob. With `make`, the
 * directory is made. errno on -1. */
static int
shard_of(struct store *s, const struct digest *d, bool make, char ret_name[NAME_SIZE])
{
	char hex[DIGEST_HEX], dir[3];
	int *fd = &s->shard[d->b[0]];

	digest_hex(d, hex);
	memcpy(dir, hex, 2);
	dir[2] = '\0';
	memcpy(ret_name, hex + 2, NAME_LEN + 1);
	if (*fd >= 0)
		return *fd;
	if (s->nopen && s->nopen >= s->max_open)
		close_one(s);
	*fd = make ? open_dir(s->blobs, dir)
		   : openat(s->blobs, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s->nopen += *fd >= 0;
	return *fd;
}

static void
name_packed(char name[NAME_SIZE])
{
	memcpy(name + NAME_LEN, PACKED, sizeof(PACKED));
}

static bool
is_file_at(int dir, const char *name, struct stat *ret)
{
	return !fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) && S_ISREG(ret->st_mode);
}

/* The directory of a blob that is here, plain or packed, or -1. */
static int
find_blob(struct store *s, const struct digest *d, char ret_name[NAME_SIZE], struct stat *ret)
{
	int dir = shard_of(s, d, false, ret_name);

	if (dir < 0)
		return -1;
	if (is_file_at(dir, ret_name, ret))
		return dir;
	name_packed(ret_name);
	return is_file_at(dir, ret_name, ret) ? dir : -1;
}

bool
store_has(struct store *s, const struct digest *d)
{
	char name[NAME_SIZE];
	struct stat st;

	return find_blob(s, d, name, &st) >= 0;
}

uint64_t
store_hollow(struct store *s, const struct digest *d, uint64_t size)
{
	char name[NAME_SIZE];
	struct stat st;

	/* Not even a million of these are much. */
	if (size <= SMALL || find_blob(s, d, name, &st) < 0)
		return 0;
	return size > (uint64_t)st.st_blocks * 512 ? size - (uint64_t)st.st_blocks * 512 : 0;
}

/* A blob being read, by its name. */
struct blob {
	int dir;
	char name[NAME_SIZE];
	bool packed;
	uint64_t size; /* of the file */
	int64_t used_ns;
};

static int64_t
stamp_of(const struct stat *st)
{
	int64_t ns;

	/* A disk can hold times that this cannot. */
	if (__builtin_mul_overflow(st->st_mtim.tv_sec, SECOND_NS, &ns) ||
		__builtin_add_overflow(ns, st->st_mtim.tv_nsec, &ns))
		return st->st_mtim.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

/* 0 after that: the same as never stored. */
static int
drop_damaged(struct store *s, const struct blob *b)
{
	log_debug("cache", "blob %s is damaged: dropped", b->name);
	unlinkat(b->dir, b->name, 0);
	s->doubted = true;
	return 0;
}

static int
open_file(int dir, const char *name, struct stat *ret)
{
	cleanup_close int fd =
		openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && !fstat(fd, ret) && S_ISREG(ret->st_mode) ? take_fd(&fd) : -1;
}

static int
open_blob(struct store *s, const struct digest *d, struct blob *ret)
{
	struct stat st;
	int fd;

	ret->dir = shard_of(s, d, false, ret->name);
	if (ret->dir < 0)
		return -1;
	fd = open_file(ret->dir, ret->name, &st);
	ret->packed = fd < 0;
	if (fd < 0) {
		name_packed(ret->name);
		fd = open_file(ret->dir, ret->name, &st);
	}
	if (fd < 0)
		return -1;
	ret->size = (uint64_t)st.st_size;
	ret->used_ns = stamp_of(&st);
	return fd;
}

/* Whether a blob that a save has found holds what it should. A power cut leaves files of no length and
 * such that end early: that shows without reading, but for a packed one that has some length. Where
 * one blob was damaged, more may be, so from then on they are read. */
static bool
is_sound(struct store *s, const struct blob *b, int fd, const struct digest *d, uint64_t want)
{
	struct digest got;
	uint64_t size = want;
	bool reading;
	int rc;

	if (b->packed ? !b->size : b->size != want)
		return false;
	if (!s->doubted)
		return true;
	rc = b->packed ? blob_unpack(s->io, fd, -1, want, &got, &size, &reading)
		       : digest_fd(fd, &got, &size);
	if (rc && errno == ECANCELED)
		return true; /* nothing will come of this save */
	return !rc && size == want && digest_equal(&got, d);
}

/* As store_has, for a save of content of this size: its row comes later, so whoever cleans up meanwhile
 * must see that the blob is in use. One who does not know of the save takes young ones, too. */
static bool
has_for_save(struct store *s, const struct digest *d, uint64_t size)
{
	struct blob b;
	cleanup_close int fd = open_blob(s, d, &b);

	if (fd < 0)
		return false;
	if (!is_sound(s, &b, fd, d, size))
		return drop_damaged(s, &b);
	if (!s->seen || b.used_ns < (time(NULL) - USED_AGE_S) * SECOND_NS)
		utimensat(b.dir, b.name, NULL, AT_SYMLINK_NOFOLLOW);
	return true;
}

/* A blob being written: without a name where the file system can do that. */
struct temp {
	int fd;
	char name[32]; /* in s->tmp; "": none */
	bool packed;
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

static void
add_made(struct store *s, const struct digest *d, bool packed, const struct stat *st)
{
	uint64_t disk = (uint64_t)st->st_blocks * 512;

	s->written += disk;
	if (!s->saving)
		return;
	GROW(s->made, s->nmade + 1, s->made_cap);
	s->made[s->nmade++] = (struct store_blob){*d, packed, disk, stamp_of(st)};
}

/* The temporary becomes the blob `d`, or goes where there is one. 1: no /proc to link from. */
static int
temp_keep(struct store *s, struct temp *t, const struct digest *d)
{
	char name[NAME_SIZE];
	int dir = shard_of(s, d, true, name);
	int r = dir < 0 ? -1 : 0;
	struct stat made, st;
	bool is_new = true;

	if (t->packed)
		name_packed(name);
	if (!r)
		r = fstat(t->fd, &made);
	/* What is in the place of a blob and is no file would be a miss for ever. */
	if (!r && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode))
		r = unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	if (!r && t->name[0]) {
		r = renameat(s->tmp, t->name, dir, name);
		if (!r)
			t->name[0] = '\0';
	} else if (!r) {
		r = link_unnamed(t->fd, dir, name);
		if (r && errno == EEXIST) {
			/* It came meanwhile: found, like any other. */
			utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
			is_new = false;
			r = 0;
		} else if (r && errno == ENOENT) {
			s->no_tmpfile = true;
			r = 1;
		}
	}
	if (!r && is_new)
		add_made(s, d, t->packed, &made);
	temp_drop(s, t);
	return r;
}

static int
write_failed(struct store *s, struct err *e)
{
	s->failed = true;
	s->full = s->full || err_is_no_room(errno);
	return err_set(e, ERR_IO, errno, "cache: write a blob");
}

int
store_put_bytes(struct store *s, const void *p, size_t n, struct digest *ret, struct err *e)
{
	struct temp t = {-1, "", false};
	struct digest d;
	int r;

	digest_bytes(p, n, &d);
	*ret = d;
	if (has_for_save(s, &d, n))
		return 0;
	t.packed = blob_pays(s->io, p, n);
	do {
		if (temp_open(s, &t))
			return write_failed(s, e);
		if (t.packed ? blob_pack_bytes(s->io, p, n, t.fd) : fd_write_all(t.fd, p, n)) {
			temp_drop(s, &t);
			return write_failed(s, e);
		}
		r = temp_keep(s, &t, &d);
	} while (r > 0);
	return r ? write_failed(s, e) : 0;
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

/* A clone is a snapshot: it is digested, not its source, which may still change. Where there are no
 * clones, a copy is packed if that saves room. */
static int
fill_temp(struct store *s, struct temp *t, int fd, uint64_t size, struct digest *ret,
	uint64_t *ret_size, struct err *e)
{
	bool reading = false;
	int r;

	if (!ioctl(t->fd, FICLONE, fd)) {
		if (lseek(t->fd, 0, SEEK_SET) < 0 || digest_fd(t->fd, ret, ret_size))
			return err_set(e, ERR_IO, errno, "read");
		return 0;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, errno, "read");
	t->packed = blob_pays_fd(s->io, fd, size);
	r = t->packed ? blob_pack(s->io, fd, t->fd, ret, ret_size, &reading)
		      : blob_copy(s->io, fd, t->fd, UINT64_MAX, ret, ret_size, &reading);
	if (r)
		return reading ? err_set(e, ERR_IO, errno, "read") : write_failed(s, e);
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
	if (!has_for_save(s, &d, size)) {
		do {
			struct temp t = {-1, "", false};

			if (temp_open(s, &t))
				return write_failed(s, e);
			if (fill_temp(s, &t, fd, size, &d, &size, e)) {
				temp_drop(s, &t);
				return -1;
			}
			r = temp_keep(s, &t, &d);
		} while (r > 0);
		if (r)
			return write_failed(s, e);
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

int
store_get_fd(struct store *s, const struct digest *d, uint64_t want, int to, struct err *e)
{
	struct blob b;
	struct digest got;
	uint64_t size;
	cleanup_close int fd = open_blob(s, d, &b);
	bool reading = false;
	int rc;

	if (fd < 0)
		return 0;
	if (!b.packed && b.size != want)
		return drop_damaged(s, &b);
	if (b.packed) {
		rc = blob_unpack(s->io, fd, to, want, &got, &size, &reading);
	} else if (!ioctl(to, FICLONE, fd)) {
		reading = true;
		rc = lseek(to, 0, SEEK_SET) < 0 ? -1 : digest_fd(to, &got, &size);
	} else {
		rc = blob_copy(s->io, fd, to, want, &got, &size, &reading);
	}
	if (rc && reading && errno != ECANCELED)
		return drop_damaged(s, &b);
	if (rc)
		return err_set(e, ERR_IO, errno, reading ? "read" : "write");
	return digest_equal(&got, d) && size == want ? 1 : drop_damaged(s, &b);
}

int
store_get_bytes(
	struct store *s, const struct digest *d, size_t max, struct strbuf *to, struct err *e)
{
	struct blob b;
	struct digest got;
	size_t start = to->len;
	cleanup_close int fd = open_blob(s, d, &b);

	if (fd < 0)
		return 0;
	if (b.packed ? blob_unpack_bytes(s->io, fd, max, to) : fd_read_all(fd, to, max)) {
		int num = errno;

		strbuf_truncate(to, start);
		return num == ECANCELED ? err_set(e, ERR_IO, num, "read") : drop_damaged(s, &b);
	}
	digest_bytes(to->buf + start, to->len - start, &got);
	if (digest_equal(&got, d))
		return 1;
	strbuf_truncate(to, start);
	return drop_damaged(s, &b);
}

uint64_t
store_written(const struct store *s)
{
	return s->written;
}

/* False: the name is none of ours. `shard` is the first byte. */
static bool
parse_name(unsigned shard, const char *name, struct store_blob *ret)
{
	char hex[DIGEST_HEX];
	size_t n = strlen(name);

	ret->packed = n == NAME_LEN + sizeof(PACKED) - 1 && !strcmp(name + NAME_LEN, PACKED);
	if (n != NAME_LEN && !ret->packed)
		return false;
	snprintf(hex, sizeof(hex), "%02x", shard & 0xff);
	memcpy(hex + 2, name, NAME_LEN);
	hex[DIGEST_HEX - 1] = '\0';
	return digest_parse(hex, &ret->digest);
}

static int
each_in_shard(struct store *s, unsigned shard, int (*each)(void *ctx, const struct store_blob *b),
	void *ctx, struct err *e)
{
	struct digest first = {{(unsigned char)shard}};
	char name[NAME_SIZE];
	int dir = shard_of(s, &first, false, name);
	cleanup_close int fd = -1;
	cleanup_dir DIR *d = NULL;
	const struct dirent *en;

	if (dir < 0)
		return errno == ENOENT ? 0 : err_set(e, ERR_IO, errno, "read the cache");
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_set(e, ERR_IO, errno, "read the cache");
	take_fd(&fd);
	while (errno = 0, (en = readdir(d))) {
		struct store_blob b;
		struct stat st;

		if (!parse_name(shard, en->d_name, &b) ||
			fstatat(dir, en->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		b.disk = (uint64_t)st.st_blocks * 512;
		b.used_ns = stamp_of(&st);
		if (each(ctx, &b))
			return -1;
	}
	return errno ? err_set(e, ERR_IO, errno, "read the cache") : 0;
}

int
store_each(struct store *s, int (*each)(void *ctx, const struct store_blob *b), void *ctx,
	struct err *e)
{
	for (unsigned i = 0; i < array_len(s->shard); i++)
		if (each_in_shard(s, i, each, ctx, e))
			return -1;
	return 0;
}

bool
store_remove(struct store *s, const struct store_blob *b)
{
	char name[NAME_SIZE];
	int dir = shard_of(s, &b->digest, false, name);
	struct stat st;

	if (b->packed)
		name_packed(name);
	return dir >= 0 && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       stamp_of(&st) == b->used_ns && !unlinkat(dir, name, 0);
}

/* Never waited for: one who is stopped in the middle of a cleaning holds up nobody. */
void
store_save_begin(struct store *s)
{
	s->saving = true;
	s->failed = false;
	s->seen = !flock(s->blobs, LOCK_SH | LOCK_NB);
	s->nmade = 0;
}

void
store_save_end(struct store *s, bool kept)
{
	for (size_t i = 0; !kept && i < s->nmade; i++)
		if (store_remove(s, &s->made[i]))
			s->written -= s->made[i].disk;
	s->nmade = 0;
	s->saving = s->seen = false;
	flock(s->blobs, LOCK_UN);
}

bool
store_save_failed(const struct store *s)
{
	return s->failed;
}

bool
store_is_full(const struct store *s)
{
	return s->full;
}

void
store_set_full(struct store *s)
{
	s->full = true;
}

int64_t
store_sweep_begin(struct store *s)
{
	bool alone = !flock(s->blobs, LOCK_EX | LOCK_NB);
	struct timespec now;

	/* The clock that files get their times from: it may be a tick behind the other one. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec - (alone ? 0 : STORE_GRACE_S * SECOND_NS);
}

void
store_sweep_end(struct store *s)
{
	flock(s->blobs, LOCK_UN);
}

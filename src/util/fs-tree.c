/* SPDX-License-Identifier: MIT */
/*
 * Walking and removing trees that tasks made, and that may have been made to break us: deeper than
 * PATH_MAX, deeper than the stack or the fd table allow, with modes of 0, with links and mounts
 * inside. Both go down by fd, one component at a time, and keep only the deepest MAX_OPEN levels
 * open; a level that was closed is opened again as ".." of the one below it, and must be the same
 * directory as before.
 */
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <unistd.h>

enum {
	MAX_OPEN = 24,
	/* How often a directory may be found with something in it after it was emptied: somebody is
	 * still writing. */
	MAX_AGAIN = 16,
	/* The system call, from kernel 6.6; not yet in the headers of Debian 12. */
	FCHMODAT2 = 452,
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
};

/* Which directory an fd is. mnt is 0 where the kernel does not tell. */
struct place {
	uint64_t dev, ino, mnt;
};

static int
place_of(int fd, struct place *ret, mode_t *ret_mode)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &sx))
		return -1;
	ret->dev = (uint64_t)sx.stx_dev_major << 32 | sx.stx_dev_minor;
	ret->ino = sx.stx_ino;
	ret->mnt = sx.stx_mask & STATX_MNT_ID ? sx.stx_mnt_id : 0;
	*ret_mode = sx.stx_mode;
	return 0;
}

static bool
place_is_same(const struct place *a, const struct place *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mnt == b->mnt;
}

/* The directory above `below`, which must be `want`; anything else was moved meanwhile. */
static int
reopen_above(int below, const struct place *want)
{
	cleanup_close int fd = openat(below, "..", OPEN_DIR);
	struct place now;
	mode_t mode;

	if (fd < 0 || place_of(fd, &now, &mode))
		return -1;
	if (!place_is_same(&now, want)) {
		errno = ESTALE;
		return -1;
	}
	return take_fd(&fd);
}

/* Removal. */

struct level {
	struct place at;
	DIR *dir;    /* NULL: closed */
	char *child; /* the name that was gone into; NULL when closed */
	uint64_t child_ino;
	unsigned again;
};

struct removal {
	struct level *v;
	size_t n, cap;
};

static void
level_close(struct level *l)
{
	cleanup_dir_p(&l->dir);
	l->dir = NULL;
	cleanup_free_p(&l->child);
	l->child = NULL;
}

static void
removal_release(struct removal *r)
{
	while (r->n)
		level_close(&r->v[--r->n]);
	cleanup_free_p(&r->v);
}
#define cleanup_removal __attribute__((cleanup(removal_release)))

/* chmod of what fd (O_PATH) is; by name it could hit the target of a link put there meanwhile. */
static int
make_accessible(int fd)
{
	char path[32];

	if (!fs_fallback_is_forced() && !syscall(FCHMODAT2, fd, "", 0700, AT_EMPTY_PATH))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0700);
}

static int
open_for_removal(int dirfd, const char *name)
{
	cleanup_close int path = -1;
	int fd = openat(dirfd, name, OPEN_DIR);

	if (fd >= 0 || errno != EACCES)
		return fd;
	path = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0)
		return -1;
	if (make_accessible(path)) {
		errno = EACCES;
		return -1;
	}
	return openat(path, ".", OPEN_DIR);
}

/* Makes fd the deepest level. */
static int
removal_push(struct removal *r, int fd_take)
{
	cleanup_close int fd = fd_take;
	struct level l = {0};
	mode_t mode;

	if (place_of(fd, &l.at, &mode))
		return -1;
	if (r->n && (l.at.dev != r->v[0].at.dev || l.at.mnt != r->v[0].at.mnt)) {
		errno = EXDEV; /* a mount point: what is in there is not ours to remove */
		return -1;
	}
	/* refused where it is not ours; then removing from it tells */
	if ((mode & 0700) != 0700 && fchmod(fd, 0700) && errno != EPERM)
		return -1;
	l.dir = fdopendir(fd);
	if (!l.dir)
		return -1;
	take_fd(&fd);
	if (r->n >= MAX_OPEN)
		level_close(&r->v[r->n - MAX_OPEN]);
	GROW(r->v, r->n + 1, r->cap);
	r->v[r->n++] = l;
	return 0;
}

/* 1: removed (or gone). 0: a directory with something in it. */
static int
remove_one(int dirfd, const char *name)
{
	if (!unlinkat(dirfd, name, 0) || errno == ENOENT)
		return 1;
	if (errno != EISDIR)
		return -1;
	if (!unlinkat(dirfd, name, AT_REMOVEDIR) || errno == ENOENT)
		return 1;
	return errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
}

static int
removal_enter(struct removal *r, const char *name)
{
	struct level *l = &r->v[r->n - 1];
	size_t parent = r->n - 1;
	int fd = open_for_removal(dirfd(l->dir), name);

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	l->child = xstrdup(name);
	if (removal_push(r, fd))
		return -1;
	l = &r->v[parent];
	if (l->child_ino != r->v[parent + 1].at.ino) {
		l->child_ino = r->v[parent + 1].at.ino;
		l->again = 0;
	} else if (++l->again > MAX_AGAIN) {
		errno = ENOTEMPTY;
		return -1;
	}
	return 0;
}

/* The deepest level is at its end: back to the one above, where it is removed. */
static int
removal_leave(struct removal *r)
{
	struct level *below = &r->v[r->n - 1], *l;
	cleanup_free char *name = NULL;

	if (r->n == 1) {
		level_close(below);
		r->n = 0;
		return 0;
	}
	l = below - 1;
	if (!l->dir) {
		int fd = reopen_above(dirfd(below->dir), &l->at);

		if (fd < 0)
			return -1;
		l->dir = fdopendir(fd);
		if (!l->dir) {
			fd_close(&fd);
			return -1;
		}
	}
	level_close(below);
	r->n--;
	/* A level opened again reads its names from the start and finds the empty directory so. */
	name = take_ptr(&l->child);
	if (!name)
		return 0;
	switch (remove_one(dirfd(l->dir), name)) {
	case 0:
		return removal_enter(r, name);
	case 1:
		return 0;
	default:
		return -1;
	}
}

static int
removal_step(struct removal *r)
{
	DIR *dir = r->v[r->n - 1].dir;
	struct dirent *d;

	errno = 0;
	d = readdir(dir);
	if (!d)
		return errno ? -1 : removal_leave(r);
	if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
		return 0;
	switch (remove_one(dirfd(dir), d->d_name)) {
	case 0:
		return removal_enter(r, d->d_name);
	case 1:
		return 0;
	default:
		return -1;
	}
}

int
fs_remove_tree(int dirfd, const char *name)
{
	unsigned again = 0;
	int done;

	while (!(done = remove_one(dirfd, name))) {
		cleanup_removal struct removal r = {0};
		int fd;

		if (again++ > MAX_AGAIN) {
			errno = ENOTEMPTY;
			return -1;
		}
		fd = open_for_removal(dirfd, name);
		if (fd < 0)
			return errno == ENOENT ? 0 : -1;
		if (removal_push(&r, fd))
			return -1;
		while (r.n)
			if (removal_step(&r))
				return -1;
	}
	return done < 0 ? -1 : 0;
}

/* Walking. */

struct step {
	struct place at;
	int fd; /* -1: closed */
	size_t path_len;
	struct strvec names; /* sorted */
	size_t next;
};

struct walk {
	struct step *v;
	size_t n, cap;
	struct strbuf path;
};

static void
walk_pop(struct walk *w)
{
	struct step *s = &w->v[--w->n];

	fd_close(&s->fd);
	strvec_release(&s->names);
}

static void
walk_release(struct walk *w)
{
	while (w->n)
		walk_pop(w);
	cleanup_free_p(&w->v);
	strbuf_release(&w->path);
}
#define cleanup_walk __attribute__((cleanup(walk_release)))

static int
read_names(int fd, struct strvec *ret)
{
	cleanup_close int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	cleanup_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!dir)
		return -1;
	take_fd(&copy);
	while (errno = 0, (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			strvec_push(ret, d->d_name);
	if (errno)
		return -1;
	strvec_sort(ret);
	return 0;
}

static int
walk_push(struct walk *w, int fd_take)
{
	struct step *s;
	mode_t mode;

	GROW(w->v, w->n + 1, w->cap);
	s = &w->v[w->n++];
	*s = (struct step){.fd = fd_take, .path_len = w->path.len, .names = STRVEC_INIT};
	if (place_of(s->fd, &s->at, &mode) || read_names(s->fd, &s->names))
		return -1;
	if (w->n > MAX_OPEN)
		fd_close(&w->v[w->n - 1 - MAX_OPEN].fd);
	return 0;
}

static int
walk_leave(struct walk *w)
{
	struct step *above;

	if (w->n > 1) {
		above = &w->v[w->n - 2];
		if (above->fd < 0)
			above->fd = reopen_above(w->v[w->n - 1].fd, &above->at);
		if (above->fd < 0)
			return -1;
		strbuf_truncate(&w->path, above->path_len);
	}
	walk_pop(w);
	return 0;
}

/* Goes into the name just visited, if it still is a directory. */
static int
walk_enter(struct walk *w, int parent, const char *name)
{
	int fd = openat(parent, name, OPEN_DIR);

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	return walk_push(w, fd);
}

static int
walk_step(
	struct walk *w, enum fs_visit (*visit)(void *ctx, const struct fs_entry *entry), void *ctx)
{
	struct step *s = &w->v[w->n - 1];
	const char *name;
	struct stat st;
	struct fs_entry entry;

	strbuf_truncate(&w->path, s->path_len);
	if (s->next == s->names.n)
		return walk_leave(w);
	name = s->names.v[s->next++];
	if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -1; /* gone since it was listed */
	if (w->path.len)
		strbuf_addch(&w->path, '/');
	strbuf_adds(&w->path, name);
	entry = (struct fs_entry){w->path.buf, s->fd, name, &st};
	switch (visit(ctx, &entry)) {
	case FS_VISIT_STOP:
		return -1;
	case FS_VISIT_SKIP:
		return 0;
	default:
		return S_ISDIR(st.st_mode) ? walk_enter(w, s->fd, name) : 0;
	}
}

int
fs_walk(int dirfd, const char *path,
	enum fs_visit (*visit)(void *ctx, const struct fs_entry *entry), void *ctx)
{
	cleanup_walk struct walk w = {.path = STRBUF_INIT};
	int fd = fs_open_beneath(dirfd, path, OPEN_DIR, 0);

	if (fd < 0 || walk_push(&w, fd))
		return -1;
	while (w.n)
		if (walk_step(&w, visit, ctx))
			return -1;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * What the command left in the upper directory, name by name. The tree is hostile: it can be deeper
 * than any path, hold names by the hundred thousand and directories without permissions. One open
 * directory at a time, no recursion: the way back up is "..", which nobody can have moved, since
 * every process of the sandbox is gone.
 *
 * Attributes of overlayfs, as findings 1 has them: a directory that lies over one of the workspace
 * carries `origin`; one that replaces it, `opaque` as well. Below a new directory there are none.
 */
#include "sandbox/setup.h"
#include "sandbox/tell.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Nobody makes such a path by accident, and the core would have to carry it. */
enum {
	PATH_LIMIT = 64 << 10
};

/* A directory on the way from the top to where we are. */
struct level {
	struct strvec dirs; /* names still to visit, last first */
	size_t path_len;    /* of this directory's own path */
	mode_t mode;        /* to restore; 0 bits missing were added to get in */
	bool changed;
	bool merge;
};

struct scan {
	struct level *levels;
	size_t n, cap;
	int fd; /* the directory of the last level */
	struct strbuf path;
	uint64_t entries;
};

attr_noreturn static void
fail(const struct scan *sc, const char *what)
{
	setup_die(errno, "nothing of this task is committed", "cannot %s %.200s in the scratch",
		what, sc->path.len ? sc->path.buf : ".");
}

static bool
has_mark(int fd, const char *name, bool must_be_y)
{
	char value[2];
	ssize_t n = fgetxattr(fd, name, must_be_y ? value : NULL, must_be_y ? sizeof(value) : 0);

	return must_be_y ? n >= 1 && value[0] == 'y' : n >= 0;
}

static enum entry_type
type_of(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return ENTRY_FILE;
	case S_IFDIR:
		return ENTRY_DIR;
	case S_IFLNK:
		return ENTRY_LINK;
	case S_IFCHR:
		return st->st_rdev == makedev(0, 0) ? ENTRY_WHITEOUT : ENTRY_OTHER;
	default:
		return ENTRY_OTHER;
	}
}

/* Tells the name at sc->path. */
static void
tell_entry(struct scan *sc, const char *name, const struct stat *st, bool merge, bool opaque)
{
	struct status s;
	struct status_entry *en = &s.u.entry;

	status_init(&s, STATUS_ENTRY);
	en->type = type_of(st);
	en->merge = merge;
	en->opaque = opaque;
	en->mode = st->st_mode & 07777;
	en->size = en->type == ENTRY_FILE ? (uint64_t)st->st_size : 0;
	en->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	strbuf_add(&en->path, sc->path.buf, sc->path.len);
	if (en->type == ENTRY_LINK) {
		ssize_t n;

		strbuf_grow(&en->target, PATH_MAX);
		n = readlinkat(sc->fd, name, en->target.buf, PATH_MAX);
		if (n < 0)
			fail(sc, "read the link");
		en->target.len = (size_t)n;
		en->target.buf[n] = '\0';
	}
	tell(&s);
	status_release(&s);
	sc->entries++;
}

/* All names of the directory just entered: told, directories also remembered. */
static void
list(struct scan *sc)
{
	struct level *l = &sc->levels[sc->n - 1];
	cleanup_dir DIR *d = fdopendir(fcntl(sc->fd, F_DUPFD_CLOEXEC, 3));
	struct dirent *de;

	if (!d)
		fail(sc, "list");
	for (errno = 0; (de = readdir(d)); errno = 0) {
		struct stat st;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		path_append(&sc->path, de->d_name);
		if (sc->path.len > PATH_LIMIT) {
			errno = ENAMETOOLONG;
			fail(sc, "tell");
		}
		if (fstatat(sc->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW))
			fail(sc, "look at");
		if (S_ISDIR(st.st_mode))
			/* its attributes need it open: told on entering */
			strvec_push(&l->dirs, de->d_name);
		else
			tell_entry(sc, de->d_name, &st, false, false);
		strbuf_truncate(&sc->path, l->path_len);
	}
	if (errno)
		fail(sc, "list");
}

static void
push_level(struct scan *sc, mode_t mode, bool changed, bool merge)
{
	GROW(sc->levels, sc->n + 1, sc->cap);
	sc->levels[sc->n++] = (struct level){STRVEC_INIT, sc->path.len, mode, changed, merge};
	list(sc);
}

static void
enter(struct scan *sc, const char *name)
{
	bool below_merge = sc->levels[sc->n - 1].merge, changed = false, merge, opaque;
	cleanup_close int fd = -1;
	struct stat st;

	path_append(&sc->path, name);
	if (fstatat(sc->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		fail(sc, "look at");
	if ((st.st_mode & 0700) != 0700) {
		if (fchmodat(sc->fd, name, (st.st_mode & 07777) | 0700, 0))
			fail(sc, "open");
		changed = true;
	}
	fd = openat(sc->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fail(sc, "open");
	opaque = below_merge && has_mark(fd, "user.overlay.opaque", true);
	merge = below_merge && !opaque && has_mark(fd, "user.overlay.origin", false);
	tell_entry(sc, name, &st, merge, opaque);
	close(sc->fd);
	sc->fd = take_fd(&fd);
	push_level(sc, st.st_mode & 07777, changed, merge);
}

static void
leave(struct scan *sc)
{
	struct level *l = &sc->levels[sc->n - 1];
	cleanup_close int up =
		sc->n > 1 ? openat(sc->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (sc->n > 1 && up < 0)
		fail(sc, "leave");
	/* As the command left it: what is committed is the directory itself. */
	if (l->changed && fchmod(sc->fd, l->mode))
		fail(sc, "restore the mode of");
	strvec_release(&l->dirs);
	sc->n--;
	close(sc->fd);
	sc->fd = take_fd(&up);
	strbuf_truncate(&sc->path, sc->n ? sc->levels[sc->n - 1].path_len : 0);
}

uint64_t
scan_upper(void)
{
	struct scan sc = {.fd = open("u", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.path = STRBUF_INIT};

	if (sc.fd < 0)
		fail(&sc, "open");
	push_level(&sc, 0, false, true);
	while (sc.n) {
		struct level *l = &sc.levels[sc.n - 1];

		if (l->dirs.n) {
			cleanup_free char *name = l->dirs.v[--l->dirs.n];

			enter(&sc, name);
		} else {
			leave(&sc);
		}
	}
	free(sc.levels);
	strbuf_release(&sc.path);
	return sc.entries;
}

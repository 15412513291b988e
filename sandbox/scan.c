/* SPDX-License-Identifier: MIT */
/*
 * What the command left in the upper directory, name by name. The tree is hostile: it can be deeper
 * than any path, hold names by the hundred thousand and directories without permissions. One open
 * directory at a time, no recursion: the way back up is "..", which nobody can have moved, since
 * every process of the sandbox is gone.
 *
 * Attributes of overlayfs, as findings 1 has them: a directory that lies over one of the workspace
 * carries `origin`; one that replaces it, `opaque` as well. Below a new directory there are none.
 *
 * What was copied there before the command started (preload.h) is told as if the overlay had held it
 * below: nothing of what is as it was; a directory where one was copied as one that lies over the
 * workspace's, whichever it is by now; a name that is gone as a whiteout. A directory is told with the
 * first name in it that is, or when its mode was changed.
 */
#include "sandbox/preload.h"
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
#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A directory on the way from the top to where we are. */
struct level {
	struct strvec dirs; /* names still to visit, last first */
	size_t path_len;    /* of this directory's own path */
	struct stat st;     /* its mode is to be restored where that was changed to get in */
	bool changed;
	bool merge, opaque;
	bool told;
	bool has_marks; /* overlayfs marks the directories in it */
	bool at_place;  /* what lies in it lies where preload.c may have put it */
	size_t ncopied; /* names in it that were copied there, and something still has */
	const struct preload_entry *copy; /* what was copied in its own place */
};

struct scan {
	const struct preload *preload;
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

static void
start_entry(const struct scan *sc, struct status *s, enum entry_type type, const struct stat *st,
	size_t len)
{
	struct status_entry *en = &s->u.entry;

	status_init(s, STATUS_ENTRY);
	en->type = type;
	en->mode = st->st_mode & 07777;
	en->size = en->type == ENTRY_FILE ? (uint64_t)st->st_size : 0;
	en->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	strbuf_add(&en->path, sc->path.buf, len);
}

static void
end_entry(struct scan *sc, struct status *s)
{
	tell(s);
	status_release(s);
	sc->entries++;
}

/* The directories that we are in, as far as they were not. */
static void
tell_levels(struct scan *sc)
{
	for (size_t i = 0; i < sc->n; i++) {
		struct level *l = &sc->levels[i];
		struct status s;

		if (l->told)
			continue;
		start_entry(sc, &s, ENTRY_DIR, &l->st, l->path_len);
		s.u.entry.merge = l->merge;
		s.u.entry.opaque = l->opaque;
		end_entry(sc, &s);
		l->told = true;
	}
}

/* Tells the name at sc->path, which is no directory. */
static void
tell_name(struct scan *sc, const char *name, const struct stat *st)
{
	struct status s;
	struct status_entry *en = &s.u.entry;

	tell_levels(sc);
	start_entry(sc, &s, type_of(st), st, sc->path.len);
	if (en->type == ENTRY_LINK) {
		ssize_t n;

		strbuf_grow(&en->target, PATH_MAX);
		n = readlinkat(sc->fd, name, en->target.buf, PATH_MAX);
		if (n < 0)
			fail(sc, "read the link");
		en->target.len = (size_t)n;
		en->target.buf[n] = '\0';
	}
	end_entry(sc, &s);
}

/* What stood there when the command started, if that was our copy. */
static const struct preload_entry *
copy_at_path(const struct scan *sc)
{
	return sc->levels[sc->n - 1].at_place ? preload_find(sc->preload, sc->path.buf) : NULL;
}

/* The names that were copied into the directory just listed and are not in it any more. */
static void
tell_gone(struct scan *sc)
{
	static const struct stat whiteout = {.st_mode = S_IFCHR}; /* of device 0:0 */
	const struct level *l = &sc->levels[sc->n - 1];

	if (!l->copy || l->ncopied == l->copy->n)
		return;
	for (size_t i = l->copy->first; i < l->copy->first + l->copy->n; i++) {
		const char *name = path_base(sc->preload->v[i].path);
		struct stat st;

		path_append(&sc->path, name);
		if (fstatat(sc->fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno != ENOENT)
				fail(sc, "look at");
			tell_name(sc, name, &whiteout);
		}
		strbuf_truncate(&sc->path, l->path_len);
	}
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
		const struct preload_entry *copy;
		struct stat st;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		path_append(&sc->path, de->d_name);
		if (fstatat(sc->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW))
			fail(sc, "look at");
		copy = copy_at_path(sc);
		l->ncopied += copy != NULL;
		/* The core refuses a path that is too long: it need hear of one only, not of what is below. */
		if (S_ISDIR(st.st_mode) && sc->path.len < PATH_MAX)
			/* its attributes need it open: told on entering */
			strvec_push(&l->dirs, de->d_name);
		else if (!copy || !preload_is_untouched(sc->preload, copy, &st))
			tell_name(sc, de->d_name, &st);
		strbuf_truncate(&sc->path, l->path_len);
	}
	if (errno)
		fail(sc, "list");
}

/* told_later: with the first name in it that is told. */
static void
push_level(struct scan *sc, const struct level *l, bool told_later)
{
	GROW(sc->levels, sc->n + 1, sc->cap);
	sc->levels[sc->n++] = *l;
	if (!told_later)
		tell_levels(sc);
	list(sc);
	tell_gone(sc);
}

/* What the directory at sc->path, opened, is to the workspace. Returns whether it has a place and the
 * mode of what stood there when the command started. */
static bool
classify(const struct scan *sc, int fd, struct level *l)
{
	const struct level *above = &sc->levels[sc->n - 1];
	const struct preload_entry *copy = copy_at_path(sc);
	const struct stat *way = above->at_place ? preload_way(sc->preload, sc->path.buf) : NULL;

	if (copy && S_ISDIR(copy->mode)) {
		l->copy = copy;
		l->merge = l->at_place = true;
		return copy->mode == l->st.st_mode;
	}
	l->opaque = copy || (above->has_marks && has_mark(fd, "user.overlay.opaque", true));
	l->merge = !l->opaque && above->has_marks && has_mark(fd, "user.overlay.origin", false);
	l->has_marks = l->merge;
	l->at_place = l->merge && way;
	return l->at_place && way->st_mode == l->st.st_mode;
}

static void
enter(struct scan *sc, const char *name)
{
	struct level l = {.dirs = STRVEC_INIT};
	cleanup_close int fd = -1;
	bool told_later;

	path_append(&sc->path, name);
	l.path_len = sc->path.len;
	if (fstatat(sc->fd, name, &l.st, AT_SYMLINK_NOFOLLOW))
		fail(sc, "look at");
	if ((l.st.st_mode & 0700) != 0700) {
		if (fchmodat(sc->fd, name, (l.st.st_mode & 07777) | 0700, 0))
			fail(sc, "open");
		l.changed = true;
	}
	fd = openat(sc->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fail(sc, "open");
	told_later = classify(sc, fd, &l);
	close(sc->fd);
	sc->fd = take_fd(&fd);
	push_level(sc, &l, told_later);
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
	if (l->changed && fchmod(sc->fd, l->st.st_mode & 07777))
		fail(sc, "restore the mode of");
	strvec_release(&l->dirs);
	sc->n--;
	close(sc->fd);
	sc->fd = take_fd(&up);
	strbuf_truncate(&sc->path, sc->n ? sc->levels[sc->n - 1].path_len : 0);
}

uint64_t
scan_upper(const struct preload *p)
{
	const struct level root = {.dirs = STRVEC_INIT,
		.merge = true,
		.told = true,
		.has_marks = true,
		.at_place = true};
	struct scan sc = {.preload = p,
		.fd = open("u", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.path = STRBUF_INIT};

	if (sc.fd < 0)
		fail(&sc, "open");
	push_level(&sc, &root, true);
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

/* SPDX-License-Identifier: MIT */
#include "run/moment.h"
#include "util/alloc.h"
#include "util/path.h"
#include <fcntl.h>
#include <sys/stat.h>

/* Of a name that is not there, all but the path is zero. */
struct sight {
	const char *path;
	mode_t mode;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

void
moment_init(struct moment *m)
{
	*m = (struct moment){0};
	arena_init(&m->arena);
}

void
moment_release(struct moment *m)
{
	arena_release(&m->arena);
	free(m->v);
	m->v = NULL;
}

/* A link on the way would be followed, but then one of the directories above is no directory. */
static struct sight
look(int rootfd, const char *path)
{
	struct stat st;

	if (fstatat(rootfd, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW))
		return (struct sight){.path = path};
	return (struct sight){
		path, st.st_mode, st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
}

static void
add(struct moment *m, int rootfd, const char *path, size_t n)
{
	GROW(m->v, m->n + 1, m->cap);
	m->v[m->n++] = look(rootfd, arena_memdupz(&m->arena, path, n));
}

/* The file, and the directories above it that are not above `last`, too. */
static void
add_with_dirs(struct moment *m, int rootfd, const char *path, const char *last)
{
	size_t shared = 0;

	for (size_t i = 0; path[i] && path[i] == last[i]; i++)
		if (path[i] == '/')
			shared = i;
	for (const char *s = path; (s = strchr(s, '/')); s++)
		if ((size_t)(s - path) > shared)
			add(m, rootfd, path, (size_t)(s - path));
	add(m, rootfd, path, strlen(path));
}

void
moment_take(struct moment *m, int rootfd, const char *const *paths, size_t n, const char *also)
{
	add(m, rootfd, "", 0);
	/* Sorted, so that what is in a directory stands together. */
	for (size_t i = 0; i < n; i++)
		add_with_dirs(m, rootfd, paths[i], i ? paths[i - 1] : "");
	if (also)
		add_with_dirs(m, rootfd, also, "");
}

static bool
is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Names that come and go in a directory change both of its times, and most are none of the inputs. And one
 * that may not be read or searched is opened, and shut again, where outputs are looked for in it. */
static bool
tells_by_ctime(const struct sight *was, const struct sight *is)
{
	if (!S_ISDIR(was->mode))
		return true;
	return is_same_time(&was->mtime, &is->mtime) && (was->mode & 0500) == 0500;
}

static bool
has_changed(const struct sight *was, const struct sight *is)
{
	if (was->dev != is->dev || was->ino != is->ino || was->mode != is->mode)
		return true;
	if (!S_ISDIR(was->mode) &&
		(was->size != is->size || !is_same_time(&was->mtime, &is->mtime)))
		return true;
	return tells_by_ctime(was, is) && !is_same_time(&was->ctime, &is->ctime);
}

const char *
moment_find_change(const struct moment *m, int rootfd)
{
	/* Not the workspace's own directory: it is held open, nobody looks for it by its name. */
	for (size_t i = 1; i < m->n; i++) {
		struct sight now = look(rootfd, m->v[i].path);

		if (has_changed(&m->v[i], &now))
			return m->v[i].path;
	}
	return NULL;
}

const char *
moment_next_stirred(const struct moment *m, int rootfd, size_t *at)
{
	while (*at < m->n) {
		const struct sight *was = &m->v[(*at)++];

		if (S_ISDIR(was->mode)) {
			struct sight now = look(rootfd, was->path);

			if (!is_same_time(&was->mtime, &now.mtime))
				return was->path;
		}
	}
	return NULL;
}

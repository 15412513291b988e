/* SPDX-License-Identifier: MIT */
#include "run/moment.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include "workspace/inputs.h"
#include <fcntl.h>
#include <sys/stat.h>

/* Of a name that is not there, all but the path and the parent is zero. */
struct sight {
	const char *path;
	size_t parent; /* the directory that holds it; the workspace's is its own */
	mode_t mode;
	dev_t dev;
	ino_t ino;
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
look(int rootfd, const char *path, size_t parent)
{
	struct stat st;

	if (fstatat(rootfd, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW))
		return (struct sight){.path = path, .parent = parent};
	return (struct sight){
		path, parent, st.st_mode, st.st_dev, st.st_ino, st.st_mtim, st.st_ctim};
}

static void
add(struct moment *m, int rootfd, const char *path, size_t n)
{
	const char *name = arena_memdupz(&m->arena, path, n);
	size_t parent = m->n ? m->n - 1 : 0;

	/* One of those above the last one: in this order, what is in a directory follows it. */
	while (parent &&
		(!path_is_within(name, m->v[parent].path) || !strcmp(name, m->v[parent].path)))
		parent = m->v[parent].parent;
	GROW(m->v, m->n + 1, m->cap);
	m->v[m->n++] = look(rootfd, name, parent);
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
moment_take(struct moment *m, int rootfd, const struct inputs *in, const char *also)
{
	add(m, rootfd, "", 0);
	/* Sorted, so that what is in a directory stands together. */
	for (size_t i = 0; i < in->n; i++)
		add_with_dirs(m, rootfd, in->paths[i], i ? in->paths[i - 1] : "");
	if (also)
		add_with_dirs(m, rootfd, also, "");
}

static bool
is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* `among_new`: names came or went in the directory that holds it. */
static bool
has_changed(const struct sight *was, const struct sight *is, bool among_new)
{
	if (was->dev != is->dev || was->ino != is->ino || was->mode != is->mode)
		return true;
	/* Names that come and go in a directory change both of its times. Which ones did is asked
	 * elsewhere; most are none of the task's inputs. */
	if (!is_same_time(&was->mtime, &is->mtime))
		return !S_ISDIR(was->mode);
	return among_new && !is_same_time(&was->ctime, &is->ctime);
}

const char *
moment_find_change(const struct moment *m, int rootfd)
{
	cleanup_free bool *new_names = xcalloc(m->n + 1, sizeof(*new_names));

	for (size_t i = 0; i < m->n; i++) {
		const struct sight *was = &m->v[i];
		struct sight now = look(rootfd, was->path, was->parent);

		new_names[i] = !is_same_time(&was->mtime, &now.mtime);
		/* The workspace's own directory is held open; nobody looks for it by its name. */
		if (i && has_changed(was, &now, new_names[was->parent]))
			return was->path;
	}
	return NULL;
}

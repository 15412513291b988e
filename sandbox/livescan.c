/* SPDX-License-Identifier: MIT */
#include "sandbox/livescan.h"
#include "proto/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* In the scratch. */
static const char OUT[] = "out";

enum {
	NAME_SHOWN = 200, /* of a name in OUT, which is a number and this */
};

struct scan {
	struct livescan *sc;
	const struct liverules *lr;
	const struct liveplan *plan;
	const char *top, *scratch, *workspace;
	int topfd, proc, out;
	struct timespec since;
};

static void
add(struct scan *s, const char *path, char *moved_take)
{
	GROW(s->sc->v, s->sc->n + 1, s->sc->cap);
	s->sc->v[s->sc->n++] = (struct planted){xstrdup(path), moved_take};
}

/* Only the scratch's own directory is named here, and a name that did not exist: nobody can have put a
 * link there that leads elsewhere. */
static void
move_out(struct scan *s, int parent, const char *name, const char *path)
{
	size_t k = s->sc->n;
	cleanup_free char *to = xasprintf("%zu-%.*s", k, NAME_SHOWN, name);
	cleanup_free char *beside = xasprintf("vx-moved-out.%ld.%zu", (long)getpid(), k);
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	if (s->out < 0 && !mkdir(OUT, 0700))
		s->out = open(OUT, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->out >= 0 && !renameat(parent, name, s->out, to))
		add(s, path, xasprintf("%s/%s/%s", s->scratch, OUT, to));
	else if (!renameat(parent, name, parent, beside))
		add(s, path, xasprintf("%s/%s%s%s", s->workspace, dir, *dir ? "/" : "", beside));
	else
		add(s, path, NULL);
}

/* The object that is open and no other: by a name below /proc that stands for the fd. */
static int
set_mode(const struct scan *s, int fd, mode_t mode)
{
	char name[32];

	snprintf(name, sizeof(name), "self/fd/%d", fd);
	return fchmodat(s->proc, name, mode & 07777, 0);
}

static int
set_mode_at(const struct scan *s, const struct fs_entry *entry, mode_t mode)
{
	cleanup_close int fd = openat(entry->parent, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (st.st_ino != entry->st->st_ino || st.st_dev != entry->st->st_dev) {
		errno = ESTALE;
		return -1;
	}
	return set_mode(s, fd, mode);
}

static bool
has_changed(const struct scan *s, const struct stat *st)
{
	return st->st_ctim.tv_sec > s->since.tv_sec ||
	       (st->st_ctim.tv_sec == s->since.tv_sec && st->st_ctim.tv_nsec >= s->since.tv_nsec);
}

static bool
is_planted(const struct scan *s, const char *path, const struct fs_entry *entry)
{
	/* A repository without its HEAD is none. */
	if (!strcmp(entry->name, "HEAD")) {
		cleanup_free char *below = xmemdupz(entry->path, path_parent_len(entry->path));
		cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

		if (never_is_repo(never_repo_bits_at(s->topfd, below)) &&
			!liverules_is_called_repository(s->lr, dir))
			return true;
	}
	return liverules_ends_never(s->lr, path, entry->st->st_mode & S_IFMT);
}

/* Anything of that name that was not there as it is, by its own path: one that was moved with the directory
 * that holds it is older than the command, too. */
static bool
is_new_manifest(const struct scan *s, const char *path, const struct stat *st)
{
	const struct livemanifest *was;

	if (!never_is_manifest(path) || ruleset_names_write(s->lr->rules, path, path))
		return false;
	was = htab_get(&s->plan->manifests, path);
	return !was || was->ino != st->st_ino || was->ctime.tv_sec != st->st_ctim.tv_sec ||
	       was->ctime.tv_nsec != st->st_ctim.tv_nsec;
}

static enum fs_visit
visit(void *ctx, const struct fs_entry *entry)
{
	struct scan *s = ctx;
	cleanup_free char *path = path_join(s->top, entry->path);
	mode_t mode = entry->st->st_mode;

	if (is_planted(s, path, entry)) {
		move_out(s, entry->parent, entry->name, path);
		return FS_VISIT_SKIP;
	}
	/* Nothing hides in a directory that its maker closed. */
	if (S_ISDIR(mode) && (mode & 0700) != 0700 && set_mode_at(s, entry, mode | 0700))
		return FS_VISIT_STOP;
	if (is_new_manifest(s, path, entry->st))
		add(s, path, NULL);
	if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) && has_changed(s, entry->st)) {
		if (set_mode_at(s, entry, mode & ~(mode_t)(S_ISUID | S_ISGID)))
			return FS_VISIT_STOP;
		s->sc->nsetid++;
	}
	return FS_VISIT_CONTINUE;
}

static int
scan_bind(struct scan *s, const struct livebind *b)
{
	struct stat st;

	s->top = b->path;
	s->topfd = b->fd;
	if (fstat(b->fd, &st))
		return -1;
	if (!st.st_nlink)
		return 0; /* the host has removed it, with all that was in it */
	if ((st.st_mode & 0700) != 0700 && set_mode(s, b->fd, st.st_mode | 0700))
		return -1;
	return fs_walk(b->fd, "", visit, s);
}

void
livescan_run(struct livescan *sc, const struct liveplan *p, const struct liverules *lr,
	const char *scratch, const char *workspace, int procfd, struct timespec since)
{
	struct scan s = {
		.sc = sc,
		.lr = lr,
		.plan = p,
		.scratch = scratch,
		.workspace = workspace,
		.proc = procfd,
		.out = -1,
		.since = since,
	};

	*sc = (struct livescan){0};
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].write && scan_bind(&s, &p->v[i])) {
			sc->failed = p->v[i].path;
			sc->num = errno;
		}
	fd_close(&s.out);
}

void
livescan_release(struct livescan *sc)
{
	for (size_t i = 0; i < sc->n; i++) {
		free(sc->v[i].path);
		free(sc->v[i].moved);
	}
	free(sc->v);
	*sc = (struct livescan){0};
}

/* SPDX-License-Identifier: MIT */
#include "sandbox/livescan.h"
#include "proto/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the scratch. */
static const char OUT[] = "out";

enum {
	NAME_SHOWN = 200, /* of a name in OUT, which is a number and this */
};

struct scan {
	struct livescan *sc;
	const struct livescan_options *o;
	const char *top;
	int topfd, out;
};

/* As it is told. */
static char *
name_of(const struct scan *s, const char *path)
{
	return xasprintf("%s%s", *s->o->root ? "" : "/", path);
}

static void
add(struct scan *s, const char *path, char *moved_take)
{
	GROW(s->sc->v, s->sc->n + 1, s->sc->cap);
	s->sc->v[s->sc->n++] = (struct planted){name_of(s, path), moved_take};
}

/* The object that is open and no other: by a name below /proc that stands for the fd. */
static int
set_mode(const struct scan *s, int fd, mode_t mode)
{
	char name[32];

	snprintf(name, sizeof(name), "self/fd/%d", fd);
	return fchmodat(s->o->proc, name, mode & 07777, 0);
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

/* To a name that there is not. False, with errno: it is where it was. */
static bool
move_to(int parent, const char *name, int to, const char *to_name)
{
	return !syscall(SYS_renameat2, parent, name, to, to_name, RENAME_NOREPLACE);
}

/* Whose maker closed it to itself. */
static void
open_up(const struct scan *s, int dir)
{
	struct stat st;

	if (!fstat(dir, &st) && (st.st_mode & 0300) != 0300)
		set_mode(s, dir, st.st_mode | 0300);
}

/* The first name can be guessed, so the command may have taken it; no other can. */
static bool
move_beside(int parent, const char *name, size_t k, char **ret_beside)
{
	uint64_t number = k;

	do {
		free(*ret_beside);
		*ret_beside = xasprintf("vx-moved-out.%ld.%" PRIu64, (long)getpid(), number);
		if (move_to(parent, name, parent, *ret_beside))
			return true;
	} while (errno == EEXIST && getrandom(&number, sizeof(number), 0) == sizeof(number));
	return false;
}

/* Only the scratch's own directory is named here, and a name that did not exist: nobody can have put a
 * link there that leads elsewhere. */
static void
move_out(struct scan *s, int parent, const char *name, const char *path)
{
	size_t k = s->sc->n;
	cleanup_free char *to = xasprintf("%zu-%.*s", k, NAME_SHOWN, name);
	cleanup_free char *beside = NULL;
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	open_up(s, parent);
	if (s->o->scratch && s->out < 0 && !mkdir(OUT, 0700))
		s->out = open(OUT, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->out >= 0 && move_to(parent, name, s->out, to))
		add(s, path, xasprintf("%s/%s/%s", s->o->scratch, OUT, to));
	else if (move_beside(parent, name, k, &beside))
		add(s, path, xasprintf("%s/%s%s%s", s->o->root, dir, *dir ? "/" : "", beside));
	else
		add(s, path, NULL);
}

static bool
has_changed(const struct scan *s, const struct stat *st)
{
	return st->st_ctim.tv_sec > s->o->since.tv_sec ||
	       (st->st_ctim.tv_sec == s->o->since.tv_sec &&
		       st->st_ctim.tv_nsec >= s->o->since.tv_nsec);
}

/* Where nothing was served there can be such names from the start. One that is another by now is told, and stands:
 * the command could not change it, but the host may have, as git does when it sets something. Not so a whole .git. */
static bool
was_there(struct scan *s, const char *path, const struct stat *st)
{
	const struct livekept *k = htab_get(&s->o->plan->kept, path);
	bool is_same = k && k->dev == st->st_dev && k->ino == st->st_ino;

	if (!k || (k->is_free && S_ISDIR(k->type) && !is_same))
		return false;
	if (!k->is_free && !is_same)
		add(s, path, NULL);
	return true;
}

/* In a repository that was not there when the command started, and that may be one. (One that was is served.) */
static bool
is_obeyed(const struct scan *s, const char *path, const struct fs_entry *entry)
{
	size_t n = strlen(entry->name);

	if (!never_in_repository(entry->name, n) &&
		!(S_ISLNK(entry->st->st_mode) && never_holds_repositories(entry->name, n)))
		return false;
	cleanup_free char *below = xmemdupz(entry->path, path_parent_len(entry->path));
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	return liverules_is_called_repository(s->o->rules, dir) &&
	       never_is_repo(never_repo_bits_at(s->topfd, below)) &&
	       !ruleset_names_write(s->o->rules->rules, path, path);
}

static bool
is_planted(const struct scan *s, const char *path, const struct fs_entry *entry)
{
	/* A repository without its HEAD is none. */
	if (!strcmp(entry->name, "HEAD")) {
		cleanup_free char *below = xmemdupz(entry->path, path_parent_len(entry->path));
		cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

		if (never_is_repo(never_repo_bits_at(s->topfd, below)) &&
			!liverules_is_called_repository(s->o->rules, dir))
			return true;
	}
	/* Among such names each is asked for as one that is served. */
	if (s->o->plan->kept.n)
		return !liverules_may_change(s->o->rules, path, entry->st->st_mode & S_IFMT);
	return liverules_ends_never(s->o->rules, path, entry->st->st_mode & S_IFMT) ||
	       is_obeyed(s, path, entry);
}

/* Anything of that name that was not there as it is, by its own path: one that was moved with the directory
 * that holds it is older than the command, too. */
static bool
is_new_manifest(const struct scan *s, const char *path, const struct stat *st)
{
	const struct livemanifest *was;

	if (!never_is_manifest(path) || ruleset_names_write(s->o->rules->rules, path, path))
		return false;
	was = htab_get(&s->o->plan->manifests, path);
	return !was || was->ino != st->st_ino || was->ctime.tv_sec != st->st_ctim.tv_sec ||
	       was->ctime.tv_nsec != st->st_ctim.tv_nsec;
}

static enum fs_visit
visit(void *ctx, const struct fs_entry *entry)
{
	struct scan *s = ctx;
	cleanup_free char *path = path_join(s->top, entry->path);
	mode_t mode = entry->st->st_mode;

	if (liveplan_is_apart(s->o->plan, entry->st))
		return FS_VISIT_SKIP;
	if (s->o->plan->kept.n && was_there(s, path, entry->st))
		return S_ISDIR(mode) && !never_is_git(entry->name, strlen(entry->name))
			       ? FS_VISIT_SKIP
			       : FS_VISIT_CONTINUE;
	if (is_planted(s, path, entry)) {
		move_out(s, entry->parent, entry->name, path);
		return FS_VISIT_SKIP;
	}
	/* Nothing hides in a directory that its maker closed. */
	if (S_ISDIR(mode) && (mode & 0500) != 0500 && set_mode_at(s, entry, mode | 0500))
		return FS_VISIT_STOP;
	/* Elsewhere it decides nothing for who works in the workspace. */
	if (*s->o->root && is_new_manifest(s, path, entry->st))
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
	if ((st.st_mode & 0500) != 0500 && set_mode(s, b->fd, st.st_mode | 0500))
		return -1;
	return fs_walk(b->fd, "", visit, s);
}

void
livescan_init(struct livescan *sc)
{
	*sc = (struct livescan){0};
}

void
livescan_run(struct livescan *sc, const struct livescan_options *o)
{
	struct scan s = {.sc = sc, .o = o, .out = -1};
	const struct liveplan *p = o->plan;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].write && scan_bind(&s, &p->v[i])) {
			sc->num = errno;
			free(sc->failed);
			sc->failed = name_of(&s, p->v[i].path);
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
	free(sc->failed);
	livescan_init(sc);
}

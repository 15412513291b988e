/* SPDX-License-Identifier: MIT */
#include "exec/seconds.h"
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "proto/ruleset.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/mounts.h"
#include "util/path.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

struct second {
	char *path; /* absolute */
	char *part; /* of the workspace that it shows, whole or what holds it: "" the same of all of it; NULL: what
		     * no task may see */
};

struct seconds {
	char *root;
	struct strvec places;
	int changes; /* a mountinfo, which poll tells of changes; -1: not yet read */
	struct second *v;
	size_t n, cap;
};

/* What is looked for: a place on its file system. */
struct place {
	const struct mount_row *mount;
	char *below;      /* from the top of the file system */
	const char *part; /* as of struct second */
};

struct seconds *
seconds_new(const char *root_path, const struct strvec *places)
{
	struct seconds *s = xcalloc(1, sizeof(*s));

	s->root = xstrdup(root_path);
	strvec_init(&s->places);
	for (size_t i = 0; i < places->n; i++)
		strvec_push(&s->places, places->v[i]);
	s->changes = -1;
	return s;
}

static void
forget(struct seconds *s)
{
	while (s->n) {
		free(s->v[--s->n].path);
		free(s->v[s->n].part);
	}
}

void
seconds_free(struct seconds *s)
{
	if (!s)
		return;
	forget(s);
	free(s->v);
	free(s->root);
	strvec_release(&s->places);
	fd_close(&s->changes);
	free(s);
}

/* Finding. */

/* The mount that the path is on; 0: none, or it is not to be had. */
static uint64_t
mount_at(const char *path)
{
	cleanup_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) ||
		!(st.stx_mask & STATX_MNT_ID))
		return 0;
	return st.stx_mnt_id;
}

/* Both may be nothing more: "/", "". */
static char *
join(const char *dir, const char *below)
{
	return !*below            ? xstrdup(dir)
	       : strcmp(dir, "/") ? path_join(dir, below)
				  : xasprintf("/%s", below);
}

static bool
find_place(const struct mounts *m, const char *path, struct place *ret)
{
	const struct mount_row *row = mounts_find(m, mount_at(path));

	/* It may have been mounted since the list was read; then that changes once more. */
	if (!row || !path_is_within(path, row->point))
		return false;
	*ret = (struct place){row, join(row->root, path_below(path, row->point)), NULL};
	return true;
}

/* What no task may see comes last, and decides. */
static void
add(struct seconds *s, char *path_take, const char *part)
{
	for (size_t i = 0; i < s->n && !part; i++)
		if (!strcmp(s->v[i].path, path_take)) {
			free(take_ptr(&s->v[i].part));
			free(path_take);
			return;
		}
	GROW(s->v, s->n + 1, s->cap);
	s->v[s->n++] = (struct second){path_take, part ? xstrdup(part) : NULL};
}

/* By the other mount, if it shows the place, what holds it, or a part of it. inside: nowhere but in the workspace. */
static void
look_by(struct seconds *s, const struct place *p, const struct mount_row *by, bool inside)
{
	cleanup_free char *path = NULL, *part = NULL;

	if (by == p->mount || strcmp(by->dev, p->mount->dev) != 0)
		return;
	if (path_is_within(p->below, by->root)) {
		path = join(by->point, path_below(p->below, by->root));
		part = p->part ? xstrdup(p->part) : NULL;
	} else if (path_is_within(by->root, p->below)) {
		path = xstrdup(by->point);
		part = p->part ? path_join(p->part, path_below(by->root, p->below)) : NULL;
	} else {
		return;
	}
	/* Something else may be mounted over it. */
	if ((!inside || path_is_within(path, s->root)) && mount_at(path) == by->id)
		add(s, take_ptr(&path), part);
}

static void
look_everywhere(struct seconds *s, const struct mounts *m, const char *path, const char *part)
{
	struct place p;

	if (!find_place(m, path, &p))
		return;
	p.part = part;
	for (size_t i = 0; i < m->n; i++)
		look_by(s, &p, &m->v[i], false);
	free(p.below);
}

/* What is mounted in the workspace can be seen twice in it. */
static void
look_inside(struct seconds *s, const struct mounts *m, const struct mount_row *at)
{
	cleanup_free char *below = xstrdup(at->root);
	struct place p = {at, below, path_below(at->point, s->root)};

	for (size_t i = 0; i < m->n; i++)
		if (path_is_within(m->v[i].point, s->root))
			look_by(s, &p, &m->v[i], true);
}

static int
look_again(struct seconds *s, struct err *e)
{
	struct mounts m = MOUNTS_INIT;

	/* First this: it tells of what comes after the reading, and before it. */
	if (s->changes < 0)
		s->changes = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (s->changes < 0)
		return err_set(e, ERR_IO, errno, "open /proc/self/mountinfo");
	if (mounts_read(&m, AT_FDCWD, "/proc/self/mountinfo", e)) {
		fd_close(&s->changes);
		return -1;
	}
	forget(s);
	look_everywhere(s, &m, s->root, "");
	for (size_t i = 0; i < m.n; i++)
		if (path_is_within(m.v[i].point, s->root) && strcmp(m.v[i].point, s->root) != 0)
			look_inside(s, &m, &m.v[i]);
	for (size_t i = 0; i < s->places.n; i++)
		/* A part of the workspace like others, but for one that is mounted there. */
		if (!path_is_within(s->places.v[i], s->root) ||
			mount_at(s->places.v[i]) != mount_at(s->root))
			look_everywhere(s, &m, s->places.v[i], NULL);
	mounts_release(&m);
	return 0;
}

static bool
has_changed(const struct seconds *s)
{
	struct pollfd p = {.fd = s->changes, .events = POLLPRI};

	return s->changes < 0 || poll(&p, 1, 0) < 0 || p.revents & (POLLPRI | POLLERR);
}

/* Hiding. */

static bool
is_read_whole(const struct policy *p, const char *part)
{
	struct stat st;
	bool is_dir;

	if (fs_stat_beneath(p->w->rootfd, part, &st))
		return false;
	is_dir = S_ISDIR(st.st_mode);
	return ruleset_verdict(p->compiled, part, is_dir ? HOST_DIR : HOST_FILE) == VERDICT_PASS &&
	       !(is_dir && ruleset_hides_below(p->compiled, part));
}

static bool
is_reached(const struct policy *p, const char *path)
{
	return ruleset_may_write(p->compiled, path) || ruleset_may_write_below(p->compiled, path);
}

static void
note_it(const struct policy *p, const char *path, const char *part, struct strvec *ret)
{
	enum verdict v = ruleset_verdict(p->compiled, path, HOST_DIR);

	if (v != VERDICT_PASS && v != VERDICT_TRAVERSE)
		return;
	if (!part)
		strvec_pushf(ret,
			"%s is not shown in the sandbox: what is mounted there no task may see",
			path);
	else if (!is_read_whole(p, part))
		strvec_pushf(ret,
			"%s is not shown in the sandbox: %s is mounted there, of which not all is "
			"granted",
			path, *part ? part : "the workspace");
	else
		strvec_pushf(ret,
			"%s is not shown in the sandbox: %s is mounted there, and would be written "
			"to by "
			"that path; deny.write %s to have it read",
			path, part, path);
}

/* The rules are asked as they were before any of this. */
static void
hide_inside(struct policy *p, const char *path, const char *part, struct strvec *ret_notes)
{
	if (part && is_read_whole(p, part) && !is_reached(p, path))
		return;
	note_it(p, path, part, ret_notes);
	policy_add_rule(p, SPEC_QUIET, false, path);
}

static int
compile_again(struct policy *p, struct err *e)
{
	ruleset_free(p->compiled);
	p->compiled = NULL;
	return ruleset_new(p->rules, p->nrules, p->node->project->dir, &p->compiled, e);
}

static void
hide_one(struct policy *p, const struct second *x, const char *root, struct strvec *ret_notes)
{
	if (path_is_within(x->path, root))
		hide_inside(p, path_below(x->path, root), x->part, ret_notes);
	else if (!x->part || !is_read_whole(p, x->part))
		strvec_push(&p->seconds, x->path);
}

/* What this task alone may not see. */
static int
hide_denied(const struct seconds *s, struct policy *p, struct strvec *ret_notes, struct err *e)
{
	struct seconds own = {.root = s->root};
	struct mounts m = MOUNTS_INIT;

	if (mounts_read(&m, AT_FDCWD, "/proc/self/mountinfo", e))
		return -1;
	for (size_t i = 0; i < p->hidden.n; i++)
		look_everywhere(&own, &m, p->hidden.v[i], NULL);
	for (size_t i = 0; i < own.n; i++)
		hide_one(p, &own.v[i], s->root, ret_notes);
	mounts_release(&m);
	forget(&own);
	free(own.v);
	return 0;
}

int
seconds_hide(struct seconds *s, struct policy *p, struct strvec *ret_notes, struct err *e)
{
	size_t before = p->nbuilt = p->nrules;

	if (has_changed(s) && look_again(s, e))
		return -1;
	for (size_t i = 0; i < s->n; i++)
		hide_one(p, &s->v[i], s->root, ret_notes);
	if (p->hidden.n && hide_denied(s, p, ret_notes, e))
		return -1;
	return p->nrules > before ? compile_again(p, e) : 0;
}

/* SPDX-License-Identifier: MIT */
#include "exec/commit-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <sys/xattr.h>

static const char DROPPED[] = "dropped";

struct commit *
commit_new(const struct policy *p, int rootfd, struct scratch_area *area, struct scratch *s_take)
{
	struct commit *c = xcalloc(1, sizeof(*c));

	c->policy = p;
	c->rootfd = rootfd;
	c->area = area;
	c->scratch = *s_take;
	*s_take = (struct scratch){NULL, -1};
	c->upperfd = openat(
		c->scratch.fd, SCRATCH_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->upperfd < 0)
		err_set(&c->bad, ERR_IO, errno, "the upper directory of the scratch");
	htab_init(&c->by_path);
	GROW(c->v, 1, c->cap);
	c->v[c->n++] = (struct entry){.type = ENTRY_DIR,
		.merge = true,
		.fate = FATE_INTO,
		.host = HOST_DIRECTORY,
		.path = xstrdup("")};
	return c;
}

void
commit_free(struct commit *c)
{
	if (!c)
		return;
	fd_close(&c->upperfd);
	scratch_drop(c->area, &c->scratch);
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].path);
		free(c->v[i].target);
	}
	free(c->v);
	htab_release(&c->by_path);
	moves_release(&c->early);
	moves_release(&c->late);
	free(c->removed);
	strvec_release(&c->ignored);
	free(c);
}

/* The table holds index + 1 of each path; the array moves as it grows. */
struct entry *
commit_entry(const struct commit *c, const char *path)
{
	size_t i = (size_t)(uintptr_t)htab_get(&c->by_path, path);

	return i ? &c->v[i - 1] : NULL;
}

void
commit_add_entry(struct commit *c, const struct status_entry *en)
{
	const char *path = en->path.buf;
	size_t n = path_parent_len(path), parent = 0;

	if (err_is_set(&c->bad))
		return;
	if (n)
		parent = (size_t)(uintptr_t)htab_getn(&c->by_path, path, n);
	if ((n && !parent) || c->v[n ? parent - 1 : 0].type != ENTRY_DIR || commit_entry(c, path)) {
		err_set(&c->bad, ERR_SANDBOX, 0,
			"the list of what the task wrote is out of order at %s", path);
		return;
	}
	if (en->path.len >= PATH_MAX) {
		outputs_too_long(path, &c->bad);
		return;
	}
	if (c->n > OUTPUTS_MAX) {
		err_set(&c->bad, ERR_SANDBOX, 0, "the task wrote more than %d names", OUTPUTS_MAX);
		return;
	}
	GROW(c->v, c->n + 1, c->cap);
	c->v[c->n] = (struct entry){
		.type = en->type,
		.merge = en->type == ENTRY_DIR && en->merge,
		.opaque = en->type == ENTRY_DIR && en->opaque,
		.mode = en->mode & 0777,
		.size = en->size,
		.mtime_ns = en->mtime_ns,
		.parent = n ? parent - 1 : 0,
		.path = xstrdup(path),
		.target = xstrdup(en->target.buf),
	};
	c->n++;
	htab_putn(&c->by_path, c->v[c->n - 1].path, strlen(path), (void *)(uintptr_t)c->n);
}

size_t
commit_unstored(const struct commit *c, size_t max, struct strvec *ret)
{
	size_t n = 0;

	for (size_t i = 1; i < c->n; i++) {
		const struct entry *en = &c->v[i];

		if (en->fate != FATE_MOVE || en->type == ENTRY_DIR ||
			policy_is_output(c->policy, en->path) ||
			policy_leaves_unstored(c->policy, en->path))
			continue;
		if (n++ < max)
			strvec_push(ret, en->path);
	}
	return n;
}

/* Before anything is read or moved, the scratch is made to hold only what may go. */

/* For what the task left without the permissions that we need; no link is followed. */
static int
make_accessible(const struct commit *c, const struct entry *en)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(c->upperfd, en->path, &base);

	if (parent < 0)
		return -1;
	return fchmodat(parent, base, en->mode | (en->type == ENTRY_DIR ? 0700 : 0600),
		AT_SYMLINK_NOFOLLOW);
}

static int
open_entry(const struct commit *c, const struct entry *en)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (en->type == ENTRY_DIR ? O_DIRECTORY : 0);
	int fd = fs_open_beneath(c->upperfd, en->path, flags, 0);

	if (fd >= 0 || errno != EACCES || make_accessible(c, en))
		return fd;
	return fs_open_beneath(c->upperfd, en->path, flags, 0);
}

/* Labels that the system sets by itself, and that nobody may take off. */
static bool
is_system_label(const char *name)
{
	return !strncmp(name, "security.", 9) && strcmp(name, "security.capability") != 0;
}

/* Extended attributes and ACLs: overlayfs's own, and what the task set. */
static int
strip(int fd, mode_t mode)
{
	char names[4096];
	cleanup_free char *many = NULL;
	char *list = names;
	ssize_t n = flistxattr(fd, names, sizeof(names));

	if (n < 0 && errno == ERANGE) {
		list = many = xmalloc(XATTR_LIST_MAX);
		n = flistxattr(fd, many, XATTR_LIST_MAX);
	}
	if (n <= 0)
		return n < 0 && errno != ENOTSUP ? -1 : 0;
	if (!(mode & 0200) && fchmod(fd, (mode & 0777) | 0200))
		return -1;
	for (char *s = list; s < list + n; s += strlen(s) + 1)
		if (!is_system_label(s) && fremovexattr(fd, s) && errno != ENODATA)
			return -1;
	return 0;
}

/* Nothing but type, permission bits, content and times may come out of the scratch (security.md S28).
 * It stays accessible to us until the last moves set the modes. */
static int
clean(const struct commit *c, struct entry *en)
{
	cleanup_close int fd = -1;
	mode_t want = en->mode | (en->type == ENTRY_DIR ? 0700 : 0400);
	struct stat st;

	if (en->type == ENTRY_LINK) {
		if (fs_stat_beneath(c->upperfd, en->path, &st))
			return -1;
	} else {
		fd = open_entry(c, en);
		if (fd < 0 || fstat(fd, &st) || strip(fd, st.st_mode))
			return -1;
		if (fstat(fd, &st) || ((st.st_mode & 07777) != want && fchmod(fd, want)))
			return -1;
	}
	if ((st.st_mode & S_IFMT) != (en->type == ENTRY_LINK         ? S_IFLNK
					     : en->type == ENTRY_DIR ? S_IFDIR
								     : S_IFREG)) {
		errno = EINVAL;
		return -1;
	}
	en->upper_mode = want;
	en->ino = st.st_ino;
	en->size = (uint64_t)st.st_size;
	en->mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	en->ctime_ns = st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec;
	return 0;
}

static int
open_aside(const struct commit *c)
{
	if (mkdirat(c->scratch.fd, DROPPED, 0700) && errno != EEXIST)
		return -1;
	return openat(c->scratch.fd, DROPPED, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Out of a tree that will move whole. */
static int
put_aside(const struct commit *c, const struct entry *en)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(c->upperfd, en->path, &base);
	cleanup_close int aside = open_aside(c);
	char name[24];

	snprintf(name, sizeof(name), "%zu", (size_t)(en - c->v));
	/* a directory without write permission cannot be given another parent */
	if (parent < 0 || aside < 0 || (en->type == ENTRY_DIR && make_accessible(c, en)))
		return -1;
	/* a deleted name need not have left anything */
	if (renameat(parent, base, aside, name) && (errno != ENOENT || en->type != ENTRY_WHITEOUT))
		return -1;
	return 0;
}

/* The directory of the workspace that this one lies over has gone meanwhile, so it moves whole; but in
 * the scratch it may hold names that the task left as they were, and those have gone with the other. */
static int
put_untold_aside(const struct commit *c, const struct entry *en)
{
	cleanup_close int aside = open_aside(c), fd = open_entry(c, en);
	cleanup_dir DIR *d = fd < 0 || aside < 0 ? NULL : fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	const struct dirent *t;
	size_t n = 0;

	if (!d)
		return -1;
	for (errno = 0; (t = readdir(d)); errno = 0) {
		cleanup_free char *path = path_join(en->path, t->d_name);
		char name[48];
		struct stat st;

		if (!path_is_normal(path) || commit_entry(c, path))
			continue;
		snprintf(name, sizeof(name), "%zu.%zu", (size_t)(en - c->v), n++);
		if (fstatat(fd, t->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			(S_ISDIR(st.st_mode) && fchmodat(fd, t->d_name, 0700, 0)) ||
			renameat(fd, t->d_name, aside, name))
			return -1;
	}
	return errno ? -1 : 0;
}

static int
prepare_entry(const struct commit *c, struct entry *en)
{
	switch (en->fate) {
	case FATE_MOVE:
		return clean(c, en) || (en->merge && put_untold_aside(c, en)) ? -1 : 0;
	case FATE_KEEP:
		return policy_is_output(c->policy, en->path) ? clean(c, en) : 0;
	case FATE_INTO:
		return (en->mode & 0700) == 0700 ? 0 : make_accessible(c, en);
	case FATE_DROP:
	case FATE_DROP_ALL:
		return c->v[en->parent].fate == FATE_MOVE ? put_aside(c, en) : 0;
	}
	bug("fate %d", en->fate);
}

static int
prepare(struct commit *c, struct err *e)
{
	if (!c->judged)
		bug("commit used before it was judged");
	if (c->prepared)
		return 0;
	for (size_t i = 1; i < c->n; i++) {
		if (stop_is_asked())
			return err_set(e, ERR_IO, ECANCELED, "preparing what the task wrote");
		if (prepare_entry(c, &c->v[i])) {
			cleanup_strbuf struct strbuf path = STRBUF_INIT;
			int num = errno;

			strbuf_add_sanitised(&path, c->v[i].path, strlen(c->v[i].path));
			return err_set(e, ERR_IO, num, "%s, as the task left it", path.buf);
		}
	}
	c->prepared = true;
	return 0;
}

/* What one that adds to others' outputs has left as it was is theirs. */
static bool
is_made(const struct commit *c, const struct entry *en)
{
	return !c->policy->added || en->fate == FATE_MOVE || en->sets_mode ||
	       policy_hides_output(c->policy, en->path);
}

const char *
commit_removed(const struct commit *c)
{
	return c->removed;
}

int
commit_outputs(struct commit *c, struct outputs *ret, int *ret_fd, struct err *e)
{
	if (prepare(c, e))
		return -1;
	for (size_t i = 1; i < c->n; i++) {
		const struct entry *en = &c->v[i];
		struct output *o;

		if (en->fate != FATE_MOVE && en->fate != FATE_KEEP && en->fate != FATE_INTO)
			continue;
		if (!policy_is_output(c->policy, en->path) || !is_made(c, en))
			continue;
		o = outputs_add(ret);
		o->path = xstrdup(en->path);
		o->type = en->type == ENTRY_DIR    ? OUTPUT_DIR
			  : en->type == ENTRY_LINK ? OUTPUT_LINK
						   : OUTPUT_FILE;
		o->mode = en->type == ENTRY_LINK ? 0777 : en->mode;
		o->size = en->type == ENTRY_FILE ? en->size : 0;
		o->mtime_ns = en->mtime_ns;
		o->ctime_ns = en->ctime_ns;
		o->ino = en->ino;
		if (en->type == ENTRY_LINK)
			o->target = xstrdup(en->target);
	}
	outputs_sort(ret);
	*ret_fd = c->upperfd;
	return 0;
}

/* The list of moves. */

struct plan {
	struct moves open, place, mode;
	struct htab touched; /* directories of the workspace in which names change */
	bool copies;         /* the scratch is on another mount than one of them */
};

/* A directory that we own but may not write in (mode 555) is opened for the time of the moves. */
static void
touch_parent(const struct commit *c, struct plan *pl, const char *path)
{
	size_t n = path_parent_len(path);
	cleanup_free char *parent = xmemdupz(path, n);
	const struct entry *en = commit_entry(c, parent);
	cleanup_close int fd = -1;
	struct stat st;

	if (htab_findn(&pl->touched, parent, n))
		return;
	htab_putn_copy(&pl->touched, parent, n, pl);
	fd = fs_open_beneath(c->rootfd, parent, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 || fstat(fd, &st))
		return; /* made or removed by an earlier move, or told by the move itself */
	if (moves_must_copy(c->upperfd, fd))
		pl->copies = true;
	if (!n || (st.st_mode & 0700) == 0700 || st.st_uid != geteuid())
		return;
	moves_add(&pl->open, MOVE_OPEN, parent);
	if (!en || !en->sets_mode)
		moves_add(&pl->mode, MOVE_MODE, parent)->mode = st.st_mode & 07777;
}

static void
plan(struct commit *c, struct moves *ret, bool *ret_copies)
{
	struct plan pl = {0};

	htab_init(&pl.touched);
	for (size_t i = 1; i < c->n; i++) {
		const struct entry *en = &c->v[i];

		if (en->fate == FATE_INTO && en->sets_mode)
			moves_add(&pl.mode, MOVE_MODE, en->path)->mode = en->mode;
		if (en->fate != FATE_MOVE)
			continue;
		if (en->type != ENTRY_LINK && en->upper_mode != en->mode)
			moves_add(&pl.mode, MOVE_MODE, en->path)->mode = en->mode;
		if (c->v[en->parent].fate == FATE_MOVE)
			continue; /* moves with it */
		moves_add(&pl.place, MOVE_PLACE, en->path)->ino = en->ino;
		touch_parent(c, &pl, en->path);
	}
	for (size_t i = 0; i < c->early.n; i++)
		touch_parent(c, &pl, c->early.v[i].path);
	for (size_t i = 0; i < c->late.n; i++)
		touch_parent(c, &pl, c->late.v[i].path);
	moves_sort_outer_first(&pl.open);
	moves_sort_inner_first(&pl.mode);
	moves_append_take(ret, &pl.open);
	moves_append_take(ret, &c->early);
	moves_append_take(ret, &pl.place);
	moves_append_take(ret, &c->late);
	moves_append_take(ret, &pl.mode);
	*ret_copies = pl.copies;
	htab_release(&pl.touched);
}

int
commit_apply(struct commit *c, struct err *e)
{
	struct moves m = {0};
	bool copies;
	int rc;

	if (prepare(c, e))
		return -1;
	plan(c, &m, &copies);
	rc = moves_apply(&m, copies, c->scratch.fd, c->rootfd, e);
	moves_release(&m);
	return rc;
}

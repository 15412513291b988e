/* SPDX-License-Identifier: MIT */
/*
 * Restoring, in four steps:
 *
 *	load	the tree's nodes, every line checked: what is wanted
 *	stage	what has to be made is made in the run's stage; each blob is checked on the way
 *	move	the staged pieces are renamed into place: a file over a file, a missing directory with all
 *		that is in it; a directory that exists is never replaced
 *	settle	what else the globs select is removed, modes are set
 *
 * Until the third step the workspace is untouched, so a missing or damaged blob costs nothing. Where
 * the target is on another mount the piece is staged beside it.
 */
#include "cache/access.h"
#include "cache/stage.h"
#include "cache/store.h"
#include "cache/tree-want.h"
#include "cache/tree.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* What is made and moved as one: wants[first .. first + n) */
struct piece {
	size_t first, n;
	int stage; /* directory fd it is staged in */
	char name[32];
	bool owns_stage; /* beside its target: the fd is the piece's own */
	bool exchange;   /* a directory for a file, or the reverse */
	bool moved;
};

struct restore {
	struct store *s;
	int rootfd;
	const struct globset *set;
	const char *const *nested;
	size_t nnested;
	struct want *wants; /* in the order of outputs_sort */
	size_t n;
	struct outputs roots; /* links on the way */
	struct piece *pieces;
	size_t npieces, pieces_cap;
	struct stage *stage;
	mode_t dir_mode; /* 0777 less umask */
	struct access_fixes fixes;
	struct err *e;
};

static int
fail_at(struct restore *r, const char *path, int num, const char *what)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(r->e, ERR_IO, num, "restore %s%s", name.buf, what);
}

/* Which pieces there are: what is missing or in the way. */

static int
stat_want(struct restore *r, const struct want *w, struct stat *ret)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = outputs_real(&r->roots, w->out.path, &buf);

	if (!fs_stat_beneath(r->rootfd, real, ret))
		return 1;
	if (errno == ENOENT)
		return 0;
	return fail_at(r, w->out.path, errno, "");
}

struct in_the_way {
	struct restore *r;
	const char *dir;
};

static enum fs_visit
check_selected(void *ctx, const struct fs_entry *en)
{
	struct in_the_way *c = ctx;
	cleanup_free char *path = path_join(c->dir, en->path);

	if (outputs_select(c->r->set, c->r->nested, c->r->nnested, path))
		return FS_VISIT_CONTINUE;
	fail_at(c->r, c->dir, 0,
		": a directory that holds files that are no outputs is in its place");
	return FS_VISIT_STOP;
}

/* Something of another kind stands where `w` goes: it must be an output, all of it. */
static int
check_in_the_way(struct restore *r, const struct want *w, const struct stat *st)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = outputs_real(&r->roots, w->out.path, &buf);
	struct in_the_way c = {r, w->out.path};

	if (w->on_the_way)
		return fail_at(r, w->out.path, ENOTDIR, "");
	if (S_ISDIR(st->st_mode) && fs_walk(r->rootfd, real, check_selected, &c))
		return err_is_set(r->e) ? -1 : fail_at(r, w->out.path, errno, "");
	return 0;
}

static struct piece *
add_piece(struct restore *r, size_t first)
{
	struct piece *p;

	GROW(r->pieces, r->npieces + 1, r->pieces_cap);
	p = &r->pieces[r->npieces];
	*p = (struct piece){.first = first, .n = 1, .stage = -1};
	r->npieces++;
	return p;
}

/* A directory that exists: opened for what happens in it. */
static int
keep_dir(struct restore *r, struct want *w, const struct stat *st)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	w->exists = true;
	if (access_add(&r->fixes, r->rootfd, outputs_real(&r->roots, w->out.path, &buf),
		    st->st_mode, 0700) &&
		!w->on_the_way)
		return fail_at(r, w->out.path, errno, "");
	return 0;
}

static int
find_pieces(struct restore *r)
{
	for (size_t i = 0; i < r->n;) {
		struct want *w = &r->wants[i];
		bool is_dir = w->out.type == OUTPUT_DIR, other;
		struct piece *p;
		struct stat st;
		int there = stat_want(r, w, &st);

		if (there < 0)
			return -1;
		if (there && is_dir && S_ISDIR(st.st_mode)) {
			if (keep_dir(r, w, &st))
				return -1;
			i++;
			continue;
		}
		other = there && is_dir != S_ISDIR(st.st_mode);
		if (other && check_in_the_way(r, w, &st))
			return -1;
		p = add_piece(r, i);
		p->exchange = other;
		for (i++; is_dir && i < r->n && path_is_within(r->wants[i].out.path, w->out.path);
			i++)
			p->n++;
	}
	return 0;
}

/* Staging. */

/* The directory that the piece goes to: *ret_dir its real path, *ret_base the name in it. */
static int
open_parent(struct restore *r, const struct piece *p, char **ret_dir, const char **ret_base,
	struct strbuf *buf)
{
	const char *real = outputs_real(&r->roots, r->wants[p->first].out.path, buf);

	*ret_dir = xmemdupz(real, path_parent_len(real));
	*ret_base = path_base(real);
	return fs_open_beneath(r->rootfd, *ret_dir, O_PATH | O_DIRECTORY, 0);
}

static int
choose_stage(struct restore *r, struct piece *p)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	cleanup_free char *dir = NULL;
	const char *base;
	cleanup_close int parent = open_parent(r, p, &dir, &base, &buf);

	p->stage = stage_open(r->stage, r->e);
	if (p->stage < 0)
		return -1;
	stage_name(r->stage, p->name, sizeof(p->name));
	/* A directory that a dangling link on the way names is made later. */
	if (parent < 0 && errno != ENOENT)
		return fail_at(r, r->wants[p->first].out.path, errno, "");
	if (parent < 0 || stage_mount_of(parent) == stage_mount(r->stage))
		return 0;
	p->stage = take_fd(&parent);
	p->owns_stage = true;
	/* The name is not taken before it is used; it is unlikely enough to be anybody's. */
	snprintf(p->name, sizeof(p->name), ".vx-restore-%d-%zu", (int)getpid(), p->first);
	return 0;
}

struct stage_dir {
	struct strbuf path; /* below the piece's stage */
	int fd;
};

/* Opens the directory in which wants[i] of piece p is made; kept for the next one. */
static int
stage_parent(struct restore *r, const struct piece *p, const char *rel, struct stage_dir *d)
{
	size_t n = path_parent_len(rel);

	if (!n)
		return p->stage;
	if (d->fd >= 0 && d->path.len == n && !memcmp(d->path.buf, rel, n))
		return d->fd;
	fd_close(&d->fd);
	strbuf_reset(&d->path);
	strbuf_add(&d->path, rel, n);
	d->fd = fs_open_beneath(p->stage, d->path.buf, O_PATH | O_DIRECTORY, 0);
	if (d->fd < 0)
		fail_at(r, r->wants[p->first].out.path, errno, "");
	return d->fd;
}

/* 1, 0 the blob is gone or damaged, -1. */
static int
stage_file(struct restore *r, struct want *w, int dir, const char *name)
{
	cleanup_close int fd =
		openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	int rc;

	if (fd < 0)
		return fail_at(r, w->out.path, errno, "");
	rc = store_get_fd(r->s, &w->digest, fd, r->e);
	if (rc < 0)
		return err_wrap(r->e, "restore %s", w->out.path);
	if (!rc)
		return 0;
	if (fchmod(fd, w->out.mode) || fstat(fd, &st))
		return fail_at(r, w->out.path, errno, "");
	w->ino = st.st_ino;
	return (uint64_t)st.st_size == w->out.size;
}

static int
stage_want(struct restore *r, const struct piece *p, struct want *w, const char *rel,
	struct stage_dir *d)
{
	int dir = stage_parent(r, p, rel, d);
	const char *name = path_base(rel);

	if (dir < 0)
		return -1;
	switch (w->out.type) {
	case OUTPUT_FILE:
		return stage_file(r, w, dir, name);
	case OUTPUT_LINK:
		if (symlinkat(w->out.target, dir, name))
			return fail_at(r, w->out.path, errno, "");
		return 1;
	case OUTPUT_DIR:
		if (mkdirat(dir, name, 0700))
			return fail_at(r, w->out.path, errno, "");
		return 1;
	}
	return -1;
}

static const char *
stage_path(const struct restore *r, const struct piece *p, const struct want *w, struct strbuf *buf)
{
	strbuf_reset(buf);
	strbuf_adds(buf, p->name);
	path_append(buf, path_below(w->out.path, r->wants[p->first].out.path));
	return buf->buf;
}

static mode_t
mode_of(const struct restore *r, const struct want *w)
{
	return w->on_the_way ? r->dir_mode : w->out.mode;
}

/* Modes of the directories inside the piece, innermost first. Its own comes after the move: a
 * directory that cannot be written cannot be moved. */
static int
stage_modes(struct restore *r, const struct piece *p)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = p->first + p->n - 1; i > p->first; i--) {
		const struct want *w = &r->wants[i];

		if (w->out.type == OUTPUT_DIR && mode_of(r, w) != 0700 &&
			access_chmod(p->stage, stage_path(r, p, w, &buf), mode_of(r, w)))
			return fail_at(r, w->out.path, errno, "");
	}
	return 0;
}

static int
stage_piece(struct restore *r, struct piece *p)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	struct stage_dir d = {STRBUF_INIT, -1};
	int rc = choose_stage(r, p) ? -1 : 1;

	for (size_t i = 0; i < p->n && rc > 0; i++) {
		struct want *w = &r->wants[p->first + i];

		rc = stage_want(r, p, w, stage_path(r, p, w, &buf), &d);
	}
	fd_close(&d.fd);
	strbuf_release(&d.path);
	if (rc > 0 && stage_modes(r, p))
		return -1;
	return rc;
}

static int
stage_all(struct restore *r)
{
	int rc = 1;

	for (size_t i = 0; i < r->npieces && rc > 0; i++)
		rc = stage_piece(r, &r->pieces[i]);
	return rc;
}

/* Moving. */

static int
move_piece(struct restore *r, struct piece *p)
{
	unsigned flags = p->exchange ? RENAME_EXCHANGE : 0;
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	cleanup_free char *dir = NULL;
	const char *base;
	cleanup_close int parent = open_parent(r, p, &dir, &base, &buf);
	struct stat st;
	int rc;

	if (parent < 0 && errno == ENOENT)
		parent = fs_open_mkdirs(r->rootfd, dir);
	if (parent < 0)
		return fail_at(r, r->wants[p->first].out.path, errno, "");
	rc = renameat2(p->stage, p->name, parent, base, flags);
	if (rc && errno == EACCES && !fstat(parent, &st) &&
		!access_add(&r->fixes, r->rootfd, dir, st.st_mode, 0700))
		rc = renameat2(p->stage, p->name, parent, base, flags);
	if (rc)
		return fail_at(r, r->wants[p->first].out.path, errno, "");
	p->moved = true;
	return 0;
}

static int
move_all(struct restore *r)
{
	for (size_t i = 0; i < r->npieces; i++)
		if (move_piece(r, &r->pieces[i]))
			return -1;
	return 0;
}

/* Settling. */

/* What is wanted, as outputs_clean takes it: borrowed but for the array. */
static void
borrow_wants(const struct restore *r, struct outputs *ret)
{
	*ret = (struct outputs){0};
	for (size_t i = 0; i < r->n; i++)
		if (!r->wants[i].on_the_way)
			*outputs_add(ret) = r->wants[i].out;
}

static int
remove_strays(struct restore *r)
{
	struct outputs keep;
	int rc;

	borrow_wants(r, &keep);
	rc = outputs_clean(r->rootfd, r->set, r->nested, r->nnested, &keep, r->e);
	free(keep.v);
	return rc;
}

static bool
is_piece_start(const struct restore *r, size_t want)
{
	for (size_t lo = 0, hi = r->npieces; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->pieces[mid].first == want)
			return true;
		if (r->pieces[mid].first < want)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* Directories that were there or came as the top of a piece, innermost first. */
static int
set_modes(struct restore *r)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = r->n; i > 0; i--) {
		const struct want *w = &r->wants[i - 1];
		const char *real;
		struct stat st;

		if (w->out.type != OUTPUT_DIR || (w->exists && w->on_the_way) ||
			!(w->exists || is_piece_start(r, i - 1)))
			continue;
		real = outputs_real(&r->roots, w->out.path, &buf);
		access_forget(&r->fixes, real);
		if (fs_stat_beneath(r->rootfd, real, &st) ||
			((st.st_mode & 07777) != mode_of(r, w) &&
				access_chmod(r->rootfd, real, mode_of(r, w))))
			return fail_at(r, w->out.path, errno, "");
	}
	return 0;
}

static bool
is_as_wanted(const struct want *w, const struct output *out)
{
	if (strcmp(w->out.path, out->path) != 0 || w->out.type != out->type)
		return false;
	switch (out->type) {
	case OUTPUT_DIR:
		return w->out.mode == out->mode;
	case OUTPUT_LINK:
		return !strcmp(w->out.target, out->target);
	case OUTPUT_FILE:
		break;
	}
	return w->out.mode == out->mode && w->out.size == out->size && w->ino == out->ino;
}

/* A stamp will say that this is the tree, so it had better be. */
static int
look_again(struct restore *r, struct outputs *ret)
{
	size_t k = 0;

	if (outputs_scan(r->rootfd, r->set, r->nested, r->nnested, ret, r->e))
		return -1;
	for (size_t i = 0; i < r->n; i++) {
		if (r->wants[i].on_the_way) {
			/* its saver did not list it, though a glob selects it */
			k += k < ret->n && !strcmp(ret->v[k].path, r->wants[i].out.path);
			continue;
		}
		if (k == ret->n || !is_as_wanted(&r->wants[i], &ret->v[k])) {
			outputs_release(ret);
			return fail_at(r, r->wants[i].out.path, 0,
				": another process changed it meanwhile");
		}
		k++;
	}
	if (k < ret->n) {
		fail_at(r, ret->v[k].path, 0, ": another process made it meanwhile");
		outputs_release(ret);
		return -1;
	}
	return 0;
}

static int
settle(struct restore *r, struct outputs *ret)
{
	struct outputs now = {0};

	if (remove_strays(r) || set_modes(r))
		return -1;
	if (access_restore(&r->fixes, r->rootfd))
		return err_set(r->e, ERR_IO, errno, "give directories their modes back");
	if (!ret)
		return 0;
	if (look_again(r, &now))
		return -1;
	*ret = now;
	return 0;
}

/* What was staged beside its target and not moved, and what was moved out. The rest is the stage's. */
static void
drop_own_stages(struct restore *r)
{
	for (size_t i = 0; i < r->npieces; i++) {
		struct piece *p = &r->pieces[i];

		if (!p->owns_stage)
			continue;
		if (!p->moved || p->exchange)
			fs_remove_tree(p->stage, p->name);
		fd_close(&p->stage);
	}
}

static void
release(struct restore *r)
{
	wants_free(r->wants, r->n);
	free(r->pieces);
	outputs_release(&r->roots);
}

static int
run(struct restore *r, const struct digest *root, struct outputs *ret)
{
	const struct want_rules rules = {r->set, r->nested, r->nnested};
	int rc = wants_load(r->s, root, &rules, &r->wants, &r->n, r->e);

	if (rc <= 0)
		return rc;
	if (outputs_find_roots(r->rootfd, r->set, r->nested, r->nnested, &r->roots, r->e) ||
		find_pieces(r))
		return -1;
	rc = stage_all(r);
	if (rc <= 0)
		return rc;
	return move_all(r) || settle(r, ret) ? -1 : 1;
}

int
tree_restore(struct store *s, struct stage *stage, const struct digest *root, int rootfd,
	const struct globset *set, const char *const *nested, size_t nnested, struct outputs *ret,
	struct err *e)
{
	mode_t mask = umask(0);
	struct restore r = {
		.s = s,
		.rootfd = rootfd,
		.set = set,
		.nested = nested,
		.nnested = nnested,
		.stage = stage,
		.dir_mode = 0777 & ~mask,
		.e = e,
	};
	int rc;

	umask(mask);
	rc = run(&r, root, ret);
	drop_own_stages(&r);
	if (access_restore(&r.fixes, rootfd) && rc >= 0)
		rc = err_set(e, ERR_IO, errno, "give directories their modes back");
	release(&r);
	return rc;
}

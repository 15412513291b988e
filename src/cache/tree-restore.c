/* SPDX-License-Identifier: MIT */
/*
 * Restoring, in four steps:
 *
 *	load	the tree's nodes, every line checked: what is wanted
 *	stage	what has to be made is made in the run's stage; each blob is checked on the way
 *	plan	the list of moves (tree-moves.c): a missing directory comes with all that is in it, one
 *		that exists is never replaced
 *	apply	the list is written and run (moves.c)
 *
 * Until the last step the workspace is untouched, so a missing or damaged blob costs nothing; and
 * whoever finds a list of moves that is not done finishes it, so that a restore happens or does not.
 */
#include "cache/tree-restore.h"
#include "cache/outputs-never.h"
#include "cache/stage.h"
#include "cache/store.h"
#include "cache/tree.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum {
	NSEC = 1000 * 1000 * 1000
};

int
restore_fail(struct restore *r, const char *path, int num, const char *what)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(r->e, ERR_IO, num, "restore %s%s", name.buf, what);
}

int
restore_go_on(struct restore *r)
{
	return stop_is_asked_by_now() ? err_set(r->e, ERR_IO, ECANCELED, "restore") : 0;
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
	return restore_fail(r, w->out.path, errno, "");
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

	/* Where others only add to outputs that are the task's, theirs give way. */
	if (outputs_select(c->r->set, c->r->nested, c->r->nnested, path) &&
		(!c->r->part || c->r->part->others || outputs_is_mine(c->r->part, path)))
		return FS_VISIT_CONTINUE;
	restore_fail(c->r, c->dir, 0,
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
		return restore_fail(r, w->out.path, ENOTDIR, "");
	if (S_ISDIR(st->st_mode) && fs_walk(r->rootfd, real, check_selected, &c))
		return err_is_set(r->e) ? -1 : restore_fail(r, w->out.path, errno, "");
	return 0;
}

/* A directory that exists: opened where we could not look into it. */
static int
keep_dir(struct restore *r, struct want *w, const struct stat *st)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	w->exists = true;
	w->had_mode = st->st_mode & 07777;
	if (access_add(&r->fixes, r->rootfd, outputs_real(&r->roots, w->out.path, &buf),
		    st->st_mode, 0100) &&
		!w->on_the_way)
		return restore_fail(r, w->out.path, errno, "");
	return 0;
}

/* A link on the way, or beyond one: outputs are reached by where that really leads (r->roots), and what is
 * missing there is made when they are moved. */
static bool
is_followed(const struct restore *r, const struct want *w)
{
	struct stat st;

	if (!w->on_the_way)
		return false;
	for (size_t i = 0; i < r->roots.nroots; i++)
		if (path_is_within(r->roots.roots[i].path, w->out.path))
			return fs_stat_beneath(r->rootfd, w->out.path, &st) ? errno == ELOOP
									    : S_ISLNK(st.st_mode);
	return false;
}

static int
find_pieces(struct restore *r)
{
	for (size_t i = 0; i < r->n;) {
		struct want *w = &r->wants[i];
		bool is_dir = w->out.type == OUTPUT_DIR;
		struct piece p = {.first = i, .n = 1};
		struct stat st;
		int there;

		if (restore_go_on(r))
			return -1;
		if (is_followed(r, w)) {
			w->exists = true;
			i++;
			continue;
		}
		there = stat_want(r, w, &st);
		if (there < 0)
			return -1;
		if (there && is_dir && S_ISDIR(st.st_mode)) {
			if (keep_dir(r, w, &st))
				return -1;
			i++;
			continue;
		}
		if (there && is_dir != S_ISDIR(st.st_mode) && check_in_the_way(r, w, &st))
			return -1;
		for (i++; is_dir && i < r->n && path_is_within(r->wants[i].out.path, w->out.path);
			i++)
			p.n++;
		GROW(r->pieces, r->npieces + 1, r->pieces_cap);
		r->pieces[r->npieces++] = p;
	}
	return 0;
}

/* Staging. */

mode_t
restore_mode(const struct restore *r, const struct want *w)
{
	return w->on_the_way ? r->dir_mode : w->out.mode;
}

mode_t
restore_staged_mode(const struct restore *r, const struct want *w)
{
	return restore_mode(r, w) | (w->out.type == OUTPUT_DIR ? 0700 : 0400);
}

struct stage_dir {
	struct strbuf path; /* below the stage */
	int fd;
};

/* Opens the directory in which `rel` is made; kept for the next one. */
static int
stage_parent(struct restore *r, const struct piece *p, const char *rel, struct stage_dir *d)
{
	size_t n = path_parent_len(rel);

	if (!n)
		return stage_pieces(r->stage);
	if (d->fd >= 0 && d->path.len == n && !memcmp(d->path.buf, rel, n))
		return d->fd;
	fd_close(&d->fd);
	strbuf_reset(&d->path);
	strbuf_add(&d->path, rel, n);
	d->fd = fs_open_beneath(stage_pieces(r->stage), d->path.buf, O_PATH | O_DIRECTORY, 0);
	if (d->fd < 0)
		restore_fail(r, r->wants[p->first].out.path, errno, "");
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
		return restore_fail(r, w->out.path, errno, "");
	rc = store_get_fd(r->s, &w->digest, w->out.size, fd, r->e);
	if (rc < 0)
		return err_wrap(r->e, "restore %s", w->out.path);
	if (!rc || (outputs_is_manifest(r->set, w->out.path) && outputs_why_not_manifest(fd)))
		return 0;
	if (fchmod(fd, restore_staged_mode(r, w)) || fstat(fd, &st))
		return restore_fail(r, w->out.path, errno, "");
	w->ino = st.st_ino;
	w->mtime_ns = (int64_t)st.st_mtim.tv_sec * NSEC + st.st_mtim.tv_nsec;
	return 1;
}

/* 1, -1. */
static int
stage_directory(struct restore *r, struct want *w, int dir, const char *name)
{
	mode_t mode = restore_staged_mode(r, w);
	struct stat st;

	if (mkdirat(dir, name, mode) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return restore_fail(r, w->out.path, errno, "");
	w->ino = st.st_ino;
	/* The umask or a default ACL may have taken some of it. */
	if ((st.st_mode & 07777) != mode && fchmodat(dir, name, mode, AT_SYMLINK_NOFOLLOW))
		return restore_fail(r, w->out.path, errno, "");
	return 1;
}

/* 1, -1. */
static int
stage_link(struct restore *r, struct want *w, int dir, const char *name)
{
	struct stat st;

	if (symlinkat(w->out.target, dir, name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return restore_fail(r, w->out.path, errno, "");
	w->ino = st.st_ino;
	return 1;
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
		return stage_link(r, w, dir, name);
	case OUTPUT_DIR:
		return stage_directory(r, w, dir, name);
	case OUTPUT_SPECIAL:
		break; /* no node says that */
	}
	return -1;
}

static const char *
stage_path(const struct restore *r, const struct piece *p, const struct want *w, struct strbuf *buf)
{
	strbuf_reset(buf);
	strbuf_addf(buf, "%llu", (unsigned long long)p->number);
	path_append(buf, path_below(w->out.path, r->wants[p->first].out.path));
	return buf->buf;
}

static int
stage_piece(struct restore *r, struct piece *p)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	struct stage_dir d = {STRBUF_INIT, -1};
	int rc = 1;

	p->number = stage_number(r->stage);
	for (size_t i = 0; i < p->n && rc > 0; i++) {
		struct want *w = &r->wants[p->first + i];

		rc = restore_go_on(r) ? -1 : stage_want(r, p, w, stage_path(r, p, w, &buf), &d);
	}
	fd_close(&d.fd);
	strbuf_release(&d.path);
	return rc;
}

static int
stage_all(struct restore *r)
{
	int rc = 1;

	if (stage_open(r->stage, r->e))
		return -1;
	for (size_t i = 0; i < r->npieces && rc > 0; i++)
		rc = stage_piece(r, &r->pieces[i]);
	return rc;
}

/* Applying. */

/* No move changes the time, but a copy has it as its file system counts: at worst in steps of two seconds. */
static bool
is_as_staged(const struct restore *r, const struct want *w, const struct output *out)
{
	if (w->ino == out->ino && w->mtime_ns == out->mtime_ns)
		return true;
	return r->copies && w->mtime_ns >= out->mtime_ns &&
	       w->mtime_ns - out->mtime_ns < 2LL * NSEC;
}

static bool
has_content(const struct restore *r, const struct want *w)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	cleanup_close int fd =
		fs_open_beneath(r->rootfd, outputs_real(&r->roots, w->out.path, &buf),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	struct digest d;

	return fd >= 0 && !digest_fd(fd, &d, NULL) && digest_equal(&d, &w->digest);
}

static bool
is_as_wanted(const struct restore *r, const struct want *w, const struct output *out)
{
	if (strcmp(w->out.path, out->path) != 0 || w->out.type != out->type)
		return false;
	switch (out->type) {
	case OUTPUT_DIR:
		return w->out.mode == out->mode;
	case OUTPUT_LINK:
		return !strcmp(w->out.target, out->target);
	case OUTPUT_SPECIAL:
		return false;
	case OUTPUT_FILE:
		break;
	}
	return w->out.mode == out->mode && w->out.size == out->size &&
	       (r->by_content ? has_content(r, w) : is_as_staged(r, w, out));
}

static enum fs_visit
stop_at_any(void *ctx, const struct fs_entry *en)
{
	(void)en;
	*(bool *)ctx = true;
	return FS_VISIT_STOP;
}

/* A directory stays where a wildcard starts, and while something is in it that is not the task's: what
 * another one has added there, or a "!" has taken back. What is the task's in it is told by itself. */
static bool
may_stay(const struct restore *r, const struct outputs *o, const struct output *out)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	bool full = false;

	if (out->type != OUTPUT_DIR)
		return false;
	if (output_heads_stays(&r->heads, out->path))
		return true;
	fs_walk(r->rootfd, outputs_real(o, out->path, &buf), stop_at_any, &full);
	return full;
}

/* The next of what is there from *k on, less what stays though nothing wants it. */
static const struct output *
next_output(const struct restore *r, const struct outputs *o, size_t *k)
{
	for (; *k < o->n; ++*k) {
		const struct output *out = &o->v[*k];

		if (restore_find_want(r, out->path) ||
			(outputs_is_mine(r->part, out->path) && !may_stay(r, o, out)))
			return out;
	}
	return NULL;
}

static void
tell_meddled(struct restore *r, const char *path, const char *what)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	err_set(r->e, ERR_IO, 0, "%s was %s by another process after it was restored", name.buf,
		what);
}

/* A stamp will say that this is the tree, so it had better be. 1; 2: it is not, and the error says where; -1. */
static int
look_again(struct restore *r, struct outputs *ret)
{
	const struct output *out;
	size_t k = 0;

	if (outputs_scan(r->rootfd, r->set, r->nested, r->nnested, ret, r->e))
		return -1;
	for (size_t i = 0; i < r->n; i++) {
		const struct want *w = &r->wants[i];

		if (restore_go_on(r))
			return -1;
		out = next_output(r, ret, &k);
		if (w->on_the_way) {
			/* its saver did not list it, though a glob selects it */
			k += out && !strcmp(out->path, w->out.path);
			continue;
		}
		if (!out || !is_as_wanted(r, w, out)) {
			tell_meddled(r, w->out.path, "changed");
			return 2;
		}
		k++;
	}
	out = next_output(r, ret, &k);
	if (!out)
		return 1;
	tell_meddled(r, out->path, "made");
	return 2;
}

/* Of what is there: what was restored, and what else is the task's. */
static void
keep_mine(const struct restore *r, struct outputs *now)
{
	size_t n = 0;

	for (size_t i = 0; i < now->n; i++) {
		const struct output *out = &now->v[i];
		const struct want *w = restore_find_want(r, out->path);

		if (w ? !w->on_the_way : r->part->others && outputs_is_mine(r->part, out->path)) {
			now->v[n++] = *out;
		} else {
			free(out->path);
			free(out->target);
		}
	}
	now->n = n;
	if (!r->part->others)
		outputs_share(now);
}

static int
apply(struct restore *r)
{
	log_debug("phase", "outputs staged");
	if (moves_apply(&r->moves, r->copies, stage_scratch(r->stage), r->rootfd, r->e))
		return -1;
	access_release(&r->fixes); /* the moves have given the modes */
	return 0;
}

static void
release(struct restore *r)
{
	wants_free(r->wants, r->n);
	free(r->pieces);
	output_heads_release(&r->heads);
	outputs_release(&r->roots);
	moves_release(&r->moves);
}

static int
run(struct restore *r, const struct digest *root, struct outputs *ret)
{
	const struct want_rules rules = {r->rootfd, r->set, r->nested, r->nnested};
	struct outputs now = {0};
	int64_t staged_ns;
	int rc = root ? wants_load(r->s, root, &rules, &r->wants, &r->n, r->e) : 1;

	if (rc <= 0)
		return rc;
	if (output_heads_find(r->rootfd, r->set, r->nested, r->nnested, &r->heads, r->e))
		return -1;
	output_heads_roots(&r->heads, &r->roots);
	if (find_pieces(r))
		return -1;
	rc = stage_all(r);
	if (rc <= 0)
		return rc;
	staged_ns = (int64_t)clock_files_ns();
	if (restore_plan(r) || apply(r))
		return -1;
	if (!ret)
		return 1;
	rc = look_again(r, &now);
	if (rc != 1) {
		outputs_release(&now);
		return rc;
	}
	now.looked_ns = staged_ns;
	if (r->part)
		keep_mine(r, &now);
	*ret = now;
	return 1;
}

int
tree_is_there(struct store *s, const struct digest *root, int rootfd, const struct globset *set,
	const char *const *nested, size_t nnested, struct outputs *ret, struct err *e)
{
	const struct want_rules rules = {rootfd, set, nested, nnested};
	struct err differs = ERR_INIT;
	struct restore r = {
		.s = s,
		.rootfd = rootfd,
		.set = set,
		.nested = nested,
		.nnested = nnested,
		.by_content = true,
		.e = &differs,
	};
	int rc = root ? wants_load(s, root, &rules, &r.wants, &r.n, e) : 1;

	if (rc > 0 && output_heads_find(rootfd, set, nested, nnested, &r.heads, e))
		rc = -1;
	if (rc > 0) {
		output_heads_roots(&r.heads, &r.roots);
		rc = look_again(&r, ret) == 1;
		if (!rc)
			outputs_release(ret);
	}
	release(&r);
	return rc;
}

int
tree_names(struct store *s, const struct digest *root, int rootfd, const struct globset *set,
	const char *const *nested, size_t nnested, struct strvec *ret, struct err *e)
{
	const struct want_rules rules = {rootfd, set, nested, nnested};
	struct want *wants;
	size_t n;
	int r = wants_load(s, root, &rules, &wants, &n, e);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (wants[i].out.type != OUTPUT_DIR)
			strvec_push(ret, wants[i].out.path);
	wants_free(wants, n);
	return 1;
}

int
tree_restore(struct store *s, struct stage *stage, const struct digest *root, int rootfd,
	const struct globset *set, const char *const *nested, size_t nnested,
	const struct outputs_part *part, struct outputs *ret, struct err *e)
{
	mode_t mask = umask(0);
	struct restore r = {
		.s = s,
		.rootfd = rootfd,
		.set = set,
		.nested = nested,
		.nnested = nnested,
		.part = part,
		.stage = stage,
		.dir_mode = 0777 & ~mask,
		.e = e,
	};
	int rc;

	umask(mask);
	rc = run(&r, root, ret);
	if (access_restore(&r.fixes, rootfd) && rc >= 0)
		rc = err_set(e, ERR_IO, errno, "give directories their modes back");
	release(&r);
	return rc;
}

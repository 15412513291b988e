/* SPDX-License-Identifier: MIT */
/*
 * The list of moves of a restore: what is staged goes into place, what else the globs select is
 * removed, modes are set. In this order:
 *
 *	open	directories of ours that may not be written
 *	early	what a directory holds in whose place something else goes
 *	place	the pieces
 *	late	strays, and directories that are empty without them
 *	modes	innermost first
 */
#include "cache/stage.h"
#include "cache/tree-restore.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct removals {
	struct moves files, dirs;
};

struct plan {
	struct restore *r;
	struct moves open, place, mode;
	struct removals early, late;
	struct htab touched; /* directories in which names change */
	struct htab moded;   /* paths that are in `mode` */
};

static const char *
real_path(const struct plan *pl, const char *path, struct strbuf *buf)
{
	return outputs_real(&pl->r->roots, path, buf);
}

static void
add_mode(struct plan *pl, const char *real, mode_t mode)
{
	if (htab_findn(&pl->moded, real, strlen(real)))
		return;
	htab_putn_copy(&pl->moded, real, strlen(real), pl);
	moves_add(&pl->mode, MOVE_MODE, real)->mode = mode;
}

/* Those that will differ from what they are now, or as which they are staged. */
static int
plan_modes(struct plan *pl)
{
	struct restore *r = pl->r;
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = 0; i < r->n; i++) {
		const struct want *w = &r->wants[i];
		mode_t mode = restore_mode(r, w);

		if (restore_go_on(r))
			return -1;
		if (w->out.type == OUTPUT_LINK)
			continue;
		if (w->exists ? !w->on_the_way && w->had_mode != mode
			      : restore_staged_mode(r, w) != mode)
			add_mode(pl, real_path(pl, w->out.path, &buf), mode);
	}
	return 0;
}

/* It has this mode but must be accessible to us for the time of the moves. */
static void
add_open(struct plan *pl, const char *real, mode_t mode)
{
	moves_add(&pl->open, MOVE_OPEN, real);
	add_mode(pl, real, mode);
}

/* Names change in the parent of `real`. With `make` it is made where it is missing: a dangling link
 * on the way can name one. */
static int
touch_parent(struct plan *pl, const char *real, bool make)
{
	struct restore *r = pl->r;
	size_t n = path_parent_len(real);
	cleanup_free char *parent = NULL;
	cleanup_close int fd = -1;
	struct stat st;

	if (htab_findn(&pl->touched, real, n))
		return 0;
	htab_putn_copy(&pl->touched, real, n, pl);
	parent = xmemdupz(real, n);
	fd = fs_open_beneath(r->rootfd, parent, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOENT && make)
		fd = fs_open_mkdirs(r->rootfd, parent);
	if (fd < 0 || fstat(fd, &st))
		return make ? restore_fail(r, real, errno, "") : 0;
	if (make && moves_must_copy(stage_pieces(r->stage), fd))
		r->copies = true;
	if (n && (st.st_mode & 0700) != 0700 && st.st_uid == geteuid())
		add_open(pl, parent, st.st_mode & 07777);
	return 0;
}

static int
plan_places(struct plan *pl)
{
	struct restore *r = pl->r;
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = 0; i < r->npieces; i++) {
		const struct piece *p = &r->pieces[i];
		const struct want *w = &r->wants[p->first];
		const char *real = real_path(pl, w->out.path, &buf);
		struct move *mv;

		if (restore_go_on(r) || touch_parent(pl, real, true))
			return -1;
		mv = moves_add(&pl->place, MOVE_BRING, real);
		mv->ino = w->ino;
		mv->number = p->number;
	}
	return 0;
}

/* Removing. */

const struct want *
restore_find_want(const struct restore *r, const char *path)
{
	for (size_t lo = 0, hi = r->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;
		int c = outputs_cmp(path, r->wants[mid].out.path);

		if (!c)
			return &r->wants[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static void
add_rmdir(struct plan *pl, struct removals *to, const char *real)
{
	touch_parent(pl, real, false);
	moves_add(&to->dirs, MOVE_RMDIR, real);
}

/* Directories that are no outputs themselves, from `path` up to its head, if they are empty then. */
static void
add_emptied(struct plan *pl, const struct outputs *have, const char *path)
{
	cleanup_strbuf struct strbuf at = STRBUF_INIT, buf = STRBUF_INIT;

	strbuf_adds(&at, path);
	for (;;) {
		strbuf_truncate(&at, path_parent_len(at.buf));
		if (!output_heads_is_below(&pl->r->heads, at.buf) || outputs_find(have, at.buf))
			return;
		add_rmdir(pl, &pl->late, real_path(pl, at.buf, &buf));
	}
}

static int
add_stray(struct plan *pl, struct removals *to, const struct output *out)
{
	struct restore *r = pl->r;
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = real_path(pl, out->path, &buf);

	if (out->type != OUTPUT_DIR) {
		touch_parent(pl, real, false);
		moves_add_remove(&to->files, r->rootfd, real);
		return 0;
	}
	/* what is in it is looked at next */
	if (!(out->mode & 0100)) {
		if (access_add(&r->fixes, r->rootfd, real, out->mode, 0700))
			return restore_fail(r, out->path, errno, "");
		add_open(pl, real, out->mode);
	}
	add_rmdir(pl, to, real);
	return 0;
}

static int
plan_strays(struct plan *pl, const struct outputs *have)
{
	const char *in_the_way = NULL; /* a directory, where something else is wanted */

	for (size_t i = 0; i < have->n; i++) {
		const struct output *out = &have->v[i];
		const struct want *w = restore_find_want(pl->r, out->path);

		if (restore_go_on(pl->r))
			return -1;
		if (w && out->type == OUTPUT_DIR && w->out.type != OUTPUT_DIR) {
			in_the_way = out->path;
			if (add_stray(pl, &pl->early, out))
				return -1;
		} else if (in_the_way && path_is_within(out->path, in_the_way)) {
			if (add_stray(pl, &pl->early, out))
				return -1;
		} else if (w || !outputs_is_mine(pl->r->part, out->path)) {
			continue;
		} else if (out->type != OUTPUT_DIR ||
			   !output_heads_stays(&pl->r->heads, out->path)) {
			if (add_stray(pl, &pl->late, out))
				return -1;
			add_emptied(pl, have, out->path);
		}
	}
	return 0;
}

static int
plan_removals(struct plan *pl)
{
	struct restore *r = pl->r;
	struct outputs have = {0};
	int rc;

	if (outputs_scan(r->rootfd, r->set, r->nested, r->nnested, &have, r->e))
		return -1;
	rc = plan_strays(pl, &have);
	outputs_release(&have);
	return rc;
}

static void
take_all(struct plan *pl, struct moves *ret)
{
	moves_sort_outer_first(&pl->open);
	moves_sort_inner_first(&pl->early.dirs);
	moves_sort_inner_first(&pl->late.dirs);
	moves_sort_inner_first(&pl->mode);
	moves_append_take(ret, &pl->open);
	moves_append_take(ret, &pl->early.files);
	moves_append_take(ret, &pl->early.dirs);
	moves_append_take(ret, &pl->place);
	moves_append_take(ret, &pl->late.files);
	moves_append_take(ret, &pl->late.dirs);
	moves_append_take(ret, &pl->mode);
}

int
restore_plan(struct restore *r)
{
	struct plan pl = {.r = r};
	int rc;

	htab_init(&pl.touched);
	htab_init(&pl.moded);
	rc = plan_modes(&pl);
	for (size_t i = 0; i < r->fixes.n; i++)
		add_open(&pl, r->fixes.v[i].path, r->fixes.v[i].mode);
	rc = rc || plan_places(&pl) || plan_removals(&pl) ? -1 : 0;
	take_all(&pl, &r->moves);
	htab_release(&pl.touched);
	htab_release(&pl.moded);
	return rc;
}

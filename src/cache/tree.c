/* SPDX-License-Identifier: MIT */
/*
 * Saving. Outputs come in the order of outputs_sort, a directory right before what is in it, so that
 * one stack of open directories is enough; a directory's node is stored when it is left.
 */
#include "cache/tree.h"
#include "cache/access.h"
#include "cache/outputs-never.h"
#include "cache/store.h"
#include "cache/tree-node.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * Holes take no room and no time to make, but are digested as the zeros that they are, twice when they
 * are new, at some 1.5 GB a second, and meanwhile the loop stands still (no time-out of another task is
 * seen). So much is half a minute, and more than the disk images that tests boot.
 */
static const uint64_t HOLES_MAX = (uint64_t)16 << 30;

struct level {
	struct strbuf node;
	char *name;
	bool on_the_way;
	uint32_t mode;
	size_t path_len; /* of the directory */
};

struct saving {
	struct store *s;
	int fromfd;
	const struct globset *set;
	const struct outputs *o;
	struct level *v; /* from the root to the directory being filled */
	size_t n, cap;
	struct strbuf path; /* of v[n - 1] */
	struct access_fixes fixes;
	uint64_t bytes, holes, hollow;
	struct err *e;
};

static int
fail_at(struct err *e, const char *path, int num, const char *what)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(e, ERR_IO, num, "output %s%s", name.buf, what);
}

/* A name and a reason, for what could not be restored. */
static int
refuse(struct err *e, const char *path, const char *why)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(
		e, ERR_IO, 0, "output %s: %s, unless cache.outputs names it itself", name.buf, why);
}

static void
enter(struct saving *sv, const char *name, size_t len, bool on_the_way, uint32_t mode)
{
	struct level *l;

	if (sv->n) {
		if (sv->path.len)
			strbuf_addch(&sv->path, '/');
		strbuf_add(&sv->path, name, len);
	}
	GROW(sv->v, sv->n + 1, sv->cap);
	l = &sv->v[sv->n++];
	*l = (struct level){STRBUF_INIT, xmemdupz(name, len), on_the_way, mode, sv->path.len};
	tree_node_begin(&l->node);
}

static void
drop_level(struct saving *sv)
{
	struct level *l = &sv->v[--sv->n];

	strbuf_release(&l->node);
	free(l->name);
	if (sv->n)
		strbuf_truncate(&sv->path, sv->v[sv->n - 1].path_len);
}

/* Stores the innermost directory and adds it to the one that holds it, if any. */
static int
leave(struct saving *sv, struct digest *ret)
{
	struct level *l = &sv->v[sv->n - 1];

	if (l->node.len > TREE_NODE_MAX)
		return fail_at(sv->e, sv->path.buf, 0, ": too many names in one directory");
	if (store_put_bytes(sv->s, l->node.buf, l->node.len, ret, sv->e))
		return -1;
	if (sv->n > 1)
		tree_node_add(&sv->v[sv->n - 2].node, &(struct tree_line){
							      .type = OUTPUT_DIR,
							      .on_the_way = l->on_the_way,
							      .mode = l->mode,
							      .digest = *ret,
							      .name = l->name,
						      });
	drop_level(sv);
	return 0;
}

/* Makes the directory that holds `path` the innermost one. */
static int
go_to_parent(struct saving *sv, const char *path)
{
	size_t want = path_parent_len(path);
	cleanup_free char *parent = xmemdupz(path, want);
	struct digest d;

	while (!path_is_within(parent, sv->path.buf))
		if (leave(sv, &d))
			return -1;
	for (const char *p = path_below(parent, sv->path.buf); *p;) {
		size_t n = strcspn(p, "/");

		enter(sv, p, n, true, 0);
		p += n;
		p += *p == '/';
	}
	return 0;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int
open_file(struct saving *sv, const struct output *out)
{
	enum {
		FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
	};
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = outputs_real(sv->o, out->path, &buf);
	int fd = fs_open_beneath(sv->fromfd, real, FLAGS, 0);

	if (fd >= 0 || errno != EACCES || (out->mode & 0400))
		return fd;
	if (access_add(&sv->fixes, sv->fromfd, real, out->mode, 0400))
		return -1;
	return fs_open_beneath(sv->fromfd, real, FLAGS, 0);
}

static int
check_holes(struct saving *sv, const char *path, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, real = (uint64_t)st->st_blocks * 512;
	char what[80];

	if (size <= real)
		return 0;
	sv->holes += size - real;
	if (sv->holes <= HOLES_MAX)
		return 0;
	snprintf(what, sizeof(what), ": sparse, %llu GiB; a result has at most %llu GiB of holes",
		(unsigned long long)size >> 30, (unsigned long long)HOLES_MAX >> 30);
	return fail_at(sv->e, path, 0, what);
}

static int
put_file(struct saving *sv, const struct output *out, struct digest *ret)
{
	cleanup_close int fd = open_file(sv, out);
	struct stat before, after;
	struct output now = {0};
	uint64_t size;

	if (fd < 0 || fstat(fd, &before))
		return fail_at(sv->e, out->path, errno, "");
	if (!output_fill(&now, &before) || now.type != OUTPUT_FILE || now.size != out->size ||
		now.mtime_ns != out->mtime_ns)
		return fail_at(sv->e, out->path, 0, " has changed since the task ended");
	if (check_holes(sv, out->path, &before))
		return -1;
	if (outputs_is_manifest(sv->set, out->path)) {
		const char *why = outputs_why_not_manifest(fd);

		if (why)
			return refuse(sv->e, out->path, why);
		if (lseek(fd, 0, SEEK_SET))
			return fail_at(sv->e, out->path, errno, "");
	}
	if (store_put_fd(sv->s, fd, ret, &size, sv->e)) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		strbuf_add_sanitised(&name, out->path, strlen(out->path));
		return err_wrap(sv->e, "output %s", name.buf);
	}
	if (fstat(fd, &after))
		return fail_at(sv->e, out->path, errno, "");
	if (!is_same(&before, &after) || size != out->size)
		return fail_at(sv->e, out->path, 0, " changed while it was stored");
	sv->bytes += size;
	sv->hollow += store_hollow(sv->s, ret, size);
	if (sv->hollow > TREE_HOLLOW_MAX)
		return fail_at(sv->e, out->path, 0,
			": a result holds at most 64 GiB more than its content takes up in the "
			"cache");
	return 0;
}

static int
save_one(struct saving *sv, const struct output *out)
{
	struct tree_line line = {.type = out->type, .mode = out->mode, .size = out->size};

	if (go_to_parent(sv, out->path))
		return -1;
	line.name = path_base(out->path);
	line.target = out->target;
	if (out->type == OUTPUT_DIR) {
		enter(sv, line.name, strlen(line.name), false, out->mode);
		return 0;
	}
	if (out->type == OUTPUT_FILE && put_file(sv, out, &line.digest))
		return -1;
	tree_node_add(&sv->v[sv->n - 1].node, &line);
	return 0;
}

/* Directories that may not be searched are opened for the time of saving. */
static int
open_dirs(struct saving *sv)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = 0; i < sv->o->n; i++) {
		const struct output *out = &sv->o->v[i];

		if (out->type == OUTPUT_DIR &&
			access_add(&sv->fixes, sv->fromfd, outputs_real(sv->o, out->path, &buf),
				out->mode, 0100))
			return fail_at(sv->e, out->path, errno, "");
	}
	return 0;
}

static int
check_names(struct saving *sv)
{
	cleanup_free const struct output **v = xcalloc(sv->o->n, sizeof(*v));
	const struct output *bad;
	const char *why;

	for (size_t i = 0; i < sv->o->n; i++)
		v[i] = &sv->o->v[i];
	bad = outputs_find_never(sv->fromfd, sv->set, v, sv->o->n, &why);
	return bad ? refuse(sv->e, bad->path, why) : 0;
}

static int
save_all(struct saving *sv, struct digest *ret)
{
	struct digest d;

	if (check_names(sv) || open_dirs(sv))
		return -1;
	enter(sv, "", 0, true, 0);
	for (size_t i = 0; i < sv->o->n; i++)
		if (save_one(sv, &sv->o->v[i]))
			return -1;
	while (sv->n)
		if (leave(sv, &d))
			return -1;
	*ret = d;
	return 0;
}

int
tree_save(struct store *s, int fromfd, const struct globset *set, const struct outputs *o,
	struct digest *ret, uint64_t *ret_bytes, struct err *e)
{
	struct saving sv = {
		.s = s, .fromfd = fromfd, .set = set, .o = o, .path = STRBUF_INIT, .e = e};
	struct digest d;
	int r;

	if (o->n > TREE_ENTRIES_MAX)
		return err_set(e, ERR_IO, 0, "%zu outputs are more than an entry can hold (%d)",
			o->n, TREE_ENTRIES_MAX);
	r = save_all(&sv, &d);
	if (access_restore(&sv.fixes, fromfd) && !r)
		r = err_set(e, ERR_IO, errno, "give outputs their modes back");
	while (sv.n)
		drop_level(&sv);
	free(sv.v);
	strbuf_release(&sv.path);
	if (r)
		return -1;
	*ret = d;
	if (ret_bytes)
		*ret_bytes = sv.bytes;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "cache/stamp.h"
#include "cache/outputs.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/filestate.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <fcntl.h>

enum {
	STAMP_VERSION = 1,
	STAMP_UNSURE = 0x100, /* beside the version */
	STAMP_WATCH = 0x80
};

/* One output or watched directory; its path and a NUL follow, padded to 8. */
struct stamp_row {
	uint8_t type; /* enum output_type, or STAMP_WATCH */
	uint8_t zero[3];
	uint32_t mode;
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
	uint32_t path_len, zero2;
};
_Static_assert(sizeof(struct stamp_row) == 48, "a stamp's rows have no padding");

static size_t
padded(size_t len)
{
	return (len + 1 + 7) & ~(size_t)7;
}

static void
add_row(struct strbuf *out, struct stamp_row row, const char *path)
{
	static const char pad[8];
	size_t n = strlen(path);

	row.path_len = (uint32_t)n;
	strbuf_add(out, &row, sizeof(row));
	strbuf_add(out, path, n);
	strbuf_add(out, pad, padded(n) - n);
}

/* By the times that are compared. */
static bool
is_unsure(const struct outputs *o)
{
	for (size_t i = 0; i < o->n; i++)
		if (filestate_is_coarse(
			    o->v[i].type == OUTPUT_DIR ? o->v[i].mtime_ns : o->v[i].ctime_ns,
			    o->looked_ns))
			return true;
	for (size_t i = 0; i < o->nwatch; i++)
		if (filestate_is_coarse(o->watch[i].mtime_ns, o->looked_ns))
			return true;
	return false;
}

void
stamp_encode(const struct outputs *o, struct strbuf *out)
{
	uint64_t version = STAMP_VERSION | (is_unsure(o) ? STAMP_UNSURE : 0);

	strbuf_add(out, &version, sizeof(version));
	for (size_t i = 0; i < o->n; i++) {
		const struct output *v = &o->v[i];
		struct stamp_row row = {
			.type = (uint8_t)v->type,
			.mode = v->mode,
			.size = v->size,
			.ino = v->ino,
			.mtime_ns = v->mtime_ns,
			.ctime_ns = v->ctime_ns,
		};

		add_row(out, row, v->path);
	}
	for (size_t i = 0; i < o->nwatch; i++) {
		struct stamp_row row = {.type = STAMP_WATCH, .mtime_ns = o->watch[i].mtime_ns};

		add_row(out, row, o->watch[i].path);
	}
}

/* A directory that a link on the way stands for was seen through that link. */
static int
look(int rootfd, const char *path, bool dir, struct stat *st)
{
	if (!*path)
		path = ".";
	if (fstatat(rootfd, path, st, AT_SYMLINK_NOFOLLOW))
		return -1;
	return dir && S_ISLNK(st->st_mode) ? fstatat(rootfd, path, st, 0) : 0;
}

/* But for the mtime. */
static bool
is_same(const struct stamp_row *row, const struct output *now)
{
	if (now->type != row->type || now->mode != row->mode || now->ino != row->ino)
		return false;
	/* A directory's ctime moves with chmod alone, and its mode is compared. */
	return now->type == OUTPUT_DIR ||
	       (now->size == row->size && now->ctime_ns == row->ctime_ns);
}

static bool
row_is_true(int rootfd, const struct stamp_row *row, const char *path)
{
	struct output now = {0};
	struct stat st;
	bool there = !look(rootfd, path, row->type == OUTPUT_DIR || row->type == STAMP_WATCH, &st);

	if (row->type == STAMP_WATCH && row->mtime_ns == OUTPUT_ABSENT)
		return !there;
	if (!there || !output_fill(&now, &st))
		return false;
	if (now.mtime_ns != row->mtime_ns &&
		!(row->type == OUTPUT_DIR && row->mtime_ns == OUTPUT_ANY_TIME))
		return false;
	if (row->type == STAMP_WATCH)
		return now.type == OUTPUT_DIR;
	return is_same(row, &now);
}

/* What is left of a stamp while it is read. */
struct reading {
	const char *p;
	size_t n;
	bool unsure;
};

/* False: it is none of this version. */
static bool
begin_reading(struct reading *r, const void *bytes, size_t n)
{
	uint64_t version;

	if (n < sizeof(version))
		return false;
	memcpy(&version, bytes, sizeof(version));
	*r = (struct reading){(const char *)bytes + sizeof(version), n - sizeof(version),
		(version & STAMP_UNSURE) != 0};
	return (version & ~(uint64_t)STAMP_UNSURE) == STAMP_VERSION;
}

/* The next row and its path: 1, 0 at the end, -1 damaged. */
static int
next_row(struct reading *r, struct stamp_row *row, const char **ret_path)
{
	if (!r->n)
		return 0;
	if (r->n < sizeof(*row))
		return -1;
	memcpy(row, r->p, sizeof(*row));
	r->p += sizeof(*row);
	r->n -= sizeof(*row);
	if (row->path_len >= r->n || padded(row->path_len) > r->n || r->p[row->path_len])
		return -1;
	*ret_path = r->p;
	r->p += padded(row->path_len);
	r->n -= padded(row->path_len);
	return 1;
}

static bool
is_true(int rootfd, const void *bytes, size_t n, bool unsure)
{
	struct reading r;
	struct stamp_row row;
	const char *path;
	int more;

	if (!begin_reading(&r, bytes, n) || r.unsure != unsure)
		return false;
	while ((more = next_row(&r, &row, &path)) > 0)
		if (!row_is_true(rootfd, &row, path))
			return false;
	return !more;
}

bool
stamp_is_true(int rootfd, const void *bytes, size_t n)
{
	return is_true(rootfd, bytes, n, false);
}

bool
stamp_is_unsure(int rootfd, const void *bytes, size_t n)
{
	return is_true(rootfd, bytes, n, true);
}

bool
stamp_is_among(const void *bytes, size_t n, const struct outputs *now, struct strvec *ret_strays)
{
	cleanup_free bool *known = xcalloc(now->n, sizeof(*known));
	struct reading r;
	struct stamp_row row;
	const char *path;
	int more;

	if (!begin_reading(&r, bytes, n) || r.unsure)
		return false;
	while ((more = next_row(&r, &row, &path)) > 0) {
		const struct output *out;

		if (row.type == STAMP_WATCH)
			continue; /* what has come to be there is in `now` */
		out = outputs_find(now, path);
		if (!out || !is_same(&row, out) ||
			(out->type != OUTPUT_DIR && out->mtime_ns != row.mtime_ns))
			return false;
		known[out - now->v] = true;
	}
	for (size_t i = 0; !more && i < now->n; i++)
		if (!known[i])
			strvec_push(ret_strays, now->v[i].path);
	return !more;
}

void
stamp_list_names(const void *bytes, size_t n, struct strvec *ret)
{
	struct reading r;
	struct stamp_row row;
	const char *path;

	if (!begin_reading(&r, bytes, n))
		return;
	while (next_row(&r, &row, &path) > 0)
		if (row.type != STAMP_WATCH)
			strvec_push(ret, path);
}

void
stamp_find_files(const void *bytes, size_t n, const struct outputs *now, bool *ret)
{
	struct reading r;
	struct stamp_row row;
	const char *path;

	if (!begin_reading(&r, bytes, n))
		return;
	while (next_row(&r, &row, &path) > 0) {
		const struct output *out = row.type == STAMP_WATCH ? NULL : outputs_find(now, path);

		if (out && out->ino == row.ino)
			ret[out - now->v] = true;
	}
}

static int
path_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
stamp_find_names(const void *bytes, size_t n, const char *const *paths, size_t npaths, bool *ret)
{
	struct reading r;
	struct stamp_row row;
	const char *path;

	if (!begin_reading(&r, bytes, n))
		return;
	while (next_row(&r, &row, &path) > 0) {
		const char *const *found = NULL;

		if (row.type != STAMP_WATCH)
			found = bsearch(&path, paths, npaths, sizeof(*paths), path_cmp);
		if (found)
			ret[found - paths] = true;
	}
}

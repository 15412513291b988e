/* SPDX-License-Identifier: MIT */
/*
 * A glob is only asked about the files at or below its literal head, a range of the sorted list; the
 * ranges of one task are joined first, so that no file is asked about twice.
 */
#include "workspace/inputs.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <sys/stat.h>

struct range {
	size_t from, to;
};
struct ranges {
	struct range *v;
	size_t n, cap;
};

static void
ranges_release(struct ranges *r)
{
	cleanup_free_p(&r->v);
}
#define cleanup_ranges __attribute__((cleanup(ranges_release)))

static void
ranges_add(struct ranges *r, size_t from, size_t to)
{
	if (from == to)
		return;
	GROW(r->v, r->n + 1, r->cap);
	r->v[r->n++] = (struct range){from, to};
}

static int
range_cmp(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Sorted, none touching another. */
static void
ranges_join(struct ranges *r)
{
	size_t n = 0;

	if (r->n > 1)
		qsort(r->v, r->n, sizeof(*r->v), range_cmp);
	for (size_t i = 0; i < r->n; i++) {
		if (n && r->v[i].from <= r->v[n - 1].to) {
			if (r->v[i].to > r->v[n - 1].to)
				r->v[n - 1].to = r->v[i].to;
			continue;
		}
		r->v[n++] = r->v[i];
	}
	r->n = n;
}

static bool
has_suffix(const char *name, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len >= n && !memcmp(name + len - n, suffix, n);
}

static bool
is_hex(const char *p, size_t n)
{
	return strspn(p, "0123456789abcdef") >= n;
}

/* ".<16 hex>-<8 hex>.tmp", a directory that bun makes while it writes. */
static bool
is_bun_temporary(const char *name, size_t len)
{
	return len == 30 && *name == '.' && is_hex(name + 1, 16) && name[17] == '-' &&
	       is_hex(name + 18, 8) && !memcmp(name + 26, ".tmp", 4);
}

/* Never an input, whatever the globs say. (.git, .vx and untracked node_modules are not listed.) */
static bool
is_never_input(const char *path)
{
	for (const char *p = path;;) {
		size_t n = (size_t)(strchrnul(p, '/') - p);

		if (!p[n])
			return has_suffix(p, n, ".tsbuildinfo") || has_suffix(p, n, ".bun-build") ||
			       !strcmp(p, "vx-lock.json");
		if (is_bun_temporary(p, n))
			return true;
		p += n + 1;
	}
}

static bool
is_nested(const struct project *p, const char *path)
{
	for (size_t i = 0; i < p->nnested; i++)
		if (path_is_within(path, p->nested[i]->dir))
			return true;
	return false;
}

static bool
is_input(const struct project *p, const struct taskdef *t, const char *path)
{
	if (is_never_input(path))
		return false;
	if (!t->cache)
		return path_is_within(path, p->dir) && !is_nested(p, path);
	if (!(globset_match(&t->cache->files, path) && !is_nested(p, path)) &&
		!globset_match(&t->cache->workspace_files, path))
		return false;
	if (!globset_match(&t->cache->outputs, path))
		return true;
	return is_nested(p, path) && !globset_match_nested(&t->cache->outputs, path);
}

/* Whether something of [from, to) is the literal itself or lies below it. */
static bool
is_listed(const struct files *f, const char *literal, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (path_is_within(f->paths[i], literal))
			return true;
	return false;
}

/* A literal that is there and not listed would silently be no part of the key. */
static int
check_literal(int rootfd, const struct files *f, const struct taskdef *t, const char *literal,
	struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	struct stat st;

	if (fs_stat_beneath(rootfd, literal, &st)) {
		/* below a link or not there: nothing that git could list */
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			return 0;
		return err_set(e, ERR_IO, errno, "input %s", literal);
	}
	strbuf_add_sanitised(&name, literal, strlen(literal));
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_CONFIG, 0,
			"%s: task %s: the input \"%s\" is a directory with no file that counts: %s",
			t->place, t->name, name.buf,
			f->no_git ? "it is empty; remove the entry"
				  : "it is empty or git ignores it; remove the entry, or un-ignore "
				    "it");
	return err_set(e, ERR_CONFIG, 0,
		"%s: task %s: the input \"%s\" exists but %s, so a change of it would not be seen; "
		"remove the entry, or un-ignore the file",
		t->place, t->name, name.buf,
		f->no_git ? "is no file that can be read" : "git ignores it");
}

static int
add_globs(int rootfd, const struct files *f, const struct taskdef *t, const struct globset *set,
	struct ranges *ranges, struct err *e)
{
	for (size_t i = 0; i < set->npos; i++) {
		const struct glob *g = set->pos[i];

		for (size_t k = 0; k < glob_nalternatives(g); k++) {
			const char *head = glob_literal_head(g, k);
			size_t from, to;

			files_below(f, head, &from, &to);
			if (glob_alternative_is_literal(g, k) && !is_listed(f, head, from, to) &&
				check_literal(rootfd, f, t, head, e))
				return -1;
			ranges_add(ranges, from, to);
		}
	}
	return 0;
}

static int
find_ranges(int rootfd, const struct files *f, const struct project *p, const struct taskdef *t,
	struct ranges *ranges, struct err *e)
{
	size_t from, to;

	if (!t->cache) {
		files_below(f, p->dir, &from, &to);
		ranges_add(ranges, from, to);
		return 0;
	}
	return add_globs(rootfd, f, t, &t->cache->files, ranges, e) ||
			       add_globs(rootfd, f, t, &t->cache->workspace_files, ranges, e)
		       ? -1
		       : 0;
}

int
inputs_resolve(int rootfd, const struct files *f, const struct project *p, const struct taskdef *t,
	struct inputs *ret, struct err *e)
{
	cleanup_ranges struct ranges ranges = {0};
	struct inputs in = {0};

	if (find_ranges(rootfd, f, p, t, &ranges, e))
		return -1;
	ranges_join(&ranges);
	for (size_t i = 0; i < ranges.n; i++)
		for (size_t k = ranges.v[i].from; k < ranges.v[i].to; k++) {
			if (!is_input(p, t, f->paths[k]))
				continue;
			GROW(in.paths, in.n + 1, in.cap);
			in.paths[in.n++] = f->paths[k];
		}
	*ret = in;
	return 0;
}

void
inputs_release(struct inputs *in)
{
	free(in->paths);
	*in = (struct inputs){0};
}

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
bool
inputs_is_never(const char *path)
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

bool
inputs_declare(const struct project *p, const struct taskdef *t, const char *path)
{
	if (inputs_is_never(path))
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

bool
inputs_may_reach(const struct project *p, const struct taskdef *t, const char *dir)
{
	if (!t->cache)
		return path_is_within(dir, p->dir) && !is_nested(p, dir);
	return (globset_may_match_below(&t->cache->files, dir) && !is_nested(p, dir)) ||
	       globset_may_match_below(&t->cache->workspace_files, dir);
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

/* Links. Git lists nothing behind one, and no key follows one: what is there is named where it is. */

/* The first link on `path`, owned; NULL: none, as far as there is something. */
static char *
find_link(int rootfd, const char *path)
{
	size_t n = 0;

	for (;;) {
		cleanup_free char *at = NULL;
		struct stat st;

		n += strcspn(path + n, "/");
		at = xmemdupz(path, n);
		if (fs_stat_beneath(rootfd, at, &st))
			return NULL;
		if (S_ISLNK(st.st_mode))
			return take_ptr(&at);
		if (!path[n++])
			return NULL;
	}
}

/* Where `path` leads, and whether that is a directory: owned, from the root, or absolute outside of the
 * workspace. NULL: nowhere. Only for saying so. */
static char *
find_real(int rootfd, const char *path, bool *ret_is_dir)
{
	cleanup_free char *base = xasprintf("/proc/self/fd/%d", rootfd);
	cleanup_free char *full = path_join(base, path);
	cleanup_free char *root = realpath(base, NULL), *real = realpath(full, NULL);
	struct stat st;

	if (!root || !real || stat(real, &st))
		return NULL;
	*ret_is_dir = S_ISDIR(st.st_mode);
	if (!strcmp(root, "/"))
		return xstrdup(real + 1);
	return path_is_within(real, root) ? xstrdup(path_below(real, root)) : take_ptr(&real);
}

/* `entry`: as it is written, or a literal from the root. `literal`: it is to name what is at `real`, else
 * files below that. */
static int
refuse_behind(const struct project *p, const struct taskdef *t, const char *entry, bool literal,
	const char *link, const char *real, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, by = STRBUF_INIT, at = STRBUF_INIT;
	bool own = path_is_within(real, p->dir) && !is_nested(p, real);
	const char *shown = own ? path_below(real, p->dir) : real;

	strbuf_add_sanitised(&name, entry, strlen(entry));
	strbuf_add_sanitised(&by, link, strlen(link));
	strbuf_add_sanitised(&at, shown, strlen(shown));
	if (*real == '/')
		return err_set(e, ERR_CONFIG, 0,
			"%s: task %s: the input \"%s\" lies behind the link %s, which leads out of "
			"the "
			"workspace (%s), so a change of it would not be seen; remove the entry",
			t->place, t->name, name.buf, by.buf, at.buf);
	return err_set(e, ERR_CONFIG, 0,
		"%s: task %s: the input \"%s\" lies behind the link %s, so a change of it would "
		"not "
		"be seen; name %s%s \"%s\"",
		t->place, t->name, name.buf, by.buf,
		literal ? "it where it is" : "its files where they are",
		own ? ":" : ", in cache.inputs.workspaceFiles:", at.buf);
}

/* No file is listed below the head of a wildcard, which may be a link itself. */
static int
check_head(int rootfd, const struct project *p, const struct taskdef *t, const struct glob *g,
	const char *head, struct err *e)
{
	cleanup_free char *link = NULL, *real = NULL;
	bool is_dir = false;
	struct stat st;

	if (!*head || (!fs_stat_beneath(rootfd, head, &st) ? !S_ISLNK(st.st_mode) : errno != ELOOP))
		return 0;
	link = find_link(rootfd, head);
	real = link ? find_real(rootfd, head, &is_dir) : NULL;
	return real && is_dir ? refuse_behind(p, t, glob_text(g), false, link, real, e) : 0;
}

/* A literal that is there and not listed would silently be no part of the key. */
static int
check_literal(int rootfd, const struct files *f, const struct project *p, const struct taskdef *t,
	const char *literal, struct err *e)
{
	cleanup_free char *link = NULL, *real = NULL;
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	bool is_dir;
	struct stat st;

	if (fs_stat_beneath(rootfd, literal, &st)) {
		if (errno == ELOOP) {
			link = find_link(rootfd, literal);
			real = link ? find_real(rootfd, literal, &is_dir) : NULL;
			return real ? refuse_behind(p, t, literal, true, link, real, e) : 0;
		}
		if (errno == ENOENT || errno == ENOTDIR)
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

/* Whether something of [from, to) lies below `dir`. */
static bool
has_below(const struct files *f, const char *dir, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (path_is_within(f->paths[i], dir) && strcmp(f->paths[i], dir) != 0)
			return true;
	return false;
}

/* One alternative of it can select nothing but what is behind the link. */
static bool
starts_behind(const struct glob *g, const char *link)
{
	for (size_t k = 0; k < glob_nalternatives(g); k++)
		if (path_is_within(glob_literal_head(g, k), link))
			return true;
	return false;
}

static bool
is_listed_input(
	const struct files *f, const struct project *p, const struct taskdef *t, const char *path)
{
	size_t from, to;

	files_below(f, path, &from, &to);
	return from < to && !strcmp(f->paths[from], path) && inputs_declare(p, t, path);
}

int
inputs_check_absent(int rootfd, const struct files *f, const struct project *p,
	const struct taskdef *t, const char *path, struct err *e)
{
	const struct globset *sets[2];
	cleanup_free char *link = NULL, *real = NULL;
	bool is_dir;
	struct stat st;

	if (!t->cache || !fs_stat_beneath(rootfd, path, &st) || errno != ELOOP)
		return 0;
	link = find_link(rootfd, path);
	real = link ? find_real(rootfd, path, &is_dir) : NULL;
	if (!real)
		return 0;
	sets[0] = &t->cache->files;
	sets[1] = &t->cache->workspace_files;
	for (size_t k = 0; k < array_len(sets); k++)
		for (size_t i = 0; i < sets[k]->npos; i++)
			if (glob_match(sets[k]->pos[i], path) &&
				starts_behind(sets[k]->pos[i], link))
				return refuse_behind(p, t, path, true, link, real, e);
	/* A wildcard above both covers it all the same: the link by its text, the file by its name. */
	return is_listed_input(f, p, t, real) ? 0 : refuse_behind(p, t, path, true, link, real, e);
}

static int
add_globs(int rootfd, const struct files *f, const struct project *p, const struct taskdef *t,
	const struct globset *set, struct ranges *ranges, struct err *e)
{
	for (size_t i = 0; i < set->npos; i++) {
		const struct glob *g = set->pos[i];

		for (size_t k = 0; k < glob_nalternatives(g); k++) {
			const char *head = glob_literal_head(g, k);
			size_t from, to;

			files_below(f, head, &from, &to);
			if (glob_alternative_is_literal(g, k)
					? !is_listed(f, head, from, to) &&
						  check_literal(rootfd, f, p, t, head, e)
					: !has_below(f, head, from, to) &&
						  check_head(rootfd, p, t, g, head, e))
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
	return add_globs(rootfd, f, p, t, &t->cache->files, ranges, e) ||
			       add_globs(rootfd, f, p, t, &t->cache->workspace_files, ranges, e)
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
			if (!inputs_declare(p, t, f->paths[k]))
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

/* SPDX-License-Identifier: MIT */
#include "cache/outputs-head.h"
#include "cache/outputs.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

enum {
	MAX_LINKS = 40
}; /* as the kernel's own bound */

void
output_heads_release(struct output_heads *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->v[i].path);
		free(h->v[i].real);
	}
	free(h->v);
	*h = (struct output_heads){0};
}

static const struct output_head *
find(const struct output_heads *h, const char *path)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->v[i].path, path))
			return &h->v[i];
	return NULL;
}

bool
output_heads_has(const struct output_heads *h, const char *path)
{
	return find(h, path) != NULL;
}

bool
output_heads_stays(const struct output_heads *h, const char *path)
{
	const struct output_head *head = find(h, path);

	return head && head->stays;
}

bool
output_heads_is_below(const struct output_heads *h, const char *path)
{
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(h->v[i].path, path) != 0 && path_is_within(path, h->v[i].path))
			return true;
	return false;
}

static int
refuse_link(const char *link, const char *target, const char *why, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "the output directory ");
	strbuf_add_sanitised(&text, link, strlen(link));
	strbuf_adds(&text, " is a link (-> ");
	strbuf_add_sanitised(&text, target, strlen(target));
	strbuf_addf(&text,
		") that leads %s: remove the link, or declare the outputs where they are", why);
	return err_set(e, ERR_IO, 0, "%s", text.buf);
}

/* What the link says, and whether a directory is there. errno on -1. */
static int
read_link(int rootfd, const char *path, char ret_target[PATH_MAX], bool *ret_is_dir)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	struct stat st;
	ssize_t n;

	if (parent < 0)
		return -1;
	n = readlinkat(parent, base, ret_target, PATH_MAX - 1);
	if (n < 0)
		return -1;
	ret_target[n] = '\0';
	*ret_is_dir = !fstatat(parent, base, &st, 0) && S_ISDIR(st.st_mode);
	return 0;
}

struct resolving {
	int rootfd;
	const char *base; /* what must not be left, really */
	const char *const *nested;
	size_t nnested;
	bool literal; /* all globs with this head are literals */
	struct output_head *head;
	struct err *e;
};

/* The text of `real` once the link at the first `n` bytes of it is replaced by its target. NULL: it
 * climbs above the root. */
static char *
replace_by_target(const char *real, size_t n, const char *target)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_free char *link = xmemdupz(real, n);
	char *r;

	strbuf_add(&text, link, path_parent_len(link));
	path_append(&text, target);
	strbuf_adds(&text, real + n);
	r = path_normalise(text.buf);
	if (!strcmp(r, "..") || !strncmp(r, "../", 3)) {
		free(r);
		return NULL;
	}
	return r;
}

static const char *
out_of(const struct resolving *r)
{
	return r->head->wide ? "out of the workspace" : "out of its project";
}

/* Follows the first link on `*real`. 1 followed, 0 there is none (then *ret_st and *ret_found say
 * what is there), -1. */
static int
follow_one(struct resolving *r, char **real, bool *ret_found, struct stat *ret_st, bool *ret_link)
{
	const char *path = *real;
	size_t n = 0;

	*ret_found = false;
	*ret_link = false;
	for (;;) {
		cleanup_free char *at = NULL;
		char target[PATH_MAX], *next;
		bool is_dir, last;

		n += strcspn(path + n, "/");
		at = xmemdupz(path, n);
		last = !path[n];
		if (fs_stat_beneath(r->rootfd, at, ret_st)) {
			if (errno == ENOENT || errno == ENOTDIR)
				return 0;
			return err_set(r->e, ERR_IO, errno, "output %s", at);
		}
		if (!S_ISLNK(ret_st->st_mode)) {
			if (last)
				*ret_found = true;
			if (last || !S_ISDIR(ret_st->st_mode))
				return 0;
			n++;
			continue;
		}
		if (read_link(r->rootfd, at, target, &is_dir))
			return err_set(r->e, ERR_IO, errno, "output %s", at);
		/* In the last place a link that leads to no directory is an output like any other;
		 * a wildcard's directory that is not there yet is made where the link says. */
		if (last && !is_dir && r->literal) {
			*ret_found = *ret_link = true;
			return 0;
		}
		next = *target == '/' ? NULL : replace_by_target(path, n, target);
		if (!next)
			return refuse_link(at, target, out_of(r), r->e);
		free(*real);
		*real = next;
		return 1;
	}
}

static const char *
why_not_there(const struct resolving *r, const char *real)
{
	if (!path_is_within(real, r->base))
		return out_of(r);
	for (const char *p = real; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");

		if ((n == 4 && !strncmp(p, ".git", 4)) || (n == 3 && !strncmp(p, ".vx", 3)))
			return "into .git or .vx";
		p += n;
	}
	for (size_t i = 0; !r->head->wide && i < r->nnested; i++)
		if (path_is_within(real, r->nested[i]))
			return "into a nested project";
	return NULL;
}

static int
resolve(struct resolving *r)
{
	struct output_head *h = r->head;
	cleanup_free char *real = xstrdup(h->path);
	bool found = false, link = false;
	int links = 0, rc;

	while ((rc = follow_one(r, &real, &found, &h->st, &link)) > 0)
		if (++links > MAX_LINKS)
			return err_set(r->e, ERR_IO, ELOOP, "output %s", h->path);
	if (rc)
		return -1;
	if (strcmp(real, h->path) != 0) {
		const char *why = why_not_there(r, real);

		if (why)
			return refuse_link(h->path, real, why, r->e);
		h->stays = true;
	}
	h->what = !found ? HEAD_ABSENT : S_ISDIR(h->st.st_mode) ? HEAD_DIR : HEAD_OTHER;
	h->real = take_ptr(&real);
	return 0;
}

/* A project that is reached through a link itself: its directory is where that leads. */
static int
resolve_base(int rootfd, const char *base, char **ret, struct err *e)
{
	cleanup_free char *path = xstrdup(base);
	struct output_head head = {.path = path};
	struct resolving r = {.rootfd = rootfd, .base = "", .head = &head, .e = e};

	if (!*base) {
		*ret = xstrdup("");
		return 0;
	}
	if (resolve(&r))
		return -1;
	*ret = head.real;
	return 0;
}

/* Most often there is no link at all: one look says so. */
static bool
is_plain(int rootfd, struct output_head *h)
{
	if (fs_stat_beneath(rootfd, h->path, &h->st)) {
		if (errno != ENOENT)
			return false;
		h->what = HEAD_ABSENT;
	} else if (S_ISLNK(h->st.st_mode)) {
		return false;
	} else {
		h->what = S_ISDIR(h->st.st_mode) ? HEAD_DIR : HEAD_OTHER;
	}
	h->real = xstrdup(h->path);
	return true;
}

static int
head_cmp(const void *a, const void *b)
{
	return strcmp(((const struct output_head *)a)->path, ((const struct output_head *)b)->path);
}

/* The heads of `set`, each once. */
static void
list_heads(const struct globset *set, struct output_heads *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++) {
			const char *path = glob_literal_head(set->pos[i], k);
			bool wild = !glob_alternative_is_literal(set->pos[i], k);

			GROW(ret->v, ret->n + 1, ret->cap);
			ret->v[ret->n++] = (struct output_head){.path = xstrdup(path),
				.base = glob_base(set->pos[i]),
				.wide = glob_is_workspace(set->pos[i]),
				.stays = wild};
		}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), head_cmp);
	for (size_t i = 0; i < ret->n; i++) {
		struct output_head *last = n ? &ret->v[n - 1] : NULL;

		if (last && !strcmp(last->path, ret->v[i].path)) {
			last->stays |= ret->v[i].stays;
			if (!ret->v[i].wide) {
				last->wide = false;
				last->base = ret->v[i].base;
			}
			free(ret->v[i].path);
			continue;
		}
		ret->v[n++] = ret->v[i];
	}
	ret->n = n;
}

int
output_heads_find(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	struct output_heads *ret, struct err *e)
{
	struct output_heads heads = {0};
	cleanup_free char *base = NULL;
	int r = 0;

	list_heads(set, &heads);
	for (size_t i = 0; i < heads.n && !r; i++) {
		struct output_head *h = &heads.v[i];
		struct resolving res = {rootfd, NULL, nested, nnested, !h->stays, h, e};

		if (is_plain(rootfd, h))
			continue;
		/* All entries of one list are parsed for the same directory. */
		if (!h->wide && !base && resolve_base(rootfd, h->base, &base, e))
			r = -1;
		res.base = h->wide ? "" : base;
		if (!r)
			r = resolve(&res);
	}
	if (r) {
		output_heads_release(&heads);
		return -1;
	}
	*ret = heads;
	return 0;
}

void
output_heads_roots(const struct output_heads *h, struct outputs *ret)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct output_head *head = &h->v[i];

		if (!strcmp(head->path, head->real))
			continue;
		GROW(ret->roots, ret->nroots + 1, ret->roots_cap);
		ret->roots[ret->nroots++] =
			(struct output_root){xstrdup(head->path), xstrdup(head->real)};
	}
}

/* SPDX-License-Identifier: MIT */
#include "exec/denials.h"
#include "proto/status.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <limits.h>

void
denial_release(struct exec_denial *d)
{
	free(d->path);
	free(d->target);
	free(d->program);
	free(d->cmdline);
	free(d->grant);
	free(d->more_grant);
	*d = (struct exec_denial){0};
}

static struct exec_denial *
least(struct exec_result *r)
{
	struct exec_denial *worst = &r->denials[0];

	for (size_t i = 1; i < r->ndenials; i++)
		if (r->denials[i].class > worst->class)
			worst = &r->denials[i];
	return worst;
}

/* Sockets, owners and addresses have no directory. */
static bool
is_path(const struct exec_denial *d)
{
	return d->op != DENIAL_CONNECT && d->op != DENIAL_SOCKET && d->op != DENIAL_CHOWN;
}

bool
denials_are_beside(const struct exec_denial *a, const struct exec_denial *b)
{
	size_t n = path_parent_len(a->path);

	return a->op == b->op && a->class == b->class && is_path(a) &&
	       n == path_parent_len(b->path) && !memcmp(a->path, b->path, n);
}

/* The first in its directory, when there are enough. */
static struct exec_denial *
find_full(struct exec_result *r, const struct exec_denial *d)
{
	struct exec_denial *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->ndenials; i++) {
		if (!denials_are_beside(&r->denials[i], d))
			continue;
		if (!first)
			first = &r->denials[i];
		n++;
	}
	return n >= DENIALS_IN_DIR ? first : NULL;
}

struct exec_denial *
denials_add_take(struct exec_result *r, struct exec_denial *d)
{
	struct exec_denial *to = find_full(r, d);

	if (d->class == DENIAL_FINDING)
		r->nfindings++;
	if (to) {
		to->nmore++;
		denial_release(d);
		return NULL;
	}
	if (r->ndenials < DENIALS_MAX) {
		if (!r->ndenials)
			r->denials = xreallocarray(r->denials, DENIALS_MAX, sizeof(*r->denials));
		to = &r->denials[r->ndenials++];
	} else {
		to = least(r);
		if (to->class <= d->class) {
			denial_release(d);
			return NULL;
		}
		denial_release(to);
	}
	*to = *d;
	*d = (struct exec_denial){0};
	return to;
}

void
denials_add_advice(struct exec_result *r,
	char *(*text)(const void *ctx, const struct exec_denial *d, const char *dir),
	const void *ctx)
{
	for (size_t i = 0; i < r->ndenials; i++) {
		struct exec_denial *d = &r->denials[i];
		cleanup_free char *dir = NULL;

		if (!d->nmore)
			continue;
		dir = xmemdupz(d->path, path_parent_len(d->path));
		d->more_grant = text(ctx, d, dir);
	}
}

void
denials_join_advice(struct exec_result *r)
{
	for (size_t w = 0; w < r->ndenials; w++) {
		const struct exec_denial *written = &r->denials[w];

		if (written->op != DENIAL_WRITE || !*written->grant)
			continue;
		for (size_t i = 0; i < r->ndenials; i++) {
			struct exec_denial *d = &r->denials[i];

			/* What is written in a directory that is hidden is in a new one. */
			if ((d->op == DENIAL_READ || d->op == DENIAL_LIST) &&
				path_is_within(written->path, d->path))
				*d->grant = '\0';
		}
	}
}

static int
compare(const void *va, const void *vb)
{
	const struct exec_denial *a = va, *b = vb;
	int order;

	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	order = strcmp(a->path, b->path);
	return order ? order : a->op - b->op;
}

void
denials_sort(struct exec_result *r)
{
	if (r->ndenials)
		qsort(r->denials, r->ndenials, sizeof(*r->denials), compare);
}

static char *
read_link(int rootfd, const char *path)
{
	char text[PATH_MAX];
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	ssize_t n = parent < 0 ? -1 : readlinkat(parent, base, text, sizeof(text));

	return n > 0 ? xmemdupz(text, (size_t)n) : NULL;
}

void
denials_read_links(struct exec_result *r, int rootfd)
{
	for (size_t i = 0; i < r->ndenials; i++) {
		struct exec_denial *d = &r->denials[i];

		if (d->class == DENIAL_FINDING && *d->path && *d->path != '/' && !d->target)
			d->target = read_link(rootfd, d->path);
	}
}

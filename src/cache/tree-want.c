/* SPDX-License-Identifier: MIT */
#include "cache/tree-want.h"
#include "cache/outputs-never.h"
#include "cache/store.h"
#include "cache/tree-node.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/log.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>

struct pending {
	char *path;
	struct digest node;
};
struct loading {
	struct store *s;
	const struct want_rules *rules;
	struct want *wants;
	size_t nwants, wants_cap;
	struct pending *v; /* directories whose nodes are still to be read */
	size_t n, cap;
	const char *dir; /* the one being read */
};

static bool
load_line(void *ctx, const struct tree_line *line)
{
	struct loading *l = ctx;
	cleanup_free char *path = path_join(l->dir, line->name);
	struct want *w;

	if (stop_is_asked_by_now())
		return false;
	if (l->nwants >= TREE_ENTRIES_MAX || strlen(path) >= PATH_MAX)
		return false;
	/* A name that no glob of the task selects is nothing that saving could have stored. */
	if (!line->on_the_way &&
		!outputs_select(l->rules->set, l->rules->nested, l->rules->nnested, path))
		return false;
	if (line->type == OUTPUT_DIR) {
		GROW(l->v, l->n + 1, l->cap);
		l->v[l->n++] = (struct pending){xstrdup(path), line->digest};
	}
	GROW(l->wants, l->nwants + 1, l->wants_cap);
	w = &l->wants[l->nwants++];
	*w = (struct want){
		.out.type = line->type,
		.out.mode = line->mode,
		.out.size = line->size,
		.digest = line->digest,
		.on_the_way = line->on_the_way,
	};
	w->out.path = take_ptr(&path);
	if (line->target)
		w->out.target = xstrdup(line->target);
	return true;
}

static int
want_cmp(const void *a, const void *b)
{
	return outputs_cmp(((const struct want *)a)->out.path, ((const struct want *)b)->out.path);
}

/* A directory on the way leads to an output. */
static bool
ways_lead_somewhere(const struct want *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].on_the_way &&
			(i + 1 == n || !path_is_within(v[i + 1].out.path, v[i].out.path)))
			return false;
	return true;
}

static bool
has_never(const struct want_rules *rules, const struct want *v, size_t n)
{
	cleanup_free const struct output **outs = xcalloc(n, sizeof(*outs));
	const struct output *bad;
	const char *why;

	for (size_t i = 0; i < n; i++)
		outs[i] = &v[i].out;
	bad = outputs_find_never(rules->rootfd, rules->set, outs, n, &why);
	if (bad)
		log_debug("cache", "a stored tree holds \"%s\": %s", bad->path, why);
	return bad;
}

/* Of any size to read, and of none to make. */
static bool
is_too_hollow(struct store *s, const struct want *v, size_t n)
{
	uint64_t left = TREE_HOLLOW_MAX, hollow;

	for (size_t i = 0; i < n; i++) {
		if (stop_is_asked_by_now())
			return true;
		hollow = v[i].out.type == OUTPUT_FILE ? store_hollow(s, &v[i].digest, v[i].out.size)
						      : 0;
		if (hollow > left) {
			log_debug("cache", "a stored tree is holes for the most part");
			return true;
		}
		left -= hollow;
	}
	return false;
}

static int
load_node(struct loading *l, const struct pending *p, struct err *e)
{
	cleanup_strbuf struct strbuf bytes = STRBUF_INIT;
	struct err own = ERR_INIT;
	int r = store_get_bytes(l->s, &p->node, TREE_NODE_MAX, &bytes, &own);

	if (r < 0 && own.num != EFBIG) {
		*e = own;
		return -1;
	}
	l->dir = p->path;
	if (r < 0 || (r && !tree_node_parse(bytes.buf, bytes.len, load_line, l))) {
		if (!stop_is_asked())
			log_debug("cache", "a stored tree holds what none can hold, below \"%s\"",
				p->path);
		return 0;
	}
	return r;
}

int
wants_load(struct store *s, const struct digest *root, const struct want_rules *rules,
	struct want **ret, size_t *ret_n, struct err *e)
{
	struct loading l = {.s = s, .rules = rules};
	int r = 1;

	GROW(l.v, 1, l.cap);
	l.v[l.n++] = (struct pending){xstrdup(""), *root};
	while (l.n && r > 0) {
		struct pending p = l.v[--l.n];

		r = load_node(&l, &p, e);
		free(p.path);
	}
	while (l.n)
		free(l.v[--l.n].path);
	free(l.v);
	if (l.nwants)
		qsort(l.wants, l.nwants, sizeof(*l.wants), want_cmp);
	if (r > 0)
		r = ways_lead_somewhere(l.wants, l.nwants) &&
		    !has_never(rules, l.wants, l.nwants) && !is_too_hollow(s, l.wants, l.nwants);
	if (r <= 0) {
		wants_free(l.wants, l.nwants);
		/* Nothing may be wrong with it: nobody has looked at all of it. */
		return r || !stop_is_asked() ? r
					     : err_set(e, ERR_IO, ECANCELED, "read a stored tree");
	}
	*ret = l.wants;
	*ret_n = l.nwants;
	return 1;
}

void
wants_free(struct want *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].out.path);
		free(v[i].out.target);
	}
	free(v);
}

/* SPDX-License-Identifier: MIT */
#include "graph/order.h"
#include "config/upstream.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

enum {
	ORDER_CYCLE_SHOWN = 12, /* nodes of a cycle that a message prints */
	ORDER_WORDS = 8,        /* 64-bit words of a priority row: one cache line */
};

/* A min-heap of indexes. */
struct heap {
	size_t *v;
	size_t n;
};

static void
heap_push(struct heap *h, size_t x)
{
	size_t i = h->n++;

	while (i && h->v[(i - 1) / 2] > x) {
		h->v[i] = h->v[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->v[i] = x;
}

static size_t
heap_pop(struct heap *h)
{
	size_t top = h->v[0], last = h->v[--h->n], i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= h->n)
			break;
		if (c + 1 < h->n && h->v[c + 1] < h->v[c])
			c++;
		if (h->v[c] >= last)
			break;
		h->v[i] = h->v[c];
		i = c;
	}
	h->v[i] = last;
	return top;
}

/* Which entry of a task's dependsOn the edge to that dependency came from. */
static size_t
entry_of(const struct node *from, const struct node *to)
{
	size_t i = 0;

	for (; i + 1 < from->def->ndepends_on; i++) {
		const struct depspec *d = &from->def->depends_on[i];
		bool is_own = from->project == to->project, is_there = false;

		switch (d->form) {
		case DEP_SELF:
			is_there = is_own;
			break;
		case DEP_UPSTREAM:
			is_there = !is_own;
			break;
		case DEP_PROJECT:
			is_there = !strcmp(d->project, to->project->name) ||
				   (to->project->is_root && !strcmp(d->project, "//"));
			break;
		}
		if (is_there && name_matches(d->task, to->def->name))
			break;
	}
	return i;
}

/* Every node with deps waiting lies on a cycle or leads into one: following the first such dep from
 * any of them must come back to a node that was passed. */
static int
refuse_cycle(const struct graph *g, const size_t *waiting, struct err *e)
{
	cleanup_free size_t *passed = xcalloc(g->n, sizeof(*passed));
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_free char *place = NULL;
	const struct node *at = NULL, *start, *second = NULL;
	size_t step = 0, len = 0;

	for (size_t i = 0; i < g->n && !at; i++)
		if (waiting[i])
			at = g->nodes[i];
	while (!passed[at->index]) {
		size_t j = 0;

		passed[at->index] = ++step;
		while (!waiting[at->deps[j]->index])
			j++;
		at = at->deps[j];
	}
	/* Begin with the smallest id of the cycle, wherever the walk met it. */
	start = at;
	for (size_t i = 0; i < g->n; i++)
		if (passed[i] > passed[at->index] && i < start->index)
			start = g->nodes[i];
	at = start;
	do {
		size_t j = 0;

		if (len++ < ORDER_CYCLE_SHOWN)
			strbuf_addf(&path, "%s -> ", at->id);
		while (!waiting[at->deps[j]->index])
			j++;
		at = at->deps[j];
		second = second ? second : at;
	} while (at != start);
	if (len > ORDER_CYCLE_SHOWN)
		strbuf_addf(&path, "(%zu more) -> ", len - ORDER_CYCLE_SHOWN);
	place = workspace_entry_place(
		g->w, start->project, start->def->name, "dependsOn", entry_of(start, second));
	return err_set(e, ERR_CONFIG, 0, "%s: tasks depend on each other in a circle: %s%s", place,
		path.buf, start->id);
}

int
order_sort(struct graph *g, struct err *e)
{
	cleanup_free size_t *waiting = xcalloc(g->n, sizeof(*waiting));
	cleanup_free struct node **sorted = xcalloc(g->n, sizeof(struct node *));
	struct heap ready = {xcalloc(g->n, sizeof(size_t)), 0};
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		waiting[i] = g->nodes[i]->ndeps;
		if (!waiting[i])
			heap_push(&ready, i);
	}
	while (ready.n) {
		struct node *node = g->nodes[heap_pop(&ready)];

		sorted[n++] = node;
		for (size_t i = 0; i < node->ndependents; i++)
			if (!--waiting[node->dependents[i]->index])
				heap_push(&ready, node->dependents[i]->index);
	}
	free(ready.v);
	if (n < g->n)
		return refuse_cycle(g, waiting, e);
	for (size_t i = 0; i < g->n; i++) {
		g->nodes[i] = sorted[i];
		sorted[i]->index = i;
	}
	return 0;
}

/*
 * The transitive dependents of a node are a row of bits, the union of its dependents' rows and the
 * dependents themselves. A whole row for every node would be quadratic in memory; so ORDER_WORDS *
 * 64 columns are swept at a time, and the rows of one sweep are counted and reused.
 */
void
order_priorities(struct graph *g)
{
	typedef uint64_t row[ORDER_WORDS];
	const size_t width = ORDER_WORDS * 64;
	cleanup_free row *rows = xcalloc(g->n, sizeof(row));

	for (size_t i = 0; i < g->n; i++)
		g->nodes[i]->priority = 0;
	for (size_t from = 0; from < g->n; from += width) {
		/* Dependents come after, so a node behind the columns has none of them. */
		size_t end = from + width < g->n ? from + width : g->n;

		for (size_t i = end; i-- > 0;) {
			struct node *node = g->nodes[i];
			uint64_t *mine = rows[i];

			memset(mine, 0, sizeof(row));
			for (size_t j = 0; j < node->ndependents; j++) {
				size_t d = node->dependents[j]->index;

				if (d >= end)
					continue;
				for (size_t k = 0; k < ORDER_WORDS; k++)
					mine[k] |= rows[d][k];
				if (d >= from)
					mine[(d - from) / 64] |= (uint64_t)1 << (d - from) % 64;
			}
			for (size_t k = 0; k < ORDER_WORDS; k++)
				node->priority += (uint32_t)__builtin_popcountll(mine[k]);
		}
	}
}

static bool
comes_first(const struct ready_item *a, const struct ready_item *b)
{
	if (a->node->priority != b->node->priority)
		return a->node->priority > b->node->priority;
	return a->seq < b->seq;
}

void
ready_push(struct ready *r, struct node *node)
{
	struct ready_item item = {node, r->seq++};
	size_t i;

	GROW(r->items, r->n + 1, r->cap);
	i = r->n++;
	while (i && comes_first(&item, &r->items[(i - 1) / 2])) {
		r->items[i] = r->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->items[i] = item;
}

struct node *
ready_pop(struct ready *r)
{
	struct ready_item top, last;
	size_t i = 0;

	if (!r->n)
		return NULL;
	top = r->items[0];
	last = r->items[--r->n];
	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= r->n)
			break;
		if (c + 1 < r->n && comes_first(&r->items[c + 1], &r->items[c]))
			c++;
		if (!comes_first(&r->items[c], &last))
			break;
		r->items[i] = r->items[c];
		i = c;
	}
	r->items[i] = last;
	return top.node;
}

void
ready_release(struct ready *r)
{
	free(r->items);
	*r = (struct ready){0};
}

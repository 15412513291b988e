/* SPDX-License-Identifier: MIT */
/*
 * Order over the graph: cycles named, a dependency order, priorities, and the ready queue.
 */
#ifndef GRAPH_ORDER_H
#define GRAPH_ORDER_H

#include "util/base.h"

struct err;
struct graph;
struct node;

/* Reorders graph->nodes so that dependencies come first (ties by id) and sets index. A cycle is
 * an error with its path: "a#x -> b#y -> a#x". */
int order_sort(struct graph *g, struct err *e);

/* Number of transitive dependents, by packed bitsets in one reverse sweep (spec/execution §3).
 * After order_sort, and before the first ready_push: quadratic, if with a small factor. */
void order_priorities(struct graph *g);

/* A max-heap on (priority desc, order of push asc). */
struct ready_item {
	struct node *node;
	uint64_t seq;
};
struct ready {
	struct ready_item *items;
	size_t n, cap;
	uint64_t seq;
};
void ready_push(struct ready *r, struct node *node);
struct node *ready_pop(struct ready *r); /* NULL when empty */
void ready_release(struct ready *r);

#endif

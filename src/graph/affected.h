/* SPDX-License-Identifier: MIT */
/*
 * What a git change reaches (spec/cli.md §1, --affected): projects for "[ref]" filters, tasks for --affected.
 *
 * A changed path belongs to the project that most deeply holds it. Seeds are: a cached task that declares the
 * path as an input; all tasks of a project whose manifest or config changed, or that holds a changed path which none
 * of its cached tasks declares; an uncached command when its project holds a changed path. A requested task is
 * affected when it is a seed or needs one, by whatever chain of dependsOn. What changes every key, or which
 * projects there are, affects everything.
 */
#ifndef GRAPH_AFFECTED_H
#define GRAPH_AFFECTED_H

#include "graph/graph.h"
#include "workspace/changes.h"

/* By one base. */
struct touched {
	struct changes changes;
	const char *
		widened_by; /* the path that affects everything; borrowed from changes; NULL: none */
	bool *projects;     /* by index: it holds a changed path */
};

/* `ref` NULL: the default base. `widening`: what every key rests on, from the root. Of manifests that configs rest on it
 * knows those of configs that are defined; of others any edit counts. */
int touched_find(const struct workspace *w, const char *ref, const char *const *widening, size_t n,
	struct touched *ret, struct err *e);
void touched_release(struct touched *t);

/* Leaves those of the requests that are affected, or anchored. `g`: theirs, sorted. */
void touched_narrow(const struct workspace *w, const struct touched *t, const struct graph *g,
	struct request *requests, size_t *n);

#endif

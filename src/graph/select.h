/* SPDX-License-Identifier: MIT */
/*
 * Words of the command line to requested tasks: cwd, pkg#task, --all, --filter (spec/cli.md §1).
 * --affected, tag:, [ref] and {dir} filters are "not in this vx yet".
 */
#ifndef GRAPH_SELECT_H
#define GRAPH_SELECT_H

#include "graph/graph.h"

struct selection {
	const char *const *tasks; /* "build", "app#test", "//#x" as typed */
	size_t ntasks;
	const char *const *filters;
	size_t nfilters;
	bool all;
	const char *cwd; /* from the root */
};

/* *ret is malloc'd. Every name must resolve somewhere; else the error has the nearest name or lists
 * what exists. */
int select_requests(const struct workspace *w, const struct selection *s, struct request **ret,
	size_t *ret_n, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Words of the command line to requested tasks: cwd, pkg#task, --all, --filter, --affected (spec/cli.md §1).
 */
#ifndef GRAPH_SELECT_H
#define GRAPH_SELECT_H

#include "graph/graph.h"

struct selection {
	const char *const *tasks; /* "build", "app#test", "//#x" as typed */
	size_t ntasks;
	/* "--affected=main" for a word "main" that may be meant as that */
	const char *const *strays;
	size_t nstrays;
	const char *const *filters;
	size_t nfilters;
	bool all;
	bool affected;    /* by a git diff; filters narrow it */
	const char *base; /* --affected=BASE; NULL: the default one */
	const char *cwd;  /* from the root */
	/* The files, from the root, that every key rests on: a change of one affects all. */
	const char *const *widening;
	size_t nwidening;
};

struct selected {
	struct request *v;
	size_t n;    /* 0: a diff chose, and reaches none */
	char *since; /* the base of the diff; NULL: none was asked */
	const char *
		by; /* the filter that asked for it, borrowed from the selection; NULL: --affected */
	char *note; /* one line about it; NULL */
};
void selected_release(struct selected *s);

/* Both have the scripts of those projects evaluated that they have to know. */

/* Every name must resolve somewhere; else the error has the nearest name or lists what exists. *ret is empty
 * before. */
int select_requests(
	struct workspace *w, const struct selection *s, struct selected *ret, struct err *e);

/* The tasks that could be named without a project, each name once, in the order of projects. */
struct select_choice {
	const char *name, *description; /* NULL: none; borrowed from the workspace */
};
int select_choices(struct workspace *w, const struct selection *s, struct select_choice **ret,
	size_t *ret_n, struct err *e);

#endif

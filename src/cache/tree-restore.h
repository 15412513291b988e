/* SPDX-License-Identifier: MIT */
/* What tree-restore.c stages and tree-moves.c has moved. Nobody else looks inside. */
#ifndef CACHE_TREE_RESTORE_H
#define CACHE_TREE_RESTORE_H

#include "cache/access.h"
#include "cache/moves.h"
#include "cache/outputs-head.h"
#include "cache/tree-want.h"

struct err;
struct stage;
struct store;

/* What is made and moved as one: wants[first .. first + n) */
struct piece {
	size_t first, n;
	uint64_t number; /* its name in the stage */
};

struct restore {
	struct store *s;
	int rootfd;
	const struct globset *set;
	const char *const *nested;
	size_t nnested;
	const struct outputs_part *part;
	struct want *wants; /* in the order of outputs_sort */
	size_t n;
	struct output_heads heads;
	struct outputs roots; /* links on the way */
	struct piece *pieces;
	size_t npieces, pieces_cap;
	struct stage *stage;
	mode_t dir_mode;           /* 0777 less umask */
	struct access_fixes fixes; /* what had to be opened to look into it */
	struct moves moves;
	bool copies;     /* some of them */
	bool by_content; /* nothing was staged: what is there is read */
	struct err *e;
};

/* Sets e and returns -1. */
int restore_fail(struct restore *r, const char *path, int num, const char *what);
/* Whether no stop is asked (util/stop.h); else sets e to ECANCELED and returns -1. */
int restore_go_on(struct restore *r);
/* The mode that it will have. */
mode_t restore_mode(const struct restore *r, const struct want *w);
/* The one that it is staged with: we can still work on it and copy it. */
mode_t restore_staged_mode(const struct restore *r, const struct want *w);

/* NULL where there is none. */
const struct want *restore_find_want(const struct restore *r, const char *path);

/* When all pieces are staged: fills r->moves and r->copies. */
int restore_plan(struct restore *r);

#endif

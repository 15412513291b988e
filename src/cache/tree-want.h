/* SPDX-License-Identifier: MIT */
/*
 * A stored tree as the list of what is wanted on disk. Used by tree-restore.c and tree-moves.c alone.
 */
#ifndef CACHE_TREE_WANT_H
#define CACHE_TREE_WANT_H

#include "cache/outputs.h"
#include "util/digest.h"

struct err;
struct globset;
struct store;

struct want {
	struct output out;
	struct digest digest;
	bool on_the_way;
	bool exists;     /* a directory that is there already */
	mode_t had_mode; /* and its mode, 07777 */
	uint64_t ino;    /* of what was staged; of a file: */
	int64_t mtime_ns;
};

struct want_rules {
	int rootfd;
	const struct globset *set;
	const char *const *nested;
	size_t nnested;
};

/* 1: *ret has everything in the tree, in the order of outputs_sort. 0: a node is gone or damaged, or
 * holds what saving these outputs cannot have stored or would not (cache/outputs-never.h). -1 with ECANCELED
 * when a stop is asked. */
int wants_load(struct store *s, const struct digest *root, const struct want_rules *rules,
	struct want **ret, size_t *ret_n, struct err *e);
void wants_free(struct want *v, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The list of undeclared accesses in a result (design §8): one record per operation and path, bounded, grouped by
 * directory, with exact totals, findings first.
 */
#ifndef EXEC_DENIALS_H
#define EXEC_DENIALS_H

#include "exec/exec.h"

enum {
	DENIALS_MAX = 100,
	/* Of one operation and class in one directory; the others are counted there. */
	DENIALS_IN_DIR = 10,
};

void denial_release(struct exec_denial *d);
/*
 * Takes what d owns. A finding counts in any case; it is kept unless its directory has enough of the kind, or,
 * beyond the bound, unless it takes the place of one of a lesser class. Returns the one that is kept, for the
 * caller to say what would allow it, until the next call; NULL: it is counted only.
 */
struct exec_denial *denials_add_take(struct exec_result *r, struct exec_denial *d);
/* Of one operation and class, and in one directory. */
bool denials_are_beside(const struct exec_denial *a, const struct exec_denial *b);
/* Once all are there: what would allow those of a directory that are only counted. `text` returns an owned string
 * for the directory. */
void denials_add_advice(struct exec_result *r,
	char *(*text)(const void *ctx, const struct exec_denial *d, const char *dir),
	const void *ctx);
/* What was written, too, is no input, and to write it includes to read it: one of the two tells what to
 * write in the config. */
void denials_join_advice(struct exec_result *r);
/* Findings first, then by path and operation. */
void denials_sort(struct exec_result *r);
/* Fills `target`: as it is now, before anything is committed. */
void denials_read_links(struct exec_result *r, int rootfd);

#endif

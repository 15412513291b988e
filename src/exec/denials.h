/* SPDX-License-Identifier: MIT */
/*
 * The list of undeclared accesses in a result (design §8): one record per operation and path,
 * bounded, with exact totals, findings first.
 */
#ifndef EXEC_DENIALS_H
#define EXEC_DENIALS_H

#include "exec/exec.h"

enum {
	DENIALS_MAX = 100
};

void denial_release(struct exec_denial *d);
/* Takes what d owns. A finding counts in any case; beyond the bound it takes the place of one of a
 * lesser class, or is dropped. */
void denials_add_take(struct exec_result *r, struct exec_denial *d);
/* What was written, too, is no input, and to write it includes to read it: one of the two tells what to
 * write in the config. */
void denials_join_advice(struct exec_result *r);
/* Findings first, then by path and operation. */
void denials_sort(struct exec_result *r);
/* Fills `target`: as it is now, before anything is committed. */
void denials_read_links(struct exec_result *r, int rootfd);

#endif

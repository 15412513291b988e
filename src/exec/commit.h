/* SPDX-License-Identifier: MIT */
/*
 * What a sandboxed task wrote, judged and moved into the workspace (design §5, Commit).
 *
 *	commit_new		a scratch and the policy
 *	commit_add_entry	each name the helper found in the upper directory
 *	commit_judge		granted, noise, undeclared, ignored, never; findings and notes
 *	commit_outputs		the declared outputs as they lie in the scratch: for tree_save
 *	commit_apply		the list of moves is written into the scratch and synced, then the moves,
 *				below parents opened from the workspace fd, beneath, no links; end mark
 *	commit_free		drops what was not applied
 *
 * A list without its end mark is rolled forward by whoever finds it (moves_roll_forward): after the
 * list is on disk the task has happened.
 */
#ifndef EXEC_COMMIT_H
#define EXEC_COMMIT_H

#include "cache/outputs.h"
#include "exec/exec.h"
#include "exec/policy.h"
#include "exec/scratch.h"
#include "proto/status.h"

struct commit;

/* Takes over s. */
struct commit *commit_new(
	const struct policy *p, int rootfd, struct scratch_area *area, struct scratch *s_take);
void commit_add_entry(struct commit *c, const struct status_entry *en);
/* Once, after the last entry. Fills denials (undeclared writes and deletes), nfindings and notes of
 * r. -1: what was written cannot be judged, and nothing of it may be moved. */
int commit_judge(struct commit *c, struct exec_result *r, struct err *e);

/* Files, directories and links among the declared outputs (the output set's positive entries less its
 * "!" ones), at their workspace paths, or of one that adds to others' outputs only what it wrote; *ret_fd is the upper directory, borrowed. They are readable
 * there, whatever their modes, which are in ret. */
int commit_outputs(struct commit *c, struct outputs *ret, int *ret_fd, struct err *e);

/* Of the files and links that are kept, those that the declared outputs do not select, and do not leave out
 * on purpose: up to `max` of their paths. Returns how many there are. */
size_t commit_unstored(const struct commit *c, size_t max, struct strvec *ret);

/* Of outputs to which the task adds, one that it could see and has removed; NULL: none. Borrowed. */
const char *commit_removed(const struct commit *c);

/* Moves what was granted. A move that cannot be done (its parent is gone or a link by now, no space)
 * does not stop the others: -1 then, with the first failure; the task counts as failed and nothing of
 * it may be stored as its result. */
int commit_apply(struct commit *c, struct err *e);
void commit_free(struct commit *c);

#endif

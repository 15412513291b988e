/* SPDX-License-Identifier: MIT */
/*
 * What a task with a live view left behind (exec.h: persistent; policy.h: live). There is no commit to judge it: what it wrote
 * stands. The helper refused or moved out the names that are never committed (proto/never.h); here each of
 * them becomes a finding, what was moved out is put where a user finds it, and a package.json is looked
 * into.
 */
#ifndef EXEC_LIVE_H
#define EXEC_LIVE_H

#include "exec/exec.h"

struct policy;
struct scratch;
struct scratch_area;
struct status_planted;

struct live {
	struct strvec planted, moved; /* one for one; "": it stands */
};

void live_init(struct live *l);
void live_release(struct live *l);
void live_add(struct live *l, const struct status_planted *p);
/* Adds findings and notes to r. The scratch may be dropped afterwards. */
void live_conclude(const struct live *l, const struct policy *p, int rootfd,
	struct scratch_area *area, const struct scratch *s, struct exec_result *r);

#endif

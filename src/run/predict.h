/* SPDX-License-Identifier: MIT */
/*
 * How long a run will take, from how long its tasks took before.
 */
#ifndef RUN_PREDICT_H
#define RUN_PREDICT_H

#include "util/base.h"

struct graph;

/* What a task will need: hits, groups and what is not started take no time. */
struct predict_task {
	bool runs;
	bool known; /* there is an ms; else it takes no time here, and is counted apart */
	uint64_t ms;
};
struct predicted {
	bool any;     /* a task that runs has a time */
	bool nothing; /* none runs */
	uint64_t wall_ms, work_ms;
	size_t unknown; /* tasks that run, or may, without a time */
};
/* `tasks` by node->index. The order is the scheduler's: longest chain of dependants first, `concurrency` at a time. */
void predict(struct graph *g, const struct predict_task *tasks, unsigned concurrency,
	struct predicted *ret);

#endif

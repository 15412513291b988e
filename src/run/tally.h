/* SPDX-License-Identifier: MIT */
/*
 * How the tasks of a run have ended, in numbers. Groups never count.
 */
#ifndef RUN_TALLY_H
#define RUN_TALLY_H

#include "util/base.h"

struct plan;

struct tally {
	size_t total; /* all but those below and those that were not needed */
	size_t ok, failed, skipped, running;
	size_t aborted, not_run;
	size_t noop;                          /* for another machine only, and none took it */
	size_t current, restored, miss, none; /* by the cache */
	/* Of commands that came to an end of their own: */
	size_t executed;
	uint64_t max, min, sum; /* ns */
};
struct tally tally_of(const struct plan *p);

#endif

/* SPDX-License-Identifier: MIT */
#include "run/tally.h"
#include "run/plan.h"

struct tally
tally_of(const struct plan *p)
{
	struct tally c = {0};

	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];

		if (node_is_idle(t->node))
			continue;
		switch (t->status) {
		case TASK_ABORTED:
			c.aborted++;
			continue;
		case TASK_NOT_RUN:
			c.not_run++;
			continue;
		case TASK_NOOP:
			c.noop++;
			continue;
		case TASK_UNNEEDED:
			continue;
		case TASK_SUCCESS:
			if (task_is_serving(t))
				c.running++;
			else
				c.ok++;
			break;
		case TASK_HIT:
			c.ok++;
			break;
		case TASK_FAILED:
			c.failed++;
			break;
		case TASK_SKIPPED:
			c.skipped++;
			break;
		}
		c.total++;
		c.current += t->cache == CACHE_UP_TO_DATE && t->status == TASK_HIT;
		c.restored += t->cache == CACHE_RESTORED && t->status == TASK_HIT;
		if (t->status != TASK_SUCCESS && t->status != TASK_FAILED)
			continue;
		c.miss += t->cache == CACHE_MISS;
		c.none += t->cache == CACHE_NONE;
		/* They end when vx says so. */
		if (t->node->def->persistent)
			continue;
		c.executed++;
		c.sum += t->duration_ns;
		if (t->duration_ns > c.max)
			c.max = t->duration_ns;
		if (c.executed == 1 || t->duration_ns < c.min)
			c.min = t->duration_ns;
	}
	return c;
}

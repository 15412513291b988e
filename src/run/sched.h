/* SPDX-License-Identifier: MIT */
/*
 * Executes a plan: the only user of the loop in the run layer, and the one place where a task's
 * fate is decided. Two tiers (spec/execution.md §3), each with the longest chain of dependants first: what
 * the cache can give is restored at once, whatever its dependencies do; the rest runs when its
 * dependencies are done, `concurrency` at a time. With a concurrency of one nothing is restored
 * while a command runs. A persistent task takes no place once it was started; what needs it waits until
 * it is ready.
 *
 * One thread: restores and saves happen between two polls. So the tier of restores takes no worker's place,
 * and has no width of its own.
 */
#ifndef RUN_SCHED_H
#define RUN_SCHED_H

#include "run/plan.h"

struct err;
struct history;
struct loop;
struct report;
struct sched_result;
struct store;

enum continue_mode {
	CONTINUE_DEPS_OK,
	CONTINUE_NEVER,
	CONTINUE_ALWAYS
};

struct sched_options {
	struct plan *plan;
	struct loop *loop;
	struct report *report;   /* sched_probe: NULL */
	struct index *index;     /* NULL: no cache at all */
	struct index *stamps;    /* what vx made here before; NULL: nothing is known */
	struct store *store;     /* NULL with index */
	struct history *history; /* NULL: what was before is not known */
	bool read_cache, write_cache;
	enum sandbox_mode sandbox;
	enum continue_mode cont;
	unsigned concurrency;
	unsigned retries; /* of tasks that do not say how many they have */
	uint64_t default_timeout_ms;
	const char *default_timeout_by; /* who said so */
	uint64_t grace_ms;
	int guard_pidfd;          /* readable: the guard died; -1: there is none */
	const char *cache_dir;    /* absolute */
	uint64_t ready_notice_ms; /* how long readyWhen is waited for in silence */
	/*
	 * Every task has its end but for the persistent ones that stay until one of them, or a signal, ends
	 * it all: called once, with what sched_run would return. After it nothing is written any more
	 * but what they print.
	 */
	void (*in_foreground)(void *ctx, const struct sched_result *res);
	void *ctx;
	uint64_t answer_ms; /* what an executor of others gets for an answer */
	bool refresh;       /* --force: told to them */
	/* Test seams: an executor of the test's own instead of direct and sandboxed, and others instead of
	 * those of the settings. */
	struct executor *fake, **fake_others;
	size_t nfake_others;
};

struct sched_result {
	bool ok;
	int stopped_by;               /* signal that ended the run, 0: none */
	struct history_task *history; /* by task; owned, as is what it points to */
	size_t nhistory;
};

/* Runs the probes that keys rest on, but for those that wait for a task, and places all tasks, and nothing
 * else: before keys are asked for without a run. *ret_stopped_by: as in sched_result. */
int sched_probe(const struct sched_options *o, int *ret_stopped_by, struct err *e);

/* Returns 0 when every task has its end, good or bad. -1: vx itself cannot go on (all jobs have
 * been ended by then). */
int sched_run(const struct sched_options *o, struct sched_result *ret, struct err *e);
void sched_result_release(struct sched_result *r);

/* record.c: "success", "cache-hit", …; "miss", "up-to-date", … */
const char *record_status(const struct task *t);
const char *record_cache(const struct task *t);

#endif

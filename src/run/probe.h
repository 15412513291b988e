/* SPDX-License-Identifier: MIT */
/*
 * Probes: the commands of cache.inputs.runtime and workspaceRuntime, whose output is in keys
 * (spec/cache.md §2). A probe runs as `sh -c`, outside of any sandbox, with vx's own environment and
 * node_modules/.bin first on PATH; in its project, or in the root. It runs once in a run, whatever
 * the number of tasks that ask, before any key is made. A task that needs another one whose key is
 * not in its own has probes to itself, which run when that one is done: they may read what it makes.
 *
 * The prober starts them, as jobs of an executor, so that they have a session and group of their own
 * and end as tasks do: at their time-out, at a stop, with the core.
 */
#ifndef RUN_PROBE_H
#define RUN_PROBE_H

#include "util/err.h"
#include "util/htab.h"
#include "util/strbuf.h"

struct exec_job;
struct executor;
struct project;
struct prober;
struct task;
struct workspace;

enum {
	PROBE_OUTPUT_MAX = 1 << 20 /* of each stream */
};

struct probe {
	const struct project *project; /* NULL: it runs in the root */
	const char *command;
	struct task *own; /* the one that it runs for; NULL: shared */
	bool ended;
	struct err why;         /* set: it failed */
	struct strbuf out, err; /* without outer blanks */

	/* probe.c's own */
	struct prober *by;
	struct exec_job *job;
	size_t slot;
	bool too_much;
};

struct probe_set {
	struct probe **v;
	size_t n, cap;
	struct htab shared;
};
void probe_set_init(struct probe_set *set);
void probe_set_release(struct probe_set *set);
/* The shared one of that place and command, or a new one for `own`. Borrows the command. */
struct probe *probe_set_add(struct probe_set *set, const struct project *project,
	const char *command, struct task *own);

struct prober {
	struct executor *executor; /* what runs commands as they are */
	const struct workspace *w;
	uint64_t timeout_ms; /* 0: none */
	const char *timeout_by;
	uint64_t grace_ms;
	void (*done)(void *ctx, struct probe *p); /* p has ended */
	void *ctx;

	struct probe **queue; /* those from `next` on wait */
	size_t nqueue, next, queue_cap;
	struct probe **running;
	size_t nrunning, running_cap;
};
void prober_release(struct prober *r);
void prober_add(struct prober *r, struct probe *p);
static inline bool
prober_has_waiting(const struct prober *r)
{
	return r->next < r->nqueue;
}
/* Starts the next one. False: none waits. */
bool prober_start(struct prober *r);
/* To those that run: see exec/exec.h. */
void prober_cancel(struct prober *r, int sig);
void prober_forward(struct prober *r, int sig);

#endif

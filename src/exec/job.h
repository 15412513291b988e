/* SPDX-License-Identifier: MIT */
/*
 * One child from start to done(): pipes, timeout, grace, drain, reaping. Shared by direct.c and
 * sandboxed.c, which differ in how they start it, how they ask it to end and what else they read.
 *
 * An executor embeds struct exec_job in a struct of its own and gets back to it by container_of.
 *
 *	running		output is delivered as it is read; a persistent one becomes ready, and then has no
 *			timeout any more
 *	timed out, or	ops->ask, then the grace, then ops->kill; what ops->is_left still sees after the
 *	cancelled	child's own exit gets the rest of the grace and then the kill, too
 *	exited		what ops->is_left sees is killed; the readers, and what ops->goes_on sees, get
 *			EXEC_DRAIN_MS more
 *	finished	reaped; ops->finish, rq.done, ops->free
 *
 * The child stays a zombie until it is finished, so that its pid and group number are nobody else's
 * as long as they may be signalled.
 */
#ifndef EXEC_JOB_H
#define EXEC_JOB_H

#include "exec/exec.h"
#include "exec/readiness.h"
#include "util/loop.h"
#include "util/proc.h"

struct job_ops {
	/* Asks the command to end: a signal to its group, or a line to its helper. The child may be
	 * dead already. */
	void (*ask)(struct exec_job *j, int sig);
	/* Ends it now. Again, until is_left says no or a deadline has passed. */
	void (*kill)(struct exec_job *j);
	/* The child has exited: whether some process of it is still alive that must not be. Asked
	 * every 20 ms; killed at once where vx had not stopped it. NULL: nothing can be. */
	bool (*is_left)(struct exec_job *j);
	/* The child has exited by itself: whether something of it goes on, and may. It gets as long as the
	 * readers to end. NULL: nothing does. */
	bool (*goes_on)(struct exec_job *j);
	/* Everything of r that job.c knows is filled: outcome, exit_code, signal, duration_ns,
	 * cpu_us, peak_rss_kb, output_cut, and error when it was not started. The rest is filled,
	 * or the child's own replaced by the command's, here. A time-out's exit_code (143, 137)
	 * stays. Fds and timers of the executor leave the loop here. May be NULL. */
	void (*finish)(struct exec_job *j, struct exec_result *r);
	/* After rq.done: frees the struct that j is in. */
	void (*free)(struct exec_job *j);
};

enum job_stop {
	JOB_NOT_STOPPED,
	JOB_TIMED_OUT,
	JOB_CANCELLED
};

struct exec_job {
	struct loop *loop;
	const struct job_ops *ops;
	struct exec_request rq;
	struct proc proc; /* pid 0: not started. For ops; pidfd is open until finish returns */
	int wstatus;      /* for finish: as wait gave it; of SIGKILL when it could not be awaited */

	/* job.c's own. */
	struct loop_fd exit, out[2];
	struct loop_timer timeout, grace, tick, drain, started;
	int input;              /* of a persistent one: the end of the pipe that vx holds */
	bool awaited;           /* persistent, and not ready yet */
	struct readiness ready; /* with ready_when: looks for the line */
	uint64_t started_ns, ended_ns;
	enum job_stop stop;
	bool exited;  /* by pidfd; not reaped */
	bool killing; /* ops->kill was called */
	struct strbuf error;
};

/*
 * Starts the child of `spec` with pipes on 1 and 2 (spec->fds names only others, at most 5), one on 0
 * where rq is persistent, and the timers of rq, which is copied (rq->env is not needed any more). Never fails: a child that
 * cannot be started ends as EXEC_NOT_STARTED with 127, from the loop like every other.
 */
void job_start(struct exec_job *j, struct loop *l, const struct job_ops *ops,
	const struct exec_request *rq, const struct proc_spec *spec);
/* For what the executor finds out before the child: as a child that could not be started. */
void job_start_failed(struct exec_job *j, struct loop *l, const struct job_ops *ops,
	const struct exec_request *rq, const struct err *why);

/* exec.h: cancel(). SIGKILL, the first time or later, skips the grace. */
void job_cancel(struct exec_job *j, int sig);

/* The command runs: one that is ready at its start becomes so at the next turn of the loop. For every job
 * that has started; no effect where readiness is not that. */
void job_command_started(struct exec_job *j);

/* The command is known to be over though the child is still busy (a helper that scans what was
 * written): the time-out ends here, and the duration. */
void job_command_ended(struct exec_job *j);

#endif

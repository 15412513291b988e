/* SPDX-License-Identifier: MIT */
/*
 * What the files of one run share: sched.c (order and ends), execute.c (commands), serve.c (those that
 * go on), place.c (by whom they are executed), hit.c (what the cache gives), settle.c (what it is given), own.c (whose the outputs on disk are), record.c (what
 * the history gets), miss.c (why it was not there). Nobody else includes this.
 */
#ifndef RUN_SCHED_PRIVATE_H
#define RUN_SCHED_PRIVATE_H

#include "cache/history.h"
#include "exec/exec.h"
#include "exec/output.h"
#include "graph/order.h"
#include "run/moment.h"
#include "run/report.h"
#include "run/sched.h"
#include "run/weave.h"
#include "util/err.h"
#include "util/loop.h"
#include "util/mask.h"
#include "util/strvec.h"

struct policy;
struct project;
struct question;
struct regex;
struct scratch_area;
struct seconds;
struct stage;

/* Of what the task's outputs select, what is its own (own.c). Not to be copied. */
struct own {
	struct strvec names;
	struct outputs_part part;
	bool shared; /* `part` counts; else all of it is */
};
static inline const struct outputs_part *
own_part(const struct own *o)
{
	return o->shared ? &o->part : NULL;
}

/* A command that runs. */
struct job {
	struct sched *s;
	struct task *task;
	struct executor *executor;
	struct exec_job *handle;
	struct policy *policy;
	char *command, *shown;        /* the latter without secrets */
	struct mask_stream masked[3]; /* of its output, by stream */
	struct weave weave;           /* of what that leaves */
	struct captured output;
	struct strvec notes;
	struct moment moment; /* of its start, when its result may be saved */
	uint64_t nwrites;     /* fingerprint.nwrites, likewise */
	struct own own;       /* as of its start */
	struct outputs
		links; /* only its roots: those on the way to its outputs when it was started */
	/* Of one that adds to others' outputs, unsandboxed: what was there. */
	struct outputs_before before;
	size_t slot; /* in sched.jobs */
	/* Of the attempts that were not the last: */
	uint64_t spent_ns, spent_cpu_us, spent_rss_kb;
	int64_t first_started_ns;
	struct place *place; /* that it takes; NULL: a local one */
	/* Persistent: */
	struct regex *ready_when;
	struct loop_timer notice; /* that it is not ready yet */
	uint64_t begun_ns;        /* monotonic */
	bool asked;               /* to end, as nothing needs it any more */
	uint64_t ndenied;         /* undeclared accesses so far */
	bool told_more;           /* that there are more than are told while it runs */
	/* What its outputs select was vx's to remove, and no stamp says yet what it leaves. */
	bool remember;
};

/* An executor that is not of vx. */
struct place {
	struct executor *ex;
	struct ready ready; /* with a capacity: what waits for one of its places */
	size_t nrunning;
};

struct sched {
	const struct sched_options *o;
	struct plan *plan;
	struct ready ready;
	struct job **jobs;
	size_t njobs, jobs_cap;
	size_t npersistent;  /* of the jobs: they take no place */
	size_t nelsewhere;   /* of the jobs: they take one of their executor's */
	size_t nserving;     /* of these: ready, so that nobody waits for them */
	size_t nmoving;      /* commands that run and may write a file that all keys rest on */
	bool has_bad_server; /* one has failed, or will: something was denied to it */
	/* Persistent tasks whose turn has come, and of which it is to be seen whether anything needs them. */
	struct task **undecided;
	size_t nundecided, undecided_cap;
	bool undecided_new;
	bool foreground_ended; /* one of those that were to stay has ended by itself */
	bool in_foreground;    /* everything else is over, and said */
	struct ready restores; /* found in the cache, not yet in place */
	struct loop_timer restore_timer, redraw_timer;
	bool restore_armed, redraw_armed;
	struct loop_fd guard;
	struct prober prober;
	struct executor *direct, *sandboxed;
	struct place *places;         /* in the order of the settings */
	size_t nplaces, nplaced_left; /* answers that are waited for */
	struct question *questions;   /* that executors are asked; answers may come late */
	bool placing, is_placed;
	struct err place_failed;
	bool has_bad_executor; /* one broke, and no task failed with it */
	bool must_sweep;       /* or had to be killed: what it ran may still run */
	bool has_priorities;
	struct scratch_area *area;
	struct seconds *seconds; /* with `sandboxed` */
	struct stage *stage;     /* for restores */
	char *sh;
	struct task **ended; /* ends whose dependants have not been told yet */
	size_t nended, ended_cap;
	bool telling;
	bool files_stale; /* there may be files that the last listing does not have */
	bool has_orphans; /* maybe: some child has ended since they were reaped */
	bool halted;      /* nothing new is started: a failure under --continue=never */
	bool told_no_reports;
	struct strvec noticed; /* what was said once, up to ": " */
	bool told_index;
	bool told_moved;
	bool executed;              /* some command was started */
	size_t nunsaved;            /* results that the cache could not take */
	const struct task *unsaved; /* the first of them, and why */
	struct err unsaved_why;
	int stopped_by;
	struct err fatal;
	struct sched_result *result;
	size_t history_cap;
};

/* sched.c */
void sched_end_task(struct sched *s, struct task *t);
/* Those that wait for t may be ready: it has ended, or is ready itself. Once. */
void sched_tell_dependants(struct sched *s, struct task *t);
/* To be executed in its turn. */
void sched_push(struct sched *s, struct task *t);
/* Every task has its end now, but for those that stay: what never ran, and whether all is well. */
void sched_close_books(struct sched *s);
bool sched_restores_left(const struct sched *s);
/* All that t depends on has ended. */
void sched_became_ready(struct sched *s, struct task *t);
bool sched_is_stopping(const struct sched *s);
/* Ends a task by an error of vx itself, before its command is started; while the run is stopping, as
 * aborted. j may be NULL. */
void sched_fail_task(struct sched *s, struct task *t, struct job *j, struct err *e);
/* Tells the report and the history. All but the first two may be NULL; `error` is vx's own. */
void sched_report_end(struct sched *s, struct task *t, const struct job *j,
	const struct captured *output, const char *error, const struct exec_result *r);
/* The cache could not take the result of this task: said once, at the end of the run. */
void sched_save_failed(struct sched *s, const struct task *t, const struct err *why);
/* The index cannot be read or written: said once, and the work goes on without it. */
void sched_index_failed(struct sched *s, const struct err *why);
bool sched_wants_cache(const struct sched *s, const struct task *t);
bool sched_will_save(const struct sched *s, const struct task *t);
/* Whether the files that every key rests on are as they were; when not, said once. */
bool sched_keys_hold(struct sched *s);
/* Directories of the projects inside this one; the array is the caller's. */
const char **sched_nested_dirs(const struct project *p);

/* execute.c: starts the command of a task that is ready; its end comes from the loop. */
void execute_task(struct sched *s, struct task *t);
/* What was denied to it, before it is at its end. */
void execute_tell_denied(struct job *j, const struct exec_denial *d);

/* place.c */
/* Decides who executes each task that may yet run. -1: an executor cannot say. */
int place_tasks(struct sched *s, struct err *e);
/* While it waits: whether to go on. */
bool place_is_done(const struct sched *s);
/* The place whose pool the task belongs to; NULL: it takes a local one. */
struct place *place_of(const struct sched *s, const struct task *t);
/* Nothing more is executed: the executors are ended, and heard out. */
void place_end(struct sched *s);

/* miss.c */
/* Before the command of a task is started that is to be cached: why it has to run (task.why), and what explains the
 * next one (task.key_text). */
void miss_explain(struct sched *s, struct task *t);
/* The same key has failed and succeeded: a note. */
void miss_note_flaky(struct sched *s, struct job *j, const struct exec_result *r);

/* notes.c: what may explain that a sandboxed command failed by itself. Never counted. */
void notes_on_failure(struct sched *s, struct job *j, const struct exec_result *r);

/* serve.c */
/* A persistent task, all of whose dependencies are done. */
void serve_consider(struct sched *s, struct task *t);
/* Before anything is dispatched: starts those that something needs, ends the others. */
void serve_decide(struct sched *s);
/* Before the command of any task is started; what serve_release frees. */
int serve_prepare(struct job *j, struct err *e);
/* The command of a persistent one was started. */
void serve_started(struct job *j);
/* exec_request.ready: what depends on it may run. */
void serve_ready(void *job);
/* exec_request.denied: says so, of the first ones. */
void serve_denied(void *job, const struct exec_denial *d);
/* Its command has ended, however; task.status is what it says. */
void serve_ended(struct job *j, const struct exec_result *r);
void serve_release(struct job *j);
/* A persistent task that t needs, if only by others, and that has failed or will; NULL. */
const struct node *serve_bad_for(const struct sched *s, const struct task *t);
/* Nothing runs but what serves, or is on its way to, but nobody needs it any more: one of those may never
 * be ready. */
bool serve_is_all(const struct sched *s);
/*
 * That is so, and nothing else will run: ends what does not stay, dependants first. True
 * when none is left. Called again after each end.
 */
bool serve_close(struct sched *s);

/* hit.c: looks a keyed task up. True: it ended, or waits among the restores, or was found lost and
 * has gone its way as a miss. */
bool hit_try(struct sched *s, struct task *t);
/* Ends a task by its entry: in place already (current), or to be restored. */
void hit_serve(struct sched *s, struct task *t, bool current);

/* settle.c */
/*
 * Stores, commits, records, in this order: the content from the scratch, then the moves into the
 * workspace, the row last. Whatever the cache cannot do is only said: the task's own work stands, and what
 * was stored of it goes again.
 * Returns -1 when the moves themselves failed, or when a stop is asked before they begin (afterwards they
 * go through).
 */
int settle_result(struct sched *s, struct job *j, struct exec_result *r, bool save, struct err *e);
/* The outputs that the task made, and the directory they lie below now. *ret_gone (owned, or NULL): of what
 * one that adds to others' found there, a name that it removed. */
int settle_made(struct sched *s, struct job *j, struct exec_result *r, struct outputs *ret,
	int *ret_fd, char **ret_gone, struct err *e);
/* One line beside the task's end. */
void settle_note(struct job *j, const char *fmt, ...) attr_printf(2, 3);

/* own.c */
/* Whether it adds to the outputs of tasks before it: then its own are what it added last. */
static inline bool
own_is_additive(const struct task *t)
{
	return t->node->nadds_to > 0;
}
int own_find(struct sched *s, const struct task *t, struct own *ret, struct err *e);
void own_release(struct own *o);
/* Before what the task's outputs select is removed, or (`restoring`) replaced by its entry: whether that is
 * vx's to do. -1: it fails the task, and nothing has been touched. `notes` may get a line. */
int own_check(
	struct sched *s, const struct task *t, bool restoring, struct strvec *notes, struct err *e);
/* Whether the links on the way to the outputs `now` were there when it was started. -1: one is not. */
int own_links_hold(const struct job *j, const struct outputs *now, struct err *e);
/* 1: the outputs are those of its key, and what else lies among them may have been added by tasks that do
 * so. 0, -1. */
int own_is_current(struct sched *s, const struct task *t, struct err *e);
/* After a run that no result is stored of: what it left is vx's to replace all the same. */
void own_remember(struct sched *s, struct job *j, struct exec_result *r);

/* record.c */
void record_task(struct sched *s, const struct task *t, const struct exec_result *r);

#endif

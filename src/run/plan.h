/* SPDX-License-Identifier: MIT */
/*
 * The chosen tasks with their keys: what each one is declared to read, as it is on disk now, and
 * whether the cache has seen it. plan.c executes nothing and writes nothing.
 */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include "cache/filehash.h"
#include "cache/index.h"
#include "graph/graph.h"
#include "run/fingerprint.h"
#include "run/probe.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/inputs.h"

struct err;
struct mask;
struct executor;
struct moment;
struct strvec;
struct workspace;

enum task_state {
	TASK_WAITING,
	TASK_READY,
	TASK_RUNNING,
	TASK_DONE
};

enum task_status {
	TASK_SUCCESS,
	TASK_HIT,
	TASK_FAILED,
	TASK_SKIPPED,
	TASK_ABORTED,
	TASK_NOT_RUN,
	TASK_NOOP,    /* only for another machine, and no executor there takes it */
	TASK_UNNEEDED /* persistent: nothing needed it, or nothing any more before it was ready */
};

enum cache_status {
	CACHE_NONE,
	CACHE_MISS,
	CACHE_UP_TO_DATE,
	CACHE_RESTORED
};

struct task {
	struct node *node;
	enum task_state state;
	size_t deps_left;

	/* The key and what it rests on. */
	struct inputs inputs;
	bool has_key;
	struct digest key;
	uint64_t keyed_at; /* filehash_changes then */
	/* What comes before it may change what its key is made of, so that is made when its
	 * dependencies are done: an uncached command, one with outputs in other projects, one that may
	 * rewrite a fingerprint file, or, where it has probes, one whose key is not in its own. */
	bool late;
	bool may_move;         /* it may write a file that all keys rest on (run/fingerprint.h) */
	bool unsettles;        /* what comes after it is late */
	bool is_unfolded;      /* the key of something that it needs is in no key on the way */
	struct probe **probes; /* of inputs.runtime, then of workspaceRuntime */
	size_t nprobes;
	bool own_probes; /* run when its dependencies are done */
	bool probing;    /* they were asked for */
	size_t probes_left;
	/* Its key no longer says what is on disk, or rests on one that does not: never saved. */
	bool tainted;
	/* The task that it needs for which that is so: it failed, or was not saved. */
	const struct node *unsaved;
	bool surfaced; /* a command that was requested, by itself or by a group: it is shown as that */

	/* Persistent: */
	bool foreground;  /* requested, by itself, by a group or as one that such a one needs */
	bool is_ready;    /* it was ready: what depends on it has been told */
	bool never_ready; /* it failed without having been */

	bool sandboxed; /* to be executed in a sandbox */
	/* Who executes it, every attempt; NULL: vx itself, or nobody (run/place.c). While there is a run; the name
	 * stays. */
	struct executor *placed;
	char *placed_on;
	bool looked_up; /* the index was asked */
	bool found;     /* the index has an entry that this run accepts */
	bool answered;  /* the index has said whether */
	bool too_weak;  /* it has one, of a lower making than this run accepts */
	bool lost;      /* it had one, which was of no use */
	struct entry entry;

	/* How it ended. */
	enum task_status status;
	enum cache_status cache;
	int exit_code;
	int signal;
	bool timed_out;
	unsigned attempts;      /* at its command; 0: it was not started */
	uint64_t timeout_ms;    /* what it may take, 0: as long as it likes */
	const char *timeout_by; /* who said so */
	uint64_t duration_ns, cpu_us, peak_rss_kb;
	int64_t started_ns; /* wall */
	const struct node *blocked_by;
	bool saved;                /* its result is in the cache now */
	bool is_new;               /* no run of it was ever recorded */
	char *why;                 /* why it missed, in a phrase; NULL: not known */
	struct strbuf key_text;    /* of history_pack; empty: not kept */
	uint64_t passes, failures; /* with this key, this one included */
	bool flaky;                /* both */
};

/* Persistent, ready, and not at its end. */
static inline bool
task_is_serving(const struct task *t)
{
	return t->is_ready && t->state == TASK_RUNNING;
}

enum sandbox_mode {
	SANDBOX_AS_DECLARED,
	SANDBOX_ALL,
	SANDBOX_OFF
};

struct plan {
	const struct workspace *w;
	struct graph *g;
	struct files files;
	struct filehash *fh;
	char *platform;
	struct fingerprint fingerprint;
	struct probe_set probes;
	struct mask *mask;          /* what nobody is to read (exec/secrets.h); NULL: nothing */
	const char *const *forward; /* for requested commands */
	size_t nforward;
	struct task *tasks; /* by node->index */
	/* Some task may read what a cached one before it writes, which is not listed yet. */
	bool outputs_are_inputs;
	struct strbuf
		text; /* of the last key: its memory serves the next, as does that of its parts: */
	const struct task *text_of; /* whose key is made of `text`; NULL: nobody's */
	struct strbuf ids, manifest;
	struct key_input *inputs;
	struct digest *upstream;
	size_t inputs_cap, upstream_cap;
};

/* Only another machine may execute it, and none does: known once tasks are placed. */
static inline bool
task_is_noop(const struct task *t)
{
	return !node_is_idle(t->node) && t->node->def->remote == REMOTE_ONLY && !t->placed_on;
}

/* Takes over files and fh. The order of graph->nodes is the order of dependencies. */
int plan_init(struct plan *p, const struct workspace *w, struct graph *g, struct files *files_take,
	struct filehash *fh, enum sandbox_mode mode, const char *const *forward, size_t nforward,
	struct err *e);
void plan_release(struct plan *p);

static inline struct task *
plan_task(const struct plan *p, const struct node *n)
{
	return &p->tasks[n->index];
}

/* By task: whether it may yet run, being no hit and waiting for nothing that failed (`despite`: even so);
 * for groups and persistent ones, whether such a command needs them, or, with `requested`, whether they
 * were asked for. The array is the caller's. */
bool *plan_find_needed(const struct plan *p, bool despite, bool requested);

/* Fills task.inputs, which are gone after plan_list_files. */
int plan_inputs(struct plan *p, struct task *t, struct err *e);
/* Makes (or makes again) the task's key; those of its dependencies are there, and its probes have
 * ended. One that failed is the error. */
int plan_key(struct plan *p, struct task *t, struct err *e);

/* Makes `text` that of the task's key. 1; 0: it has another key by now. */
int plan_text(struct plan *p, struct task *t, struct err *e);

/*
 * Whether the key still holds right before the command starts, and how its inputs look now, into an empty
 * moment. 1; 0: it does not, and *ret_what (owned) names what changed.
 */
int plan_begin(struct plan *p, struct task *t, struct moment *m, char **ret_what, struct err *e);

/* Lists the files again: an uncached command has run since. */
int plan_list_files(struct plan *p, struct err *e);

/* Looks the key up; sets found and entry. `least`: the lowest making that is accepted. */
int plan_look_up(
	struct plan *p, struct task *t, struct index *ix, enum entry_making least, struct err *e);

/*
 * Whether what the key rests on is still as it was, after the command has run since `started_ns`
 * (wall). 1 unchanged; 0 moved, and *ret_what (owned) names the file. A change of an input since the
 * moment of plan_begin counts even when it is undone by now (run/moment.h); files that came or went
 * under an input glob count (spec/cache.md §4).
 */
int plan_still_true(struct plan *p, struct task *t, const struct moment *m, int64_t started_ns,
	char **ret_what, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The executor seam: how the run layer has a command executed, whoever does it. direct.c runs it as
 * it is, sandboxed.c through vx-sandbox, external.c by a program that somebody else has written,
 * tests/fake/fake-exec.c not at all.
 *
 * start() returns at once; everything else arrives as callbacks from the loop: output in the order
 * it was read, ready() at most once and denied() where the command is to go on, then done() exactly once. After
 * done() the job is gone. cancel() asks politely (TERM
 * or the given signal to the whole group), waits the grace, then kills; done() still comes.
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "util/base.h"
#include "util/strbuf.h"
#include "util/strvec.h"

struct commit;
struct err;
struct exec_job;
struct loop;
struct policy;
struct regex;
struct taskdef;

enum exec_stream {
	EXEC_STDOUT = 1,
	EXEC_STDERR = 2
};

enum {
	EXEC_GRACE_MS = 2000, /* polite signal -> SIGKILL; VX_KILL_GRACE_MS (spec/execution §5) */
	EXEC_DRAIN_MS = 250,  /* what readers get after the command's own exit */
};

enum exec_outcome {
	EXEC_EXITED,      /* by itself, any code or signal */
	EXEC_TIMED_OUT,   /* at its timeout */
	EXEC_STOPPED,     /* by cancel() */
	EXEC_NOT_STARTED, /* could not be started: error says why. A sandbox that could not be set
			     up */
	EXEC_BROKEN,      /* nobody can say how it ended: error is what its executor did wrong */
};

/* One undeclared access (design §8). */
enum denial_class {
	DENIAL_FINDING,
	DENIAL_WALLED,
	DENIAL_PROBED,
	DENIAL_IGNORED
};
struct exec_denial {
	int op; /* enum denial_op, proto/status.h */
	enum denial_class class;
	char *path;    /* from the workspace */
	char *target;  /* of a finding whose name is a link: the link's text; else NULL */
	uint32_t pid;  /* 0: not known */
	char *program; /* "" : not known */
	char *cmdline;
	char *grant; /* what would allow it, as the config spells it: `allow.read: ["../lib/x"]` */
	uint64_t
		nmore; /* others of this operation and class in the same directory, which are not listed */
	char *more_grant; /* what would allow all that is in there; NULL without such */
};

struct exec_result {
	enum exec_outcome outcome;
	int exit_code; /* as a shell reports it: 0..255; 127 when not started; 143/137 timed out */
	int signal;    /* that ended the command, else 0 */
	uint64_t duration_ns;
	uint64_t cpu_us;
	uint64_t peak_rss_kb; /* 0: not known */
	bool output_cut;  /* a process left behind still held the pipes when the drain was over */
	unsigned nkilled; /* background processes of a sandboxed task that were ended */
	bool left_some;   /* one without a sandbox left some in its group, which go on */
	struct strbuf error; /* EXEC_NOT_STARTED: cause and remedy; EXEC_BROKEN */

	/* Sandboxed only. */
	bool sandboxed;
	bool failed_itself;          /* the command came to its own end, and that was a failure */
	bool unreported;             /* it ran without the policy layer: nobody saw denials */
	bool proven_possible;        /* nothing in the view or its helper speaks against "proven" */
	struct exec_denial *denials; /* findings first, then by path; bounded */
	size_t ndenials;
	/* Exact, also beyond the list; those included that the helper could not tell. */
	uint64_t nfindings;
	/* Names, a few, that nothing grants and that it may have read, as they came where it could see
	 * all there was: its result is not what its key says. */
	struct strvec late;
	struct strvec notes; /* one line each */
	struct strvec
		notices; /* the same, of what is so for others here, too: what it is stands before the first ": " */
	/* What it wrote, still in the scratch; NULL when it never started, was stopped by vx or is persistent. The
	 * receiver applies or drops it (exec/commit.h), and frees it. */
	struct commit *commit;
};
void exec_result_init(struct exec_result *r);
void exec_result_release(struct exec_result *r); /* frees all but commit */

/* What an executor is asked by: whether it takes the task. */
struct exec_view {
	const char *task_id, *project_name;
	const char *project_dir; /* from the workspace's root, "." for that */
	const char *command;
	bool pinned_local, cacheable;
};

/* What an executor that is not of vx is told of a task, beside the rest of the request. */
struct exec_handed {
	const struct taskdef *def;
	const char *root, *cwd;     /* absolute */
	const char *const *forward; /* the arguments that are at the end of the command */
	size_t nforward;
	const char *cache_key; /* NULL: none that anything is kept by */
	bool refresh;          /* what is kept by that key is not wanted */
};

struct exec_request {
	const char *id;      /* "app#test", for errors */
	const char *command; /* for sh -c */
	int cwd;             /* project directory fd */
	struct strvec *env;  /* borrowed until start returns */
	uint64_t timeout_ms; /* 0: none */
	uint64_t grace_ms;
	const struct policy *policy;      /* NULL for direct; else outlives the job */
	const struct exec_handed *handed; /* for external.c; borrowed until start returns */
	/*
	 * The command is to go on until somebody ends it. Its standard input is a pipe that nobody writes
	 * and that stays open as long as vx lives. The timeout bounds only the time until it is ready: at
	 * its start, or, with ready_when (which outlives the job), at the first line that holds a match.
	 *
	 * Sandboxed it has the live view (design §5), which a policy can also ask for: it sees the workspace as it is at each moment, and what it
	 * writes where that is granted stands at once. So r->commit is NULL, the result is never proven, and
	 * what the command must not leave is found and reported however it ends: cancel() with SIGKILL kills it
	 * and leaves the helper the time to look.
	 */
	bool persistent;
	bool again; /* where it fails it will be run again: nothing of its group is to go on then */
	const struct regex *ready_when;
	void (*ready)(void *ctx);
	/* Persistent and sandboxed: a finding, when it comes; borrowed, NULL for one that is only counted. done() has
	 * it again. May be NULL. */
	void (*denied)(void *ctx, const struct exec_denial *d);
	void (*output)(void *ctx, enum exec_stream stream, const char *p, size_t n);
	/* The receiver takes over what r owns (it moves the struct). */
	void (*done)(void *ctx, struct exec_result *r);
	void *ctx;
};

struct executor {
	const char *name;
	/* NULL with e set when the job cannot even be tried: done() will not come. */
	struct exec_job *(*start)(
		struct executor *ex, const struct exec_request *rq, struct err *e);
	/* Once or again: the second time with SIGKILL skips the grace. */
	void (*cancel)(struct executor *ex, struct exec_job *job, int sig);
	/* Terminal stop and continue (SIGSTOP, SIGCONT) to the job's group, where it has one. */
	void (*forward)(struct executor *ex, struct exec_job *job, int sig);
	void (*free)(struct executor *ex);

	/* One that is not of vx, which is asked before it is given anything: */
	bool remote;       /* it is on another machine */
	unsigned capacity; /* how many it takes at a time, which take no place here; 0: they do */
	/* answer() comes from the loop, once, unless the executor breaks. v is borrowed until ask returns; -1: it
	 * cannot be asked. */
	int (*ask)(struct executor *ex, const struct exec_view *v,
		void (*answer)(void *ctx, bool takes), void *ctx, struct err *e);
};

/* exec/direct.c. `sh` is resolved by the caller once, on vx's own PATH (absolute path). */
struct executor *direct_new(struct loop *l, const char *sh);

#endif

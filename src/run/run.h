/* SPDX-License-Identifier: MIT */
/*
 * A whole run, from the options to the exit code: guard, lock, recovery, workspace, graph, keys,
 * scheduler, footer, history. What is open while it lasts is held, and released, in one place.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "run/dry.h"
#include "run/report.h"
#include "run/sched.h"
#include "util/strvec.h"

struct run_options {
	const char *command; /* as typed, for the lock and the history */
	struct strvec words; /* tasks */
	struct strvec
		strays; /* "--affected=main", where one of the words may be meant to be that */
	struct strvec filters;
	bool all;
	bool affected;
	const char *base; /* --affected=BASE; NULL: the default one */
	bool leave_out;   /* --exclude-dependencies, of these, or of all where there are none */
	struct strvec left_out;
	enum dry_form dry;
	bool graph;              /* --graph */
	const char *graph_file;  /* NULL: to the product */
	bool no_read, no_write;  /* of the cache; both: no cache at all */
	const char *concurrency; /* "4", "50%"; NULL: the settings', else usable cores */
	const char *cache_dir;   /* relative to the current directory; NULL: the settings' */
	uint64_t timeout_ms;     /* for tasks without one; 0: the settings' */
	unsigned retries;        /* for tasks without their own */
	enum continue_mode cont;
	enum sandbox_mode sandbox;
	enum report_logs logs;
	bool verbose; /* --verbosity: a table of all tasks */
	bool summarize,
		profile; /* into these files, from the current directory; NULL: where they go by default */
	const char *summary_file, *profile_file;
	bool report;                /* in markdown */
	const char *report_file;    /* appended to; NULL: to standard output */
	struct strvec tags;         /* k=v */
	const char *const *forward; /* after `--` */
	size_t nforward;
};

/* The exit code (design §3), or -1 with e set: nothing was run. With `dry` and `graph`, *product receives the
 * plan and nothing is executed, locked or written but the state directory. Called once. */
int run_workspace(const struct run_options *o, struct strbuf *product, struct err *e);

/* What could be named as a task, by the other options; `then` is called with it, once the workspace is read. */
struct select_choice;
int run_choices(const struct run_options *o,
	int (*then)(void *ctx, const struct select_choice *v, size_t n, struct err *e), void *ctx,
	struct err *e);

/* Whether an environment variable says yes: set, not empty, "0" or "false". */
bool run_env_is_true(const char *name);

#endif

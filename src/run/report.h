/* SPDX-License-Identifier: MIT */
/*
 * What a user reads of a run: events in, text out (spec/cli.md §1, Output). Frames, grid lines, the
 * footer, and on a terminal a live region at the bottom. The only place that writes progress.
 *
 * Everything permanent goes to stdout; notices go to stderr. A block is written in one piece, so
 * blocks of tasks that end at once never mix.
 */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "exec/output.h"
#include "run/plan.h"

enum report_logs {
	LOGS_BY_FLOW,
	LOGS_FULL,
	LOGS_ERRORS,
	LOGS_HASH,
	LOGS_NONE
};
enum report_flow {
	FLOW_FOCUSED,
	FLOW_BROAD,
	FLOW_CI
};

struct report_options {
	enum report_logs logs;
	enum report_flow flow;
	unsigned workers;
	const char *cache_dir; /* as shown; NULL: no cache */
	bool sandbox_off;
	size_t nprojects;
	size_t ntasks;     /* commands in the graph: groups never count */
	size_t nrequested; /* commands that are shown as requested: one streams live */
	bool verbose_table;
	bool github;       /* the log is that of GitHub Actions */
	struct loop *loop; /* NULL: whoever reads is waited for */
};

/* How a task ended, beside what struct task says. */
struct report_end {
	const struct task *task;
	const char *command;              /* as executed; NULL: not executed */
	const struct captured *output;    /* NULL: none */
	const char *error;                /* vx's own, one line; NULL: none */
	const struct exec_result *result; /* NULL: not executed */
	const char *const *notes;         /* one line each */
	size_t nnotes;
};

struct loop;
struct report;

struct report *report_new(const struct report_options *o);
void report_free(struct report *r);

void report_started(struct report *r, const struct task *t, const char *command);
void report_output(
	struct report *r, const struct task *t, enum exec_stream stream, const char *p, size_t n);
/* A persistent one is ready: that much is told of it while it runs. */
void report_ready(struct report *r, const struct task *t);
/* And what it is denied, where what it prints is shown; else as a notice. */
void report_denied(struct report *r, const struct task *t, const struct exec_denial *d);
/* Whether the end of this hit prints what the task had printed: else it need not be loaded. */
bool report_shows_hit(const struct report *r, const struct task *t, bool current);
void report_ended(struct report *r, const struct report_end *end);
/* An attempt of `most` failed, and another one follows: its frame, where the task would have one had it been the last.
 * False: nothing of it is printed. */
bool report_attempt(struct report *r, const struct report_end *end, unsigned most);
/* One line for the user beside the tasks: "vx: …" on stderr. */
void report_notice(struct report *r, const char *fmt, ...) attr_printf(2, 3);
/* The same before there is a report, or after. */
void report_warn(const char *fmt, ...) attr_printf(1, 2);
/* Failure frames again, then the footer. `tasks` are all of the plan. */
void report_footer(struct report *r, const struct plan *p, uint64_t wall_ns, int stopped_by);

/* Persistent tasks that stay, after the footer: what they printed that was not shown yet, and from now on
 * all that they print, as it comes; of several, line by line below their names. */
struct report_kept {
	const struct task *task;
	const struct captured *output;
};
void report_keep(struct report *r, const struct report_kept *kept, size_t n);

/* So much waits for a slow reader that nothing should be started that makes more. */
bool report_is_behind(const struct report *r);
/* Waits until all is written. False: a stop was asked meanwhile. */
bool report_finish(struct report *r);
/* No reader is waited for any longer than that: what they have not taken by then is dropped. */
void report_hurry(struct report *r, uint64_t ms);
/* The errno of a failed write to stdout, 0 when all went out (or the reader had gone away). */
int report_write_error(const struct report *r);

/* The live region: when it wants to be drawn again (0: not), and drawing it. */
uint64_t report_redraw_at(const struct report *r);
void report_redraw(struct report *r);

/* Somebody else has written there, as a shell does when it has stopped vx: what was drawn stays, and it is drawn
 * below that. */
void report_let_go(struct report *r);

/* A text of the user's own asking, below all else: --report. */
void report_page(struct report *r, const struct strbuf *text);

/* "success", "failed (exit 4)". */
void report_outcome(struct strbuf *out, const struct task *t);
/* "1.2s", "340ms", "2m 05s". */
void report_duration(uint64_t ns, char *buf, size_t n);

#endif

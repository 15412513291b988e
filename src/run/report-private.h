/* SPDX-License-Identifier: MIT */
/*
 * What the files of the report share: report.c (events, writing, the live region), report-frame.c
 * (the text of frames and lines), report-footer.c (the sum of it all).
 */
#ifndef RUN_REPORT_PRIVATE_H
#define RUN_REPORT_PRIVATE_H

#include "run/outlet.h"
#include "run/report.h"
#include "util/escape.h"

enum colour {
	PLAIN,
	BOLD,
	DIM,
	RED,
	GREEN,
	YELLOW,
	CYAN
};

/* A running task, as the live region shows it. */
struct row {
	const struct task *task;
	uint64_t since_ns;
};

/* A persistent task below the footer. */
struct kept_task {
	const struct task *task;
	struct escape_state strip[3];
	struct strbuf line[3]; /* of several: of each stream, what has no end yet */
};

struct replay {
	struct strbuf text;
	bool framed;    /* it was printed as it came */
	uint64_t lines; /* report.lines right after that */
};

enum {
	ROWS_MAX = 10, /* of running tasks in the live region */
	BAR_FROM = 60  /* so many columns have room for a bar */
};

struct report {
	struct report_options o;
	bool tty; /* stdout is a terminal: there is a live region */
	bool colour;
	struct row *rows;
	size_t nrows, rows_cap;
	unsigned drawn;              /* lines of the region on the screen now */
	size_t widths[ROWS_MAX + 2]; /* columns of each: a narrower terminal wraps them */
	size_t ncached, nfailed;
	uint64_t dirty_at; /* when the region may be drawn again; 0: it is up to date */
	size_t done;
	const struct task *live; /* the one task that streams between frame open and close */
	struct escape_state strip[3];
	struct escape_screen screen; /* what has been streamed leaves the terminal so */
	bool after_line;             /* of the grid: a frame keeps its distance */
	const struct task *streamed; /* what was live when the footer came */
	struct kept_task *kept;
	size_t nkept;
	size_t kept_width;      /* columns of the longest name */
	struct strbuf pending;  /* permanent text that waits for the next redraw */
	struct replay *replays; /* failure frames, printed above the footer */
	size_t nreplays, replays_cap;
	uint64_t lines; /* of permanent text, since there is a replay */
	char fence[33]; /* github: what ends the piece, in which nothing is a command */
	struct outlet out, err_out;
	struct outlet *err; /* `out` where both are one file, so that they keep their order */
	bool holding;       /* what tasks print is not read: loop_hold */
};

/* report.c: permanent text, above the live region, in one write. */
void report_emit(struct report *r, const struct strbuf *text);

/* The failure frames that are to be seen above the footer. */
void report_add_replays(const struct report *r, struct strbuf *out);

/* What waits for the next redraw, with the region out of its way. */
void report_flush(struct report *r);

/* report-keep.c */
bool report_is_kept(const struct report *r);
/* False: it is none of them. */
bool report_keep_output(
	struct report *r, const struct task *t, enum exec_stream stream, const char *p, size_t n);
/* As above. */
bool report_keep_denied(struct report *r, const struct task *t, const struct exec_denial *d);
/* It has ended: the rest of its lines, and what the sandbox says of it. */
void report_keep_ended(struct report *r, const struct report_end *end);
void report_keep_release(struct report *r);

/* report-frame.c */
void report_add_coloured(
	const struct report *r, struct strbuf *sb, enum colour c, const char *text);
/* Of the terminal; without one there is no end of them. */
size_t report_columns(const struct report *r);
void report_add_rule(const struct report *r, struct strbuf *out, size_t used);
void report_add_bar(struct strbuf *out, uint64_t part, uint64_t whole);
/* Blanks behind a text, up to so many columns. */
void report_pad(struct strbuf *out, const char *text, size_t columns);
/* A task's own bytes: of their escape sequences colours stay, as the rest was meant for a terminal of its own; none
 * where there is no colour. */
void report_add_content(const struct report *r, struct strbuf *out, struct escape_state *st,
	const char *p, size_t n);
/* Of the one that streams all stay: it has the terminal. */
void report_add_streamed(
	struct report *r, struct strbuf *out, struct escape_state *st, const char *p, size_t n);
/* A blank line, between a line of the grid and what is none. */
void report_add_distance(struct report *r, struct strbuf *out);
void report_add_outcome(struct strbuf *out, const struct task *t, const struct exec_result *res);
void report_add_frame_open(
	const struct report *r, struct strbuf *out, const struct task *t, const char *outcome);
void report_add_command(const struct report *r, struct strbuf *out, const char *command);
void report_add_captured(const struct report *r, struct strbuf *out, const struct captured *output);
/* "read lib/x  by cat (pid 3)" */
void report_add_access(struct strbuf *out, const struct exec_denial *d);
/* The same as a line, and below it what would allow it. */
void report_add_denial(struct strbuf *out, const struct exec_denial *d);
void report_add_error(const struct report *r, struct strbuf *out, const struct report_end *end);
void report_add_denials(const struct report *r, struct strbuf *out, const struct exec_result *res);
void report_add_notes(const struct report *r, struct strbuf *out, const struct report_end *end);
void report_add_frame_close(
	const struct report *r, struct strbuf *out, const struct task *t, const char *outcome);
void report_add_attempt(
	struct report *r, struct strbuf *out, const struct report_end *end, unsigned most);
void report_add_frame(struct report *r, struct strbuf *out, const struct report_end *end);
/* The same above the footer: no error of its own, in the log of GitHub Actions. */
void report_add_frame_again(struct report *r, struct strbuf *out, const struct report_end *end);
/* Between these GitHub Actions takes nothing for its commands, whatever a task prints; elsewhere they are
 * nothing. One is ended before the next begins. */
void report_add_fence(struct report *r, struct strbuf *out);
void report_add_fence_end(const struct report *r, struct strbuf *out);
/* "⏺ 1.2s success miss app#build" */
void report_add_line(const struct report *r, struct strbuf *out, const struct report_end *end);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The lines that vx and an external executor exchange, as docs/EXECUTORS.md has them: one JSON object each.
 * What is read is checked here member by member, and nothing else of it is used; what it means at the moment
 * it comes, exec/external.c knows.
 */
#ifndef EXEC_WIRE_H
#define EXEC_WIRE_H

#include "exec/exec.h"

struct mask;

enum {
	WIRE_PROTOCOL = 1,
	WIRE_LINE_MAX = 256 << 10, /* of an executor, without its end */
	WIRE_NAME_MAX = 64,
	WIRE_CAPACITY_MAX = 10000,
	WIRE_TEXT_MAX = 300, /* of its words that are shown */
	WIRE_DURATION_MAX_MS = 2147483647,
};

enum wire_type {
	WIRE_NONE, /* it could not be read so far */
	WIRE_DESCRIPTION,
	WIRE_ACCEPTED,
	WIRE_STDOUT,
	WIRE_STDERR,
	WIRE_RESULT,
	WIRE_FAILED,
};

struct wire_message {
	const struct mask *mask; /* borrowed */
	enum wire_type type;
	uint64_t id; /* from 1 on; 0: it has none, or it could not be read */

	/* description */
	char *name;
	bool remote;
	unsigned capacity; /* 0: none */
	/* accepted */
	bool accepts;
	/* stdout, stderr; failed: the text, to be shown */
	struct strbuf data;
	/* result */
	struct exec_result result; /* exit_code, duration_ns, cpu_us, peak_rss_kb, the findings */
	char *where;               /* to be shown; NULL: not said */
};

/* line[n] is a NUL. Words that are to be shown are masked (NULL: nothing is) before they are cut: half a secret would
 * be none to the mask. -1: e says what is wrong with which member, and of the message type and id alone count,
 * where they could be read. To be released in both cases. */
int wire_read(const char *line, size_t n, const struct mask *mask, struct wire_message *ret,
	struct err *e);
void wire_message_release(struct wire_message *m);
/* "stdout", … */
const char *wire_type_name(enum wire_type t);

/* What vx says: each appends one line. -1: some text of it is no UTF-8 and cannot be said, and nothing was
 * appended. */
void wire_add_describe(struct strbuf *out);
int wire_add_accepts(struct strbuf *out, uint64_t id, const struct exec_view *v, struct err *e);
int wire_add_execute(struct strbuf *out, uint64_t id, const struct exec_request *rq, struct err *e);
void wire_add_cancel(struct strbuf *out, uint64_t id, int sig);

#endif

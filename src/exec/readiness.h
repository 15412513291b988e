/* SPDX-License-Identifier: MIT */
/*
 * Looks in what a persistent task prints for the line that says that it is ready (spec/execution.md §7):
 * each line of each stream without its break and without terminal escapes, and what has come of a line
 * that is not at its end yet. Each byte is looked at once, and none is kept, however long the line.
 */
#ifndef EXEC_READINESS_H
#define EXEC_READINESS_H

#include "exec/exec.h"
#include "util/escape.h"

struct regex;
struct regex_search;

struct readiness {
	const struct regex *when;
	struct readiness_line {
		struct escape_state strip;
		struct regex_search *search;
		bool has_begun; /* of the line there is something */
		bool has_cr;    /* at its end, not looked at: it may be part of the break */
	} streams[2];
	struct strbuf plain; /* of one call */
};
void readiness_init(struct readiness *r, const struct regex *when);
void readiness_release(struct readiness *r);
/* True: it is ready. */
bool readiness_sees(struct readiness *r, enum exec_stream stream, const char *p, size_t n);

#endif

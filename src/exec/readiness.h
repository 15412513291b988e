/* SPDX-License-Identifier: MIT */
/*
 * Looks in what a persistent task prints for the line that says that it is ready (spec/execution.md §7):
 * each line of each stream without its break and without terminal escapes, and what has come of a line
 * that is not at its end yet. Of a long line the last READINESS_LINE_MAX bytes count.
 */
#ifndef EXEC_READINESS_H
#define EXEC_READINESS_H

#include "exec/exec.h"
#include "util/escape.h"

struct regex;

enum {
	READINESS_LINE_MAX = 65536
};

struct readiness {
	const struct regex *when;
	struct {
		struct escape_state strip;
		struct strbuf line;
	} streams[2];
};
void readiness_init(struct readiness *r, const struct regex *when);
void readiness_release(struct readiness *r);
/* True: it is ready. */
bool readiness_sees(struct readiness *r, enum exec_stream stream, const char *p, size_t n);

#endif

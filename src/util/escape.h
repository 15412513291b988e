/* SPDX-License-Identifier: MIT */
/* Terminal escape sequences in what a task prints. */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include "util/base.h"

struct strbuf;

/* Zero at the start of a stream. */
struct escape_state {
	int state;
};
/* Adds the text without the sequences, over pieces of one stream. */
void escape_strip(struct escape_state *st, const char *p, size_t n, struct strbuf *out);

#endif

/* SPDX-License-Identifier: MIT */
/* Terminal escape sequences in what a task prints (ECMA-48). */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include "util/base.h"

struct strbuf;

/* Zero at the start of a stream. */
struct escape_state {
	unsigned char state;
	unsigned char
		len; /* of what has come of a sequence; beyond seq: it is too long for any we know */
	char seq[62];
};

/* Adds the text without the sequences, over pieces of one stream. A sequence that a line's end breaks off is
 * none, so that no more than a line is lost to one that has no end. */
void escape_strip(struct escape_state *st, const char *p, size_t n, struct strbuf *out);
/* The same, but colours stay: what has a place in a log, whatever the terminal shows around it. */
void escape_strip_but_colours(struct escape_state *st, const char *p, size_t n, struct strbuf *out);

/* What a terminal is left with by what was written to it. Zero is one as it should be, at the start of a line. */
struct escape_screen {
	struct escape_state st;
	unsigned modes; /* that are not as they should be */
	bool coloured;
	bool charset; /* not that of text */
	bool scrolls; /* a part of the screen only */
	bool text;    /* the line has some */
	bool column;  /* the cursor is not in the first one */
};
void escape_watch(struct escape_screen *s, const char *p, size_t n);
bool escape_is_mid_line(const struct escape_screen *s);
/* Adds what puts all of it back, and the line's end if there is none. */
void escape_put_back(struct escape_screen *s, struct strbuf *out);

#endif

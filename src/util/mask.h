/* SPDX-License-Identifier: MIT */
/*
 * Secret values out of a stream of bytes: every run of bytes that belong to some occurrence of a value,
 * overlapping and adjacent ones together, is written as one "***". What is written depends on the whole stream
 * alone, not on the pieces it comes in.
 *
 * Inside: an automaton of all values (Aho and Corasick), entered only where five bytes cannot be passed over at
 * once: no value is shorter than MASK_SHORTEST, so a pair of bytes that no value has near its start excludes the
 * five places before it.
 */
#ifndef UTIL_MASK_H
#define UTIL_MASK_H

#include "util/base.h"

struct mask;
struct strbuf;

enum {
	MASK_SHORTEST = 6 /* a shorter value would hide half of all there is */
};

struct mask *mask_new(void);
void mask_free(struct mask *m);
/* Shorter ones are left out. */
void mask_add(struct mask *m, const char *value, size_t n);
bool mask_is_empty(const struct mask *m);
/* After the last value, before the first use. */
void mask_finish(struct mask *m);

/* Of one stream. Zero at its start. */
struct mask_run;
struct mask_stream {
	uint32_t node;  /* what the stream ends in begins some value; that much is held back */
	bool starred;   /* the last byte that was written belongs to a value */
	uint64_t taken; /* bytes so far */
	struct mask_run *runs; /* what of that is known to belong to a value, in order */
	size_t nruns, cap;
};
/* The next piece; adds to out what is certain by then. */
void mask_feed(
	const struct mask *m, struct mask_stream *st, const char *p, size_t n, struct strbuf *out);
/* The end of the stream: adds what was held back. Ready for another one. */
void mask_end(const struct mask *m, struct mask_stream *st, struct strbuf *out);
void mask_stream_release(struct mask_stream *st);

/* A whole text, added to out. m may be NULL: as it is. */
void mask_whole(const struct mask *m, const char *p, size_t n, struct strbuf *out);
/* The same of one that ends with a NUL, owned. */
char *mask_text(const struct mask *m, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a task printed, both streams in the order it was read, bounded: the first 8 MiB and the last
 * 8 MiB are kept, with one line in the place of the rest (spec/execution.md §5, capture). Never cut
 * inside a UTF-8 sequence.
 */
#ifndef EXEC_OUTPUT_H
#define EXEC_OUTPUT_H

#include "exec/exec.h"

enum {
	OUTPUT_HEAD = 8 << 20,
	OUTPUT_TAIL = 8 << 20
};

struct output_chunk;
struct captured {
	struct strbuf bytes;         /* the head, then what came last: at least the tail */
	struct output_chunk *chunks; /* runs of one stream */
	size_t nchunks, cap;
	size_t cut;       /* where in bytes something is missing, when dropped */
	uint64_t dropped; /* bytes that are no longer held; captured_each may leave out more */
};
void captured_init(struct captured *c);
void captured_release(struct captured *c);
void captured_add(struct captured *c, enum exec_stream stream, const char *p, size_t n);
bool captured_is_empty(const struct captured *c);
/* In order. */
void captured_each(const struct captured *c,
	void (*fn)(void *ctx, enum exec_stream stream, const char *p, size_t n), void *ctx);

/* To the bytes of a blob and back. A bad blob: -1, and ret is empty. */
void captured_encode(const struct captured *c, struct strbuf *out);
int captured_decode(const char *p, size_t n, struct captured *ret);

#endif

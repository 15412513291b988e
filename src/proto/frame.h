/* SPDX-License-Identifier: MIT */
/*
 * Records on a pipe between the core and its helpers: a 32-bit little-endian length of what follows
 * the length itself, one type byte, payload. A stream opens with one FRAME_HELLO whose payload is
 * the protocol version; a peer of another version is refused. At most FRAME_MAX bytes a record: a
 * longer one is an error, not an allocation.
 *
 * Payload fields are written and read in a fixed order per type (proto/status.h): integers little
 * endian, strings as 32-bit length and bytes. Reading past the end, or leaving bytes over, fails.
 * The reader trusts nothing: it is fuzzed by tests/fuzz/fuzz-frame.c.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include "util/base.h"
#include "util/strbuf.h"

struct err;

enum {
	FRAME_VERSION = 1,
	FRAME_MAX = 1 << 20,
	FRAME_HELLO = 0,
};

/* Writing: start a record in sb, add fields, end it. The buffer can hold many records. A record
 * over FRAME_MAX is the caller's bug: what others choose the length of is bounded first. */
size_t frame_begin(struct strbuf *sb, uint8_t type); /* returns a mark for frame_end */
void frame_end(struct strbuf *sb, size_t mark);
void frame_put_u8(struct strbuf *sb, uint8_t v);
void frame_put_u32(struct strbuf *sb, uint32_t v);
void frame_put_u64(struct strbuf *sb, uint64_t v);
void frame_put_bytes(struct strbuf *sb, const void *p, size_t n);
void frame_put_str(struct strbuf *sb, const char *s);
void frame_hello(struct strbuf *sb);

/* A received record: borrowed from the reader's buffer until its next call of any kind. */
struct frame {
	uint8_t type;
	const uint8_t *p; /* what is left to read of the payload */
	size_t n;
	bool bad; /* a field was short: every later get returns zero or "" */
};
uint8_t frame_get_u8(struct frame *f);
uint32_t frame_get_u32(struct frame *f);
uint64_t frame_get_u64(struct frame *f);
const void *frame_get_bytes(struct frame *f, size_t *ret_n);
/* A string: NUL-terminated copy in *scratch, false (and bad) when it holds a NUL. */
bool frame_get_str(struct frame *f, struct strbuf *scratch);
/* True when all was read and nothing was bad. */
bool frame_is_done(const struct frame *f);

/* Reading from a stream fed in pieces. */
struct frame_reader {
	struct strbuf in;
	size_t at;    /* consumed */
	bool greeted; /* HELLO was read */
	bool bad;     /* for ever */
};
#define FRAME_READER_INIT                                                                          \
	{                                                                                          \
		STRBUF_INIT, 0, false, false                                                       \
	}
void frame_reader_release(struct frame_reader *r);
void frame_reader_feed(struct frame_reader *r, const void *p, size_t n);
/* 1: *ret is the next record (never HELLO). 0: more bytes are needed. -1: the stream is bad, with
 * e set; nothing more can be read. */
int frame_reader_next(struct frame_reader *r, struct frame *ret, struct err *e);
/* True when no partial record is buffered: where a stream may end. */
bool frame_reader_is_empty(const struct frame_reader *r);

#endif

/* SPDX-License-Identifier: MIT */
#include "proto/frame.h"
#include "tests/tap.h"

static void
records(struct strbuf *sb)
{
	size_t mark;

	frame_hello(sb);
	mark = frame_begin(sb, 7);
	frame_put_u8(sb, 0xab);
	frame_put_u32(sb, 0x01020304);
	frame_put_u64(sb, 0xfffefdfcfbfaf9f8);
	frame_put_str(sb, "text");
	frame_put_bytes(sb, "a\0b", 3);
	frame_end(sb, mark);
	mark = frame_begin(sb, 8);
	frame_end(sb, mark);
}

static void
check_first(struct frame *f)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	const char *p;
	size_t n;

	ok_int(f->type, 7, "the first record's type");
	ok_int(frame_get_u8(f), 0xab, "u8");
	ok_int(frame_get_u32(f), 0x01020304, "u32");
	ok(frame_get_u64(f) == 0xfffefdfcfbfaf9f8, "u64");
	ok(frame_get_str(f, &s) && !strcmp(s.buf, "text"), "a string");
	ok(!frame_is_done(f), "not done while bytes are left");
	p = frame_get_bytes(f, &n);
	ok(n == 3 && !memcmp(p, "a\0b", 3), "bytes with a NUL");
	ok(frame_is_done(f), "done at the end");
	ok_int(frame_get_u8(f), 0, "nothing past the end");
	ok(f->bad && !frame_is_done(f), "which makes the record bad");
}

static void
test_pieces(size_t step)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct frame_reader r = FRAME_READER_INIT;
	struct err e = ERR_INIT;
	struct frame f;
	int seen = 0;

	records(&sb);
	for (size_t at = 0; at < sb.len; at += step) {
		size_t n = sb.len - at < step ? sb.len - at : step;
		int got;

		frame_reader_feed(&r, sb.buf + at, n);
		while ((got = frame_reader_next(&r, &f, &e)) == 1) {
			if (!seen++)
				check_first(&f);
			else
				ok(f.type == 8 && frame_is_done(&f), "an empty record");
		}
		if (got < 0)
			diag("%s", e.text);
	}
	ok_int(seen, 2, "two records, fed in pieces");
	ok(frame_reader_is_empty(&r), "the stream may end here");
	frame_reader_release(&r);
}

/* Feeds the bytes; they must be refused for the reason, and the reader stays refused. */
static void
refused(const void *p, size_t n, const char *why, const char *name)
{
	struct frame_reader r = FRAME_READER_INIT;
	struct err e = ERR_INIT;
	struct frame f;
	int got;

	frame_reader_feed(&r, p, n);
	do {
		got = frame_reader_next(&r, &f, &e);
	} while (got == 1);
	ok_int(got, -1, name);
	ok_err(&e, why, name);
	frame_reader_feed(&r, "\1\0\0\0\7", 5);
	ok_int(frame_reader_next(&r, &f, &e), -1, "and stays refused");
	ok(!frame_reader_is_empty(&r), "and is no good end");
	frame_reader_release(&r);
}
#define REFUSED(bytes, why, name) refused(bytes, sizeof(bytes) - 1, why, name)
#define HELLO "\5\0\0\0\0\1\0\0\0"

static void
test_refusals(void)
{
	struct frame_reader r = FRAME_READER_INIT;
	struct err e = ERR_INIT;
	struct frame f;

	REFUSED("\1\0\0\0\7", "open with a version", "no hello");
	REFUSED("\5\0\0\0\0\2\0\0\0", "protocol version 2", "another version");
	REFUSED("\4\0\0\0\0\1\0\0", "malformed version", "a short hello");
	REFUSED("\6\0\0\0\0\1\0\0\0\0", "malformed version", "a long hello");
	REFUSED(HELLO HELLO, "second version", "a second hello");
	REFUSED(HELLO "\0\0\0\0", "record of 0 bytes", "a record without a type");
	REFUSED(HELLO "\1\0\x10\0", "record of 1048577 bytes", "a record over the limit");
	REFUSED(HELLO "\xff\xff\xff\xff", "record of 4294967295 bytes", "the longest length");

	frame_reader_feed(&r, HELLO "\0\0\x10", 12);
	ok_int(frame_reader_next(&r, &f, &e), 0, "a partial length waits");
	ok(!frame_reader_is_empty(&r), "a stream may not end inside a record");
	frame_reader_feed(&r, "\0", 1);
	ok_int(frame_reader_next(&r, &f, &e), 0, "the longest record waits for its bytes");
	frame_reader_release(&r);
}

static void
test_fields(void)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct frame nul = {1, (const uint8_t *)"\3\0\0\0a\0b", 7, false};
	struct frame cut = {1, (const uint8_t *)"\4\0\0\0abc", 7, false};
	struct frame wide = {1, (const uint8_t *)"\xff\xff\xff\xff", 4, false};
	size_t n;

	ok(!frame_get_str(&nul, &s) && nul.bad, "a string with a NUL");
	ok_str(s.buf, "", "gives the empty string");
	ok(!frame_get_str(&cut, &s) && cut.bad, "a string past the end");
	ok_str(frame_get_bytes(&wide, &n), "", "bytes of an absurd length");
	ok(wide.bad && !n, "are bad and empty");
	ok_int(frame_get_u32(&cut), 0, "a bad record gives zeroes");
}

int
main(void)
{
	test_pieces(1);
	test_pieces(3);
	test_pieces(1000);
	test_refusals();
	test_fields();
	return tap_done();
}

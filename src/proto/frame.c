/* SPDX-License-Identifier: MIT */
/*
 * The writer builds records in a strbuf and patches the length in at the end. The reader keeps one
 * buffer; a record is handed out in place, so nothing is copied but strings.
 */
#include "proto/frame.h"
#include "util/err.h"

enum {
	LENGTH_SIZE = 4
};

static uint32_t
get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void
put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

size_t
frame_begin(struct strbuf *sb, uint8_t type)
{
	size_t mark = sb->len;

	frame_put_u32(sb, 0);
	frame_put_u8(sb, type);
	return mark;
}

void
frame_end(struct strbuf *sb, size_t mark)
{
	size_t n = sb->len - mark - LENGTH_SIZE;
	uint8_t len[LENGTH_SIZE];

	if (n > FRAME_MAX)
		bug("a record of %zu bytes", n);
	put_le32(len, (uint32_t)n);
	memcpy(sb->buf + mark, len, sizeof(len));
}

void
frame_put_u8(struct strbuf *sb, uint8_t v)
{
	strbuf_add(sb, &v, 1);
}

void
frame_put_u32(struct strbuf *sb, uint32_t v)
{
	uint8_t b[4];

	put_le32(b, v);
	strbuf_add(sb, b, sizeof(b));
}

void
frame_put_u64(struct strbuf *sb, uint64_t v)
{
	frame_put_u32(sb, (uint32_t)v);
	frame_put_u32(sb, (uint32_t)(v >> 32));
}

void
frame_put_bytes(struct strbuf *sb, const void *p, size_t n)
{
	if (n > FRAME_MAX)
		bug("a field of %zu bytes", n);
	frame_put_u32(sb, (uint32_t)n);
	strbuf_add(sb, p, n);
}

void
frame_put_str(struct strbuf *sb, const char *s)
{
	frame_put_bytes(sb, s, strlen(s));
}

void
frame_hello(struct strbuf *sb)
{
	size_t mark = frame_begin(sb, FRAME_HELLO);

	frame_put_u32(sb, FRAME_VERSION);
	frame_end(sb, mark);
}

/* The next n bytes of the payload, or NULL and the frame is bad from here on. */
static const uint8_t *
take(struct frame *f, size_t n)
{
	const uint8_t *p = f->p;

	if (f->bad || n > f->n) {
		f->bad = true;
		return NULL;
	}
	f->p += n;
	f->n -= n;
	return p;
}

uint8_t
frame_get_u8(struct frame *f)
{
	const uint8_t *p = take(f, 1);

	return p ? *p : 0;
}

uint32_t
frame_get_u32(struct frame *f)
{
	const uint8_t *p = take(f, 4);

	return p ? get_le32(p) : 0;
}

uint64_t
frame_get_u64(struct frame *f)
{
	const uint8_t *p = take(f, 8);

	return p ? get_le32(p) | (uint64_t)get_le32(p + 4) << 32 : 0;
}

const void *
frame_get_bytes(struct frame *f, size_t *ret_n)
{
	size_t n = frame_get_u32(f);
	const uint8_t *p = take(f, n);

	*ret_n = p ? n : 0;
	return p ? (const void *)p : "";
}

bool
frame_get_str(struct frame *f, struct strbuf *scratch)
{
	size_t n;
	const void *p = frame_get_bytes(f, &n);

	strbuf_reset(scratch);
	if (memchr(p, '\0', n))
		f->bad = true;
	if (f->bad)
		return false;
	strbuf_add(scratch, p, n);
	return true;
}

bool
frame_is_done(const struct frame *f)
{
	return !f->bad && !f->n;
}

void
frame_reader_release(struct frame_reader *r)
{
	strbuf_release(&r->in);
	*r = (struct frame_reader)FRAME_READER_INIT;
}

void
frame_reader_feed(struct frame_reader *r, const void *p, size_t n)
{
	size_t left = r->in.len - r->at;

	if (r->bad)
		return;
	/* Moved only when at least as much was consumed, so each byte moves once on average. */
	if (r->at && r->at >= left) {
		memmove(r->in.buf, r->in.buf + r->at, left);
		strbuf_truncate(&r->in, left);
		r->at = 0;
	}
	strbuf_add(&r->in, p, n);
}

/* The next whole record of any type. 1, 0 or -1 as frame_reader_next. */
static int
next_record(struct frame_reader *r, struct frame *ret, struct err *e)
{
	const uint8_t *p = (const uint8_t *)r->in.buf + r->at;
	size_t left = r->in.len - r->at;
	uint32_t n;

	if (left < LENGTH_SIZE)
		return 0;
	n = get_le32(p);
	if (n < 1 || n > FRAME_MAX)
		return err_set(e, ERR_IO, 0, "a record of %u bytes", n);
	if (left - LENGTH_SIZE < n)
		return 0;
	r->at += LENGTH_SIZE + n;
	*ret = (struct frame){
		.type = p[LENGTH_SIZE],
		.p = p + LENGTH_SIZE + 1,
		.n = n - 1,
	};
	return 1;
}

static int
check_hello(struct frame *f, struct err *e)
{
	uint32_t version;

	if (f->type != FRAME_HELLO)
		return err_set(e, ERR_IO, 0, "a stream that does not open with a version");
	version = frame_get_u32(f);
	if (!frame_is_done(f))
		return err_set(e, ERR_IO, 0, "a malformed version record");
	if (version != FRAME_VERSION)
		return err_set(e, ERR_IO, 0, "protocol version %u, this vx speaks %d", version,
			FRAME_VERSION);
	return 0;
}

int
frame_reader_next(struct frame_reader *r, struct frame *ret, struct err *e)
{
	struct frame f = {0};
	int got;

	if (r->bad)
		return err_set(e, ERR_IO, 0, "a stream that was bad before");
	got = next_record(r, &f, e);
	if (got == 1 && !r->greeted) {
		if (check_hello(&f, e)) {
			got = -1;
		} else {
			r->greeted = true;
			got = next_record(r, &f, e);
		}
	}
	if (got == 1 && f.type == FRAME_HELLO)
		got = err_set(e, ERR_IO, 0, "a second version record");
	if (got < 0)
		r->bad = true;
	if (got == 1)
		*ret = f;
	return got;
}

bool
frame_reader_is_empty(const struct frame_reader *r)
{
	return !r->bad && r->at == r->in.len;
}

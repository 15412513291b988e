/* SPDX-License-Identifier: MIT */
#include "exec/output.h"
#include "util/alloc.h"

/* A run of bytes of one stream; it starts where the one before ends. */
struct output_chunk {
	enum exec_stream stream;
	size_t end;
};

/* What is shown of the bytes: up to head_end and from tail_start on. */
struct view {
	size_t head_end, tail_start;
	uint64_t dropped;
};

void
captured_init(struct captured *c)
{
	*c = (struct captured){.bytes = STRBUF_INIT};
}

void
captured_release(struct captured *c)
{
	strbuf_release(&c->bytes);
	free(c->chunks);
	captured_init(c);
}

bool
captured_is_empty(const struct captured *c)
{
	return !c->bytes.len;
}

static bool
is_continuation(char b)
{
	return ((unsigned char)b & 0xc0) == 0x80;
}

static struct view
view_of(const struct captured *c)
{
	const char *b = c->bytes.buf;
	size_t n = c->bytes.len;
	struct view v = {n, n, c->dropped};

	if (!c->dropped && n <= OUTPUT_HEAD + OUTPUT_TAIL)
		return v;
	v.head_end = c->cut;
	if (!c->dropped) {
		v.head_end = OUTPUT_HEAD;
		while (v.head_end > OUTPUT_HEAD - 3 && is_continuation(b[v.head_end]))
			v.head_end--;
	}
	v.tail_start = n - v.head_end > OUTPUT_TAIL ? n - OUTPUT_TAIL : v.head_end;
	for (int i = 0; i < 3 && v.tail_start < n && is_continuation(b[v.tail_start]); i++)
		v.tail_start++;
	v.dropped += v.tail_start - v.head_end;
	return v;
}

/* Lets go of what the view does not show. */
static void
compact(struct captured *c)
{
	struct view v = view_of(c);
	size_t gone = v.tail_start - v.head_end, to = 0;

	memmove(c->bytes.buf + v.head_end, c->bytes.buf + v.tail_start,
		c->bytes.len - v.tail_start);
	strbuf_truncate(&c->bytes, c->bytes.len - gone);
	for (size_t i = 0; i < c->nchunks; i++) {
		struct output_chunk k = c->chunks[i];

		if (k.end > v.tail_start)
			k.end -= gone;
		else if (k.end > v.head_end)
			k.end = v.head_end;
		if (k.end > (to ? c->chunks[to - 1].end : 0))
			c->chunks[to++] = k;
	}
	c->nchunks = to;
	c->cut = v.head_end;
	c->dropped = v.dropped;
}

void
captured_add(struct captured *c, enum exec_stream stream, const char *p, size_t n)
{
	if (!n)
		return;
	strbuf_add(&c->bytes, p, n);
	if (c->nchunks && c->chunks[c->nchunks - 1].stream == stream) {
		c->chunks[c->nchunks - 1].end = c->bytes.len;
	} else {
		GROW(c->chunks, c->nchunks + 1, c->cap);
		c->chunks[c->nchunks++] = (struct output_chunk){stream, c->bytes.len};
	}
	/* twice the tail, so that the moves cost a constant per byte */
	if (c->bytes.len > OUTPUT_HEAD + 2 * OUTPUT_TAIL)
		compact(c);
}

/* The runs between two places. */
static void
each_between(const struct captured *c, size_t from, size_t to,
	void (*fn)(void *ctx, enum exec_stream stream, const char *p, size_t n), void *ctx)
{
	size_t at = 0;

	for (size_t i = 0; i < c->nchunks; i++) {
		size_t start = at > from ? at : from;
		size_t end = c->chunks[i].end < to ? c->chunks[i].end : to;

		if (start < end)
			fn(ctx, c->chunks[i].stream, c->bytes.buf + start, end - start);
		at = c->chunks[i].end;
	}
}

/* The stream of the byte at a place. */
static enum exec_stream
stream_at(const struct captured *c, size_t place)
{
	for (size_t i = 0; i < c->nchunks; i++)
		if (place < c->chunks[i].end)
			return c->chunks[i].stream;
	return EXEC_STDOUT;
}

void
captured_each(const struct captured *c,
	void (*fn)(void *ctx, enum exec_stream stream, const char *p, size_t n), void *ctx)
{
	struct view v = view_of(c);

	each_between(c, 0, v.head_end, fn, ctx);
	if (v.dropped) {
		cleanup_strbuf struct strbuf note = STRBUF_INIT;

		if (v.head_end && c->bytes.buf[v.head_end - 1] != '\n')
			strbuf_addch(&note, '\n');
		strbuf_addf(&note,
			"[vx: %llu bytes left out here: the first %d MiB and the last %d MiB are "
			"kept]\n",
			(unsigned long long)v.dropped, OUTPUT_HEAD >> 20, OUTPUT_TAIL >> 20);
		fn(ctx, stream_at(c, v.tail_start), note.buf, note.len);
	}
	each_between(c, v.tail_start, c->bytes.len, fn, ctx);
}

/*
 * The blob: "vxo1", dropped and cut (8 bytes each), then per run: stream (1 byte), length (4 bytes),
 * bytes. Numbers are little endian.
 */
static const char magic[4] = {'v', 'x', 'o', '1'};

static void
add_number(struct strbuf *out, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		strbuf_addch(out, (char)(v >> (8 * i)));
}

static void
encode_run(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct strbuf *out = ctx;

	strbuf_addch(out, (char)stream);
	add_number(out, n, 4);
	strbuf_add(out, p, n);
}

void
captured_encode(const struct captured *c, struct strbuf *out)
{
	struct view v = view_of(c);

	strbuf_add(out, magic, sizeof(magic));
	add_number(out, v.dropped, 8);
	add_number(out, v.dropped ? v.head_end : 0, 8);
	each_between(c, 0, v.head_end, encode_run, out);
	each_between(c, v.tail_start, c->bytes.len, encode_run, out);
}

/* What is left of the blob. */
struct input {
	const unsigned char *p;
	size_t n;
};

static bool
get_number(struct input *in, int bytes, uint64_t *ret)
{
	*ret = 0;
	if (in->n < (size_t)bytes)
		return false;
	for (int i = 0; i < bytes; i++)
		*ret |= (uint64_t)in->p[i] << (8 * i);
	in->p += bytes;
	in->n -= (size_t)bytes;
	return true;
}

static int
decode(struct input *in, struct captured *c)
{
	uint64_t cut, stream, n, dropped;

	if (in->n < sizeof(magic) || memcmp(in->p, magic, sizeof(magic)))
		return -1;
	in->p += sizeof(magic);
	in->n -= sizeof(magic);
	if (!get_number(in, 8, &dropped) || !get_number(in, 8, &cut))
		return -1;
	while (in->n) {
		if (!get_number(in, 1, &stream) || !get_number(in, 4, &n) || n > in->n || !n)
			return -1;
		if ((stream != EXEC_STDOUT && stream != EXEC_STDERR) ||
			n > OUTPUT_HEAD + OUTPUT_TAIL - c->bytes.len)
			return -1;
		captured_add(c, (enum exec_stream)stream, (const char *)in->p, n);
		in->p += n;
		in->n -= n;
	}
	if (cut > c->bytes.len || cut > OUTPUT_HEAD || (!dropped && cut))
		return -1;
	c->cut = cut;
	c->dropped = dropped;
	return 0;
}

int
captured_decode(const char *p, size_t n, struct captured *ret)
{
	struct input in = {(const unsigned char *)p, n};

	captured_init(ret);
	if (!decode(&in, ret))
		return 0;
	captured_release(ret);
	return -1;
}

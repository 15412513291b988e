/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/mask.h"
#include "util/strbuf.h"

enum {
	VALUES_MAX = 5,
	VALUE_MAX = 40,
	TEXT_MAX = 120,
	ROUNDS = 2000,
};

/* What the header says, said directly. */
static void
mask_simply(const char (*values)[VALUE_MAX], const size_t *sizes, size_t nvalues, const char *p,
	size_t n, struct strbuf *out)
{
	bool hidden[TEXT_MAX] = {0}, before = false;

	for (size_t v = 0; v < nvalues; v++)
		for (size_t at = 0; sizes[v] >= MASK_SHORTEST && at + sizes[v] <= n; at++)
			if (!memcmp(p + at, values[v], sizes[v]))
				memset(hidden + at, true, sizes[v]);
	for (size_t i = 0; i < n; i++) {
		if (!hidden[i])
			strbuf_addch(out, p[i]);
		else if (!before)
			strbuf_adds(out, "***");
		before = hidden[i];
	}
}

static bool
is_same(const struct strbuf *a, const struct strbuf *b)
{
	return a->len == b->len && !memcmp(a->buf, b->buf, a->len);
}

static unsigned seed;

static unsigned
draw(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

/* Few different bytes, NUL among them, so that values overlap, repeat and begin in one another. */
static void
draw_bytes(char *p, size_t n, unsigned nbytes)
{
	for (size_t i = 0; i < n; i++)
		p[i] = "\0ab\n\xff"[draw(nbytes)];
}

struct round {
	char values[VALUES_MAX][VALUE_MAX], text[TEXT_MAX];
	size_t sizes[VALUES_MAX], nvalues, n;
	struct mask *mask;
	struct strbuf want;
};

static void
draw_round(struct round *r)
{
	unsigned nbytes = 2 + draw(4);

	*r = (struct round){
		.nvalues = 1 + draw(VALUES_MAX), .n = draw(TEXT_MAX), .mask = mask_new()};
	strbuf_init(&r->want);
	draw_bytes(r->text, r->n, nbytes);
	for (size_t v = 0; v < r->nvalues; v++) {
		size_t size = 1 + draw(draw(4) ? 12 : VALUE_MAX);

		r->sizes[v] = size;
		/* Of the text, so that it does occur, or not. */
		if (size <= r->n && draw(4))
			memcpy(r->values[v], r->text + draw((unsigned)(r->n - size) + 1), size);
		else
			draw_bytes(r->values[v], size, nbytes);
		mask_add(r->mask, r->values[v], size);
	}
	mask_finish(r->mask);
	mask_simply(
		(const char(*)[VALUE_MAX])r->values, r->sizes, r->nvalues, r->text, r->n, &r->want);
}

/* In two pieces, or with a step of 1 byte by byte; twice, as a stream is usable again. */
static bool
holds(const struct round *r, size_t cut, size_t step)
{
	struct mask_stream st = {0};
	struct strbuf got = STRBUF_INIT;
	bool good = true;

	for (int again = 0; again < 2; again++) {
		strbuf_reset(&got);
		for (size_t at = 0; at < r->n;) {
			size_t k = at < cut ? cut - at : r->n - at;

			k = step && k > step ? step : k;
			mask_feed(r->mask, &st, r->text + at, k, &got);
			at += k;
		}
		mask_end(r->mask, &st, &got);
		good = good && is_same(&got, &r->want);
	}
	mask_stream_release(&st);
	strbuf_release(&got);
	return good;
}

static void
test_property(void)
{
	size_t bad = 0, nmasked = 0, ncuts = 0;

	for (unsigned i = 1; i <= ROUNDS && !bad; i++) {
		struct round r;

		seed = i;
		draw_round(&r);
		nmasked += r.want.len != r.n || memcmp(r.want.buf, r.text, r.n) != 0;
		for (size_t cut = 0; cut <= r.n && !bad; cut++, ncuts++)
			bad = holds(&r, cut, 0) ? 0 : i;
		for (size_t step = 1; step < 8 && !bad; step++)
			bad = holds(&r, r.n, step) ? 0 : i;
		strbuf_release(&r.want);
		mask_free(r.mask);
	}
	ok_int((long long)bad, 0,
		"split anywhere, the stream is masked as a whole (the seed is not)");
	ok(nmasked > ROUNDS / 3 && nmasked < ROUNDS, "%zu of %d hold a value, in %zu cuts", nmasked,
		ROUNDS, ncuts);
}

static void
says(const struct mask *m, const char *text, const char *want, const char *name)
{
	char *got = mask_text(m, text);

	ok_str(got, want, name);
	free(got);
}

static void
add(struct mask *m, const char *value)
{
	mask_add(m, value, strlen(value));
}

static void
test_examples(void)
{
	struct mask *m = mask_new();
	struct mask_stream st = {0};
	struct strbuf out = STRBUF_INIT;

	ok(mask_is_empty(m), "a mask without a value");
	add(m, "short");
	ok(mask_is_empty(m), "a value of five bytes is none");
	add(m, "hunter2");
	add(m, "er2-abcdef");
	add(m, "s3cr3t");
	ok(!mask_is_empty(m), "one of six is");
	mask_finish(m);
	says(m, "", "", "no text");
	says(m, "pw=hunter2;", "pw=***;", "in the middle");
	says(m, "hunter2", "***", "all of it");
	says(m, "hunter", "hunter", "the beginning of one is none");
	says(m, "hunter2-abcdef!", "***!", "two that overlap");
	says(m, "hunter2s3cr3t", "***", "two beside each other");
	says(m, "hunter2 s3cr3t", "*** ***", "a blank between");
	says(m, "hunhunter2", "hun***", "behind what looks like it");
	says(m, "hunter2-abcdeF", "***-abcdeF", "one, and the beginning of another");
	says(NULL, "hunter2", "hunter2", "without a mask: a copy");
	mask_feed(m, &st, "a hunt", 6, &out);
	ok_str(out.buf, "a ", "what may begin one is held back");
	mask_feed(m, &st, "s", 1, &out);
	ok_str(out.buf, "a hunt", "until it is known, which this s may begin, too");
	mask_end(m, &st, &out);
	ok_str(out.buf, "a hunts", "or the stream ends");
	mask_stream_release(&st);
	strbuf_release(&out);
	mask_free(m);
}

int
main(void)
{
	test_examples();
	test_property();
	return tap_done();
}

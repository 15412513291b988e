/* SPDX-License-Identifier: MIT */
#include "util/mask.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/strbuf.h"

enum {
	SKIP = MASK_SHORTEST - 1,
	PAIRS = 1 << 16,
};

/* The beginning of some value. 0 is the empty one. */
struct node {
	uint32_t child, sibling; /* one byte longer; others of the same length and parent */
	uint32_t fail;           /* the longest other node that this one ends in */
	uint32_t depth;
	uint32_t text;    /* where in `texts` a value stands that begins so */
	uint32_t longest; /* length of the longest value that this ends in, 0: none */
	unsigned char byte;
};

struct mask {
	struct node *nodes;
	size_t n, cap;
	struct strbuf texts;
	uint32_t first[256]; /* the children of 0 */
	/* A bit for each two bytes that stand next to each other in the first MASK_SHORTEST bytes of a value. */
	uint32_t pairs[PAIRS / 32];
};

/* Bytes of the stream, counted from its start. */
struct mask_run {
	uint64_t start, end;
};

struct mask *
mask_new(void)
{
	struct mask *m = xcalloc(1, sizeof(*m));

	strbuf_init(&m->texts);
	GROW(m->nodes, 1, m->cap);
	m->nodes[m->n++] = (struct node){0};
	return m;
}

void
mask_free(struct mask *m)
{
	if (!m)
		return;
	strbuf_release(&m->texts);
	free(m->nodes);
	free(m);
}

bool
mask_is_empty(const struct mask *m)
{
	return m->n == 1;
}

static uint32_t
child_of(const struct mask *m, uint32_t v, unsigned char c)
{
	if (!v)
		return m->first[c];
	for (v = m->nodes[v].child; v && m->nodes[v].byte != c; v = m->nodes[v].sibling)
		;
	return v;
}

static uint32_t
add_child(struct mask *m, uint32_t v, unsigned char c, uint32_t text)
{
	uint32_t child = (uint32_t)m->n;

	GROW(m->nodes, m->n + 1, m->cap);
	m->nodes[m->n++] = (struct node){.sibling = m->nodes[v].child,
		.depth = m->nodes[v].depth + 1,
		.text = text,
		.byte = c};
	m->nodes[v].child = child;
	if (!v)
		m->first[c] = child;
	return child;
}

static uint16_t
pair_at(const char *p)
{
	uint16_t pair;

	memcpy(&pair, p, sizeof(pair));
	return pair;
}

void
mask_add(struct mask *m, const char *value, size_t n)
{
	size_t text = m->texts.len;
	uint32_t v = 0;

	/* The environment of a process is smaller by far; numbers of nodes have 32 bits. */
	if (n < MASK_SHORTEST || n >= UINT32_MAX / 2 - text)
		return;
	strbuf_add(&m->texts, value, n);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)value[i];
		uint32_t next = child_of(m, v, c);

		v = next ? next : add_child(m, v, c, (uint32_t)text);
	}
	m->nodes[v].longest = (uint32_t)n;
	for (size_t i = 0; i < SKIP; i++) {
		uint16_t pair = pair_at(value + i);

		m->pairs[pair / 32] |= 1u << (pair % 32);
	}
}

/* Where the stream stands after one byte more. */
static uint32_t
go_on(const struct mask *m, uint32_t v, unsigned char c)
{
	uint32_t next;

	while (!(next = child_of(m, v, c)) && v)
		v = m->nodes[v].fail;
	return next;
}

/* By length, so that what a node fails to is done before it. */
void
mask_finish(struct mask *m)
{
	cleanup_free uint32_t *queue = xcalloc(m->n, sizeof(*queue));
	size_t n = 1; /* the root */

	for (size_t at = 0; at < n; at++) {
		uint32_t v = queue[at];

		for (uint32_t c = m->nodes[v].child; c; c = m->nodes[c].sibling) {
			struct node *node = &m->nodes[c];

			node->fail = v ? go_on(m, m->nodes[v].fail, node->byte) : 0;
			if (!node->longest)
				node->longest = m->nodes[node->fail].longest;
			queue[n++] = c;
		}
	}
}

/* The last n bytes that were taken belong to a value. */
static void
add_run(struct mask_stream *st, size_t n)
{
	struct mask_run run = {st->taken - n, st->taken};

	while (st->nruns && st->runs[st->nruns - 1].end >= run.start) {
		if (st->runs[st->nruns - 1].start < run.start)
			run.start = st->runs[st->nruns - 1].start;
		st->nruns--;
	}
	GROW(st->runs, st->nruns + 1, st->cap);
	st->runs[st->nruns++] = run;
}

/* Bytes of which all is known, the first of them number `at` of the stream. */
static void
write_out(struct mask_stream *st, const char *p, size_t n, uint64_t at, struct strbuf *out)
{
	size_t used = 0;

	while (n) {
		const struct mask_run *run = used < st->nruns ? &st->runs[used] : NULL;
		bool is_in = run && run->start <= at;
		uint64_t left = is_in ? run->end - at : run ? run->start - at : n;
		size_t k = left < n ? (size_t)left : n;

		if (!is_in)
			strbuf_add(out, p, k);
		else if (!st->starred)
			strbuf_adds(out, "***");
		st->starred = is_in;
		p += k;
		n -= k;
		at += k;
		used += is_in && at == run->end;
	}
	if (used) {
		st->nruns -= used;
		memmove(st->runs, st->runs + used, st->nruns * sizeof(*st->runs));
	}
}

static void
step(const struct mask *m, struct mask_stream *st, char c, struct strbuf *out)
{
	const struct node *was = &m->nodes[st->node], *is;
	uint64_t at = st->taken - was->depth; /* of the first byte that is held back */
	size_t n;

	st->node = go_on(m, st->node, (unsigned char)c);
	is = &m->nodes[st->node];
	st->taken++;
	if (is->longest)
		add_run(st, is->longest);
	n = was->depth + 1 - is->depth;
	if (n > was->depth) {
		write_out(st, m->texts.buf + was->text, was->depth, at, out);
		write_out(st, &c, 1, at + was->depth, out);
	} else {
		write_out(st, m->texts.buf + was->text, n, at, out);
	}
}

static bool
may_be_near(const struct mask *m, const char *p)
{
	uint16_t pair = pair_at(p + SKIP - 1);

	return m->pairs[pair / 32] >> (pair % 32) & 1;
}

/* How many of these bytes lie before the first that may begin a value. */
static size_t
pass_over(const struct mask *m, const char *p, size_t n)
{
	const char *at = p, *end = p + n;

	for (; at < end; at++) {
		while (end - at >= MASK_SHORTEST && !may_be_near(m, at))
			at += SKIP;
		if (m->first[(unsigned char)*at])
			break;
	}
	return (size_t)(at - p);
}

void
mask_feed(const struct mask *m, struct mask_stream *st, const char *p, size_t n, struct strbuf *out)
{
	while (n) {
		size_t k = st->node ? 0 : pass_over(m, p, n);

		if (k) {
			strbuf_add(out, p, k);
			st->starred = false;
			st->taken += k;
		} else {
			step(m, st, *p, out);
			k = 1;
		}
		p += k;
		n -= k;
	}
}

void
mask_end(const struct mask *m, struct mask_stream *st, struct strbuf *out)
{
	const struct node *v = &m->nodes[st->node];

	write_out(st, m->texts.buf + v->text, v->depth, st->taken - v->depth, out);
	st->node = 0;
	st->starred = false;
	st->taken = 0;
}

void
mask_stream_release(struct mask_stream *st)
{
	free(st->runs);
	*st = (struct mask_stream){0};
}

void
mask_whole(const struct mask *m, const char *p, size_t n, struct strbuf *out)
{
	struct mask_stream st = {0};

	if (!m) {
		strbuf_add(out, p, n);
		return;
	}
	mask_feed(m, &st, p, n, out);
	mask_end(m, &st, out);
	mask_stream_release(&st);
}

char *
mask_text(const struct mask *m, const char *text)
{
	struct strbuf out = STRBUF_INIT;

	mask_whole(m, text, strlen(text), &out);
	return strbuf_take(&out);
}

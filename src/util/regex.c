/* SPDX-License-Identifier: MIT */
#include "util/regex.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/regex-private.h"
#include "util/utf8.h"

uint32_t
regex_char(const char *p, size_t n, size_t *ret_len)
{
	static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t len = utf8_char(p, n);
	uint32_t c;

	if (!len) {
		*ret_len = 1;
		return REGEX_RAW + (unsigned char)*p;
	}
	*ret_len = len;
	c = (unsigned char)*p & lead[len];
	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3f);
	return c;
}

struct regex *
regex_new(const char *pattern, struct err *e)
{
	struct regex *re = xcalloc(1, sizeof(*re));

	if (!regex_parse(re, pattern, e))
		return re;
	regex_free(re);
	return NULL;
}

void
regex_free(struct regex *re)
{
	if (!re)
		return;
	free(re->steps);
	free(re->ranges);
	free(re);
}

/* The steps at which a walk stands, each once. */
struct places {
	size_t *v, n;
	bool *in;
};

/* Between two characters of the text. */
struct gap {
	bool begin, end;
	bool edge; /* of a word */
};

static bool
is_word(uint32_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_';
}

static bool
takes(const struct regex *re, const struct regex_step *s, uint32_t c)
{
	for (size_t i = 0; i < s->y; i++)
		if (c >= re->ranges[s->x + i].from && c <= re->ranges[s->x + i].to)
			return !s->negated;
	return s->negated;
}

/* Adds what can be reached from `at` without a character; `stack` has room for every step. True: a match
 * can. */
static bool
reach(const struct regex *re, size_t at, const struct gap *gap, struct places *p, size_t *stack)
{
	size_t n = 0;

	if (p->in[at])
		return false;
	p->in[at] = true;
	stack[n++] = at;
	while (n) {
		const struct regex_step *s = &re->steps[stack[--n]];
		size_t next[2] = {(size_t)(s - re->steps) + 1, 0}, nnext = 1;

		switch (s->op) {
		case RE_MATCH:
			return true;
		case RE_SET:
			p->v[p->n++] = (size_t)(s - re->steps);
			nnext = 0;
			break;
		case RE_JUMP:
			next[0] = s->x;
			break;
		case RE_FORK:
			next[0] = s->x;
			next[1] = s->y;
			nnext = 2;
			break;
		case RE_BEGIN:
			nnext = gap->begin;
			break;
		case RE_END:
			nnext = gap->end;
			break;
		case RE_WORD_EDGE:
			nnext = gap->edge != s->negated;
			break;
		}
		for (size_t i = 0; i < nnext; i++) {
			if (p->in[next[i]])
				continue;
			p->in[next[i]] = true;
			stack[n++] = next[i];
		}
	}
	return false;
}

/*
 * Between two pieces: at which steps the walk is to enter once the next character, or the end, says what
 * the gap after the last one is.
 */
struct regex_search {
	const struct regex *re;
	size_t *enter, nenter;
	bool begins, found, was_word;
	char part[4]; /* what may be the beginning of a character */
	size_t npart;
	/* Of one step: */
	struct places now;
	size_t *stack;
};

struct regex_search *
regex_search_new(const struct regex *re)
{
	struct regex_search *s = xcalloc(1, sizeof(*s));

	s->re = re;
	s->enter = xcalloc(3 * re->n, sizeof(*s->enter));
	s->stack = s->enter + re->n;
	s->now = (struct places){s->stack + re->n, 0, xcalloc(re->n, sizeof(bool))};
	regex_search_restart(s);
	return s;
}

void
regex_search_free(struct regex_search *s)
{
	if (!s)
		return;
	free(s->now.in);
	free(s->enter);
	free(s);
}

void
regex_search_restart(struct regex_search *s)
{
	s->nenter = s->npart = 0;
	s->begins = true;
	s->found = s->was_word = false;
}

/* Where the walk stands in the gap; true: a match ends there. */
static bool
stand(struct regex_search *s, bool end, bool word)
{
	const struct gap gap = {s->begins, end, word != s->was_word};

	s->now.n = 0;
	memset(s->now.in, 0, s->re->n * sizeof(*s->now.in));
	for (size_t i = 0; i < s->nenter; i++)
		if (reach(s->re, s->enter[i], &gap, &s->now, s->stack))
			return true;
	/* A match may begin anywhere. */
	return reach(s->re, 0, &gap, &s->now, s->stack);
}

static void
walk(struct regex_search *s, uint32_t c)
{
	bool word = is_word(c);

	if (stand(s, false, word)) {
		s->found = true;
		return;
	}
	s->nenter = 0;
	for (size_t i = 0; i < s->now.n; i++)
		if (takes(s->re, &s->re->steps[s->now.v[i]], c))
			s->enter[s->nenter++] = s->now.v[i] + 1;
	s->was_word = word;
	s->begins = false;
}

/* The characters of p[0..n) but for what more bytes could make one of (last: could not): how many bytes. */
static size_t
walk_all(struct regex_search *s, const char *p, size_t n, bool last)
{
	size_t at = 0;

	while (at < n && !s->found) {
		size_t len;
		uint32_t c;

		if (!last && utf8_may_begin(p + at, n - at))
			break;
		c = regex_char(p + at, n - at, &len);
		walk(s, c);
		at += len;
	}
	return at;
}

bool
regex_search_feed(struct regex_search *s, const char *text, size_t n)
{
	size_t at = 0;

	while (s->npart && at < n && !s->found) {
		size_t used;

		s->part[s->npart++] = text[at++];
		used = walk_all(s, s->part, s->npart, false);
		memmove(s->part, s->part + used, s->npart - used);
		s->npart -= used;
	}
	at += walk_all(s, text + at, n - at, false);
	/* At most three bytes: four are a character or none. */
	while (at < n && !s->found)
		s->part[s->npart++] = text[at++];
	return s->found;
}

bool
regex_search_ends(struct regex_search *s)
{
	walk_all(s, s->part, s->npart, true);
	s->npart = 0;
	s->found = s->found || stand(s, true, false);
	return s->found;
}

bool
regex_search_could_end(struct regex_search *s)
{
	return s->found || (!s->npart && stand(s, true, false));
}

bool
regex_finds(const struct regex *re, const char *text, size_t n)
{
	struct regex_search *s = regex_search_new(re);
	bool found = regex_search_feed(s, text, n) || regex_search_ends(s);

	regex_search_free(s);
	return found;
}

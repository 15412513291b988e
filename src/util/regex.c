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

bool
regex_finds(const struct regex *re, const char *text, size_t n)
{
	size_t *mem = xcalloc(3 * re->n, sizeof(*mem)), *stack = mem + re->n,
	       *enter = stack + re->n;
	bool *in = xcalloc(re->n, sizeof(*in));
	struct places now = {mem, 0, in};
	size_t nenter = 0, len = 0;
	bool found = false, was_word = false;

	for (size_t at = 0;; at += len) {
		uint32_t c = at < n ? regex_char(text + at, n - at, &len) : 0;
		bool word = at < n && is_word(c);
		const struct gap gap = {!at, at >= n, word != was_word};

		now.n = 0;
		memset(in, 0, re->n * sizeof(*in));
		for (size_t i = 0; i < nenter && !found; i++)
			found = reach(re, enter[i], &gap, &now, stack);
		/* A match may begin anywhere. */
		found = found || reach(re, 0, &gap, &now, stack);
		if (found || at >= n)
			break;
		nenter = 0;
		for (size_t i = 0; i < now.n; i++)
			if (takes(re, &re->steps[now.v[i]], c))
				enter[nenter++] = now.v[i] + 1;
		was_word = word;
	}
	free(in);
	free(mem);
	return found;
}

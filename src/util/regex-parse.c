/* SPDX-License-Identifier: MIT */
/*
 * Recursive descent that leaves steps behind. The steps of a part stand together and lead only to each
 * other or to the step after the last, so that a part can be moved and copied.
 */
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/regex-private.h"
#include "util/regex.h"
#include <limits.h>

enum {
	DEPTH_MAX = 100,
	COUNT_MAX = REGEX_STEPS_MAX,
};

struct parser {
	struct regex *re;
	const char *begin, *p;
	unsigned depth;
	struct err *e;
};

static int
fault(const struct parser *s, const char *at, const char *what)
{
	size_t n = 1;

	for (const char *c = s->begin; c < at; c++)
		n += ((unsigned char)*c & 0xc0) != 0x80;
	return err_set(s->e, ERR_CONFIG, 0, "at character %zu: %s", n, what);
}

/* Steps. */

static int
emit(struct parser *s, struct regex_step step)
{
	struct regex *re = s->re;

	if (re->n >= REGEX_STEPS_MAX)
		return fault(s, s->p, "the expression is too large");
	GROW(re->steps, re->n + 1, re->cap);
	re->steps[re->n++] = step;
	return 0;
}

static void
shift(struct regex_step *step, size_t by)
{
	if (step->op == RE_JUMP || step->op == RE_FORK)
		step->x += by;
	if (step->op == RE_FORK)
		step->y += by;
}

/* Puts a fork before the part that begins at `start` and ends at the end: it goes there, or to y. */
static int
fork_before(struct parser *s, size_t start)
{
	struct regex *re = s->re;

	if (emit(s, (struct regex_step){.op = RE_MATCH}))
		return -1;
	memmove(&re->steps[start + 1], &re->steps[start], (re->n - 1 - start) * sizeof(*re->steps));
	for (size_t i = start + 1; i < re->n; i++)
		shift(&re->steps[i], 1);
	re->steps[start] = (struct regex_step){.op = RE_FORK, .x = start + 1, .y = re->n};
	return 0;
}

static void
add_range(struct parser *s, uint32_t from, uint32_t to)
{
	struct regex *re = s->re;

	GROW(re->ranges, re->nranges + 1, re->ranges_cap);
	re->ranges[re->nranges++] = (struct regex_range){from, to};
}

static int
emit_set(struct parser *s, size_t first, bool negated)
{
	return emit(s, (struct regex_step){RE_SET, negated, first, s->re->nranges - first});
}

/* Classes. */

static const struct regex_range digits[] = {{'0', '9'}, {0, 0}};
static const struct regex_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0, 0}};
static const struct regex_range blanks[] = {{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0},
	{0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
	{0x3000, 0x3000}, {0xfeff, 0xfeff}, {0, 0}};

/* The ranges of \d, \w, \s, or all between them for the capital letter. False: no class. */
static bool
add_class(struct parser *s, char letter)
{
	const struct regex_range *r;
	uint32_t next = 0;

	switch (letter | 0x20) {
	case 'd':
		r = digits;
		break;
	case 'w':
		r = words;
		break;
	case 's':
		r = blanks;
		break;
	default:
		return false;
	}
	for (; r->to; r++) {
		if (letter & 0x20)
			add_range(s, r->from, r->to);
		else
			add_range(s, next, r->from - 1);
		next = r->to + 1;
	}
	if (!(letter & 0x20))
		add_range(s, next, UINT32_MAX);
	return true;
}

/* Characters. */

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
hex(struct parser *s, const char *at, unsigned n, uint32_t *ret)
{
	static const char hexdigits[] = "0123456789abcdef";
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++, s->p++) {
		char c = is_letter(*s->p) ? (char)(*s->p | 0x20) : *s->p;
		const char *d = c ? strchr(hexdigits, c) : NULL;

		if (!d)
			return fault(s, at,
				n == 2 ? "write two hexadecimal digits after \\x"
				       : "write four hexadecimal digits after \\u");
		v = v << 4 | (uint32_t)(d - hexdigits);
	}
	*ret = v;
	return 0;
}

/* What follows the backslash at s->p[-1], where it is one character. */
static int
escaped(struct parser *s, uint32_t *ret)
{
	static const char names[] = "tnvfr", values[] = "\t\n\v\f\r";
	const char *at = s->p - 1, *name;
	char c = *s->p;
	size_t len;

	if (!c)
		return fault(s, at, "nothing after the backslash");
	*ret = regex_char(s->p, strlen(s->p), &len);
	s->p += len;
	name = strchr(names, c);
	if (name) {
		*ret = (unsigned char)values[name - names];
		return 0;
	}
	switch (c) {
	case '0':
		if (is_digit(*s->p))
			return fault(s, at, "octal numbers are not supported: write \\xHH");
		*ret = 0;
		return 0;
	case 'c':
		if (!is_letter(*s->p))
			return fault(s, at, "write a letter after \\c");
		*ret = (unsigned char)*s->p++ & 0x1f;
		return 0;
	case 'x':
		return hex(s, at, 2, ret);
	case 'u':
		return hex(s, at, 4, ret);
	case 'k':
		return fault(s, at, "references back are not supported");
	case 'p':
	case 'P':
		return fault(s, at, "properties (\\p) are not supported: write the characters");
	default:
		break;
	}
	if (is_digit(c))
		return fault(s, at, "references back are not supported");
	if (is_letter(c))
		return fault(s, at, "a backslash before this letter has no meaning");
	return 0;
}

/* One member of a set. *ret_class: it was a class, whose ranges are there. */
static int
member(struct parser *s, uint32_t *ret, bool *ret_class)
{
	size_t len;

	*ret_class = false;
	if (*s->p != '\\') {
		*ret = regex_char(s->p, strlen(s->p), &len);
		s->p += len;
		return 0;
	}
	s->p++;
	if (add_class(s, *s->p)) {
		*ret_class = true;
		s->p++;
		return 0;
	}
	if (*s->p == 'b') {
		*ret = '\b';
		s->p++;
		return 0;
	}
	return escaped(s, ret);
}

/* After the bracket. */
static int
set(struct parser *s)
{
	const char *open = s->p - 1;
	size_t first = s->re->nranges;
	bool negated = *s->p == '^';

	s->p += negated;
	while (*s->p != ']') {
		const char *at = s->p;
		uint32_t from, to;
		bool class, to_class = true;

		if (!*s->p)
			return fault(s, open, "this bracket is not closed");
		if (member(s, &from, &class))
			return -1;
		to = from;
		if (*s->p == '-' && s->p[1] && s->p[1] != ']') {
			s->p++;
			if (member(s, &to, &to_class))
				return -1;
			if (!class && !to_class && to < from)
				return fault(s, at, "this range ends before it begins");
			/* A class ends no range: the hyphen is one. */
			if (class || to_class)
				add_range(s, '-', '-');
			if (class != to_class)
				to = from = class ? to : from;
			class = class && to_class;
		}
		if (!class)
			add_range(s, from, to);
	}
	s->p++;
	return emit_set(s, first, negated);
}

/* Parts. */

static int alternatives(struct parser *s);

/* After the parenthesis. */
static int
group(struct parser *s)
{
	const char *open = s->p - 1;

	if (++s->depth > DEPTH_MAX)
		return fault(s, open, "too many parentheses inside each other");
	if (*s->p == '?') {
		const char *name = s->p + 2;

		if (s->p[1] == '=' || s->p[1] == '!')
			return fault(s, open, "looks ahead are not supported");
		if (s->p[1] == '<' && (*name == '=' || *name == '!'))
			return fault(s, open, "looks behind are not supported");
		if (s->p[1] == ':')
			s->p = name;
		else if (s->p[1] == '<' && (is_letter(*name) || *name == '_' || *name == '$') &&
			 strchr(name, '>'))
			s->p = strchr(name, '>') + 1;
		else
			return fault(s, open, "only (…), (?:…) and (?<name>…) are supported");
	}
	if (alternatives(s))
		return -1;
	if (*s->p != ')')
		return fault(s, open, "this parenthesis is not closed");
	s->p++;
	s->depth--;
	return 0;
}

/* "{2}", "{2,}" or "{2,5}"; anything else is a brace like any other character. */
static bool
counts(const char **p, unsigned *ret_least, unsigned *ret_most)
{
	unsigned v[2] = {0, 0};
	const char *c = *p + 1;
	bool open = false;

	if (**p != '{' || !is_digit(*c))
		return false;
	for (int i = 0; i < 2; i++) {
		for (; is_digit(*c); c++)
			v[i] = v[i] < COUNT_MAX ? v[i] * 10 + (unsigned)(*c - '0') : v[i];
		if (i || *c != ',') {
			v[1] = i ? v[1] : v[0];
			break;
		}
		c++;
		open = !is_digit(*c);
	}
	if (*c != '}')
		return false;
	*p = c + 1;
	*ret_least = v[0];
	*ret_most = open ? UINT_MAX : v[1];
	return true;
}

/* The quantifier at s->p, if there is one. */
static bool
quantifier(struct parser *s, unsigned *ret_least, unsigned *ret_most)
{
	switch (*s->p) {
	case '*':
		*ret_least = 0;
		*ret_most = UINT_MAX;
		break;
	case '+':
		*ret_least = 1;
		*ret_most = UINT_MAX;
		break;
	case '?':
		*ret_least = 0;
		*ret_most = 1;
		break;
	default:
		return counts(&s->p, ret_least, ret_most);
	}
	s->p++;
	return true;
}

static int
append(struct parser *s, const struct regex_step *part, size_t n, size_t from)
{
	size_t start = s->re->n;

	for (size_t i = 0; i < n; i++) {
		struct regex_step step = part[i];

		shift(&step, start - from);
		if (emit(s, step))
			return -1;
	}
	return 0;
}

/* The part that begins at `start` as often as that. */
static int
repeat(struct parser *s, size_t start, unsigned least, unsigned most)
{
	struct regex *re = s->re;
	size_t n = re->n - start, last = start;
	cleanup_free struct regex_step *part = xcalloc(n, sizeof(*part));

	if (n)
		memcpy(part, re->steps + start, n * sizeof(*part));
	/* Of none: what is there twice must not be there in vain. */
	re->n = n ? start : re->n;
	if (!n)
		return 0;
	for (unsigned i = 0; i < least; i++) {
		last = re->n;
		if (append(s, part, n, start))
			return -1;
	}
	if (most == UINT_MAX && least)
		return emit(s, (struct regex_step){.op = RE_FORK, .x = last, .y = re->n + 1});
	for (unsigned i = least; i < most; i++) {
		last = re->n;
		if (append(s, part, n, start) || fork_before(s, last))
			return -1;
		if (most == UINT_MAX) {
			if (emit(s, (struct regex_step){.op = RE_JUMP, .x = last}))
				return -1;
			re->steps[last].y = re->n;
			break;
		}
	}
	return 0;
}

/* One character, set, group or assertion. *ret_repeats: a quantifier may follow. */
static int
atom(struct parser *s, bool *ret_repeats)
{
	size_t first = s->re->nranges, len;
	const char *at = s->p;
	uint32_t c;

	*ret_repeats = true;
	switch (*s->p++) {
	case '(':
		return group(s);
	case '[':
		return set(s);
	case '.':
		add_range(s, '\n', '\n');
		add_range(s, '\r', '\r');
		add_range(s, 0x2028, 0x2029);
		return emit_set(s, first, true);
	case '^':
		*ret_repeats = false;
		return emit(s, (struct regex_step){.op = RE_BEGIN});
	case '$':
		*ret_repeats = false;
		return emit(s, (struct regex_step){.op = RE_END});
	case '*':
	case '+':
	case '?':
		return fault(s, at, "there is nothing to repeat");
	case '\\':
		if (*s->p == 'b' || *s->p == 'B') {
			*ret_repeats = false;
			return emit(s,
				(struct regex_step){.op = RE_WORD_EDGE, .negated = *s->p++ == 'B'});
		}
		if (add_class(s, *s->p)) {
			s->p++;
			return emit_set(s, first, false);
		}
		if (escaped(s, &c))
			return -1;
		break;
	default:
		s->p = at;
		c = regex_char(s->p, strlen(s->p), &len);
		s->p += len;
		break;
	}
	add_range(s, c, c);
	return emit_set(s, first, false);
}

static int
sequence(struct parser *s)
{
	while (*s->p && *s->p != '|' && *s->p != ')') {
		unsigned least = 1, most = 1;
		size_t start = s->re->n;
		const char *at = s->p;
		bool repeats;

		/* "{2}" repeats, too; but a brace that counts nothing is one. */
		if (counts(&at, &least, &most))
			return fault(s, s->p, "there is nothing to repeat");
		if (atom(s, &repeats))
			return -1;
		at = s->p;
		if (!quantifier(s, &least, &most))
			continue;
		if (!repeats)
			return fault(s, at, "there is nothing to repeat");
		if (least > most)
			return fault(s, at, "this counts down");
		/* The fewest first or the most: whether there is a match is the same. */
		s->p += *s->p == '?';
		if (repeat(s, start, least, most))
			return -1;
	}
	return 0;
}

/* Each but the last: a fork before it, to the next; a jump after it, to the end. The jumps are chained
 * until the end is known. */
static int
alternatives(struct parser *s)
{
	struct regex *re = s->re;
	size_t arm = re->n, jump = SIZE_MAX;

	for (;;) {
		if (sequence(s))
			return -1;
		if (*s->p != '|')
			break;
		s->p++;
		if (fork_before(s, arm) || emit(s, (struct regex_step){.op = RE_JUMP, .x = jump}))
			return -1;
		jump = re->n - 1;
		re->steps[arm].y = re->n;
		arm = re->n;
	}
	while (jump != SIZE_MAX) {
		size_t before = re->steps[jump].x;

		re->steps[jump].x = re->n;
		jump = before;
	}
	return 0;
}

int
regex_parse(struct regex *re, const char *pattern, struct err *e)
{
	struct parser s = {re, pattern, pattern, 0, e};

	if (alternatives(&s))
		return -1;
	if (*s.p)
		return fault(&s, s.p, "this parenthesis was not opened");
	return emit(&s, (struct regex_step){.op = RE_MATCH});
}

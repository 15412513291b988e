/* SPDX-License-Identifier: MIT */
#include "workspace/semver.h"

/* major, minor, patch and, after '-', the prerelease identifiers. In a range the first `given` of
 * the three were written; the rest are wildcards. */
struct version {
	uint64_t n[3];
	unsigned given;
	const char *pre;
	size_t prelen;
};

enum operator{
	OP_NONE,
	OP_EQ,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_TILDE,
	OP_CARET
};

/* One set of comparators, judged as it is read. A version with a prerelease satisfies a set only
 * when some comparator names a prerelease of the same major.minor.patch. */
struct judge {
	const struct version *v;
	bool holds;
	bool pre_named;
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_identifier(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Dot-separated identifiers, none empty. Returns the end, NULL when there is none. */
static const char *
skip_identifiers(const char *s, const char *end)
{
	for (;;) {
		const char *start = s;

		while (s < end && is_identifier(*s))
			s++;
		if (s == start)
			return NULL;
		if (s == end || *s != '.')
			return s;
		s++;
	}
}

static bool
parse_number(const char **s, const char *end, uint64_t *ret)
{
	const char *p = *s;
	uint64_t n = 0;

	while (p < end && is_digit(*p)) {
		n = n * 10 + (uint64_t)(*p++ - '0');
		if (p - *s > 16)
			return false;
	}
	if (p == *s || (**s == '0' && p - *s > 1))
		return false;
	*s = p;
	*ret = n;
	return true;
}

/* A whole or partial version in [s, end), all of it: "1.2.3-rc.1+build", "1.x", "*". */
static bool
parse_version(const char *s, const char *end, struct version *ret)
{
	struct version v = {0};
	bool wild = false;

	if (s < end && (*s == 'v' || *s == '='))
		s++;
	for (unsigned i = 0; i < 3; i++) {
		if (i) {
			if (s == end)
				break;
			if (*s != '.')
				return false;
			s++;
		}
		if (s < end && (*s == 'x' || *s == 'X' || *s == '*')) {
			wild = true;
			s++;
		} else if (!parse_number(&s, end, &v.n[i])) {
			return false;
		} else if (!wild) {
			v.given = i + 1;
		} else {
			v.n[i] = 0; /* 1.x.3 is 1.x */
		}
	}
	if (s < end && *s == '-') {
		v.pre = ++s;
		s = skip_identifiers(s, end);
		if (!s)
			return false;
		v.prelen = (size_t)(s - v.pre);
		if (v.given < 3)
			v.prelen = 0;
	}
	if (s < end && *s == '+') {
		s = skip_identifiers(s + 1, end);
		if (!s)
			return false;
	}
	if (s != end)
		return false;
	*ret = v;
	return true;
}

static int
compare_tuple(const uint64_t a[3], const uint64_t b[3])
{
	for (unsigned i = 0; i < 3; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static size_t
identifier_len(const char *s, size_t n)
{
	const char *dot = memchr(s, '.', n);

	return dot ? (size_t)(dot - s) : n;
}

static int
compare_identifier(const char *a, size_t na, const char *b, size_t nb)
{
	bool num_a = true, num_b = true;
	int c;

	for (size_t i = 0; i < na; i++)
		num_a &= is_digit(a[i]);
	for (size_t i = 0; i < nb; i++)
		num_b &= is_digit(b[i]);
	if (num_a != num_b)
		return num_a ? -1 : 1;
	if (num_a && na != nb)
		return na < nb ? -1 : 1;
	c = memcmp(a, b, na < nb ? na : nb);
	if (c)
		return c;
	return na == nb ? 0 : na < nb ? -1 : 1;
}

static int
compare_pre(const char *a, size_t na, const char *b, size_t nb)
{
	if (!na || !nb)
		return na == nb ? 0 : na ? -1 : 1; /* the release comes after its prereleases */
	for (;;) {
		size_t la = identifier_len(a, na), lb = identifier_len(b, nb);
		int c = compare_identifier(a, la, b, lb);

		if (c)
			return c;
		if (la == na || lb == nb)
			return la == na && lb == nb ? 0 : la == na ? -1 : 1;
		a += la + 1;
		na -= la + 1;
		b += lb + 1;
		nb -= lb + 1;
	}
}

static int
compare(const struct version *a, const struct version *b)
{
	int c = compare_tuple(a->n, b->n);

	return c ? c : compare_pre(a->pre, a->prelen, b->pre, b->prelen);
}

static void
require(struct judge *j, enum operator op, const struct version *bound)
{
	int c = compare(j->v, bound);

	if (bound->prelen && !compare_tuple(j->v->n, bound->n))
		j->pre_named = true;
	switch (op) {
	case OP_LT:
		j->holds &= c < 0;
		break;
	case OP_LE:
		j->holds &= c <= 0;
		break;
	case OP_GT:
		j->holds &= c > 0;
		break;
	case OP_GE:
		j->holds &= c >= 0;
		break;
	default:
		j->holds &= c == 0;
		break;
	}
}

/* Below the first version that differs from `b` in component i: npm's "<2.0.0-0", so that the
 * prereleases of that version are out too. */
static void
require_below_next(struct judge *j, const struct version *b, unsigned i)
{
	uint64_t next[3] = {0};

	memcpy(next, b->n, (i + 1) * sizeof(*next));
	next[i]++;
	j->holds &= compare_tuple(j->v->n, next) < 0;
}

/* What ^ lets change: all right of the first component that is not zero. */
static unsigned
caret_component(const struct version *b)
{
	for (unsigned i = 0; i < b->given; i++)
		if (b->n[i])
			return i;
	return b->given - 1;
}

static void
apply(struct judge *j, enum operator op, const struct version *b)
{
	struct version next = *b;

	if (!b->given) {
		j->holds &= op != OP_LT && op != OP_GT;
		return;
	}
	switch (op) {
	case OP_TILDE:
		require(j, OP_GE, b);
		require_below_next(j, b, b->given > 1 ? 1 : 0);
		return;
	case OP_CARET:
		require(j, OP_GE, b);
		require_below_next(j, b, caret_component(b));
		return;
	case OP_GE:
		require(j, OP_GE, b);
		return;
	default:
		break;
	}
	if (b->given == 3) {
		require(j, op, b);
		return;
	}
	switch (op) {
	case OP_LT:
		j->holds &= compare_tuple(j->v->n, b->n) < 0;
		break;
	case OP_LE:
		require_below_next(j, b, b->given - 1);
		break;
	case OP_GT:
		next.n[b->given - 1]++;
		require(j, OP_GE, &next);
		break;
	default:
		require(j, OP_GE, b);
		require_below_next(j, b, b->given - 1);
		break;
	}
}

static enum operator read_operator(const char **s, const char *end)
{
	static const struct {
		char text[3];
		enum operator op;
	} table[] = {
		{"<=", OP_LE},
		{">=", OP_GE},
		{"~>", OP_TILDE},
		{"<", OP_LT},
		{">", OP_GT},
		{"~", OP_TILDE},
		{"^", OP_CARET},
		{"=", OP_EQ},
	};

	for (size_t i = 0; i < array_len(table); i++) {
		size_t n = strlen(table[i].text);

		if ((size_t)(end - *s) >= n && !memcmp(*s, table[i].text, n)) {
			*s += n;
			return table[i].op;
		}
	}
	return OP_NONE;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *
skip_blanks(const char *s, const char *end)
{
	while (s < end && is_blank(*s))
		s++;
	return s;
}

static const char *
skip_word(const char *s, const char *end)
{
	while (s < end && !is_blank(*s))
		s++;
	return s;
}

/* "A - B" with blanks around the hyphen; false when [s, end) is not of that form. */
static bool
apply_hyphen(struct judge *j, const char *s, const char *end)
{
	const char *a_end = skip_word(s, end), *hyphen = skip_blanks(a_end, end), *b, *b_end;
	struct version from, to;

	if (hyphen == a_end || hyphen == end || *hyphen != '-')
		return false;
	b = skip_blanks(hyphen + 1, end);
	b_end = skip_word(b, end);
	if (b == hyphen + 1 || skip_blanks(b_end, end) != end || !parse_version(s, a_end, &from) ||
		!parse_version(b, b_end, &to))
		return false;
	apply(j, OP_GE, &from);
	apply(j, OP_LE, &to);
	return true;
}

/* One alternative of a range: comparators that must all hold. */
static bool
set_holds(const struct version *v, const char *s, const char *end)
{
	struct judge j = {.v = v, .holds = true};

	s = skip_blanks(s, end);
	if (!apply_hyphen(&j, s, end)) {
		while (s < end) {
			enum operator op = read_operator(&s, end);
			struct version bound;
			const char *word;

			word = skip_blanks(s, end);
			s = skip_word(word, end);
			if (!parse_version(word, s, &bound))
				return false;
			apply(&j, op, &bound);
			s = skip_blanks(s, end);
		}
	}
	return j.holds && (!v->prelen || j.pre_named);
}

bool
semver_satisfies(const char *version, const char *range)
{
	const char *end = range + strlen(range), *s = skip_blanks(range, end), *last = end;
	struct version v;

	while (last > s && is_blank(last[-1]))
		last--;
	if (s == last || (last - s == 1 && *s == '*'))
		return true;
	if (!version || !parse_version(version, version + strlen(version), &v) || v.given < 3)
		return false;
	for (;;) {
		const char *bar = strstr(s, "||");

		if (set_holds(&v, s, bar ? bar : last))
			return true;
		if (!bar)
			return false;
		s = bar + 2;
	}
}

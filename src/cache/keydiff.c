/* SPDX-License-Identifier: MIT */
#include "cache/keydiff.h"
#include "cache/key.h"
#include "util/err.h"
#include "util/num.h"

enum {
	HEADER_LINES = 6, /* before the first list */
	KEPT_HEX = 32,    /* of a digest */
};

/* Lines of one text that have not been looked at. */
struct lines {
	const char *p, *end;
};
struct line {
	const char *p;
	size_t n;
	size_t name; /* of n: up to the first NUL */
};

static bool
next_line(struct lines *l, struct line *ret)
{
	const char *nl = l->p < l->end ? memchr(l->p, '\n', (size_t)(l->end - l->p)) : NULL;
	const char *nul;

	if (!nl)
		return false;
	*ret = (struct line){l->p, (size_t)(nl - l->p), 0};
	nul = memchr(ret->p, '\0', ret->n);
	ret->name = nul ? (size_t)(nul - ret->p) : ret->n;
	l->p = nl + 1;
	return true;
}

/* Takes the label off. */
static bool
field(struct lines *l, const char *label, struct line *ret)
{
	size_t n = strlen(label);

	if (!next_line(l, ret) || ret->n < n || memcmp(ret->p, label, n) != 0)
		return false;
	*ret = (struct line){ret->p + n, ret->n - n, ret->n - n};
	return true;
}

static bool
count(struct lines *l, const char *label, uint64_t *ret)
{
	char digits[24];
	struct err why = ERR_INIT;
	struct line line;

	if (!field(l, label, &line) || line.n >= sizeof(digits))
		return false;
	memcpy(digits, line.p, line.n);
	digits[line.n] = '\0';
	return !num_parse_u64(digits, 0, SIZE_MAX, ret, label, &why);
}

/* A byte of what was escaped. */
static int
next_byte(const char **p, const char *end)
{
	unsigned char c;

	if (*p == end)
		return -1;
	c = (unsigned char)*(*p)++;
	if (c != '\\' || *p == end)
		return c;
	c = (unsigned char)*(*p)++;
	return c == 'n' ? '\n' : c == '0' ? 0 : c;
}

/* In the order in which they stand there: of the names as they are. */
static int
name_cmp(const struct line *a, const struct line *b)
{
	const char *p = a->p, *q = b->p;
	int x, y;

	do {
		x = next_byte(&p, a->p + a->name);
		y = next_byte(&q, b->p + b->name);
	} while (x == y && x >= 0);
	return x - y;
}

struct diff {
	keydiff_fn *fn;
	void *ctx;
	struct strbuf name;
};

static void
tell(struct diff *d, enum keydiff_part part, enum keydiff_how how, const struct line *line)
{
	int c;

	strbuf_reset(&d->name);
	for (const char *p = line ? line->p : NULL;
		line && (c = next_byte(&p, line->p + line->name)) >= 0;)
		strbuf_addch(&d->name, (char)c);
	d->fn(d->ctx, part, how, d->name.buf);
}

static bool
is_same(const struct line *a, const struct line *b)
{
	return a->n == b->n && !memcmp(a->p, b->p, a->n);
}

static bool
diff_field(struct diff *d, struct lines *was, struct lines *is, const char *label,
	enum keydiff_part part)
{
	struct line a, b;

	if (!field(was, label, &a) || !field(is, label, &b))
		return false;
	if (part < KEYDIFF_PARTS && !is_same(&a, &b))
		tell(d, part, KEYDIFF_CHANGED, NULL);
	return part < KEYDIFF_PARTS || is_same(&a, &b);
}

/* Whether both end in the same digest, behind another mode (file_id_text). */
static bool
is_mode(const struct line *a, const struct line *b)
{
	const char *p = memchr(a->p + a->name, ':', a->n - a->name);
	const char *q = memchr(b->p + b->name, ':', b->n - b->name);

	return p && q && a->p + a->n - p == b->p + b->n - q &&
	       !memcmp(p, q, (size_t)(a->p + a->n - p));
}

/* Both are sorted by their names. */
static bool
diff_list(struct diff *d, struct lines *was, struct lines *is, const char *label,
	enum keydiff_part part)
{
	uint64_t nwas, nis;
	struct line a, b;
	bool has_a = false, has_b = false;

	if (!count(was, label, &nwas) || !count(is, label, &nis))
		return false;
	for (;;) {
		int c;

		if (!has_a && nwas) {
			if (!next_line(was, &a))
				return false;
			has_a = true;
			nwas--;
		}
		if (!has_b && nis) {
			if (!next_line(is, &b))
				return false;
			has_b = true;
			nis--;
		}
		if (!has_a && !has_b)
			return true;
		c = !has_a ? 1 : !has_b ? -1 : name_cmp(&a, &b);
		if (c < 0)
			tell(d, part, KEYDIFF_WENT, &a);
		else if (c > 0)
			tell(d, part, KEYDIFF_CAME, &b);
		else if (!is_same(&a, &b))
			tell(d, part,
				part == KEYDIFF_INPUT && is_mode(&a, &b) ? KEYDIFF_MODE
									 : KEYDIFF_CHANGED,
				&b);
		has_a = has_a && c > 0;
		has_b = has_b && c < 0;
	}
}

/* Their order counts, and one change moves many: told as one. */
static bool
diff_arguments(struct diff *d, struct lines *was, struct lines *is)
{
	uint64_t nwas, nis;
	bool same;

	if (!count(was, "forward-args:", &nwas) || !count(is, "forward-args:", &nis))
		return false;
	same = nwas == nis;
	while (nwas || nis) {
		struct line a, b;

		if ((nwas && !next_line(was, &a)) || (nis && !next_line(is, &b)))
			return false;
		same = same && is_same(&a, &b);
		nwas -= nwas > 0;
		nis -= nis > 0;
	}
	if (!same)
		tell(d, KEYDIFF_ARGUMENTS, KEYDIFF_CHANGED, NULL);
	return true;
}

bool
keydiff(const char *was, size_t nwas, const char *is, size_t nis, keydiff_fn *fn, void *ctx)
{
	struct lines a = {was, was + nwas}, b = {is, is + nis};
	struct diff d = {fn, ctx, STRBUF_INIT};
	bool good = diff_field(&d, &a, &b, "vx-key ", KEYDIFF_PARTS) &&
		    diff_field(&d, &a, &b, "task:", KEYDIFF_PARTS) &&
		    diff_field(&d, &a, &b, "platform:", KEYDIFF_PLATFORM) &&
		    diff_field(&d, &a, &b, "workspace:", KEYDIFF_WORKSPACE) &&
		    diff_field(&d, &a, &b, "manifest:", KEYDIFF_MANIFEST) &&
		    diff_field(&d, &a, &b, "config:", KEYDIFF_CONFIG) &&
		    diff_arguments(&d, &a, &b) &&
		    diff_list(&d, &a, &b, "env-values:", KEYDIFF_ENV) &&
		    diff_list(&d, &a, &b, "runtime-values:", KEYDIFF_RUNTIME) &&
		    diff_list(&d, &a, &b, "ws-runtime-values:", KEYDIFF_RUNTIME) &&
		    diff_list(&d, &a, &b, "upstream:", KEYDIFF_UPSTREAM) &&
		    diff_list(&d, &a, &b, "inputs:", KEYDIFF_INPUT);

	strbuf_release(&d.name);
	return good;
}

/* ------------------------------------------------------------------ what is kept */

static void
add_digest(struct strbuf *out, const char *p, size_t n)
{
	struct digest d;
	char hex[DIGEST_HEX];

	digest_bytes(p, n, &d);
	digest_hex(&d, hex);
	strbuf_add(out, hex, KEPT_HEX);
}

/* `values`: lines of a name and, behind a NUL, a value; else of a value alone. */
static bool
reduce_list(struct lines *l, const char *label, bool values, struct strbuf *out)
{
	struct lines at = *l;
	struct line line;
	uint64_t n;

	if (!count(l, label, &n) || !next_line(&at, &line))
		return false;
	strbuf_add(out, line.p, line.n);
	strbuf_addch(out, '\n');
	for (; n; n--) {
		if (!next_line(l, &line))
			return false;
		if (values)
			strbuf_add(out, line.p, line.name);
		if (values && line.name < line.n)
			strbuf_addch(out, '\0');
		if (!values || line.name < line.n)
			add_digest(out, line.p + (values ? line.name : 0),
				line.n - (values ? line.name : 0));
		strbuf_addch(out, '\n');
	}
	return true;
}

bool
keydiff_reduce(const char *text, size_t n, struct strbuf *ret)
{
	struct lines l = {text, text + n};
	struct line line;

	for (int i = 0; i < HEADER_LINES; i++) {
		if (!next_line(&l, &line))
			return false;
		strbuf_add(ret, line.p, line.n);
		strbuf_addch(ret, '\n');
	}
	if (!reduce_list(&l, "forward-args:", false, ret) ||
		!reduce_list(&l, "env-values:", true, ret) ||
		!reduce_list(&l, "runtime-values:", true, ret) ||
		!reduce_list(&l, "ws-runtime-values:", true, ret))
		return false;
	strbuf_add(ret, l.p, (size_t)(l.end - l.p));
	return true;
}

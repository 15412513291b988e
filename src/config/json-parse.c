/* SPDX-License-Identifier: MIT */
/*
 * One pass. The values of an open object or array wait on a stack; when it closes they move, side by
 * side, to the document's values, and it remembers where. Those are addresses only once all are
 * there.
 */
#include "config/json.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "util/utf8.h"
#include <errno.h>

struct values {
	struct json *v;
	size_t n, cap;
};

struct parser {
	const char *text, *end; /* *end is a NUL */
	const char *p;
	const char *line_start;
	const char *last_end; /* of the token before p */
	uint32_t line;
	enum json_rules rules;
	unsigned depth;
	struct values open, done;
	char *strings; /* where the next string goes */
	const char *file;
	struct err *e;
};

/* ------------------------------------------------------------------ errors */

/* The offset after the token at p: for messages. */
static const char *
token_end(const struct parser *ps, const char *p)
{
	static const char ends[] = " \t\n\r\"{}[]:,";
	const char *start = p;

	if (p == ps->end)
		return p;
	if (*p == '"') {
		for (p++; p < ps->end && *p != '"'; p++)
			p += *p == '\\' && p + 1 < ps->end;
		return p < ps->end ? p + 1 : p;
	}
	while (p < ps->end && (!*p || !strchr(ends, *p)))
		p++;
	return p == start ? p + 1 : p;
}

static int
error_at(const struct parser *ps, const char *p, const char *text)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	size_t line = 1;
	const char *start = ps->text;

	for (const char *s = ps->text; s < p; s++)
		if (*s == '\n') {
			line++;
			start = s + 1;
		}
	strbuf_add_sanitised(&sb, ps->file, strlen(ps->file));
	strbuf_addf(&sb, ":%zu:%zu: ", line, (size_t)(p - start) + 1);
	strbuf_add_sanitised(&sb, text, strlen(text));
	return err_set(ps->e, ERR_CONFIG, 0, "%s", sb.buf);
}

/* What is wrong with the token at p, which is shown if it is short. */
static int
error_near(const struct parser *ps, const char *p, const char *what)
{
	enum {
		TOKEN_SHOWN_MAX = 20
	};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *end = token_end(ps, p);
	bool cut = end - p > TOKEN_SHOWN_MAX;

	if (p == ps->end) {
		strbuf_addf(&text, "%s near the end of the file", what);
		return error_at(ps, ps->last_end, text.buf);
	}
	if (cut) {
		end = p + TOKEN_SHOWN_MAX - 1;
		while (end > p && (*end & 0xc0) == 0x80) /* no half of a character */
			end--;
	}
	strbuf_addf(&text, "%s near '%.*s%s'", what, (int)(end - p), p, cut ? "…" : "");
	return error_at(ps, p, text.buf);
}

/* ------------------------------------------------------------------ blanks */

/* Past the comment at p; NULL: it has no end. */
static const char *
comment_end(const struct parser *ps, const char *p)
{
	const char *end;

	if (p[1] == '/') {
		end = memchr(p, '\n', (size_t)(ps->end - p));
		return end ? end : ps->end;
	}
	end = memmem(p + 2, (size_t)(ps->end - p) - 2, "*/", 2);
	return end ? end + 2 : NULL;
}

static int
skip_comment(struct parser *ps)
{
	const char *end = comment_end(ps, ps->p);

	if (!end)
		return error_at(ps, ps->p, "a comment without its end '*/'");
	for (; ps->p < end; ps->p++)
		if (*ps->p == '\n') {
			ps->line++;
			ps->line_start = ps->p + 1;
		}
	return 0;
}

/* To the next token. */
static int
skip_blanks(struct parser *ps)
{
	const char *p = ps->p;

	for (;;) {
		while (*p == ' ' || *p == '\t')
			p++;
		if (*p == '\n') {
			ps->line++;
			ps->line_start = ++p;
		} else if (*p == '\r') {
			p++;
		} else if (*p == '/' && ps->rules == JSON_OURS && (p[1] == '/' || p[1] == '*')) {
			ps->p = p;
			if (skip_comment(ps))
				return -1;
			p = ps->p;
		} else {
			ps->p = p;
			return 0;
		}
	}
}

/* Past the token that ends at `end`, to the next one. */
static int
advance(struct parser *ps, const char *end)
{
	ps->p = ps->last_end = end;
	return (unsigned char)*end > ' ' && *end != '/' ? 0 : skip_blanks(ps);
}

/* ------------------------------------------------------------------ strings */

static int
hex4(const char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static char *
put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

/* The escape at *p, which is moved past it. NULL, or what is wrong. */
static const char *
take_escape(const char **p, enum json_rules rules, char **out)
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *s = *p + 1, *at = *s ? strchr(plain, *s) : NULL;
	int c, low;

	if (at) {
		*(*out)++ = meant[at - plain];
		*p = s + 1;
		return NULL;
	}
	if (*s != 'u' || (c = hex4(s + 1)) < 0)
		return "invalid escape";
	s += 5;
	if (c >= 0xd800 && c < 0xe000) {
		low = c < 0xdc00 && s[0] == '\\' && s[1] == 'u' ? hex4(s + 2) : -1;
		if (low < 0xdc00 || low >= 0xe000)
			return "an escape of half a character";
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		s += 6;
	}
	if (!c && rules != JSON_OURS)
		return "a NUL (\\u0000) in a string";
	*out = put_utf8(*out, (uint32_t)c);
	*p = s;
	return NULL;
}

/* What ends a run of bytes that stand for themselves: '"', '\\', control characters, what is not ASCII. */
static const bool ends_run[256] = {
	[0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x80 ... 0xff] = true};

/* The string at p, into the document's strings. A string takes no more there than in the text. */
static int
take_string(struct parser *ps, const char **ret, size_t *ret_len)
{
	const char *p = ps->p + 1, *wrong = NULL;
	char *out = ps->strings;

	while (*p != '"' && !wrong) {
		const char *run = p;
		size_t n;

		while (!ends_run[(unsigned char)*p])
			p++;
		memcpy(out, run, (size_t)(p - run));
		out += p - run;
		if (*p == '\\') {
			wrong = take_escape(&p, ps->rules, &out);
		} else if ((unsigned char)*p >= 0x80) {
			n = utf8_char(p, (size_t)(ps->end - p));
			if (!n)
				wrong = "invalid UTF-8";
			for (; n; n--)
				*out++ = *p++;
		} else if (*p != '"') {
			wrong = p == ps->end ? "a string without its end"
				: *p == '\n' ? "unexpected newline"
					     : "a control character in a string";
		}
	}
	if (wrong)
		return error_near(ps, ps->p, wrong);
	*ret = ps->strings;
	*ret_len = (size_t)(out - ps->strings);
	*out++ = '\0';
	ps->strings = out;
	return advance(ps, p + 1);
}

/* ------------------------------------------------------------------ values */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Past the digits at p, of which there must be some; NULL: there are none. */
static const char *
past_digits(const char *p)
{
	const char *start = p;

	while (p && is_digit(*p))
		p++;
	return p == start ? NULL : p;
}

static int
take_number(struct parser *ps, struct json *v)
{
	const char *start = ps->p, *p = start + (*start == '-'), *digits = p;

	p = *p == '0' ? p + 1 : past_digits(p);
	if (!p || (*digits == '0' && is_digit(*p)))
		return error_near(ps, start, "invalid token");
	v->type = JSON_INTEGER;
	if (*p == '.') {
		v->type = JSON_REAL;
		p = past_digits(p + 1);
	}
	if (p && (*p == 'e' || *p == 'E')) {
		v->type = JSON_REAL;
		p++;
		p = past_digits(p + (*p == '+' || *p == '-'));
	}
	if (!p)
		return error_near(ps, start, "invalid token");
	if (v->type == JSON_INTEGER) {
		errno = 0;
		v->integer = strtoll(start, NULL, 10);
		if (errno == ERANGE && ps->rules != JSON_PACKAGE)
			return error_near(ps, start, "too big integer");
		if (errno == ERANGE)
			v->type = JSON_REAL;
	}
	if (v->type == JSON_REAL) {
		v->text = memcpy(ps->strings, start, (size_t)(p - start));
		v->len = (size_t)(p - start);
		ps->strings += v->len;
		*ps->strings++ = '\0';
	}
	return advance(ps, p);
}

static int
take_word(struct parser *ps, struct json *v)
{
	static const struct {
		const char *word;
		enum json_type type;
	} words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
	const char *end = token_end(ps, ps->p);
	size_t n = (size_t)(end - ps->p);

	for (size_t i = 0; i < array_len(words); i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, ps->p, n)) {
			v->type = words[i].type;
			return advance(ps, end);
		}
	return error_near(ps, ps->p,
		strchr("]}:,", *ps->p) ? "value expected"
		: *ps->p == '\''       ? "JSON needs double quotes"
				       : "invalid token");
}

static int take_value(struct parser *ps, struct json *v);

static void
push(struct values *to, const struct json *v, size_t n)
{
	GROW(to->v, to->n + n, to->cap);
	memcpy(to->v + to->n, v, n * sizeof(*v));
	to->n += n;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether the last key has been there before. */
static bool
is_duplicate(const struct json *members, size_t n)
{
	const char *last = members[n - 1].key;

	for (size_t i = 0; i + 1 < n; i++)
		if (*members[i].key == *last && !strcmp(members[i].key, last))
			return true;
	return false;
}

/* Among many members they are found by sorting, and only then one by one. */
static bool
has_duplicate(const struct json *members, size_t n)
{
	cleanup_free const char **keys = xreallocarray(NULL, n, sizeof(*keys));

	for (size_t i = 0; i < n; i++)
		keys[i] = members[i].key;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			return true;
	return false;
}

static const char *
place_of(const struct parser *ps, const struct json *v)
{
	const char *p = ps->text;

	for (uint32_t line = 1; line < v->key_line; line++)
		p = (const char *)memchr(p, '\n', (size_t)(ps->end - p)) + 1;
	return p + v->key_col - 1;
}

/* Leaves the last of each name. */
static size_t
keep_last(struct json *members, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t later = i + 1;

		while (later < n && strcmp(members[later].key, members[i].key) != 0)
			later++;
		if (later == n)
			members[kept++] = members[i];
	}
	return kept;
}

/* *n: of the members, and of those that count. */
static int
settle_duplicates(struct parser *ps, struct json *members, size_t *n)
{
	enum {
		FEW = 16
	};

	if (*n > FEW && !has_duplicate(members, *n))
		return 0;
	for (size_t i = 2; i <= *n; i++) {
		if (!is_duplicate(members, i))
			continue;
		if (ps->rules != JSON_PACKAGE)
			return error_near(
				ps, place_of(ps, &members[i - 1]), "duplicate object key");
		*n = keep_last(members, *n);
		break;
	}
	return 0;
}

/* Begins a name as JavaScript has it. */
static bool
is_bare(char c)
{
	return c == '\'' || c == '_' || c == '$' || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static int
take_key(struct parser *ps, bool first, struct json *v)
{
	size_t len;

	if (*ps->p != '"')
		return error_near(ps, ps->p,
			is_bare(*ps->p) ? "JSON needs double quotes"
			: first         ? "string or '}' expected"
					: "string expected");
	v->key_line = ps->line;
	v->key_col = (uint32_t)(ps->p - ps->line_start) + 1;
	const char *start = ps->p;

	if (take_string(ps, &v->key, &len))
		return -1;
	v->key_len = (uint32_t)len;
	if (memchr(v->key, '\0', len))
		return error_near(ps, start, "a key with a NUL");
	if (*ps->p != ':')
		return error_near(ps, ps->p, "':' expected");
	return advance(ps, ps->p + 1);
}

/* The elements or members up to the bracket that closes. */
static int
take_items(struct parser *ps, bool object)
{
	char close = object ? '}' : ']';

	for (bool first = true; first || *ps->p == ','; first = false) {
		struct json v = {0};

		if (!first && advance(ps, ps->p + 1))
			return -1;
		if (*ps->p == close && (first || ps->rules == JSON_OURS))
			break;
		if ((object && take_key(ps, first, &v)) || take_value(ps, &v))
			return -1;
		GROW(ps->open.v, ps->open.n + 1, ps->open.cap);
		ps->open.v[ps->open.n++] = v;
	}
	if (*ps->p != close)
		return error_near(
			ps, ps->p, object ? "expected ',' or '}'" : "expected ',' or ']'");
	return advance(ps, ps->p + 1);
}

/* `items` is the index of the first until all values are there. */
static int
take_container(struct parser *ps, struct json *v)
{
	bool object = *ps->p == '{';
	size_t base = ps->open.n;
	struct json *items;

	if (ps->depth == JSON_DEPTH_MAX)
		return error_at(ps, ps->p, "values are nested too deep");
	ps->depth++;
	if (advance(ps, ps->p + 1) || take_items(ps, object))
		return -1;
	ps->depth--;
	v->type = object ? JSON_OBJECT : JSON_ARRAY;
	v->n = ps->open.n - base;
	if (!v->n)
		return 0;
	items = ps->open.v + base;
	if (object && settle_duplicates(ps, items, &v->n))
		return -1;
	v->items = (struct json *)(uintptr_t)ps->done.n;
	push(&ps->done, items, v->n);
	ps->open.n = base;
	return 0;
}

static int
take_value(struct parser *ps, struct json *v)
{
	v->line = ps->line;
	v->col = (uint32_t)(ps->p - ps->line_start) + 1;
	switch (*ps->p) {
	case '{':
	case '[':
		return take_container(ps, v);
	case '"':
		v->type = JSON_STRING;
		return take_string(ps, &v->text, &v->len);
	case '-':
		return take_number(ps, v);
	default:
		return is_digit(*ps->p) ? take_number(ps, v) : take_word(ps, v);
	}
}

static int
take_document(struct parser *ps, struct json *root)
{
	if (skip_blanks(ps))
		return -1;
	if (*ps->p != '{' && *ps->p != '[')
		return error_near(ps, ps->p, "'[' or '{' expected");
	if (take_value(ps, root))
		return -1;
	if (ps->p != ps->end)
		return error_near(ps, ps->p, "end of file expected");
	push(&ps->done, root, 1);
	for (size_t i = 0; i < ps->done.n; i++) {
		struct json *v = &ps->done.v[i];

		if (json_is_object(v) || json_is_array(v))
			v->items = ps->done.v + (uintptr_t)v->items;
	}
	return 0;
}

int
json_parse(const char *text, size_t len, const char *shown, enum json_rules rules,
	struct json_doc *ret, struct err *e)
{
	cleanup_free char *strings = xmalloc(len + 1);
	struct parser ps = {
		.text = text,
		.end = text + len,
		.p = text,
		.line_start = text,
		.last_end = text,
		.line = 1,
		.rules = rules,
		.strings = strings,
		.file = shown,
		.e = e,
	};
	struct json root = {0};
	int r;

	/* as many values as an ordinary config has */
	GROW(ps.done.v, len / 16 + 1, ps.done.cap);
	GROW(ps.open.v, 32, ps.open.cap);
	if (!strncmp(text, "\xef\xbb\xbf", 3))
		ps.p += 3;
	r = take_document(&ps, &root);
	free(ps.open.v);
	if (r) {
		free(ps.done.v);
		return -1;
	}
	*ret = (struct json_doc){
		.file = shown,
		.root = &ps.done.v[ps.done.n - 1],
		.values = ps.done.v,
		.strings = take_ptr(&strings),
	};
	return 0;
}

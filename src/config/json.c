/* SPDX-License-Identifier: MIT */
#include "config/json.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The offset after the string that starts at i; len when it does not end. */
static size_t
skip_string(const char *s, size_t len, size_t i)
{
	for (i++; i < len && s[i] != '"'; i++)
		if (s[i] == '\\')
			i++;
	return i < len ? i + 1 : len;
}

/* Line ends stay, so that every offset keeps its line. */
static void
blank_out(char *s, size_t from, size_t to)
{
	for (; from < to; from++)
		if (s[from] != '\n' && s[from] != '\r')
			s[from] = ' ';
}

/* Blanks the comment at i, if there is one. Returns the offset after it, i: no comment, SIZE_MAX:
 * a comment without its end. */
static size_t
blank_comment(char *s, size_t len, size_t i)
{
	size_t end = i + 2;

	if (s[i] != '/' || end > len || (s[i + 1] != '/' && s[i + 1] != '*'))
		return i;
	if (s[i + 1] == '/') {
		while (end < len && s[end] != '\n')
			end++;
	} else {
		while (end + 1 < len && (s[end] != '*' || s[end + 1] != '/'))
			end++;
		if (end + 1 >= len)
			return SIZE_MAX;
		end += 2;
	}
	blank_out(s, i, end);
	return end;
}

/*
 * Comments, trailing commas and a byte order mark become blanks of the same length, so that every
 * offset into the result is one into the file. Returns NULL, or what is wrong at *ret_offset.
 */
static const char *
make_strict(char *s, size_t len, bool relaxed, size_t *ret_offset)
{
	size_t depth = 0, comma = SIZE_MAX;
	char last = '\0'; /* that is no blank; a comma counts once it cannot be a trailing one */

	if (len >= 3 && !memcmp(s, "\xef\xbb\xbf", 3))
		memset(s, ' ', 3);
	for (size_t i = 0; i < len; i++) {
		if (relaxed) {
			size_t end = blank_comment(s, len, i);

			*ret_offset = i;
			if (end == SIZE_MAX)
				return "a comment without its end '*/'";
			if (end != i) {
				i = end - 1;
				continue;
			}
		}
		if (is_blank(s[i]))
			continue;
		if (relaxed && (s[i] == '}' || s[i] == ']') && comma != SIZE_MAX)
			s[comma] = ' ';
		/* A comma after nothing stays, and the parser refuses it. */
		comma = s[i] == ',' && last && !strchr(",:{[", last) ? i : SIZE_MAX;
		*ret_offset = i;
		if ((s[i] == '{' || s[i] == '[') && ++depth > JSON_DEPTH_MAX)
			return "values are nested too deep";
		if ((s[i] == '}' || s[i] == ']') && depth)
			depth--;
		last = s[i];
		if (s[i] == '"')
			i = skip_string(s, len, i) - 1;
	}
	return NULL;
}

static void
place_of(const char *text, size_t offset, size_t *ret_line, size_t *ret_col)
{
	size_t line = 1, start = 0;

	for (size_t i = 0; i < offset; i++)
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	*ret_line = line;
	*ret_col = offset - start + 1;
}

static int
parse_error(const struct json_doc *d, size_t offset, const char *text, struct err *e)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	size_t line, col;

	place_of(d->text, offset < d->len ? offset : d->len, &line, &col);
	strbuf_add_sanitised(&sb, d->file, strlen(d->file));
	strbuf_addf(&sb, ":%zu:%zu: ", line, col);
	strbuf_add_sanitised(&sb, text, strlen(text));
	return err_set(e, ERR_CONFIG, 0, "%s", sb.buf);
}

/* The token in which the text before `pos` ends; at the end of the text, an empty one. */
static size_t
token_at(const char *s, size_t len, size_t pos, size_t *ret_end)
{
	static const char punctuation[] = "{}[]:,";
	size_t last = 0, i = 0;

	for (;;) {
		size_t end;

		while (i < len && is_blank(s[i]))
			i++;
		if (i == len) {
			*ret_end = last;
			return last;
		}
		end = i + 1;
		if (s[i] == '"')
			end = skip_string(s, len, i);
		else if (!strchr(punctuation, s[i]))
			while (end < len && !is_blank(s[end]) && s[end] != '"' &&
				!strchr(punctuation, s[end]))
				end++;
		if (end >= pos) {
			*ret_end = end;
			return i;
		}
		last = i = end;
	}
}

/*
 * jansson counts to the end of the token that it stumbled over, and names it if it is short. After a
 * value it speaks of the closing bracket alone, where most often a comma is missing.
 */
static int
syntax_error(const struct json_doc *d, const json_error_t *je, struct err *e)
{
	enum {
		TOKEN_SHOWN_MAX = 20
	};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *near = strstr(je->text, " near ");
	size_t n = near ? (size_t)(near - je->text) : strlen(je->text), at, end;
	bool cut;

	if (!strncmp(je->text, "'}' expected", 12) || !strncmp(je->text, "']' expected", 12))
		strbuf_addf(&text, "expected ',' or '%c'", je->text[1]);
	else
		strbuf_add(&text, je->text, n);
	at = token_at(d->strict, d->len, je->position > 0 ? (size_t)je->position : 0, &end);
	if (near && !strcmp(near, " near end of file"))
		at = token_at(d->strict, d->len, d->len + 1, &end);
	cut = end - at > TOKEN_SHOWN_MAX;
	if (cut) {
		end = at + TOKEN_SHOWN_MAX - 1;
		while ((d->strict[end] & 0xc0) == 0x80) /* no half of a character */
			end--;
	}
	if (at == end)
		strbuf_adds(&text, " near the end of the file");
	else
		strbuf_addf(
			&text, " near '%.*s%s'", (int)(end - at), d->strict + at, cut ? "…" : "");
	return parse_error(d, at, text.buf, e);
}

int
json_parse(const char *text, size_t len, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e)
{
	struct json_doc d = {xstrdup(shown), xmemdupz(text, len), xmemdupz(text, len), len, NULL};
	const char *wrong;
	json_error_t je;
	size_t offset;

	wrong = make_strict(d.strict, len, relaxed, &offset);
	if (wrong) {
		parse_error(&d, offset, wrong, e);
		goto fail;
	}
	d.root = json_loadb(
		d.strict, len, JSON_REJECT_DUPLICATES | (relaxed ? JSON_ALLOW_NUL : 0), &je);
	if (!d.root) {
		syntax_error(&d, &je, e);
		goto fail;
	}
	*ret = d;
	return 0;
fail:
	json_doc_release(&d);
	return -1;
}

int
json_load(int dirfd, const char *path, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e)
{
	/* Nonblocking: a FIFO in the place of the file must not hold us. */
	cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, ERR_IO, errno, "%s", shown);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFIG, 0, "%s: is not a regular file", shown);
	if (st.st_size > JSON_FILE_MAX)
		return err_set(
			e, ERR_CONFIG, 0, "%s: is larger than %d MiB", shown, JSON_FILE_MAX >> 20);
	if (fd_read_all(fd, &text, JSON_FILE_MAX) < 0)
		return err_set(e, ERR_IO, errno, "%s", shown);
	return json_parse(text.buf, text.len, shown, relaxed, ret, e);
}

void
json_doc_release(struct json_doc *d)
{
	json_decref(d->root);
	free(d->file);
	free(d->text);
	free(d->strict);
	*d = (struct json_doc){0};
}

static size_t
skip_blanks(const char *s, size_t len, size_t i)
{
	while (i < len && is_blank(s[i]))
		i++;
	return i;
}

/* The offset after the value that starts at i. */
static size_t
skip_value(const char *s, size_t len, size_t i)
{
	size_t depth = 0;

	for (; i < len; i++) {
		if (s[i] == '"')
			i = skip_string(s, len, i) - 1;
		else if (s[i] == '{' || s[i] == '[')
			depth++;
		else if (s[i] == '}' || s[i] == ']')
			depth--;
		else if (is_blank(s[i]) || s[i] == ',' || s[i] == ':' || depth)
			continue;
		else
			while (i + 1 < len && !is_blank(s[i + 1]) && !strchr(",]}", s[i + 1]))
				i++;
		if (!depth)
			return i + 1;
	}
	return len;
}

/* Whether the string token at s[from..to) is the key; jansson undoes the escapes. */
static bool
token_is(const char *s, size_t from, size_t to, const char *key)
{
	json_t *v = json_loadb(s + from, to - from, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool same = v && json_c_string(v) && !strcmp(json_string_value(v), key);

	json_decref(v);
	return same;
}

static bool
is_root(const struct json_at *at)
{
	return !at->up && !at->key;
}

/* Offset of the value at `at`, of its key with `key`; of the value above when it is not there. The
 * text has been parsed once, so it is well formed. */
static size_t
locate(const struct json_at *at, bool key, const char *s, size_t len)
{
	size_t above, i;

	if (is_root(at))
		return skip_blanks(s, len, 0);
	above = at->up ? locate(at->up, false, s, len) : skip_blanks(s, len, 0);
	i = skip_blanks(s, len, above + 1);
	for (size_t n = 0; i < len && s[i] != '}' && s[i] != ']'; n++) {
		size_t name = i;

		if (s[above] == '{') {
			i = skip_blanks(s, len, skip_string(s, len, i));
			i = skip_blanks(s, len, i + 1);
		}
		if (at->key ? s[above] == '{' &&
					token_is(s, name, skip_string(s, len, name), at->key)
			    : n == at->index)
			return key ? name : i;
		i = skip_blanks(s, len, skip_value(s, len, i));
		if (i < len && s[i] == ',')
			i = skip_blanks(s, len, i + 1);
	}
	return above;
}

void
json_place(const struct json_at *at, bool key, size_t *ret_line, size_t *ret_col)
{
	const struct json_doc *d = at->doc;

	place_of(d->text, locate(at, key, d->strict, d->len), ret_line, ret_col);
}

void
json_member_places(const struct json_at *at, struct json_place *ret, size_t n)
{
	const char *s = at->doc->strict;
	size_t len = at->doc->len, line = 1, start = 0, seen = 0;
	size_t i = skip_blanks(s, len, locate(at, false, s, len) + 1);

	for (size_t k = 0; k < n && i < len; k++) {
		for (; seen < i; seen++)
			if (s[seen] == '\n') {
				line++;
				start = seen + 1;
			}
		ret[k] = (struct json_place){line, i - start + 1};
		i = skip_blanks(s, len, skip_string(s, len, i)); /* the colon */
		i = skip_blanks(s, len, skip_value(s, len, skip_blanks(s, len, i + 1)));
		i = skip_blanks(s, len, i + 1); /* the comma */
	}
}

static void
add_path(struct strbuf *sb, const struct json_at *at)
{
	enum {
		KEY_SHOWN_MAX = 80
	};
	size_t n;

	if (is_root(at))
		return;
	if (at->up)
		add_path(sb, at->up);
	if (!at->key) {
		strbuf_addf(sb, "[%zu]", at->index);
		return;
	}
	n = strlen(at->key);
	if (n && n <= KEY_SHOWN_MAX && !strpbrk(at->key, ".[]\"' \t\n")) {
		strbuf_adds(sb, at->up && !is_root(at->up) ? "." : "");
		strbuf_adds(sb, at->key);
		return;
	}
	strbuf_addf(sb, "[\"%.*s%s\"]", KEY_SHOWN_MAX, at->key, n > KEY_SHOWN_MAX ? "…" : "");
}

static int attr_printf(4, 0)
	verror(const struct json_at *at, bool key, struct err *e, const char *fmt, va_list ap)
{
	cleanup_strbuf struct strbuf raw = STRBUF_INIT, shown = STRBUF_INIT;
	size_t line, col;

	json_place(at, key, &line, &col);
	strbuf_addf(&raw, "%s:%zu:%zu: ", at->doc->file, line, col);
	add_path(&raw, at);
	strbuf_adds(&raw, is_root(at) ? "" : ": ");
	strbuf_vaddf(&raw, fmt, ap);
	strbuf_add_sanitised(&shown, raw.buf, raw.len);
	return err_set(e, ERR_CONFIG, 0, "%s", shown.buf);
}

int
json_error(const struct json_at *at, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verror(at, false, e, fmt, ap);
	va_end(ap);
	return -1;
}

int
json_error_key(const struct json_at *at, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verror(at, true, e, fmt, ap);
	va_end(ap);
	return -1;
}

const char *
json_c_string(const json_t *value)
{
	const char *s = json_string_value(value);

	return s && strlen(s) == json_string_length(value) ? s : NULL;
}

const char *
json_kind(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		break;
	}
	return "null";
}

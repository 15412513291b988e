/* SPDX-License-Identifier: MIT */
#include "config/json.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include "util/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* One byte more than there should be is asked for: when there is none, that was the end. (Files that
 * programs serve may be longer than the 0 that stat says.) */
static bool
read_as_long_as(int fd, size_t size, struct strbuf *ret)
{
	ssize_t n = read(fd, ret->buf + ret->len, size + 1);

	if (n < 0)
		return false;
	ret->len += (size_t)n;
	ret->buf[ret->len] = '\0';
	return (size_t)n == size;
}

int
json_read(int dirfd, const char *path, const char *shown, struct strbuf *ret_text,
	struct stat *ret_st, struct err *e)
{
	/* Nonblocking: a FIFO in the place of the file must not hold us. */
	cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return err_set(e, ERR_IO, errno, "%s", shown);
	if (!S_ISREG(ret_st->st_mode))
		return err_set(e, ERR_CONFIG, 0, "%s: is not a regular file", shown);
	if (ret_st->st_size > JSON_FILE_MAX)
		return err_set(
			e, ERR_CONFIG, 0, "%s: is larger than %d MiB", shown, JSON_FILE_MAX >> 20);
	strbuf_grow(ret_text, (size_t)ret_st->st_size + FD_READ_ROOM);
	if (ret_st->st_size && read_as_long_as(fd, (size_t)ret_st->st_size, ret_text))
		return 0;
	return fd_read_all(fd, ret_text, JSON_FILE_MAX) < 0 ? err_set(e, ERR_IO, errno, "%s", shown)
							    : 0;
}

int
json_load(int dirfd, const char *path, const char *shown, enum json_rules rules,
	struct json_doc *ret, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct stat st;

	if (json_read(dirfd, path, shown, &text, &st, e) < 0)
		return -1;
	return json_parse(text.buf, text.len, shown, rules, ret, e);
}

void
json_doc_release(struct json_doc *d)
{
	free(d->values);
	free(d->strings);
	*d = (struct json_doc){0};
}

const struct json *
json_object_get(const struct json *object, const char *key)
{
	for (size_t i = 0; i < json_object_size(object); i++)
		if (*object->items[i].key == *key && !strcmp(object->items[i].key, key))
			return &object->items[i];
	return NULL;
}

const struct json *
json_array_get(const struct json *array, size_t i)
{
	return i < json_array_size(array) ? &array->items[i] : NULL;
}

const char *
json_string_value(const struct json *value)
{
	return json_is_string(value) ? value->text : NULL;
}

const char *
json_c_string(const struct json *value)
{
	return json_is_string(value) && strlen(value->text) == value->len ? value->text : NULL;
}

/* ------------------------------------------------------------------ the canonical form */

static const bool is_escaped[256] = {[0 ... 0x1f] = true, ['"'] = true, ['\\'] = true};

static void
add_escaped(char c, struct strbuf *out)
{
	static const char named[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	const char *at = c ? strchr(named, c) : NULL;

	if (!is_escaped[(unsigned char)c])
		strbuf_addch(out, c);
	else if (at)
		strbuf_add(out, (const char[]){'\\', names[at - named]}, 2);
	else
		strbuf_addf(out, "\\u%04X", (unsigned)(unsigned char)c);
}

static void
add_string(const char *s, size_t n, struct strbuf *out)
{
	size_t i = 0;
	char *to;

	/* Most hold nothing to be escaped. */
	strbuf_grow(out, n + 2);
	to = out->buf + out->len;
	*to++ = '"';
	for (; i < n && !is_escaped[(unsigned char)s[i]]; i++)
		*to++ = s[i];
	out->len += 1 + i;
	for (; i < n; i++)
		add_escaped(s[i], out);
	strbuf_addch(out, '"');
}

void
json_add_string(const char *s, size_t n, struct strbuf *out)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (size_t i = 0, len; i < n; i += len) {
		len = utf8_char(s + i, n - i);
		if (len)
			strbuf_add(&text, s + i, len);
		else
			strbuf_addf(&text, "\\x%02X", (unsigned)(unsigned char)s[i]);
		len += !len;
	}
	add_string(text.buf, text.len, out);
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp((*(const struct json *const *)a)->key, (*(const struct json *const *)b)->key);
}

static void
add_elements(const struct json *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->n; i++) {
		if (i)
			strbuf_addch(out, ',');
		json_canonical(&v->items[i], out);
	}
}

static void
add_members(const struct json *v, struct strbuf *out)
{
	const struct json *few[8], **sorted = few;
	cleanup_free const struct json **many = NULL;

	if (v->n > array_len(few))
		sorted = many = xreallocarray(NULL, v->n, sizeof(*many));
	for (size_t i = 0; i < v->n; i++)
		sorted[i] = &v->items[i];
	if (sorted == many)
		qsort(sorted, v->n, sizeof(*sorted), compare_members);
	for (size_t i = 1; sorted == few && i < v->n; i++)
		for (size_t k = i; k && strcmp(few[k - 1]->key, few[k]->key) > 0; k--) {
			const struct json *lesser = few[k];

			few[k] = few[k - 1];
			few[k - 1] = lesser;
		}
	for (size_t i = 0; i < v->n; i++) {
		if (i)
			strbuf_addch(out, ',');
		add_string(sorted[i]->key, sorted[i]->key_len, out);
		strbuf_addch(out, ':');
		json_canonical(sorted[i], out);
	}
}

void
json_canonical(const struct json *v, struct strbuf *out)
{
	switch (v->type) {
	case JSON_NULL:
		strbuf_adds(out, "null");
		break;
	case JSON_FALSE:
		strbuf_adds(out, "false");
		break;
	case JSON_TRUE:
		strbuf_adds(out, "true");
		break;
	case JSON_INTEGER:
		strbuf_addf(out, "%lld", (long long)v->integer);
		break;
	case JSON_REAL:
		strbuf_add(out, v->text, v->len);
		break;
	case JSON_STRING:
		add_string(v->text, v->len, out);
		break;
	case JSON_ARRAY:
		strbuf_addch(out, '[');
		add_elements(v, out);
		strbuf_addch(out, ']');
		break;
	case JSON_OBJECT:
		strbuf_addch(out, '{');
		add_members(v, out);
		strbuf_addch(out, '}');
		break;
	}
}

/* ------------------------------------------------------------------ errors with a place */

static bool
is_root(const struct json_at *at)
{
	return !at->up && !at->key;
}

/* The value at `at`, or, with *ret_there false, the nearest above it. */
static const struct json *
locate(const struct json_at *at, bool *ret_there)
{
	const struct json *above = at->doc->root, *v;

	*ret_there = true;
	if (at->up)
		above = locate(at->up, ret_there);
	if (is_root(at) || !*ret_there)
		return above;
	v = at->key ? json_object_get(above, at->key) : json_array_get(above, at->index);
	*ret_there = v != NULL;
	return v ? v : above;
}

void
json_place(const struct json_at *at, bool key, size_t *ret_line, size_t *ret_col)
{
	bool there;
	const struct json *v = locate(at, &there);

	key = key && there && v->key;
	*ret_line = key ? v->key_line : v->line;
	*ret_col = key ? v->key_col : v->col;
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
	strbuf_adds(&raw, at->doc->file);
	if (!at->doc->evaluated)
		strbuf_addf(&raw, ":%zu:%zu", line, col);
	strbuf_adds(&raw, ": ");
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
json_kind(const struct json *value)
{
	switch (value->type) {
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

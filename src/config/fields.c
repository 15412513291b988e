/* SPDX-License-Identifier: MIT */
#include "config/fields.h"
#include "config/taskdef.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/strbuf.h"

const struct shape field_text_shape = {.schema = "'type': 'string', 'pattern': '" NOT_BLANK "'"};
const struct shape field_texts_shape = {
	.schema = "'type': 'array', 'items': { 'type': 'string', 'pattern': '" NOT_BLANK "' }"};
const struct shape field_any_text_shape = {.schema = "'type': 'string'"};
const struct shape field_bool_shape = {.schema = "'type': 'boolean'"};
const struct shape field_timeout_shape = {
	.schema = "'type': 'integer', 'minimum': 1, 'maximum': 2147483647"};
_Static_assert(FIELD_TIMEOUT_MAX == 2147483647, "as in the shape");

static bool
is_same(char a, char b)
{
	return a == b || (a >= 'A' && a <= 'Z' && a + ('a' - 'A') == b) ||
	       (b >= 'A' && b <= 'Z' && b + ('a' - 'A') == a);
}

/* Insertions, deletions, replacements and swaps of neighbours that make a into b, whatever the case
 * of letters, or 3 for more than two. */
static size_t
edits(const char *a, const char *b)
{
	enum {
		WORD_MAX = 64,
		MANY = 3
	};
	size_t na = strlen(a), nb = strlen(b), row[3][WORD_MAX + 1];

	if (na > WORD_MAX || nb > WORD_MAX || na + 2 < nb || nb + 2 < na)
		return MANY;
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = last[j - 1] + !is_same(a[i - 1], b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) &&
				is_same(a[i - 2], b[j - 1]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[na % 3][nb] < MANY ? row[na % 3][nb] : MANY;
}

const char *
nearest_name(const char *word, const char *const *names, size_t n)
{
	const char *nearest = NULL;
	size_t best = 3;

	for (size_t i = 0; i < n; i++) {
		size_t d = edits(word, names[i]);

		/* Two edits make any two letters of any others: that is no likeness. Of equals the
		 * longest: a letter is left out more often than a wrong one is hit. */
		if (d < strlen(word) && (d < best || (d == best && nearest &&
							     strlen(names[i]) > strlen(nearest)))) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}

static void
add_allowed(struct strbuf *sb, const struct shape *object)
{
	const char *sep = "";

	for (size_t i = 0; i < object->nfields; i++)
		if (object->fields[i].kind == FIELD_HERE) {
			strbuf_addf(sb, "%s%s", sep, object->fields[i].name);
			sep = ", ";
		}
}

static int
unknown_field(const struct json_at *at, const struct shape *object, struct err *e)
{
	cleanup_strbuf struct strbuf allowed = STRBUF_INIT;
	const char *names[64], *nearest;
	size_t k = 0;

	for (size_t i = 0; i < object->nfields && k < array_len(names); i++)
		if (object->fields[i].kind != FIELD_FOREIGN)
			names[k++] = object->fields[i].name;
	nearest = nearest_name(at->key, names, k);
	add_allowed(&allowed, object);
	if (nearest)
		return json_error_key(at, e, "unknown field, did you mean '%s'? allowed here: %s",
			nearest, allowed.buf);
	return json_error_key(at, e, "unknown field; allowed here: %s", allowed.buf);
}

static int
check_field(const struct json_at *at, const struct shape *object, struct err *e)
{
	for (size_t i = 0; i < object->nfields; i++) {
		const struct field *f = &object->fields[i];

		if (*f->name != *at->key || strcmp(f->name, at->key) != 0)
			continue;
		switch (f->kind) {
		case FIELD_HERE:
		case FIELD_IGNORED:
			return 0;
		case FIELD_LATER:
			return json_error_key(at, e, "is not in this vx yet");
		case FIELD_NOT:
			return json_error_key(at, e, "is not in this vx%s%s", f->text ? ": " : "",
				f->text ? f->text : "");
		case FIELD_FOREIGN:
			return json_error_key(at, e, "%s", f->text);
		}
	}
	return unknown_field(at, object, e);
}

int
fields_check(const struct json_at *at, const json_t *value, const struct shape *object,
	const char *write, struct err *e)
{
	if (!json_is_object(value)) {
		cleanup_strbuf struct strbuf allowed = STRBUF_INIT;

		add_allowed(&allowed, object);
		if (write)
			return json_error(at, e, "is %s: %s", json_kind(value), write);
		return json_error(at, e, "is %s: write an object with the fields %s",
			json_kind(value), allowed.buf);
	}
	for (size_t i = 0; i < value->n; i++) {
		struct json_at here = {at->doc, at, value->items[i].key, 0};

		if (check_field(&here, object, e) < 0)
			return -1;
	}
	return 0;
}

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

bool
field_has_outer_blank(const char *s)
{
	size_t n = strlen(s);

	return n && (is_blank(s[0]) || is_blank(s[n - 1]));
}

int
field_text(const struct json_at *at, const json_t *value, const char **ret, struct err *e)
{
	const char *s = json_c_string(value), *word = s;

	if (!json_is_string(value))
		return json_error(at, e, "is %s: write a string", json_kind(value));
	if (!s)
		return json_error(at, e, "holds a NUL (\\u0000): leave it out");
	while (is_blank(*word))
		word++;
	if (!*word)
		return json_error(at, e, *s ? "is only blanks" : "is empty");
	*ret = s;
	return 0;
}

int
field_string(const struct json_at *at, const json_t *value, struct arena *a, const char **ret,
	struct err *e)
{
	const char *s;

	if (field_text(at, value, &s, e) < 0)
		return -1;
	*ret = arena_strdup(a, s);
	return 0;
}

int
field_bool(const struct json_at *at, const json_t *value, bool *ret, struct err *e)
{
	if (!json_is_boolean(value))
		return json_error(at, e, "is %s: write true or false", json_kind(value));
	*ret = json_is_true(value);
	return 0;
}

int
field_strings(const struct json_at *at, const json_t *value, struct arena *a,
	int (*check)(const struct json_at *at, const char *s, struct err *e), const char ***ret,
	size_t *ret_n, struct err *e)
{
	size_t n = json_array_size(value);
	const char **list;

	if (!json_is_array(value))
		return json_error(at, e, "is %s: write an array of strings", json_kind(value));
	list = arena_array(a, n, const char *);
	for (size_t i = 0; i < n; i++) {
		struct json_at here = {at->doc, at, NULL, i};

		if (field_string(&here, json_array_get(value, i), a, &list[i], e) < 0)
			return -1;
		if (check && check(&here, list[i], e) < 0)
			return -1;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

int
field_timeout(const struct json_at *at, const json_t *value, uint64_t *ret, struct err *e)
{
	json_int_t v = json_integer_value(value);

	if (!json_is_integer(value) || v < 1 || v > FIELD_TIMEOUT_MAX)
		return json_error(at, e, "write a whole number of milliseconds from 1 to %d",
			FIELD_TIMEOUT_MAX);
	*ret = (uint64_t)v;
	return 0;
}

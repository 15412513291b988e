/* SPDX-License-Identifier: MIT */
/*
 * What an object of a config may hold. Each level has a table of the names that are known there:
 * those of this vx, those of a later one, those that belong to other systems or other runners, and
 * what to write instead. Everything else is an error that lists what is allowed and names the
 * nearest.
 *
 * schema/ is printed from the same tables (config/schema.h).
 */
#ifndef CONFIG_FIELDS_H
#define CONFIG_FIELDS_H

#include "config/json.h"
#include "util/base.h"

struct arena;
struct err;

enum field_kind {
	FIELD_HERE,
	FIELD_LATER,   /* "not in this vx yet" */
	FIELD_IGNORED, /* of another system: accepted, without effect */
	FIELD_NOT,     /* "not in this vx", and then the text, if any */
	FIELD_FOREIGN, /* the text says what to write */
};

struct shape;

struct field {
	const char *name;
	enum field_kind kind;
	const char *text;          /* HERE and IGNORED: what it is, as editors show it */
	const struct shape *shape; /* HERE and IGNORED */
};

/* What a value may be. */
struct shape {
	/* Keywords of JSON Schema, with ' for " and one backslash for two: they may refuse less than
	 * what reads the value, never more (tests/cli/schema.py). */
	const char *schema;
	const struct field *fields; /* of an object, or NULL */
	size_t nfields;
	const struct shape *each; /* of an object whose names are not ours: its values */
};

#define FIELDS(table) .fields = (table), .nfields = array_len(table)

/* Parts of regular expressions. */
#define BLANKS " \\t\\r\\n\\v\\f"
#define NOT_BLANK "[^" BLANKS "]"
/* A text of characters outside of the set that neither begins nor ends in a blank. */
#define TRIMMED(set) "[^" set BLANKS "]([^" set "]*[^" set BLANKS "])?"

extern const struct shape field_text_shape; /* what field_string takes */
extern const struct shape field_texts_shape;
extern const struct shape field_any_text_shape; /* and an empty one */
extern const struct shape field_bool_shape;
extern const struct shape field_timeout_shape;

/* The value must be an object whose every member is in the table, HERE or IGNORED. `write` says
 * what to write when it is something else; NULL: "an object with …", from the table. */
int fields_check(const struct json_at *at, const json_t *value, const struct shape *object,
	const char *write, struct err *e);

/* A string without NUL that is not only blanks: the value's own. */
int field_text(const struct json_at *at, const json_t *value, const char **ret, struct err *e);
/* The same, into the arena. */
int field_string(const struct json_at *at, const json_t *value, struct arena *a, const char **ret,
	struct err *e);
int field_bool(const struct json_at *at, const json_t *value, bool *ret, struct err *e);
/* An array of such strings; each may be refused by `check` with the place of its own. */
int field_strings(const struct json_at *at, const json_t *value, struct arena *a,
	int (*check)(const struct json_at *at, const char *s, struct err *e), const char ***ret,
	size_t *ret_n, struct err *e);
/* A whole number of milliseconds that a timer can hold. */
int field_timeout(const struct json_at *at, const json_t *value, uint64_t *ret, struct err *e);

enum {
	FIELD_TIMEOUT_MAX = 2147483647
};

/* Whether the text begins or ends in a blank. */
bool field_has_outer_blank(const char *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What an object of a config may hold. Each level has a table of the names that are known there:
 * those of this vx, those of a later one, those that belong to other systems or other runners, and
 * what to write instead. Everything else is an error that lists what is allowed and names the
 * nearest.
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

struct field {
	const char *name;
	enum field_kind kind;
	const char *text;
};

/* The value must be an object whose every member is in the table, HERE or IGNORED. `shape` says
 * what to write when it is something else; NULL: "an object with …", from the table. */
int fields_check(const struct json_at *at, const json_t *value, const struct field *table, size_t n,
	const char *shape, struct err *e);

/* A string without NUL that is not only blanks; into the arena. */
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

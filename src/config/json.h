/* SPDX-License-Identifier: MIT */
/*
 * JSON with // and block comments and trailing commas, every value with its place. A workspace has
 * thousands of these files and each run reads them all: a document is two blocks of memory, its
 * values and its strings.
 */
#ifndef CONFIG_JSON_H
#define CONFIG_JSON_H

#include "util/base.h"
#include <sys/stat.h>

struct err;
struct strbuf;

enum {
	JSON_FILE_MAX = 16 << 20,
	JSON_DEPTH_MAX = 128,
};

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_INTEGER, /* no fraction, no exponent */
	JSON_REAL,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json {
	enum json_type type;
	uint32_t line, col; /* from 1; columns in bytes */
	uint32_t key_line, key_col;
	uint32_t key_len;
	const char *key; /* as a member of an object; without NUL */
	union {
		int64_t integer;
		struct {
			const char *text; /* of a string, or of a real as it was written */
			size_t len;
		};
		struct {
			struct json *items; /* elements, or members in the order of the file */
			size_t n;
		};
	};
};
typedef struct json json_t;
typedef int64_t json_int_t;

struct json_doc {
	const char *file; /* as messages show it: relative to the workspace; borrowed */
	bool evaluated;   /* what a script yielded: its values have no lines */
	struct json *root;
	struct json *values; /* all others */
	char *strings;
};

/* Whose text it is. */
enum json_rules {
	JSON_STRICT,
	/* Our own files: comments and trailing commas are allowed, and a NUL in a string (\u0000) is kept, so
	 * that the error can name the value: use json_c_string there. */
	JSON_OURS,
	/* A package manager's: as JavaScript reads it, of a key that is there twice the last one counts, and an
	 * integer may have any size (it is a JSON_REAL then). */
	JSON_PACKAGE,
};

/* Errors: "packages/a/vx.config.json:3:14: …". Duplicate keys, invalid UTF-8, a root that is
 * neither object nor array and nesting beyond JSON_DEPTH_MAX are refused. json_load: kind IO with e->num where the
 * file cannot be read (ENOENT: it is not there); a link is followed, what is no regular file is
 * refused. json_parse: text[len] is a NUL. */
int json_load(int dirfd, const char *path, const char *shown, enum json_rules rules,
	struct json_doc *ret, struct err *e);
/* The two halves of json_load: appends the text, with the stat from before the reading; parses it. */
int json_read(int dirfd, const char *path, const char *shown, struct strbuf *ret_text,
	struct stat *ret_st, struct err *e);
int json_parse(const char *text, size_t len, const char *shown, enum json_rules rules,
	struct json_doc *ret, struct err *e);
void json_doc_release(struct json_doc *d);

/* All of these take NULL, and a value of another type, for one that is not there. */
const struct json *json_object_get(const struct json *object, const char *key);
const struct json *json_array_get(const struct json *array, size_t i);
/* The text of a string value, which may hold NULs. */
const char *json_string_value(const struct json *value);
/* The same without NULs; NULL: no string, or one with a NUL. */
const char *json_c_string(const struct json *value);

static inline bool
json_is(const struct json *v, enum json_type type)
{
	return v && v->type == type;
}
#define json_is_object(v) json_is((v), JSON_OBJECT)
#define json_is_array(v) json_is((v), JSON_ARRAY)
#define json_is_string(v) json_is((v), JSON_STRING)
#define json_is_integer(v) json_is((v), JSON_INTEGER)
#define json_is_true(v) json_is((v), JSON_TRUE)
#define json_is_false(v) json_is((v), JSON_FALSE)
#define json_is_null(v) json_is((v), JSON_NULL)
#define json_is_boolean(v) (json_is_true(v) || json_is_false(v))

static inline size_t
json_object_size(const struct json *v)
{
	return json_is_object(v) ? v->n : 0;
}

static inline size_t
json_array_size(const struct json *v)
{
	return json_is_array(v) ? v->n : 0;
}

static inline int64_t
json_integer_value(const struct json *v)
{
	return json_is_integer(v) ? v->integer : 0;
}

/* "a string", "an object": what a value is, for a message. */
const char *json_kind(const struct json *value);

/* Appends the value in the one form that is the same for all ways to write it: keys sorted, no
 * blanks, the shortest escapes. (Reals stand as they were written.) */
void json_canonical(const struct json *value, struct strbuf *out);

/* Appends a string with its quotes; what is no UTF-8 as the text "\xNN". */
void json_add_string(const char *s, size_t n, struct strbuf *out);

/* A path of keys and indexes to a value, on the stack of the one who descends. */
struct json_at {
	const struct json_doc *doc;
	const struct json_at *up; /* NULL: the root, or with a key: a member of the root */
	const char *key;          /* NULL: index */
	size_t index;
};

/* "FILE:LINE:COLUMN: tasks.build.exec: TEXT" with the place of the value at `at`, or of the nearest
 * one above it that is there ("FILE: tasks…" of a document that was evaluated). Control bytes in names and TEXT are shown escaped. Kind CONFIG.
 * Returns -1. */
int json_error(const struct json_at *at, struct err *e, const char *fmt, ...) attr_printf(3, 4);
/* The same with the place of the member's key: for what is wrong with the name. */
int json_error_key(const struct json_at *at, struct err *e, const char *fmt, ...) attr_printf(3, 4);

/* Line and column of the value at `at`, or of its key. */
void json_place(const struct json_at *at, bool key, size_t *ret_line, size_t *ret_col);

#endif

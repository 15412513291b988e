/* SPDX-License-Identifier: MIT */
/*
 * JSON with // and block comments and trailing commas, read with jansson, every value with its
 * place. jansson keeps no places, so the text is scanned once more, only when an error needs a
 * place: by the path of the value ("tasks.build.exec").
 */
#ifndef CONFIG_JSON_H
#define CONFIG_JSON_H

#include "util/base.h"
#include <jansson.h>

struct err;

enum {
	JSON_FILE_MAX = 16 << 20,
	JSON_DEPTH_MAX = 128,
};

struct json_doc {
	char *file;   /* as messages show it: relative to the workspace */
	char *text;   /* the file as it is on disk */
	char *strict; /* the same with comments and trailing commas blanked */
	size_t len;
	json_t *root;
};

/* Errors: "packages/a/vx.config.json:3:14: …". Duplicate keys, invalid UTF-8, a root that is
 * neither object nor array and nesting beyond JSON_DEPTH_MAX are refused. With `relaxed` (our own
 * files), comments and trailing commas are allowed, and a NUL in a string (\u0000) is kept, so that
 * the error can name the value: use json_c_string there. json_load: kind IO with e->num where the
 * file cannot be read (ENOENT: it is not there); a link is followed, what is no regular file is
 * refused. */
int json_load(int dirfd, const char *path, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e);
int json_parse(const char *text, size_t len, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e);
void json_doc_release(struct json_doc *d);

/* A path of keys and indexes to a value, on the stack of the one who descends. */
struct json_at {
	const struct json_doc *doc;
	const struct json_at *up; /* NULL: the root, or with a key: a member of the root */
	const char *key;          /* NULL: index */
	size_t index;
};

/* "FILE:LINE:COLUMN: tasks.build.exec: TEXT" with the place of the value at `at`, or of the nearest
 * one above it that is there. Control bytes in names and TEXT are shown escaped. Kind CONFIG.
 * Returns -1. */
int json_error(const struct json_at *at, struct err *e, const char *fmt, ...) attr_printf(3, 4);
/* The same with the place of the member's key: for what is wrong with the name. */
int json_error_key(const struct json_at *at, struct err *e, const char *fmt, ...) attr_printf(3, 4);

/* Line and column (from 1; column in bytes) of the value at `at`, or of its key. */
void json_place(const struct json_at *at, bool key, size_t *ret_line, size_t *ret_col);
/* The places of the keys of the object at `at`, in their order, in one scan. */
struct json_place {
	size_t line, col;
};
void json_member_places(const struct json_at *at, struct json_place *ret, size_t n);

/* The text of a string value without NULs, borrowed from it; NULL: no string, or one with a NUL. */
const char *json_c_string(const json_t *value);
/* "a string", "an object": what a value is, for a message. */
const char *json_kind(const json_t *value);

#endif

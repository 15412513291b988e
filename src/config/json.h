/* SPDX-License-Identifier: MIT */
/*
 * JSON with // and block comments and trailing commas, read with jansson, every value with its place.
 * jansson keeps no places, so the text is scanned once more, only when an error needs a place: by
 * the path of the value ("tasks.build.exec").
 */
#ifndef CONFIG_JSON_H
#define CONFIG_JSON_H

#include "util/base.h"
#include <jansson.h>

struct err;

enum { JSON_FILE_MAX = 16 << 20 };

struct json_doc {
	char *file;  /* as messages show it: relative to the workspace */
	char *text;  /* the file as it is on disk */
	size_t len;
	json_t *root;
};

/* Errors: "packages/a/vx.config.json:3:14: …". Duplicate keys and invalid UTF-8 are refused. With
 * `relaxed`, comments and trailing commas are allowed. */
int json_load(int dirfd, const char *path, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e);
int json_parse(const char *text, size_t len, const char *shown, bool relaxed, struct json_doc *ret,
	struct err *e);
void json_doc_release(struct json_doc *d);

/* A path of keys and indexes to a value, on the stack of the one who descends. */
struct json_at {
	const struct json_doc *doc;
	const struct json_at *up;
	const char *key; /* NULL: index */
	size_t index;
};

/* "FILE:LINE:COLUMN: tasks.build.exec: TEXT". Returns -1. */
int json_error(const struct json_at *at, struct err *e, const char *fmt, ...) attr_printf(3, 4);

/* Line and column (from 1; column in bytes) of the value at `at`; of a key when `key` is set. */
void json_place(const struct json_at *at, size_t *ret_line, size_t *ret_col);

#endif

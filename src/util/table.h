/* SPDX-License-Identifier: MIT */
/*
 * A file of rows and the bytes that they point into, in the machine's byte order, read and written
 * whole. For memories that cost nothing but time when they are lost: a file of another kind,
 * version, byte order or checksum is none. The checksum finds damage, not malice.
 */
#ifndef UTIL_TABLE_H
#define UTIL_TABLE_H

#include "util/base.h"

struct strbuf;

struct table_kind {
	char magic[8];
	uint32_t version;
	size_t row_size; /* a multiple of 8 */
};

struct table {
	const void *rows;
	size_t nrows;
	const char *bytes;
	size_t nbytes;
	void *body; /* owned: rows and bytes */
};

/* 1; 0: there is none; -1: there is one that is not to be believed. The caller checks each place in
 * `bytes`. */
int table_open(int dirfd, const char *name, const struct table_kind *kind, struct table *ret);
void table_close(struct table *t);

/* A text for `bytes`, with a NUL behind it; where it stands there. */
uint64_t table_add_text(struct strbuf *bytes, const char *text, size_t len);
/* Replaces the file. errno on -1. */
int table_write(int dirfd, const char *name, const struct table_kind *kind, const void *rows,
	size_t nrows, const void *bytes, size_t nbytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Content by digest: DIR/blobs/ab/cdef… one file per content, shared between entries. Written to a
 * temporary beside it and linked into place; EEXIST is success. No fsync: a torn blob is found by
 * its digest when it is read, and is then a miss.
 */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include "util/digest.h"

struct err;
struct store;
struct strbuf;

/* cachefd: the cache directory, made by the caller; borrowed. */
int store_open(int cachefd, struct store **ret, struct err *e);
void store_close(struct store *s);

/* Copies the content of fd (from its start; its position is moved) in. Errors do not name the file. */
int store_put_fd(struct store *s, int fd, struct digest *ret, uint64_t *ret_size, struct err *e);
int store_put_bytes(struct store *s, const void *p, size_t n, struct digest *ret, struct err *e);
bool store_has(struct store *s, const struct digest *d);

/* 1: `to` (empty) has the content, checked against its digest while copying (reflink where possible:
 * then read back and checked). 0: not here, or damaged: dropped; `to` may hold some of it. -1: cannot
 * write. */
int store_get_fd(struct store *s, const struct digest *d, int to, struct err *e);
/* As store_get_fd, appended. More than `max` bytes is an error. */
int store_get_bytes(
	struct store *s, const struct digest *d, size_t max, struct strbuf *to, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Content by digest: DIR/blobs/ab/cdef… one file per content, shared between entries. Written to a
 * temporary beside it and linked into place; EEXIST is success. No fsync: a torn blob is found by
 * its digest when it is read, and is then a miss. A save that comes upon one writes it again where
 * its size shows the damage; once a damaged one was met, all that saves come upon are read. Content
 * over 64 KiB that could not be cloned is packed where that pays, and then has ".zst" behind its
 * name (cache/blob.h); the digest is that of the content all the same.
 *
 * What nothing refers to is removed by cache/gc.c, perhaps that of another process. While a save of
 * anybody is under way, that leaves alone a blob that was written, or found there by a save, within
 * the last STORE_GRACE_S: its row may be yet to come. Saves and cleanings know of each other by a
 * flock on DIR/blobs, for which nobody ever waits.
 */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include "util/digest.h"

enum {
	STORE_GRACE_S = 3600
};

struct err;
struct store;
struct strbuf;

/* cachefd: the cache directory, made by the caller; borrowed. */
int store_open(int cachefd, struct store **ret, struct err *e);
void store_close(struct store *s);

/* Copies the content of fd (from its start; its position is moved) in. Errors do not name the file. */
int store_put_fd(struct store *s, int fd, struct digest *ret, uint64_t *ret_size, struct err *e);
int store_put_bytes(struct store *s, const void *p, size_t n, struct digest *ret, struct err *e);

/* What is put between them is one result, whose row is written before the end. Without one (`kept`
 * false) the blobs that were new are removed again, so that a save which found no room leaves none
 * that nobody needs. Another save that has found one of them meanwhile may have a row without it
 * then, which is a miss. */
void store_save_begin(struct store *s);
void store_save_end(struct store *s, bool kept);
/* Whether a blob could not be written: since the last store_save_begin, and ever, for want of room. */
bool store_save_failed(const struct store *s);
bool store_is_full(const struct store *s);
/* There was none for a row. */
void store_set_full(struct store *s);

bool store_has(struct store *s, const struct digest *d);
/* How much of content of `size` bytes its blob does not take up on the disk: holes, and what packing has saved.
 * It costs who made it nothing, and time to read. 0 where it is not here. */
uint64_t store_hollow(struct store *s, const struct digest *d, uint64_t size);
/* What the blobs that were new, and are kept, take up on the disk. */
uint64_t store_written(const struct store *s);

/* 1: `to` (empty) has the content of `size` bytes, checked against its digest while copying (reflink
 * where possible: then read back and checked). 0: not here, or damaged or of another size: dropped;
 * `to` may hold some of it. -1: cannot write. */
int store_get_fd(struct store *s, const struct digest *d, uint64_t size, int to, struct err *e);
/* As store_get_fd, appended. More than `max` bytes is damage. */
int store_get_bytes(
	struct store *s, const struct digest *d, size_t max, struct strbuf *to, struct err *e);

struct store_blob {
	struct digest digest;
	bool packed;
	uint64_t disk;   /* bytes on the disk */
	int64_t used_ns; /* written, or last found by a save */
};

/* Before blobs are listed and the rows read that say which are needed. Of what no row needs, that may go which
 * was used before the time that it returns: of anything later the row may be yet to come. That is now
 * where no save of anybody is under way: one that begins before the end gives a new time to every
 * blob that it finds. Else, or where this file system cannot say, it is STORE_GRACE_S ago. */
int64_t store_sweep_begin(struct store *s);
void store_sweep_end(struct store *s);

/* Calls for every blob, by the first byte of its digest; -1 of `each` ends it with -1. What has no
 * name of a blob is passed over. */
int store_each(struct store *s, int (*each)(void *ctx, const struct store_blob *b), void *ctx,
	struct err *e);
/* Whether it was removed: not when it is gone, or has been used since store_each. */
bool store_remove(struct store *s, const struct store_blob *b);

#endif

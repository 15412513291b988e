/* SPDX-License-Identifier: MIT */
/*
 * What may go, and going. Rows by age, then the least recently used until the rest fits; then every
 * blob that no remaining row needs. It reads the trees of all rows, so it costs in proportion to the
 * cache: a run does it at most once an hour, or when it has written beyond the limit, and gives up
 * after a second. Others may use the same cache meanwhile: rows go before their blobs, a blob in use
 * by a save that has no row yet is left alone (store_sweep_begin), and whatever else goes wrong is a
 * miss for them. On a full disk there may be no room to write that rows are gone: then their blobs go
 * first, in use or not, as a row without its blobs is a miss, and the rows in the room that they leave.
 */
#ifndef CACHE_GC_H
#define CACHE_GC_H

#include "util/base.h"

struct err;
struct index;
struct store;

struct gc_limits {
	uint64_t older_than_ns; /* since the last use, which is known to a day; 0: any age */
	uint64_t max_bytes;     /* on the disk; 0: any size */
};

struct gc_result {
	uint64_t entries, bytes;        /* rows dropped, and what blobs of theirs went */
	uint64_t orphans, orphan_bytes; /* blobs that no row needed before either */
	uint64_t young;                 /* what would have gone, but may be of a save under way */
	uint64_t left;                  /* what remains on the disk, that included */
};

/* 1 done; 0 given up after budget_ns (0: no limit) or because a stop is asked, before anything was
 * dropped. `dry`: nothing is, only counted. */
int gc_sweep(struct index *ix, struct store *s, const struct gc_limits *limits, uint64_t budget_ns,
	bool dry, struct gc_result *ret, struct err *e);

/* At the end of a run: the sweep when it is due and something was written, or when the store is full. *ret_note (owned, or
 * NULL): what the user should hear, once a day: that the cache is larger than 10 GiB and nothing
 * limits it, or too large to be cleaned in passing. */
int gc_after_run(struct index *ix, struct store *s, const struct gc_limits *limits,
	const char *cache_dir, char **ret_note, struct err *e);

/* "1.5 GiB" */
void gc_size_text(uint64_t bytes, char *ret, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A task's declared outputs on disk: which exist, what they look like, and removing them
 * (spec/cache.md §5). Links are entries, never followed; the exception is a link to a directory on
 * the way to the outputs that stays in the project, which is kept and followed.
 */
#ifndef CACHE_OUTPUTS_H
#define CACHE_OUTPUTS_H

#include "util/base.h"
#include <sys/stat.h>

struct err;
struct globset;
struct project;
struct strvec;

enum output_type { OUTPUT_FILE, OUTPUT_DIR, OUTPUT_LINK };

struct output {
	char *path; /* from the workspace root; owned */
	enum output_type type;
	uint32_t mode; /* 0777: set-id and sticky bits are never kept */
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t ino;
	char *target; /* OUTPUT_LINK; owned */
};
struct outputs {
	struct output *v; /* sorted by path: directories before what is in them */
	size_t n, cap;
};
void outputs_release(struct outputs *o);
struct output *outputs_add(struct outputs *o); /* zeroed */
void outputs_sort(struct outputs *o);

/* What is on disk below rootfd that the set selects, directories included. Never .git and .vx, nor a
 * nested project; node_modules only when a glob names it. A fifo, socket or device: an error naming
 * it. `nested`: directories of nested projects. */
int outputs_scan(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	struct outputs *ret, struct err *e);

/* Removes what outputs_scan finds less what `keep` holds (may be NULL), then directories left empty;
 * the wildcard's own directory stays. An output that cannot be removed is an error naming it. */
int outputs_clean(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	const struct outputs *keep, struct err *e);

#endif

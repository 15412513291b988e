/* SPDX-License-Identifier: MIT */
/*
 * What stat said of a file when its content was read. While it says the same, the content is the same;
 * but for a write so soon before the reading that one after it can have left the same times.
 */
#ifndef UTIL_FILESTATE_H
#define UTIL_FILESTATE_H

#include "util/base.h"
#include <sys/stat.h>

/* As files of vx hold it: no padding. */
struct filestate {
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
	int64_t learned_ns; /* the files' clock before the content was read */
	uint32_t mode, uid, gid, zero;
};

/* `learned_ns`: clock_files_ns() from before the reading, and `st` no younger than its begin. */
void filestate_take(struct filestate *ret, const struct stat *st, int64_t learned_ns);
/* Whether what was read then is what would be read now. */
bool filestate_holds(const struct filestate *f, const struct stat *now);
/* Whether a time comes from a file system that counts whole or even seconds, and was so young at `looked_ns`
 * (clock_files_ns()) that a change after that may have left the same. */
bool filestate_is_coarse(int64_t time_ns, int64_t looked_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Outputs whose modes keep their own owner out (a directory of mode 0, a file that may not be read):
 * opened up while they are worked on, then given their modes back.
 */
#ifndef CACHE_ACCESS_H
#define CACHE_ACCESS_H

#include "util/base.h"
#include <sys/types.h>

struct access_fix {
	char *path;
	mode_t mode; /* that it had */
};
struct access_fixes {
	struct access_fix *v;
	size_t n, cap;
};

/* chmod of what lies at path below rootfd, itself no link. errno on -1. */
int access_chmod(int rootfd, const char *path, mode_t mode);
/* Adds the bits `need` to path, whose mode is `mode`, and remembers the latter. Nothing happens when
 * they are there. errno on -1. */
int access_add(struct access_fixes *a, int rootfd, const char *path, mode_t mode, mode_t need);
/* Forgets all: somebody else has given them their modes. */
void access_release(struct access_fixes *a);
/* Gives the modes back, last first, and forgets them. What is gone is fine. errno on -1, after the
 * rest was done. */
int access_restore(struct access_fixes *a, int rootfd);

#endif

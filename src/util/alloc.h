/* SPDX-License-Identifier: MIT */
/*
 * Allocators that die when memory is out: no caller has a better answer.
 */
#ifndef UTIL_ALLOC_H
#define UTIL_ALLOC_H

#include "util/base.h"

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
/* For what is some megabytes and will be filled: in huge pages where the kernel gives them (madvise(2),
 * Linux 2.6.38). The kernel's part in a new page can cost more than what a parser does with its 4 KiB.
 * For free(). */
void *xmalloc_large(size_t n);
void *xcalloc_large(size_t n, size_t size);
/* n * size is checked for overflow. */
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xmemdupz(const void *p, size_t n); /* n bytes and a NUL */
char *xasprintf(const char *fmt, ...) attr_printf(1, 2);

enum {
	ALLOC_HUGE_PAGE = 2 * 1024 * 1024 /* of x86-64, and of arm64 with pages of 4 KiB */
};

/* Makes room for at least `need` elements in the array `a` of capacity `cap`. */
#define GROW(a, need, cap)                                                                         \
	do {                                                                                       \
		if ((size_t)(need) > (size_t)(cap)) {                                              \
			(cap) = alloc_nr((need), (cap));                                           \
			(a) = xreallocarray((a), (cap), sizeof(*(a)));                             \
		}                                                                                  \
	} while (0)

static inline size_t
alloc_nr(size_t need, size_t cap)
{
	size_t n = cap + cap / 2 + 16;

	return n < need ? need : n;
}

#endif

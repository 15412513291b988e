/* SPDX-License-Identifier: MIT */
/*
 * Allocate many small things, free them all at once. Config, workspace and graph live in one.
 */
#ifndef UTIL_ARENA_H
#define UTIL_ARENA_H

#include "util/base.h"

struct arena_block;
struct arena {
	struct arena_block *head;
	char *next;
	size_t left;
	size_t held; /* by all blocks */
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);

/* Zeroed memory, aligned for any object. */
void *arena_alloc(struct arena *a, size_t n);
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, n, type) ((type *)arena_alloc_array((a), (n), sizeof(type)))
void *arena_alloc_array(struct arena *a, size_t n, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_memdupz(struct arena *a, const void *p, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) attr_printf(2, 3);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A table from byte strings to pointers. Keys are borrowed and must outlive the table; use
 * htab_put_copy where nobody else keeps them. Iteration is in order of insertion, so that what is
 * printed from a table is the same every time.
 */
#ifndef UTIL_HTAB_H
#define UTIL_HTAB_H

#include "util/base.h"

struct htab_entry {
	const char *key;
	size_t len;
	uint64_t hash;
	void *value;
	bool owned; /* the key is the table's own copy */
};

struct htab {
	struct htab_entry *entries; /* n of them, in order of insertion */
	size_t n;
	size_t cap;
	uint32_t *slots; /* index + 1 into entries; power of two many */
	size_t nslots;
};

void htab_init(struct htab *t);
void htab_release(struct htab *t);
/* NULL where there is none; a stored NULL cannot be told apart: use htab_find for that. */
void *htab_get(const struct htab *t, const char *key);
void *htab_getn(const struct htab *t, const char *key, size_t len);
/* The entry, or NULL. Valid until the next put. */
struct htab_entry *htab_findn(const struct htab *t, const char *key, size_t len);
/* Adds, or replaces the value of, a key. Returns the old value or NULL. */
void *htab_put(struct htab *t, const char *key, void *value);
void *htab_putn(struct htab *t, const char *key, size_t len, void *value);
void *htab_putn_copy(struct htab *t, const char *key, size_t len, void *value);

#endif

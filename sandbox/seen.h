/* SPDX-License-Identifier: MIT */
/*
 * The names that were reported, so that none is reported twice: eight bytes a name, a keyed hash
 * (SipHash-2-4 under a random key). The task chooses the names; without the key it cannot make one
 * that silences another.
 */
#ifndef SANDBOX_SEEN_H
#define SANDBOX_SEEN_H

#include "util/base.h"

struct seen {
	uint64_t key[2];
	uint64_t *slots; /* 0: free */
	size_t n;
	size_t nslots; /* a power of two */
};

/* Dies when the system has no randomness to give. */
void seen_init(struct seen *s);
void seen_release(struct seen *s);
/* False when the name was there already. */
bool seen_add(struct seen *s, const char *name);

/* For the test against the reference vectors. */
uint64_t seen_hash(const uint64_t key[2], const void *p, size_t n);

#endif

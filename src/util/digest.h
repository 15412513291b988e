/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (libcrypto): the identity of content, keys and trees. Hex is lower case.
 */
#ifndef UTIL_DIGEST_H
#define UTIL_DIGEST_H

#include "util/base.h"

enum {
	DIGEST_SIZE = 32,
	DIGEST_HEX = 65 /* with its NUL */
};

struct digest {
	unsigned char b[DIGEST_SIZE];
};

/* A running digest: init, any number of updates, final. No allocation, no failure. */
struct digest_state {
	_Alignas(16) unsigned char opaque[128];
};
void digest_init(struct digest_state *s);
void digest_update(struct digest_state *s, const void *p, size_t n);
void digest_final(struct digest_state *s, struct digest *ret);

void digest_bytes(const void *p, size_t n, struct digest *ret);
/* From the fd's current position to its end. errno on -1, ECANCELED when a stop is asked
 * (util/stop.h); *ret_size (may be NULL) is the bytes read. */
int digest_fd(int fd, struct digest *ret, uint64_t *ret_size);

void digest_hex(const struct digest *d, char ret[DIGEST_HEX]);
/* False unless s is exactly 64 lower-case hex digits. */
bool digest_parse(const char *s, struct digest *ret);
static inline bool
digest_equal(const struct digest *a, const struct digest *b)
{
	return !memcmp(a->b, b->b, DIGEST_SIZE);
}

#endif

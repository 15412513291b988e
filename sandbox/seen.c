/* SPDX-License-Identifier: MIT */
#include "sandbox/seen.h"
#include "util/alloc.h"
#include "util/err.h"
#include <sys/random.h>

struct sip {
	uint64_t v[4];
};

static uint64_t
rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void
rounds(struct sip *s, int n)
{
	uint64_t *v = s->v;

	while (n--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void
word(struct sip *s, uint64_t m)
{
	s->v[3] ^= m;
	rounds(s, 2);
	s->v[0] ^= m;
}

static uint64_t
get_le64(const unsigned char *p, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m |= (uint64_t)p[i] << (8 * i);
	return m;
}

uint64_t
seen_hash(const uint64_t key[2], const void *p, size_t n)
{
	const unsigned char *b = p;
	struct sip s = {{
		key[0] ^ 0x736f6d6570736575,
		key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573,
	}};
	size_t left = n;

	for (; left >= 8; left -= 8, b += 8)
		word(&s, get_le64(b, 8));
	word(&s, get_le64(b, left) | (uint64_t)n << 56);
	s.v[2] ^= 0xff;
	rounds(&s, 4);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

void
seen_init(struct seen *s)
{
	*s = (struct seen){0};
	if (getrandom(s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key))
		bug("getrandom");
}

void
seen_release(struct seen *s)
{
	free(s->slots);
	s->slots = NULL;
}

/* False when it was there. */
static bool
put(uint64_t *slots, size_t nslots, uint64_t hash)
{
	size_t i = hash & (nslots - 1);

	for (; slots[i]; i = (i + 1) & (nslots - 1))
		if (slots[i] == hash)
			return false;
	slots[i] = hash;
	return true;
}

static void
grow(struct seen *s)
{
	size_t n = s->nslots ? 2 * s->nslots : 256;
	uint64_t *slots = xcalloc(n, sizeof(*slots));

	for (size_t i = 0; i < s->nslots; i++)
		if (s->slots[i])
			put(slots, n, s->slots[i]);
	free(s->slots);
	s->slots = slots;
	s->nslots = n;
}

bool
seen_add(struct seen *s, const char *name)
{
	uint64_t hash = seen_hash(s->key, name, strlen(name));

	if (s->n >= s->nslots / 4 * 3)
		grow(s);
	/* 0 means free */
	if (!put(s->slots, s->nslots, hash ? hash : 1))
		return false;
	s->n++;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "util/htab.h"
#include "util/alloc.h"

void
htab_init(struct htab *t)
{
	*t = (struct htab){0};
}

void
htab_release(struct htab *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->entries[i].owned)
			free((void *)(uintptr_t)t->entries[i].key);
	free(t->entries);
	free(t->slots);
	htab_init(t);
}

/* FNV-1a with a final mix. Names here come from the user's own workspace, not from an attacker who
 * gains by collisions: the worst he makes slow is his own run. */
static uint64_t
hash_bytes(const char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return h;
}

static size_t
find_slot(const struct htab *t, const char *key, size_t len, uint64_t hash)
{
	size_t mask = t->nslots - 1, i = hash & mask;

	while (t->slots[i]) {
		const struct htab_entry *e = &t->entries[t->slots[i] - 1];

		if (e->hash == hash && e->len == len && !memcmp(e->key, key, len))
			break;
		i = (i + 1) & mask;
	}
	return i;
}

static void
rehash(struct htab *t)
{
	t->nslots = t->nslots ? t->nslots * 2 : 64;
	free(t->slots);
	t->slots = xcalloc(t->nslots, sizeof(*t->slots));
	for (size_t i = 0; i < t->n; i++) {
		size_t mask = t->nslots - 1, s = t->entries[i].hash & mask;

		while (t->slots[s])
			s = (s + 1) & mask;
		t->slots[s] = (uint32_t)i + 1;
	}
}

struct htab_entry *
htab_findn(const struct htab *t, const char *key, size_t len)
{
	size_t s;

	if (!t->n)
		return NULL;
	s = find_slot(t, key, len, hash_bytes(key, len));
	return t->slots[s] ? &t->entries[t->slots[s] - 1] : NULL;
}

void *
htab_getn(const struct htab *t, const char *key, size_t len)
{
	struct htab_entry *e = htab_findn(t, key, len);

	return e ? e->value : NULL;
}

void *
htab_get(const struct htab *t, const char *key)
{
	return htab_getn(t, key, strlen(key));
}

static void *
put(struct htab *t, const char *key, size_t len, void *value, bool copy)
{
	uint64_t hash = hash_bytes(key, len);
	size_t s;
	void *old;

	if ((t->n + 1) * 4 > t->nslots * 3)
		rehash(t);
	s = find_slot(t, key, len, hash);
	if (t->slots[s]) {
		struct htab_entry *e = &t->entries[t->slots[s] - 1];

		old = e->value;
		e->value = value;
		return old;
	}
	GROW(t->entries, t->n + 1, t->cap);
	t->entries[t->n++] = (struct htab_entry){
		.key = copy ? xmemdupz(key, len) : key,
		.len = len,
		.hash = hash,
		.value = value,
		.owned = copy,
	};
	t->slots[s] = (uint32_t)t->n;
	return NULL;
}

void *
htab_putn(struct htab *t, const char *key, size_t len, void *value)
{
	return put(t, key, len, value, false);
}

void *
htab_put(struct htab *t, const char *key, void *value)
{
	return put(t, key, strlen(key), value, false);
}

void *
htab_putn_copy(struct htab *t, const char *key, size_t len, void *value)
{
	return put(t, key, len, value, true);
}

/* SPDX-License-Identifier: MIT */
/*
 * A set of globs from words: { "dist/xx", "!dist/cache", NULL }.
 */
#ifndef TESTS_UNIT_GLOBS_H
#define TESTS_UNIT_GLOBS_H

#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/glob.h"

static inline struct globset
globs(struct arena *a, const char *base, const char *const *words)
{
	struct globset s = {0};
	size_t n = 0;

	while (words[n])
		n++;
	s.pos = arena_alloc_array(a, n + 1, sizeof(*s.pos));
	s.neg = arena_alloc_array(a, n + 1, sizeof(*s.neg));
	for (size_t i = 0; i < n; i++) {
		bool neg = *words[i] == '!';
		struct err e = ERR_INIT;
		struct glob *g;

		if (glob_parse(a, base, words[i] + neg, 0, &g, &e))
			bug("%s: %s", words[i], e.text);
		if (neg)
			s.neg[s.nneg++] = g;
		else
			s.pos[s.npos++] = g;
	}
	return s;
}
#define GLOBS(a, base, ...) globs((a), (base), (const char *const[]){__VA_ARGS__, NULL})

#endif

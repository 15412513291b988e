/* SPDX-License-Identifier: MIT */
#include "exec/rules.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"

enum {
	BIT_READ = 1 << SPEC_READ,
	BIT_WRITE = 1 << SPEC_WRITE,
	BIT_DENY_READ = 1 << SPEC_DENY_READ,
	BIT_DENY_WRITE = 1 << SPEC_DENY_WRITE,
	BIT_QUIET = 1 << SPEC_QUIET,
	READS = BIT_READ | BIT_WRITE | BIT_DENY_READ,
	WRITES = BIT_WRITE | BIT_DENY_WRITE,
};

struct glob_rule {
	unsigned bit;
	struct glob *glob;
};

struct rules {
	struct arena arena;
	struct htab literals; /* path -> bits; a derived policy has one for each input file */
	struct glob_rule *globs;
	size_t nglobs, globs_cap;
};

static void
add_literal(struct rules *r, enum spec_rule_kind kind, const char *path)
{
	size_t n = strlen(path);
	uintptr_t bits = (uintptr_t)htab_getn(&r->literals, path, n);

	htab_putn(&r->literals, arena_strdup(&r->arena, path), n,
		(void *)(bits | (uintptr_t)1 << kind));
}

int
rules_new(const struct spec_rule *v, size_t n, struct rules **ret, struct err *e)
{
	struct rules *r = xcalloc(1, sizeof(*r));

	arena_init(&r->arena);
	htab_init(&r->literals);
	for (size_t i = 0; i < n; i++) {
		struct glob *g;

		if (*v[i].path == '/')
			continue;
		if (!v[i].is_glob) {
			add_literal(r, v[i].kind, v[i].path);
			continue;
		}
		if (glob_parse(&r->arena, "", v[i].path, GLOB_GRANT, &g, e)) {
			rules_free(r);
			return -1;
		}
		GROW(r->globs, r->nglobs + 1, r->globs_cap);
		r->globs[r->nglobs++] = (struct glob_rule){1U << v[i].kind, g};
	}
	*ret = r;
	return 0;
}

void
rules_free(struct rules *r)
{
	if (!r)
		return;
	htab_release(&r->literals);
	arena_release(&r->arena);
	free(r->globs);
	free(r);
}

/* The bits of the longest literal rule of the `wanted` kinds that holds path; -1 in *ret_len: none. */
static unsigned
literal_bits(const struct rules *r, const char *path, unsigned wanted, int *ret_len)
{
	size_t n = strlen(path);

	for (;;) {
		unsigned bits = (unsigned)(uintptr_t)htab_getn(&r->literals, path, n) & wanted;

		if (bits) {
			*ret_len = (int)n;
			return bits;
		}
		if (!n)
			break;
		while (n && path[n - 1] != '/')
			n--;
		n -= n > 0;
	}
	*ret_len = -1;
	return 0;
}

static bool
is_allowed(const struct rules *r, const char *path, unsigned wanted, unsigned deny)
{
	int best;
	unsigned bits = literal_bits(r, path, wanted, &best);

	for (size_t i = 0; i < r->nglobs; i++) {
		int length;

		if (!(r->globs[i].bit & wanted))
			continue;
		length = glob_specificity(r->globs[i].glob, path);
		if (length > best)
			bits = 0;
		if (length >= 0 && length >= best) {
			best = length;
			bits |= r->globs[i].bit;
		}
	}
	return bits && !(bits & deny);
}

bool
rules_is_quiet(const struct rules *r, const char *path)
{
	int length;

	if (literal_bits(r, path, BIT_QUIET, &length))
		return true;
	for (size_t i = 0; i < r->nglobs; i++) {
		cleanup_strbuf struct strbuf above = STRBUF_INIT;

		if (r->globs[i].bit != BIT_QUIET)
			continue;
		strbuf_adds(&above, path);
		for (;;) {
			if (glob_match(r->globs[i].glob, above.buf))
				return true;
			if (!above.len)
				break;
			strbuf_truncate(&above, path_parent_len(above.buf));
		}
	}
	return false;
}

bool
rules_may_read(const struct rules *r, const char *path)
{
	return !rules_is_quiet(r, path) && is_allowed(r, path, READS, BIT_DENY_READ);
}

bool
rules_may_write(const struct rules *r, const char *path)
{
	return !rules_is_quiet(r, path) && is_allowed(r, path, WRITES, BIT_DENY_WRITE);
}

static bool
grants_below(const struct rules *r, const char *dir, unsigned wanted)
{
	for (size_t i = 0; i < r->literals.n; i++) {
		const struct htab_entry *h = &r->literals.entries[i];

		if (((unsigned)(uintptr_t)h->value & wanted) && strcmp(h->key, dir) != 0 &&
			path_is_within(h->key, dir))
			return true;
	}
	for (size_t i = 0; i < r->nglobs; i++)
		if ((r->globs[i].bit & wanted) && glob_may_match_below(r->globs[i].glob, dir))
			return true;
	return false;
}

bool
rules_may_read_below(const struct rules *r, const char *dir)
{
	return grants_below(r, dir, BIT_READ | BIT_WRITE);
}

bool
rules_may_write_below(const struct rules *r, const char *dir)
{
	return grants_below(r, dir, BIT_WRITE);
}

bool
rules_names_write(const struct rules *r, const char *name, const char *path)
{
	for (size_t i = 0; i < r->literals.n; i++) {
		const struct htab_entry *h = &r->literals.entries[i];

		if (!((unsigned)(uintptr_t)h->value & BIT_WRITE) || !path_is_within(h->key, name))
			continue;
		if (path_is_within(path, h->key) || path_is_within(h->key, path))
			return true;
	}
	return false;
}

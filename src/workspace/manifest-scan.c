/* SPDX-License-Identifier: MIT */
/*
 * The quick way through a manifest, of which a workspace has a thousand: the common kind is read in one
 * pass, without building a tree. Plain ASCII, no escapes in what is needed, no member globs or
 * catalogs. Whatever it does not understand, be it valid or not, it leaves to the parser in manifest.c;
 * so it never refuses, and never accepts what the parser would refuse.
 */
#include "util/alloc.h"
#include "util/arena.h"
#include "workspace/manifest.h"

enum {
	SCAN_DEPTH_MAX = 16,
	SCAN_DIGITS_MAX = 15
};

struct scan {
	const char *p; /* ends in a NUL, which no token holds */
	struct manifest_dep *deps;
	size_t ndeps, cap;
};

struct word {
	const char *s;
	size_t n;
};

static void
skip_blanks(struct scan *s)
{
	while (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r')
		s->p++;
}

/* Takes the byte `c`, with blanks around it. */
static bool
take(struct scan *s, char c)
{
	skip_blanks(s);
	if (*s->p != c)
		return false;
	s->p++;
	skip_blanks(s);
	return true;
}

/* What is to be looked at in a string: its end, an escape, and what is not plain ASCII. */
static const bool is_special[256] = {
	[0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x7f ... 0xff] = true};

/* A string. `*ret_plain` says that it holds no escape and so is what it says. */
static bool
take_string(struct scan *s, struct word *ret, bool *ret_plain)
{
	bool plain = true;
	const char *p = s->p;

	if (*p++ != '"')
		return false;
	ret->s = p;
	for (; *p != '"'; p++) {
		if (!is_special[(unsigned char)*p])
			continue;
		if (*p != '\\')
			return false;
		plain = false;
		p++;
		if (!*p || !strchr("\"\\/bfnrt", *p))
			return false;
	}
	ret->n = (size_t)(p - ret->s);
	s->p = p + 1;
	*ret_plain = plain;
	return true;
}

static bool
take_plain(struct scan *s, struct word *ret)
{
	bool plain;

	return take_string(s, ret, &plain) && plain;
}

static bool
skip_digits(struct scan *s)
{
	const char *start = s->p;

	while (*s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > start && s->p - start <= SCAN_DIGITS_MAX;
}

static bool
skip_number(struct scan *s)
{
	s->p += *s->p == '-';
	if (*s->p == '0' && s->p[1] >= '0' && s->p[1] <= '9')
		return false;
	if (!skip_digits(s))
		return false;
	if (*s->p == '.') {
		s->p++;
		if (!skip_digits(s))
			return false;
	}
	return *s->p != 'e' && *s->p != 'E';
}

static bool
skip_literal(struct scan *s)
{
	static const char *const literals[] = {"true", "false", "null"};

	for (size_t i = 0; i < array_len(literals); i++) {
		size_t n = strlen(literals[i]);

		if (!strncmp(s->p, literals[i], n)) {
			s->p += n;
			return true;
		}
	}
	return false;
}

static bool
skip_scalar(struct scan *s)
{
	struct word w;
	bool plain;

	if (*s->p == '"')
		return take_string(s, &w, &plain);
	if (*s->p == '-' || (*s->p >= '0' && *s->p <= '9'))
		return skip_number(s);
	return skip_literal(s);
}

/* Any value. `open` is the stack of the brackets around the current place. */
static bool
skip_value(struct scan *s)
{
	char open[SCAN_DEPTH_MAX];
	size_t depth = 0;
	struct word key;
	bool plain;

	for (;;) {
		if (*s->p == '{' || *s->p == '[') {
			char bracket = *s->p;

			if (depth == SCAN_DEPTH_MAX)
				return false;
			take(s, bracket);
			open[depth++] = bracket == '{' ? '}' : ']';
			if (take(s, open[depth - 1]))
				depth--;
			else if (bracket == '{' && (!take_string(s, &key, &plain) || !take(s, ':')))
				return false;
			else
				continue;
		} else if (!skip_scalar(s)) {
			return false;
		}
		while (depth && take(s, open[depth - 1]))
			depth--;
		if (!depth)
			return true;
		if (!take(s, ','))
			return false;
		if (open[depth - 1] == '}' && (!take_string(s, &key, &plain) || !take(s, ':')))
			return false;
	}
}

static bool
is_word(const struct word *w, const char *text)
{
	return *w->s == *text && strlen(text) == w->n && !memcmp(w->s, text, w->n);
}

static bool
is_there(const struct manifest_dep *deps, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(deps[i].name, name))
			return true;
	return false;
}

static bool
take_deps(struct scan *s, struct arena *a, enum manifest_bucket bucket)
{
	size_t first = s->ndeps;
	bool sorted = true;

	if (!take(s, '{'))
		return false;
	if (take(s, '}'))
		return true;
	do {
		struct word name, spec;

		if (!take_plain(s, &name) || !take(s, ':') || !take_plain(s, &spec))
			return false;
		GROW(s->deps, s->ndeps + 1, s->cap);
		s->deps[s->ndeps] = (struct manifest_dep){
			.bucket = bucket,
			.name = arena_memdupz(a, name.s, name.n),
			.spec = arena_memdupz(a, spec.s, spec.n),
		};
		/* Package managers sort them: then one look is enough. */
		sorted = sorted && (s->ndeps == first || strcmp(s->deps[s->ndeps - 1].name,
								 s->deps[s->ndeps].name) < 0);
		if (!sorted && is_there(s->deps + first, s->ndeps - first, s->deps[s->ndeps].name))
			return false;
		s->ndeps++;
	} while (take(s, ','));
	return take(s, '}');
}

/* The value of one member of the manifest. `seen` has a bit for each needed field. */
static bool
take_member(
	struct scan *s, struct arena *a, const struct word *key, unsigned *seen, struct manifest *m)
{
	static const char *const needed[] = {"dependencies", "devDependencies",
		"optionalDependencies", "peerDependencies", "name", "version", "workspaces",
		"catalog", "catalogs"};
	struct word value;
	size_t i = 0;

	while (i < array_len(needed) && !is_word(key, needed[i]))
		i++;
	if (i == array_len(needed))
		return skip_value(s);
	if (i > 5 || (*seen & 1u << i))
		return false;
	*seen |= 1u << i;
	if (i <= MANIFEST_PEER)
		return take_deps(s, a, (enum manifest_bucket)i);
	if (!take_plain(s, &value) || !value.n)
		return false;
	*(i == 4 ? &m->name : &m->version) = arena_memdupz(a, value.s, value.n);
	return true;
}

static bool
take_manifest(struct scan *s, struct arena *a, struct manifest *m)
{
	struct word key;
	unsigned seen = 0;

	if (!take(s, '{'))
		return false;
	if (take(s, '}'))
		return !*s->p;
	do {
		if (!take_plain(s, &key) || !take(s, ':') || !take_member(s, a, &key, &seen, m))
			return false;
	} while (take(s, ','));
	return take(s, '}') && !*s->p;
}

bool
manifest_scan(const char *text, size_t len, struct arena *a, struct manifest *ret)
{
	struct scan s = {.p = text};
	struct manifest m = {0};
	bool understood = strlen(text) == len && take_manifest(&s, a, &m);

	if (understood) {
		m.ndeps = s.ndeps;
		m.deps = arena_array(a, s.ndeps, struct manifest_dep);
		if (s.ndeps)
			memcpy(m.deps, s.deps, s.ndeps * sizeof(*s.deps));
		*ret = m;
	}
	free(s.deps);
	return understood;
}

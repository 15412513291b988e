/* SPDX-License-Identifier: MIT */
#include "util/glob.h"
#include "util/glob-private.h"
#include "util/path.h"

/* The wildcard-free start is compared first: most patterns and paths part there. On a match, the
 * rest of the path below the head; NULL otherwise. */
static inline const char *
below_head(const struct alternative *a, const char *path)
{
	if (!a->head_len)
		return path;
	if (strncmp(path, a->head, a->head_len) != 0)
		return NULL;
	path += a->head_len;
	if (*path == '/')
		return path + 1;
	return *path ? NULL : path;
}

/* `*` and `?` in one component. A `*` that turns out to have taken too little takes one character
 * more; only the last one is ever asked again, since what stands before it has matched already. */
static bool
pattern_match(const char *p, size_t np, const char *s, size_t ns)
{
	size_t i = 0, j = 0, star = SIZE_MAX, star_s = 0;

	while (j < ns || i < np) {
		if (i < np && p[i] == '*') {
			star = ++i;
			star_s = j;
			continue;
		}
		if (i < np && j < ns) {
			if (p[i] == '?') {
				i++;
				j += glob_char_len(s + j, ns - j);
				continue;
			}
			size_t k = p[i] == '\\' ? i + 1 : i;
			if (p[k] == s[j]) {
				i = k + 1;
				j++;
				continue;
			}
		}
		if (star == SIZE_MAX || j == ns)
			return false;
		star_s += glob_char_len(s + star_s, ns - star_s);
		i = star;
		j = star_s;
	}
	return true;
}

static bool
component_match(const struct component *c, const char *s, size_t n)
{
	switch (c->kind) {
	case COMPONENT_LITERAL:
		return n == c->len && !memcmp(s, c->text, n);
	case COMPONENT_SUFFIX:
		return n >= c->len && !memcmp(s + n - c->len, c->text, c->len);
	case COMPONENT_PATTERN:
		return pattern_match(c->text, c->len, s, n);
	case COMPONENT_ANY:
	case COMPONENT_DEEP:
		break;
	}
	return true;
}

/* Components against the components of `path`. With `prefix`, they may end before the path does. */
static bool
components_match(const struct component *c, size_t n, const char *path, bool prefix)
{
	const char *s = path, *deep_s = NULL;
	size_t i = 0, deep = 0;

	for (;;) {
		if (i == n && (prefix || !*s))
			return true;
		if (i < n && c[i].kind == COMPONENT_DEEP) {
			if (++i == n)
				return true;
			deep = i;
			deep_s = s;
			continue;
		}
		if (!*s)
			return false; /* some component is left, and giving "**" more only takes
					 names away */

		size_t len = (size_t)(strchrnul(s, '/') - s);
		if (i < n && component_match(&c[i], s, len)) {
			i++;
			s += len + (s[len] == '/');
			continue;
		}
		if (!deep_s)
			return false;
		deep_s += strcspn(deep_s, "/");
		deep_s += *deep_s == '/';
		s = deep_s;
		i = deep;
	}
}

/* A literal, or a head and then only "**". */
static bool
is_subtree(const struct alternative *a)
{
	return !a->n || (a->n == 1 && a->components[0].kind == COMPONENT_DEEP);
}

static bool
alternative_match(const struct alternative *a, const char *path)
{
	const char *rest = below_head(a, path);

	if (!rest)
		return false;
	return is_subtree(a) || components_match(a->components, a->n, rest, false);
}

bool
glob_match(const struct glob *g, const char *path)
{
	for (size_t i = 0; i < g->n; i++)
		if (alternative_match(&g->alternatives[i], path))
			return true;
	return false;
}

static bool
alternative_may_match_below(const struct alternative *a, const char *dir)
{
	const char *s = below_head(a, dir);
	size_t i = 0;

	if (!s)
		return path_is_within(a->head, dir);
	if (!a->n)
		return true;
	while (*s) {
		size_t len = (size_t)(strchrnul(s, '/') - s);

		if (i == a->n)
			return false;
		if (a->components[i].kind == COMPONENT_DEEP)
			return true;
		if (!component_match(&a->components[i], s, len))
			return false;
		i++;
		s += len + (s[len] == '/');
	}
	return i < a->n;
}

bool
glob_may_match_below(const struct glob *g, const char *dir)
{
	for (size_t i = 0; i < g->n; i++)
		if (alternative_may_match_below(&g->alternatives[i], dir))
			return true;
	return false;
}

static bool
alternative_matches_all_below(const struct alternative *a, const char *dir)
{
	const char *rest = below_head(a, dir);

	if (!rest || !a->n)
		return rest != NULL;
	return a->open != SIZE_MAX && components_match(a->components, a->open, rest, true);
}

bool
glob_matches_all_below(const struct glob *g, const char *dir)
{
	for (size_t i = 0; i < g->n; i++)
		if (alternative_matches_all_below(&g->alternatives[i], dir))
			return true;
	return false;
}

bool
glob_is_literal(const struct glob *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->alternatives[i].n)
			return false;
	return true;
}

size_t
glob_nalternatives(const struct glob *g)
{
	return g->n;
}

const char *
glob_literal_head(const struct glob *g, size_t alternative)
{
	return g->alternatives[alternative].head;
}

bool
glob_alternative_is_literal(const struct glob *g, size_t alternative)
{
	return !g->alternatives[alternative].n;
}

const char *
glob_text(const struct glob *g)
{
	return g->text;
}

const char *
glob_base(const struct glob *g)
{
	return g->base;
}

bool
glob_is_workspace(const struct glob *g)
{
	return g->is_workspace;
}

static bool
components_equal(const struct alternative *a, const struct alternative *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct component *x = &a->components[i], *y = &b->components[i];

		if (x->kind != y->kind || x->len != y->len || memcmp(x->text, y->text, x->len) != 0)
			return false;
	}
	return true;
}

static bool
alternatives_surely_overlap(const struct alternative *a, const struct alternative *b)
{
	/* A whole subtree, and something whose matches all lie in it. */
	if (is_subtree(a) && path_is_within(b->head, a->head))
		return true;
	if (is_subtree(b) && path_is_within(a->head, b->head))
		return true;
	if (!a->n)
		return alternative_match(b, a->head);
	if (!b->n)
		return alternative_match(a, b->head);
	return !strcmp(a->head, b->head) && components_equal(a, b);
}

bool
glob_surely_overlap(const struct glob *a, const struct glob *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (alternatives_surely_overlap(&a->alternatives[i], &b->alternatives[k]))
				return true;
	return false;
}

/* Whether whatever name the component x takes, c takes too. False when unsure. */
static bool
component_covers(const struct component *c, const struct component *x)
{
	if (x->kind == COMPONENT_DEEP)
		return false;
	if (c->kind == COMPONENT_ANY)
		return true;
	if (x->kind == COMPONENT_LITERAL)
		return component_match(c, x->text, x->len);
	if (c->kind == COMPONENT_SUFFIX)
		return (x->kind == COMPONENT_SUFFIX ||
			       (x->kind == COMPONENT_PATTERN && !memchr(c->text, '*', c->len) &&
				       !memchr(c->text, '?', c->len) &&
				       !memchr(c->text, '\\', c->len))) &&
		       component_match(c, x->text, x->len);
	return c->kind == x->kind && c->len == x->len && !memcmp(c->text, x->text, c->len);
}

/* What is left of an alternative: names of its head, then components. */
struct rest {
	const char *head;
	const struct component *components;
	size_t n;
};

static bool
rest_next(struct rest *r, struct component *ret)
{
	if (*r->head) {
		size_t len = (size_t)(strchrnul(r->head, '/') - r->head);

		*ret = (struct component){COMPONENT_LITERAL, r->head, len};
		r->head += len + (r->head[len] == '/');
		return true;
	}
	if (!r->n)
		return false;
	*ret = *r->components++;
	r->n--;
	return true;
}

/* As components_match, of components in the place of names. */
static bool
components_cover(const struct component *c, size_t n, struct rest r)
{
	struct rest deep_r = r;
	struct component x;
	size_t i = 0, deep = 0;

	for (;;) {
		struct rest here = r;

		if (i < n && c[i].kind == COMPONENT_DEEP) {
			if (++i == n)
				return true;
			deep = i;
			deep_r = r;
			continue;
		}
		if (!rest_next(&r, &x))
			return i == n;
		if (i < n && component_covers(&c[i], &x)) {
			i++;
			continue;
		}
		r = here;
		if (!deep || !rest_next(&deep_r, &x))
			return false;
		r = deep_r;
		i = deep;
	}
}

/* `base`: of b, a directory, which nobody means by a pattern. */
static bool
alternative_covers(const struct alternative *a, const struct alternative *b, const char *base)
{
	const char *rest = below_head(a, b->head);

	if (!rest)
		return false;
	if (alternative_matches_all_below(a, b->head) &&
		(!is_subtree(b) || !strcmp(b->head, base) || alternative_match(a, b->head)))
		return true;
	return b->n &&
	       components_cover(a->components, a->n, (struct rest){rest, b->components, b->n});
}

bool
glob_covers(const struct glob *a, const struct glob *b, size_t alternative)
{
	for (size_t i = 0; i < a->n; i++)
		if (alternative_covers(&a->alternatives[i], &b->alternatives[alternative], b->base))
			return true;
	return false;
}

bool
glob_may_overlap(const struct glob *a, const struct glob *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++) {
			const char *x = a->alternatives[i].head, *y = b->alternatives[k].head;

			if (path_is_within(x, y) || path_is_within(y, x))
				return true;
		}
	return false;
}

bool
globset_excludes(const struct globset *s, const struct glob *g, const char *path)
{
	for (size_t i = 0; i < s->nneg; i++)
		if (s->neg[i]->is_workspace == g->is_workspace && glob_match(s->neg[i], path))
			return true;
	return false;
}

bool
globset_match(const struct globset *s, const char *path)
{
	for (size_t i = 0; i < s->npos; i++)
		if (glob_match(s->pos[i], path) && !globset_excludes(s, s->pos[i], path))
			return true;
	return false;
}

bool
globset_match_nested(const struct globset *s, const char *path)
{
	for (size_t i = 0; i < s->npos; i++)
		if (s->pos[i]->is_workspace && glob_match(s->pos[i], path) &&
			!globset_excludes(s, s->pos[i], path))
			return true;
	return false;
}

static bool
excludes_all_below(const struct globset *s, const struct glob *g, const char *dir)
{
	for (size_t i = 0; i < s->nneg; i++)
		if (s->neg[i]->is_workspace == g->is_workspace &&
			glob_matches_all_below(s->neg[i], dir))
			return true;
	return false;
}

bool
globset_may_match_below(const struct globset *s, const char *dir)
{
	for (size_t i = 0; i < s->npos; i++)
		if (glob_may_match_below(s->pos[i], dir) && !excludes_all_below(s, s->pos[i], dir))
			return true;
	return false;
}

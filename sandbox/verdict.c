/* SPDX-License-Identifier: MIT */
/*
 * The tree: one node for each literal path that a rule names, for each literal head of a pattern,
 * and for all their ancestors. A rule can select a path only from a node at or above it; what could
 * select something below it stands at such a node too, or is summed up in the node's `below`.
 *
 * Patterns are split into their brace alternatives first, so that each has one head, and with it
 * one specificity.
 *
 * Grants select what they match. What hides (a deny, QUIET) selects with a directory all that is in
 * it: a deny of a/?ecret denies a/secret/x.
 */
#include "sandbox/verdict.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <limits.h>

enum {
	BIT_READ = 1 << SPEC_READ,
	BIT_WRITE = 1 << SPEC_WRITE,
	BIT_DENY_READ = 1 << SPEC_DENY_READ,
	BIT_OUTPUT = 1 << SPEC_OUTPUT,
	BIT_QUIET = 1 << SPEC_QUIET,
	GRANTS = BIT_READ | BIT_WRITE,
	SILENT = BIT_OUTPUT | BIT_QUIET,
};

struct pattern {
	struct glob *glob; /* one alternative */
	unsigned bit;
	struct pattern *next;
};

struct node {
	size_t len;               /* of its path */
	struct node *parent;      /* NULL for the workspace */
	unsigned own;             /* literal rules here */
	unsigned below;           /* rules of any form whose literal part lies strictly below */
	struct pattern *patterns; /* those whose literal head this is */
};

struct ruleset {
	const struct spec *spec;
	struct arena arena;
	struct htab nodes;
	struct node *root;
};

/* The length of the parent of the first len bytes of path. */
static size_t
parent_len(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len - (len > 0);
}

/* The node of a path that outlives the ruleset, made with those above it. */
static struct node *
make_node(struct ruleset *rs, const char *path)
{
	struct node *made = NULL, *child = NULL;

	for (size_t len = strlen(path);; len = parent_len(path, len)) {
		struct node *n = htab_getn(&rs->nodes, path, len);
		bool is_new = !n;

		if (is_new) {
			n = arena_new(&rs->arena, struct node);
			n->len = len;
			htab_putn(&rs->nodes, path, len, n);
		}
		if (child)
			child->parent = n;
		else
			made = n;
		if (!is_new || !len)
			return made;
		child = n;
	}
}

/* Tells the nodes above that there is such a rule below them. Those above a node that knows it
 * already know it too. */
static void
mark_below(struct node *n, unsigned bit)
{
	for (n = n->parent; n && !(n->below & bit); n = n->parent)
		n->below |= bit;
}

static void
add_literal(struct ruleset *rs, unsigned bit, const char *path)
{
	struct node *n = make_node(rs, path);

	n->own |= bit;
	mark_below(n, bit);
}

static void
add_pattern(struct ruleset *rs, unsigned bit, struct glob *g)
{
	const char *head = glob_literal_head(g, 0);
	struct pattern *p;
	struct node *n;

	if (glob_is_literal(g)) {
		add_literal(rs, bit, head);
		return;
	}
	n = make_node(rs, head);
	p = arena_new(&rs->arena, struct pattern);
	*p = (struct pattern){g, bit, n->patterns};
	n->patterns = p;
	mark_below(n, bit);
}

static int
add_glob(struct ruleset *rs, unsigned bit, const char *text, struct err *e)
{
	struct glob *all;

	if (glob_parse(&rs->arena, "", text, GLOB_GRANT, &all, e))
		return -1;
	if (glob_nalternatives(all) == 1) {
		add_pattern(rs, bit, all);
		return 0;
	}
	for (size_t i = 0; i < glob_nalternatives(all); i++) {
		cleanup_strbuf struct strbuf sb = STRBUF_INIT;
		struct glob *one;

		glob_add_text(all, i, &sb);
		if (glob_parse(&rs->arena, "", sb.buf, GLOB_GRANT, &one, e))
			return -1;
		add_pattern(rs, bit, one);
	}
	return 0;
}

int
ruleset_new(const struct spec *s, struct ruleset **ret, struct err *e)
{
	struct ruleset *rs = xcalloc(1, sizeof(*rs));

	rs->spec = s;
	arena_init(&rs->arena);
	htab_init(&rs->nodes);
	rs->root = make_node(rs, "");
	for (size_t i = 0; i < s->nrules; i++) {
		const struct spec_rule *r = &s->rules[i];
		unsigned bit = 1U << r->kind;

		if (*r->path == '/' || r->kind == SPEC_DENY_WRITE)
			continue;
		if (!r->is_glob) {
			add_literal(rs, bit, r->path);
		} else if (add_glob(rs, bit, r->path, e)) {
			ruleset_free(rs);
			return err_wrap(e, "rule \"%s\"", r->path);
		}
	}
	/* The command starts somewhere: where nothing is granted, in an empty directory. */
	if (s->cwd) {
		struct node *n = make_node(rs, s->cwd);

		n->below |= BIT_READ;
		mark_below(n, BIT_READ);
	}
	*ret = rs;
	return 0;
}

void
ruleset_free(struct ruleset *rs)
{
	if (!rs)
		return;
	htab_release(&rs->nodes);
	arena_release(&rs->arena);
	free(rs);
}

const char *
ruleset_workspace(const struct ruleset *rs)
{
	return rs->spec->workspace;
}

/* The node of the longest prefix of path that has one. */
static const struct node *
deepest(const struct ruleset *rs, const char *path)
{
	size_t len = strlen(path);

	while (len) {
		const struct node *n = htab_getn(&rs->nodes, path, len);

		if (n)
			return n;
		len = parent_len(path, len);
	}
	return rs->root;
}

/* Whether the pattern matches the path or a directory above it. */
static bool
hides(const struct pattern *p, const char *path)
{
	cleanup_strbuf struct strbuf above = STRBUF_INIT;

	if (glob_match(p->glob, path))
		return true;
	strbuf_adds(&above, path);
	while (above.len) {
		strbuf_truncate(&above, path_parent_len(above.buf));
		if (glob_match(p->glob, above.buf))
			return true;
	}
	return false;
}

/* The longest rule that was met; a deny wins over a grant of the same length. */
struct best {
	int len; /* -1: none */
	bool deny;
	bool names; /* a grant, and it names the path itself */
};

static void
consider(struct best *b, int len, bool deny, bool names)
{
	if (len > b->len || (len == b->len && deny && !b->deny))
		*b = (struct best){len, deny, names};
	else if (len == b->len && deny == b->deny)
		b->names |= names;
}

static bool
names_itself(const struct pattern *p, const char *path)
{
	cleanup_strbuf struct strbuf dir = STRBUF_INIT;

	if (!*path)
		return true;
	strbuf_add(&dir, path, path_parent_len(path));
	return !glob_matches_all_below(p->glob, dir.buf);
}

/* Which read rule decides for the path. `names` is worked out only when asked for. */
static struct best
decide(const struct ruleset *rs, const char *path, bool want_names)
{
	struct best b = {-1, false, false};

	for (const struct node *n = deepest(rs, path); n; n = n->parent) {
		int len = (int)n->len;

		if (n->own & GRANTS)
			consider(&b, len, false, !path[n->len]);
		if (n->own & BIT_DENY_READ)
			consider(&b, len, true, false);
		for (const struct pattern *p = n->patterns; p; p = p->next) {
			if ((p->bit & GRANTS) && glob_match(p->glob, path))
				consider(&b, len, false, want_names && names_itself(p, path));
			if (p->bit == BIT_DENY_READ && hides(p, path))
				consider(&b, len, true, false);
		}
	}
	return b;
}

static bool
is_granted(struct best b)
{
	return b.len >= 0 && !b.deny;
}

/* Whether the path is absent without a word. A pattern of outputs takes a directory only when it
 * takes all of it: g?n/x? are names in gen, and gen/xs may be a directory of sources. */
static bool
is_silent(const struct ruleset *rs, const char *path, enum host_kind host)
{
	for (const struct node *n = deepest(rs, path); n; n = n->parent) {
		if (n->own & SILENT)
			return true;
		for (const struct pattern *p = n->patterns; p; p = p->next) {
			if (p->bit == BIT_QUIET && hides(p, path))
				return true;
			if (p->bit == BIT_OUTPUT && glob_match(p->glob, path) &&
				(host != HOST_DIR || glob_matches_all_below(p->glob, path)))
				return true;
		}
	}
	return false;
}

/*
 * What the rules can say of the names strictly below a directory. `all`: of every name there.
 * `some`: of one or another. Lengths as in struct best.
 */
struct below {
	int grant_all, grant_some;
	int deny_all, deny_some;
	bool silent_some;
};

static void
raise_to(int *len, int to)
{
	if (*len < to)
		*len = to;
}

static void
add_pattern_below(struct below *b, const struct pattern *p, int len, const char *dir)
{
	bool all = glob_matches_all_below(p->glob, dir), some = glob_may_match_below(p->glob, dir);

	if (p->bit & GRANTS) {
		if (all)
			raise_to(&b->grant_all, len);
		if (some)
			raise_to(&b->grant_some, len);
	} else if (p->bit == BIT_DENY_READ) {
		all = all || hides(p, dir);
		if (all)
			raise_to(&b->deny_all, len);
		if (all || some)
			raise_to(&b->deny_some, len);
	} else if (some) {
		b->silent_some = true;
	}
}

static struct below
look_below(const struct ruleset *rs, const char *dir)
{
	struct below b = {-1, -1, -1, -1, false};
	const struct node *n = deepest(rs, dir);

	/* A literal part below dir is longer than any that covers dir as a whole. */
	if (!dir[n->len]) {
		if (n->below & GRANTS)
			b.grant_some = INT_MAX;
		if (n->below & BIT_DENY_READ)
			b.deny_some = INT_MAX;
		b.silent_some = n->below & SILENT;
	}
	for (; n; n = n->parent) {
		int len = (int)n->len;

		if (n->own & GRANTS) {
			raise_to(&b.grant_all, len);
			raise_to(&b.grant_some, len);
		}
		if (n->own & BIT_DENY_READ) {
			raise_to(&b.deny_all, len);
			raise_to(&b.deny_some, len);
		}
		for (const struct pattern *p = n->patterns; p; p = p->next)
			add_pattern_below(&b, p, len, dir);
	}
	return b;
}

static bool
all_granted(const struct below *b)
{
	return b->grant_all > b->deny_some && !b->silent_some;
}

static bool
some_granted(const struct below *b)
{
	return b->grant_some > b->deny_all;
}

enum verdict
ruleset_verdict(const struct ruleset *rs, const char *path, enum host_kind host)
{
	bool granted;
	struct below b;

	if (is_silent(rs, path, host))
		return VERDICT_QUIET;
	granted = is_granted(decide(rs, path, false));
	if (host != HOST_DIR)
		return granted ? VERDICT_PASS : VERDICT_HIDE;
	b = look_below(rs, path);
	if (granted)
		return all_granted(&b) ? VERDICT_PASS : VERDICT_TRAVERSE;
	return some_granted(&b) ? VERDICT_TRAVERSE : VERDICT_HIDE;
}

bool
ruleset_may_read(const struct ruleset *rs, const char *path)
{
	return is_granted(decide(rs, path, false));
}

bool
ruleset_names(const struct ruleset *rs, const char *path)
{
	struct best b = decide(rs, path, true);

	return is_granted(b) && b.names;
}

bool
ruleset_is_mixed_below(const struct ruleset *rs, const char *dir)
{
	struct below b = look_below(rs, dir);

	return !all_granted(&b) && (some_granted(&b) || b.silent_some);
}

bool
ruleset_is_written(const struct ruleset *rs, const char *path)
{
	const struct node *n = deepest(rs, path);

	if (!path[n->len] && (n->below & BIT_WRITE))
		return true;
	for (; n; n = n->parent) {
		if (n->own & BIT_WRITE)
			return true;
		for (const struct pattern *p = n->patterns; p; p = p->next)
			if (p->bit == BIT_WRITE &&
				(glob_match(p->glob, path) || glob_may_match_below(p->glob, path)))
				return true;
	}
	return false;
}

void
ruleset_add_read(struct ruleset *rs, const char *path)
{
	struct best b = decide(rs, path, false);

	if (b.len < 0 || !b.deny)
		add_literal(rs, BIT_READ, arena_strdup(&rs->arena, path));
}

/* SPDX-License-Identifier: MIT */
/*
 * Rules to the tree. Patterns are split into their brace alternatives first, so that each has one
 * head, and with it one specificity.
 */
#include "proto/ruleset-private.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/strbuf.h"

/* The length of the parent of the first len bytes of path. */
static size_t
parent_len(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len - (len > 0);
}

/* The node of a path that outlives the ruleset, made with those above it. */
static struct ruleset_node *
make_node(struct ruleset *rs, const char *path)
{
	struct ruleset_node *made = NULL, *child = NULL;
	size_t full = strlen(path);

	if (rs->longest < full)
		rs->longest = full;
	for (size_t len = full;; len = parent_len(path, len)) {
		struct ruleset_node *n = htab_getn(&rs->nodes, path, len);
		bool is_new = !n;

		if (is_new) {
			n = arena_new(&rs->arena, struct ruleset_node);
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
mark_below(struct ruleset_node *n, unsigned bits)
{
	for (n = n->parent; n && (n->below & bits) != bits; n = n->parent)
		n->below |= bits;
}

static void
add_literal(struct ruleset *rs, unsigned bit, const char *path)
{
	struct ruleset_node *n = make_node(rs, path);

	n->own |= bit;
	mark_below(n, bit | bit << RULESET_LITERAL);
}

static void
add_pattern(struct ruleset *rs, unsigned bit, struct glob *g)
{
	const char *head = glob_literal_head(g, 0);
	struct ruleset_pattern *p;
	struct ruleset_node *n;

	if (glob_is_literal(g)) {
		add_literal(rs, bit, head);
		return;
	}
	n = make_node(rs, head);
	p = arena_new(&rs->arena, struct ruleset_pattern);
	*p = (struct ruleset_pattern){g, bit, n->patterns};
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
ruleset_new(
	const struct spec_rule *v, size_t n, const char *cwd, struct ruleset **ret, struct err *e)
{
	struct ruleset *rs = xcalloc(1, sizeof(*rs));

	arena_init(&rs->arena);
	htab_init(&rs->nodes);
	rs->root = make_node(rs, "");
	for (size_t i = 0; i < n; i++) {
		unsigned bit = 1U << v[i].kind;

		if (*v[i].path == '/')
			continue;
		if (!v[i].is_glob) {
			add_literal(rs, bit, v[i].path);
		} else if (add_glob(rs, bit, v[i].path, e)) {
			ruleset_free(rs);
			return err_wrap(e, "rule \"%s\"", v[i].path);
		}
	}
	/* The command starts somewhere: where nothing is granted, in an empty directory. */
	if (cwd) {
		struct ruleset_node *at = make_node(rs, cwd);

		at->below |= RULESET_READ;
		mark_below(at, RULESET_READ);
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

const struct ruleset_node *
ruleset_deepest(const struct ruleset *rs, const char *path)
{
	size_t len = strlen(path);

	/* A task makes paths of any depth; rules end somewhere. */
	if (len > rs->longest)
		len = parent_len(path, rs->longest + 1);
	while (len) {
		const struct ruleset_node *n = htab_getn(&rs->nodes, path, len);

		if (n)
			return n;
		len = parent_len(path, len);
	}
	return rs->root;
}

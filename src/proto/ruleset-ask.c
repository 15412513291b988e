/* SPDX-License-Identifier: MIT */
/*
 * Questions to the tree. Each begins at the deepest node at or above its path and goes up: the first
 * node whose rules say something of the path decides, since its literal path is the longest.
 *
 * Grants select what they match. What hides (a deny, QUIET) selects with a directory all that is in
 * it: a deny of a/?ecret denies a/secret/x.
 */
#include "proto/ruleset-private.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <limits.h>

enum {
	SILENT = RULESET_OUTPUT | RULESET_QUIET
};

/* Who may read, and who may write, is decided by rules of these kinds. */
struct family {
	unsigned grants, deny;
};
static const struct family reads = {RULESET_READ | RULESET_WRITE, RULESET_DENY_READ};
static const struct family writes = {RULESET_WRITE, RULESET_DENY_WRITE};

/* Whether the pattern matches the path or a directory above it. */
static bool
hides(const struct ruleset_pattern *p, const char *path)
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

enum said {
	SAID_NOTHING,
	SAID_GRANT,
	SAID_DENY,
};

/* What the rules of one node say of the path: they are equally specific, so a deny wins. */
static enum said
said_at(const struct ruleset_node *n, const struct family *f, const char *path)
{
	bool granted = n->own & f->grants;

	if (n->own & f->deny)
		return SAID_DENY;
	for (const struct ruleset_pattern *p = n->patterns; p; p = p->next) {
		if ((p->bit & f->deny) && hides(p, path))
			return SAID_DENY;
		if ((p->bit & f->grants) && !granted)
			granted = glob_match(p->glob, path);
	}
	return granted ? SAID_GRANT : SAID_NOTHING;
}

/* From n up. */
static bool
is_granted(const struct ruleset_node *n, const struct family *f, const char *path)
{
	enum said said = SAID_NOTHING;

	while (n && (said = said_at(n, f, path)) == SAID_NOTHING)
		n = n->parent;
	return said == SAID_GRANT;
}

static bool
is_hidden_by(const struct ruleset_node *n, unsigned bit, const char *path)
{
	for (; n; n = n->parent) {
		if (n->own & bit)
			return true;
		for (const struct ruleset_pattern *p = n->patterns; p; p = p->next)
			if (p->bit == bit && hides(p, path))
				return true;
	}
	return false;
}

static bool
is_quiet(const struct ruleset_node *n, const char *path)
{
	return is_hidden_by(n, RULESET_QUIET, path);
}

/* A pattern of outputs enters node_modules only when it names it, or as a part of a directory that it
 * takes whole. */
static bool
stays_out(const struct ruleset_pattern *p, const char *path)
{
	cleanup_strbuf struct strbuf dir = STRBUF_INIT;
	const char *modules = path_find(path, "node_modules");

	if (!modules || strstr(glob_text(p->glob), "node_modules"))
		return false;
	if (modules > path)
		strbuf_add(&dir, path, (size_t)(modules - path) - 1);
	return !glob_matches_all_below(p->glob, dir.buf);
}

/* Whether the path is one of the outputs that are hidden at the start. A pattern takes a directory
 * only when it takes all of it: g?n/x? are names in gen, and gen/xs may be a directory of sources. */
static bool
is_output(const struct ruleset_node *n, const char *path, enum host_kind host)
{
	for (; n; n = n->parent) {
		if (n->own & RULESET_OUTPUT)
			return true;
		for (const struct ruleset_pattern *p = n->patterns; p; p = p->next)
			if (p->bit == RULESET_OUTPUT && glob_match(p->glob, path) &&
				(host != HOST_DIR || glob_matches_all_below(p->glob, path)) &&
				!stays_out(p, path))
				return true;
	}
	return false;
}

/*
 * What the rules can say of the names strictly below a directory. `all`: of every name there.
 * `some`: of one or another. The lengths of the literal paths of such rules; -1: there is none.
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
add_pattern_below(struct below *b, const struct ruleset_pattern *p, const struct family *f, int len,
	const char *dir)
{
	bool grants = p->bit & f->grants, denies = p->bit & f->deny, all, some;

	if (!grants && !denies && !(p->bit & SILENT))
		return;
	if (p->bit == RULESET_OUTPUT && stays_out(p, dir))
		return;
	all = glob_matches_all_below(p->glob, dir) || (denies && hides(p, dir));
	some = all || glob_may_match_below(p->glob, dir);
	if (p->bit & SILENT)
		b->silent_some |= some;
	if (grants && all)
		raise_to(&b->grant_all, len);
	if (grants && some)
		raise_to(&b->grant_some, len);
	if (denies && all)
		raise_to(&b->deny_all, len);
	if (denies && some)
		raise_to(&b->deny_some, len);
}

/* n: the deepest node of dir. */
static struct below
look_below(const struct ruleset_node *n, const struct family *f, const char *dir)
{
	struct below b = {-1, -1, -1, -1, false};

	/* A literal part below dir is longer than any that covers dir as a whole. */
	if (!dir[n->len]) {
		if (n->below & f->grants)
			b.grant_some = INT_MAX;
		if (n->below & f->deny)
			b.deny_some = INT_MAX;
		b.silent_some = n->below & SILENT;
	}
	for (; n; n = n->parent) {
		int len = (int)n->len;

		if (n->own & f->grants) {
			raise_to(&b.grant_all, len);
			raise_to(&b.grant_some, len);
		}
		if (n->own & f->deny) {
			raise_to(&b.deny_all, len);
			raise_to(&b.deny_some, len);
		}
		for (const struct ruleset_pattern *p = n->patterns; p; p = p->next)
			add_pattern_below(&b, p, f, len, dir);
	}
	return b;
}

static bool
some_hidden(const struct below *b)
{
	return b->silent_some || (b->deny_some >= 0 && b->deny_some >= b->grant_all);
}

static bool
all_granted(const struct below *b)
{
	return b->grant_all >= 0 && !some_hidden(b);
}

static bool
some_granted(const struct below *b)
{
	return b->grant_some > b->deny_all;
}

enum verdict
ruleset_verdict(const struct ruleset *rs, const char *path, enum host_kind host)
{
	const struct ruleset_node *n = ruleset_deepest(rs, path);
	bool granted;
	struct below b;

	if (is_quiet(n, path) || is_output(n, path, host))
		return VERDICT_QUIET;
	granted = is_granted(n, &reads, path);
	if (host != HOST_DIR)
		return granted ? VERDICT_PASS : VERDICT_HIDE;
	b = look_below(n, &reads, path);
	if (granted)
		return all_granted(&b) ? VERDICT_PASS : VERDICT_TRAVERSE;
	return some_granted(&b) ? VERDICT_TRAVERSE : VERDICT_HIDE;
}

bool
ruleset_hides_below(const struct ruleset *rs, const char *dir)
{
	struct below b = look_below(ruleset_deepest(rs, dir), &reads, dir);

	return some_hidden(&b);
}

bool
ruleset_is_quiet(const struct ruleset *rs, const char *path)
{
	return is_quiet(ruleset_deepest(rs, path), path);
}

bool
ruleset_ignores(const struct ruleset *rs, enum spec_rule_kind kind, const char *path)
{
	return is_hidden_by(ruleset_deepest(rs, path), 1U << kind, path);
}

bool
ruleset_is_written(const struct ruleset *rs, const char *path)
{
	const struct ruleset_node *n = ruleset_deepest(rs, path);

	if (!path[n->len] && (n->below & RULESET_WRITE))
		return true;
	for (; n; n = n->parent) {
		if (n->own & RULESET_WRITE)
			return true;
		for (const struct ruleset_pattern *p = n->patterns; p; p = p->next)
			if (p->bit == RULESET_WRITE &&
				(glob_match(p->glob, path) || glob_may_match_below(p->glob, path)))
				return true;
	}
	return false;
}

bool
ruleset_may_write(const struct ruleset *rs, const char *path)
{
	const struct ruleset_node *n = ruleset_deepest(rs, path);

	return is_granted(n, &writes, path) && !is_quiet(n, path);
}

bool
ruleset_may_write_below(const struct ruleset *rs, const char *dir)
{
	const struct ruleset_node *n = ruleset_deepest(rs, dir);
	struct below b = look_below(n, &writes, dir);

	return some_granted(&b) && !is_quiet(n, dir);
}

bool
ruleset_grants_whole(const struct ruleset *rs, const char *dir)
{
	const struct ruleset_node *n = ruleset_deepest(rs, dir);
	struct below b = look_below(n, &writes, dir);

	return ruleset_verdict(rs, dir, HOST_DIR) == VERDICT_PASS && is_granted(n, &writes, dir) &&
	       all_granted(&b);
}

bool
ruleset_names_write(const struct ruleset *rs, const char *name, const char *path)
{
	const struct ruleset_node *n = ruleset_deepest(rs, path);
	size_t len = strlen(name);

	if (!path[n->len] && (n->below & RULESET_WRITE << RULESET_LITERAL))
		return true;
	for (; n && n->len >= len; n = n->parent)
		if (n->own & RULESET_WRITE)
			return true;
	return false;
}

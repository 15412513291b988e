/* SPDX-License-Identifier: MIT */
/*
 * Task globs: one grammar everywhere, for inputs, outputs and sandbox grants (spec/config.md §3,
 * design §3). Wildcards `*` (within a component), `**` (a whole component: any number of
 * components, none included), `?`, braces {a,b} (nesting allowed, expanded at parse time).
 * Brackets are literal. Escapes: \[ \] \{ \} \! \\ \* \? and \, .
 * A literal (no wildcard) names that path or everything under it; `<d>/**` includes `<d>` itself.
 * Wildcards match names that start with a dot.
 *
 * A glob is parsed relative to a directory and then matches normal relative paths from a root, so
 * that one form serves project files, workspaceFiles and `../lib/dist` alike.
 *
 * Pure code: no file system. Fuzzed by tests/fuzz/fuzz-glob.c.
 */
#ifndef UTIL_GLOB_H
#define UTIL_GLOB_H

#include "util/base.h"

struct arena;
struct err;

struct glob; /* one pattern, all its brace alternatives; lives in the arena */

enum glob_flags {
	/* ".." segments allowed as long as they stay in the root; "." allowed: names the base
	 * directory itself. For sandbox grants. */
	GLOB_GRANT = 1,
};

/*
 * `base` is the directory that the pattern is relative to, itself relative to the root ("" for the
 * root). The pattern has no leading "!" (the caller takes it off). Errors (kind CONFIG) say what is
 * wrong and what to write instead; they do not name the file, the caller wraps that.
 */
int glob_parse(struct arena *a, const char *base, const char *pattern, unsigned flags,
	struct glob **ret, struct err *e);

/* Whether the normal path (from the root) is selected: is named, or lies below a literal. */
bool glob_match(const struct glob *g, const char *path);

/* Whether some path strictly below directory `dir` could match. */
bool glob_may_match_below(const struct glob *g, const char *dir);
/* Whether every path below `dir` matches (so a walk need not ask further): a literal or a
 * `<d>/**` that holds dir. */
bool glob_matches_all_below(const struct glob *g, const char *dir);

bool glob_is_literal(const struct glob *g); /* no wildcard in any alternative */

/* The wildcard-free leading directories of each alternative, from the root: where a walk starts.
 * "a/b" for a/b/x*.c and for the literal a/b (which may be a file). */
size_t glob_nalternatives(const struct glob *g);
const char *glob_literal_head(const struct glob *g, size_t alternative);
/* Whether that alternative is a literal: then its head is the whole of it. */
bool glob_alternative_is_literal(const struct glob *g, size_t alternative);
/* The length in bytes of the longest literal path before the first wildcard, over the alternatives
 * that match `path`: how specific the rule is there (design §3: longest wins). -1: no match. */
int glob_specificity(const struct glob *g, const char *path);

const char *glob_text(const struct glob *g); /* as written */

/* Whether two globs can be shown to select a common path: equal literals, a literal under a glob,
 * a whole subtree against a glob whose literal head lies inside it. False when unsure. */
bool glob_surely_overlap(const struct glob *a, const struct glob *b);

/*
 * An ordered list with "!" entries. A path is selected when some positive entry matches and no
 * negative one does, wherever it stands.
 */
struct globset {
	struct glob **pos;
	size_t npos;
	struct glob **neg;
	size_t nneg;
};
bool globset_match(const struct globset *s, const char *path);
/* Whether the path is taken back by a "!" entry. */
bool globset_excludes(const struct globset *s, const char *path);
bool globset_may_match_below(const struct globset *s, const char *dir);

#endif

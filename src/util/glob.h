/* SPDX-License-Identifier: MIT */
/*
 * Task globs: one grammar everywhere, for inputs, outputs and sandbox grants (spec/config.md §3,
 * design §3). Wildcards `*` (within a component), `**` (a whole component: any number of
 * components, none included), `?`, braces {a,b} (nesting allowed, expanded at parse time).
 * Brackets are literal. Escapes: \[ \] \{ \} \( \) \! \\ \* \? and \, .
 * A literal (no wildcard) names that path or everything under it; `**` at the end of a pattern
 * includes the directory that it is written after.
 * Wildcards match names that start with a dot; `?` is one character of UTF-8, or one byte of what
 * is none. A leading "./" takes the special meaning from a name that begins with ^ ~ $ @ or "c:".
 *
 * Matching never backtracks further than to the last `*` of a component and the last `**` of a
 * pattern: at worst the product of the two lengths.
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
struct strbuf;

struct glob; /* one pattern, all its brace alternatives; lives in the arena */

enum {
	GLOB_PATTERN_MAX = 4096,      /* bytes of one pattern */
	GLOB_ALTERNATIVES_MAX = 1024, /* that its braces may stand for */
};

enum glob_flags {
	/* ".." segments allowed as long as they stay in the root; "." allowed: names the base
	 * directory itself. For sandbox grants. */
	GLOB_GRANT = 1,
	/* Messages do not speak of what a task depends on. */
	GLOB_OUTPUT = 2,
	/* For the globs of vx.workspace.json's projects: as GLOB_GRANT, with messages that say where
	 * that file belongs. */
	GLOB_MEMBER = 4,
	/* An entry of workspaceFiles: projects are no boundary for it. */
	GLOB_WORKSPACE = 8,
};

/*
 * `base` is the directory that the pattern is relative to, itself relative to the root ("" for the
 * root); it is not copied, but the pattern is. The pattern has no leading "!" (the caller takes it off). Errors (kind CONFIG) say what is
 * wrong and what to write instead; they do not name the file, the caller wraps that.
 */
int glob_parse(struct arena *a, const char *base, const char *pattern, unsigned flags,
	struct glob **ret, struct err *e);

/* Whether the normal path (from the root) is selected: is named, or lies below a literal. */
bool glob_match(const struct glob *g, const char *path);

/* Whether some path strictly below directory `dir` could match. */
bool glob_may_match_below(const struct glob *g, const char *dir);
/* Whether every path below `dir` matches (so a walk need not ask further): one alternative is a
 * literal, or ends in `**`, and holds dir. */
bool glob_matches_all_below(const struct glob *g, const char *dir);

bool glob_is_literal(const struct glob *g); /* no wildcard in any alternative */

/* The wildcard-free leading directories of each alternative, from the root: where a walk starts.
 * "a/b" for a/b/x*.c and for the literal a/b (which may be a file). */
size_t glob_nalternatives(const struct glob *g);
const char *glob_literal_head(const struct glob *g, size_t alternative);
/* Whether that alternative is a literal: then its head is the whole of it. */
bool glob_alternative_is_literal(const struct glob *g, size_t alternative);

const char *glob_text(const struct glob *g);  /* as written */
const char *glob_base(const struct glob *g);  /* the directory it was parsed for, from the root */
bool glob_is_workspace(const struct glob *g); /* GLOB_WORKSPACE */
/* Appends one alternative as a pattern of its own, from the root, normal, escaped: it parses with
 * base "" and GLOB_GRANT to the same alternative. What a sandbox rule holds. */
void glob_add_text(const struct glob *g, size_t alternative, struct strbuf *out);
/* Such a text without the "./" that keeps a first name from meaning more than itself. */
const char *glob_text_path(const char *text);

/* Whether two globs can be shown to select a common path: equal literals, a literal under a glob,
 * a whole subtree against a glob whose literal head lies inside it. False when unsure. */
bool glob_surely_overlap(const struct glob *a, const struct glob *b);
/* Whether a can be shown to select everything that this alternative of b does. False when unsure. */
bool glob_covers(const struct glob *a, const struct glob *b, size_t alternative);
/* False when the directories they start from show that they select nothing in common. */
bool glob_may_overlap(const struct glob *a, const struct glob *b);

/*
 * An ordered list with "!" entries. A path is selected when some positive entry matches and no
 * negative one does, wherever it stands. Outputs are two lists in one set, files and workspaceFiles:
 * an entry takes back from its own list alone.
 */
struct globset {
	struct glob **pos;
	size_t npos;
	struct glob **neg;
	size_t nneg;
};
bool globset_match(const struct globset *s, const char *path);
/* The same of a path in a project inside the list's own, where only workspaceFiles reach. */
bool globset_match_nested(const struct globset *s, const char *path);
/* Whether a "!" entry of the list that g is in takes the path back. */
bool globset_excludes(const struct globset *s, const struct glob *g, const char *path);
bool globset_may_match_below(const struct globset *s, const char *dir);

#endif

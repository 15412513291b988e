/* SPDX-License-Identifier: MIT */
/*
 * A set of projects, and the filter language that selects one (spec/cli.md §1).
 */
#ifndef GRAPH_SCOPE_H
#define GRAPH_SCOPE_H

#include "util/base.h"

struct err;
struct strbuf;
struct touched;
struct workspace;

enum {
	SCOPE_NAMES_SHOWN = 8
};

struct scope {
	bool *has; /* by project index */
	size_t n;  /* of the workspace, not of the set */
};

struct scope scope_new(const struct workspace *w); /* empty */
void scope_release(struct scope *s);
#define cleanup_scope __attribute__((cleanup(scope_release)))
size_t scope_size(const struct scope *s);

/* What "[ref]" filters ask about, and what was found: one base is looked at once. */
struct scope_bases {
	const char *const *widening; /* graph/affected.h */
	size_t nwidening;
	struct scope_base {
		char *ref;
		struct touched *touched;
	} * v;
	size_t n, cap;
};
void scope_bases_release(struct scope_bases *b);
/* `ref` NULL: the default base. Borrowed. */
int scope_touched(const struct workspace *w, struct scope_bases *b, const char *ref,
	const struct touched **ret, struct err *e);

/* Adds what the filters select. Includes are united first, then every "!" is applied, in whatever
 * order they stand; exclusions alone mean all but them. A filter that selects nothing is refused, but for one
 * that has a "[ref]": then nothing has changed. What a filter asks of configs has their scripts evaluated: tags, dependents and
 * what has changed those of all projects, dependencies those on the way. */
int scope_filter(struct workspace *w, const char *const *filters, size_t n,
	struct scope_bases *bases, struct scope *ret, struct err *e);

/* "@scope/name" without "@scope/". Borrowed. */
const char *scope_bare_name(const char *name);

/* "; there is " before one name, "; there are " before more. */
const char *scope_there_are(size_t n);
/* Appends "a, b, c and 4 more". */
void scope_add_list(struct strbuf *sb, const char *const *names, size_t n, size_t shown);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A set of projects, and the filter language that selects one (spec/cli.md §1).
 */
#ifndef GRAPH_SCOPE_H
#define GRAPH_SCOPE_H

#include "util/base.h"

struct err;
struct strbuf;
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

/* Adds what the filters select. Includes are united first, then every "!" is applied, in whatever
 * order they stand; exclusions alone mean all but them. A filter that selects nothing is refused.
 */
int scope_filter(const struct workspace *w, const char *const *filters, size_t n, struct scope *ret,
	struct err *e);

/* "@scope/name" without "@scope/". Borrowed. */
const char *scope_bare_name(const char *name);

/* "; there is " before one name, "; there are " before more. */
const char *scope_there_are(size_t n);
/* Appends "a, b, c and 4 more". */
void scope_add_list(struct strbuf *sb, const char *const *names, size_t n, size_t shown);

#endif

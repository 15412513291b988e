/* SPDX-License-Identifier: MIT */
/*
 * The rules of a spec asked again on the core's side, after the run: could the task see this name,
 * was it granted to write that one. The meaning is that of proto/spec.h: the rule with the longest
 * literal path before its first wildcard wins, at equal length a deny.
 */
#ifndef EXEC_RULES_H
#define EXEC_RULES_H

#include "proto/spec.h"

struct err;
struct rules;

/* Compiles those inside the workspace. The rules may be freed afterwards. */
int rules_new(const struct spec_rule *v, size_t n, struct rules **ret, struct err *e);
void rules_free(struct rules *r);

bool rules_may_read(const struct rules *r, const char *path);
bool rules_may_write(const struct rules *r, const char *path);
/* Whether a grant names something strictly below dir: then dir is on the way to it. */
bool rules_may_read_below(const struct rules *r, const char *dir);
bool rules_may_write_below(const struct rules *r, const char *dir);
/* Hidden without a word, or below such a name: nobody may write there either. */
bool rules_is_quiet(const struct rules *r, const char *path);

/* Whether a literal write grant names `name` itself or something inside it, and covers `path`,
 * which is `name`, or lies in it, or is on the way to what was granted. */
bool rules_names_write(const struct rules *r, const char *name, const char *path);

#endif

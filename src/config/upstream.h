/* SPDX-License-Identifier: MIT */
/*
 * cache.inputs.tasks: which of the tasks that a task depends on have their key folded into its own
 * (spec/config.md §3). Entries apply in order, the last one that means a task wins; `*` is any run of
 * characters, in either half of PROJECT#TASK:
 *
 *	gen	tasks of the same project
 *	^build	of others
 *	lib#gen	of that project
 *	!entry	what it means is not folded
 *
 * Without the list all are folded, with an empty one none. What is not folded still comes before.
 */
#ifndef CONFIG_UPSTREAM_H
#define CONFIG_UPSTREAM_H

#include "config/taskdef.h"

struct arena;
struct err;
struct json_at;

/* Whether a pattern of task or project names, in which `*` is any run of characters ('/' included),
 * means this name. */
bool name_matches(const char *pattern, const char *name);

struct upstream_rule {
	bool takes_back; /* "!" */
	struct depspec what;
};

/* `v` and `n`: the list as written. An entry without `*` must mean something that dependsOn names. */
int upstream_parse(const struct json_at *at, const char *const *v, size_t n,
	const struct depspec *depends_on, size_t ndepends_on, struct arena *a,
	struct upstream_rule **ret, struct err *e);

/* Whether the rules fold a task of the same project (`own`) or of another one, `project`. */
bool upstream_folds(const struct upstream_rule *rules, size_t n, bool own, bool is_root,
	const char *project, const char *task);

#endif

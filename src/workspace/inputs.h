/* SPDX-License-Identifier: MIT */
/*
 * The input files of a task: what its globs select among the files that exist, less what is never
 * an input (spec/config.md §3: .git, .vx, *.tsbuildinfo, vx-lock.json, the task's own outputs,
 * nested projects, untracked node_modules).
 */
#ifndef WORKSPACE_INPUTS_H
#define WORKSPACE_INPUTS_H

#include "util/base.h"

struct err;
struct files;
struct project;
struct taskdef;

struct inputs {
	const char **paths; /* borrowed from files; sorted, unique */
	size_t n;
	size_t cap;
};
/* An uncached task has every file of its project. What would silently fold nothing is refused, naming it: a
 * literal that exists but is ignored by git, and an entry that starts behind a link, as no key follows one. */
int inputs_resolve(int rootfd, const struct files *f, const struct project *p,
	const struct taskdef *t, struct inputs *ret, struct err *e);
/* Of an input that is not there: git's index may name what lies behind a link by now. Refused, unless
 * it is an input by its real name. */
int inputs_check_absent(int rootfd, const struct files *f, const struct project *p,
	const struct taskdef *t, const char *path, struct err *e);
void inputs_release(struct inputs *in);

/* The same of one name, that need not be there: whether it is an input by what the task declares. */
bool inputs_declare(const struct project *p, const struct taskdef *t, const char *path);
/* Whether something below the directory can be one. */
bool inputs_may_reach(const struct project *p, const struct taskdef *t, const char *dir);
/* What is in no key, whatever the globs say. */
bool inputs_is_never(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Member globs: which directories of a workspace are its projects. They keep the package manager's
 * grammar, which is not that of task globs: classes, no tree below a literal, wildcards that pass
 * over names with a leading dot and node_modules; so this file matches by component with fnmatch
 * and shares nothing with util/glob. `**` stands for any number of components, braces are expanded,
 * `!` takes away wherever it stands. Extglob is refused.
 */
#ifndef WORKSPACE_MEMBERS_H
#define WORKSPACE_MEMBERS_H

#include "util/base.h"
#include "util/strvec.h"

struct arena;
struct err;

struct member_glob {
	const char *text; /* one brace alternative, as written */
	size_t entry;     /* of the list */
	const char **parts;
	size_t nparts;
};

struct members {
	struct member_glob *pos;
	size_t npos, pos_cap;
	struct member_glob *neg;
	size_t nneg, neg_cap;
};

void members_init(struct members *m);
void members_release(struct members *m);

/* `globs` as written in the file `source`; `root_path` is for messages. Text lives in the arena. */
int members_parse(const struct strvec *globs, const char *source, const char *root_path,
	struct arena *a, struct members *ret, struct err *e);

/* Whether `path` (from the root) is, or lies below, a directory other than the root that the globs
 * name. */
bool members_claim(const struct members *m, const char *path);

/* Whether the globs name this directory, be it there or not. */
bool members_name(const struct members *m, const char *dir);

/* Sets ret[i] for each entry i of the list that names the directory. */
void members_mark(const struct members *m, const char *dir, bool *ret);

/* The directories that the globs name, from the root, sorted. Literals are listed whether they
 * exist or not; a link is listed when it is the last component or is written out. */
int members_expand(const struct members *m, int rootfd, struct strvec *ret, struct err *e);

/* Calls `entry` for each name in the directory but "." and "..", in no order; `type` is DT_*, never
 * DT_UNKNOWN. errno on -1. */
int members_scan(int fd, void (*entry)(void *ctx, const char *name, unsigned char type), void *ctx);

/* A readable fd of a directory below the root: through links only where the plain way meets one.
 * errno on -1. */
int members_open(int rootfd, const char *dir);

#endif

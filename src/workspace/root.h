/* SPDX-License-Identifier: MIT */
/*
 * The workspace root, found from a directory upwards (spec/config.md §1, design §3): the nearest
 * candidate whose member globs claim the directory. Candidates, strongest first: vx.workspace.{json,ts,…}
 * with "projects", pnpm-workspace.yaml, package.json with "workspaces", a bare package.json or
 * vx.config.json (a workspace of one project).
 */
#ifndef WORKSPACE_ROOT_H
#define WORKSPACE_ROOT_H

#include "config/script.h"
#include "util/base.h"
#include "util/strvec.h"

struct err;

struct root {
	int fd;                /* O_PATH | O_DIRECTORY: close it */
	char *path;            /* absolute, canonical (no links) */
	char *cwd;             /* the start directory, from the root */
	struct strvec members; /* globs, as written, "!" ones included; empty: single project */
	char *source;          /* the file that `members` came from, NULL: single project */
	char *note;            /* what should be said of it, NULL: nothing */
	struct script
		settings; /* vx.workspace.ts or its like, evaluated; path NULL: there is none */
};
void root_release(struct root *r);

enum root_scripts {
	ROOT_EVALUATE, /* workspace configs in JavaScript and TypeScript: what is remembered, else by a runtime */
	ROOT_LOOK, /* none is evaluated: each counts as a root, with no members that are known */
};

/* `start` may be NULL: the current directory. None found: says what would make one, kind USAGE. The way up
 * leads through directories of others, whose code is not to run: a script there must belong to root, to this user, or to
 * who owns `start`. */
int root_find(const char *start, enum root_scripts scripts, struct root *ret, struct err *e);

#endif

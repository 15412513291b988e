/* SPDX-License-Identifier: MIT */
/*
 * The workspace root, found from a directory upwards (spec/config.md §1, design §3): the nearest
 * candidate whose member globs claim the directory. Candidates, strongest first: vx.workspace.json
 * with "projects", pnpm-workspace.yaml, package.json with "workspaces", a bare package.json or
 * vx.config.json (a workspace of one project).
 */
#ifndef WORKSPACE_ROOT_H
#define WORKSPACE_ROOT_H

#include "util/base.h"
#include "util/strvec.h"

struct err;

struct root {
	int fd;                /* O_PATH | O_DIRECTORY: close it */
	char *path;            /* absolute, canonical (no links) */
	char *cwd;             /* the start directory, from the root */
	struct strvec members; /* globs, as written, "!" ones included; empty: single project */
	char *source;          /* the file that `members` came from, NULL: single project */
};
void root_release(struct root *r);

/* `start` may be NULL: the current directory. None found: says what would make one, kind USAGE. */
int root_find(const char *start, struct root *ret, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The executor through vx-sandbox: writes the spec, starts the helper (output on 1 and 2, signals
 * on 3, spec and status above), reads its frames, has commit.c judge what was written.
 */
#ifndef EXEC_SANDBOXED_H
#define EXEC_SANDBOXED_H

#include "exec/exec.h"

struct scratch_area;
struct strvec;

struct sandboxed_options {
	const char *helper; /* path of vx-sandbox */
	const char *sh;     /* a path with a slash */
	int rootfd;         /* of the workspace */
	const char *root_path;
	/* Absolute: covered where it is outside of the workspace; inside, the policy hides it. */
	const char *cache_dir;
	struct scratch_area *area;
};
struct executor *sandboxed_new(struct loop *l, const struct sandboxed_options *o);
/* The credential stores it found, of every home. */
const struct strvec *sandboxed_stores(struct executor *ex);

/* <dir of this program>/vx-sandbox, else PKGLIBEXECDIR/vx-sandbox. NULL: none, with e set. */
char *sandboxed_find_helper(struct err *e);

#endif

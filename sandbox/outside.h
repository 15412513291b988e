/* SPDX-License-Identifier: MIT */
/*
 * What is granted for writing outside of the workspace, see outside.c. Found by the helper before there are two
 * processes; view.c mounts it, serve.c serves it, live.c looks through it at the end.
 */
#ifndef SANDBOX_OUTSIDE_H
#define SANDBOX_OUTSIDE_H

#include "sandbox/liveplan.h"
#include "util/strvec.h"
#include <sys/types.h>

struct setup;

struct outside {
	int host;           /* "/", O_PATH, in the caller's mount namespace */
	struct strvec tops; /* the directories, from the root; none lies in another */
	struct ruleset *rules;
	struct liverules live;
	struct liveplan plan;
	bool is_served; /* one at least is not bound as it is */
};

void outside_prepare(struct setup *s);
/* The index of the directory that is or holds the path; -1: there is none. */
ssize_t outside_top(const struct outside *o, const char *path);

#endif

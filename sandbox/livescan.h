/* SPDX-License-Identifier: MIT */
/*
 * When a command with a live view has ended: what it may have planted in the directories that were bound
 * read-write. There was nothing in them at its start that is never committed, so what is there now came
 * meanwhile. It is moved out of the workspace, into the scratch; where that is on another file system it
 * gets a harmless name in its place. Set-id bits of files that changed are taken away.
 *
 * Until then these names stand: a hook in a repository that the command made is a hook.
 */
#ifndef SANDBOX_LIVESCAN_H
#define SANDBOX_LIVESCAN_H

#include "sandbox/liveplan.h"

struct planted {
	char *path;  /* from the workspace; outside of it: absolute */
	char *moved; /* absolute; NULL: it stands */
};

struct livescan {
	struct planted *v;
	size_t n, cap;
	size_t nsetid; /* files that lost the bits */
	char *failed;  /* a directory that could not be looked through, as path */
	int num;       /* why */
};

struct livescan_options {
	const struct liveplan *plan;
	const struct liverules *rules;
	const char *
		root; /* the workspace, absolute; "": all is outside of it, and told by absolute paths */
	const char *scratch; /* the working directory; NULL: what is moved stays beside its place */
	int proc;            /* a procfs */
	struct timespec since; /* the command's start, by the clock of the file systems */
};

void livescan_init(struct livescan *sc);
/* Adds to what was found. */
void livescan_run(struct livescan *sc, const struct livescan_options *o);
void livescan_release(struct livescan *sc);

#endif

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
	char *path;  /* from the workspace */
	char *moved; /* absolute; NULL: it stands */
};

struct livescan {
	struct planted *v;
	size_t n, cap;
	size_t nsetid;      /* files that lost the bits */
	const char *failed; /* a directory that could not be looked through, of the plan */
	int num;            /* why */
};

/* The scratch is the working directory. since: the command's start, by the clock of the file systems.
 * procfd: a procfs. */
void livescan_run(struct livescan *sc, const struct liveplan *p, const struct liverules *lr,
	const char *scratch, const char *workspace, int procfd, struct timespec since);
void livescan_release(struct livescan *sc);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * An executor that somebody else has written: a program that vx starts once in a run and speaks to in lines of
 * JSON (docs/EXECUTORS.md; exec/wire.h reads and writes them). It owns that process and its pipes.
 *
 * Nothing that the program does is trusted. A message that is wrong about one task fails that task; after one that
 * cannot be laid at the door of a task that runs, and after the end of the program, nothing it says counts: it
 * is killed with its group, and all that it has, or is still to be given, fails with what it did.
 */
#ifndef EXEC_EXTERNAL_H
#define EXEC_EXTERNAL_H

#include "exec/exec.h"

struct mask;

enum external_news {
	EXTERNAL_DESCRIBED, /* name, remote and capacity are known */
	EXTERNAL_BROKEN,    /* text says how */
	EXTERNAL_BLAMED,    /* the same, and tasks have failed with it */
	EXTERNAL_KILLED,    /* at the end, as it did not end by itself */
	EXTERNAL_LEFT,      /* at the end: a task that it has not ended may still run */
};

struct external_options {
	const char *command; /* absolute, or from the workspace's root with "./" before it */
	int rootfd;
	const char *root_path;
	char *const *env;        /* vx's own */
	const struct mask *mask; /* for what it says; may be NULL; outlives the executor */
	uint64_t
		answer_ms; /* for the next answer to what asks for one, and for taking what is written */
	uint64_t grace_ms; /* for ending by itself */
	/* Never from within external_new, start or ask. */
	void (*news)(void *ctx, struct executor *ex, enum external_news what, const char *text);
	void *ctx;
};

enum {
	EXTERNAL_ANSWER_MS = 10000 /* VX_EXECUTOR_ANSWER_MS */
};

/* Starts it and asks what it is. NULL with e set. Its free() closes its input, hears it out, and waits for its end
 * until the grace is over. */
struct executor *external_new(struct loop *l, const struct external_options *o, struct err *e);

#endif

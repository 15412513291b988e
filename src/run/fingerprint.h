/* SPDX-License-Identifier: MIT */
/*
 * The files that every key rests on (lock files and the like at the root, cache/key.h): their digest, and whether it
 * still is what is on disk. A task may rewrite one, as an install does; what is keyed on
 * the old one is then neither looked up nor saved for the rest of the run (spec/cache.md §2). One that is
 * written and holds what it held counts for those commands alone that run meanwhile, as what they have read of
 * it may be another's; but not while one runs that may write it (fingerprint_may_move): an install that has
 * nothing to do writes its lock file all the same.
 */
#ifndef RUN_FINGERPRINT_H
#define RUN_FINGERPRINT_H

#include "run/moment.h"
#include "util/digest.h"
#include "util/strvec.h"
#include <sys/stat.h>

struct err;
struct filehash;
struct node;

struct fingerprint {
	struct digest digest;
	struct strvec files; /* fingerprint_files */
	struct moment seen;  /* how they looked */
	struct stat *behind; /* and, each, what it leads to as a link; all zero: none */
	uint64_t nwrites;    /* how often one was found written */
	char *written;       /* the last one */
	bool moved;          /* it holds something else, or may. For the rest of the run */
};

/* Their names, whether they are there or not: those of key.h, and the patches that bun.lock names. */
int fingerprint_files(int rootfd, struct strvec *ret, struct err *e);

/* The files, and what is in them now. */
int fingerprint_take(struct fingerprint *f, struct filehash *fh, int rootfd, struct err *e);
void fingerprint_release(struct fingerprint *f);

/* 1; 0: one of them has other content, f->written names it; -1. By stat, and then by content. A write of what was
 * there is counted, unless `by_task`: a command that may do so is running. */
int fingerprint_holds(
	struct fingerprint *f, struct filehash *fh, int rootfd, bool by_task, struct err *e);

/* Whether the command may rewrite one of them, so that no key of what comes after it can be made before
 * it is done. */
bool fingerprint_may_move(
	const struct fingerprint *f, const struct node *n, bool sandboxed, const char *root_path);

#endif

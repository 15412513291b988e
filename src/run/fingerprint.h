/* SPDX-License-Identifier: MIT */
/*
 * The files that every key rests on (lock files and the like at the root, cache/key.h): their digest, and whether it still is what is on disk. A task may rewrite one, as an install does; what is keyed on
 * the old one is then neither looked up nor saved for the rest of the run (spec/cache.md §2).
 */
#ifndef RUN_FINGERPRINT_H
#define RUN_FINGERPRINT_H

#include "util/digest.h"
#include "util/strvec.h"

struct err;
struct filehash;
struct node;

struct fingerprint_sight;

struct fingerprint {
	struct digest digest;
	struct strvec files;              /* those of key.h, and the patches that bun.lock names */
	struct fingerprint_sight *sights; /* how each looked */
	const char
		*moved; /* the one that is not as it was; NULL: all are. For the rest of the run */
};

/* The files, and what is in them now. */
int fingerprint_take(struct fingerprint *f, struct filehash *fh, int rootfd, struct err *e);
void fingerprint_release(struct fingerprint *f);

/* 1; 0: one of them has other content, f->moved names it; -1. By stat, and then by content: an install
 * that changes nothing may write all the same. */
int fingerprint_holds(struct fingerprint *f, struct filehash *fh, int rootfd, struct err *e);

/* Whether the command may rewrite one of them, so that no key of what comes after it can be made before
 * it is done. */
bool fingerprint_may_move(
	const struct fingerprint *f, const struct node *n, bool sandboxed, const char *root_path);

#endif

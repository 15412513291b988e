/* SPDX-License-Identifier: MIT */
/*
 * Precious files (git's word): those that nobody could give back. Said of files that are about to be
 * removed, by comparing them with git's index.
 *
 * The comparison is made here and not by `git status`, which runs what a repository's config names for
 * it (filters, programs of submodules) and passes over files that it was told to assume unchanged. The
 * price: a file that git converts on its way (LFS, line ends) counts as changed.
 */
#ifndef WORKSPACE_PRECIOUS_H
#define WORKSPACE_PRECIOUS_H

#include "util/base.h"

struct err;
struct git_record;

/* Of the files asked about, those that are there. What is in a nested repository or submodule, which
 * are never asked, counts as untracked. */
struct precious {
	size_t nheld, nchanged, nuntracked;
	size_t held;          /* the first that git's index holds as it is: an index into `paths` */
	size_t changed;       /* … that git tracks and holds no copy of */
	size_t untracked;     /* … that git does not track */
	bool among_tracked;   /* git tracks one of them, be it that it is there or deleted */
	bool nothing_tracked; /* git lists one as untracked, and tracks nothing at or below dir */
};

/* `paths` (from the root, in any order) all lie at or below `dir`. 1; 0: the root is in no work tree,
 * or there is no git, so nothing is known; -1. */
int precious_find(int rootfd, const char *root_path, const char *dir, const char *const *paths,
	size_t n, struct precious *ret, struct err *e);

/* Whether the file is what git's index holds for it, to the byte and with its executable bit. */
bool precious_is_held(int rootfd, const char *path, const struct git_record *r);

#endif

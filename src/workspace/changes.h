/* SPDX-License-Identifier: MIT */
/*
 * Which files are other than they were in a commit, by git: committed since, only in the index, only in the
 * work tree, or untracked (spec/cli.md §1, --affected). Compared is the work tree with the point where it left
 * the base, the merge base of both. A rename is two names. A submodule or a repository that lies in the work
 * tree is one path, changed when its commit is another one, or anything in it is not of that commit.
 *
 * As files.c sees them, so that what moves a key is a change here: what no key holds is left out. When in doubt
 * a file is changed; so is one that a filter of git's converts (LFS) and that git knows only by its time, as no
 * filter is ever started.
 */
#ifndef WORKSPACE_CHANGES_H
#define WORKSPACE_CHANGES_H

#include "util/strvec.h"

struct err;
struct htab;

struct changes {
	char *since;  /* the base as it was asked for, or found: "origin/main" */
	bool is_head; /* that is where HEAD is, or behind it: only what is not committed counts */
	struct strvec paths; /* from the root; sorted, unique */
	bool *is_repo;       /* by path */
	bool members_moved; /* the root's package.json lists other workspaces or catalogs than it did */
	/* By path: one of `manifests`, that says the same as it did of how modules are found and taken. */
	bool *same_modules;
};

/*
 * `ref` is what somebody typed: one commit, or "<base>...HEAD". NULL: `configured` (affectedBase), and where that
 * is NULL, the first of origin/HEAD, origin/main, origin/master, main and master that is not where HEAD is, else
 * HEAD~1. Refused: what is no commit, or has none in common with HEAD; kind USAGE, without the flag.
 * `manifests` are the package.json files, from the root, of which it is asked what in them has changed.
 */
int changes_find(int rootfd, const char *root_path, const char *ref, const char *configured,
	const struct htab *manifests, struct changes *ret, struct err *e);
void changes_release(struct changes *c);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Which files exist, for keys: git's tracked plus untracked-not-ignored ones, asked of one git at the
 * workspace root (design §4), nested repositories walked, never asked. Without a work tree the same
 * git is asked with an empty git directory; without git every file counts. Never .git and .vx, nor
 * untracked files in a node_modules. A root .vx that git tracks anything in is an error: it could hold
 * results that somebody else made up.
 */
#ifndef WORKSPACE_FILES_H
#define WORKSPACE_FILES_H

#include "workspace/git.h"

struct err;

struct files {
	char *text;         /* owns the paths */
	const char **paths; /* from the workspace root, sorted by bytes, unique */
	size_t n;
	uint64_t listed_ns; /* the wall clock when the listing ended */
	bool no_git;        /* git could not be asked: ignore rules were not applied */
};

/* In two steps, so that git runs while configs are read. After a successful start, finish must come. */
struct files_request {
	struct git_job git; /* of no process: there is no git program */
	char *temporary; /* the empty git directory, where .vx cannot hold it; removed by finish */
};
int files_start(int rootfd, const char *root_path, struct files_request *ret, struct err *e);
int files_finish(struct files_request *rq, int rootfd, struct files *ret, struct err *e);
void files_release(struct files *f);
/* What is no file for vx, though git lists it. */
bool files_is_never_listed(const char *path, bool tracked);

/* The range [*ret_from, *ret_to) that holds all paths at or below dir. Names that sort between dir
 * and "dir/" ("dir-x" for "dir") may lie in it too: path_is_within tells them apart. */
void files_below(const struct files *f, const char *dir, size_t *ret_from, size_t *ret_to);

#endif

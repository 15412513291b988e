/* SPDX-License-Identifier: MIT */
/*
 * What vx asks of git, asked so that nothing that a repository's config names can start: no hook, no
 * filter, no program of a diff driver, no transport; and nothing of the repository is written. Used by files.c
 * (which files exist), precious.c (which of them git could give back) and changes.c (which are other than
 * they were) alone.
 */
#ifndef WORKSPACE_GIT_H
#define WORKSPACE_GIT_H

#include "util/base.h"
#include "util/proc.h"

struct err;
struct strbuf;
struct strvec;

/* The program, on vx's own PATH but outside the workspace, which a package could have put one into
 * (node_modules/.bin is on the PATH of what npm starts): owned, or NULL. */
char *git_find(const char *root_path);
/* The work tree that holds root_path and its git directory, both owned. False: there is none. */
bool git_find_work_tree(const char *root_path, char **ret_top, char **ret_git_dir);

struct git_job {
	struct proc proc; /* its pid 0: none */
	int out, err;     /* unnamed files that git writes to: it never waits for us */
};
/* Lists what is at or below `dir`, from the root ("": all of it). After a success git_list_end must
 * come. */
int git_list_start(const char *git, int rootfd, const char *git_dir, const char *top,
	const char *dir, struct git_job *ret, struct err *e);
/* Waits for the end; *ret gets records, each with its NUL. Closes the job. ECANCELED when a stop is asked
 * (util/stop.h), on which git is killed: it can wait for ever, for a .gitignore that is a fifo. */
int git_list_end(struct git_job *j, struct strbuf *ret, struct err *e);

struct git_record {
	bool tracked;
	bool is_repo; /* a nested repository or submodule: what is in it has no records */
	const char *path;
	size_t len; /* of path, which may go on with a '/' */
	/* Only what is tracked: */
	bool is_link;
	bool is_executable;
	bool unmerged;
	bool is_assumed; /* git was told to take it for unchanged */
	bool is_skipped; /* git was told that it need not be in the work tree */
	const char *id;  /* of what the index holds: id_len hex digits */
	size_t id_len;
};
/* The record at *at, which moves on to the next; it borrows from `said`. 1, 0 no more, -1. */
int git_next_record(const struct strbuf *said, size_t *at, struct git_record *ret, struct err *e);

/* A repository to be asked other questions. */
struct git_repo {
	const char *git; /* the program */
	int dirfd;       /* the directory, in the work tree, that they are about */
	const char *git_dir, *top;
	/* "filter.lfs.clean" and the like, which are asked to be nothing: of the commands that compare content */
	const struct strvec *filters;
};
/* `args`: the command, its options and words, ended by NULL; no word of the user's may stand where it could be
 * an option. 1: *ret gets what it printed; 0: it said no, by its exit code, and e holds its own words; -1. */
int git_ask(const struct git_repo *r, const char *const *args, struct strbuf *ret, struct err *e);
/* The keys of all filters that some config of the repository defines, for git_repo.filters. Refused: a git that
 * would start them all the same. */
int git_find_filters(const struct git_repo *r, struct strvec *ret, struct err *e);

#endif

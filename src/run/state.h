/* SPDX-License-Identifier: MIT */
/*
 * The workspace's own directory, <root>/.vx: made with a .gitignore of its own, and the run lock in
 * it. One run at a time per workspace.
 */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include "util/base.h"

struct err;
struct root;

/* Makes <root>/.vx if it is not there. *ret_path (owned) is absolute. */
int state_make(int rootfd, const char *root_path, char **ret_path, struct err *e);

/*
 * Takes the run lock: flock on .vx/lock, with pid and command inside for the message of a waiter. A
 * waiter says once, after a second, whom it waits for. Then it removes what killed writers left
 * half-written in .vx. *ret_fd holds the lock until closed. 1:
 * locked; 0: the signal in *ret_signal ended the wait (the process's signals are blocked by now).
 */
int state_lock(
	const char *state_path, const char *command, int *ret_fd, int *ret_signal, struct err *e);

/* Under the lock: removes what writers that were killed left half-written in .vx (fs_replace_file). A dry
 * run, which takes no lock, may lose what it is about to remember. */
void state_sweep(const char *state_path);

/* Gives it up, for whoever else holds this fd, too. */
void state_unlock(int fd);
/* Takes it again by the same fd, if nobody else has it by now; true where it never was given up. */
bool state_lock_again(int fd);

/* Where the cache is: `flag` (--cache-dir, relative to the current directory), `setting` (relative to
 * the root, or below ~/), else .vx/cache, which is no link. Absolute and owned; it need not exist. */
int state_cache_path(const struct root *root, const char *state_path, const char *setting,
	const char *flag, char **ret, struct err *e);
/* Refuses a directory that is neither new, empty nor a cache: what git is told to ignore there, and what is
 * removed from a cache, would be the user's. `dir` is its name. */
int state_check_cache(int fd, const char *dir, struct err *e);

/* Whether there is a cache that can be read: 1, or 0, nothing is made. *ret_path (owned) is canonical where
 * it exists. */
int state_find_cache(const char *dir, char **ret_path, struct err *e);
/* Makes the cache directory, which is checked, and, outside .vx, a .gitignore that ignores all of it. Canonical and absolute in *ret_path (owned). `dir` is absolute. */
int state_make_cache(const char *dir, char **ret_path, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a task's outputs looked like after their last save or restore, as bytes of one row
 * (docs/CACHE.md), and whether they still look so. Used by index.c alone.
 */
#ifndef CACHE_STAMP_H
#define CACHE_STAMP_H

#include "util/base.h"

struct outputs;
struct strbuf;
struct strvec;

/* Where a file system counts whole seconds, and something was younger than that when it was looked at, times
 * will not tell a change: the stamp is not true then, whatever they say. */
void stamp_encode(const struct outputs *o, struct strbuf *out);

/* Every output has the size, mode, mtime, inode and ctime it had (directories: mode, mtime, inode),
 * and every directory in which one could have appeared has its mtime. No allocation. */
bool stamp_is_true(int rootfd, const void *bytes, size_t n);
/* All is so, but times would not tell: a look at the content may. */
bool stamp_is_unsure(int rootfd, const void *bytes, size_t n);

/* The same of outputs to which others may add: of a directory the mtime does not count, and `now` is all
 * that is there. Pushes the names there that are no outputs of the stamp, in the order of outputs_sort. */
bool stamp_is_among(
	const void *bytes, size_t n, const struct outputs *now, struct strvec *ret_strays);

/* Pushes the names of the outputs. */
void stamp_list_names(const void *bytes, size_t n, struct strvec *ret);

/* Sets ret[i] where now->v[i] was an output and is the same file: by name and inode. */
void stamp_find_files(const void *bytes, size_t n, const struct outputs *now, bool *ret);

/* Sets ret[i] where paths[i], sorted by bytes, was an output: by its name alone. */
void stamp_find_names(
	const void *bytes, size_t n, const char *const *paths, size_t npaths, bool *ret);

#endif

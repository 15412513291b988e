/* SPDX-License-Identifier: MIT */
/*
 * One name from the scratch to its place in the workspace, over what is there: by rename, by
 * exchange (what was there is then in the scratch), or, where the scratch is on another file
 * system, by a copy beside the target and a rename. A directory never takes the place of a
 * directory: it moves into it. Links are moved as links.
 */
#ifndef CACHE_PLACE_H
#define CACHE_PLACE_H

#include "util/base.h"
#include <sys/stat.h>

/* from/from_name (st is its lstat) to to/name. errno on -1; EISDIR: a directory is in the way of
 * something that is none. Done again after a crash at any point it ends the same. */
int place(int from, const char *from_name, int to, const char *name, const struct stat *st);

#endif

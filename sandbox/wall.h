/* SPDX-License-Identifier: MIT */
/*
 * The wall layer: a file system of whiteouts below the policy layer. It hides names from listings, and
 * where there is no FUSE it hides them altogether, filled at start. Reached through a detached
 * clone of its mount, so it never goes through the overlay.
 */
#ifndef SANDBOX_WALL_H
#define SANDBOX_WALL_H

#include "proto/ruleset.h"

struct err;
struct wall;

/*
 * rootfd: the writable root of a ramfs (or tmpfs). Its directory `subdir` is the layer, made
 * here unless it is there; beside it, under the name "wh", stands the one whiteout (character
 * device 0:0) that the others are links to. All fds are borrowed.
 */
struct wall *wall_new(
	int rootfd, const char *subdir, int hostfd, const struct ruleset *rules, struct err *e);
/* The directory exists in the wall (for a traverse directory that was looked up; the one above was
 * before), also where a whiteout stood. errno on -1. */
int wall_mkdir(struct wall *w, const char *path);
/* One whiteout for each name that the host has in `path` now and the task may not see. Once per
 * directory. errno on -1: then the directory must not be listed (answer EIO): never show more. */
int wall_fill(struct wall *w, const char *path);
/* Whether the hidden name came to be after its directory was filled. (The wall has what it hid then.) */
bool wall_is_newer(const struct wall *w, const char *path);
/* The whole tree: the view without FUSE. Directories get the host's mode and time, since the overlay
 * shows those of its top layer. */
int wall_fill_all(struct wall *w, struct err *e);
void wall_free(struct wall *w);

#endif

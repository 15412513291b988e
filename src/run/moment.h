/* SPDX-License-Identifier: MIT */
/*
 * What files looked like, so that a look afterwards tells whether they were the same all the while: the
 * inputs of a task right before its command starts, and the files that every key rests on. Content that
 * is right again afterwards proves nothing: a file can be moved away, another one be read in its place,
 * and the first moved back. Compared with what was seen, not with a clock: the one that file systems
 * stamp with is some ms behind ours.
 *
 *	of a file	another inode, mode, size, mtime or ctime is a change, be the content the same: who
 *			writes one can give it its old bytes and its old mtime back, but not its ctime. So
 *			permissions that are set to what they are, owners and hard links count
 *	of a directory	another inode or mode is a change; so is another ctime where the mtime is the old one
 *			(it was moved, or permissions were set), unless we open such a directory to work in
 *			it ourselves. Another mtime: names came or went in it; which ones is asked elsewhere
 *			(plan_still_true)
 *
 * Not told: a directory that is moved away and back, and in which a name comes or goes, too, as a temporary
 * file does; which name it was that came and went; and before Linux 6.13, which stamps by the tick of its
 * clock, or where a file system counts whole seconds, a change within the tick, or second, of the change
 * before it.
 */
#ifndef RUN_MOMENT_H
#define RUN_MOMENT_H

#include "util/arena.h"

struct sight;

struct moment {
	struct arena arena;
	struct sight *v; /* the workspace, then files, each after the directories above it */
	size_t n, cap;
};

void moment_init(struct moment *m);
void moment_release(struct moment *m);
/* `paths`: sorted, at least where they lie in directories. `also`: one more file, such as the manifest, or
 * NULL. Before the content is read. */
void moment_take(
	struct moment *m, int rootfd, const char *const *paths, size_t n, const char *also);
/* The first file or directory that is not as it was; borrowed. NULL: none. */
const char *moment_find_change(const struct moment *m, int rootfd);
/* The next directory from *at on (0 at first) in which names came or went, the workspace ("") included;
 * borrowed. NULL: no more. */
const char *moment_next_stirred(const struct moment *m, int rootfd, size_t *at);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a task's inputs looked like right before its command started, so that a look afterwards tells
 * whether they were the same all the while. Content that is right again afterwards proves nothing: a
 * file can be moved away, another one be read in its place, and the first moved back. But a rename
 * changes the ctime, of the file or of a directory above it, and nobody can set that. Compared with
 * what was seen, not with a clock: the one that file systems stamp with is some ms behind ours.
 *
 * Not told: a directory that is moved away and back, and in which a name comes or goes, too (its mtime
 * is new then, as after a temporary file); and before Linux 6.13, which stamps by the tick of its clock,
 * a change within the tick of the change before it.
 */
#ifndef RUN_MOMENT_H
#define RUN_MOMENT_H

#include "util/arena.h"

struct inputs;
struct sight;

struct moment {
	struct arena arena;
	struct sight *v; /* files, and each directory above them once */
	size_t n, cap;
};

void moment_init(struct moment *m);
void moment_release(struct moment *m);
/* `also`: one more file, such as the manifest, or NULL. Before the key is made. */
void moment_take(struct moment *m, int rootfd, const struct inputs *in, const char *also);
/* The first file that is not as it was, or directory that was moved or given other permissions;
 * borrowed. NULL: none. */
const char *moment_find_change(const struct moment *m, int rootfd);

#endif

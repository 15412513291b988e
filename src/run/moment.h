/* SPDX-License-Identifier: MIT */
/*
 * What a task's inputs looked like right before its command started, so that a look afterwards tells
 * whether they were the same all the while. Content that is right again afterwards proves nothing: a
 * file can be moved away, another one be read in its place, and the first moved back. Compared with
 * what was seen, not with a clock: the one that file systems stamp with is some ms behind ours.
 *
 *	another inode or mode	a change
 *	another mtime		of a file: it was written, a change even if the same bytes were (spec/cache.md
 *				§4; a touch looks the same). Of a directory: names came or went in it; which
 *				ones is asked elsewhere (plan_still_true)
 *	another ctime alone	permissions, owners or links were set: many commands start with a `chmod +x`
 *				that changes nothing, and the content is digested once more in any case. Or it
 *				was moved: but then names came and went in the directory that holds it, too.
 *				If some did, this is a change
 *
 * Not told: a directory that is moved away and back, and in which a name comes or goes, too (its mtime
 * is new then, as after a temporary file); what somebody gives its old mtime back afterwards; and before
 * Linux 6.13, which stamps by the tick of its clock, a change within the tick of the change before it.
 * Told though it is none: permissions that are set in a directory in which other names come or go.
 */
#ifndef RUN_MOMENT_H
#define RUN_MOMENT_H

#include "util/arena.h"

struct inputs;
struct sight;

struct moment {
	struct arena arena;
	struct sight *v; /* the workspace, then files, each after the directories above it */
	size_t n, cap;
};

void moment_init(struct moment *m);
void moment_release(struct moment *m);
/* `also`: one more file, such as the manifest, or NULL. Before the key is made. */
void moment_take(struct moment *m, int rootfd, const struct inputs *in, const char *also);
/* The first file or directory that is not as it was; borrowed. NULL: none. */
const char *moment_find_change(const struct moment *m, int rootfd);

#endif

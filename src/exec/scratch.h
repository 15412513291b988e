/* SPDX-License-Identifier: MIT */
/*
 * Where sandboxed tasks write: DIR/vx-scratch-<workspace>-<random>/ one per task, 0700, its directory
 * fd locked (flock) by those that use it: the core, and the helper of a live view, which may outlive it
 * for a moment. An unlocked one is left over from a run that died: whoever starts next (or the guard)
 * rolls forward what is listed there (cache/moves.h), then removes it. The stage of a run's restores (cache/stage.h) is one, too. Used ones are renamed to DIR/vx-trash-…
 * and deleted at the end of the run, since deleting between tasks makes ext4 create slowly (findings 5); earlier,
 * by a child of low priority, once there is much in the trash or little room on the disk.
 *
 * Where (design §5): <root>/.vx/scratch (where that is another user's: .vx/scratch-<uid>), then a
 * directory vx-scratch-<uid> of our own in $VX_SCRATCH_DIR, /var/tmp, and from kernel 6.6 on /dev/shm;
 * the first whose file system can hold an overlay's upper directory; none: an error that says to set
 * VX_SCRATCH_DIR to a volume. <workspace> is a hash of the root's path: those outside the root may be
 * shared, and only the runs of one workspace, which exclude each other, touch its scratches; a run that has
 * given up its lock, of which servers are left, no others than theirs.
 */
#ifndef EXEC_SCRATCH_H
#define EXEC_SCRATCH_H

#include "cache/moves.h"

struct err;
struct strvec;
struct scratch_area; /* the chosen DIR of a run */

/* In a scratch: the overlay's upper directory, made by the helper. */
#define SCRATCH_UPPER MOVES_FROM
/* Made by the helper: what was moved out of the workspace (sandbox/livescan.h). */
#define SCRATCH_OUT "out"

struct scratch {
	char *path; /* absolute */
	int fd;     /* locked, shared */
};

int scratch_area_open(const char *root_path, struct scratch_area **ret, struct err *e);
const char *scratch_area_path(const struct scratch_area *a);
/* The directories for scratches, made where they are missing, that lie in an absolute directory that a task may write, or
 * in which that lies. What is in one is done by a later run, so no task may see it. */
void scratch_places_in(const char *dir, struct strvec *ret);
int scratch_new(struct scratch_area *a, struct scratch *ret, struct err *e);
/* Takes what a live view moved out (SCRATCH_OUT) from the scratch, to stay for the user; its path, owned, or
 * NULL with errno. */
char *scratch_keep(const struct scratch_area *a, const struct scratch *s);
/* Into the trash. Its lock is dropped. Forks when that starts the removal. */
void scratch_drop(struct scratch_area *a, struct scratch *s);
/* Empties the trash. What cannot be removed now is tried again by the next start. */
void scratch_area_empty(struct scratch_area *a);
/* Empties the trash and frees. */
void scratch_area_close(struct scratch_area *a);

/* Recovery, under the run lock: for every area this workspace may have used, roll open commits and
 * restores forward, keep what live views moved out, remove unlocked scratches and trash. */
int scratch_recover(const char *root_path, int rootfd, struct err *e);

#endif

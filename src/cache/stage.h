/* SPDX-License-Identifier: MIT */
/*
 * Where restores put their pieces together before they move them into place: one directory for the
 * whole run, <root>/.vx/scratch/vx-scratch-<random>, made at first use. It is locked and laid out as
 * the scratch of a task (exec/scratch.h, cache/moves.h), so that the guard or the next start finishes
 * and removes one that a killed vx left. There is never more than one list in it that is not done,
 * because a restore is over before the next begins. One directory for all, because deleting one
 * between two restores makes ext4 slow at making the next (findings 5: 3 ms for a mkdir); so what was
 * replaced stays in it, too, until the run ends.
 */
#ifndef CACHE_STAGE_H
#define CACHE_STAGE_H

#include "util/base.h"

struct err;
struct stage;

/* The name in .vx (vxfd) below which a process of our user may make scratches: "scratch", or
 * "scratch-<uid>" where that is another user's, who could change what we find in it. */
void stage_area_name(int vxfd, char *ret, size_t size);
/* Tells ext4 to spread what is made in this directory over the disk: else creating is slow for half a
 * minute wherever much was just deleted, such as the outputs that are restored (findings 5). */
void stage_spread_on_disk(int areafd);

/* rootfd is borrowed. Nothing is made yet. */
struct stage *stage_new(int rootfd);
/* Makes it where that has not been done. */
int stage_open(struct stage *s, struct err *e);
/* After stage_open, borrowed: the directory for lists, and the one in it for pieces. */
int stage_scratch(const struct stage *s);
int stage_pieces(const struct stage *s);
/* A number that is no piece's name yet. */
uint64_t stage_number(struct stage *s);
/* Removes it with all that is left in it. */
void stage_free(struct stage *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where restores put their pieces together before they move them into place: one directory for the
 * whole run, <root>/.vx/vx-scratch-<random>, made at first use and locked like a task's scratch, so
 * that one which a killed vx left is removed by the next start. One for all, because deleting a
 * directory between two restores makes ext4 slow at making the next (findings 5: 3 ms for a mkdir).
 */
#ifndef CACHE_STAGE_H
#define CACHE_STAGE_H

#include "util/base.h"

struct err;
struct stage;

/* rootfd is borrowed. Nothing is made yet. */
struct stage *stage_new(int rootfd);
/* The directory, borrowed; -1 with e set. */
int stage_open(struct stage *s, struct err *e);
/* The mount that it is on (statx). After stage_open. */
uint64_t stage_mount(const struct stage *s);
/* A name that nothing has in it yet. */
void stage_name(struct stage *s, char *ret, size_t size);
/* Removes it with all that is left in it. */
void stage_free(struct stage *s);

/* The id of the mount that fd is on; 0 where the kernel does not say. */
uint64_t stage_mount_of(int fd);

#endif

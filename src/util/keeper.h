/* SPDX-License-Identifier: MIT */
/*
 * A program that is ended, with all that it has started, when this process is gone, however it went. Who sees to that is a
 * process between the two: a reaper of its descendants, that waits for one of them to end. For where no guard does it
 * (exec/guard.h).
 */
#ifndef UTIL_KEEPER_H
#define UTIL_KEEPER_H

#include "util/base.h"
#include <sys/types.h>

struct err;
struct proc_spec;

struct keeper {
	pid_t pid;
	int pidfd; /* readable when the program, and what it has started, are gone */
	int leash; /* keeper.c's own */
};

/* Not where this process is the reaper itself: its guard then ends what is left. */
bool keeper_is_needed(void);
/* As proc_start, by a fork: before there are threads. */
int keeper_start(const struct proc_spec *spec, struct keeper *ret, struct err *e);
/* Ends the program unless it has ended, and waits. *ret_status is what wait says of it. errno on -1. */
int keeper_end(struct keeper *k, int *ret_status);

#endif

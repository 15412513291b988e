/* SPDX-License-Identifier: MIT */
/*
 * The parent that outlives the core (design §2). guard_fork() is called once at the start of
 * `vx run`, before anything but the run lock is opened; both hold that, so that the next run waits
 * for whichever outlives the other. The parent never returns from it: it becomes vx-guard,
 * forwards INT, TERM, HUP, QUIT, TSTP and CONT to the core and ends as the core ended (128 + n
 * after a signal). The child returns as the core, in a process group of its own (so that a
 * terminal's Ctrl-C reaches it once, through the guard). Both are child subreapers and watch each
 * other by pidfd: when one dies the other kills its children until none is left and cleans up; helpers get a
 * moment to end by themselves. The core reaps the orphans that end while it lives (util/proc.h).
 */
#ifndef EXEC_GUARD_H
#define EXEC_GUARD_H

#include "util/base.h"
#include <signal.h>
#include <sys/types.h>

struct err;

struct guard {
	int pidfd; /* of the guard, for the core's loop: readable when it is dead */
	int done;  /* guard.c's own */
};

/* The signals that the guard forwards: for the core's loop (loop_new). Not those that were ignored at the
 * start. */
void guard_signals(sigset_t *ret);

/* In the core: 0, with the guard's signals blocked, so that what comes before there is a loop waits
 * for it. `recover` is called in the guard after the core has died without saying that it was done
 * and all its children are gone (ctx is the guard's copy). find_helper says where the program is that gets a
 * moment to end by itself; NULL: none does. */
int guard_fork(void (*recover)(void *ctx), void *ctx, char *(*find_helper)(struct err *e),
	struct guard *ret, struct err *e);
/* In the core: nothing is left to recover; the guard only passes the exit code on. */
void guard_core_is_done(struct guard *g);

#endif

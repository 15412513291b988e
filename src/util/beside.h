/* SPDX-License-Identifier: MIT */
/*
 * A second thread, for a while: it does what takes the kernel long while the first one does what needs none of it. It runs
 * one function, which shares with the first thread only what its owner says, takes no signal, and is over
 * before its answers are used.
 */
#ifndef UTIL_BESIDE_H
#define UTIL_BESIDE_H

#include "util/base.h"
#include <pthread.h>
#include <stdatomic.h>

struct beside {
	bool running;
	pthread_t thread;
	atomic_bool hurry; /* for the function to see: nobody waits for the rest of its answers */
};

/* Where there can be no thread the function does not run. */
void beside_start(struct beside *b, void *(*fn)(void *arg), void *arg);
/* Waits until it is over, if it ran. */
void beside_end(struct beside *b, bool hurry);

#endif

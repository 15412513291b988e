/* SPDX-License-Identifier: MIT */
#include "util/beside.h"
#include <signal.h>

void
beside_start(struct beside *b, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;

	b->hurry = false;
	/* Signals are the first thread's: the loop waits for them where only that one blocks them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	b->running = !pthread_create(&b->thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
beside_end(struct beside *b, bool hurry)
{
	if (!b->running)
		return;
	b->hurry = hurry;
	pthread_join(b->thread, NULL);
	b->running = false;
}

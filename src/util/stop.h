/* SPDX-License-Identifier: MIT */
/*
 * The core has one thread, and takes signals between two polls. What can take long (reading,
 * digesting, copying, thousands of names) asks between its steps whether one waits that ends the run,
 * and then gives up with ECANCELED. Who called it undoes or leaves out the rest, as after any failure;
 * the loop takes the signal next.
 *
 * Only what is blocked can wait: a program that does not block these signals is never asked to stop.
 */
#ifndef UTIL_STOP_H
#define UTIL_STOP_H

#include "util/base.h"
#include <signal.h>

/* INT, TERM, HUP and QUIT, but for those that are ignored. */
void stop_signals(sigset_t *ret);
/* Who started us wants none of it: nohup of HUP, a shell without job control of INT and QUIT for what it
 * puts in the background. Blocked and read from a signalfd it would be heard all the same. */
bool stop_is_ignored(int sig);
/* This process is to stop, too, when it has another parent than that. */
void stop_without(pid_t parent);
/* The signal of them that is pending, SIGTERM when the parent has died, or 0. */
int stop_asked_by(void);
bool stop_is_asked(void);
/* The same, looked at in every 64th call alone: for steps of a few microseconds. */
bool stop_is_asked_by_now(void);

#endif

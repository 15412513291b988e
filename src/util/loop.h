/* SPDX-License-Identifier: MIT */
/*
 * The poll loop: fds, child exits (pidfds), signals (a signalfd) and deadlines; one thread. A
 * callback may add and remove anything, itself included. Nothing here sleeps.
 */
#ifndef UTIL_LOOP_H
#define UTIL_LOOP_H

#include "util/base.h"
#include <signal.h>

struct err;
struct loop;

/* Blocks the signals of `sigs` for this process and delivers them through the loop. Ignores SIGPIPE
 * (a write to a child that is gone is an EPIPE), and has SIGCHLD at its default. */
int loop_new(const sigset_t *sigs, struct loop **ret, struct err *e);
void loop_free(struct loop *l);

enum {
	LOOP_READ = 1,
	LOOP_WRITE = 2,
	LOOP_BULK = 4 /* what is read may wait: loop_hold */
};

/* What the caller keeps; zero it first. The loop holds a pointer until removed; remove before the fd
 * is closed. With no events it is not called at all. */
struct loop_fd {
	int fd;
	unsigned events; /* LOOP_READ | LOOP_WRITE | LOOP_BULK */
	/* Ready (an error or hang-up counts as ready for both). */
	void (*ready)(struct loop_fd *w, unsigned events);
	size_t slot; /* the loop's */
};
void loop_add_fd(struct loop *l, struct loop_fd *w);
void loop_update_fd(struct loop *l, struct loop_fd *w); /* after a change of events */
void loop_remove_fd(struct loop *l, struct loop_fd *w); /* no effect if it is not there */

/* Leaves the fds with LOOP_BULK alone, until that is taken back: there is no room for what they bring, and who
 * writes them waits. */
void loop_hold(struct loop *l, bool on);
bool loop_is_held(const struct loop *l);

struct loop_timer {
	uint64_t at_ns;                     /* clock_monotonic_ns */
	void (*fire)(struct loop_timer *t); /* once; removed before the call */
	size_t slot;
};
void loop_add_timer(struct loop *l, struct loop_timer *t);
void loop_remove_timer(struct loop *l, struct loop_timer *t);

void loop_on_signal(struct loop *l, void (*fn)(void *ctx, int sig), void *ctx);

/* Runs once before each poll: work that became possible by what the callbacks did. May be NULL. */
void loop_on_idle(struct loop *l, void (*fn)(void *ctx), void *ctx);

/* Returns 0 when loop_stop was called. */
int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l);

#endif

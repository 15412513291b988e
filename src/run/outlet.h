/* SPDX-License-Identifier: MIT */
/*
 * Bytes for whoever reads what vx prints, at his pace: what he does not take at once waits in memory, in
 * its order, and goes out when the loop finds him ready, so that a pipe that is full or a terminal that was stopped keeps
 * nobody from their signals and deadlines. Nothing is left out; who makes more of it asks first how
 * much waits.
 */
#ifndef RUN_OUTLET_H
#define RUN_OUTLET_H

#include "util/loop.h"
#include "util/strbuf.h"

struct outlet {
	int fd;
	bool patient; /* a write can wait for the reader: no more at once than what has room */
	bool at_once; /* a file: always has room */
	struct strbuf waiting;
	size_t gone;                       /* of them */
	int error;                         /* of a write; nothing more is written after it */
	struct loop *loop;                 /* NULL: everything is waited for */
	uint64_t until_ns;                 /* until then (monotonic); 0: there is no end */
	struct loop_fd room;               /* in the loop while something waits */
	void (*drained)(struct outlet *o); /* nothing waits any more; may be NULL */
};

/* loop NULL: none. fd stays the caller's. */
void outlet_init(struct outlet *o, int fd, struct loop *loop);
/* What waits is dropped. */
void outlet_release(struct outlet *o);
void outlet_add(struct outlet *o, const char *p, size_t n);
static inline size_t
outlet_waiting(const struct outlet *o)
{
	return o->waiting.len - o->gone;
}
/* Returns when no more than `most` bytes wait, or when a stop is asked (util/stop.h) or the time is over: false. */
bool outlet_wait(struct outlet *o, size_t most);

#endif

/* SPDX-License-Identifier: MIT */
#include "sandbox/preload.h"
#include "tests/tap.h"
#include <time.h>

static bool
is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* MS from now, by the clock that files are stamped with. */
static struct timespec
after(long ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

int
main(void)
{
	struct preload p = {0};
	struct timespec now;

	p.last = after(0);
	now = preload_settle(&p);
	ok(is_later(&now, &p.last), "the clock: past the last copy");

	/* As when the clock stood still for many ticks. */
	p.last = after(200);
	now = preload_settle(&p);
	ok(is_later(&now, &p.last), "the clock: however long the clock takes");

	p.last = after(3600L * 1000);
	now = preload_settle(&p);
	ok(is_later(&p.last, &now), "the clock: but not for hours, when the clock was set back");
	return tap_done();
}

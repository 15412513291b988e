/* SPDX-License-Identifier: MIT */
#include "util/clock.h"
#include <time.h>

static uint64_t (*clock_fake)(void);

static uint64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t
clock_monotonic_ns(void)
{
	return clock_fake ? clock_fake() : read_clock(CLOCK_MONOTONIC);
}

uint64_t
clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t
clock_files_ns(void)
{
	return read_clock(CLOCK_REALTIME_COARSE);
}

void
clock_set_monotonic(uint64_t (*fn)(void))
{
	clock_fake = fn;
}

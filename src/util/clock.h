/* SPDX-License-Identifier: MIT */
/*
 * Wall and monotonic time in nanoseconds. Tests put a function of their own in place.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include "util/base.h"

uint64_t clock_monotonic_ns(void);
uint64_t clock_wall_ns(void);
/* The clock that the kernel stamps files with: it stands still for a tick, for longer where the
 * processor that moves it on is held up. */
uint64_t clock_files_ns(void);

/* Test seam: a replacement for the monotonic clock, NULL for the real one. */
void clock_set_monotonic(uint64_t (*fn)(void));

#endif

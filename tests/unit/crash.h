/* SPDX-License-Identifier: MIT */
/*
 * Dying at a chosen point: the phases that are logged (VX_DEBUG=phase) are the points at which a
 * crash must do no harm.
 */
#ifndef TESTS_UNIT_CRASH_H
#define TESTS_UNIT_CRASH_H

#include "tests/tap.h"
#include "util/log.h"
#include <sys/wait.h>
#include <unistd.h>

enum {
	CRASH_DIED = 7
};

static int crash_countdown;

static inline ssize_t
crash_at_line(void *cookie, const char *buf attr_unused, size_t n)
{
	(void)cookie;
	if (!crash_countdown--)
		_exit(CRASH_DIED);
	return (ssize_t)n;
}

/* In a child: exits with CRASH_DIED at the n-th line. */
static inline void
crash_at(int n)
{
	crash_countdown = n;
	stderr = fopencookie(NULL, "w", (cookie_io_functions_t){.write = crash_at_line});
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
	setenv("VX_DEBUG", "phase", 1);
	log_init();
}

/* What became of the child: true when it got to its end, false when it died as it should. */
static inline bool
crash_finished(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != CRASH_DIED))
		ok(false, "the child ended with %d", status);
	return status == 0;
}

#endif

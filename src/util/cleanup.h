/* SPDX-License-Identifier: MIT */
/*
 * Cleanup attributes for locals, and the two ways to hand a value over. Every cleanup keeps errno.
 */
#ifndef UTIL_CLEANUP_H
#define UTIL_CLEANUP_H

#include "util/base.h"
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

static inline void
cleanup_free_p(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void
cleanup_close_p(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

static inline void
cleanup_dir_p(DIR **d)
{
	int saved = errno;

	if (*d)
		closedir(*d);
	errno = saved;
}

static inline void
cleanup_file_p(FILE **f)
{
	int saved = errno;

	if (*f)
		fclose(*f);
	errno = saved;
}

#define cleanup_free __attribute__((cleanup(cleanup_free_p)))
#define cleanup_close __attribute__((cleanup(cleanup_close_p)))
#define cleanup_dir __attribute__((cleanup(cleanup_dir_p)))
#define cleanup_file __attribute__((cleanup(cleanup_file_p)))

/* Gives the fd in *fd away: the caller owns it, the variable holds -1. */
static inline int
take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

/* Gives the pointer in *p away: the variable holds NULL. */
#define take_ptr(p)                                                                                \
	__extension__({                                                                            \
		__typeof__(*(p)) take_ptr_v = *(p);                                                \
		*(p) = NULL;                                                                       \
		take_ptr_v;                                                                        \
	})

#endif

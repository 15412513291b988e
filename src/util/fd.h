/* SPDX-License-Identifier: MIT */
/*
 * Whole reads and writes, and closing. Every fd of vx is close-on-exec from its birth.
 */
#ifndef UTIL_FD_H
#define UTIL_FD_H

#include "util/base.h"
#include <sys/types.h>

struct err;
struct strbuf;

/* Closes *fd if it is open, sets it to -1, keeps errno. Never retried: after EINTR it is closed. */
void fd_close(int *fd);

/* All of `n` bytes, over short writes and EINTR. errno on -1. */
int fd_write_all(int fd, const void *p, size_t n);
enum {
	FD_READ_ROOM = 64
};
/* Appends until end of file; more than `max` bytes is EFBIG. errno on -1. Room for FD_READ_ROOM more
 * than is in the file saves making more of it. */
int fd_read_all(int fd, struct strbuf *out, size_t max);

/* Reads a file at dirfd/path whole. -1 with errno in e->num, "read PATH: …". */
int fd_read_file(int dirfd, const char *path, size_t max, struct strbuf *out, struct err *e);

/* Opens /dev/null on whichever of 0, 1, 2 is closed, so that no later fd lands there. */
void fd_open_standard(void);

/* A close-on-exec pipe; ret[0] is the read end. errno on -1. */
int fd_pipe(int ret[2]);
int fd_set_nonblock(int fd);

#endif

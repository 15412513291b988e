/* SPDX-License-Identifier: MIT */
/*
 * The raw protocol on a /dev/fuse fd (linux/fuse.h), one thread. What both file systems of the helper
 * share: layer.c (verdicts for overlayfs, with mirror.c) and livewall.c (the workspace of a live view).
 */
#ifndef SANDBOX_FUSE_H
#define SANDBOX_FUSE_H

#include "util/base.h"
#include <linux/fuse.h>
#include <sys/types.h>

enum {
	FUSE_IO_MAX = 128 << 10, /* of content in one request or answer */
	FUSE_FOREVER_SECONDS = 1000 * 1000 * 1000,
};

/* A request as it was read: `arg` are the narg bytes after the header, to be checked before use. */
struct fuse_request {
	int fd;
	const struct fuse_in_header *in;
	const char *arg;
	size_t narg;
};

/* These return -1 when the connection is gone, else 0. */
int fuse_answer(const struct fuse_request *r, int error, const void *p, size_t n);
int fuse_answer_error(const struct fuse_request *r, int error);
/* FUSE_INIT. flags: what is wanted of FUSE_*, where the kernel knows it. */
int fuse_answer_init(const struct fuse_request *r, uint32_t flags, uint32_t max_write);

struct owner;
struct stat;
/* An id without a mapping cannot be copied up, and makes the kernel refuse every write: the caller's stands in
 * for it. */
struct fuse_attr fuse_attr_of(const struct stat *st, const struct owner *owner);

/* A number of the device dev as a number of the one device that there is inside: those of root_dev as they are. */
uint64_t fuse_number(uint64_t ino, dev_t dev, dev_t root_dev);

/* FUSE_STATFS, as of the file system of fd. */
int fuse_answer_statfs(const struct fuse_request *r, int fd);

/* FUSE_FORGET and FUSE_BATCH_FORGET, which are not answered: calls `forget` for each node. */
void fuse_forget(const struct fuse_request *r,
	void (*forget)(void *ctx, uint64_t id, uint64_t lookups), void *ctx);

/* The fixed beginning of the argument; false: it is too short. */
bool fuse_arg(const struct fuse_request *r, void *ret, size_t n);

/* Adds one entry to a listing. Returns its length; 0: there is no room for it. */
size_t fuse_add_dirent(char *out, size_t room, const struct fuse_dirent *d, const char *name);

/* The name that begins at `at` in the argument, ended by a NUL and fit to be one component; NULL: none.
 * *ret_next is where the next one would begin. */
const char *fuse_name(const struct fuse_request *r, size_t at, size_t *ret_next);

/*
 * Has `handle` answer what is waiting on the (non-blocking) fd; after an answer it yields and looks again
 * for up to 50 us, since the task's next request usually follows at once (findings 2). 0: nothing more
 * for the moment, or a good number answered and the caller may look at its other fds. -1: the connection
 * is gone. What a request holds is gone after its `handle`.
 */
int fuse_serve(int fd, int (*handle)(void *ctx, const struct fuse_request *r), void *ctx);

#endif

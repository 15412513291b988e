/* SPDX-License-Identifier: MIT */
/*
 * The content of a file in pieces, from the fd's position to the end that it had at the start: one that
 * somebody goes on writing to, a log, would else be read for ever. That it has changed is for the caller
 * to see by stat. A hole costs no read. Between two pieces a stop may be asked for (util/stop.h).
 */
#ifndef UTIL_CONTENT_H
#define UTIL_CONTENT_H

#include "util/base.h"
#include <sys/types.h>

enum {
	CONTENT_PIECE = 128 << 10
};

struct content {
	int fd;       /* borrowed */
	bool is_file; /* has a size */
	bool is_sparse;
	bool is_zero;   /* the buffer holds zeros */
	off_t at, size; /* only kept of a file */
	off_t hole_end; /* up to there it is known to be a hole */
};

void content_init(struct content *c, int fd);
/* The next piece, in buf, which has CONTENT_PIECE bytes and is the same each time. Its length, 0 at
 * the end; errno on -1: ECANCELED when a stop is asked. *ret_hole: it lies in a hole. */
ssize_t content_next(struct content *c, char *buf, bool *ret_hole);

#endif

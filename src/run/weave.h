/* SPDX-License-Identifier: MIT */
/*
 * What a command prints comes in two streams and is shown as one. A program often writes a line in pieces ("cat: ",
 * then the rest), and what came in the other stream between two of them would tear it. So while a line of one stream is
 * open the other one waits: until that line ends, or nothing came for WEAVE_MS, as of a prompt, or until there is too
 * much of it.
 */
#ifndef RUN_WEAVE_H
#define RUN_WEAVE_H

#include "exec/exec.h"
#include "util/loop.h"
#include "util/strbuf.h"

enum {
	WEAVE_MS = 20,
	WEAVE_MAX = 64 << 10 /* of what waits */
};

struct weave {
	struct loop *loop;
	void (*out)(void *ctx, enum exec_stream stream, const char *p, size_t n);
	void *ctx;
	bool is_open;          /* a line of `last` */
	enum exec_stream last; /* whose bytes came out last */
	struct strbuf waiting; /* of the other one */
	struct loop_timer patience;
};
void weave_init(struct weave *w, struct loop *l,
	void (*out)(void *ctx, enum exec_stream stream, const char *p, size_t n), void *ctx);
void weave_add(struct weave *w, enum exec_stream stream, const char *p, size_t n);
/* The end of both: what waited comes out. Ready for another command. */
void weave_end(struct weave *w);
void weave_release(struct weave *w);

#endif

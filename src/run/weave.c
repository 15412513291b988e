/* SPDX-License-Identifier: MIT */
#include "run/weave.h"
#include "util/clock.h"

static void
put(struct weave *w, enum exec_stream stream, const char *p, size_t n)
{
	if (!n)
		return;
	w->last = stream;
	w->is_open = p[n - 1] != '\n';
	w->out(w->ctx, stream, p, n);
}

static enum exec_stream
other(enum exec_stream stream)
{
	return stream == EXEC_STDOUT ? EXEC_STDERR : EXEC_STDOUT;
}

static void
let_go(struct weave *w)
{
	struct strbuf waiting = w->waiting;

	w->waiting = (struct strbuf)STRBUF_INIT;
	loop_remove_timer(w->loop, &w->patience);
	put(w, other(w->last), waiting.buf, waiting.len);
	strbuf_release(&waiting);
}

static void
patience_fired(struct loop_timer *t)
{
	let_go(container_of(t, struct weave, patience));
}

void
weave_init(struct weave *w, struct loop *l,
	void (*out)(void *ctx, enum exec_stream stream, const char *p, size_t n), void *ctx)
{
	*w = (struct weave){.loop = l,
		.out = out,
		.ctx = ctx,
		.last = EXEC_STDOUT,
		.waiting = STRBUF_INIT,
		.patience.fire = patience_fired};
}

static void
be_patient(struct weave *w)
{
	loop_remove_timer(w->loop, &w->patience);
	w->patience.at_ns = clock_monotonic_ns() + WEAVE_MS * UINT64_C(1000000);
	loop_add_timer(w->loop, &w->patience);
}

void
weave_add(struct weave *w, enum exec_stream stream, const char *p, size_t n)
{
	const char *end;

	if (!n)
		return;
	if (w->is_open && stream != w->last) {
		strbuf_add(&w->waiting, p, n);
		if (w->waiting.len > WEAVE_MAX)
			let_go(w);
		else if (!w->patience.slot)
			be_patient(w);
		return;
	}
	if (!w->waiting.len) {
		put(w, stream, p, n);
		return;
	}
	/* The other one comes where the line ends, before what this one has begun since. */
	end = memchr(p, '\n', n);
	if (!end) {
		put(w, stream, p, n);
		be_patient(w);
		return;
	}
	put(w, stream, p, (size_t)(end - p) + 1);
	let_go(w);
	weave_add(w, stream, end + 1, n - (size_t)(end - p) - 1);
}

void
weave_end(struct weave *w)
{
	if (w->waiting.len)
		let_go(w);
	w->is_open = false;
}

void
weave_release(struct weave *w)
{
	if (w->loop)
		loop_remove_timer(w->loop, &w->patience);
	strbuf_release(&w->waiting);
}

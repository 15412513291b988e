/* SPDX-License-Identifier: MIT */
/* Below the footer: persistent tasks that stay. */
#include "run/report-private.h"
#include "util/alloc.h"
#include "util/columns.h"

enum {
	LINE_MAX_BYTES = 65536 /* one that does not end is shown all the same */
};

bool
report_is_kept(const struct report *r)
{
	return r->nkept > 0;
}

static void
add_name(const struct report *r, struct strbuf *out, const struct kept_task *k)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_adds(&name, k->task->node->id);
	report_pad(&name, k->task->node->id, r->kept_width);
	strbuf_adds(&name, " │ ");
	report_add_coloured(r, out, DIM, name.buf);
}

static void
add_line(const struct report *r, struct strbuf *out, const struct kept_task *k, const char *p,
	size_t n)
{
	add_name(r, out, k);
	strbuf_add(out, p, n);
	/* Nobody's colours reach into the next line, which may be another's. */
	if (r->colour && memchr(p, '\033', n))
		strbuf_adds(out, "\033[0m");
	strbuf_addch(out, '\n');
}

/* Whole lines only, so that those of two tasks never mix. */
static void
add_lines(const struct report *r, struct strbuf *out, const struct kept_task *k,
	struct strbuf *line, bool all)
{
	size_t at = 0;

	for (const char *nl; (nl = memchr(line->buf + at, '\n', line->len - at));) {
		size_t n = (size_t)(nl - line->buf) + 1 - at;

		add_line(r, out, k, line->buf + at, n - 1);
		at += n;
	}
	if (at < line->len && (all || line->len - at > LINE_MAX_BYTES)) {
		add_line(r, out, k, line->buf + at, line->len - at);
		at = line->len;
	}
	memmove(line->buf, line->buf + at, line->len - at);
	strbuf_truncate(line, line->len - at);
}

static void
add_output(struct report *r, struct strbuf *out, struct kept_task *k, enum exec_stream stream,
	const char *p, size_t n)
{
	if (r->nkept == 1) {
		report_add_streamed(r, out, &k->strip[stream], p, n);
		return;
	}
	report_add_content(r, &k->line[stream], &k->strip[stream], p, n);
	add_lines(r, out, k, &k->line[stream], false);
}

static bool
is_shown(const struct report *r)
{
	return r->o.logs == LOGS_BY_FLOW || r->o.logs == LOGS_FULL;
}

static struct kept_task *
find(const struct report *r, const struct task *t)
{
	for (size_t i = 0; i < r->nkept; i++)
		if (r->kept[i].task == t)
			return &r->kept[i];
	return NULL;
}

bool
report_keep_output(
	struct report *r, const struct task *t, enum exec_stream stream, const char *p, size_t n)
{
	struct kept_task *k = find(r, t);
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!k)
		return false;
	if (is_shown(r))
		add_output(r, &out, k, stream, p, n);
	report_emit(r, &out);
	return true;
}

bool
report_keep_denied(struct report *r, const struct task *t, const struct exec_denial *d)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
	struct kept_task *k = find(r, t);

	if (!k || !is_shown(r))
		return false;
	strbuf_adds(&text, "vx: denied ");
	report_add_denial(&text, d);
	if (r->nkept == 1) {
		strbuf_adds(&out, escape_is_mid_line(&r->screen) ? "\n" : "");
		strbuf_add(&out, text.buf, text.len);
		escape_watch(&r->screen, out.buf, out.len);
	} else {
		add_lines(r, &out, k, &text, true);
	}
	report_emit(r, &out);
	return true;
}

void
report_keep_ended(struct report *r, const struct report_end *end)
{
	struct kept_task *k = find(r, end->task);
	cleanup_strbuf struct strbuf out = STRBUF_INIT, outcome = STRBUF_INIT;
	bool says = end->nnotes || (end->result && end->result->nfindings);

	for (size_t i = 0; k && i < array_len(k->line); i++)
		add_lines(r, &out, k, &k->line[i], true);
	if (k && says && is_shown(r)) {
		escape_put_back(&r->screen, &out);
		report_add_outcome(&outcome, end->task, end->result);
		report_add_denials(r, &out, end->result);
		report_add_notes(r, &out, end);
		report_add_frame_close(r, &out, end->task, outcome.buf);
	}
	report_emit(r, &out);
}

struct earlier {
	struct report *r;
	struct strbuf *out;
	struct kept_task *k;
};

static void
add_earlier(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct earlier *x = ctx;

	add_output(x->r, x->out, x->k, stream, p, n);
}

void
report_keep(struct report *r, const struct report_kept *kept, size_t n)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	/* It is lifted when they have ended (report_keep_release). */
	if (is_shown(r))
		report_add_fence(r, &out);
	r->kept = xcalloc(n, sizeof(*r->kept));
	r->nkept = n;
	for (size_t i = 0; i < n; i++) {
		size_t width = columns_of(kept[i].task->node->id);

		r->kept[i].task = kept[i].task;
		for (size_t k = 0; k < array_len(r->kept[i].line); k++)
			strbuf_init(&r->kept[i].line[k]);
		if (width > r->kept_width)
			r->kept_width = width;
	}
	for (size_t i = 0; i < n && is_shown(r); i++)
		if (kept[i].task != r->streamed)
			captured_each(kept[i].output, add_earlier,
				&(struct earlier){r, &out, &r->kept[i]});
	report_emit(r, &out);
	/* The footer, too: there is no redraw from here on. */
	report_flush(r);
}

void
report_keep_release(struct report *r)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (r->nkept && is_shown(r)) {
		escape_put_back(&r->screen, &out);
		report_add_fence_end(r, &out);
		report_emit(r, &out);
	}
	for (size_t i = 0; i < r->nkept; i++)
		for (size_t k = 0; k < array_len(r->kept[i].line); k++)
			strbuf_release(&r->kept[i].line[k]);
	free(r->kept);
}

/* SPDX-License-Identifier: MIT */
#include "run/report.h"
#include "run/summary.h"
#include "run/tally.h"
#include "util/cleanup.h"

enum {
	ROWS_SHOWN = 200
};

/* Nothing in it is markup, or ends the cell or the line that it stands in. */
static void
add_text(struct strbuf *out, const char *s)
{
	cleanup_strbuf struct strbuf safe = STRBUF_INIT;

	strbuf_add_sanitised(&safe, s, strlen(s));
	for (const char *p = safe.buf; *p; p++) {
		if (strchr("\\`*_[]<>|~&$", *p))
			strbuf_addch(out, '\\');
		strbuf_addch(out, *p);
	}
}

/* Between more backticks than it has in a row. */
static void
add_code(struct strbuf *out, const char *s)
{
	cleanup_strbuf struct strbuf safe = STRBUF_INIT, fence = STRBUF_INIT;

	strbuf_add_sanitised(&safe, s, strlen(s));
	strbuf_addch(&fence, '`');
	while (strstr(safe.buf, fence.buf))
		strbuf_addch(&fence, '`');
	strbuf_addf(out, "%s %s %s\n", fence.buf, safe.buf, fence.buf);
}

static bool
is_row(const struct task *t)
{
	return !node_is_idle(t->node) && t->status != TASK_HIT && t->status != TASK_UNNEEDED;
}

/* The worst first. */
static int
rank(const struct task *t)
{
	switch (t->status) {
	case TASK_FAILED:
		return 0;
	case TASK_SKIPPED:
	case TASK_ABORTED:
	case TASK_NOT_RUN:
	case TASK_NOOP:
		return 1;
	case TASK_SUCCESS:
	case TASK_HIT:
	case TASK_UNNEEDED:
		break;
	}
	return 2;
}

static void
add_row(struct strbuf *out, const struct task *t)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;
	char time[32];

	report_outcome(&outcome, t);
	report_duration(t->duration_ns, time, sizeof(time));
	strbuf_addf(out, "| %s ", rank(t) == 0 ? "❌" : rank(t) == 1 ? "⚠️" : "✅");
	add_text(out, t->node->id);
	strbuf_adds(out, " | ");
	add_text(out, outcome.buf);
	strbuf_addf(out, " | %s | ", rank(t) == 1 ? "" : time);
	if (rank(t) != 1)
		strbuf_adds(out, record_cache(t));
	if (t->why) {
		strbuf_adds(out, ": ");
		add_text(out, t->why);
	}
	strbuf_adds(out, t->flaky ? ", flaky |\n" : " |\n");
}

static void
add_rows(const struct plan *p, struct strbuf *out)
{
	size_t n = 0;

	for (int r = 0; r < 3; r++) {
		for (size_t i = 0; i < p->g->n; i++) {
			const struct task *t = &p->tasks[i];

			if (!is_row(t) || rank(t) != r)
				continue;
			if (!n)
				strbuf_adds(out, "\n| task | outcome | time | cache |\n"
						 "| --- | --- | ---: | --- |\n");
			if (n++ < ROWS_SHOWN)
				add_row(out, t);
		}
	}
	if (n > ROWS_SHOWN)
		strbuf_addf(out, "\nand %zu more\n", n - ROWS_SHOWN);
}

static void
add_critical(const struct plan *p, struct strbuf *out)
{
	uint64_t ns;
	cleanup_free bool *on = summary_critical(p, &ns);
	size_t n = 0;
	char time[32];

	for (size_t i = 0; i < p->g->n; i++)
		n += on[i];
	if (n < 2 || n > ROWS_SHOWN)
		return;
	report_duration(ns, time, sizeof(time));
	strbuf_addf(out, "\nCritical path, %s: ", time);
	n = 0;
	for (size_t i = 0; i < p->g->n; i++) {
		if (!on[i])
			continue;
		strbuf_adds(out, n++ ? " → " : "");
		add_text(out, p->g->nodes[i]->id);
	}
	strbuf_addch(out, '\n');
}

void
summary_markdown(const struct summary *s, struct strbuf *out)
{
	struct tally c = tally_of(s->plan);
	size_t cached = c.current + c.restored;
	char time[32];

	report_duration(s->total_ns, time, sizeof(time));
	strbuf_addf(out, "## vx: %zu task%s, ", c.total, c.total == 1 ? "" : "s");
	if (c.failed)
		strbuf_addf(out, "%zu failed, ", c.failed);
	if (c.skipped)
		strbuf_addf(out, "%zu skipped, ", c.skipped);
	strbuf_addf(out, "%zu cached (%zu%%), %s\n\n", cached, c.total ? cached * 100 / c.total : 0,
		time);
	add_code(out, s->command);
	add_rows(s->plan, out);
	add_critical(s->plan, out);
	strbuf_adds(out, "\n");
}

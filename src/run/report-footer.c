/* SPDX-License-Identifier: MIT */
#include "run/report-private.h"
#include "run/sched.h"
#include "run/tally.h"

enum {
	FAILED_SHOWN = 10,
	TABLE_STATUS = 16,
};

static void
add_part(struct strbuf *out, size_t n, const char *word, bool *first)
{
	if (!n)
		return;
	strbuf_addf(out, "%s%zu %s", *first ? " " : " · ", n, word);
	*first = false;
}

/* --verbosity: every task, in the order of the graph. */
static void
add_table(const struct report *r, struct strbuf *out, const struct plan *p)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	strbuf_addf(&line, "%-*s  cache           time       cpu     peak  key       task",
		TABLE_STATUS, "status");
	report_add_coloured(r, out, DIM, line.buf);
	strbuf_addch(out, '\n');
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		cleanup_strbuf struct strbuf outcome = STRBUF_INIT;
		char time[32], cpu[32] = "", peak[32] = "", key[DIGEST_HEX] = "";

		if (node_is_idle(t->node))
			continue;
		report_outcome(&outcome, t);
		report_duration(t->duration_ns, time, sizeof(time));
		if (t->cpu_us)
			report_duration(t->cpu_us * 1000, cpu, sizeof(cpu));
		if (t->peak_rss_kb)
			snprintf(peak, sizeof(peak), "%llu MB",
				(unsigned long long)(t->peak_rss_kb + 512) / 1024);
		if (t->has_key)
			digest_hex(&t->key, key);
		strbuf_addf(out, "%s", outcome.buf);
		report_pad(out, outcome.buf, TABLE_STATUS);
		strbuf_addf(out, "  %-10s  %8s  %8s  %7s  %-8.8s  %s\n",
			t->status == TASK_SKIPPED ? "" : record_cache(t), time, cpu, peak, key,
			t->node->id);
	}
}

static void
add_meter(
	const struct report *r, struct strbuf *out, const char *name, uint64_t part, uint64_t whole)
{
	report_add_coloured(r, out, DIM, name);
	if (report_columns(r) >= BAR_FROM)
		report_add_bar(out, part, whole);
}

/* By name, whatever else was printed of them. */
static void
add_failed(const struct report *r, struct strbuf *out, const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];

		if (t->status != TASK_FAILED)
			continue;
		if (!n++)
			report_add_coloured(r, out, DIM, "failed  ");
		if (n <= FAILED_SHOWN)
			strbuf_addf(out, " %s", t->node->id);
	}
	if (n > FAILED_SHOWN)
		strbuf_addf(out, " and %zu more", n - FAILED_SHOWN);
	if (n)
		strbuf_addch(out, '\n');
}

/* The frame of a task that stays: what it prints from here on comes below the footer. */
static void
add_open_end(struct report *r, struct strbuf *out, const struct task *t)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;

	escape_put_back(&r->screen, out);
	report_add_outcome(&outcome, t, NULL);
	report_add_frame_close(r, out, t, outcome.buf);
}

void
report_footer(struct report *r, const struct plan *p, uint64_t wall_ns, int stopped_by)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT, head = STRBUF_INIT;
	struct tally c = tally_of(p);
	size_t cached = c.current + c.restored;
	char wall[32], max[32], avg[32], min[32];
	bool first = true;

	if (r->live) {
		add_open_end(r, &out, r->live);
		r->streamed = r->live;
	}
	r->live = NULL;
	report_add_distance(r, &out);
	report_add_replays(r, &out);
	if (r->o.verbose_table)
		add_table(r, &out, p);
	strbuf_addf(&head, "─ vx %s", PACKAGE_VERSION);
	report_add_rule(r, &head, strlen(head.buf) - 2);
	report_add_coloured(r, &out, DIM, head.buf);
	strbuf_addch(&out, '\n');
	report_add_coloured(r, &out, DIM, "projects ");
	strbuf_addf(&out, "%zu\n", r->o.nprojects);
	add_meter(r, &out, "tasks    ", c.ok + c.running, c.total + c.aborted + c.not_run);
	add_part(&out, c.ok, "ok", &first);
	add_part(&out, c.running, "running", &first);
	add_part(&out, c.failed, "failed", &first);
	add_part(&out, c.skipped, "skipped", &first);
	add_part(&out, c.aborted, "aborted", &first);
	add_part(&out, c.not_run, "not run", &first);
	add_part(&out, c.noop, "only remote, done by nobody", &first);
	strbuf_addch(&out, '\n');
	add_failed(r, &out, p);
	first = true;
	add_meter(r, &out, "cache    ", cached, c.total);
	add_part(&out, c.current, "up to date", &first);
	add_part(&out, c.restored, "restored", &first);
	add_part(&out, c.miss, "missed", &first);
	add_part(&out, c.none, "without cache", &first);
	strbuf_addch(&out, '\n');
	report_add_coloured(r, &out, DIM, "info     ");
	strbuf_addf(&out, "%u worker%s · %s%s", r->o.workers, r->o.workers == 1 ? "" : "s",
		r->o.cache_dir ? "cache " : "no cache", r->o.cache_dir ? r->o.cache_dir : "");
	if (r->o.sandbox_off)
		strbuf_adds(&out, " · sandbox OFF: nothing was confined");
	strbuf_addch(&out, '\n');
	report_duration(wall_ns, wall, sizeof(wall));
	report_add_coloured(r, &out, DIM, "time     ");
	strbuf_adds(&out, wall);
	if (c.executed) {
		report_duration(c.max, max, sizeof(max));
		report_duration(c.sum / c.executed, avg, sizeof(avg));
		report_duration(c.min, min, sizeof(min));
		strbuf_addf(&out, " · max %s avg %s min %s", max, avg, min);
	}
	strbuf_addch(&out, '\n');
	report_add_coloured(r, &out, DIM, "result   ");
	strbuf_addf(&out, "%zu task%s · %zu cached (%zu%%)", c.total, c.total == 1 ? "" : "s",
		cached, c.total ? cached * 100 / c.total : 0);
	if (c.total && cached == c.total)
		strbuf_adds(&out, " · all cached");
	first = false;
	add_part(&out, c.running, "running", &first);
	add_part(&out, c.failed, "failed", &first);
	add_part(&out, c.skipped, "skipped", &first);
	if (stopped_by)
		strbuf_addf(&out, " · stopped by a signal");
	strbuf_addf(&out, " · %s\n", wall);
	report_emit(r, &out);
	r->dirty_at = 0;
}

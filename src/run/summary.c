/* SPDX-License-Identifier: MIT */
#include "run/summary.h"
#include "cache/history.h"
#include "config/json.h"
#include "run/tally.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/mask.h"
#include "util/strvec.h"
#include "workspace/workspace.h"

static void
add_string(struct strbuf *out, const char *s)
{
	json_add_string(s, strlen(s), out);
}

/* ,"name":"value" */
static void
add_member(struct strbuf *out, const char *name, const char *value)
{
	strbuf_addf(out, ",\"%s\":", name);
	add_string(out, value);
}

static void
add_ms(struct strbuf *out, const char *name, uint64_t ns)
{
	strbuf_addf(out, ",\"%s\":%llu.%03llu", name, (unsigned long long)(ns / 1000000),
		(unsigned long long)(ns / 1000 % 1000));
}

static bool
is_executed(const struct task *t)
{
	return (t->status == TASK_SUCCESS || t->status == TASK_FAILED) && !node_is_group(t->node);
}

/* Those that are counted (tally.total). */
static bool
is_told(const struct task *t)
{
	return !node_is_idle(t->node) && t->status != TASK_ABORTED && t->status != TASK_NOT_RUN &&
	       t->status != TASK_UNNEEDED;
}

static void
add_denials(struct strbuf *out, const struct history_task *h)
{
	strbuf_addf(
		out, ",\"sandboxViolations\":%llu,\"denials\":[", (unsigned long long)h->nfindings);
	for (size_t i = 0; i < h->ndenials; i++) {
		const struct history_denial *d = &h->denials[i];

		strbuf_adds(out, i ? ",{\"operation\":" : "{\"operation\":");
		add_string(out, d->op);
		add_member(out, "path", d->path);
		add_member(out, "class", d->class);
		if (d->program)
			add_member(out, "program", d->program);
		if (d->pid)
			strbuf_addf(out, ",\"pid\":%u", d->pid);
		if (d->grant)
			add_member(out, "grant", d->grant);
		strbuf_addch(out, '}');
	}
	strbuf_addch(out, ']');
}

/* What a command has used, as far as that is known: of a hit, what it had used when it was made. */
static void
add_usage(struct strbuf *out, const char *cpu, uint64_t cpu_us, const char *rss, uint64_t rss_kb)
{
	if (cpu_us)
		strbuf_addf(out, ",\"%s\":%llu.%03llu", cpu, (unsigned long long)(cpu_us / 1000),
			(unsigned long long)(cpu_us % 1000));
	if (rss_kb)
		strbuf_addf(out, ",\"%s\":%llu", rss, (unsigned long long)rss_kb * 1024);
}

static void
add_task(struct strbuf *out, const struct task *t, const struct history_task *h)
{
	char hex[DIGEST_HEX];

	strbuf_adds(out, "{\"id\":");
	add_string(out, t->node->id);
	add_member(out, "project", t->node->project->name);
	add_member(out, "task", t->node->def->name);
	add_member(out, "status", record_status(t));
	add_member(out, "cache", record_cache(t));
	if (t->has_key) {
		digest_hex(&t->key, hex);
		add_member(out, "hash", hex);
	} else {
		strbuf_adds(out, ",\"hash\":null");
	}
	strbuf_addf(out, ",\"exitCode\":%d", t->exit_code);
	add_ms(out, "durationMs", t->duration_ns);
	strbuf_addf(out, ",\"wallclockStartNs\":\"%lld\",\"wallclockEndNs\":\"%lld\"",
		(long long)t->started_ns, (long long)t->started_ns + (long long)t->duration_ns);
	if (is_executed(t))
		add_usage(out, "cpuMs", t->cpu_us, "peakRssBytes", t->peak_rss_kb);
	else if (t->status == TASK_HIT)
		add_usage(out, "storedCpuMs", t->entry.cpu_us, "storedPeakRssBytes",
			t->entry.peak_rss_kb);
	if (is_executed(t) && t->cache == CACHE_NONE)
		strbuf_adds(out, ",\"noCache\":true");
	if (t->why)
		add_member(out, "missReason", t->why);
	if (t->node->def->persistent)
		strbuf_adds(out, ",\"persistent\":true");
	if (t->never_ready)
		strbuf_adds(out, ",\"notReady\":true");
	if (t->timed_out)
		strbuf_adds(out, ",\"timedOut\":true");
	if (t->blocked_by)
		add_member(out, "blockedBy", t->blocked_by->id);
	if (t->flaky)
		strbuf_addf(out, ",\"flaky\":{\"passes\":%llu,\"failures\":%llu,\"attempts\":%u}",
			(unsigned long long)t->passes, (unsigned long long)t->failures,
			t->attempts);
	if (h && (h->nfindings || h->ndenials))
		add_denials(out, h);
	strbuf_addch(out, '}');
}

static void
add_ids(struct strbuf *out, const struct plan *p, const char *name, enum task_status status)
{
	bool first = true;

	strbuf_addf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];

		if (node_is_idle(t->node) || t->status != status)
			continue;
		strbuf_adds(out, first ? "" : ",");
		add_string(out, t->node->id);
		first = false;
	}
	strbuf_addch(out, ']');
}

/* By task, what the history has of it. */
static const struct history_task **
find_records(const struct summary *s)
{
	const struct plan *p = s->plan;
	const struct history_task **ret = xcalloc(p->g->n + 1, sizeof(*ret));
	struct htab at;

	htab_init(&at);
	for (size_t i = 0; i < p->g->n; i++)
		htab_put(&at, p->g->nodes[i]->id, &p->tasks[i]);
	for (size_t i = 0; i < s->result->nhistory; i++) {
		const struct task *t = htab_get(&at, s->result->history[i].task);

		if (t)
			ret[t->node->index] = &s->result->history[i];
	}
	htab_release(&at);
	return ret;
}

void
summary_json(const struct summary *s, struct strbuf *out)
{
	const struct plan *p = s->plan;
	cleanup_free const struct history_task **records = find_records(s);
	struct tally c = tally_of(p);
	bool first = true;

	strbuf_addf(out, "{\"version\":%d,\"vx\":", SUMMARY_VERSION);
	add_string(out, PACKAGE_VERSION);
	add_member(out, "runId", s->run_id);
	add_member(out, "command", s->command);
	if (s->tags)
		strbuf_addf(out, ",\"tags\":%s", s->tags);
	strbuf_addf(out, ",\"ok\":%s,\"exitCode\":%d,\"startedAt\":%lld,\"endedAt\":%lld",
		s->exit_code ? "false" : "true", s->exit_code, (long long)s->started_ns / 1000000,
		(long long)s->ended_ns / 1000000);
	add_ms(out, "totalMs", s->total_ns);
	strbuf_adds(out, ",\n\"tasks\":[");
	for (size_t i = 0; i < p->g->n; i++) {
		if (!is_told(&p->tasks[i]))
			continue;
		strbuf_adds(out, first ? "\n" : ",\n");
		add_task(out, &p->tasks[i], records[i]);
		first = false;
	}
	strbuf_addch(out, ']');
	add_ids(out, p, "aborted", TASK_ABORTED);
	add_ids(out, p, "notRun", TASK_NOT_RUN);
	strbuf_addf(out,
		",\n\"summary\":{\"total\":%zu,\"success\":%zu,\"failed\":%zu,\"skipped\":%zu,"
		"\"upToDate\":%zu,\"restored\":%zu,\"missed\":%zu,\"noCache\":%zu}}\n",
		c.total, c.total - c.failed - c.skipped - c.current - c.restored, c.failed,
		c.skipped, c.current, c.restored, c.miss, c.none);
}

char *
summary_tags(const struct strvec *tags, const struct mask *mask)
{
	struct strbuf out = STRBUF_INIT;

	if (!tags->n)
		return NULL;
	for (size_t i = 0; i < tags->n; i++) {
		size_t n = strcspn(tags->v[i], "=");
		const char *value = tags->v[i] + n + 1;
		cleanup_free char *shown = NULL;
		bool again = false;

		for (size_t k = 0; k < tags->n; k++) {
			if (strncmp(tags->v[k], tags->v[i], n + 1) != 0)
				continue;
			again |= k < i;
			value = tags->v[k] + n + 1;
		}
		if (again)
			continue;
		strbuf_addch(&out, out.len ? ',' : '{');
		json_add_string(tags->v[i], n, &out);
		strbuf_addch(&out, ':');
		shown = mask_text(mask, value);
		add_string(&out, shown);
	}
	strbuf_addch(&out, '}');
	return strbuf_take(&out);
}

/* ------------------------------------------------------------------ the critical path */

bool *
summary_critical(const struct plan *p, uint64_t *ret_ns)
{
	bool *on = xcalloc(p->g->n + 1, sizeof(*on));
	cleanup_free uint64_t *until = xcalloc(p->g->n + 1, sizeof(*until));
	cleanup_free const struct node **before = xcalloc(p->g->n + 1, sizeof(*before));
	const struct node *last = NULL;

	/* Each stands behind what it needs. */
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		const struct node *n = t->node;

		for (size_t d = 0; d < n->ndeps; d++) {
			if (until[n->deps[d]->index] <= until[i])
				continue;
			until[i] = until[n->deps[d]->index];
			before[i] = n->deps[d];
		}
		if (is_executed(t) && !n->def->persistent)
			until[i] += t->duration_ns;
		if (until[i] && (!last || until[i] > until[last->index]))
			last = n;
	}
	*ret_ns = last ? until[last->index] : 0;
	for (; last; last = before[last->index])
		on[last->index] = is_executed(plan_task(p, last)) && !last->def->persistent;
	return on;
}

/* ------------------------------------------------------------------ trace */

/* What is drawn one after the other. */
struct lane {
	size_t project;
	unsigned
		nth; /* of the project: it has more where its tasks were at work at the same time */
	int64_t until_ns;
};
struct lanes {
	struct lane *v;
	size_t n, cap;
};

static int
start_cmp(const void *a, const void *b)
{
	const struct task *x = *(const struct task *const *)a, *y = *(const struct task *const *)b;

	if (x->started_ns != y->started_ns)
		return x->started_ns < y->started_ns ? -1 : 1;
	return (x->node->index > y->node->index) - (x->node->index < y->node->index);
}

/* Called in the order of their starts. `first` has by project 1 + its first lane. */
static size_t
find_lane(struct lanes *l, size_t *first, const struct task *t)
{
	size_t project = t->node->project->index;
	int64_t until = t->started_ns + (int64_t)t->duration_ns;
	unsigned nth = 1;

	if (first[project]) {
		for (size_t i = first[project] - 1; i < l->n; i++) {
			if (l->v[i].project != project)
				continue;
			if (l->v[i].until_ns <= t->started_ns) {
				l->v[i].until_ns = until;
				return i;
			}
			nth++;
		}
	}
	GROW(l->v, l->n + 1, l->cap);
	l->v[l->n] = (struct lane){project, nth, until};
	if (!first[project])
		first[project] = l->n + 1;
	return l->n++;
}

static void
add_us(struct strbuf *out, const char *name, int64_t ns)
{
	uint64_t v = ns < 0 ? 0 : (uint64_t)ns;

	strbuf_addf(out, ",\"%s\":%llu.%03llu", name, (unsigned long long)(v / 1000),
		(unsigned long long)(v % 1000));
}

static void
add_event(const struct summary *s, struct strbuf *out, const struct task *t, size_t tid,
	bool critical)
{
	char hex[DIGEST_HEX];

	strbuf_adds(out, ",\n{\"ph\":\"X\",\"pid\":1");
	strbuf_addf(out, ",\"tid\":%zu", tid);
	add_member(out, "name", tid ? t->node->def->name : t->node->id);
	add_member(out, "cat", record_status(t));
	add_us(out, "ts", t->started_ns - s->started_ns);
	add_us(out, "dur", (int64_t)t->duration_ns);
	if (critical)
		add_member(out, "cname", "terrible");
	strbuf_adds(out, ",\"args\":{\"id\":");
	add_string(out, t->node->id);
	add_member(out, "status", record_status(t));
	add_member(out, "cache", record_cache(t));
	strbuf_addf(
		out, ",\"exitCode\":%d,\"critical\":%s", t->exit_code, critical ? "true" : "false");
	if (t->has_key) {
		digest_hex(&t->key, hex);
		add_member(out, "hash", hex);
	}
	if (t->why)
		add_member(out, "missReason", t->why);
	strbuf_adds(out, "}}");
}

static void
add_thread(struct strbuf *out, size_t tid, const char *name)
{
	strbuf_addf(out,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{"
		"\"name\":",
		tid);
	add_string(out, name);
	strbuf_addf(out,
		"}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"name\":\"thread_sort_index\",\"args\":{"
		"\"sort_index\":%zu}}",
		tid, tid);
}

void
summary_trace(const struct summary *s, struct strbuf *out)
{
	const struct plan *p = s->plan;
	uint64_t path_ns;
	cleanup_free bool *critical = summary_critical(p, &path_ns);
	cleanup_free const struct task **v = xcalloc(p->g->n + 1, sizeof(*v));
	cleanup_free size_t *first = xcalloc(p->w->nprojects + 1, sizeof(*first));
	struct lanes lanes = {0};
	size_t n = 0;

	strbuf_adds(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"runId\":");
	add_string(out, s->run_id);
	if (s->tags)
		strbuf_addf(out, ",\"tags\":%s", s->tags);
	strbuf_adds(out, "},\n\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
			 "\"args\":{\"name\":");
	add_string(out, s->command);
	strbuf_adds(out, "}}");
	for (size_t i = 0; i < p->g->n; i++)
		if (is_told(&p->tasks[i]) && p->tasks[i].status != TASK_SKIPPED)
			v[n++] = &p->tasks[i];
	if (n)
		qsort(v, n, sizeof(*v), start_cmp);
	if (path_ns)
		add_thread(out, 0, "critical path");
	for (size_t i = 0; i < n; i++) {
		bool on = critical[v[i]->node->index];

		add_event(s, out, v[i], find_lane(&lanes, first, v[i]) + 1, on);
		if (on)
			add_event(s, out, v[i], 0, true);
	}
	for (size_t i = 0; i < lanes.n; i++) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		strbuf_adds(&name, p->w->projects[lanes.v[i].project]->name);
		if (lanes.v[i].nth > 1)
			strbuf_addf(&name, " (%u)", lanes.v[i].nth);
		add_thread(out, i + 1, name.buf);
	}
	strbuf_adds(out, "]}\n");
	free(lanes.v);
}

/* SPDX-License-Identifier: MIT */
/*
 * Persistent tasks (spec/execution.md §7): whether they are started at all, when they are ready, and what
 * becomes of them when everything else is over.
 */
#include "cache/stage.h"
#include "exec/scratch.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/regex.h"
#include <signal.h>

enum {
	DENIED_SHOWN = 20 /* undeclared accesses of one task, while it runs */
};

/* The start. */

static void
defer(struct sched *s, struct task *t)
{
	GROW(s->undecided, s->nundecided + 1, s->undecided_cap);
	s->undecided[s->nundecided++] = t;
}

void
serve_consider(struct sched *s, struct task *t)
{
	defer(s, t);
	s->undecided_new = true;
}

static void
leave_out(struct sched *s, struct task *t)
{
	t->status = TASK_UNNEEDED;
	t->started_ns = (int64_t)clock_wall_ns();
	sched_report_end(s, t, NULL, NULL, NULL, NULL);
	sched_end_task(s, t);
}

/*
 * One that nothing needs now may yet be needed: a hit whose entry turns out to be lost runs after all. So
 * that is final only when all hits are in place.
 */
void
serve_decide(struct sched *s)
{
	while (s->nundecided && !s->stopped_by && (s->undecided_new || !sched_restores_left(s))) {
		cleanup_free bool *needed =
			plan_find_needed(s->plan, s->o->cont == CONTINUE_ALWAYS, true);
		cleanup_free struct task **v = s->undecided;
		size_t n = s->nundecided;

		/* An end brings others here, for the next round. */
		s->undecided = NULL;
		s->nundecided = s->undecided_cap = 0;
		s->undecided_new = false;
		for (size_t i = 0; i < n; i++) {
			if (needed[v[i]->node->index])
				sched_push(s, v[i]);
			else if (sched_restores_left(s))
				defer(s, v[i]);
			else
				leave_out(s, v[i]);
		}
	}
}

static void
notice_fired(struct loop_timer *timer)
{
	const struct job *j = container_of(timer, struct job, notice);
	const struct task *t = j->task;
	char limit[32];

	report_duration(t->timeout_ms * 1000000, limit, sizeof(limit));
	report_notice(j->s->o->report,
		"%s is not ready yet: no line matches readyWhen %s; %s%s%s%s", t->node->id,
		t->node->def->ready_when,
		t->timeout_ms ? "it is ended after " : "nothing limits how long it may take",
		t->timeout_ms ? limit : "", t->timeout_ms ? " by " : "",
		t->timeout_ms ? t->timeout_by : "");
}

int
serve_prepare(struct job *j, struct err *e)
{
	const char *when = j->task->node->def->ready_when;

	j->notice.fire = notice_fired;
	if (!when)
		return 0;
	j->ready_when = regex_new(when, e);
	return j->ready_when ? 0 : -1;
}

void
serve_started(struct job *j)
{
	struct sched *s = j->s;

	s->npersistent++;
	j->begun_ns = clock_monotonic_ns();
	if (!j->ready_when)
		return;
	j->notice.at_ns = j->begun_ns + s->o->ready_notice_ms * 1000000;
	loop_add_timer(s->o->loop, &j->notice);
}

void
serve_release(struct job *j)
{
	loop_remove_timer(j->s->o->loop, &j->notice);
	regex_free(j->ready_when);
}

void
serve_ready(void *job)
{
	struct job *j = job;
	struct sched *s = j->s;
	struct task *t = j->task;

	loop_remove_timer(s->o->loop, &j->notice);
	t->is_ready = true;
	t->status = TASK_SUCCESS;
	t->duration_ns = clock_monotonic_ns() - j->begun_ns;
	s->nserving++;
	/* What it wrote until now. */
	s->files_stale = true;
	report_ready(s->o->report, t);
	sched_tell_dependants(s, t);
}

void
serve_denied(void *job, const struct exec_denial *d)
{
	struct job *j = job;

	j->ndenied++;
	j->s->has_bad_server = true;
	if (d && j->ndenied <= DENIED_SHOWN) {
		execute_tell_denied(j, d);
		return;
	}
	if (!j->told_more)
		report_notice(j->s->o->report, "%s: more is denied to it, and told when it ends",
			j->task->node->id);
	j->told_more = true;
}

/* The end. */

void
serve_ended(struct job *j, const struct exec_result *r)
{
	struct sched *s = j->s;
	struct task *t = j->task;
	bool by_itself = r->outcome == EXEC_EXITED && t->status != TASK_ABORTED;

	s->nserving -= t->is_ready;
	/* With whatever code: it was vx that asked. */
	if (j->asked && r->outcome == EXEC_STOPPED && t->status == TASK_FAILED) {
		t->status = r->nfindings    ? TASK_FAILED
			    : t->is_ready   ? TASK_SUCCESS
			    : t->foreground ? TASK_ABORTED /* it was asked for, and never there */
					    : TASK_UNNEEDED;
		t->exit_code = r->nfindings ? 1 : 0;
		t->signal = 0;
	}
	t->never_ready = t->status == TASK_FAILED && !t->is_ready && !j->asked &&
			 !(by_itself && !r->exit_code);
	s->has_bad_server |= t->status == TASK_FAILED;
	if (s->in_foreground && t->status == TASK_FAILED)
		s->result->ok = false;
	if (by_itself) {
		s->foreground_ended |= t->foreground;
		if (t->is_ready && (r->exit_code || s->in_foreground))
			report_notice(
				s->o->report, "%s exited with code %d", t->node->id, r->exit_code);
	}
	if (t->is_ready && r->nfindings)
		report_notice(s->o->report, "%s: %llu sandbox violation%s", t->node->id,
			(unsigned long long)r->nfindings, r->nfindings == 1 ? "" : "s");
}

static bool
has_failed(const struct sched *s)
{
	for (size_t i = 0; i < s->plan->g->n; i++) {
		const struct task *t = &s->plan->tasks[i];

		if (t->status == TASK_FAILED || t->status == TASK_SKIPPED)
			return true;
	}
	return false;
}

/* Whether those of the foreground stay. */
static bool
keeps(const struct sched *s)
{
	if (s->foreground_ended)
		return false;
	return s->in_foreground || s->o->cont == CONTINUE_ALWAYS || !has_failed(s);
}

static struct job *
job_of(const struct sched *s, const struct task *t)
{
	for (size_t i = 0; i < s->njobs; i++)
		if (s->jobs[i]->task == t)
			return s->jobs[i];
	return NULL;
}

const struct node *
serve_bad_for(const struct sched *s, const struct task *t)
{
	for (size_t i = 0; s->has_bad_server && i < s->plan->g->n; i++) {
		const struct task *up = &s->plan->tasks[i];
		const struct job *j = up->state == TASK_RUNNING ? job_of(s, up) : NULL;

		if (up->node->def && up->node->def->persistent &&
			(up->status == TASK_FAILED || (j && j->ndenied)) &&
			graph_needs(t->node, up->node))
			return up->node;
	}
	return NULL;
}

bool
serve_is_all(const struct sched *s)
{
	cleanup_free bool *needed = NULL;

	if (s->njobs == s->nserving || s->njobs != s->npersistent)
		return s->njobs == s->nserving;
	needed = plan_find_needed(s->plan, s->o->cont == CONTINUE_ALWAYS, keeps(s));
	for (size_t i = 0; i < s->njobs; i++) {
		const struct task *t = s->jobs[i]->task;

		if (!t->is_ready && !s->jobs[i]->asked && !s->halted && needed[t->node->index])
			return false;
	}
	return true;
}

/* By task: whether a persistent one that is to end, and has not, depends on it, if only by others. */
static bool *
find_held(const struct sched *s, bool keep)
{
	const struct plan *p = s->plan;
	bool *held = xcalloc(p->g->n, sizeof(*held));

	for (size_t i = p->g->n; i-- > 0;) {
		const struct node *n = p->tasks[i].node;
		bool holds = held[i] || (p->tasks[i].state == TASK_RUNNING &&
						!(keep && p->tasks[i].foreground));

		for (size_t d = 0; holds && d < n->ndeps; d++)
			held[n->deps[d]->index] = true;
	}
	return held;
}

/* What a run has written is complete, and its lock is given up, before its servers are waited for. */
static void
enter_foreground(struct sched *s)
{
	struct report_kept *kept = xcalloc(s->njobs, sizeof(*kept));
	size_t n = 0;

	place_end(s);
	sched_close_books(s);
	for (size_t i = 0; i < s->plan->g->n; i++) {
		const struct task *t = &s->plan->tasks[i];
		const struct job *j = t->state == TASK_RUNNING ? job_of(s, t) : NULL;

		if (!j)
			continue;
		record_task(s, t, NULL);
		kept[n++] = (struct report_kept){t, &j->output};
	}
	stage_free(s->stage);
	s->stage = NULL;
	/* The area stays: a sandboxed server may have left something that has to be kept. */
	if (s->area)
		scratch_area_empty(s->area);
	s->in_foreground = true;
	if (s->o->in_foreground)
		s->o->in_foreground(s->o->ctx, s->result);
	report_keep(s->o->report, kept, n);
	free(kept);
}

bool
serve_close(struct sched *s)
{
	cleanup_free bool *held = NULL;
	bool keep, stays = true;
	size_t n = s->njobs;
	struct job **jobs;

	/* A signal has asked them already. */
	if (!n || s->stopped_by)
		return !n;
	keep = keeps(s);
	if (keep && s->in_foreground)
		return false;
	held = find_held(s, keep);
	/* done() may come from within and remove the job: walk a copy. */
	jobs = xcalloc(n, sizeof(*jobs));
	memcpy(jobs, s->jobs, n * sizeof(*jobs));
	for (size_t i = 0; i < n; i++) {
		struct job *j = jobs[i];

		if (keep && j->task->foreground)
			continue;
		stays = false;
		if (j->asked || held[j->task->node->index])
			continue;
		j->asked = true;
		j->executor->cancel(j->executor, j->handle, SIGTERM);
	}
	free(jobs);
	if (keep && stays)
		enter_foreground(s);
	return !s->njobs;
}

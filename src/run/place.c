/* SPDX-License-Identifier: MIT */
/*
 * Who executes which task (spec/executors.md §1): each executor of the settings is asked in its turn, once in
 * a run and before anything runs; what none takes vx executes itself. What has to stay is not offered: a
 * sandboxed task is confined by nobody else, and a persistent one is served by nobody else.
 */
#include "exec/external.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "workspace/workspace.h"

static bool
is_held(const struct task *t)
{
	const struct taskdef *def = t->node->def;

	return t->sandboxed || def->sandbox || def->persistent;
}

/* By task: whether its executor is to be on this machine, where what it needs runs or is confined. */
static bool *
find_pinned(const struct plan *p)
{
	bool *pinned = xcalloc(p->g->n, sizeof(*pinned)), *below = xcalloc(p->g->n, sizeof(*below));

	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		const struct node *n = t->node;

		for (size_t d = 0; d < n->ndeps; d++)
			below[i] |= below[n->deps[d]->index];
		pinned[i] = below[i] || is_held(t) || n->def->remote == REMOTE_NEVER || t->nprobes;
		below[i] |= is_held(t);
	}
	free(below);
	return pinned;
}

bool
place_is_done(const struct sched *s)
{
	return !s->nplaced_left || s->stopped_by || err_is_set(&s->place_failed);
}

/* Until all that is asked is answered. */
static int
wait_for_answers(struct sched *s, struct err *e)
{
	int r;

	s->placing = true;
	r = place_is_done(s) ? 0 : loop_run(s->o->loop, e);
	s->placing = false;
	if (!r && err_is_set(&s->place_failed)) {
		*e = s->place_failed;
		r = -1;
	}
	return r;
}

static void
on_news(void *ctx, struct executor *ex, enum external_news what, const char *text)
{
	struct sched *s = ctx;

	if (what == EXTERNAL_DESCRIBED) {
		s->nplaced_left--;
		return;
	}
	s->must_sweep = true;
	if (what == EXTERNAL_BROKEN && s->placing) {
		err_set(&s->place_failed, ERR_IO, 0, "%s", text);
		return;
	}
	if (what == EXTERNAL_BROKEN && s->o->report) {
		s->has_bad_executor = true;
		report_notice(s->o->report, "%s", text);
	}
	if (what == EXTERNAL_KILLED && s->o->report && !s->stopped_by)
		report_notice(s->o->report,
			"executor %s has not ended %llu ms after its standard input, and was "
			"killed",
			ex->name, (unsigned long long)s->o->grace_ms);
}

static int
check_names(const struct sched *s, struct err *e)
{
	for (size_t i = 0; i < s->nplaces; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(s->places[i].ex->name, s->places[k].ex->name))
				return err_set(e, ERR_CONFIG, 0,
					"two executors say that their name is '%s': %s and %s",
					s->places[i].ex->name, s->plan->w->settings.executors[k],
					s->plan->w->settings.executors[i]);
	return 0;
}

static int
start_executors(struct sched *s, struct err *e)
{
	const struct settings *set = &s->plan->w->settings;
	const struct sched_options *o = s->o;
	size_t n = o->nfake_others ? o->nfake_others : set->nexecutors;

	s->places = xcalloc(n, sizeof(*s->places));
	for (size_t i = 0; i < n; i++) {
		struct executor *ex = o->nfake_others ? o->fake_others[i] : NULL;

		if (!ex)
			ex = external_new(o->loop,
				&(struct external_options){
					.command = set->executors[i],
					.rootfd = s->plan->w->rootfd,
					.root_path = s->plan->w->path,
					.env = environ,
					.mask = s->plan->mask,
					.answer_ms = o->answer_ms,
					.grace_ms = o->grace_ms,
					.news = on_news,
					.ctx = s,
				},
				e);
		if (!ex)
			return -1;
		s->nplaced_left += !o->nfake_others;
		s->places[s->nplaces++].ex = ex;
	}
	return wait_for_answers(s, e) || check_names(s, e) ? -1 : 0;
}

/* What is asked about one task. */
struct question {
	struct sched *s;
	struct task *task;
	struct executor *ex;
};

static void
answered(void *ctx, bool takes)
{
	struct question *q = ctx;

	q->s->nplaced_left--;
	if (takes)
		q->task->placed = q->ex;
}

static int
ask_about(struct question *q, bool pinned, struct err *e)
{
	const struct node *n = q->task->node;
	const struct exec_view v = {
		.task_id = n->id,
		.project_name = n->project->name,
		.project_dir = *n->project->dir ? n->project->dir : ".",
		.command = n->def->command,
		.pinned_local = pinned,
		.cacheable = n->def->cache != NULL,
	};

	if (q->ex->ask(q->ex, &v, answered, q, e))
		return -1;
	q->s->nplaced_left++;
	return 0;
}

/* All that is left is asked at once. */
static int
ask_one(struct sched *s, struct executor *ex, const bool *open, const bool *pinned, struct err *e)
{
	const struct plan *p = s->plan;

	for (size_t i = 0; i < p->g->n; i++) {
		struct task *t = &p->tasks[i];
		bool only = t->node->def->remote == REMOTE_ONLY;

		if (!open[i] || t->placed || (ex->remote ? pinned[i] : only))
			continue;
		s->questions[i] = (struct question){s, t, ex};
		if (ask_about(&s->questions[i], pinned[i], e))
			return -1;
	}
	return wait_for_answers(s, e);
}

static int
ask_all(struct sched *s, const bool *open, struct err *e)
{
	cleanup_free bool *pinned = find_pinned(s->plan);
	int r = 0;

	s->questions = xcalloc(s->plan->g->n, sizeof(*s->questions));
	for (size_t i = 0; i < s->nplaces && !r && !s->stopped_by; i++)
		r = ask_one(s, s->places[i].ex, open, pinned, e);
	return r;
}

/* What was ready before its place was known. */
static void
queue_again(struct sched *s)
{
	struct ready before = s->ready;
	struct node *n;

	s->ready = (struct ready){0};
	while ((n = ready_pop(&before))) {
		plan_task(s->plan, n)->state = TASK_WAITING;
		sched_became_ready(s, plan_task(s->plan, n));
	}
	ready_release(&before);
}

int
place_tasks(struct sched *s, struct err *e)
{
	const struct plan *p = s->plan;
	cleanup_free bool *open = xcalloc(p->g->n, sizeof(*open));
	bool some = false, moves = false, has = s->o->nfake_others || p->w->settings.nexecutors;

	if (s->stopped_by)
		return 0;
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];

		open[i] = t->state != TASK_DONE && !node_is_idle(t->node) && !is_held(t);
		some |= open[i];
	}
	if (has && some && (start_executors(s, e) || ask_all(s, open, e)))
		return -1;
	s->is_placed = true;
	for (size_t i = 0; i < p->g->n; i++)
		if (p->tasks[i].placed)
			p->tasks[i].placed_on = xstrdup(p->tasks[i].placed->name);
	for (size_t i = 0; i < p->g->n && !moves; i++)
		moves = p->tasks[i].placed || task_is_noop(&p->tasks[i]);
	if (moves)
		queue_again(s);
	return 0;
}

struct place *
place_of(const struct sched *s, const struct task *t)
{
	for (size_t i = 0; t->placed && i < s->nplaces; i++)
		if (s->places[i].ex == t->placed)
			return t->placed->capacity ? &s->places[i] : NULL;
	return NULL;
}

void
place_end(struct sched *s)
{
	for (size_t i = 0; i < s->nplaces; i++) {
		s->places[i].ex->free(s->places[i].ex);
		ready_release(&s->places[i].ready);
	}
	free(s->questions);
	free(s->places);
	s->questions = NULL;
	s->places = NULL;
	s->nplaces = 0;
}

/* SPDX-License-Identifier: MIT */
#include "cache/stage.h"
#include "exec/scratch.h"
#include "exec/seconds.h"
#include "graph/order.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/proc.h"
#include "util/stop.h"
#include "util/timing.h"
#include "workspace/workspace.h"

/* How long the kill of what is left after a stopped run may take. */
enum {
	LAST_KILL_MS = 5000
};

void
sched_index_failed(struct sched *s, const struct err *why)
{
	if (!s->told_index)
		report_notice(s->o->report, "%s", why->text);
	s->told_index = true;
}

void
sched_save_failed(struct sched *s, const struct task *t, const struct err *why)
{
	if (!s->nunsaved++) {
		s->unsaved = t;
		s->unsaved_why = *why;
	}
}

/* Not in frames: most that it befalls may have none, as nobody asked for them. */
static void
tell_unsaved(const struct sched *s)
{
	size_t n = s->nunsaved;

	if (n == 1)
		report_notice(s->o->report, "%s not saved: %s", s->unsaved->node->id,
			s->unsaved_why.text);
	else if (n)
		report_notice(s->o->report, "%s and %zu other%s not saved: %s",
			s->unsaved->node->id, n - 1, n == 2 ? "" : "s", s->unsaved_why.text);
}

bool
sched_wants_cache(const struct sched *s, const struct task *t)
{
	/* The results of one that is never executed here are never here. */
	return s->o->index && t->node->def->cache && t->node->def->remote != REMOTE_ONLY;
}

bool
sched_will_save(const struct sched *s, const struct task *t)
{
	return sched_wants_cache(s, t) && s->o->write_cache && !t->node->rests_on;
}

bool
sched_keys_hold(struct sched *s)
{
	struct plan *p = s->plan;
	struct err e = ERR_INIT;
	int r = fingerprint_holds(&p->fingerprint, p->fh, p->w->rootfd, s->nmoving, &e);

	if (r == 1)
		return true;
	if (!s->told_moved)
		report_notice(s->o->report,
			"%s%s: every key rests on it, so nothing more is looked up or stored "
			"in this run",
			r ? e.text : p->fingerprint.written, r ? "" : " changed");
	s->told_moved = true;
	return false;
}

const char **
sched_nested_dirs(const struct project *p)
{
	const char **dirs = xcalloc(p->nnested, sizeof(*dirs));

	for (size_t i = 0; i < p->nnested; i++)
		dirs[i] = p->nested[i]->dir;
	return dirs;
}

void
sched_result_release(struct sched_result *r)
{
	for (size_t i = 0; i < r->nhistory; i++) {
		const struct history_task *t = &r->history[i];

		for (size_t d = 0; d < t->ndenials; d++) {
			free((void *)(uintptr_t)t->denials[d].path);
			free((void *)(uintptr_t)t->denials[d].program);
			free((void *)(uintptr_t)t->denials[d].grant);
		}
		free((void *)(uintptr_t)t->denials);
	}
	free(r->history);
	*r = (struct sched_result){0};
}
void
sched_report_end(struct sched *s, struct task *t, const struct job *j,
	const struct captured *output, const char *error, const struct exec_result *r)
{
	bool executed = j && r && r->outcome != EXEC_NOT_STARTED;
	const struct mask *mask = s->plan->mask;
	cleanup_free char *shown = error ? mask_text(mask, error) : NULL;
	cleanup_strvec struct strvec notes = STRVEC_INIT;

	for (size_t i = 0; j && i < j->notes.n; i++)
		strvec_push_take(&notes, mask_text(mask, j->notes.v[i]));
	report_ended(s->o->report, &(struct report_end){
					   .task = t,
					   .command = executed ? j->shown : NULL,
					   .output = output,
					   .error = shown,
					   .result = r,
					   .notes = (const char *const *)notes.v,
					   .nnotes = notes.n,
				   });
	if (!s->in_foreground) /* it is recorded by then */
		record_task(s, t, r);
}

/* The run is being stopped, or will be as soon as the loop has taken the signal. */
bool
sched_is_stopping(const struct sched *s)
{
	return s->stopped_by || stop_is_asked();
}

void
sched_fail_task(struct sched *s, struct task *t, struct job *j, struct err *e)
{
	bool stopping = sched_is_stopping(s);

	if (!t->started_ns)
		t->started_ns = (int64_t)clock_wall_ns();
	t->exit_code = 1;
	/* What went wrong is that it was to stop. */
	t->status = stopping ? TASK_ABORTED : TASK_FAILED;
	sched_report_end(s, t, j, NULL, stopping ? NULL : e->text, NULL);
	err_clear(e);
	sched_end_task(s, t);
}

/* The failed task, at the root of it all, that keeps t from running. */
static const struct node *
blocker(const struct sched *s, const struct task *t)
{
	for (size_t i = 0; i < t->node->ndeps; i++) {
		const struct task *up = plan_task(s->plan, t->node->deps[i]);

		if (up->blocked_by)
			return up->blocked_by;
		if (up->status == TASK_FAILED)
			return up->node;
	}
	return NULL;
}

static void
skip(struct sched *s, struct task *t, const struct node *because)
{
	t->status = TASK_SKIPPED;
	t->blocked_by = because;
	t->exit_code = 1;
	t->started_ns = (int64_t)clock_wall_ns();
	if (!node_is_idle(t->node))
		sched_report_end(s, t, NULL, NULL, NULL, NULL);
	sched_end_task(s, t);
}

/* Whether the task has to wait for probes of its own; it becomes ready again when they have ended. */
static bool
waits_for_probes(struct sched *s, struct task *t)
{
	if (!t->own_probes || t->probing)
		return t->probes_left > 0;
	t->probing = true;
	t->probes_left = t->nprobes;
	for (size_t i = 0; i < t->nprobes; i++)
		prober_add(&s->prober, t->probes[i]);
	return true;
}

static void
probe_ended(void *ctx, struct probe *p)
{
	if (p->own && !--p->own->probes_left)
		sched_became_ready(ctx, p->own);
}

/* What needs it is not to be kept: nobody has made what it is to read. */
static void
do_nothing(struct sched *s, struct task *t)
{
	t->status = TASK_NOOP;
	t->tainted = true;
	t->started_ns = (int64_t)clock_wall_ns();
	sched_report_end(s, t, NULL, NULL, NULL, NULL);
	sched_end_task(s, t);
}

void
sched_became_ready(struct sched *s, struct task *t)
{
	const struct node *because = blocker(s, t);
	struct err e = ERR_INIT;

	if (t->state != TASK_WAITING || t->found)
		return; /* it was restored meanwhile, or is about to be */
	if (s->stopped_by || stop_is_asked_by_now())
		return;
	if (because && s->o->cont != CONTINUE_ALWAYS) {
		skip(s, t, because);
		return;
	}
	if (because) {
		t->tainted = true;
		t->unsaved = because;
	}
	if (node_is_group(t->node)) {
		t->status = TASK_SUCCESS;
		t->blocked_by = because;
		if (!t->has_key && plan_key(s->plan, t, &e)) {
			sched_fail_task(s, t, NULL, &e);
			return;
		}
		sched_end_task(s, t);
		return;
	}
	if (!t->has_key) {
		if (waits_for_probes(s, t))
			return;
		if (s->files_stale) {
			if (plan_list_files(s->plan, &e)) {
				sched_fail_task(s, t, NULL, &e);
				return;
			}
			s->files_stale = false;
		}
		if (plan_key(s->plan, t, &e)) {
			sched_fail_task(s, t, NULL, &e);
			return;
		}
	}
	if (t->node->left_out) {
		t->status = TASK_UNNEEDED;
		t->blocked_by = because;
		sched_end_task(s, t);
		return;
	}
	if (s->is_placed && task_is_noop(t)) {
		do_nothing(s, t);
		return;
	}
	if (!t->looked_up && hit_try(s, t))
		return;
	if (t->node->def->persistent)
		serve_consider(s, t);
	else
		sched_push(s, t);
}

void
sched_push(struct sched *s, struct task *t)
{
	struct place *place = place_of(s, t);

	t->state = TASK_READY;
	/* A run in which all is up to date needs none. */
	if (!s->has_priorities)
		order_priorities(s->plan->g);
	s->has_priorities = true;
	ready_push(place ? &place->ready : &s->ready, t->node);
}

void
sched_end_task(struct sched *s, struct task *t)
{
	t->state = TASK_DONE;
	if (t->status == TASK_FAILED && s->o->cont == CONTINUE_NEVER)
		s->halted = true;
	if (!t->is_ready)
		sched_tell_dependants(s, t);
}

/* What keeps those from being saved that need a tainted task: itself, unless it is never saved. */
static const struct node *
why_unsaved(const struct sched *s, const struct task *t)
{
	return t->unsaved && !(sched_will_save(s, t) && t->cache == CACHE_MISS) ? t->unsaved
										: t->node;
}

/*
 * Iterative: a chain of 50,000 groups or skipped tasks must not be 50,000 calls deep, so ends that come
 * from within only queue.
 */
void
sched_tell_dependants(struct sched *s, struct task *t)
{
	GROW(s->ended, s->nended + 1, s->ended_cap);
	s->ended[s->nended++] = t;
	if (s->telling)
		return;
	s->telling = true;
	for (size_t at = 0; at < s->nended; at++) {
		const struct node *node = s->ended[at]->node;
		bool tainted = s->ended[at]->tainted;

		for (size_t i = 0; i < node->ndependents; i++) {
			struct task *down = plan_task(s->plan, node->dependents[i]);

			if (tainted && !down->tainted) {
				down->tainted = true;
				down->unsaved = why_unsaved(s, s->ended[at]);
			}
			if (!--down->deps_left)
				sched_became_ready(s, down);
		}
	}
	s->nended = 0;
	s->telling = false;
}

static bool
may_start(const struct sched *s)
{
	return !s->stopped_by && !s->halted;
}

bool
sched_restores_left(const struct sched *s)
{
	return s->restores.n && !s->stopped_by;
}

/* One at a time means one, be it a command or a restore; restores come first. */
static bool
shares_slot(const struct sched *s)
{
	return s->o->concurrency == 1;
}

/* Commands that take a local place. */
static size_t
nlocal(const struct sched *s)
{
	return s->njobs - s->npersistent - s->nelsewhere + s->prober.nrunning;
}

static void
dispatch_elsewhere(struct sched *s)
{
	for (size_t i = 0; i < s->nplaces; i++) {
		struct place *p = &s->places[i];

		while (p->ready.n && may_start(s) && !stop_is_asked() &&
			p->nrunning < p->ex->capacity)
			execute_task(s, plan_task(s->plan, ready_pop(&p->ready)));
	}
}

/* Who reads what is printed has not kept up. */
static bool
is_behind(const struct sched *s)
{
	return s->o->report && report_is_behind(s->o->report);
}

static void
dispatch(struct sched *s)
{
	if (!is_behind(s))
		dispatch_elsewhere(s);
	while (may_start(s) && !stop_is_asked() && !is_behind(s) && nlocal(s) < s->o->concurrency) {
		struct node *n;

		if (shares_slot(s) && sched_restores_left(s))
			break;
		/* a probe holds up all that waits for its task */
		if (prober_start(&s->prober))
			continue;
		n = ready_pop(&s->ready);
		if (!n)
			break;
		execute_task(s, plan_task(s->plan, n));
	}
}

static void
arm_redraw(struct sched *s)
{
	uint64_t at = s->o->report ? report_redraw_at(s->o->report) : 0;

	if (!at || (s->redraw_armed && s->redraw_timer.at_ns <= at))
		return;
	if (s->redraw_armed)
		loop_remove_timer(s->o->loop, &s->redraw_timer);
	s->redraw_timer.at_ns = at;
	s->redraw_armed = true;
	loop_add_timer(s->o->loop, &s->redraw_timer);
}

static void
redraw(struct loop_timer *timer)
{
	struct sched *s = container_of(timer, struct sched, redraw_timer);

	s->redraw_armed = false;
	report_redraw(s->o->report);
}

/* One restore per turn of the loop, so that output and exits are not kept waiting. */
static void
restore_one(struct loop_timer *timer)
{
	struct sched *s = container_of(timer, struct sched, restore_timer);

	s->restore_armed = false;
	if (sched_restores_left(s))
		hit_serve(s, plan_task(s->plan, ready_pop(&s->restores)), false);
}

/* Nothing runs that somebody waits for, and nothing will be started. */
static bool
graph_is_over(const struct sched *s)
{
	bool more = s->ready.n || s->nundecided || prober_has_waiting(&s->prober);

	for (size_t i = 0; i < s->nplaces; i++)
		more |= s->places[i].ready.n > 0;

	return !s->prober.nrunning && !sched_restores_left(s) && !(more && may_start(s)) &&
	       serve_is_all(s);
}

static void
on_idle(void *ctx)
{
	struct sched *s = ctx;

	s->has_orphans = s->has_orphans && !proc_reap_orphans();
	if (s->placing) {
		if (place_is_done(s))
			loop_stop(s->o->loop);
		return;
	}
	serve_decide(s);
	dispatch(s);
	if (sched_restores_left(s) && !s->restore_armed && !(shares_slot(s) && nlocal(s))) {
		s->restore_timer.at_ns = clock_monotonic_ns();
		s->restore_armed = true;
		loop_add_timer(s->o->loop, &s->restore_timer);
	}
	arm_redraw(s);
	/* A signal that waits is what the loop takes next: its number is the exit code. */
	if (graph_is_over(s) && (s->stopped_by || !stop_is_asked()) && serve_close(s))
		loop_stop(s->o->loop);
}

/* ------------------------------------------------------------------ stops */

static void
cancel_all(struct sched *s, int sig)
{
	/* done() may come from within and remove the job: walk a copy. */
	size_t n = s->njobs;
	struct job **jobs = xcalloc(n, sizeof(*jobs));

	if (n)
		memcpy(jobs, s->jobs, n * sizeof(*jobs));
	for (size_t i = 0; i < n; i++)
		jobs[i]->executor->cancel(jobs[i]->executor, jobs[i]->handle, sig);
	free(jobs);
	prober_cancel(&s->prober, sig);
}

static void
forward_all(struct sched *s, int sig)
{
	for (size_t i = 0; i < s->njobs; i++)
		s->jobs[i]->executor->forward(s->jobs[i]->executor, s->jobs[i]->handle, sig);
	prober_forward(&s->prober, sig);
}

static void
stop(struct sched *s, int sig)
{
	if (s->stopped_by) {
		if (s->o->report)
			report_hurry(s->o->report, 0);
		cancel_all(s, SIGKILL);
		return;
	}
	s->stopped_by = sig;
	/* As long as the tasks have, and once more: nobody reads, and the workspace is locked. */
	if (s->o->report)
		report_hurry(s->o->report, 2 * s->o->grace_ms);
	if (s->njobs)
		report_notice(s->o->report, "stopping: %zu task%s asked to end; once more kills",
			s->njobs, s->njobs == 1 ? "" : "s");
	cancel_all(s, sig == SIGINT ? SIGINT : SIGTERM);
}

static void
on_signal(void *ctx, int sig)
{
	struct sched *s = ctx;

	switch (sig) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		stop(s, sig);
		break;
	case SIGTSTP:
		/* Ctrl-Z stops the terminal's own group only; the tasks have groups of their own.
		 */
		forward_all(s, SIGSTOP);
		raise(SIGSTOP);
		break;
	case SIGCONT:
		/* Whatever has stopped us. */
		if (s->o->report)
			report_let_go(s->o->report);
		forward_all(s, SIGCONT);
		break;
	case SIGCHLD:
		s->has_orphans = true;
		break;
	default:
		break;
	}
}

static void
guard_died(struct loop_fd *w, unsigned events)
{
	struct sched *s = container_of(w, struct sched, guard);

	(void)events;
	loop_remove_fd(s->o->loop, w);
	s->stopped_by = s->stopped_by ? s->stopped_by : SIGTERM;
	cancel_all(s, SIGKILL);
}

/* ------------------------------------------------------------------ a run */

/* Outputs are looked at while keys are made. Where few of the workspace's tasks are wanted that would
 * be more work than is saved. */
static void
look_ahead(struct sched *s)
{
	const struct plan *p = s->plan;
	struct err e = ERR_INIT;
	size_t all = 0;

	for (size_t i = 0; i < p->w->nprojects; i++)
		all += p->w->projects[i]->def.ntasks;
	/* Of a project that nobody has asked for as many as the others have. */
	if (p->w->nundefined < p->w->nprojects)
		all = all * p->w->nprojects / (p->w->nprojects - p->w->nundefined);
	if (!s->o->index || !s->o->read_cache || p->g->n < all / 2)
		return;
	if (index_look_ahead(s->o->index, p->w->rootfd, &e))
		log_debug("cache", "not looked ahead: %s", e.text);
}

/*
 * Keys and look-ups for all that can be known before anything runs (spec/cache.md §3). What is wrong
 * with a config ends the run here, before anything was done: an input that git ignores, say.
 */
static int
classify(struct sched *s, struct err *ret)
{
	struct plan *p = s->plan;

	look_ahead(s);
	/* Nothing runs yet, so a file that several tasks read need be looked at only once. */
	filehash_trust(p->fh, true);
	for (size_t i = 0; i < p->g->n; i++) {
		struct task *t = &p->tasks[i];
		struct err e = ERR_INIT;

		if (stop_is_asked_by_now())
			break;
		if (t->late || t->state != TASK_WAITING)
			continue;
		if (!t->has_key && plan_key(p, t, &e)) {
			if (e.kind == ERR_CONFIG) {
				*ret = e;
				return -1;
			}
			/* What needs it may run, but not before what this one needs: it fails in its turn. */
			if (s->o->cont == CONTINUE_ALWAYS && t->deps_left) {
				err_clear(&e);
				continue;
			}
			sched_fail_task(s, t, NULL, &e);
		}
	}
	for (size_t i = 0; i < p->g->n; i++) {
		struct task *t = &p->tasks[i];

		if (stop_is_asked_by_now())
			break;
		/* The end of another task may have brought it this far already. */
		if (t->has_key && t->state == TASK_WAITING && !t->found && !node_is_idle(t->node) &&
			!own_is_additive(t))
			hit_try(s, t);
	}
	filehash_trust(p->fh, false);
	if (s->o->index)
		index_forget_looks(s->o->index);
	return 0;
}

/* Tasks without dependencies wait for nobody. */
static void
seed(struct sched *s)
{
	for (size_t i = 0; i < s->plan->g->n; i++) {
		struct task *t = &s->plan->tasks[i];

		if (!t->node->ndeps && t->state == TASK_WAITING)
			sched_became_ready(s, t);
	}
}

void
sched_close_books(struct sched *s)
{
	bool ok = true;

	for (size_t i = 0; i < s->plan->g->n; i++) {
		struct task *t = &s->plan->tasks[i];

		if (t->state != TASK_DONE && s->halted && !s->stopped_by) {
			t->state = TASK_DONE;
			t->status = TASK_SKIPPED;
			t->exit_code = 1;
			t->started_ns = (int64_t)clock_wall_ns();
			if (!node_is_idle(t->node))
				sched_report_end(s, t, NULL, NULL, NULL, NULL);
		}
		/* A server that vx has ended before it was there failed by nothing of its own. */
		ok &= t->status == TASK_SUCCESS || t->status == TASK_HIT ||
		      t->status == TASK_NOOP || t->status == TASK_UNNEEDED ||
		      (t->status == TASK_ABORTED && t->node->def->persistent);
	}
	s->result->ok = ok && !s->has_bad_executor;
	tell_unsaved(s);
}

static int
start_up(struct sched *s, const struct sched_options *o, struct sched_result *result, struct err *e)
{
	const char *path = getenv("PATH");

	*s = (struct sched){
		.o = o,
		.plan = o->plan,
		.result = result,
		.restore_timer = {.fire = restore_one},
		.redraw_timer = {.fire = redraw},
		.guard = {.fd = o->guard_pidfd, .events = LOOP_READ, .ready = guard_died},
		.prober = {.w = o->plan->w,
			.timeout_ms = o->default_timeout_ms,
			.timeout_by = o->default_timeout_by,
			.grace_ms = o->grace_ms,
			.done = probe_ended,
			.ctx = s},
	};
	*result = (struct sched_result){0};
	/* Found once, on vx's own PATH: a dependency's node_modules/.bin/sh must never be it. */
	s->sh = proc_find_outside("sh", path ? path : "/usr/bin:/bin", o->plan->w->path);
	if (!s->sh && !o->fake)
		return err_set(
			e, ERR_IO, 0, "no `sh` on PATH outside the workspace: tasks cannot be run");
	if (!o->fake)
		s->direct = direct_new(o->loop, s->sh);
	s->prober.executor = o->fake ? o->fake : s->direct;
	loop_on_signal(o->loop, on_signal, s);
	loop_on_idle(o->loop, on_idle, s);
	if (o->guard_pidfd >= 0)
		loop_add_fd(o->loop, &s->guard);
	return 0;
}

/* `failed`: vx itself cannot go on. */
static void
shut_down(struct sched *s, bool failed)
{
	const struct sched_options *o = s->o;

	if (failed)
		cancel_all(s, SIGKILL);
	place_end(s);
	/* Processes that left their group are still our descendants: we are their subreaper. */
	if (s->stopped_by || s->must_sweep)
		proc_kill_descendants(
			NULL, 0, clock_monotonic_ns() + (uint64_t)LAST_KILL_MS * 1000000);
	loop_remove_timer(o->loop, &s->restore_timer);
	loop_remove_timer(o->loop, &s->redraw_timer);
	if (o->guard_pidfd >= 0)
		loop_remove_fd(o->loop, &s->guard);
	loop_on_signal(o->loop, NULL, NULL);
	loop_on_idle(o->loop, NULL, NULL);
	if (s->direct)
		s->direct->free(s->direct);
	if (s->sandboxed)
		s->sandboxed->free(s->sandboxed);
	seconds_free(s->seconds);
	strvec_release(&s->noticed);
	if (s->area)
		scratch_area_close(s->area);
	prober_release(&s->prober);
	ready_release(&s->ready);
	ready_release(&s->restores);
	free(s->undecided);
	free(s->ended);
	free(s->jobs);
	free(s->sh);
}

/* Those that keys rest on: nothing else is started until all have ended. */
static int
run_shared_probes(struct sched *s, struct err *e)
{
	const struct probe_set *set = &s->plan->probes;

	for (size_t i = 0; i < set->n; i++)
		if (!set->v[i]->own)
			prober_add(&s->prober, set->v[i]);
	if (!prober_has_waiting(&s->prober))
		return 0;
	/* What was looked at ahead was so before these commands. */
	filehash_trust(s->plan->fh, false);
	return loop_run(s->o->loop, e);
}

int
sched_probe(const struct sched_options *o, int *ret_stopped_by, struct err *e)
{
	struct sched_result unused;
	struct sched s;
	int r = start_up(&s, o, &unused, e);

	if (!r)
		r = run_shared_probes(&s, e) || place_tasks(&s, e) ? -1 : 0;
	*ret_stopped_by = s.stopped_by;
	shut_down(&s, r);
	return r;
}

int
sched_run(const struct sched_options *o, struct sched_result *ret, struct err *e)
{
	struct sched s;
	int r = start_up(&s, o, ret, e);

	if (!r)
		r = run_shared_probes(&s, e);
	if (!r) {
		s.stage = stage_new(o->plan->w->rootfd);
		GROW(ret->history, o->plan->g->n, s.history_cap);
		timing_stage("classify + probe");
		r = s.stopped_by ? 0 : classify(&s, e);
	}
	/* What is up to date by now is executed by nobody, so that nobody need be asked. */
	if (!r)
		r = place_tasks(&s, e);
	if (!r) {
		timing_stage("run graph");
		seed(&s);
		r = loop_run(o->loop, e);
	}
	if (!r && !s.in_foreground) {
		place_end(&s);
		sched_close_books(&s);
	}
	ret->stopped_by = s.stopped_by;
	stage_free(s.stage);
	shut_down(&s, r);
	if (r)
		sched_result_release(ret);
	return r;
}

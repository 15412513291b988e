/* SPDX-License-Identifier: MIT */
#include "tests/fake/fake-exec.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/loop.h"

struct exec_job {
	struct fake *f;
	struct exec_request rq;
	const struct fake_script *script;
	struct loop_timer timer, ready;
	bool stopped;
	struct exec_job *next; /* of those that run */
};

static void
ready_fired(struct loop_timer *t)
{
	struct exec_job *j = container_of(t, struct exec_job, ready);

	j->rq.ready(j->rq.ctx);
}

static void
soon(struct exec_job *j, struct loop_timer *t)
{
	t->at_ns = clock_monotonic_ns();
	loop_add_timer(j->f->loop, t);
}

static struct exec_job *
find(const struct fake *f, const char *id)
{
	struct exec_job *j = f->jobs;

	while (j && strcmp(j->rq.id, id) != 0)
		j = j->next;
	return j;
}

void
fake_ready(struct fake *f, const char *id)
{
	soon(find(f, id), &find(f, id)->ready);
}

static void
forget(struct exec_job *j)
{
	struct exec_job **at = &j->f->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	loop_remove_timer(j->f->loop, &j->ready);
}

static void
finish(struct loop_timer *t)
{
	struct exec_job *j = container_of(t, struct exec_job, timer);
	const struct fake_script *s = j->script;
	struct exec_result r = {.duration_ns = 1000000};

	strbuf_init(&r.error);
	strvec_init(&r.late);
	strvec_init(&r.notes);
	if (s && s->work && !j->stopped)
		s->work(j->f->ctx);
	if (s && s->prints)
		j->rq.output(j->rq.ctx, EXEC_STDOUT, s->prints, strlen(s->prints));
	r.outcome = j->stopped ? EXEC_STOPPED : EXEC_EXITED;
	r.exit_code = j->stopped ? 143 : s ? s->exit_code : 0;
	if (s && s->finds) {
		r.sandboxed = true;
		r.nfindings = r.ndenials = 1;
		r.denials = xcalloc(1, sizeof(*r.denials));
		r.denials[0] = (struct exec_denial){
			.class = DENIAL_FINDING,
			.path = xstrdup("packages/a/secret"),
			.program = xstrdup("cat"),
			.cmdline = xstrdup("cat secret"),
			.grant = xstrdup("allow.read: [\"secret\"]"),
			.pid = 7,
		};
	}
	j->f->running--;
	forget(j);
	j->rq.done(j->rq.ctx, &r);
	free(j);
}

static struct exec_job *
start(struct executor *ex, const struct exec_request *rq, struct err *e)
{
	struct fake *f = container_of(ex, struct fake, ex);
	struct exec_job *j = xcalloc(1, sizeof(*j));
	size_t n = strlen(f->order);

	(void)e;
	j->f = f;
	j->rq = *rq;
	j->timer.fire = finish;
	for (const struct fake_script *s = f->scripts; s && s->id; s++)
		if (!strcmp(s->id, rq->id))
			j->script = s;
	snprintf(f->order + n, sizeof(f->order) - n, "%s ", rq->id);
	if (++f->running > f->most)
		f->most = f->running;
	j->ready.fire = ready_fired;
	j->next = f->jobs;
	f->jobs = j;
	if (rq->persistent && !(j->script && j->script->starts))
		soon(j, &j->ready);
	if (!rq->persistent && !(j->script && j->script->holds))
		soon(j, &j->timer);
	for (struct exec_job *o = f->jobs; o; o = o->next)
		if (o->script && o->script->ended_by && !strcmp(o->script->ended_by, rq->id))
			soon(o, &o->timer);
	if (f->on_start)
		f->on_start(f, rq->id);
	return j;
}

static void
cancel(struct executor *ex, struct exec_job *j, int sig)
{
	struct fake *f = container_of(ex, struct fake, ex);
	size_t n;

	(void)sig;
	f->cancels++;
	if (j->stopped)
		return;
	j->stopped = true;
	n = strlen(f->ends);
	snprintf(f->ends + n, sizeof(f->ends) - n, "%s ", j->rq.id);
	loop_remove_timer(f->loop, &j->ready);
	loop_remove_timer(f->loop, &j->timer);
	soon(j, &j->timer);
}

static void
forward(struct executor *ex, struct exec_job *j, int sig)
{
	(void)ex;
	(void)j;
	(void)sig;
}

static void
free_nothing(struct executor *ex)
{
	(void)ex;
}

struct question {
	struct fake *f;
	struct loop_timer timer;
	void (*answer)(void *ctx, bool takes);
	void *ctx;
	bool takes;
};

static void
answer(struct loop_timer *t)
{
	struct question *q = container_of(t, struct question, timer);

	q->answer(q->ctx, q->takes);
	free(q);
}

static int
ask(struct executor *ex, const struct exec_view *v, void (*fn)(void *ctx, bool takes), void *ctx,
	struct err *e)
{
	struct fake *f = container_of(ex, struct fake, ex);
	struct question *q = xcalloc(1, sizeof(*q));
	size_t n = strlen(f->asked);
	char word[80];

	(void)e;
	snprintf(f->asked + n, sizeof(f->asked) - n, "%s%s ", v->task_id,
		v->pinned_local ? "-" : "");
	snprintf(word, sizeof(word), "%s ", v->task_id);
	*q = (struct question){.f = f,
		.timer = {.at_ns = clock_monotonic_ns(), .fire = answer},
		.answer = fn,
		.ctx = ctx,
		.takes = f->takes && strstr(f->takes, word)};
	loop_add_timer(f->loop, &q->timer);
	if (f->on_ask)
		f->on_ask(f, v->task_id);
	return 0;
}

void
fake_init(struct fake *f, struct loop *l, const struct fake_script *scripts, void *ctx)
{
	*f = (struct fake){
		.ex = {.name = "fake",
			.start = start,
			.cancel = cancel,
			.forward = forward,
			.free = free_nothing,
			.ask = ask},
		.loop = l,
		.scripts = scripts,
		.ctx = ctx,
	};
}

/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "cache/tree.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "workspace/workspace.h"

enum {
	STORED_OUTPUT_MAX = 64 << 20
};

/* What the entry's task printed. 1, 0 when the blob is gone, -1. */
static int
stored_output(struct sched *s, const struct entry *en, struct captured *ret, struct err *e)
{
	cleanup_strbuf struct strbuf bytes = STRBUF_INIT;
	int r;

	if (!en->has_output)
		return 1;
	r = store_get_bytes(s->o->store, &en->output, STORED_OUTPUT_MAX, &bytes, e);
	if (r < 0)
		return err_wrap(e, "restore");
	if (r == 1 && captured_decode(bytes.buf, bytes.len, ret)) {
		captured_release(ret);
		captured_init(ret);
		return 0;
	}
	return r;
}

static int
put_in_place(
	struct sched *s, struct task *t, const struct own *own, struct strvec *notes, struct err *e)
{
	const struct globset *set = &t->node->def->cache->outputs;
	int root = s->plan->w->rootfd;
	const char **nested = sched_nested_dirs(t->node->project);
	size_t n = t->node->project->nnested;
	struct outputs now = {0};
	struct err why = ERR_INIT;
	int r = tree_restore(s->o->store, s->stage, t->entry.has_tree ? &t->entry.tree : NULL, root,
		set, nested, n, own_part(own), &now, e);

	/* Without the stamp it is restored once more, and that is all. */
	if (r == 1 && index_stamp(s->o->index, t->node->id, &t->key, &now, &why))
		sched_index_failed(s, &why);
	/* What needs it reads other bytes than those that its key stands for. */
	if (r == 2) {
		strvec_pushf(notes, "%s: the next run restores it again", e->text);
		err_clear(e);
		t->tainted = true;
		r = 1;
	}
	log_debug("phase", "%s restored", t->node->id);
	outputs_release(&now);
	free(nested);
	return r;
}

static int
restore(struct sched *s, struct task *t, struct strvec *notes, struct err *e)
{
	struct own own = {0};
	int r;

	if (own_check(s, t, true, notes, e))
		return -1;
	r = own_find(s, t, &own, e) ? -1 : put_in_place(s, t, &own, notes, e);
	own_release(&own);
	return r < 0 ? err_wrap(e, "restore") : r;
}

/* The entry cannot be used after all: the task is a miss, in its turn. */
static void
lose_entry(struct sched *s, struct task *t)
{
	struct err e = ERR_INIT;

	report_notice(s->o->report, "%s: the stored result is gone or damaged; running the task",
		t->node->id);
	if (s->o->write_cache)
		index_drop(s->o->index, &t->key, &e);
	t->found = false;
	t->lost = true;
	if (!t->deps_left)
		sched_became_ready(s, t);
}

void
hit_serve(struct sched *s, struct task *t, bool current)
{
	struct err e = ERR_INIT;
	struct job shown = {.s = s, .task = t, .notes = STRVEC_INIT}; /* for its notes */
	struct captured output;
	uint64_t begin = clock_monotonic_ns();
	int r = 1;

	captured_init(&output);
	if (report_shows_hit(s->o->report, t, current))
		r = stored_output(s, &t->entry, &output, &e);
	t->started_ns = (int64_t)clock_wall_ns();
	if (r == 1 && !current)
		r = restore(s, t, &shown.notes, &e);
	if (r < 0) {
		captured_release(&output);
		strvec_release(&shown.notes);
		sched_fail_task(s, t, NULL, &e);
		return;
	}
	if (!r) {
		captured_release(&output);
		strvec_release(&shown.notes);
		lose_entry(s, t);
		return;
	}
	if (!current && s->plan->outputs_are_inputs)
		s->files_stale = true;
	t->status = TASK_HIT;
	t->cache = current ? CACHE_UP_TO_DATE : CACHE_RESTORED;
	t->duration_ns = clock_monotonic_ns() - begin;
	sched_report_end(s, t, &shown, &output, NULL, NULL);
	captured_release(&output);
	strvec_release(&shown.notes);
	sched_end_task(s, t);
}

static enum entry_making
least_making(const struct sched *s)
{
	return s->o->sandbox == SANDBOX_ALL ? MADE_CONFINED : MADE_UNCONFINED;
}

bool
hit_try(struct sched *s, struct task *t)
{
	struct err e = ERR_INIT;
	int current;

	t->looked_up = true;
	if (!sched_wants_cache(s, t) || !s->o->read_cache || t->tainted ||
		(s->executed && !sched_keys_hold(s)))
		return false;
	if (plan_look_up(s->plan, t, s->o->index, least_making(s), &e)) {
		sched_index_failed(s, &e);
		return false;
	}
	if (!t->found)
		return false;
	current = own_is_current(s, t, &e);
	if (current < 0)
		sched_index_failed(s, &e); /* then it is restored */
	if (current > 0) {
		hit_serve(s, t, true);
		return t->state != TASK_WAITING;
	}
	ready_push(&s->restores, t->node);
	return true;
}

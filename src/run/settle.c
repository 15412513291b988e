/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "cache/tree.h"
#include "exec/commit.h"
#include "exec/policy.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/stop.h"
#include "util/strvec.h"
#include "util/timing.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <stdarg.h>

enum {
	UNKEYED_SHOWN = 3, /* design §4: up to three files */
	UNSTORED_SHOWN = 3,
};
static const int64_t COPY_STEP_NS = 2LL * 1000 * 1000 * 1000;

void
settle_note(struct job *j, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	strvec_push(&j->notes, text.buf);
}

/* Names have come or gone where it may read whatever comes. Whether they were there for it no listing can tell
 * that is made afterwards. Before its own writes come into the workspace. */
static bool
may_have_read_others(const struct sched *s, struct job *j)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	const char *dir;
	size_t at = 0;

	do
		dir = moment_next_stirred(&j->moment, s->plan->w->rootfd, &at);
	while (dir && !policy_may_gain(j->policy, dir));
	if (!dir)
		return false;
	strbuf_add_sanitised(&name, *dir ? dir : ".", strlen(*dir ? dir : "."));
	settle_note(j,
		"confined, not proven: names came or went in %s while it ran, and it may read "
		"whatever is there",
		name.buf);
	return true;
}

/* What the result may claim of its making (design §4). */
static int
judge_making(struct sched *s, struct job *j, const struct exec_result *r, enum entry_making *ret,
	struct err *e)
{
	cleanup_strvec struct strvec files = STRVEC_INIT;
	cleanup_free char *inputs = NULL;

	*ret = MADE_UNCONFINED;
	if (!r->sandboxed)
		return 0;
	*ret = MADE_CONFINED;
	if (!r->proven_possible)
		return 0;
	/* A list made anew for another task's key has dropped them (plan_list_files). Should they be others
	 * now, the key is another one, too, and nothing is saved. */
	if (plan_inputs(s->plan, j->task, e))
		return -1;
	if (policy_unkeyed(j->policy, &j->task->inputs, UNKEYED_SHOWN, &files, e) < 0)
		return -1;
	if (!files.n) {
		if (!may_have_read_others(s, j))
			*ret = MADE_PROVEN;
		return 0;
	}
	inputs = policy_inputs_text(j->policy, &files);
	if (*inputs)
		settle_note(j,
			"confined, not proven: its key covers not all that it may read: add %s, or "
			"narrow what it may read",
			inputs);
	else
		settle_note(j,
			"confined, not proven: it may read %s%s, which no key covers (%s); narrow "
			"what it may read",
			files.v[0], files.n > 1 ? ", …" : "",
			policy_why_no_input(j->policy, files.v[0]));
	return 0;
}

/* It was granted to be written, and is kept; but who has a hit misses it. */
static void
note_unstored(struct job *j, const struct exec_result *r)
{
	cleanup_strvec struct strvec paths = STRVEC_INIT;
	cleanup_free char *outputs = NULL;
	size_t n = r->commit ? commit_unstored(r->commit, UNSTORED_SHOWN, &paths) : 0;

	if (!n)
		return;
	outputs = policy_outputs_text(j->policy, &paths);
	if (n > paths.n)
		settle_note(j, "kept but not stored, so that no hit brings it: %s, and %zu more",
			outputs, n - paths.n);
	else
		settle_note(j, "kept but not stored, so that no hit brings it: %s", outputs);
}

static void
note_empty_outputs(struct job *j, const struct outputs *o)
{
	const struct globset *set = &j->task->node->def->cache->outputs;

	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].type != OUTPUT_DIR)
			return;
	if (set->npos)
		settle_note(j, "cache.outputs matched no files (%s)%s", glob_text(set->pos[0]),
			set->npos > 1 ? ", …" : "");
}

int
settle_made(struct sched *s, struct job *j, struct exec_result *r, struct outputs *ret, int *ret_fd,
	char **ret_gone, struct err *e)
{
	const struct node *n = j->task->node;
	cleanup_free const char **nested = NULL;
	const char *gone = NULL;

	*ret_fd = s->plan->w->rootfd;
	if (r->commit) {
		ret->looked_ns = (int64_t)clock_files_ns();
		if (commit_outputs(r->commit, ret, ret_fd, e))
			return -1;
		gone = commit_removed(r->commit);
	} else {
		nested = sched_nested_dirs(n->project);
		if (outputs_scan(*ret_fd, &n->def->cache->outputs, nested, n->project->nnested, ret,
			    e) ||
			own_links_hold(j, ret, e))
			return -1;
		if (own_is_additive(j->task))
			outputs_since(*ret_fd, ret, &j->before, &gone);
	}
	*ret_gone = gone ? xstrdup(gone) : NULL;
	return 0;
}

/* Puts outputs and what was printed into the store. The row comes later. 1; 0: the task has removed outputs
 * of others, which no entry can say. */
static int
store_result(struct sched *s, struct job *j, struct exec_result *r, struct outputs *made,
	struct entry *en, struct err *e)
{
	const struct globset *set = &j->task->node->def->cache->outputs;
	cleanup_strbuf struct strbuf bytes = STRBUF_INIT, name = STRBUF_INIT;
	cleanup_free char *gone = NULL;
	uint64_t begun = timing_begin();
	int fd;

	if (settle_made(s, j, r, made, &fd, &gone, e) || outputs_check_types(made, e))
		return -1;
	timing_end("output glob", begun);
	if (gone) {
		strbuf_add_sanitised(&name, gone, strlen(gone));
		settle_note(j, "not saved: it removed %s, which was there before it", name.buf);
		return 0;
	}
	note_empty_outputs(j, made);
	en->has_tree = made->n > 0;
	if (en->has_tree && tree_save(s->o->store, fd, set, made, &en->tree, &en->bytes, e))
		return -1;
	if (!captured_is_empty(&j->output)) {
		captured_encode(&j->output, &bytes);
		if (store_put_bytes(s->o->store, bytes.buf, bytes.len, &en->output, e))
			return -1;
		en->has_output = true;
	}
	return 1;
}

/* What the cache could not do is no fault of the task's: it is said once in a run, of all that it befell. */
static void
not_saved(struct sched *s, struct job *j, const struct err *why)
{
	bool limit = why->num == EMFILE || why->num == ENFILE || err_is_no_room(why->num);

	if (store_save_failed(s->o->store) || limit)
		sched_save_failed(s, j->task, why);
	else
		settle_note(j, "not saved: %s", why->text);
}

/* A result that was made with better proof stays. Then what lies in the workspace is that result only if
 * the bytes are the same. */
static int
put_row(struct sched *s, const struct entry *en, bool *ret_is_here, struct err *e)
{
	struct entry kept = {0};
	int r = index_put(s->o->index, en, e);

	if (!r)
		r = index_get(s->o->index, &en->key, &kept, e);
	else
		kept = *en;
	*ret_is_here = r > 0 && kept.has_tree == en->has_tree &&
		       (!en->has_tree || digest_equal(&kept.tree, &en->tree));
	return r < 0 ? -1 : 0;
}

/* Whether an output in the workspace is the one that was stored. `moved`: out of a sandbox, by renaming, which
 * changes the ctime, or by copying, which leaves no more of the time than its file system can count. */
static bool
is_as_stored(const struct output *was, const struct output *is, bool moved)
{
	if (!was || was->type != is->type || was->mode != is->mode)
		return false;
	if (was->type == OUTPUT_LINK)
		return !strcmp(was->target, is->target);
	if (was->type == OUTPUT_DIR)
		return true;
	if (was->size != is->size)
		return false;
	if (moved && was->ino != is->ino)
		return is->mtime_ns <= was->mtime_ns && was->mtime_ns - is->mtime_ns < COPY_STEP_NS;
	/* One that may not be read was opened for that, and shut again. */
	return was->ino == is->ino && was->mtime_ns == is->mtime_ns &&
	       (moved || was->ctime_ns == is->ctime_ns || !(was->mode & 0400));
}

/* What is not as it was stored gets no stamp, so that the next run restores it. */
static bool
are_as_stored(struct job *j, const struct outputs *made, const struct outputs *now, bool moved)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	const char *other = NULL;

	for (size_t i = 0; i < now->n && !other; i++)
		if (!is_as_stored(outputs_find(made, now->v[i].path), &now->v[i], moved))
			other = now->v[i].path;
	for (size_t i = 0; i < made->n && !other; i++)
		if (!outputs_find(now, made->v[i].path))
			other = made->v[i].path;
	if (!other)
		return true;
	strbuf_add_sanitised(&name, other, strlen(other));
	settle_note(j, "%s was changed after it was stored: the next run restores it", name.buf);
	j->task->tainted = true; /* what needs it reads other bytes than its key stands for */
	return false;
}

/* Where the outputs are now. */
static int
scan_settled(struct sched *s, struct job *j, const struct outputs *made, struct outputs *ret,
	struct err *e)
{
	const struct task *t = j->task;
	cleanup_free const char **nested = sched_nested_dirs(t->node->project);

	if (outputs_scan(s->plan->w->rootfd, &t->node->def->cache->outputs, nested,
		    t->node->project->nnested, ret, e) ||
		outputs_check_types(ret, e) || own_links_hold(j, ret, e))
		return -1;
	if (own_is_additive(t))
		outputs_only(ret, made);
	return 0;
}

/* Whether a row needs what was stored. */
static bool
write_row(struct sched *s, struct job *j, const struct outputs *made, bool moved,
	const struct entry *en)
{
	struct task *t = j->task;
	struct outputs now = {0};
	struct err why = ERR_INIT;
	bool is_here = false;

	if (scan_settled(s, j, made, &now, &why)) {
		not_saved(s, j, &why);
	} else if (put_row(s, en, &is_here, &why)) {
		sched_save_failed(s, t, &why);
		if (err_is_no_room(why.num))
			store_set_full(s->o->store);
	} else if (is_here && are_as_stored(j, made, &now, moved)) {
		now.looked_ns = made->looked_ns;
		if (index_stamp(s->o->index, t->node->id, &t->key, &now, &why))
			sched_index_failed(s, &why); /* then it is restored */
		else
			j->remember = false;
	}
	outputs_release(&now);
	return is_here;
}

/* After its own writes have come into the workspace: they may be what changes it. Whether a row needs what
 * was stored. */
static bool
keep_result(struct sched *s, struct job *j, const struct exec_result *r, const struct outputs *made,
	const struct entry *en)
{
	struct task *t = j->task;
	cleanup_free char *moved = NULL;
	struct err why = ERR_INIT;
	bool kept = false;
	int truth;

	if (!sched_keys_hold(s)) {
		t->tainted = true;
		return false;
	}
	truth = plan_still_true(s->plan, t, &j->moment, t->started_ns, &moved, &why);
	t->tainted = t->tainted || truth != 1;
	if (truth < 0)
		not_saved(s, j, &why);
	else if (!truth)
		settle_note(j, "not saved: %s changed while it ran", moved);
	else
		kept = write_row(s, j, made, r->commit != NULL, en);
	if (kept)
		note_unstored(j, r);
	if (truth == 1)
		log_debug("phase", "%s row written", t->node->id);
	return kept;
}

/* Whether the files that every key rests on were left alone while it ran. */
static bool
fingerprint_was_still(struct sched *s, struct job *j)
{
	const struct fingerprint *f = &s->plan->fingerprint;
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	if (!sched_keys_hold(s))
		return false;
	if (f->nwrites == j->nwrites)
		return true;
	strbuf_add_sanitised(&name, f->written, strlen(f->written));
	settle_note(j, "not saved: %s was written while it ran: every key rests on it", name.buf);
	return false;
}

int
settle_result(struct sched *s, struct job *j, struct exec_result *r, bool save, struct err *e)
{
	struct task *t = j->task;
	struct entry en = {.key = t->key,
		.task = t->node->id,
		.duration_ns = r->duration_ns,
		.cpu_us = r->cpu_us,
		.peak_rss_kb = r->peak_rss_kb,
		.created_ns = (int64_t)clock_wall_ns()};
	struct outputs made = {0};
	struct err why = ERR_INIT;
	bool begun, kept = false;
	int ret = 0, stored;

	/* What a sandboxed task itself has written of them has not come into the workspace yet. */
	if (save && !fingerprint_was_still(s, j)) {
		t->tainted = true;
		save = false;
	}
	begun = save;
	if (save) {
		store_save_begin(s->o->store);
		stored = store_result(s, j, r, &made, &en, &why);
		save = stored > 0 && !judge_making(s, j, r, &en.making, &why);
		if (err_is_set(&why) && !stop_is_asked())
			not_saved(s, j, &why);
	}
	if (stop_is_asked())
		ret = err_set(e, ERR_IO, ECANCELED, "storing what the task made");
	else if (save)
		log_debug("phase", "%s content stored", t->node->id);
	if (!ret && r->commit)
		ret = commit_apply(r->commit, e);
	if (!ret && save)
		kept = t->saved = keep_result(s, j, r, &made, &en);
	if (begun)
		store_save_end(s->o->store, kept);
	outputs_release(&made);
	return ret;
}

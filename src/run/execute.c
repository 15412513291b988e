/* SPDX-License-Identifier: MIT */
#include "cache/outputs.h"
#include "exec/commit.h"
#include "exec/env.h"
#include "exec/explain.h"
#include "exec/policy.h"
#include "exec/sandboxed.h"
#include "exec/scratch.h"
#include "exec/seconds.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/path.h"
#include "util/strvec.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	WITHHELD_SHOWN = 3,
	LATE_SHOWN = 3,
	RETRIED_SHOWN = 20, /* undeclared accesses of an attempt that is not the last */
};

static void
take_output(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct job *j = ctx;

	captured_add(&j->output, stream, p, n);
	report_output(j->s->o->report, j->task, stream, p, n);
}

static int start_job(struct sched *s, struct job *j, struct err *e);

/* Nothing behind this has seen a secret: neither what is shown nor what is stored. */
static void
on_output(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct job *j = ctx;
	const struct mask *m = j->s->plan->mask;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!m) {
		weave_add(&j->weave, stream, p, n);
		return;
	}
	mask_feed(m, &j->masked[stream], p, n, &out);
	weave_add(&j->weave, stream, out.buf, out.len);
}

static void
end_output(struct job *j)
{
	const struct mask *m = j->s->plan->mask;

	for (enum exec_stream i = EXEC_STDOUT; m && i <= EXEC_STDERR; i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		mask_end(m, &j->masked[i], &out);
		weave_add(&j->weave, i, out.buf, out.len);
	}
	weave_end(&j->weave);
}

static void
remove_job(struct sched *s, struct job *j)
{
	s->npersistent -= j->task->node->def->persistent;
	if (j->place) {
		j->place->nrunning--;
		s->nelsewhere--;
	}
	s->jobs[j->slot] = s->jobs[--s->njobs];
	s->jobs[j->slot]->slot = j->slot;
}

/* What one attempt has of its own. */
static void
forget_attempt(struct job *j)
{
	captured_release(&j->output);
	strvec_release(&j->notes);
	moment_release(&j->moment);
	moment_init(&j->moment);
	own_release(&j->own);
	j->own = (struct own){0};
	outputs_release(&j->links);
	outputs_before_release(&j->before);
	policy_free(j->policy);
	j->policy = NULL;
}

static void
free_job(struct job *j)
{
	serve_release(j);
	forget_attempt(j);
	moment_release(&j->moment);
	for (size_t i = 0; i < array_len(j->masked); i++)
		mask_stream_release(&j->masked[i]);
	weave_release(&j->weave);
	free(j->command);
	free(j->shown);
	free(j);
}

static void
read_result(const struct job *j, const struct exec_result *r)
{
	struct task *t = j->task;

	t->exit_code = r->exit_code;
	t->signal = r->signal;
	t->timed_out = r->outcome == EXEC_TIMED_OUT;
	t->duration_ns = j->spent_ns + r->duration_ns;
	t->cpu_us = j->spent_cpu_us + r->cpu_us;
	t->peak_rss_kb = r->peak_rss_kb > j->spent_rss_kb ? r->peak_rss_kb : j->spent_rss_kb;
	if (r->outcome == EXEC_EXITED && !r->exit_code && !r->nfindings)
		t->status = TASK_SUCCESS;
	else
		t->status = TASK_FAILED;
	/* A finding fails the task even when its own exit was 0. */
	if (t->status == TASK_FAILED && !t->exit_code)
		t->exit_code = 1;
}

/* A line for each package, beside its findings. */
static void
note_withheld(struct job *j, const struct exec_result *r)
{
	cleanup_strvec struct strvec told = STRVEC_INIT;

	for (size_t i = 0; i < r->ndenials && told.n < WITHHELD_SHOWN; i++) {
		const struct exec_denial *d = &r->denials[i];
		cleanup_free char *text = NULL;

		if (d->class != DENIAL_FINDING || d->op != DENIAL_READ)
			continue;
		text = policy_withheld_text(j->policy, d->path);
		if (!text || strvec_contains(&told, text))
			continue;
		strvec_push(&told, text);
		settle_note(j, "%s", text);
	}
}

/* Whatever else the result depends on is in its key, or was hidden from it. */
static void
note_late(struct job *j, const struct exec_result *r)
{
	cleanup_strbuf struct strbuf list = STRBUF_INIT;

	for (size_t i = 0; i < r->late.n && i < LATE_SHOWN; i++) {
		strbuf_adds(&list, i ? ", " : "");
		strbuf_add_sanitised(&list, r->late.v[i], strlen(r->late.v[i]));
	}
	settle_note(j,
		"not saved: %s%s came while it ran, where it could see all there was, and is not "
		"granted: if a task makes it, name that in dependsOn",
		list.buf, r->late.n > LATE_SHOWN ? ", …" : "");
}

/* Where the fingerprint has moved, one notice says so of all. */
static void
note_unsaved(struct sched *s, struct job *j)
{
	const struct node *up = j->task->unsaved;
	enum task_status status = plan_task(s->plan, up)->status;

	if (sched_keys_hold(s))
		settle_note(j, "not saved: %s, which it needs, %s", up->id,
			status == TASK_FAILED ? "failed"
			: status == TASK_NOOP ? "was executed by nobody"
			: up->def->persistent ? "has sandbox violations"
					      : "was not");
}

/* Without the policy layer hidden files are as hidden, but nobody sees who asked for them: said once. */
static void
note_no_reports(struct sched *s, const struct exec_result *r)
{
	if (!r->unreported || r->outcome != EXEC_EXITED || s->told_no_reports)
		return;
	s->told_no_reports = true;
	report_notice(s->o->report, "/dev/fuse cannot be used: the sandbox holds all the same, but "
				    "denied reads are not "
				    "reported and no result counts as proven");
}

/* Notes of what is the same for many tasks: each once a run. */
static void
say_notices(struct sched *s, const struct strvec *notices)
{
	for (size_t i = 0; i < notices->n; i++) {
		const char *text = notices->v[i], *end = strstr(text, ": ");
		cleanup_free char *what = xmemdupz(text, end ? (size_t)(end - text) : strlen(text));
		cleanup_free char *shown = mask_text(s->plan->mask, text);

		if (strvec_contains(&s->noticed, what))
			continue;
		strvec_push(&s->noticed, what);
		report_notice(s->o->report, "%s", shown);
	}
}

/* One line, of what is looked at afterwards. */
static void
note_exit(struct sched *s, struct job *j, const struct exec_result *r)
{
	const struct project *p = j->task->node->project;
	cleanup_close int cwd =
		fs_open_beneath(s->plan->w->rootfd, p->dir, O_PATH | O_DIRECTORY, 0);
	cleanup_strvec struct strvec env = STRVEC_INIT;
	cleanup_free char *text = NULL;

	env_build(s->plan->w->path, p, j->task->node->def, j->task->node->id, j->task->sandboxed,
		environ, &env);
	text = explain_exit(&(struct exit_facts){
		.command = j->command,
		.path = strvec_getenv(&env, "PATH"),
		.root_path = s->plan->w->path,
		.dir = p->dir,
		.cwd = cwd,
		.result = r,
	});
	if (text)
		strvec_push(&j->notes, text);
}

/* A name can hold one as well. */
static void
hide(const struct mask *m, char **text)
{
	char *shown = *text ? mask_text(m, *text) : NULL;

	free(*text);
	*text = shown;
}

static void
hide_secrets(const struct mask *m, struct exec_result *r)
{
	for (size_t i = 0; m && i < r->ndenials; i++) {
		struct exec_denial *d = &r->denials[i];
		char **texts[] = {
			&d->path, &d->target, &d->program, &d->cmdline, &d->grant, &d->more_grant};

		for (size_t k = 0; k < array_len(texts); k++)
			hide(m, texts[k]);
	}
}

/* Attempts. */

static unsigned
attempts_of(const struct sched *s, const struct task *t)
{
	const struct taskdef *def = t->node->def;

	return 1 + (def->persistent ? 0 : def->has_retries ? def->retries : s->o->retries);
}

void
execute_tell_denied(struct job *j, const struct exec_denial *d)
{
	const struct mask *m = j->s->plan->mask;
	struct exec_denial shown = *d;
	cleanup_free char *path = mask_text(m, d->path);
	cleanup_free char *grant = d->grant ? mask_text(m, d->grant) : NULL;
	cleanup_free char *target = d->target ? mask_text(m, d->target) : NULL;

	shown.path = path;
	shown.grant = grant;
	shown.target = target;
	report_denied(j->s->o->report, j->task, &shown);
}

/* What it printed, and did that it may not, is nobody else's to tell: the next attempt may not do it. */
static void
tell_attempt(struct sched *s, struct job *j, struct exec_result *r)
{
	const struct report_end end = {
		.task = j->task,
		.command = r->outcome == EXEC_NOT_STARTED ? NULL : j->shown,
		.output = &j->output,
		.result = r,
	};
	unsigned told = 0;

	hide_secrets(s->plan->mask, r);
	if (report_attempt(s->o->report, &end, attempts_of(s, j->task)))
		return;
	for (size_t i = 0; i < r->ndenials && told < RETRIED_SHOWN; i++) {
		if (r->denials[i].class != DENIAL_FINDING)
			continue;
		report_denied(s->o->report, j->task, &r->denials[i]);
		told++;
	}
}

static void
tell_retry(struct sched *s, struct job *j, struct exec_result *r)
{
	const struct task *t = j->task;
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	cleanup_free char *shown = NULL;

	tell_attempt(s, j, r);
	if (t->timed_out)
		strbuf_adds(&why, "a timeout");
	else
		strbuf_addf(&why, "exit %d", t->exit_code);
	if (r->nfindings)
		strbuf_addf(&why, ", %llu sandbox violation%s", (unsigned long long)r->nfindings,
			r->nfindings == 1 ? "" : "s");
	if (r->outcome == EXEC_NOT_STARTED)
		strbuf_addf(&why, ": %s", r->error.buf);
	shown = mask_text(s->plan->mask, why.buf);
	report_notice(s->o->report, "retrying %s (attempt %u/%u) after %s", t->node->id,
		t->attempts + 1, attempts_of(s, t), shown);
}

static void
end_unstarted(struct sched *s, struct job *j, struct err *e)
{
	struct task *t = j->task;

	remove_job(s, j);
	if (t->may_move) {
		sched_keys_hold(s);
		s->nmoving--;
	}
	sched_fail_task(s, t, j, e);
	free_job(j);
}

/*
 * Starts a command that has failed once more, in the place that it had. What it wrote in a sandbox goes; without
 * one it stands, and the outputs are vx's to clean, as before every start.
 */
static bool
try_again(struct sched *s, struct job *j, struct exec_result *r)
{
	struct task *t = j->task;
	struct err e = ERR_INIT;

	if (t->status != TASK_FAILED || t->attempts >= attempts_of(s, t) || s->halted ||
		sched_is_stopping(s))
		return false;
	tell_retry(s, j, r);
	if (j->remember && !t->sandboxed)
		own_remember(s, j, r);
	j->spent_ns = t->duration_ns;
	j->spent_cpu_us = t->cpu_us;
	j->spent_rss_kb = t->peak_rss_kb;
	commit_free(r->commit);
	r->commit = NULL;
	exec_result_release(r);
	forget_attempt(j);
	if (start_job(s, j, &e))
		end_unstarted(s, j, &e);
	return true;
}

static void
on_done(void *ctx, struct exec_result *r)
{
	struct job *j = ctx;
	struct sched *s = j->s;
	struct task *t = j->task;
	struct err e = ERR_INIT;
	bool aborted = sched_is_stopping(s);
	const char *error = NULL;
	bool save, left;

	end_output(j);
	read_result(j, r);
	note_no_reports(s, r);
	say_notices(s, &r->notices);
	if (try_again(s, j, r))
		return;
	remove_job(s, j);
	if (aborted)
		t->status = TASK_ABORTED;
	if (t->node->def->persistent)
		serve_ended(j, r);
	if (r->outcome == EXEC_NOT_STARTED || r->outcome == EXEC_BROKEN)
		error = r->error.buf;
	if (r->output_cut)
		settle_note(j,
			"output after the command's exit was cut: a process it left running still "
			"held the "
			"pipes %d ms later",
			EXEC_DRAIN_MS);
	for (size_t i = 0; i < r->notes.n; i++)
		strvec_push(&j->notes, r->notes.v[i]);
	if (t->status == TASK_FAILED)
		note_exit(s, j, r);
	if (r->failed_itself && !aborted)
		notes_on_failure(s, j, r);
	if (j->policy)
		note_withheld(j, r);
	/* What was ended in the middle of a write may have left half of it. */
	if (r->nkilled && t->status == TASK_SUCCESS && sched_will_save(s, t)) {
		settle_note(j, "not saved: it left background processes, which were ended");
		t->tainted = true;
	}
	/* They may write into the outputs yet. */
	if (r->left_some && t->status == TASK_SUCCESS && sched_will_save(s, t)) {
		settle_note(j, "not saved: it left background processes, which go on");
		t->tainted = true;
	}
	if (r->late.n && t->status == TASK_SUCCESS && sched_will_save(s, t)) {
		note_late(j, r);
		t->tainted = true;
	}
	if (!t->unsaved && t->status == TASK_SUCCESS && (t->unsaved = serve_bad_for(s, t)))
		t->tainted = true;
	if (t->unsaved && t->status == TASK_SUCCESS && sched_will_save(s, t))
		note_unsaved(s, j);
	save = t->status == TASK_SUCCESS && sched_will_save(s, t) && !t->tainted;
	left = !t->sandboxed || (r->commit && !aborted && r->outcome == EXEC_EXITED);
	/* Stopped by vx: nothing of it reaches the workspace (r->commit is dropped below). */
	if (!aborted && r->outcome == EXEC_EXITED && !t->node->def->persistent &&
		settle_result(s, j, r, save, &e)) {
		/* A stop that came before the moves began. */
		aborted = e.num == ECANCELED;
		left = !t->sandboxed || (left && !aborted);
		t->status = aborted ? TASK_ABORTED : TASK_FAILED;
		t->exit_code = t->exit_code ? t->exit_code : 1;
		if (!aborted)
			error = e.text;
	}
	if (j->remember && left)
		own_remember(s, j, r);
	commit_free(r->commit);
	r->commit = NULL;
	log_debug("phase", "%s scratch dropped", t->node->id);
	if (!aborted)
		miss_note_flaky(s, j, r);
	/* What it has written is seen while it counts as running. */
	if (t->may_move) {
		sched_keys_hold(s);
		s->nmoving--;
	}
	if (!t->node->def->cache || s->plan->outputs_are_inputs)
		s->files_stale = true;
	t->started_ns = j->first_started_ns;
	hide_secrets(s->plan->mask, r);
	sched_report_end(s, t, j, &j->output, error, r);
	exec_result_release(r);
	free_job(j);
	sched_end_task(s, t);
}

static void
find_seconds(struct sched *s)
{
	const struct strvec *stores = sandboxed_stores(s->sandboxed);
	cleanup_strvec struct strvec places = STRVEC_INIT;

	for (size_t i = 0; i < stores->n; i++)
		strvec_push(&places, stores->v[i]);
	strvec_push_take(&places, path_join(s->plan->w->path, ".vx"));
	strvec_push(&places, scratch_area_path(s->area));
	if (s->o->cache_dir)
		strvec_push(&places, s->o->cache_dir);
	s->seconds = seconds_new(s->plan->w->path, &places);
}

static int
make_sandboxed(struct sched *s, struct err *e)
{
	char *helper;

	if (s->sandboxed)
		return 0;
	helper = sandboxed_find_helper(e);
	if (!helper)
		return -1;
	if (!s->area && scratch_area_open(s->plan->w->path, &s->area, e)) {
		free(helper);
		return -1;
	}
	s->sandboxed = sandboxed_new(s->o->loop, &(struct sandboxed_options){
							 .helper = helper,
							 .sh = s->sh,
							 .rootfd = s->plan->w->rootfd,
							 .root_path = s->plan->w->path,
							 .cache_dir = s->o->cache_dir,
							 .area = s->area,
						 });
	find_seconds(s);
	free(helper);
	return 0;
}

static struct executor *
executor_for(struct sched *s, const struct task *t, struct err *e)
{
	if (t->placed)
		return t->placed;
	if (s->o->fake)
		return s->o->fake;
	if (t->sandboxed)
		return make_sandboxed(s, e) ? NULL : s->sandboxed;
	return s->direct;
}

/* The key must still say what is on disk at the moment the command starts. */
static int
check_key(struct sched *s, struct job *j, struct err *e)
{
	struct task *t = j->task;
	cleanup_free char *what = NULL;
	int r;

	if (!sched_will_save(s, t) || t->tainted)
		return 0;
	if (!sched_keys_hold(s)) {
		t->tainted = true;
		return 0;
	}
	j->nwrites = s->plan->fingerprint.nwrites;
	r = plan_begin(s->plan, t, &j->moment, &what, e);
	if (!r) {
		t->tainted = true;
		settle_note(j, "not saved: %s changed before it ran", what);
	}
	return r < 0 ? -1 : 0;
}

/* Most likely a slip: then no edit would ever make the task run again. */
static void
note_empty_inputs(struct job *j)
{
	const struct cachedef *cache = j->task->node->def->cache;

	if (cache && cache->files.npos && !j->task->inputs.n)
		settle_note(j, "cache.inputs matched no files (%s%s)",
			glob_text(cache->files.pos[0]), cache->files.npos > 1 ? ", …" : "");
}

/* A variable that is keyed moves the key alone; most likely the command was to have it, too. */
static void
note_kept_back(struct job *j)
{
	const struct taskdef *def = j->task->node->def;
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	for (size_t i = 0; def->cache && i < def->cache->nenv; i++) {
		const char *name = def->cache->env[i];

		if (getenv(name) && !env_has(def, name))
			strbuf_addf(&names, "%s\"%s\"", names.len ? ", " : "", name);
	}
	if (names.len)
		settle_note(j,
			"in its key, but not in its environment: to pass it on, "
			"exec.env.passThrough: [%s]",
			names.buf);
}

static void
note_left_out(struct sched *s, struct job *j)
{
	const struct node *n = j->task->node;

	if (n->rests_on && sched_wants_cache(s, j->task) && s->o->write_cache)
		settle_note(j,
			"not saved: its key holds that of %s, which --exclude-dependencies leaves "
			"out",
			n->rests_on->id);
}

/* Its own goes; of what others have made there, one that adds to it has to know how it was. */
static int
prepare_outputs(struct sched *s, struct job *j, struct err *e)
{
	const struct node *n = j->task->node;
	const struct globset *set = &n->def->cache->outputs;
	cleanup_free const char **nested = sched_nested_dirs(n->project);
	/* What tasks that add to it have made goes with what they added it to. */
	const struct outputs_part *part = own_is_additive(j->task) ? own_part(&j->own) : NULL;
	int root = s->plan->w->rootfd;

	if (outputs_clean(root, set, nested, n->project->nnested, part, e))
		return -1;
	return part ? outputs_look_before(root, set, nested, n->project->nnested, &j->before, e)
		    : 0;
}

static int
find_links(struct sched *s, struct job *j, struct err *e)
{
	const struct node *n = j->task->node;
	cleanup_free const char **nested = sched_nested_dirs(n->project);

	return outputs_find_roots(s->plan->w->rootfd, &n->def->cache->outputs, nested,
		n->project->nnested, &j->links, e);
}

static int
start_job(struct sched *s, struct job *j, struct err *e)
{
	struct task *t = j->task;
	const struct node *n = t->node;
	const struct taskdef *def = n->def;
	cleanup_strvec struct strvec env = STRVEC_INIT, notices = STRVEC_INIT;
	cleanup_free char *dir = NULL;
	cleanup_close int cwd = -1;
	char key[DIGEST_HEX];
	struct exec_handed handed;

	if (check_key(s, j, e) || plan_inputs(s->plan, t, e) || serve_prepare(j, e))
		return -1;
	if (t->cache == CACHE_MISS && !t->attempts)
		miss_explain(s, t);
	note_empty_inputs(j);
	note_kept_back(j);
	note_left_out(s, j);
	j->executor = executor_for(s, t, e);
	if (!j->executor)
		return -1;
	j->remember = def->cache && (t->sandboxed || sched_will_save(s, t));
	if (j->remember && (own_find(s, t, &j->own, e) || own_check(s, t, false, &j->notes, e) ||
				   find_links(s, j, e)))
		return -1;
	if (t->sandboxed && policy_build(s->plan->w, n, &s->plan->files, &t->inputs,
				    s->area ? scratch_area_path(s->area) : "",
				    own_is_additive(t) ? &j->own.names : NULL, &j->policy, e))
		return -1;
	if (s->seconds && j->policy && seconds_hide(s->seconds, j->policy, &notices, e))
		return -1;
	if (j->policy)
		policy_note_worktrees(j->policy, &notices);
	say_notices(s, &notices);
	/* A sandboxed task starts without its outputs anyway; the commit replaces them. */
	if (!t->sandboxed && j->remember && prepare_outputs(s, j, e))
		return -1;
	cwd = fs_open_beneath(s->plan->w->rootfd, n->project->dir, O_PATH | O_DIRECTORY, 0);
	if (cwd < 0)
		return err_set(
			e, ERR_IO, errno, "open %s", *n->project->dir ? n->project->dir : ".");
	env_build(s->plan->w->path, n->project, def, n->id, t->sandboxed, environ, &env);
	t->timeout_ms = def->timeout_ms ? def->timeout_ms : s->o->default_timeout_ms;
	t->timeout_by = def->timeout_ms ? "exec.timeout" : s->o->default_timeout_by;
	t->started_ns = (int64_t)clock_wall_ns();
	if (!t->attempts++)
		j->first_started_ns = t->started_ns;
	if (t->has_key)
		digest_hex(&t->key, key);
	dir = path_join(s->plan->w->path, n->project->dir);
	handed = (struct exec_handed){
		.def = def,
		.root = s->plan->w->path,
		.cwd = dir,
		.forward = s->plan->forward,
		.nforward = n->requested ? s->plan->nforward : 0,
		.cache_key = def->cache && t->has_key && !t->tainted ? key : NULL,
		.refresh = s->o->refresh,
	};
	j->handle = j->executor->start(j->executor,
		&(struct exec_request){
			.id = n->id,
			.command = j->command,
			.cwd = cwd,
			.env = &env,
			.timeout_ms = t->timeout_ms,
			.grace_ms = s->o->grace_ms,
			.policy = j->policy,
			.handed = &handed,
			.persistent = def->persistent,
			.again = t->attempts < attempts_of(s, t),
			.ready_when = j->ready_when,
			.ready = serve_ready,
			.denied = serve_denied,
			.output = on_output,
			.done = on_done,
			.ctx = j,
		},
		e);
	return j->handle ? 0 : -1;
}

void
execute_task(struct sched *s, struct task *t)
{
	const struct node *n = t->node;
	struct job *j = xcalloc(1, sizeof(*j));
	struct err e = ERR_INIT;

	j->s = s;
	j->task = t;
	j->command = env_command(
		n->def->command, s->plan->forward, n->requested ? s->plan->nforward : 0);
	j->shown = mask_text(s->plan->mask, j->command);
	captured_init(&j->output);
	weave_init(&j->weave, s->o->loop, take_output, j);
	moment_init(&j->moment);
	t->state = TASK_RUNNING;
	/* One that there is none of yet misses, too. */
	t->cache = n->def->cache && n->def->remote != REMOTE_ONLY &&
				   (s->o->read_cache || s->o->write_cache)
			   ? CACHE_MISS
			   : CACHE_NONE;
	if (start_job(s, j, &e)) {
		sched_fail_task(s, t, j, &e);
		free_job(j);
		return;
	}
	GROW(s->jobs, s->njobs + 1, s->jobs_cap);
	j->slot = s->njobs;
	s->jobs[s->njobs++] = j;
	j->place = place_of(s, t);
	if (j->place) {
		j->place->nrunning++;
		s->nelsewhere++;
	}
	s->nmoving += t->may_move;
	s->executed = true;
	report_started(s->o->report, t, j->shown);
	if (n->def->persistent)
		serve_started(j);
}

/* SPDX-License-Identifier: MIT */
#include "run/plan.h"
#include "cache/key.h"
#include "exec/secrets.h"
#include "run/moment.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/mask.h"
#include "util/path.h"
#include "util/timing.h"
#include "workspace/workspace.h"

/* A stamp this close before the moment of reading may hide a later write (spec: racy window). */
enum {
	RACY_WINDOW_NS = 50 * 1000 * 1000
};

/* Whether some command that the node needs is not in its key, so that a probe of it could read what that
 * one has yet to make. */
static bool
needs_unfolded(const struct node *n)
{
	size_t nall, nfolded;
	cleanup_free const struct node **all = graph_upstream(n, false, &nall);
	cleanup_free const struct node **folded = graph_upstream(n, true, &nfolded);
	struct htab keyed;
	bool found = false;

	htab_init(&keyed);
	for (size_t i = 0; i < nfolded; i++)
		htab_put(&keyed, folded[i]->id, &keyed);
	for (size_t i = 0; i < nall && !found; i++)
		found = !node_is_idle(all[i]) && !htab_get(&keyed, all[i]->id);
	htab_release(&keyed);
	return found;
}

/* `may_need`: perhaps needs_unfolded. */
static void
add_probes(struct plan *p, struct task *t, bool may_need)
{
	const struct cachedef *c = t->node->def->cache;
	size_t n = c ? c->nruntime + c->nworkspace_runtime : 0;

	if (!n)
		return;
	t->own_probes = may_need && needs_unfolded(t->node);
	t->late |= t->own_probes;
	t->probes = xcalloc(n, sizeof(*t->probes));
	for (size_t i = 0; i < c->nruntime; i++)
		t->probes[t->nprobes++] = probe_set_add(
			&p->probes, t->node->project, c->runtime[i], t->own_probes ? t : NULL);
	for (size_t i = 0; i < c->nworkspace_runtime; i++)
		t->probes[t->nprobes++] = probe_set_add(
			&p->probes, NULL, c->workspace_runtime[i], t->own_probes ? t : NULL);
}

/* Whether what the keys of those behind it are made of may change when it runs. Not so for a persistent
 * one, or it would have to be started to find out that nothing needs it; what it changes all the same is
 * seen when a key is checked (plan_begin). */
static bool
unsettles(const struct task *t)
{
	return !t->node->def->persistent && !t->node->left_out &&
	       ((!node_is_group(t->node) && !t->node->def->cache) ||
		       taskdef_leaves_project(t->node->def) || t->may_move);
}

/* A group that was asked for stands for what it needs. */
static void
find_surfaced(struct plan *p)
{
	for (size_t i = p->g->n; i-- > 0;) {
		struct task *t = &p->tasks[i];
		const struct node *n = t->node;

		t->surfaced = !n->left_out && (t->surfaced || n->requested);
		for (size_t d = 0; t->surfaced && node_is_group(n) && d < n->ndeps; d++)
			plan_task(p, n->deps[d])->surfaced = true;
	}
}

/* What was asked for, and the persistent ones that it needs, by themselves or by groups. */
static void
find_foreground(struct plan *p)
{
	for (size_t i = p->g->n; i-- > 0;) {
		struct task *t = &p->tasks[i];
		bool stands =
			!t->node->left_out && (node_is_group(t->node) || t->node->def->persistent);

		t->foreground = stands && (t->foreground || t->node->requested);
		for (size_t d = 0; t->foreground && d < t->node->ndeps; d++)
			plan_task(p, t->node->deps[d])->foreground = true;
	}
}

/* By task: whether something that it needs has failed, so that it will be skipped. */
static bool *
find_doomed(const struct plan *p)
{
	bool *doomed = xcalloc(p->g->n, sizeof(*doomed));

	for (size_t i = 0; i < p->g->n; i++) {
		const struct node *n = p->tasks[i].node;

		for (size_t d = 0; d < n->ndeps && !doomed[i]; d++) {
			const struct task *up = plan_task(p, n->deps[d]);

			doomed[i] = doomed[up->node->index] || up->status == TASK_FAILED ||
				    up->status == TASK_SKIPPED;
		}
	}
	return doomed;
}

bool *
plan_find_needed(const struct plan *p, bool despite, bool requested)
{
	cleanup_free bool *doomed = find_doomed(p);
	bool *needed = xcalloc(p->g->n, sizeof(*needed));

	for (size_t i = p->g->n; i-- > 0;) {
		const struct task *t = &p->tasks[i];
		const struct node *n = t->node;
		bool may_run = t->state != TASK_DONE && !t->found && !n->left_out &&
			       (despite || !doomed[i]);

		needed[i] = may_run;
		if (!may_run || (!node_is_group(n) && !n->def->persistent))
			continue;
		needed[i] = requested && n->requested;
		for (size_t d = 0; d < n->ndependents && !needed[i]; d++)
			needed[i] = needed[n->dependents[d]->index];
	}
	return needed;
}

int
plan_init(struct plan *p, const struct workspace *w, struct graph *g, struct files *files_take,
	struct filehash *fh, enum sandbox_mode mode, const char *const *forward, size_t nforward,
	struct err *e)
{
	*p = (struct plan){
		.text = STRBUF_INIT,
		.ids = STRBUF_INIT,
		.manifest = STRBUF_INIT,
		.w = w,
		.g = g,
		.files = *files_take,
		.fh = fh,
		.forward = forward,
		.nforward = nforward,
	};
	*files_take = (struct files){0};
	probe_set_init(&p->probes);
	p->mask = secrets_mask(environ, g);
	p->platform = key_platform();
	p->tasks = xcalloc_large(g->n, sizeof(*p->tasks));
	if (fingerprint_take(&p->fingerprint, fh, w->rootfd, e))
		return -1;
	for (size_t i = 0; i < g->n; i++) {
		struct node *n = g->nodes[i];
		struct task *t = &p->tasks[i];

		t->node = n;
		strbuf_init(&t->key_text);
		t->is_unfolded = n->nfolded != n->ndeps;
		t->deps_left = n->ndeps;
		t->status = TASK_NOT_RUN;
		t->sandboxed =
			!node_is_idle(n) &&
			(mode == SANDBOX_ALL || (mode == SANDBOX_AS_DECLARED && n->def->sandbox));
		for (size_t d = 0; d < n->ndeps; d++) {
			const struct task *up = plan_task(p, n->deps[d]);

			t->late |= up->late || up->unsettles;
			t->is_unfolded |= up->is_unfolded;
		}
		t->late |= n->reads_ahead;
		p->outputs_are_inputs |= n->reads_ahead || taskdef_leaves_project(n->def);
		t->may_move = fingerprint_may_move(&p->fingerprint, n, t->sandboxed, w->path);
		t->unsettles = unsettles(t);
		add_probes(p, t, t->is_unfolded);
	}
	find_surfaced(p);
	find_foreground(p);
	return 0;
}

void
plan_release(struct plan *p)
{
	for (size_t i = 0; p->tasks && i < p->g->n; i++) {
		inputs_release(&p->tasks[i].inputs);
		free(p->tasks[i].probes);
		free(p->tasks[i].placed_on);
		free(p->tasks[i].why);
		strbuf_release(&p->tasks[i].key_text);
	}
	probe_set_release(&p->probes);
	fingerprint_release(&p->fingerprint);
	free(p->tasks);
	strbuf_release(&p->text);
	strbuf_release(&p->ids);
	strbuf_release(&p->manifest);
	free(p->inputs);
	free(p->upstream);
	mask_free(p->mask);
	free(p->platform);
	files_release(&p->files);
	*p = (struct plan){0};
}

int
plan_list_files(struct plan *p, struct err *e)
{
	struct files_request rq;
	struct files fresh = {0};

	if (files_start(p->w->rootfd, p->w->path, &rq, e))
		return -1;
	if (files_finish(&rq, p->w->rootfd, &fresh, e))
		return -1;
	/* Inputs borrow their paths from the list: what is still to be keyed is keyed anew, what
	 * was executed needs its inputs no more than for their names, which inputs_resolve gives
	 * again. */
	for (size_t i = 0; i < p->g->n; i++)
		inputs_release(&p->tasks[i].inputs);
	files_release(&p->files);
	p->files = fresh;
	return 0;
}

static int
manifest_identity(struct plan *p, const struct project *pr, struct strbuf *out, struct err *e)
{
	struct file_id id;

	strbuf_reset(out);
	if (!pr->has_manifest) {
		strbuf_adds(out, "absent");
		return 0;
	}
	strbuf_adds(out, pr->dir);
	path_append(out, "package.json");
	if (filehash_get(p->fh, p->w->rootfd, out->buf, &id, e))
		return -1;
	strbuf_reset(out);
	file_id_text(&id, out);
	return 0;
}

/* Into p->upstream. */
static void
upstream_keys(struct plan *p, const struct node *n)
{
	GROW(p->upstream, n->nfolded, p->upstream_cap);
	for (size_t i = 0; i < n->nfolded; i++)
		p->upstream[i] = plan_task(p, n->folded[i])->key;
}

int
plan_inputs(struct plan *p, struct task *t, struct err *e)
{
	if (t->inputs.paths)
		return 0;
	return inputs_resolve(
		p->w->rootfd, &p->files, t->node->project, t->node->def, &t->inputs, e);
}

/* What the task's probes said, into an array of as many. */
static int
runtime_values(const struct task *t, struct key_runtime *ret, struct err *e)
{
	for (size_t i = 0; i < t->nprobes; i++) {
		const struct probe *p = t->probes[i];

		if (!p->ended)
			bug("%s: a key before its probes", t->node->id);
		if (err_is_set(&p->why))
			return err_set(e, p->why.kind, 0, "%s", p->why.text);
		ret[i] = (struct key_runtime){
			p->command, p->out.buf, p->err.buf, p->out.len, p->err.len};
	}
	return 0;
}

/* Into p->inputs. */
static int
input_identities(struct plan *p, const struct task *t, struct err *e)
{
	const struct inputs *in = &t->inputs;

	GROW(p->inputs, in->n, p->inputs_cap);
	strbuf_reset(&p->ids);
	/* Room for all, so that the first stays where it is. */
	strbuf_grow(&p->ids, in->n * FILE_ID_TEXT_MAX);
	for (size_t i = 0; i < in->n; i++) {
		struct file_id id;

		if (filehash_get(p->fh, p->w->rootfd, in->paths[i], &id, e))
			return -1;
		if (id.kind == FILE_ABSENT &&
			inputs_check_absent(p->w->rootfd, &p->files, t->node->project, t->node->def,
				in->paths[i], e))
			return -1;
		p->inputs[i] = (struct key_input){in->paths[i], p->ids.buf + p->ids.len};
		file_id_text(&id, &p->ids);
		strbuf_addch(&p->ids, '\0');
	}
	return 0;
}

static int
command_key(struct plan *p, struct task *t, struct err *e)
{
	const struct node *n = t->node;
	const struct taskdef *def = n->def;
	size_t nenv = def->cache ? def->cache->nenv : 0;
	size_t nruntime = def->cache ? def->cache->nruntime : 0;
	cleanup_free struct key_env *env = nenv ? xcalloc(nenv, sizeof(*env)) : NULL;
	cleanup_free struct key_runtime *runtime =
		t->nprobes ? xcalloc(t->nprobes, sizeof(*runtime)) : NULL;

	for (size_t i = 0; i < nenv; i++)
		env[i] = (struct key_env){def->cache->env[i], getenv(def->cache->env[i])};
	if (plan_inputs(p, t, e) || input_identities(p, t, e) ||
		manifest_identity(p, n->project, &p->manifest, e) || runtime_values(t, runtime, e))
		return -1;
	strbuf_reset(&p->text);
	p->text_of = t;
	key_compute(
		&(struct key_parts){
			.task = n->id,
			.platform = p->platform,
			.workspace = &p->fingerprint.digest,
			.manifest = p->manifest.buf,
			.config = def->canonical,
			.forward_args = p->forward,
			.nforward_args = n->requested ? p->nforward : 0,
			.env = env,
			.nenv = nenv,
			.runtime = runtime,
			.nruntime = nruntime,
			.ws_runtime = runtime ? runtime + nruntime : NULL,
			.nws_runtime = t->nprobes - nruntime,
			.upstream = p->upstream,
			.nupstream = n->nfolded,
			.inputs = p->inputs,
			.ninputs = t->inputs.n,
		},
		&t->key, &p->text);
	return 0;
}

int
plan_key(struct plan *p, struct task *t, struct err *e)
{
	uint64_t begun = timing_begin();
	int r = 0;

	upstream_keys(p, t->node);
	if (node_is_group(t->node))
		key_group(p->upstream, t->node->nfolded, &t->key);
	else if (command_key(p, t, e))
		/* An error in a config names the place, which says more. */
		r = e->kind == ERR_CONFIG ? -1 : err_wrap(e, "task %s", t->node->id);
	timing_end("task hash", begun);
	t->has_key = !r;
	t->keyed_at = filehash_changes(p->fh);
	return r;
}

/* The key once more. 1: it is what it was; 0: not so, and *ret_what (owned) names the first input that has
 * changed. The task keeps the one that it had. */
static int
key_again(struct plan *p, struct task *t, const char *manifest, char **ret_what, struct err *e)
{
	struct digest before = t->key;
	uint64_t since = t->keyed_at;
	const char *what = NULL;

	if (plan_key(p, t, e))
		return -1;
	if (digest_equal(&before, &t->key))
		return 1;
	t->key = before;
	p->text_of = NULL;
	for (size_t i = 0; i < t->inputs.n && !what; i++)
		if (filehash_changed_since(p->fh, t->inputs.paths[i], since))
			what = t->inputs.paths[i];
	if (!what && filehash_changed_since(p->fh, manifest, since))
		what = manifest;
	/* A name that came or went, where the files were listed anew. */
	*ret_what = xstrdup(what ? what : "an input");
	return 0;
}

int
plan_text(struct plan *p, struct task *t, struct err *e)
{
	cleanup_free char *manifest = path_join(t->node->project->dir, "package.json");
	cleanup_free char *what = NULL;

	return p->text_of == t ? 1 : key_again(p, t, manifest, &what, e);
}

int
plan_begin(struct plan *p, struct task *t, struct moment *m, char **ret_what, struct err *e)
{
	cleanup_free char *manifest = path_join(t->node->project->dir, "package.json");

	if (plan_inputs(p, t, e))
		return -1;
	/* First: what changes between the two looks has changed since the moment. */
	moment_take(m, p->w->rootfd, t->inputs.paths, t->inputs.n,
		t->node->project->has_manifest ? manifest : NULL);
	return key_again(p, t, manifest, ret_what, e);
}

int
plan_look_up(
	struct plan *p, struct task *t, struct index *ix, enum entry_making least, struct err *e)
{
	uint64_t begun = timing_begin();
	int r;

	(void)p;
	t->found = false;
	r = index_get(ix, &t->key, &t->entry, e);
	timing_end("cache.get", begun);
	if (r < 0)
		return err_wrap(e, "task %s", t->node->id);
	t->answered = true;
	t->found = r && t->entry.making >= least;
	t->too_weak = r && !t->found;
	return 0;
}

static int64_t
stamp_ns(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

/* Whether a directory that holds an input has had a name come or go since. */
static bool
directory_changed(const struct plan *p, const struct task *t, int64_t since_ns)
{
	cleanup_strbuf struct strbuf last = STRBUF_INIT, dir = STRBUF_INIT;

	for (size_t i = 0; i < t->inputs.n; i++) {
		struct stat st;

		strbuf_reset(&dir);
		strbuf_add(&dir, t->inputs.paths[i], path_parent_len(t->inputs.paths[i]));
		if (i && !strcmp(dir.buf, last.buf))
			continue;
		strbuf_reset(&last);
		strbuf_add(&last, dir.buf, dir.len);
		if (fs_stat_beneath(p->w->rootfd, dir.buf, &st) ||
			stamp_ns(&st.st_ctim) >= since_ns)
			return true;
	}
	return false;
}

/* Lists the files anew and compares the task's inputs by name. */
static int
names_changed(struct plan *p, struct task *t, char **ret_what, struct err *e)
{
	struct files_request rq;
	struct files now = {0};
	struct inputs in = {0};
	const char *what = NULL;
	size_t i = 0;

	if (files_start(p->w->rootfd, p->w->path, &rq, e) ||
		files_finish(&rq, p->w->rootfd, &now, e))
		return -1;
	if (inputs_resolve(p->w->rootfd, &now, t->node->project, t->node->def, &in, e)) {
		files_release(&now);
		return -1;
	}
	while (i < in.n && i < t->inputs.n && !strcmp(in.paths[i], t->inputs.paths[i]))
		i++;
	if (i < in.n && (i >= t->inputs.n || strcmp(in.paths[i], t->inputs.paths[i]) < 0))
		what = in.paths[i];
	else if (i < t->inputs.n)
		what = t->inputs.paths[i];
	if (what)
		*ret_what = xstrdup(what);
	inputs_release(&in);
	files_release(&now);
	return what != NULL;
}

int
plan_still_true(struct plan *p, struct task *t, const struct moment *m, int64_t started_ns,
	char **ret_what, struct err *e)
{
	cleanup_free char *manifest = path_join(t->node->project->dir, "package.json");
	const char *what = moment_find_change(m, p->w->rootfd);
	int r;

	if (what) {
		*ret_what = xstrdup(what);
		return 0;
	}
	/* A write in the tick of the one before it shows in the digest alone. */
	r = key_again(p, t, manifest, ret_what, e);
	if (r != 1)
		return r;
	if (!directory_changed(p, t, started_ns - RACY_WINDOW_NS))
		return 1;
	r = names_changed(p, t, ret_what, e);
	return r < 0 ? -1 : !r;
}

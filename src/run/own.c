/* SPDX-License-Identifier: MIT */
/*
 * Whose the files are that a task's outputs select. What the task's last stamp names vx made itself;
 * what git ignores is nobody's; the rest is looked at before any of it is removed: what git could not
 * give back fails the task (docs/CACHE.md, "What is never removed").
 *
 * A link to a directory on the way to outputs is followed, and a task can make one: what lies behind it may
 * be anybody's sources. So behind a link only the very files are vx's that it has seen a task make there, and a
 * link that has come while a task ran is not followed for it.
 *
 * Where rules.exclusiveOutputs is off, outputs can be of several tasks: an owner, and tasks behind it
 * that add to what is there. Whose a name is, stamps say.
 */
#include "cache/store.h"
#include "cache/tree.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/path.h"
#include "util/strvec.h"
#include "util/timing.h"
#include "workspace/precious.h"
#include "workspace/workspace.h"

struct check {
	struct sched *s;
	const struct task *t;
	const struct globset *set;
	const char **nested;
	struct outputs roots; /* links on the way */
	struct strvec names;  /* of the files in question, as outputs: sorted, unique */
};

static void
add_name(struct check *c, const char *name)
{
	for (size_t i = 0; i < c->roots.nroots; i++)
		if (!strcmp(name, c->roots.roots[i].path))
			return; /* a link on the way stays */
	if (outputs_select(c->set, c->nested, c->t->node->project->nnested, name))
		strvec_push(&c->names, name);
}

/* The listed files at or below the head of a glob; not those behind a link, see check_behind. */
static void
add_below(struct check *c, const char *head)
{
	const struct files *files = &c->s->plan->files;
	size_t from, to;

	files_below(files, head, &from, &to);
	for (size_t i = from; i < to; i++)
		add_name(c, files->paths[i]);
}

/* Heads may lie in one another. */
static void
sort_names(struct strvec *names)
{
	size_t n = 0;

	strvec_sort(names);
	for (size_t i = 0; i < names->n; i++) {
		if (n && !strcmp(names->v[i], names->v[n - 1]))
			free(names->v[i]);
		else
			names->v[n++] = names->v[i];
	}
	names->n = n;
}

static int
find_names(struct check *c, struct err *e)
{
	if (outputs_find_roots(c->s->plan->w->rootfd, c->set, c->nested,
		    c->t->node->project->nnested, &c->roots, e))
		return -1;
	for (size_t i = 0; i < c->set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(c->set->pos[i]); k++)
			add_below(c, glob_literal_head(c->set->pos[i], k));
	if (c->names.n)
		sort_names(&c->names);
	return 0;
}

static void
drop_stamped(struct check *c, const struct node *by)
{
	struct strvec *names = &c->names;
	cleanup_free bool *stamped = NULL;
	struct err why = ERR_INIT;
	size_t n = 0;

	if (!names->n || !c->s->o->stamps)
		return;
	stamped = xcalloc(names->n, sizeof(*stamped));
	/* Not known to be vx's: git is asked. */
	if (index_stamped(c->s->o->stamps, by->id, (const char *const *)names->v, names->n, stamped,
		    &why)) {
		sched_index_failed(c->s, &why);
		return;
	}
	for (size_t i = 0; i < names->n; i++) {
		if (stamped[i])
			free(names->v[i]);
		else
			names->v[n++] = names->v[i];
	}
	names->n = n;
}

static bool
is_behind(const struct outputs *o, const char *path)
{
	for (size_t i = 0; i < o->nroots; i++)
		if (path_is_within(path, o->roots[i].path) && strcmp(path, o->roots[i].path) != 0)
			return true;
	return false;
}

static int
refuse_behind(const struct check *c, const char *path, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, real = STRBUF_INIT, buf = STRBUF_INIT;
	const char *at = outputs_real(&c->roots, path, &buf);

	strbuf_add_sanitised(&name, path, strlen(path));
	strbuf_add_sanitised(&real, at, strlen(at));
	return err_set(e, ERR_CONFIG, 0,
		"an output directory is a link, so %s is %s, and no run of this task is known to "
		"have made it: vx would delete it. Move it away, or declare the outputs where they "
		"are",
		name.buf, real.buf);
}

/* A stamp that cannot be read names nothing. */
static void
find_stamped_files(
	const struct check *c, const struct node *by, const struct outputs *now, bool *known)
{
	struct err why = ERR_INIT;

	if (index_stamped_files(c->s->o->stamps, by->id, now, known, &why))
		sched_index_failed(c->s, &why);
}

/* Also what git ignores, unlike elsewhere. */
static int
check_behind(const struct check *c, struct err *e)
{
	const struct node *node = c->t->node;
	cleanup_free bool *known = NULL;
	struct outputs now = {0};
	int r;

	if (!c->roots.nroots)
		return 0;
	r = outputs_scan(c->s->plan->w->rootfd, c->set, c->nested, node->project->nnested, &now, e);
	known = xcalloc(now.n + 1, sizeof(*known));
	if (!r && c->s->o->stamps) {
		find_stamped_files(c, node, &now, known);
		for (size_t i = 0; i < node->nadds_to; i++)
			find_stamped_files(c, node->adds_to[i], &now, known);
		for (size_t i = 0; i < node->nadded_by; i++)
			find_stamped_files(c, node->added_by[i], &now, known);
	}
	for (size_t i = 0; i < now.n && !r; i++)
		if (now.v[i].type != OUTPUT_DIR && !known[i] && is_behind(&c->roots, now.v[i].path))
			r = refuse_behind(c, now.v[i].path, e);
	outputs_release(&now);
	return r;
}

int
own_links_hold(const struct job *j, const struct outputs *now, struct err *e)
{
	const struct outputs *then = &j->links;

	for (size_t i = 0; i < now->nroots; i++) {
		const struct output_root *root = &now->roots[i];
		cleanup_strbuf struct strbuf name = STRBUF_INIT;
		size_t k = 0;

		while (k < then->nroots && (strcmp(then->roots[k].path, root->path) != 0 ||
						   strcmp(then->roots[k].real, root->real) != 0))
			k++;
		if (k < then->nroots)
			continue;
		strbuf_add_sanitised(&name, root->path, strlen(root->path));
		return err_set(e, ERR_IO, 0,
			"the output directory %s has become a link while it ran: what is behind it "
			"is not taken for outputs",
			name.buf);
	}
	return 0;
}

static const struct glob *
selecting_glob(const struct check *c, const char *name)
{
	size_t i = 0;

	while (i + 1 < c->set->npos && !(glob_match(c->set->pos[i], name) &&
					       path_is_within(name, glob_base(c->set->pos[i]))))
		i++;
	return c->set->pos[i];
}

/* The name as the glob that selects it would spell it. */
static void
add_shown(const struct check *c, const char *name, struct strbuf *out)
{
	const char *shown = path_below(name, glob_base(selecting_glob(c, name)));

	strbuf_add_sanitised(out, shown, strlen(shown));
}

static int
refuse(const struct check *c, size_t at, const char *why, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	add_shown(c, c->names.v[at], &name);
	return err_set(e, ERR_CONFIG, 0,
		"cache.outputs \"%s\" selects %s, %s: vx would delete it. Exclude it (\"!%s\"), "
		"commit "
		"it, or name the outputs more narrowly",
		glob_text(selecting_glob(c, c->names.v[at])), name.buf, why, name.buf);
}

static void
note_removed(const struct check *c, size_t n, size_t first, const char *what, struct strvec *notes)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	if (!n)
		return;
	add_shown(c, c->names.v[first], &name);
	if (n == 1)
		strvec_pushf(notes, "removed 1 file that %s (%s): cache.outputs selects it", what,
			name.buf);
	else
		strvec_pushf(notes, "removed %zu files that %s (%s, …): cache.outputs selects them",
			n, what, name.buf);
}

/* Whether the directory is one that the glob can have named: not the project's own, nor one above. */
static bool
is_among(const struct glob *g, const char *dir)
{
	for (size_t k = 0; k < glob_nalternatives(g); k++)
		if (path_is_within(dir, glob_literal_head(g, k)) && strcmp(dir, glob_base(g)) != 0)
			return true;
	return false;
}

static bool
is_repository(const struct check *c, const char *dir)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	cleanup_free char *git = path_join(outputs_real(&c->roots, dir, &buf), ".git");
	struct stat st;

	return !fs_stat_beneath(c->s->plan->w->rootfd, git, &st);
}

static int
refuse_repository(const struct check *c, const char *path, const char *dir, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, repo = STRBUF_INIT;
	const struct glob *g = selecting_glob(c, path);
	const char *shown = path_below(dir, glob_base(g));

	add_shown(c, path, &name);
	strbuf_add_sanitised(&repo, shown, strlen(shown));
	return err_set(e, ERR_CONFIG, 0,
		"cache.outputs \"%s\" selects %s, in the git repository %s, and no run of this "
		"task is known to have made it: vx would delete it. Move the repository away, "
		"exclude it (\"!%s\"), or name the outputs more narrowly",
		glob_text(g), name.buf, repo.buf, repo.buf);
}

/* Files of a repository among the outputs: the one around it knows nothing of them. */
static int
check_repositories(const struct check *c, struct err *e)
{
	cleanup_strbuf struct strbuf last = STRBUF_INIT;

	for (size_t i = 0; i < c->names.n; i++) {
		const char *path = c->names.v[i];
		const struct glob *g = selecting_glob(c, path);
		cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

		/* They are sorted: mostly it is the directory of the one before. */
		if (i && !strcmp(dir, last.buf))
			continue;
		strbuf_reset(&last);
		strbuf_adds(&last, dir);
		for (; is_among(g, dir); dir[path_parent_len(dir)] = '\0')
			if (is_repository(c, dir))
				return refuse_repository(c, path, dir, e);
	}
	return 0;
}

/* Whether an output that selects the name takes in all that this entry of the inputs does. One that takes a part
 * of it ("dist" of "**") says what of it the task makes. */
static const struct glob *
swallowing_output(const struct check *c, const struct glob *input, const char *name)
{
	for (size_t i = 0; i < c->set->npos; i++) {
		const struct glob *by = c->set->pos[i];
		size_t n = glob_nalternatives(input), k = 0;

		if (!glob_match(by, name) || globset_excludes(c->set, by, name))
			continue;
		while (k < n &&
			(glob_covers(by, input, k) || !strcmp(glob_literal_head(input, k), name)))
			k++;
		if (k == n)
			return by;
	}
	return NULL;
}

static int
check_input(const struct check *c, const struct globset *inputs, size_t at, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	const char *path = c->names.v[at];

	for (size_t i = 0; i < inputs->npos; i++) {
		const struct glob *input = inputs->pos[i], *by;

		if (!glob_match(input, path) || globset_excludes(inputs, input, path))
			continue;
		by = swallowing_output(c, input, path);
		if (!by)
			continue;
		add_shown(c, path, &name);
		return err_set(e, ERR_CONFIG, 0,
			"cache.outputs \"%s\" selects %s, an input by \"%s\" that no run of this "
			"task is known to have made: vx would delete it. Exclude it (\"!%s\"), "
			"name "
			"the outputs more narrowly, or, where the task makes it, take it out of "
			"the "
			"inputs",
			glob_text(by), name.buf, glob_text(input), name.buf);
	}
	return 0;
}

/* What the task declares to read is nobody's left-over, be it in git or not. */
static int
check_inputs(const struct check *c, struct err *e)
{
	const struct cachedef *cache = c->t->node->def->cache;

	for (size_t i = 0; i < c->names.n; i++)
		if (check_input(c, &cache->files, i, e) ||
			check_input(c, &cache->workspace_files, i, e))
			return -1;
	return 0;
}

/* The names in question are in c->names, and all lie at or below `dir`. */
static int
judge(const struct check *c, const char *dir, struct strvec *notes, struct err *e)
{
	const struct workspace *w = c->s->plan->w;
	cleanup_strvec struct strvec paths = STRVEC_INIT;
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	struct precious p;
	int r;

	for (size_t i = 0; i < c->names.n; i++)
		strvec_push(&paths, outputs_real(&c->roots, c->names.v[i], &buf));
	r = precious_find(w->rootfd, w->path, dir, (const char *const *)paths.v, paths.n, &p, e);
	if (r <= 0)
		return r;
	if (p.nchanged)
		return refuse(c, p.changed, "which has changes that git does not have", e);
	if (p.nuntracked && p.among_tracked)
		return refuse(
			c, p.untracked, "which git does not have, among files that it tracks", e);
	if (p.nothing_tracked)
		return refuse(c, p.untracked,
			"which git does not have, as it tracks nothing of this project yet", e);
	note_removed(c, p.nheld, p.held, "git tracks", notes);
	note_removed(c, p.nuntracked, p.untracked, "git does not have and no run made", notes);
	return 0;
}

/* The directory of which git may track nothing yet: that of the project the name lies in. */
static const char *
home_of(const struct check *c, const char *name)
{
	const struct project *p = workspace_project_at(c->s->plan->w, name);

	/* Behind a link on the way they may be anywhere. */
	return c->roots.nroots || !p ? "" : p->dir;
}

/* Project by project, as their globs may reach into several; mostly there is one. */
static int
judge_all(struct check *c, struct strvec *notes, struct err *e)
{
	struct strvec left = c->names;
	int r = 0;

	strvec_init(&c->names);
	while (left.n && !r) {
		const char *dir = home_of(c, left.v[0]);
		size_t n = 0;

		for (size_t i = 0; i < left.n; i++) {
			if (!strcmp(home_of(c, left.v[i]), dir))
				strvec_push_take(&c->names, left.v[i]);
			else
				left.v[n++] = left.v[i];
		}
		left.n = n;
		r = judge(c, dir, notes, e);
		strvec_release(&c->names);
	}
	strvec_release(&left);
	return r;
}

/* What a restore of a task that adds to others' outputs puts its own in the place of. */
static int
find_replaced(struct check *c, struct err *e)
{
	const struct task *t = c->t;
	const struct files *files = &c->s->plan->files;
	struct strvec *names = &c->names;
	size_t n = 0;
	int r = 1;

	strvec_release(names);
	if (t->entry.has_tree)
		r = tree_names(c->s->o->store, &t->entry.tree, c->s->plan->w->rootfd, c->set,
			c->nested, t->node->project->nnested, names, e);
	for (size_t i = 0; i < names->n; i++) {
		cleanup_strbuf struct strbuf buf = STRBUF_INIT;
		const char *real = outputs_real(&c->roots, names->v[i], &buf);
		size_t from, to;

		files_below(files, real, &from, &to);
		if (from < to && !strcmp(files->paths[from], real))
			names->v[n++] = names->v[i];
		else
			free(names->v[i]);
	}
	names->n = n;
	if (n)
		sort_names(names);
	/* A damaged tree is told when it is restored. */
	return r < 0 ? -1 : 0;
}

int
own_check(
	struct sched *s, const struct task *t, bool restoring, struct strvec *notes, struct err *e)
{
	const struct node *node = t->node;
	struct check c = {.s = s, .t = t, .set = &node->def->cache->outputs};
	int r;

	/* One that adds removes, before it runs, only what it added. */
	if (!c.set->npos || (own_is_additive(t) && !restoring))
		return 0;
	c.nested = sched_nested_dirs(node->project);
	r = find_names(&c, e);
	if (!r)
		r = check_behind(&c, e);
	if (!r && own_is_additive(t))
		r = find_replaced(&c, e);
	drop_stamped(&c, node);
	for (size_t i = 0; i < node->nadds_to; i++)
		drop_stamped(&c, node->adds_to[i]);
	for (size_t i = 0; i < node->nadded_by; i++)
		drop_stamped(&c, node->added_by[i]);
	if (!r)
		r = check_repositories(&c, e);
	if (!r)
		r = check_inputs(&c, e);
	if (!r && c.names.n)
		r = judge_all(&c, notes, e);
	outputs_release(&c.roots);
	strvec_release(&c.names);
	free(c.nested);
	return r;
}

/* Shared outputs. */

static int
add_stamped(
	struct sched *s, const struct node *const *v, size_t n, struct strvec *ret, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (index_stamped_names(s->o->stamps, v[i]->id, ret, e))
			return -1;
	if (ret->n)
		sort_names(ret);
	return 0;
}

/* Leaves in `names` those that are not among the others, nor directories in which one of those is. */
static void
subtract(struct strvec *names, const struct strvec *others)
{
	const struct outputs_part rest = {others, true};
	size_t n = 0;

	for (size_t i = 0; i < names->n; i++) {
		if (outputs_is_mine(&rest, names->v[i]))
			names->v[n++] = names->v[i];
		else
			free(names->v[i]);
	}
	names->n = n;
}

int
own_find(struct sched *s, const struct task *t, struct own *ret, struct err *e)
{
	const struct node *node = t->node;
	cleanup_strvec struct strvec mine = STRVEC_INIT, others = STRVEC_INIT;
	bool adds = own_is_additive(t);

	*ret = (struct own){.shared = adds || node->nadded_by, .part = {&ret->names, !adds}};
	if (!ret->shared || !s->o->stamps)
		return 0;
	if (add_stamped(s, (const struct node *const *)&t->node, 1, &mine, e) ||
		add_stamped(s, adds ? node->adds_to : node->added_by,
			adds ? node->nadds_to : node->nadded_by, &others, e))
		return -1;
	/* A name that both have is the owner's: the other one wrote to it. */
	if (adds) {
		subtract(&mine, &others);
		ret->names = mine;
		strvec_init(&mine);
	} else {
		subtract(&others, &mine);
		ret->names = others;
		strvec_init(&others);
	}
	return 0;
}

void
own_release(struct own *o)
{
	strvec_release(&o->names);
}

/* Whether some task that adds to these outputs could have made the name, or something in it. */
static bool
may_be_added(const struct task *t, const struct output *out)
{
	for (size_t i = 0; i < t->node->nadded_by; i++) {
		const struct node *by = t->node->added_by[i];
		const struct globset *set = &by->def->cache->outputs;
		cleanup_free const char **nested = sched_nested_dirs(by->project);

		if (outputs_select(set, nested, by->project->nnested, out->path) ||
			(out->type == OUTPUT_DIR && globset_may_match_below(set, out->path)))
			return true;
	}
	return false;
}

static int
is_current_beside(struct sched *s, const struct task *t, struct err *e)
{
	const struct project *p = t->node->project;
	cleanup_free const char **nested = sched_nested_dirs(p);
	cleanup_strvec struct strvec strays = STRVEC_INIT;
	struct outputs now = {0};
	int r = -1;

	if (!outputs_scan(
		    s->plan->w->rootfd, &t->node->def->cache->outputs, nested, p->nnested, &now, e))
		r = index_is_among(s->o->index, t->node->id, &t->key, &now, &strays, e);
	for (size_t i = 0; r > 0 && i < strays.n; i++)
		r = may_be_added(t, outputs_find(&now, strays.v[i]));
	outputs_release(&now);
	return r;
}

/* What times cannot tell, content does: then a stamp that was made later says so. */
static int
is_there(struct sched *s, const struct task *t, struct err *e)
{
	const struct node *n = t->node;
	int root = s->plan->w->rootfd;
	int r = index_is_unsure(s->o->index, root, n->id, &t->key, e);
	cleanup_free const char **nested = NULL;
	struct outputs now = {0};

	if (r <= 0)
		return r;
	nested = sched_nested_dirs(n->project);
	r = tree_is_there(s->o->store, t->entry.has_tree ? &t->entry.tree : NULL, root,
		&n->def->cache->outputs, nested, n->project->nnested, &now, e);
	if (r > 0 && index_stamp(s->o->index, n->id, &t->key, &now, e))
		r = -1;
	outputs_release(&now);
	return r;
}

int
own_is_current(struct sched *s, const struct task *t, struct err *e)
{
	uint64_t begun = timing_begin();
	int r = index_is_current(s->o->index, s->plan->w->rootfd, t->node->id, &t->key, e);

	timing_end("output stat", begun);
	/* Of outputs that several tasks have, an unsure stamp is none. */
	if (!r && !t->node->nadded_by && !own_is_additive(t))
		return is_there(s, t, e);
	return r || !t->node->nadded_by || own_is_additive(t) ? r : is_current_beside(s, t, e);
}

void
own_remember(struct sched *s, struct job *j, struct exec_result *r)
{
	static const struct digest no_key;
	const struct task *t = j->task;
	const struct globset *set = &t->node->def->cache->outputs;
	cleanup_free const char **nested = NULL;
	cleanup_free char *gone = NULL;
	struct outputs now = {0}, made = {0};
	struct err e = ERR_INIT;
	int fd, rc;

	if (!set->npos || !s->o->stamps)
		return;
	nested = sched_nested_dirs(t->node->project);
	rc = outputs_scan(s->plan->w->rootfd, set, nested, t->node->project->nnested, &now, &e);
	outputs_drop_special(&now);
	if (!rc && own_links_hold(j, &now, &e)) {
		outputs_release(&now);
		rc = index_unstamp(s->o->stamps, t->node->id, &e);
		return;
	}
	if (!rc && own_is_additive(t)) {
		rc = settle_made(s, j, r, &made, &fd, &gone, &e);
		outputs_only(&now, &made);
	}
	if (rc || index_stamp(s->o->stamps, t->node->id, &no_key, &now, &e))
		log_debug("run", "%s: its outputs are not remembered: %s", t->node->id, e.text);
	outputs_release(&now);
	outputs_release(&made);
}

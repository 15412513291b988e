/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"
#include "config/upstream.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/log.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"
#include <errno.h>

/* A node while its edges are being found. */
struct growing {
	struct node n;
	struct node **up;
	size_t nup, up_cap;
};

struct building {
	struct workspace *w;
	struct graph *g;
	struct growing ***by_project; /* by project index, then by task index; NULL: none yet */
	struct growing **items;       /* those before `done` have their edges */
	size_t n, cap, done;
	uint32_t *seen; /* by project index: the walk that saw it last */
	uint32_t walk;
	struct project **stack;
	struct htab task_names; /* every task name that some project declares */
	size_t nunnamed;        /* of the projects: undefined when they were collected */
	bool names_are_lost;    /* a config that would be needed for them fails */
};

static struct growing *
node_of(struct building *b, struct project *p, struct taskdef *def)
{
	struct growing ***slot = &b->by_project[p->index], *it;
	size_t task = (size_t)(def - p->def.tasks);

	if (!*slot)
		*slot = arena_array(&b->g->arena, p->def.ntasks, struct growing *);
	if ((*slot)[task])
		return (*slot)[task];
	it = arena_new(&b->g->arena, struct growing);
	it->n.id = arena_printf(&b->g->arena, "%s#%s", p->is_root ? "//" : p->name, def->name);
	it->n.project = p;
	it->n.def = def;
	(*slot)[task] = it;
	GROW(b->items, b->n + 1, b->cap);
	b->items[b->n++] = it;
	return it;
}

static void
add_edge(struct building *b, struct growing *from, struct project *p, struct taskdef *def)
{
	struct growing *to = node_of(b, p, def);

	GROW(from->up, from->nup + 1, from->up_cap);
	from->up[from->nup++] = &to->n;
}

/* Edges to the tasks of `p` that the name or pattern means; whether there were any. A pattern never
 * means the task that it stands in. */
static bool
add_holder(struct building *b, struct growing *from, struct project *p, const char *task)
{
	struct taskdef *def;
	bool any = false;

	if (!strchr(task, '*')) {
		def = project_task(p, task);
		if (def)
			add_edge(b, from, p, def);
		return def;
	}
	for (size_t i = 0; i < p->def.ntasks; i++) {
		def = &p->def.tasks[i];
		if (def == from->n.def || !name_matches(task, def->name))
			continue;
		add_edge(b, from, p, def);
		any = true;
	}
	return any;
}

/* The nearest-holder frontier: on each path of order edges the first package that has the task;
 * packages without it are passed through. */
static void
add_frontier(struct building *b, struct growing *from, const char *task)
{
	struct project *start = from->n.project;
	size_t n = 0;

	b->walk++;
	b->seen[start->index] = b->walk;
	b->stack[n++] = start;
	while (n) {
		struct project *p = b->stack[--n];

		for (size_t i = 0; i < p->ndeps; i++) {
			struct project *dep = p->deps[i];

			if (b->seen[dep->index] == b->walk)
				continue;
			b->seen[dep->index] = b->walk;
			if (!add_holder(b, from, dep, task))
				b->stack[n++] = dep;
		}
	}
}

static int
refuse(const struct building *b, const struct growing *it, const struct depspec *d, struct err *e,
	const char *what, const char *near)
{
	cleanup_free char *place = workspace_entry_place(b->w, it->n.project, it->n.def->name,
		"dependsOn", (size_t)(d - it->n.def->depends_on));

	return err_set(e, ERR_CONFIG, 0, "%s: task %s: dependsOn \"%s\": %s%s%s%s", place, it->n.id,
		d->text, what, near ? "; did you mean \"" : "", near ? near : "",
		near ? "\"?" : "");
}

/* `p` lacks the task: the nearest name that it has, else what it has, else what it lacks. */
static int
refuse_task(const struct building *b, const struct growing *it, const struct depspec *d,
	const struct project *p, struct err *e)
{
	cleanup_free const char **names = xcalloc(p->def.ntasks, sizeof(*names));
	cleanup_strbuf struct strbuf what = STRBUF_INIT, tail = STRBUF_INIT;
	const char *near;

	for (size_t i = 0; i < p->def.ntasks; i++)
		names[i] = p->def.tasks[i].name;
	near = nearest_name(d->task, names, p->def.ntasks);
	if (near && d->form == DEP_PROJECT) {
		strbuf_addf(&tail, "%s#%s", d->project, near);
		near = tail.buf;
	}
	strbuf_addf(
		&what, "%s has no task \"%s\"", p->is_root ? "the root project" : p->name, d->task);
	for (size_t i = 0; !near && i < p->def.ntasks && i < 12; i++)
		strbuf_addf(&what, "%s%s", i ? ", " : "; it has ", names[i]);
	if (p->def.ntasks > 12 && !near)
		strbuf_addf(&what, " and %zu more", p->def.ntasks - 12);
	if (!p->config)
		strbuf_adds(&what, " (it has no vx.config.json)");
	return refuse(b, it, d, e, what.buf, near);
}

static int
refuse_project(
	const struct building *b, const struct growing *it, const struct depspec *d, struct err *e)
{
	cleanup_free const char **names = xcalloc(b->w->nprojects, sizeof(*names));
	cleanup_strbuf struct strbuf what = STRBUF_INIT, tail = STRBUF_INIT;
	const char *near;

	for (size_t i = 0; i < b->w->nprojects; i++)
		names[i] = b->w->projects[i]->name;
	near = nearest_name(d->project, names, b->w->nprojects);
	strbuf_addf(&what, "there is no project \"%s\"", d->project);
	if (near) {
		strbuf_addf(&tail, "%s#%s", near, d->task);
		near = tail.buf;
	}
	return refuse(b, it, d, e, what.buf, near);
}

/*
 * `^name` that nobody declares is legal (cases C35) and has no edges; but where it is within two
 * edits of a name that somebody does declare it is a slip of the pen, and the order that was meant
 * would silently be missing.
 */
static int
check_unheld(
	const struct building *b, const struct growing *it, const struct depspec *d, struct err *e)
{
	cleanup_free const char **names = xcalloc(b->task_names.n, sizeof(*names));
	cleanup_strbuf struct strbuf what = STRBUF_INIT, tail = STRBUF_INIT;
	const char *near;

	for (size_t i = 0; i < b->task_names.n; i++)
		names[i] = b->task_names.entries[i].key;
	near = nearest_name(d->task, names, b->task_names.n);
	if (!near)
		return 0;
	strbuf_addf(&what, "no project declares \"%s\"", d->task);
	strbuf_addf(&tail, "^%s", near);
	return refuse(b, it, d, e, what.buf, tail.buf);
}

static void
collect_task_names(struct building *b)
{
	for (size_t i = 0; i < b->w->nprojects; i++) {
		const struct projectdef *def = &b->w->projects[i]->def;

		for (size_t j = 0; j < def->ntasks; j++)
			htab_put(&b->task_names, def->tasks[j].name, &def->tasks[j]);
	}
	b->nunnamed = b->w->nundefined;
}

static bool
is_held(struct building *b, const char *task)
{
	bool held = htab_findn(&b->task_names, task, strlen(task));

	if (held || b->nunnamed == b->w->nundefined)
		return held;
	collect_task_names(b);
	return htab_findn(&b->task_names, task, strlen(task));
}

/*
 * Nobody that is known by now has the task, so that the scripts of all are needed to tell whether it is a slip. Where one of
 * them fails that has nothing else to do with the run, the name is let through. 1: all are known.
 */
static int
define_all(struct building *b, const struct depspec *d, struct err *e)
{
	struct err why = ERR_INIT;

	if (b->names_are_lost)
		return 0;
	if (!workspace_define(b->w, NULL, &why))
		return 1;
	if (why.num == ECANCELED) {
		*e = why;
		return -1;
	}
	log_debug("config", "whether anybody has %s is not known: %s", d->text, why.text);
	b->names_are_lost = true;
	return 0;
}

static int
add_upstream(struct building *b, struct growing *it, const struct depspec *d, struct err *e)
{
	if (!strchr(d->task, '*') && !is_held(b, d->task)) {
		int r = b->w->nundefined ? define_all(b, d, e) : 1;

		if (r <= 0)
			return r;
		if (!is_held(b, d->task))
			return check_unheld(b, it, d, e);
	}
	add_frontier(b, it, d->task);
	return 0;
}

static int
add_dependency(struct building *b, struct growing *it, const struct depspec *d, struct err *e)
{
	struct project *p = it->n.project;
	bool pattern = strchr(d->task, '*');

	switch (d->form) {
	case DEP_SELF:
		break;
	case DEP_PROJECT:
		p = workspace_project(b->w, d->project);
		if (!p)
			return refuse_project(b, it, d, e);
		break;
	case DEP_UPSTREAM:
		return add_upstream(b, it, d, e);
	}
	if (!add_holder(b, it, p, d->task) && !pattern)
		return refuse_task(b, it, d, p, e);
	return 0;
}

/* The scripts that the next nodes need: of a project that is named, and for "^" of all that this one reaches. */
static int
define_next(struct building *b, struct err *e)
{
	cleanup_free bool *named = NULL, *reaching = NULL;

	if (!b->w->nundefined)
		return 0;
	named = xcalloc(b->w->nprojects, sizeof(*named));
	reaching = xcalloc(b->w->nprojects, sizeof(*reaching));
	for (size_t i = b->done; i < b->n; i++) {
		const struct node *n = &b->items[i]->n;

		for (size_t k = 0; k < n->def->ndepends_on; k++) {
			const struct depspec *d = &n->def->depends_on[k];
			const struct project *p =
				d->form == DEP_PROJECT ? workspace_project(b->w, d->project) : NULL;

			if (p)
				named[p->index] = true;
			reaching[n->project->index] |= d->form == DEP_UPSTREAM;
		}
	}
	return workspace_define_reached(b->w, reaching, named, e);
}

static int
expand(struct building *b, struct err *e)
{
	while (b->done < b->n) {
		size_t end = b->n;

		if (define_next(b, e))
			return -1;
		while (b->done < end) {
			struct growing *it = b->items[b->done++];

			for (size_t i = 0; i < it->n.def->ndepends_on; i++)
				if (add_dependency(b, it, &it->n.def->depends_on[i], e) < 0)
					return -1;
		}
	}
	return 0;
}

int
graph_define_around(struct graph *g, struct err *e)
{
	struct workspace *w = g->w;
	cleanup_free bool *around = NULL;

	if (!w->nundefined)
		return 0;
	around = xcalloc(w->nprojects, sizeof(*around));
	for (size_t i = 0; i < g->n; i++) {
		const struct cachedef *cache = g->nodes[i]->def->cache;

		if (!cache ||
			(!cache->workspace_files.npos && !taskdef_leaves_project(g->nodes[i]->def)))
			continue;
		for (size_t k = 0; k < w->nprojects; k++) {
			const char *dir = w->projects[k]->dir;

			around[k] |= globset_may_match_below(&cache->workspace_files, dir) ||
				     globset_may_match_below(&cache->outputs, dir);
		}
	}
	return workspace_define(w, around, e);
}

static int
compare_id(const void *a, const void *b)
{
	return strcmp((*(struct node *const *)a)->id, (*(struct node *const *)b)->id);
}

static int
compare_index(const void *a, const void *b)
{
	size_t x = (*(struct node *const *)a)->index, y = (*(struct node *const *)b)->index;

	return x < y ? -1 : x > y;
}

/* Which of its dependencies' keys the node's own is made of. */
static void
store_folded(struct graph *g, struct node *n)
{
	const struct cachedef *cache = n->def->cache;

	n->folded = n->deps;
	n->nfolded = n->ndeps;
	if (!cache || !cache->tasks)
		return;
	n->folded = arena_array(&g->arena, n->ndeps, struct node *);
	n->nfolded = 0;
	for (size_t i = 0; i < n->ndeps; i++) {
		struct node *up = n->deps[i];

		if (upstream_folds(cache->tasks, cache->ntasks, up->project == n->project,
			    up->project->is_root, up->project->name, up->def->name))
			n->folded[n->nfolded++] = up;
	}
}

static void
store_deps(struct graph *g, struct growing *it)
{
	struct node *n = &it->n;

	if (!it->nup)
		return;
	qsort(it->up, it->nup, sizeof(struct node *), compare_index);
	n->deps = arena_array(&g->arena, it->nup, struct node *);
	for (size_t i = 0; i < it->nup; i++)
		if (!i || it->up[i] != it->up[i - 1])
			n->deps[n->ndeps++] = it->up[i];
	for (size_t i = 0; i < n->ndeps; i++)
		n->deps[i]->ndependents++;
	store_folded(g, n);
}

static void
store(struct building *b)
{
	struct graph *g = b->g;

	g->nodes = arena_array(&g->arena, b->n, struct node *);
	g->n = b->n;
	for (size_t i = 0; i < b->n; i++)
		g->nodes[i] = &b->items[i]->n;
	if (g->n)
		qsort(g->nodes, g->n, sizeof(struct node *), compare_id);
	for (size_t i = 0; i < g->n; i++) {
		g->nodes[i]->index = i;
		htab_put(&g->by_id, g->nodes[i]->id, g->nodes[i]);
	}
	for (size_t i = 0; i < b->n; i++)
		store_deps(g, b->items[i]);
	for (size_t i = 0; i < g->n; i++) {
		g->nodes[i]->dependents =
			arena_array(&g->arena, g->nodes[i]->ndependents, struct node *);
		g->nodes[i]->ndependents = 0;
	}
	/* In the order of ids, so every list comes out sorted. */
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; j < g->nodes[i]->ndeps; j++) {
			struct node *up = g->nodes[i]->deps[j];

			up->dependents[up->ndependents++] = g->nodes[i];
		}
}

int
graph_build(struct workspace *w, const struct request *requested, size_t n, struct graph *ret,
	struct err *e)
{
	struct graph g = {.w = w};
	struct building b = {.w = w, .g = &g};
	int r;

	arena_init(&g.arena);
	htab_init(&g.by_id);
	htab_init(&b.task_names);
	collect_task_names(&b);
	b.by_project = xcalloc(w->nprojects, sizeof(*b.by_project));
	b.seen = xcalloc(w->nprojects, sizeof(*b.seen));
	b.stack = xcalloc(w->nprojects, sizeof(struct project *));
	for (size_t i = 0; i < n; i++)
		node_of(&b, requested[i].project, requested[i].def)->n.requested = true;
	r = expand(&b, e);
	if (!r)
		store(&b);
	for (size_t i = 0; i < b.n; i++)
		free(b.items[i]->up);
	free(b.items);
	free(b.by_project);
	free(b.seen);
	free(b.stack);
	htab_release(&b.task_names);
	if (r < 0) {
		graph_release(&g);
		return -1;
	}
	*ret = g;
	return 0;
}

void
graph_release(struct graph *g)
{
	htab_release(&g->by_id);
	arena_release(&g->arena);
	*g = (struct graph){0};
}

struct node *
graph_node(const struct graph *g, const char *id)
{
	return htab_get(&g->by_id, id);
}

struct node *
graph_node_of(const struct graph *g, const struct project *p, const struct taskdef *def)
{
	cleanup_free char *id = xasprintf("%s#%s", p->is_root ? "//" : p->name, def->name);

	return graph_node(g, id);
}

bool
graph_needs(const struct node *node, const struct node *other)
{
	cleanup_free const struct node **all = NULL;
	size_t n;

	for (size_t i = 0; i < node->ndeps; i++)
		if (node->deps[i] == other)
			return true;
	all = graph_upstream(node, false, &n);
	for (size_t i = 0; i < n; i++)
		if (all[i] == other)
			return true;
	return false;
}

const struct node **
graph_upstream(const struct node *node, bool folded, size_t *ret_n)
{
	struct htab seen;
	const struct node **v = NULL;
	size_t n = 0, cap = 0;

	htab_init(&seen);
	htab_put(&seen, node->id, &seen);
	for (size_t i = 0; i <= n; i++) {
		const struct node *from = i ? v[i - 1] : node;
		struct node *const *up = folded ? from->folded : from->deps;
		size_t nup = folded ? from->nfolded : from->ndeps;

		for (size_t k = 0; k < nup; k++) {
			if (htab_put(&seen, up[k]->id, &seen))
				continue;
			GROW(v, n + 1, cap);
			v[n++] = up[k];
		}
	}
	htab_release(&seen);
	*ret_n = n;
	return v;
}

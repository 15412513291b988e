/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"
#include "graph/scope.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* All that could be named: tasks, or those of one project. */
static void
names_there_are(const struct workspace *w, const struct project *only, struct htab *ret)
{
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct projectdef *def = &w->projects[i]->def;

		for (size_t k = 0; k < def->ntasks && (!only || only == w->projects[i]); k++)
			htab_put(ret, def->tasks[k].name, ret);
	}
}

static int
refuse_name(const struct workspace *w, const char *name, const struct project *p, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT, hint = STRBUF_INIT;
	const char *hash = strchr(name, '#'), *near;
	cleanup_free const char **names = NULL;
	struct htab there;

	htab_init(&there);
	if (hash && !p)
		for (size_t i = 0; i < w->nprojects; i++)
			htab_put(&there, w->projects[i]->name, &there);
	else
		names_there_are(w, p, &there);
	names = xcalloc(there.n + 1, sizeof(*names));
	for (size_t i = 0; i < there.n; i++)
		names[i] = there.entries[i].key;
	if (hash && !p) {
		cleanup_free char *project = xmemdupz(name, (size_t)(hash - name));

		near = nearest_name(project, names, there.n);
		if (near)
			strbuf_addf(&hint, "; did you mean \"%s%s\"?", near, hash);
	} else {
		near = nearest_name(hash ? hash + 1 : name, names, there.n);
		if (near)
			strbuf_addf(&hint, "; did you mean \"%.*s%s\"?",
				hash ? (int)(hash + 1 - name) : 0, name, near);
	}
	if (!near && there.n) {
		strbuf_adds(&hint, scope_there_are(there.n));
		scope_add_list(&hint, names, there.n, SCOPE_NAMES_SHOWN);
	}
	htab_release(&there);
	strbuf_add_sanitised(&shown, name, strlen(name));
	return err_set(e, ERR_USAGE, 0, "--exclude-dependencies: there is no %s \"%s\"%s",
		hash && !p ? "project of" : "task", shown.buf, hint.buf);
}

/* 1 where the name says this node. */
static bool
is_named(const char *name, const struct node *n)
{
	const char *hash = strchr(name, '#');

	if (!hash)
		return !strcmp(name, n->def->name);
	if (strcmp(hash + 1, n->def->name) != 0)
		return false;
	if (n->project->is_root && !strncmp(name, "//#", 3))
		return true;
	return strlen(n->project->name) == (size_t)(hash - name) &&
	       !strncmp(name, n->project->name, (size_t)(hash - name));
}

static bool
is_there(const struct workspace *w, const struct project *p, const char *task)
{
	if (p)
		return project_task(p, task);
	for (size_t i = 0; i < w->nprojects; i++)
		if (project_task(w->projects[i], task))
			return true;
	return false;
}

static int
check_name(struct workspace *w, const char *name, struct err *e)
{
	const char *hash = strchr(name, '#');
	cleanup_free char *project = hash ? xmemdupz(name, (size_t)(hash - name)) : NULL;
	const struct project *p = project ? workspace_project(w, project) : NULL;
	cleanup_scope struct scope one = scope_new(w);

	if (p)
		one.has[p->index] = true;
	else if (hash)
		return refuse_name(w, name, NULL, e);
	if (is_there(w, p, hash ? hash + 1 : name))
		return 0;
	/* Nobody that is known by now. */
	if (workspace_define(w, p ? one.has : NULL, e))
		return -1;
	return is_there(w, p, hash ? hash + 1 : name) ? 0 : refuse_name(w, name, p, e);
}

int
graph_leave_out(struct graph *g, const char *const *names, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (check_name(g->w, names[i], e))
			return -1;
	for (size_t i = 0; i < g->n; i++)
		g->nodes[i]->left_out = !g->nodes[i]->requested;
	/* Dependants come later in the order, so each is known when it is come to. */
	for (size_t i = g->n; i-- > 0;) {
		const struct node *node = g->nodes[i];

		for (size_t d = 0; d < node->ndeps && !node->left_out; d++) {
			bool named = !n;

			for (size_t k = 0; k < n && !named; k++)
				named = is_named(names[k], node->deps[d]);
			if (!named)
				node->deps[d]->left_out = false;
		}
	}
	for (size_t i = 0; i < g->n; i++) {
		struct node *node = g->nodes[i];

		for (size_t d = 0; d < node->nfolded && !node->rests_on; d++) {
			const struct node *up = node->folded[d];

			/* rather a command than the group that leads to it */
			node->rests_on = up->left_out && !(node_is_group(up) && up->rests_on)
						 ? up
						 : up->rests_on;
		}
	}
	return 0;
}

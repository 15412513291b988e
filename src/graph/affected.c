/* SPDX-License-Identifier: MIT */
#include "graph/affected.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "workspace/inputs.h"
#include "workspace/members.h"
#include "workspace/workspace.h"

static bool
starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* A file that says what a project is. */
static bool
is_definition(const char *path)
{
	const char *base = path_base(path);

	return !strcmp(base, "package.json") || starts_with(base, "vx.config.");
}

/* A project that is no more: who needed it does not any longer, and no file of theirs has to say so. */
static bool
is_lost_project(const struct workspace *w, const char *path)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	return is_definition(path) && !htab_get(&w->by_dir, dir) && workspace_would_hold(w, dir);
}

static bool
is_among(const char *path, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i], path))
			return true;
	return false;
}

/* Whether a config that rests on these may yield something else for it. */
static bool
moves(const struct rests *r, const struct changes *c, size_t i)
{
	const char *path = c->paths.v[i];

	if (r->on_any || is_among(path, r->files, r->nfiles) ||
		(!c->same_modules[i] && is_among(path, r->manifests, r->nmanifests)))
		return true;
	for (size_t k = 0; c->is_repo[i] && k < r->nfiles; k++)
		if (path_is_within(r->files[k], path))
			return true;
	return false;
}

static bool
widens(const struct workspace *w, const struct changes *c, size_t i, const char *const *widening,
	size_t n)
{
	const char *path = c->paths.v[i];

	if (is_among(path, widening, n))
		return true;
	if (starts_with(path, "vx.workspace.") && !strchr(path, '/'))
		return true;
	if (!strcmp(path, "package.json") && c->members_moved)
		return true;
	return moves(&w->rests, c, i) || is_lost_project(w, path);
}

/* A repository is one path that stands for all that is in it; what a config rests on says what the project is. */
static void
mark_whole(const struct workspace *w, const struct changes *c, size_t at, bool *ret)
{
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct project *p = w->projects[i];

		ret[i] |= moves(&p->rests, c, at) ||
			  (c->is_repo[at] && path_is_within(p->dir, c->paths.v[at]));
	}
}

/* Which projects hold the path, or rest on it. */
static void
mark_holders(const struct workspace *w, const struct changes *c, size_t at, bool *ret)
{
	struct project *p = workspace_project_at(w, c->paths.v[at]);

	if (p)
		ret[p->index] = true;
	mark_whole(w, c, at, ret);
}

/* The manifests of which it matters what in them has changed: of its own one any edit counts. */
static void
list_manifests(const struct workspace *w, struct htab *ret)
{
	for (size_t i = 0; i < w->rests.nmanifests; i++)
		htab_put(ret, w->rests.manifests[i], ret);
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct project *p = w->projects[i];

		for (size_t k = 0; k < p->rests.nmanifests; k++) {
			const char *path = p->rests.manifests[k];

			if (strlen(p->dir) != path_parent_len(path) ||
				strncmp(path, p->dir, strlen(p->dir)) != 0)
				htab_put(ret, path, ret);
		}
	}
}

int
touched_find(const struct workspace *w, const char *ref, const char *const *widening, size_t n,
	struct touched *ret, struct err *e)
{
	struct touched t = {0};
	struct htab manifests;
	int r;

	htab_init(&manifests);
	list_manifests(w, &manifests);
	r = changes_find(
		w->rootfd, w->path, ref, w->settings.affected_base, &manifests, &t.changes, e);
	htab_release(&manifests);
	if (r)
		return -1;
	t.projects = xcalloc(w->nprojects + 1, sizeof(*t.projects));
	for (size_t i = 0; i < t.changes.paths.n; i++) {
		mark_holders(w, &t.changes, i, t.projects);
		if (!t.widened_by && widens(w, &t.changes, i, widening, n))
			t.widened_by = t.changes.paths.v[i];
	}
	for (size_t i = 0; t.widened_by && i < w->nprojects; i++)
		t.projects[i] = true;
	*ret = t;
	return 0;
}

void
touched_release(struct touched *t)
{
	changes_release(&t->changes);
	free(t->projects);
	*t = (struct touched){0};
}

/* ------------------------------------------------------------------ seeds */

struct seeds {
	bool **tasks; /* by project index, by task index */
	bool *whole;  /* by project index: all of its tasks */
};

static void
seeds_release(struct seeds *s, const struct workspace *w)
{
	for (size_t i = 0; i < w->nprojects; i++)
		free(s->tasks[i]);
	free(s->tasks);
	free(s->whole);
}

static bool
declares(const struct project *p, const struct taskdef *t, const char *path, bool is_repo)
{
	return t->cache &&
	       (inputs_declare(p, t, path) || (is_repo && inputs_may_reach(p, t, path)));
}

/* Those of the project's own tasks that the path makes seeds. */
static void
seed_project(const struct project *p, const char *path, bool is_repo, struct seeds *s)
{
	bool declared = false;

	if (is_definition(path) && !strcmp(path_below(path, p->dir), path_base(path))) {
		s->whole[p->index] = true;
		return;
	}
	for (size_t i = 0; i < p->def.ntasks; i++) {
		const struct taskdef *t = &p->def.tasks[i];
		bool hit = declares(p, t, path, is_repo);

		declared |= hit;
		/* a command that nothing is known of; a group does nothing of its own */
		s->tasks[p->index][i] |= hit || (t->command && !t->cache);
	}
	s->whole[p->index] |= !declared;
}

/* Tasks that declare files of other projects. */
static void
seed_afar(const struct workspace *w, const char *path, bool is_repo, struct seeds *s)
{
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct project *p = w->projects[i];

		for (size_t k = 0; k < p->def.ntasks; k++) {
			const struct taskdef *t = &p->def.tasks[k];

			if (t->cache && t->cache->workspace_files.npos && !s->tasks[i][k])
				s->tasks[i][k] = declares(p, t, path, is_repo);
		}
	}
}

/* Its version may have moved out of the ranges of those that depended on it: what they run no longer follows it, and no
 * file of theirs says so. */
static void
seed_unmet(const struct workspace *w, const struct project *to, struct seeds *s)
{
	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t k = 0; k < w->projects[i]->nunmet; k++)
			s->whole[i] |= w->projects[i]->unmet[k] == to;
}

static struct seeds
find_seeds(const struct workspace *w, const struct changes *c)
{
	struct seeds s = {xcalloc(w->nprojects + 1, sizeof(*s.tasks)),
		xcalloc(w->nprojects + 1, sizeof(*s.whole))};

	for (size_t i = 0; i < w->nprojects; i++)
		s.tasks[i] = xcalloc(w->projects[i]->def.ntasks + 1, sizeof(**s.tasks));
	for (size_t i = 0; i < c->paths.n; i++) {
		const char *path = c->paths.v[i];
		const struct project *p = workspace_project_at(w, path);

		mark_whole(w, c, i, s.whole);
		if (p)
			seed_project(p, path, c->is_repo[i], &s);
		if (p && !strcmp(path_below(path, p->dir), "package.json"))
			seed_unmet(w, p, &s);
		seed_afar(w, path, c->is_repo[i], &s);
	}
	return s;
}

/* ------------------------------------------------------------------ requests */

static bool
is_seed(const struct seeds *s, const struct node *n)
{
	const struct project *p = n->project;

	return s->whole[p->index] || s->tasks[p->index][n->def - p->def.tasks];
}

void
touched_narrow(const struct workspace *w, const struct touched *t, const struct graph *g,
	struct request *requests, size_t *n)
{
	cleanup_free bool *affected = NULL;
	struct seeds seeds;
	size_t left = 0;

	if (t->widened_by)
		return;
	seeds = find_seeds(w, &t->changes);
	affected = xcalloc(g->n + 1, sizeof(*affected));
	for (size_t i = 0; i < g->n; i++) {
		affected[i] = is_seed(&seeds, g->nodes[i]);
		for (size_t d = 0; d < g->nodes[i]->ndeps && !affected[i]; d++)
			affected[i] = affected[g->nodes[i]->deps[d]->index];
	}
	for (size_t i = 0; i < *n; i++) {
		const struct node *node = graph_node_of(g, requests[i].project, requests[i].def);

		if (requests[i].anchored || affected[node->index])
			requests[left++] = requests[i];
	}
	*n = left;
	seeds_release(&seeds, w);
}

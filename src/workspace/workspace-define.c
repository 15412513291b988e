/* SPDX-License-Identifier: MIT */
/*
 * What projects declare. A config that is data is parsed when its project is found. One that is a script is code of
 * the workspace, which costs a runtime and may fail: it is evaluated when somebody asks for the project, and then all that are
 * asked for in one process.
 */
#include "config/evaluated.h"
#include "config/script.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/log.h"
#include "util/path.h"
#include "workspace/edges.h"
#include "workspace/pnpm.h"
#include "workspace/root.h"
#include "workspace/workspace-private.h"

enum {
	UNMET_SHOWN = 8
};

/* ------------------------------------------------------------------ one project */

/* Into l->config. */
static int
parse_config(struct loading *l, const char *text, size_t len, const char *shown, struct err *e)
{
	if (l->config.root && l->config_text.len == len && !memcmp(l->config_text.buf, text, len)) {
		l->config.file = shown;
		return 0;
	}
	json_doc_release(&l->config);
	strbuf_reset(&l->config_text);
	strbuf_add(&l->config_text, text, len);
	return json_parse(text, len, shown, JSON_OURS, &l->config, e);
}

/* It is called as its directory, which cannot be. */
static int
refuse_dir_name(const struct project *p, struct err *e)
{
	cleanup_free char *file =
		path_join(p->dir, p->has_manifest ? "package.json" : "vx.config.json");
	const char *shown = p->config && !p->has_manifest ? p->config : file;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_add_sanitised(&text, shown, strlen(shown));
	strbuf_adds(&text, ": the project has no name but its directory's, \"");
	strbuf_add_sanitised(&text, p->name, strlen(p->name));
	return err_set(e, ERR_CONFIG, 0, "%s\", and that %s: write \"name\": \"another-name\" here",
		text.buf, manifest_name_fault(p->name));
}

static int
choose_name(struct loading *l, struct loaded *it, struct err *e)
{
	struct project *p = &it->p;
	const char *manifest_shown = it->manifest_shown;

	it->named = it->manifest.name || p->def.name;
	if (it->manifest.name) {
		p->name = it->manifest.name;
		if (p->def.name && strcmp(p->def.name, p->name))
			workspace_note(
				l, arena_printf(&l->w->arena,
					   "%s: \"name\": \"%s\" is not used: %s says \"%s\"",
					   p->config, p->def.name, manifest_shown, p->name));
		return 0;
	}
	/* The root's directory is called as whoever cloned it wished: no name of the project. */
	p->name = p->def.name ? p->def.name : p->is_root ? "//" : path_base(p->dir);
	if (p->is_root && !p->def.name)
		return 0;
	if (p->def.name)
		return manifest_check_name(p->name, p->config, e);
	return manifest_name_fault(p->name) ? refuse_dir_name(p, e) : 0;
}

static size_t
count_far(const struct projectdef *def)
{
	size_t n = 0;

	for (size_t k = 0; k < def->ntasks; k++)
		n += taskdef_leaves_project(&def->tasks[k]);
	return n;
}

static int
define(struct loading *l, struct loaded *it, const char *config, size_t len, bool evaluated,
	struct err *e)
{
	if (config) {
		if (parse_config(l, config, len, it->p.config, e) < 0)
			return -1;
		l->config.evaluated = evaluated;
		if (projectdef_parse(&l->config, it->p.dir, &l->w->arena, &it->p.def, e) < 0)
			return -1;
		l->nfar += count_far(&it->p.def);
	}
	return choose_name(l, it, e);
}

int
workspace_define_data(
	struct loading *l, struct loaded *it, const char *config, size_t len, struct err *e)
{
	return define(l, it, config, len, false, e);
}

static const char **
take_names(struct workspace *w, const struct strvec *from)
{
	const char **names = arena_array(&w->arena, from->n, const char *);

	for (size_t i = 0; i < from->n; i++)
		names[i] = arena_strdup(&w->arena, from->v[i]);
	return names;
}

struct rests
workspace_take_rests(
	struct workspace *w, const struct strvec *needs, const struct strvec *manifests, bool any)
{
	return (struct rests){
		take_names(w, needs), needs->n, take_names(w, manifests), manifests->n, any};
}

/* ------------------------------------------------------------------ scripts */

/* 1: from what is remembered of it, 0: it has to be evaluated, -1. */
static int
recall_script(struct loading *l, struct loaded *it, struct err *e)
{
	cleanup_strvec struct strvec needs = STRVEC_INIT, manifests = STRVEC_INIT;
	size_t len;
	const char *json = evaluated_get(l->evaluated, it->p.config, &len);

	if (!json)
		return 0;
	evaluated_needs(l->evaluated, it->p.config, &needs, &manifests);
	it->p.rests = workspace_take_rests(l->w, &needs, &manifests, false);
	return define(l, it, json, len, true, e) ? -1 : 1;
}

/* Those that came before one that failed are remembered all the same. */
static int
evaluate(struct loading *l, struct loaded *const *items, size_t n, struct err *e)
{
	cleanup_free struct script *v = xcalloc(n + 1, sizeof(*v));
	int r;

	for (size_t i = 0; i < n; i++)
		v[i].path = items[i]->p.config;
	r = script_evaluate(l->runtime, v, n, e);
	for (size_t i = 0; i < n; i++) {
		struct err later = ERR_INIT;

		if (v[i].json && !define(l, items[i], v[i].json, v[i].len, true, r ? &later : e)) {
			evaluated_put(l->evaluated, &v[i]);
			items[i]->p.rests = workspace_take_rests(
				l->w, &v[i].needs, &v[i].manifests, v[i].reads_any);
		} else {
			r = -1;
		}
		script_release(&v[i]);
	}
	return r;
}

/* All of them, or none: whoever goes on without them has what there was before. */
static int
define_scripts(struct loading *l, struct loaded *const *items, size_t n, struct err *e)
{
	cleanup_free struct loaded **rest = xcalloc(n + 1, sizeof(*rest));
	size_t nrest = 0;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = recall_script(l, items[i], e);
		if (!r)
			rest[nrest++] = items[i];
	}
	return r < 0 ? -1 : evaluate(l, rest, nrest, e);
}

int
workspace_define_nameless(struct loading *l, struct err *e)
{
	cleanup_free struct loaded **items = xcalloc(l->n + 1, sizeof(*items));
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->items[i]->p.undefined && !l->items[i]->manifest.name)
			items[n++] = l->items[i];
	if (define_scripts(l, items, n, e))
		return -1;
	for (size_t i = 0; i < n; i++)
		items[i]->p.undefined = false;
	l->w->nundefined -= n;
	return 0;
}

/* ------------------------------------------------------------------ what is made of all */

/* Most workspaces have none: they were counted as their configs were read. */
static void
list_far(struct loading *l)
{
	struct workspace *w = l->w;

	w->nfar = 0;
	if (!l->nfar)
		return;
	w->far = arena_array(&w->arena, l->nfar, const struct taskdef *);
	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t k = 0; k < w->projects[i]->def.ntasks; k++)
			if (taskdef_leaves_project(&w->projects[i]->def.tasks[k]))
				w->far[w->nfar++] = &w->projects[i]->def.tasks[k];
}

static int
find_catalogs(struct loading *l, struct err *e)
{
	const struct manifest *root = NULL;
	struct pnpm pnpm = {0};

	for (size_t i = 0; i < l->n; i++)
		if (l->items[i]->p.is_root)
			root = &l->items[i]->manifest;
	if (pnpm_load(l->root->fd, "pnpm-workspace.yaml", &l->w->arena, &pnpm, e) < 0)
		return -1;
	l->ncatalogs = pnpm.ncatalogs + (root ? root->ncatalogs : 0);
	l->catalogs = xcalloc(l->ncatalogs + 1, sizeof(*l->catalogs));
	for (size_t i = 0; i < l->ncatalogs; i++)
		l->catalogs[i] =
			i < pnpm.ncatalogs ? pnpm.catalogs[i] : root->catalogs[i - pnpm.ncatalogs];
	l->manifests = xcalloc(l->n + 1, sizeof(*l->manifests));
	for (size_t i = 0; i < l->n; i++)
		l->manifests[i] = &l->items[i]->manifest;
	return 0;
}

static void
note_unmet(struct loading *l, const struct strvec *unmet)
{
	for (size_t i = 0; i < unmet->n && i < UNMET_SHOWN; i++)
		workspace_note(l, arena_strdup(&l->w->arena, unmet->v[i]));
	if (unmet->n > UNMET_SHOWN)
		workspace_note(l, arena_printf(&l->w->arena,
					  "and %zu more \"workspace:\" entries are not met",
					  unmet->n - UNMET_SHOWN));
}

int
workspace_link(struct loading *l, struct err *e)
{
	cleanup_strvec struct strvec unmet = STRVEC_INIT;
	bool first = !l->catalogs;

	if (first && find_catalogs(l, e))
		return -1;
	if (edges_link(l->w,
		    &(struct edge_sources){
			    .manifests = l->manifests,
			    .catalogs = l->catalogs,
			    .ncatalogs = l->ncatalogs,
			    .is_whole = !l->w->settings.projects,
		    },
		    &unmet, e))
		return -1;
	/* They are in manifests alone, which are all there at once. */
	if (first)
		note_unmet(l, &unmet);
	list_far(l);
	return 0;
}

/* ------------------------------------------------------------------ those that are asked for */

/* All is as it was before, so that a name nobody could look up can be let through. */
static void
undefine(struct loading *l, struct loaded *const *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct project *p = &items[i]->p;

		p->def = (struct projectdef){0};
		p->rests = (struct rests){0};
		p->undefined = true;
	}
	l->w->nundefined += n;
}

int
workspace_define(struct workspace *w, const bool *which, struct err *e)
{
	struct loading *l = w->loading;
	cleanup_free struct loaded **items = NULL;
	size_t n = 0;

	if (!w->nundefined)
		return 0;
	if (!l)
		bug("a project is asked for that was not while it could be");
	items = xcalloc(w->nundefined, sizeof(*items));
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i]->p.undefined && (!which || which[i]))
			items[n++] = l->items[i];
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		items[i]->p.undefined = false;
	w->nundefined -= n;
	if (!define_scripts(l, items, n, e) && !workspace_link(l, e))
		return 0;
	undefine(l, items, n);
	return -1;
}

/*
 * What is reached by the edges that are known: those of manifests, and of configs that are defined. So at the end all
 * that is reached is defined, and its edges are those that all configs together would make: one by a peer stands or not as
 * its circle closes or not, which only what the peer reaches decides.
 */
static void
add_reached(const struct workspace *w, bool *which)
{
	cleanup_free size_t *stack = xcalloc(w->nprojects + 1, sizeof(*stack));
	size_t n = 0;

	for (size_t i = 0; i < w->nprojects; i++)
		if (which[i])
			stack[n++] = i;
	while (n) {
		const struct project *p = w->projects[stack[--n]];

		for (size_t i = 0; i < p->nreach; i++) {
			size_t next = p->reach[i]->index;

			if (which[next])
				continue;
			which[next] = true;
			stack[n++] = next;
		}
	}
}

int
workspace_define_reached(struct workspace *w, const bool *which, const bool *alone, struct err *e)
{
	cleanup_free bool *reached = NULL, *now = NULL;
	size_t before;

	if (!w->nundefined)
		return 0;
	reached = xcalloc(w->nprojects, sizeof(*reached));
	now = xcalloc(w->nprojects, sizeof(*now));
	memcpy(reached, which, w->nprojects * sizeof(*reached));
	do {
		before = w->nundefined;
		add_reached(w, reached);
		for (size_t i = 0; i < w->nprojects; i++)
			now[i] = reached[i] || (alone && alone[i]);
		if (workspace_define(w, now, e))
			return -1;
	} while (w->nundefined != before);
	return 0;
}

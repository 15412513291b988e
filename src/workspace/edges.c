/* SPDX-License-Identifier: MIT */
#include "workspace/edges.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include "workspace/manifest.h"
#include "workspace/semver.h"
#include "workspace/workspace.h"

/* The indexes of the projects that one depends on, while they are being found. */
struct adjacency {
	size_t *to;
	size_t n, cap;
};

struct linking {
	struct workspace *w;
	const struct edge_sources *from;
	struct adjacency *order;
	struct adjacency *peers; /* that are in reach and not in order */
	struct adjacency *unmet;
	struct project *missed; /* the last one whose version did not satisfy a range */
	struct strvec *notes;
	struct htab catalogs; /* "catalog#name" to the spec */
};

static void
add(struct adjacency *adj, size_t to)
{
	GROW(adj->to, adj->n + 1, adj->cap);
	adj->to[adj->n++] = to;
}

static bool
starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static bool
is_path(const char *s)
{
	return *s == '/' || starts_with(s, "./") || starts_with(s, "../") || !strcmp(s, ".") ||
	       !strcmp(s, "..");
}

/* The project whose directory a spec names, relative to `base` unless absolute. */
static struct project *
project_at_path(const struct workspace *w, const char *base, const char *path)
{
	cleanup_free char *joined = NULL, *dir = NULL;

	if (starts_with(path, "///"))
		path += 2; /* file:///dir */
	joined = *path == '/' ? xstrdup(path) : path_join(base, path);
	dir = path_normalise(joined);
	if (*dir != '/')
		return htab_get(&w->by_dir, dir);
	return path_is_within(dir, w->path) ? htab_get(&w->by_dir, path_below(dir, w->path)) : NULL;
}

/* The '@' between a name and a range: "lib@^1", "@scope/lib@*". NULL: there is none. */
static const char *
alias_at(const char *s)
{
	return *s ? strchr(s + 1, '@') : NULL;
}

static struct project *
by_name_len(const struct workspace *w, const char *name, size_t n)
{
	return htab_getn(&w->by_name, name, n);
}

static const char *
version_of(const struct linking *l, const struct project *p)
{
	return l->from->manifests[p->index]->version;
}

static struct project *
satisfied(struct linking *l, struct project *target, const char *range)
{
	if (target && semver_satisfies(version_of(l, target), range))
		return target;
	l->missed = target;
	return NULL;
}

/* What stands behind "workspace:". */
static struct project *
workspace_target(struct linking *l, const struct project *p, const char *name, const char *spec)
{
	struct project *named = htab_get(&l->w->by_name, name);
	const char *at = alias_at(spec);

	if (!*spec || !strcmp(spec, "*") || !strcmp(spec, "^") || !strcmp(spec, "~"))
		return named;
	if (is_path(spec))
		return project_at_path(l->w, p->dir, spec);
	if (at)
		return by_name_len(l->w, spec, (size_t)(at - spec));
	if (satisfied(l, named, spec))
		return named;
	return project_at_path(l->w, "", spec); /* yarn: "workspace:packages/lib", from the root */
}

static struct project *
npm_target(struct linking *l, const char *spec)
{
	const char *at = alias_at(spec);

	if (!at)
		return htab_get(&l->w->by_name, spec);
	return satisfied(l, by_name_len(l->w, spec, (size_t)(at - spec)), at + 1);
}

static const char *
catalog_spec(const struct linking *l, const char *catalog, const char *name)
{
	cleanup_free char *key = xasprintf("%s#%s", *catalog ? catalog : "default", name);

	return htab_get(&l->catalogs, key);
}

/* The project that an entry of a manifest stands for, NULL: none in this workspace. */
static struct project *
spec_target(struct linking *l, const struct project *p, const char *name, const char *spec)
{
	static const char *const path_schemes[] = {"file:", "link:", "portal:"};

	while (*spec == ' ')
		spec++;
	if (starts_with(spec, "catalog:")) {
		spec = catalog_spec(l, spec + strlen("catalog:"), name);
		if (!spec || starts_with(spec, "catalog:"))
			return htab_get(&l->w->by_name, name); /* cannot be judged: kept */
	}
	if (starts_with(spec, "workspace:"))
		return workspace_target(l, p, name, spec + strlen("workspace:"));
	for (size_t i = 0; i < array_len(path_schemes); i++)
		if (starts_with(spec, path_schemes[i]))
			return project_at_path(l->w, p->dir, spec + strlen(path_schemes[i]));
	if (is_path(spec))
		return project_at_path(l->w, p->dir, spec);
	if (starts_with(spec, "npm:"))
		return npm_target(l, spec + strlen("npm:"));
	return satisfied(l, htab_get(&l->w->by_name, name), spec);
}

static bool
has_key(const struct manifest *m, const char *name, bool optional_only)
{
	for (size_t i = 0; i < m->ndeps; i++) {
		enum manifest_bucket b = m->deps[i].bucket;

		if ((optional_only ? b == MANIFEST_OPTIONAL : b != MANIFEST_PEER) &&
			!strcmp(m->deps[i].name, name))
			return true;
	}
	return false;
}

static bool
has_bucket(const struct manifest *m, enum manifest_bucket bucket)
{
	for (size_t i = 0; i < m->ndeps; i++)
		if (m->deps[i].bucket == bucket)
			return true;
	return false;
}

/* The name that is meant by what stands behind "workspace:", owned. NULL: a directory is. */
static char *
wanted_name(const char *name, const char *spec)
{
	const char *at = is_path(spec) ? NULL : alias_at(spec);

	if (at)
		return xmemdupz(spec, (size_t)(at - spec));
	return strchr(spec, '/') ? NULL : xstrdup(name);
}

/* An edge that is gone without a word would be a dependency that is not built. */
static void
note_unmet(struct linking *l, const struct project *p, const struct manifest_dep *d)
{
	cleanup_free char *file = path_join(p->dir, "package.json"), *want = NULL;
	cleanup_free const char **names = NULL;
	const char *spec = d->spec, *near = NULL, *version;

	while (*spec == ' ')
		spec++;
	if (starts_with(spec, "catalog:"))
		spec = catalog_spec(l, spec + strlen("catalog:"), d->name);
	if (!spec || !starts_with(spec, "workspace:"))
		return;
	if (l->missed) {
		version = version_of(l, l->missed);
		strvec_pushf(l->notes,
			"%s: \"%s\": \"%s\" is not met: %s %s%s here, so %s does not depend on it",
			file, d->name, spec, l->missed->name, version ? "is " : "has no version",
			version ? version : "", p->name);
		return;
	}
	if (!l->from->is_whole)
		return;
	want = wanted_name(d->name, spec + strlen("workspace:"));
	if (!want) {
		strvec_pushf(l->notes,
			"%s: \"%s\": \"%s\" is not met: no project is in that directory", file,
			d->name, spec);
		return;
	}
	names = xcalloc(l->w->nprojects + 1, sizeof(*names));
	for (size_t i = 0; i < l->w->nprojects; i++)
		names[i] = l->w->projects[i]->name;
	near = nearest_name(want, names, l->w->nprojects);
	strvec_pushf(l->notes, "%s: \"%s\": \"%s\" is not met: no project is called \"%s\"%s%s%s",
		file, d->name, spec, want, near ? "; did you mean \"" : "", near ? near : "",
		near ? "\"?" : "");
}

static void
link_manifest(struct linking *l, const struct project *p)
{
	const struct manifest *m = l->from->manifests[p->index];
	bool optional = has_bucket(m, MANIFEST_OPTIONAL);

	for (size_t i = 0; i < m->ndeps; i++) {
		const struct manifest_dep *d = &m->deps[i];
		struct project *to;

		if (d->bucket == MANIFEST_PEER)
			continue;
		if (d->bucket == MANIFEST_DEPS && optional && has_key(m, d->name, true))
			continue;
		l->missed = NULL;
		to = spec_target(l, p, d->name, d->spec);
		if (to && to != p)
			add(&l->order[p->index], to->index);
		if (!to && l->missed && l->missed != p)
			add(&l->unmet[p->index], l->missed->index);
		if (!to && l->missed != p)
			note_unmet(l, p, d);
	}
}

static int
refuse_dependency(const struct linking *l, const struct project *p, size_t index,
	const struct project *to, struct err *e)
{
	enum {
		NAMES_SHOWN = 12
	};
	cleanup_free const char **names = xcalloc(l->w->nprojects, sizeof(*names));
	cleanup_free char *place = workspace_entry_place(l->w, p, NULL, "dependencies", index);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *name = p->def.dependencies[index], *near;
	size_t n = 0;

	if (to == p)
		return err_set(e, ERR_CONFIG, 0,
			"%s: dependencies[%zu]: \"%s\" is this project itself: leave it out", place,
			index, name);
	for (size_t i = 0; i < l->w->nprojects; i++)
		if (l->w->projects[i] != p)
			names[n++] = l->w->projects[i]->name;
	near = nearest_name(name, names, n);
	if (near)
		strbuf_addf(&text, "; did you mean \"%s\"?", near);
	for (size_t i = 0; !near && i < n && i < NAMES_SHOWN; i++)
		strbuf_addf(&text, "%s%s",
			i        ? ", "
			: n == 1 ? "; there is "
				 : "; there are ",
			names[i]);
	if (!near && n > NAMES_SHOWN)
		strbuf_addf(&text, " and %zu more", n - NAMES_SHOWN);
	return err_set(e, ERR_CONFIG, 0, "%s: dependencies[%zu]: there is no project \"%s\"%s",
		place, index, name, text.buf);
}

static int
link_config(struct linking *l, const struct project *p, struct err *e)
{
	for (size_t i = 0; i < p->def.ndependencies; i++) {
		struct project *to = workspace_project(l->w, p->def.dependencies[i]);

		if (!to || to == p)
			return refuse_dependency(l, p, i, to, e);
		add(&l->order[p->index], to->index);
	}
	for (size_t i = 0; i < p->def.ntasks; i++) {
		const struct taskdef *t = &p->def.tasks[i];

		for (size_t j = 0; j < t->ndepends_on; j++) {
			struct project *to;

			if (t->depends_on[j].form != DEP_PROJECT)
				continue;
			/* A name that nobody bears is refused when the task is wanted. */
			to = workspace_project(l->w, t->depends_on[j].project);
			if (to && to != p)
				add(&l->order[p->index], to->index);
		}
	}
	return 0;
}

static int
compare_index(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

static void
sort_unique(struct adjacency *adj)
{
	size_t n = 0;

	if (adj->n)
		qsort(adj->to, adj->n, sizeof(*adj->to), compare_index);
	for (size_t i = 0; i < adj->n; i++)
		if (!i || adj->to[i] != adj->to[i - 1])
			adj->to[n++] = adj->to[i];
	adj->n = n;
}

/* Whether the order edges lead from one project to another. `seen` and `stack` are scratch. */
static bool
leads_to(const struct linking *l, size_t from, size_t to, bool *seen, size_t *stack)
{
	size_t n = 0;

	memset(seen, 0, l->w->nprojects * sizeof(*seen));
	seen[from] = true;
	stack[n++] = from;
	while (n) {
		const struct adjacency *adj = &l->order[stack[--n]];

		for (size_t i = 0; i < adj->n; i++) {
			if (adj->to[i] == to)
				return true;
			if (!seen[adj->to[i]]) {
				seen[adj->to[i]] = true;
				stack[n++] = adj->to[i];
			}
		}
	}
	return false;
}

/* Peers last, in the order of (package, peer): one that would close a cycle is in reach only. */
static void
link_peers(struct linking *l)
{
	cleanup_free bool *seen = xcalloc(l->w->nprojects, sizeof(*seen));
	cleanup_free size_t *stack = xcalloc(l->w->nprojects, sizeof(*stack));

	for (size_t i = 0; i < l->w->nprojects; i++) {
		const struct manifest *m = l->from->manifests[i];
		struct adjacency found = {0};

		for (size_t j = 0; j < m->ndeps; j++) {
			const struct manifest_dep *d = &m->deps[j];
			struct project *to;

			if (d->bucket != MANIFEST_PEER || has_key(m, d->name, false))
				continue;
			to = htab_get(&l->w->by_name, d->name);
			if (to && to->index != i)
				add(&found, to->index);
		}
		sort_unique(&found);
		for (size_t j = 0; j < found.n; j++) {
			bool cycle = leads_to(l, found.to[j], i, seen, stack);

			add(cycle ? &l->peers[i] : &l->order[i], found.to[j]);
		}
		free(found.to);
	}
}

static struct project **
to_projects(struct workspace *w, const struct adjacency *adj)
{
	struct project **r = arena_array(&w->arena, adj->n, struct project *);

	for (size_t i = 0; i < adj->n; i++)
		r[i] = w->projects[adj->to[i]];
	return r;
}

static void
store(struct linking *l)
{
	for (size_t i = 0; i < l->w->nprojects; i++) {
		struct project *p = l->w->projects[i];
		struct adjacency *order = &l->order[i], *peers = &l->peers[i];

		sort_unique(order);
		p->deps = to_projects(l->w, order);
		p->ndeps = order->n;
		p->unmet = to_projects(l->w, &l->unmet[i]);
		p->nunmet = l->unmet[i].n;
		p->reach = p->deps;
		p->nreach = p->ndeps;
		if (!peers->n)
			continue;
		for (size_t j = 0; j < order->n; j++)
			add(peers, order->to[j]);
		sort_unique(peers);
		p->reach = to_projects(l->w, peers);
		p->nreach = peers->n;
	}
}

int
edges_link(
	struct workspace *w, const struct edge_sources *from, struct strvec *notes, struct err *e)
{
	struct linking l = {.w = w, .from = from, .notes = notes};
	int r = 0;

	l.order = xcalloc(w->nprojects, sizeof(*l.order));
	l.peers = xcalloc(w->nprojects, sizeof(*l.peers));
	l.unmet = xcalloc(w->nprojects, sizeof(*l.unmet));
	htab_init(&l.catalogs);
	for (size_t i = from->ncatalogs; i-- > 0;) {
		const struct catalog_entry *c = &from->catalogs[i];

		htab_put(&l.catalogs, arena_printf(&w->arena, "%s#%s", c->catalog, c->name),
			(void *)(uintptr_t)c->spec);
	}
	for (size_t i = 0; i < w->nprojects && !r; i++) {
		link_manifest(&l, w->projects[i]);
		r = link_config(&l, w->projects[i], e);
	}
	if (!r) {
		link_peers(&l);
		store(&l);
	}
	for (size_t i = 0; i < w->nprojects; i++) {
		free(l.order[i].to);
		free(l.peers[i].to);
		free(l.unmet[i].to);
	}
	free(l.order);
	free(l.peers);
	free(l.unmet);
	htab_release(&l.catalogs);
	return r;
}

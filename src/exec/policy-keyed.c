/* SPDX-License-Identifier: MIT */
/*
 * What a policy lets a task read and no part of its key covers: the difference between a confined
 * result and a proven one (design §4).
 */
#include "cache/key.h"
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "workspace/files.h"
#include "workspace/inputs.h"
#include "workspace/workspace.h"
#include <errno.h>

struct search {
	const struct policy *p;
	const struct inputs *inputs;
	const struct node **folded;
	size_t nfolded;
	char *manifest;
	const char *head; /* of the walk */
	size_t max;
	struct strvec *ret;
};

static int
compare(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

static bool
is_in(const char *path, const char *const *v, size_t n)
{
	return n && bsearch(path, v, n, sizeof(*v), compare) != NULL;
}

/* Whether the key of that task covers the file: as an output it makes, or as an input it counts. */
static bool
is_covered_by(
	const struct node *node, const char *path, bool is_listed, const struct project *owner)
{
	const struct cachedef *cache = node->def->cache;

	if (node_is_group(node))
		return false;
	if (owner == node->project && !strcmp(path_below(path, owner->dir), "package.json"))
		return true;
	if (!cache)
		return is_listed && owner == node->project;
	return globset_match(&cache->outputs, path) ||
	       (is_listed && ((owner == node->project && globset_match(&cache->files, path)) ||
				     globset_match(&cache->workspace_files, path)));
}

static bool
is_covered(const struct search *s, const char *path)
{
	const struct project *owner;
	bool is_listed;

	if (is_in(path, s->inputs->paths, s->inputs->n) || !strcmp(path, s->manifest))
		return true;
	for (size_t i = 0; key_fingerprint_files[i]; i++)
		if (!strcmp(path, key_fingerprint_files[i]))
			return true;
	is_listed = is_in(path, s->p->files->paths, s->p->files->n);
	owner = workspace_project_at(s->p->w, path);
	for (size_t i = 0; i < s->nfolded; i++)
		if (is_covered_by(s->folded[i], path, is_listed, owner))
			return true;
	return false;
}

static void
look_at(struct search *s, const char *path)
{
	if (policy_may_see(s->p, path, false) && !is_covered(s, path) &&
		!strvec_contains(s->ret, path))
		strvec_push(s->ret, path);
}

static bool
is_skipped(const char *name)
{
	return !strcmp(name, "node_modules") || !strcmp(name, ".vx");
}

static enum fs_visit
visit(void *ctx, const struct fs_entry *entry)
{
	struct search *s = ctx;
	cleanup_free char *path = NULL;

	if (S_ISDIR(entry->st->st_mode) && is_skipped(entry->name))
		return FS_VISIT_SKIP;
	path = path_join(s->head, entry->path);
	if (S_ISDIR(entry->st->st_mode))
		return policy_may_see(s->p, path, true) ? FS_VISIT_CONTINUE : FS_VISIT_SKIP;
	look_at(s, path);
	if (s->ret->n < s->max)
		return FS_VISIT_CONTINUE;
	errno = 0;
	return FS_VISIT_STOP;
}

/* Where a grant can lead: below its literal path. */
static int
walk_rule(struct search *s, const struct spec_rule *r, struct err *e)
{
	struct arena arena;
	struct glob *g;
	struct stat st;
	int rc = 0;

	arena_init(&arena);
	s->head = r->path;
	if (r->is_glob && glob_parse(&arena, "", r->path, GLOB_GRANT, &g, e))
		rc = -1;
	else if (r->is_glob)
		s->head = glob_literal_head(g, 0);
	if (!rc && !is_skipped(path_base(s->head)) &&
		!fs_stat_beneath(s->p->w->rootfd, s->head, &st)) {
		if (!S_ISDIR(st.st_mode))
			look_at(s, s->head);
		else if (fs_walk(s->p->w->rootfd, s->head, visit, s) && errno && errno != EACCES &&
			 errno != ENOENT)
			rc = err_set(e, ERR_IO, errno,
				"looking for what the key does not cover: %s", s->head);
	}
	arena_release(&arena);
	return rc;
}

int
policy_unkeyed(const struct policy *p, const struct inputs *inputs, size_t max, struct strvec *ret,
	struct err *e)
{
	struct search s = {.p = p,
		.inputs = inputs,
		.manifest = path_join(p->node->project->dir, "package.json"),
		.max = max,
		.ret = ret};
	int rc = 0;

	s.folded = graph_upstream(p->node, true, &s.nfolded);
	for (size_t i = p->ncovered; i < p->nrules && !rc && ret->n < max; i++)
		if ((p->rules[i].kind == SPEC_READ || p->rules[i].kind == SPEC_WRITE) &&
			*p->rules[i].path != '/')
			rc = walk_rule(&s, &p->rules[i], e);
	free(s.manifest);
	free(s.folded);
	return rc ? -1 : (int)ret->n;
}

/* Where the grant starts: its literal, or the directory from which its wildcards look. NULL: outside of
 * the workspace. */
static const char *
grant_head(struct arena *arena, const struct spec_rule *r, struct glob **ret_glob)
{
	struct err e = ERR_INIT;

	*ret_glob = NULL;
	if (*r->path == '/')
		return NULL;
	if (!r->is_glob)
		return r->path;
	if (glob_parse(arena, "", r->path, GLOB_GRANT, ret_glob, &e))
		return NULL;
	return glob_literal_head(*ret_glob, 0);
}

/* Whether the next name on the way from `dir` down to `head` is not there. */
static bool
is_way_missing(const struct policy *p, const char *dir, const char *head)
{
	const char *rest = path_below(head, dir);
	cleanup_free char *next = xmemdupz(head, (size_t)(rest - head) + strcspn(rest, "/"));
	struct stat st;

	return *rest && fs_stat_beneath(p->w->rootfd, next, &st) && errno == ENOENT;
}

static bool
may_select_new(const struct policy *p, const struct spec_rule *r, bool own_entry, const char *dir)
{
	struct arena arena;
	struct glob *g;
	const char *head;
	bool may = false;

	arena_init(&arena);
	head = grant_head(&arena, r, &g);
	if (head && path_is_within(dir, head))
		may = !g || glob_may_match_below(g, dir);
	else if (head && path_is_within(head, dir) && own_entry)
		may = is_way_missing(p, dir, head);
	arena_release(&arena);
	return may;
}

bool
policy_may_gain(const struct policy *p, const char *dir)
{
	if (!policy_may_see(p, dir, true))
		return false;
	for (size_t i = 0; i < p->nrules; i++) {
		const struct spec_rule *r = &p->rules[i];

		/* Derived from its outputs, which are hidden from it: what comes there is not seen. */
		if ((r->kind == SPEC_READ || (r->kind == SPEC_WRITE && !p->derived)) &&
			may_select_new(p, r, i < p->nconfig, dir))
			return true;
	}
	return false;
}

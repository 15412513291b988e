/* SPDX-License-Identifier: MIT */
/* What a written or denied path is to a policy, after the run. */
#include "cache/never.h"
#include "cache/outputs.h"
#include "exec/homes.h"
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "proto/ruleset.h"
#include "proto/stores.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* What tools keep beside the sources for themselves (design §5). `parent` may be NULL. */
static const char MODULES[] = "node_modules";
static const struct {
	const char *parent;
	const char *name;
} tool_caches[] = {
	{MODULES, ".cache"},
	{MODULES, ".vite"},
	{MODULES, ".vite-temp"}, /* where vite puts its bundled config before it loads it */
	{".next", "cache"},
	{NULL, ".vite"},
	{NULL, "__pycache__"},
	{NULL, ".pytest_cache"},
	{NULL, ".eslintcache"},
};
static const char BUILD_INFO[] = ".tsbuildinfo";

static bool
component_is(const char *s, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(s, name, n);
}

static bool
is_tool_cache(const char *path)
{
	const char *parent = "", *name = path;
	size_t nparent = 0;

	for (;;) {
		size_t n = strcspn(name, "/"), k = sizeof(BUILD_INFO) - 1;

		for (size_t i = 0; i < array_len(tool_caches); i++)
			if (component_is(name, n, tool_caches[i].name) &&
				(!tool_caches[i].parent ||
					component_is(parent, nparent, tool_caches[i].parent)))
				return true;
		if (!name[n])
			return n >= k && !memcmp(name + n - k, BUILD_INFO, k);
		parent = name;
		nparent = n;
		name += n + 1;
	}
}

void
policy_hide_tool_caches(struct policy *p, const char *modules)
{
	for (size_t i = 0; i < array_len(tool_caches); i++) {
		cleanup_free char *path = NULL;
		bool is_named = false;

		if (tool_caches[i].parent != MODULES)
			continue;
		path = path_join(modules, tool_caches[i].name);
		for (size_t k = 0; k < p->nrules && !is_named; k++)
			is_named = path_is_within(p->rules[k].path, path);
		if (!is_named)
			policy_add_rule(p, SPEC_DENY_READ, false, path);
	}
}

const struct globset *
policy_outputs(const struct policy *p)
{
	const struct cachedef *cache = p->node->def->cache;

	return cache && cache->outputs.npos ? &cache->outputs : NULL;
}

bool
policy_is_output(const struct policy *p, const char *path)
{
	const struct globset *set = policy_outputs(p);

	return set && outputs_select(set, p->nested, p->node->project->nnested, path);
}

bool
policy_leaves_unstored(const struct policy *p, const char *path)
{
	const struct globset *set = policy_outputs(p);

	for (size_t i = 0; set && i < set->npos; i++)
		if (glob_match(set->pos[i], path))
			return true;
	return is_tool_cache(path);
}

bool
policy_hides_output(const struct policy *p, const char *path)
{
	const struct outputs_part part = {p->added, false};

	return p->added ? outputs_is_mine(&part, path) : policy_is_output(p, path);
}

bool
policy_names_write(const struct policy *p, const char *name, const char *path)
{
	return ruleset_names_write(p->compiled, name, path);
}

/* Names that the task's own project lies in, as below .github/actions, are there by the user's will. */
static bool
is_never(const struct policy *p, const char *path)
{
	const char *own = p->node->project->dir;
	size_t nown = path_is_within(path, own) ? strlen(own) : 0;

	for (size_t n = 0; (n = never_prefix(path, n));) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		if (n <= nown)
			continue;

		strbuf_add(&name, path, n);
		if (!policy_names_write(p, name.buf, path) &&
			!(p->git_config && !path[n] && never_is_git_config(path)))
			return true;
	}
	return false;
}

bool
policy_outputs_cross(const struct policy *p, const char *nested)
{
	const struct globset *set = p->derived ? policy_outputs(p) : NULL;

	for (size_t i = 0; set && i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++)
			if (glob_is_workspace(set->pos[i]) &&
				!glob_alternative_is_literal(set->pos[i], k) &&
				path_is_within(nested, glob_literal_head(set->pos[i], k)) &&
				glob_may_match_below(set->pos[i], nested))
				return true;
	return false;
}

/* In a project inside the task's own, without a wall, and granted there by entries of files alone, which do
 * not reach so far. `below`: nor may anything below it be written. */
static bool
is_beyond(const struct policy *p, const char *path, bool below)
{
	const struct globset *set = p->derived ? policy_outputs(p) : NULL;

	for (size_t i = 0; set && i < p->node->project->nnested; i++) {
		if (!path_is_within(path, p->nested[i]))
			continue;
		for (size_t k = 0; k < set->npos; k++)
			if (glob_is_workspace(set->pos[k]) &&
				(glob_match(set->pos[k], path) ||
					(below && glob_may_match_below(set->pos[k], path))))
				return false;
		return policy_outputs_cross(p, p->nested[i]);
	}
	return false;
}

/* An absolute path. */
static bool
ignores_outside(const struct policy *p, enum spec_rule_kind kind, const char *path)
{
	for (size_t i = 0; i < p->nconfig; i++)
		if (p->rules[i].kind == kind && path_is_within(path, p->rules[i].path))
			return true;
	return false;
}

bool
policy_ignores_read(const struct policy *p, const char *path)
{
	if (*path == '/')
		return ignores_outside(p, SPEC_IGNORE_READ, path);
	/* Who may not keep a file need not find an old one. */
	return ruleset_ignores(p->compiled, SPEC_IGNORE_READ, path) ||
	       policy_ignores_write(p, path);
}

bool
policy_ignores_write(const struct policy *p, const char *path)
{
	if (*path == '/')
		return ignores_outside(p, SPEC_IGNORE_WRITE, path);
	return ruleset_ignores(p->compiled, SPEC_IGNORE_WRITE, path);
}

enum write_verdict
policy_judge_write(const struct policy *p, const char *path)
{
	bool granted;

	/* Only what is never put anywhere is refused there: outside, all else fails for the command alone. */
	if (*path == '/')
		return policy_ignores_write(p, path) ? WRITE_IGNORED : WRITE_NEVER;
	granted = ruleset_may_write(p->compiled, path) && !is_beyond(p, path, false);

	if (granted && !is_never(p, path))
		return WRITE_GRANTED;
	if (policy_ignores_write(p, path))
		return WRITE_IGNORED;
	if (granted)
		return WRITE_NEVER;
	if (p->derived && !ruleset_is_quiet(p->compiled, path) && is_tool_cache(path))
		return WRITE_IGNORED;
	return WRITE_UNDECLARED;
}

bool
policy_writes_outside(const struct policy *p)
{
	for (size_t i = 0; i < p->nconfig; i++)
		if (p->rules[i].kind == SPEC_WRITE && *p->rules[i].path == '/')
			return true;
	return false;
}

bool
policy_may_make_dir(const struct policy *p, const char *path)
{
	return !is_never(p, path) && !is_beyond(p, path, true) &&
	       (ruleset_may_write(p->compiled, path) || ruleset_may_write_below(p->compiled, path));
}

bool
policy_may_see(const struct policy *p, const char *path, bool is_dir)
{
	enum verdict v = ruleset_verdict(p->compiled, path, is_dir ? HOST_DIR : HOST_FILE);

	return v == VERDICT_PASS || v == VERDICT_TRAVERSE;
}

/* A store of a home that is the workspace, in it or above it. */
static bool
is_routine_store(const struct policy *p, const char *path)
{
	const struct strvec *homes = homes_known();
	cleanup_free char *full = path_join(p->w->path, path);
	const struct store *s = homes_store_at(p->home, full);

	for (size_t i = 0; !s && i < homes->n; i++)
		s = homes_store_at(homes->v[i], full);
	return s && s->is_routine;
}

bool
policy_read_is_finding(const struct policy *p, const char *path)
{
	if (*path == '/') {
		const struct store *s = homes_store_at(p->home, path);

		return s && !s->is_routine;
	}
	if (is_routine_store(p, path))
		return false;
	/* A tool that may not keep its cache here need not find an old one. */
	if (p->derived && is_tool_cache(path))
		return false;
	if (path_is_within(path, p->node->project->dir))
		return true;
	/* A directory in which nothing is granted is hidden itself: a denial names no more than that. */
	for (size_t i = 0; i < p->withheld.n; i++)
		if (path_is_within(path, p->withheld.v[i]) ||
			path_is_within(p->withheld.v[i], path))
			return true;
	return false;
}

void
policy_add_reports(const struct policy *p, struct strvec *ret)
{
	strvec_push(ret, p->node->project->dir);
	for (size_t i = 0; i < p->withheld.n; i++)
		strvec_push(ret, p->withheld.v[i]);
}

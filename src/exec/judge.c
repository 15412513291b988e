/* SPDX-License-Identifier: MIT */
/* What a written or denied path is to a policy, after the run. */
#include "cache/outputs.h"
#include "exec/never.h"
#include "exec/policy.h"
#include "exec/rules.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* What tools keep beside the sources for themselves (design §5). `parent` may be NULL. */
static const struct {
	const char *parent;
	const char *name;
} tool_caches[] = {
	{"node_modules", ".cache"},
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
policy_names_write(const struct policy *p, const char *name, const char *path)
{
	return rules_names_write(p->compiled, name, path);
}

static bool
is_never(const struct policy *p, const char *path)
{
	for (size_t n = 0; (n = never_prefix(path, n));) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		strbuf_add(&name, path, n);
		if (!policy_names_write(p, name.buf, path))
			return true;
	}
	return false;
}

enum write_verdict
policy_judge_write(const struct policy *p, const char *path)
{
	if (rules_may_write(p->compiled, path))
		return is_never(p, path) ? WRITE_NEVER : WRITE_GRANTED;
	if (p->derived && !rules_is_quiet(p->compiled, path) && is_tool_cache(path))
		return WRITE_IGNORED;
	return WRITE_UNDECLARED;
}

bool
policy_may_make_dir(const struct policy *p, const char *path)
{
	if (rules_is_quiet(p->compiled, path) || is_never(p, path))
		return false;
	return rules_may_write(p->compiled, path) || rules_may_write_below(p->compiled, path);
}

bool
policy_may_see(const struct policy *p, const char *path, bool is_dir)
{
	if (rules_may_read(p->compiled, path))
		return true;
	return is_dir && !rules_is_quiet(p->compiled, path) &&
	       rules_may_read_below(p->compiled, path);
}

bool
policy_read_is_finding(const struct policy *p, const char *path)
{
	if (path_is_within(path, p->node->project->dir))
		return true;
	for (size_t i = 0; i < p->withheld.n; i++)
		if (path_is_within(path, p->withheld.v[i]))
			return true;
	return false;
}

/* As a grant spells a path: from the project, wildcards escaped. */
static void
add_spelling(struct strbuf *sb, const struct policy *p, const char *path)
{
	cleanup_strbuf struct strbuf escaped = STRBUF_INIT;
	char *rel = path_relative(p->node->project->dir, path);

	if (!*rel)
		strbuf_addch(&escaped, '.');
	for (const char *s = rel; *s; s++) {
		if (strchr("*?{}[]()!\\,", *s))
			strbuf_addch(&escaped, '\\');
		strbuf_addch(&escaped, *s);
	}
	strbuf_add_sanitised(sb, escaped.buf, escaped.len);
	free(rel);
}

char *
policy_grant_text(const struct policy *p, bool write, const char *path)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_addf(&sb, "allow.%s: ['", write ? "write" : "read");
	add_spelling(&sb, p, path);
	strbuf_adds(&sb, "']");
	return strbuf_take(&sb);
}

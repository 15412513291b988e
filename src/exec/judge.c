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
		if (!policy_names_write(p, name.buf, path))
			return true;
	}
	return false;
}

enum write_verdict
policy_judge_write(const struct policy *p, const char *path)
{
	if (ruleset_may_write(p->compiled, path))
		return is_never(p, path) ? WRITE_NEVER : WRITE_GRANTED;
	if (p->derived && !ruleset_is_quiet(p->compiled, path) && is_tool_cache(path))
		return WRITE_IGNORED;
	return WRITE_UNDECLARED;
}

bool
policy_may_make_dir(const struct policy *p, const char *path)
{
	return !is_never(p, path) &&
	       (ruleset_may_write(p->compiled, path) || ruleset_may_write_below(p->compiled, path));
}

bool
policy_may_see(const struct policy *p, const char *path, bool is_dir)
{
	enum verdict v = ruleset_verdict(p->compiled, path, is_dir ? HOST_DIR : HOST_FILE);

	return v == VERDICT_PASS || v == VERDICT_TRAVERSE;
}

bool
policy_read_is_finding(const struct policy *p, const char *path)
{
	if (*path == '/') {
		const struct store *s = homes_store_at(p->home, path);

		return s && !s->is_routine;
	}
	if (path_is_within(path, p->node->project->dir))
		return true;
	/* A directory in which nothing is granted is hidden itself: a denial names no more than that. */
	for (size_t i = 0; i < p->withheld.n; i++)
		if (path_is_within(path, p->withheld.v[i]) ||
			path_is_within(p->withheld.v[i], path))
			return true;
	return false;
}

/* What to write in the config. */

static bool
is_own(const struct policy *p, const char *path)
{
	const struct project *project = p->node->project;

	for (size_t i = 0; i < project->nnested; i++)
		if (path_is_within(path, project->nested[i]->dir))
			return false;
	return path_is_within(path, project->dir);
}

/* Whether the task's own key says something of the name already, or that of a task folded into it. */
static bool
is_keyed(const struct policy *p, const char *path)
{
	const struct cachedef *cache = p->node->def->cache;
	cleanup_free char *manifest = path_join(p->node->project->dir, "package.json");
	cleanup_free const struct node **folded = NULL;
	bool keyed = !strcmp(path, manifest) || globset_match(&cache->workspace_files, path) ||
		     (is_own(p, path) && globset_match(&cache->files, path));
	size_t n;

	folded = policy_folded(p->node, &n);
	for (size_t i = 0; i < n && !keyed; i++)
		keyed = folded[i]->def->cache &&
			globset_match(&folded[i]->def->cache->outputs, path);
	return keyed;
}

/* A path relative to `base` as a string of JSON, in the grammar of globs; `self` stands for the base
 * itself. */
static void
add_path(struct strbuf *sb, const char *base, const char *path, const char *self)
{
	cleanup_free char *rel = path_relative(base, path);
	const char *s = *rel ? rel : self;

	strbuf_addch(sb, '"');
	if (*rel && (strchr("^~$@", *rel) || rel[1] == ':'))
		strbuf_adds(sb, "./");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (*rel && strchr("*?{}[]()!\\,", c))
			strbuf_adds(sb, "\\\\");
		if (c == '"' || c == '\\')
			strbuf_addch(sb, '\\');
		if (c < 0x20 || c == 0x7f)
			strbuf_addf(sb, "\\u%04x", c);
		else
			strbuf_addch(sb, *s);
	}
	strbuf_addch(sb, '"');
}

static void
add_field(
	struct strbuf *sb, const char *field, const char *base, const char *path, const char *self)
{
	strbuf_addf(sb, "%s: [", field);
	add_path(sb, base, path, self);
	strbuf_addch(sb, ']');
}

/* Those of the paths that the field can name: its own files, or all others. */
static void
add_inputs(struct strbuf *sb, const struct policy *p, const struct strvec *paths, bool own)
{
	const char *base = own ? p->node->project->dir : "", *before = sb->len ? ", " : "";
	bool any = false;

	for (size_t i = 0; i < paths->n; i++) {
		if (is_own(p, paths->v[i]) != own)
			continue;
		if (any)
			strbuf_adds(sb, ", ");
		else
			strbuf_addf(sb, "%scache.inputs.%s: [", before,
				own ? "files" : "workspaceFiles");
		add_path(sb, base, paths->v[i], "**");
		any = true;
	}
	if (any)
		strbuf_addch(sb, ']');
}

char *
policy_inputs_text(const struct policy *p, const struct strvec *paths)
{
	struct strbuf sb = STRBUF_INIT;

	add_inputs(&sb, p, paths, true);
	add_inputs(&sb, p, paths, false);
	return strbuf_take(&sb);
}

char *
policy_grant_text(const struct policy *p, bool write, const char *path)
{
	const char *own = p->node->project->dir;
	cleanup_strvec struct strvec one = STRVEC_INIT;
	cleanup_free char *inputs = NULL;
	struct strbuf sb = STRBUF_INIT;

	if (*path == '/') {
		/* A credential store: of those that are outside only these are told of. */
		strbuf_adds(&sb, p->derived ? "exec.sandbox with allow.read: [" : "allow.read: [");
		if (p->home && path_is_within(path, p->home))
			strbuf_addf(&sb, "\"~/%s\"]", path_below(path, p->home));
		else
			strbuf_addf(&sb, "\"%s\"]", path);
		return strbuf_take(&sb);
	}
	strvec_push(&one, path);
	inputs = policy_inputs_text(p, &one);
	/* Where grants follow from the cache block, an exec.sandbox would take their place. */
	if (p->derived && p->node->def->cache && !write) {
		strbuf_adds(&sb, inputs);
		return strbuf_take(&sb);
	}
	if (p->derived && p->node->def->cache && is_own(p, path)) {
		add_field(&sb, "cache.outputs.files", own, path, "**");
		return strbuf_take(&sb);
	}
	if (p->derived)
		strbuf_adds(&sb, "exec.sandbox with ");
	add_field(&sb, write ? "allow.write" : "allow.read", own, path, ".");
	if (!write && p->node->def->cache && !is_keyed(p, path))
		strbuf_addf(&sb, ", and %s", inputs);
	return strbuf_take(&sb);
}

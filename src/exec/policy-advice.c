/* SPDX-License-Identifier: MIT */
/* What to write in the config, for what a task was denied. */
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "proto/never.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/workspace.h"
#include <fcntl.h>
#include <sys/stat.h>

static bool
is_own(const struct policy *p, const char *path)
{
	const struct project *project = p->node->project;

	for (size_t i = 0; i < project->nnested; i++)
		if (path_is_within(path, project->nested[i]->dir))
			return false;
	return path_is_within(path, project->dir);
}

/* Only what git lists can be an input. */
static bool
can_be_input(const struct policy *p, const char *path)
{
	size_t from, to;

	files_below(p->files, path, &from, &to);
	while (from < to && !path_is_within(p->files->paths[from], path))
		from++;
	return from < to;
}

/* When it was made; 0: nobody knows. */
static uint64_t
made_at(int rootfd, const char *path)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	struct statx st;

	if (parent < 0 || statx(parent, base, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) ||
		!(st.stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
}

const char *
policy_why_no_input(const struct policy *p, const char *path)
{
	if (path_find(path, ".git"))
		return "it is git's own";
	if (p->files->no_git || made_at(p->w->rootfd, path) > p->files->listed_ns)
		return "it came after vx had listed the files";
	return "git ignores it";
}

/* Whether the task's own key says something of the name already, or that of a task folded into it. */
static bool
is_keyed(const struct policy *p, const char *path)
{
	const struct cachedef *cache = p->node->def->cache;
	cleanup_free char *manifest = path_join(p->node->project->dir, "package.json");
	cleanup_free const struct node **folded = NULL;
	bool keyed = !strcmp(path, manifest) ||
		     (can_be_input(p, path) &&
			     (globset_match(&cache->workspace_files, path) ||
				     (is_own(p, path) && globset_match(&cache->files, path))));
	size_t n;

	folded = graph_upstream(p->node, true, &n);
	for (size_t i = 0; i < n && !keyed; i++)
		keyed = folded[i]->def->cache &&
			globset_match(&folded[i]->def->cache->outputs, path);
	return keyed;
}

/* Its own grants are then all there are. */
static const char in_place[] = "exec.sandbox, in place of what is derived, with ";

/* A path relative to `base` as a string of JSON, in the grammar of globs; `self` stands for the base
 * itself. */
static void
add_path(struct strbuf *sb, const char *base, const char *path, const char *self)
{
	cleanup_free char *rel = path_relative(base, path);
	const char *s = *rel ? rel : self;

	strbuf_addch(sb, '"');
	if (*rel && (strchr("^~$", *rel) || rel[1] == ':'))
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

/* Those of the paths that the field of cache.inputs or cache.outputs can name: its own files, or all
 * others. */
static void
add_globs(struct strbuf *sb, const struct policy *p, const struct strvec *paths, bool inputs,
	bool own)
{
	const char *base = own ? p->node->project->dir : "", *before = sb->len ? ", " : "";
	bool any = false;

	for (size_t i = 0; i < paths->n; i++) {
		if (is_own(p, paths->v[i]) != own || (inputs && !can_be_input(p, paths->v[i])))
			continue;
		if (any)
			strbuf_adds(sb, ", ");
		else
			strbuf_addf(sb, "%scache.%s.%s: [", before, inputs ? "inputs" : "outputs",
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

	add_globs(&sb, p, paths, true, true);
	add_globs(&sb, p, paths, true, false);
	return strbuf_take(&sb);
}

char *
policy_outputs_text(const struct policy *p, const struct strvec *paths)
{
	struct strbuf sb = STRBUF_INIT;

	add_globs(&sb, p, paths, false, true);
	add_globs(&sb, p, paths, false, false);
	return strbuf_take(&sb);
}

static bool
selects(const struct spec_rule *r, const char *path)
{
	struct err ignored = ERR_INIT;
	struct arena arena;
	struct glob *g;
	bool selected;

	if (!r->is_glob)
		return path_is_within(path, r->path);
	arena_init(&arena);
	selected =
		!glob_parse(&arena, "", r->path, GLOB_GRANT, &g, &ignored) && glob_match(g, path);
	arena_release(&arena);
	return selected;
}

/* Of the task's own entries. NULL: none selects the path. */
static const struct spec_rule *
find_entry(const struct policy *p, enum spec_rule_kind kind, const char *path)
{
	for (size_t i = 0; i < p->nconfig; i++)
		if (p->rules[i].kind == kind && *p->rules[i].path != '/' &&
			selects(&p->rules[i], path))
			return &p->rules[i];
	return NULL;
}

/* Where an entry covers the path, it is told why that is not enough. */
static const char own_entry[] = " (names that tools obey need an entry of their own)";

static bool
is_obeyed(const struct policy *p, const char *path)
{
	enum write_verdict v = policy_judge_write(p, path);
	const char *base = path_base(path);

	return v == WRITE_NEVER || (v == WRITE_GRANTED && never_is_git(base, strlen(base)));
}

/* At equal length a deny wins, so that a grant of the path itself may change nothing. */
static bool
add_denied(struct strbuf *sb, const struct policy *p, bool write, const char *path)
{
	const struct spec_rule *deny =
		find_entry(p, write ? SPEC_DENY_WRITE : SPEC_DENY_READ, path);
	cleanup_free char *rel = NULL;

	if (!deny)
		return false;
	rel = path_relative(
		p->node->project->dir, deny->is_glob ? glob_text_path(deny->path) : deny->path);
	strbuf_addf(sb, "take \"%s\" out of deny.%s", *rel ? rel : ".", write ? "write" : "read");
	if (find_entry(p, write ? SPEC_WRITE : SPEC_READ, path))
		return true;
	strbuf_adds(sb, ", and ");
	add_field(sb, write ? "allow.write" : "allow.read", p->node->project->dir, path, ".");
	return true;
}

static bool
is_granted_outside(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->nconfig; i++)
		if (p->rules[i].kind == SPEC_WRITE && *p->rules[i].path == '/' &&
			path_is_within(path, p->rules[i].path))
			return true;
	return false;
}

static char *
outside_text(const struct policy *p, bool write, const char *path)
{
	const char *with = p->derived ? in_place : "", *field = write ? "write" : "read";

	const char *why = write && is_granted_outside(p, path) ? own_entry : "";

	if (p->home && path_is_within(path, p->home))
		return xasprintf(
			"%sallow.%s: [\"~/%s\"]%s", with, field, path_below(path, p->home), why);
	return xasprintf("%sallow.%s: [\"%s\"]%s", with, field, path, why);
}

char *
policy_sockets_text(const struct policy *p)
{
	return xasprintf("%sallow.unixSockets: true", p->derived ? in_place : "");
}

char *
policy_cwd_text(const struct policy *p)
{
	const char *own = p->node->project->dir;

	for (size_t i = 0; i < p->nconfig; i++) {
		const struct spec_rule *r = &p->rules[i];
		/* Of a pattern, the directories before its first wildcard. */
		size_t n = r->is_glob ? strcspn(r->path, "*?[{") : strlen(r->path);
		cleanup_free char *head = xmemdupz(r->path, n);

		if (r->path[n])
			head[path_parent_len(head)] = '\0';

		if ((r->kind == SPEC_READ || r->kind == SPEC_WRITE) && *r->path != '/' &&
			(path_is_within(head, own) || path_is_within(own, head)))
			return NULL;
	}
	return p->derived ? NULL : policy_grant_text(p, false, own);
}

/* What no outputs may select. */
static bool
is_definition(const char *path)
{
	const char *base = path_base(path);

	return !strcmp(base, "package.json") || !strncmp(base, "vx.config.", 10) ||
	       !strncmp(base, "vx.workspace.", 13);
}

static bool
is_among(const struct node *n, const struct node *const *v, size_t nv)
{
	for (size_t i = 0; i < nv; i++)
		if (v[i] == n)
			return true;
	return false;
}

/* One that the task needs without its key, and that makes what is asked for or, of a directory that is hidden
 * as a whole, something in it. */
static const struct node *
find_left_out(const struct policy *p, const char *path)
{
	const struct node *found = NULL;
	size_t n, nfolded;
	cleanup_free const struct node **all = graph_upstream(p->node, false, &n);
	cleanup_free const struct node **folded = graph_upstream(p->node, true, &nfolded);

	for (size_t i = 0; i < n && !found; i++) {
		const struct cachedef *c = node_is_group(all[i]) ? NULL : all[i]->def->cache;

		if (!c || is_among(all[i], folded, nfolded))
			continue;
		if (globset_match(&c->outputs, path) || globset_may_match_below(&c->outputs, path))
			found = all[i];
	}
	return found;
}

/* What no entry opens, and why; NULL: it is nothing of the kind. */
static const char *
why_shut(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rules[i].kind == SPEC_QUIET && path_is_within(path, p->rules[i].path))
			return p->nbuilt && i >= p->nbuilt
				       ? "no entry does, as what is mounted there has another "
					 "path, "
					 "and is only shown by that"
				       : "no entry does, it is vx's own directory";
	return NULL;
}

char *
policy_grant_text(const struct policy *p, bool write, const char *path)
{
	const struct cachedef *cache = p->node->def->cache;
	const char *own = p->node->project->dir, *shut;
	cleanup_strvec struct strvec one = STRVEC_INIT;
	cleanup_free char *inputs = NULL, *outputs = NULL;
	const struct node *left_out;
	struct strbuf sb = STRBUF_INIT;

	/* A credential store, or, where a rule grants writing, a name that is never committed: of what is outside
	 * only these are told of. */
	if (*path == '/')
		return outside_text(p, write, path);
	shut = why_shut(p, path);
	if (shut)
		return xstrdup(shut);
	strvec_push(&one, path);
	inputs = policy_inputs_text(p, &one);
	outputs = policy_outputs_text(p, &one);
	/* Where grants follow from the cache block, an exec.sandbox would take their place. */
	left_out = p->derived && cache && !write ? find_left_out(p, path) : NULL;
	if (left_out) {
		strbuf_addf(&sb, "cache.inputs.tasks: [\"%s\", …], which leaves it out now",
			left_out->id);
		return strbuf_take(&sb);
	}
	if (p->derived && cache && !write && *inputs) {
		strbuf_adds(&sb, inputs);
		return strbuf_take(&sb);
	}
	if (p->derived && cache && write && !is_definition(path)) {
		strbuf_adds(&sb, outputs);
		strbuf_adds(&sb, is_obeyed(p, path) ? own_entry : "");
		return strbuf_take(&sb);
	}
	if (p->derived && cache && !write && !is_own(p, path)) {
		add_path(&sb, "", path, ".");
		strbuf_adds(&sb, " is ignored by git: name the task that makes it in dependsOn");
		return strbuf_take(&sb);
	}
	if (p->derived)
		strbuf_adds(&sb, in_place);
	if (!add_denied(&sb, p, write, path))
		add_field(&sb, write ? "allow.write" : "allow.read", own, path, ".");
	if (write && is_obeyed(p, path))
		strbuf_adds(&sb, own_entry);
	if (!write && cache && !is_keyed(p, path)) {
		if (*inputs)
			strbuf_addf(&sb, ", and %s", inputs);
		else
			strbuf_addf(&sb, " (%s, so it cannot be in the key)",
				policy_why_no_input(p, path));
	}
	/* Kept and not stored, it would be missing after a hit. */
	if (write && cache && !is_definition(path) && !policy_leaves_unstored(p, path))
		strbuf_addf(&sb, ", and %s", outputs);
	if (write && !p->derived && !p->live)
		strbuf_adds(&sb, ", or ignore.write to throw it away");
	return strbuf_take(&sb);
}

/* One of its tasks that a key can be folded from, of the same name if there is one. */
static const struct taskdef *
find_task(const struct project *project, const char *name)
{
	const struct taskdef *found = NULL;

	for (size_t i = 0; i < project->def.ntasks; i++) {
		const struct taskdef *t = &project->def.tasks[i];

		if (t->command && !strcmp(t->name, name))
			return t;
		if (t->command && !found)
			found = t;
	}
	return found;
}

/* The one that the path is in or, of a directory that is hidden as a whole, that is in it: which of several
 * was meant nobody knows. */
static const struct project *
find_withheld(const struct policy *p, const char *path, const char **ret_link)
{
	const struct project *found = NULL;

	for (size_t i = 0; i < p->withheld.n; i++) {
		const char *dir = p->withheld.v[i];
		const struct project *project = htab_get(&p->w->by_dir, dir);

		if (!project || (!path_is_within(path, dir) && !path_is_within(dir, path)))
			continue;
		if (found)
			return NULL;
		found = project;
		*ret_link = p->withheld_links.v[i];
	}
	return found;
}

char *
policy_withheld_text(const struct policy *p, const char *path)
{
	const char *link;
	const struct project *project = find_withheld(p, path, &link);
	const struct taskdef *task = project ? find_task(project, p->node->def->name) : NULL;
	struct strbuf sb = STRBUF_INIT;

	if (!project)
		return NULL;
	strbuf_addf(&sb,
		"%s, linked as %s, is hidden from it, as its key has nothing of that project: an "
		"edit there would not run it again",
		project->dir, link);
	if (project->undefined)
		strbuf_addf(&sb, "; to show it, dependsOn one of its tasks, or what is said above");
	else if (task)
		strbuf_addf(&sb, "; to show it, dependsOn: [\"%s#%s\"], or what is said above",
			project->name, task->name);
	return strbuf_take(&sb);
}

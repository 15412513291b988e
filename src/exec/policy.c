/* SPDX-License-Identifier: MIT */
#include "cache/outputs.h"
#include "exec/homes.h"
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "proto/ruleset.h"
#include "proto/stores.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/inputs.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>

void
policy_add_rule(struct policy *p, enum spec_rule_kind kind, bool is_glob, const char *path)
{
	GROW(p->rules, p->nrules + 1, p->rules_cap);
	p->rules[p->nrules++] = (struct spec_rule){kind, is_glob, xstrdup(path)};
}

void
policy_free(struct policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nrules; i++)
		free(p->rules[i].path);
	free(p->rules);
	free(p->home);
	free(p->nested);
	strvec_release(&p->withheld);
	strvec_release(&p->withheld_links);
	strvec_release(&p->linked);
	strvec_release(&p->seconds);
	strvec_release(&p->stores);
	strvec_release(&p->sockets);
	strvec_release(&p->hidden);
	ruleset_free(p->compiled);
	free(p);
}

int
policy_compile(struct policy *p, struct err *e)
{
	const struct project *project = p->node->project;

	p->nested = xcalloc(project->nnested + 1, sizeof(*p->nested));
	for (size_t i = 0; i < project->nnested; i++)
		p->nested[i] = project->nested[i]->dir;
	return ruleset_new(p->rules, p->nrules, project->dir, &p->compiled, e);
}

/* Globs to rules. */

/* The pattern of a glob's alternative below its literal head. */
static const char *
below_head(const char *text, const char *head)
{
	if (!*head)
		return text;
	for (;;) {
		text += strcspn(text, "/");
		text += *text == '/';
		head += strcspn(head, "/");
		if (!*head++)
			return text;
	}
}

/* One alternative. `<d>` with everything below it is the literal `<d>`. */
static void
add_alternative(struct policy *p, enum spec_rule_kind kind, const struct glob *g, size_t i)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *head = glob_literal_head(g, i);

	glob_add_text(g, i, &text);
	if (glob_alternative_is_literal(g, i) ||
		!strcmp(below_head(glob_text_path(text.buf), head), "**"))
		policy_add_rule(p, kind, false, head);
	else
		policy_add_rule(p, kind, true, text.buf);
}

static void
add_glob(struct policy *p, enum spec_rule_kind kind, const struct glob *g)
{
	for (size_t i = 0; i < glob_nalternatives(g); i++)
		add_alternative(p, kind, g, i);
}

static void
add_globs(struct policy *p, enum spec_rule_kind kind, struct glob *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_glob(p, kind, v[i]);
}

/* exec.sandbox. */

static const char *
place_of(const struct policy *p)
{
	return p->node->def->place ? p->node->def->place : p->node->id;
}

static int
refuse_unresolved(
	const struct policy *p, const char *what, const char *text, int num, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, text, strlen(text));
	if (num == ELOOP)
		return err_set(e, ERR_CONFIG, 0,
			"%s: the %s '%s' leads through more than 40 links, or in a circle: remove "
			"the link, or name the target by its own path",
			place_of(p), what, name.buf);
	return err_set(e, ERR_IO, num, "%s: the %s '%s'", place_of(p), what, name.buf);
}

static int
refuse_link(const struct policy *p, const char *what, const char *text, const char *where,
	struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, to = STRBUF_INIT;

	strbuf_add_sanitised(&name, text, strlen(text));
	strbuf_add_sanitised(&to, where, strlen(where));
	return err_set(e, ERR_CONFIG, 0,
		"%s: the %s '%s' leads through a link to %s%s: remove the link, or name the target "
		"by "
		"its own path",
		place_of(p), what, name.buf, *where == '/' ? "" : "<workspace>/", to.buf);
}

/*
 * A write grant never leads through a link, not even to a place in the project: a task could have put
 * the link there in an earlier run, and the grant would name whatever it chose (its own config, the
 * hooks of the repository). A literal grant of a name that is a link is a grant of the link.
 */
static int
check_no_link(struct policy *p, const char *dir, const char *text, struct err *e)
{
	cleanup_free char *real = NULL;
	int inside = policy_resolve(p->w, dir, &real);

	if (inside < 0)
		return refuse_unresolved(p, "write grant", text, errno, e);
	return !inside || strcmp(real, dir) != 0 ? refuse_link(p, "write grant", text, real, e) : 0;
}

/* The name itself may be a link, as long as it does not lead out of the project. */
static int
check_stays(struct policy *p, const char *head, const char *text, struct err *e)
{
	const char *own = p->node->project->dir;
	cleanup_free char *real = NULL;
	int inside = policy_resolve(p->w, head, &real);

	if (inside < 0)
		return refuse_unresolved(p, "write grant", text, errno, e);
	if (inside && (!path_is_within(head, own) || path_is_within(real, own)))
		return 0;
	return refuse_link(p, "write grant", text, real, e);
}

/*
 * What a write grant opens must be what it says: one that is led elsewhere by a link is refused before
 * anything is made.
 */
static int
add_write_grant(struct policy *p, const struct grant *g, struct err *e)
{
	for (size_t i = 0; i < glob_nalternatives(g->glob); i++) {
		const char *head = glob_literal_head(g->glob, i);
		size_t n = glob_alternative_is_literal(g->glob, i) ? path_parent_len(head)
								   : strlen(head);
		cleanup_free char *dir = xmemdupz(head, n);

		if (check_no_link(p, dir, g->text, e) || check_stays(p, head, g->text, e))
			return -1;
		add_alternative(p, SPEC_WRITE, g->glob, i);
	}
	return 0;
}

/* An absolute path with the links of the part that exists resolved. */
static char *
canonical(const char *text)
{
	cleanup_free char *path = path_normalise(text);
	size_t n = strlen(path);

	for (;;) {
		cleanup_free char *part = xmemdupz(path, n ? n : 1);
		cleanup_free char *real = realpath(part, NULL);

		if (real)
			return path_join(real, path + n + (path[n] == '/'));
		if (n <= 1)
			return take_ptr(&path);
		n = path_parent_len(part);
	}
}

/* After all that is allowed. At equal length a deny wins. */
static int
deny_outside(struct policy *p, enum spec_rule_kind kind, const char *path, const char *text,
	struct err *e)
{
	bool is_read = kind == SPEC_DENY_READ;

	if (!strcmp(path, "/"))
		return err_set(e, ERR_CONFIG, 0, "%s: deny of '%s': name what is in it",
			place_of(p), text);
	for (size_t i = 0; i < p->nrules; i++) {
		struct spec_rule *r = &p->rules[i];

		if (strcmp(r->path, path) != 0)
			continue;
		if (!is_read) {
			r->kind = r->kind == SPEC_WRITE ? SPEC_READ : r->kind;
		} else if (r->kind == SPEC_READ || r->kind == SPEC_WRITE) {
			free(r->path);
			*r = p->rules[--p->nrules];
			i--;
		}
	}
	if (is_read)
		strvec_push(&p->hidden, path);
	else
		policy_add_rule(p, kind, false, path);
	return 0;
}

static int
add_absolute(struct policy *p, enum spec_rule_kind kind, const char *text, struct err *e)
{
	cleanup_free char *path = NULL, *expanded = NULL;
	/* It grants nothing: what is told by its name is ignored by it. */
	bool is_ignored = kind == SPEC_IGNORE_READ || kind == SPEC_IGNORE_WRITE;

	if (*text == '~') {
		if (!p->home)
			return err_set(e, ERR_CONFIG, 0,
				"%s: '%s', but there is no home directory: set HOME, or write the "
				"absolute path",
				place_of(p), text);
		expanded = xasprintf("%s%s", p->home, text + 1);
	}
	/* In the workspace it is a name like any other there: no link of it is followed. Nor does a link
	 * from outside lead in: a task with a write grant out there may have made it. */
	path = path_normalise(expanded ? expanded : text);
	if (!path_is_within(path, p->w->path) && !is_ignored) {
		free(path);
		path = canonical(expanded ? expanded : text);
		if (path_is_within(path, p->w->path))
			return refuse_link(p, "grant", text, path_below(path, p->w->path), e);
	}
	if (path_is_within(path, p->w->path)) {
		const char *below = path_below(path, p->w->path);
		cleanup_free char *dir = xmemdupz(below, path_parent_len(below));

		if (kind == SPEC_WRITE && check_no_link(p, dir, text, e))
			return -1;
		policy_add_rule(p, kind, false, below);
		return 0;
	}
	if (kind == SPEC_DENY_READ || kind == SPEC_DENY_WRITE)
		return deny_outside(p, kind, path, text, e);
	policy_add_rule(p, kind, false, path);
	return 0;
}

static int
add_grants(
	struct policy *p, enum spec_rule_kind kind, const struct grant *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].absolute) {
			if (add_absolute(p, kind, v[i].absolute, e))
				return -1;
		} else if (kind == SPEC_WRITE) {
			if (add_write_grant(p, &v[i], e))
				return -1;
		} else {
			add_glob(p, kind, v[i].glob);
		}
	}
	return 0;
}

/* A socket that may be used is a name that may be seen. */
static int
add_sockets(struct policy *p, struct err *e)
{
	const struct sandboxdef *s = p->node->def->sandbox;
	size_t from = p->nrules;

	if (add_grants(p, SPEC_READ, s->sockets, s->nsockets, e))
		return -1;
	for (size_t i = from; i < p->nrules; i++)
		strvec_push_take(&p->sockets, *p->rules[i].path == '/'
						      ? xstrdup(p->rules[i].path)
						      : path_join(p->w->path, p->rules[i].path));
	p->unix_sockets = s->any_socket || p->sockets.n;
	return 0;
}

static int
add_config(struct policy *p, struct err *e)
{
	const struct sandboxdef *s = p->node->def->sandbox;

	if (add_grants(p, SPEC_READ, s->allow_read, s->nallow_read, e) ||
		add_grants(p, SPEC_WRITE, s->allow_write, s->nallow_write, e) ||
		add_grants(p, SPEC_DENY_READ, s->deny_read, s->ndeny_read, e) ||
		add_grants(p, SPEC_DENY_WRITE, s->deny_write, s->ndeny_write, e) ||
		add_sockets(p, e) ||
		add_grants(p, SPEC_IGNORE_READ, s->ignore_read, s->nignore_read, e) ||
		add_grants(p, SPEC_IGNORE_WRITE, s->ignore_write, s->nignore_write, e))
		return -1;
	p->git_config = s->git_config;
	p->may_nest = s->nested;
	p->hermetic = s->hermetic;
	p->weaker = s->weaker_when_nested;
	return 0;
}

/* Credential stores in the workspace. */

static void
find_stores_of(struct policy *p, const char *home)
{
	if (!path_is_within(home, p->w->path) && !path_is_within(p->w->path, home))
		return;
	for (size_t i = 0; i < array_len(stores); i++) {
		cleanup_free char *path = homes_store_path(home, &stores[i]);

		if (path_is_within(path, p->w->path) && strcmp(path, p->w->path) != 0)
			strvec_push(&p->stores, path_below(path, p->w->path));
	}
}

static void
find_stores(struct policy *p)
{
	const struct strvec *homes = homes_known();

	strvec_init(&p->stores);
	if (p->home && !strvec_contains(homes, p->home))
		find_stores_of(p, p->home);
	for (size_t i = 0; i < homes->n; i++)
		find_stores_of(p, homes->v[i]);
}

static bool
names_input(const struct globset *set, const char *store, const char *path)
{
	for (size_t i = 0; i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++) {
			const char *named = glob_literal_head(set->pos[i], k);

			if (glob_alternative_is_literal(set->pos[i], k) &&
				path_is_within(named, store) && path_is_within(path, named))
				return true;
		}
	return false;
}

/* That a wildcard takes a store among the inputs does not show it to the task. */
static bool
is_unnamed_store(const struct policy *p, const char *path)
{
	const struct cachedef *cache = p->node->def->cache;

	for (size_t i = 0; i < p->stores.n; i++)
		if (path_is_within(path, p->stores.v[i]))
			return !cache ||
			       !(names_input(&cache->files, p->stores.v[i], path) ||
				       names_input(&cache->workspace_files, p->stores.v[i], path));
	return false;
}

/* Derived. */

static void
add_folded_outputs(struct policy *p, bool with_exceptions)
{
	size_t n;
	cleanup_free const struct node **folded = graph_upstream(p->node, true, &n);

	for (size_t i = 0; i < n; i++) {
		const struct cachedef *cache = folded[i]->def->cache;

		if (cache && (cache->outputs.nneg > 0) == with_exceptions)
			add_globs(p, SPEC_READ, cache->outputs.pos, cache->outputs.npos);
	}
}

static void
add_what_is_keyed(struct policy *p, const struct inputs *inputs)
{
	cleanup_free char *manifest = path_join(p->node->project->dir, "package.json");

	for (size_t i = 0; i < inputs->n; i++)
		if (!is_unnamed_store(p, inputs->paths[i]))
			policy_add_rule(p, SPEC_READ, false, inputs->paths[i]);
	policy_add_rule(p, SPEC_READ, false, manifest);
	add_folded_outputs(p, false);
	p->ncovered = p->nrules;
	/* These grants are wider: what "!" takes back is made by somebody, and in the key of nobody. */
	add_folded_outputs(p, true);
}

static void
add_derived(struct policy *p, const struct inputs *inputs)
{
	const struct cachedef *cache = p->node->def->cache;

	if (!cache) {
		cleanup_free char *modules = path_join(p->node->project->dir, "node_modules");

		policy_add_rule(p, SPEC_WRITE, false, p->node->project->dir);
		/* The packages that are linked in it are granted to read: whoever makes a link there, in a later
		 * run. */
		policy_add_rule(p, SPEC_DENY_WRITE, false, modules);
		add_what_is_keyed(p, inputs);
		p->ncovered = 0;
		return;
	}
	add_what_is_keyed(p, inputs);
	add_globs(p, SPEC_WRITE, cache->outputs.pos, cache->outputs.npos);
	add_globs(p, SPEC_WRITE, cache->outputs.neg, cache->outputs.nneg);
}

/*
 * What other tasks may make meanwhile.
 *
 * A directory in which the host has no name that is not granted passes as a whole (sandbox/pure.h), and
 * what comes to be in it is seen. That the outputs of a task of which this one's key knows nothing do come
 * is no accident: tasks of one project run side by side. A rule for them keeps the directory from passing,
 * so they stay hidden, and this task's result can be saved. It takes nothing away: it is made only where no
 * grant selects such a name.
 */

struct granted {
	struct htab literals; /* what is granted by its path */
	struct strvec heads;  /* where the patterns of grants begin */
};

static void
find_granted(const struct policy *p, struct granted *ret)
{
	htab_init(&ret->literals);
	strvec_init(&ret->heads);
	for (size_t i = 0; i < p->nrules; i++) {
		const struct spec_rule *r = &p->rules[i];

		if ((r->kind != SPEC_READ && r->kind != SPEC_WRITE) || *r->path == '/')
			continue;
		if (r->is_glob) {
			/* Where there are escapes, less of it. */
			const char *path = glob_text_path(r->path);
			cleanup_free char *text = xmemdupz(path, strcspn(path, "*?{}[]()!\\,"));

			text[path_parent_len(text)] = '\0';
			strvec_push(&ret->heads, text);
		} else {
			htab_put(&ret->literals, r->path, ret);
		}
	}
}

/* A grant inside is longer, and stands; only that of a pattern may begin there and be meant. */
static bool
is_selected(const struct granted *granted, const char *head)
{
	for (size_t i = 0; i < granted->heads.n; i++)
		if (path_is_within(head, granted->heads.v[i]) ||
			path_is_within(granted->heads.v[i], head))
			return true;
	for (size_t n = strlen(head);; n--) {
		if ((!head[n] || head[n] == '/' || !n) && htab_getn(&granted->literals, head, n))
			return true;
		if (!n)
			return false;
	}
}

static void
hide_outputs_of(struct policy *p, const struct granted *granted, const struct taskdef *def)
{
	size_t npos = def->cache && def != p->node->def ? def->cache->outputs.npos : 0;

	for (size_t k = 0; k < npos; k++) {
		const struct glob *g = def->cache->outputs.pos[k];

		for (size_t n = 0; n < glob_nalternatives(g); n++)
			if (!is_selected(granted, glob_literal_head(g, n)))
				add_alternative(p, SPEC_DENY_READ, g, n);
	}
}

static void
hide_outputs_in(struct policy *p, const struct granted *granted, const struct project *project)
{
	for (size_t i = 0; i < project->def.ntasks; i++)
		if (!taskdef_leaves_project(&project->def.tasks[i]))
			hide_outputs_of(p, granted, &project->def.tasks[i]);
}

/* Of the projects in which it has inputs, and what may lie in any: elsewhere nothing passes but what is
 * granted by its name. */
static void
hide_other_outputs(struct policy *p, const struct inputs *inputs)
{
	const struct project *own = p->node->project;
	cleanup_free bool *done = NULL;
	struct granted granted;

	if (!p->node->def->cache) /* nothing to be saved */
		return;
	find_granted(p, &granted);
	done = xcalloc(p->w->nprojects + 1, sizeof(*done));
	done[own->index] = true;
	hide_outputs_in(p, &granted, own);
	for (size_t i = 0; i < inputs->n; i++) {
		const struct project *project = workspace_project_at(p->w, inputs->paths[i]);

		if (!project || done[project->index])
			continue;
		done[project->index] = true;
		hide_outputs_in(p, &granted, project);
	}
	for (size_t i = 0; i < p->w->nfar; i++)
		hide_outputs_of(p, &granted, p->w->far[i]);
	htab_release(&granted.literals);
	strvec_release(&granted.heads);
}

/* Walls. */

enum reach {
	REACH_NONE,
	REACH_OVER,    /* a grant of something larger, or a wildcard, takes it in */
	REACH_BY_NAME, /* a grant names the wall itself */
};

static enum reach
reach_of(const struct policy *p, const char *wall, unsigned kinds)
{
	enum reach reach = REACH_NONE;

	for (size_t i = 0; i < p->nrules; i++) {
		const struct spec_rule *r = &p->rules[i];

		if (!(kinds & 1U << r->kind) || *r->path == '/')
			continue;
		/* a pattern's literal path is looked at by whoever applies the rule: the longest wins */
		if (r->is_glob)
			reach = REACH_OVER;
		else if (!strcmp(r->path, wall))
			return REACH_BY_NAME;
		else if (path_is_within(wall, r->path))
			reach = REACH_OVER;
	}
	return reach;
}

/*
 * A directory that no grant opens unless it names it, or something inside (spec/sandbox.md §5). What
 * is named inside has a longer literal path and wins by that.
 */
static void
add_wall(struct policy *p, const char *dir)
{
	if (reach_of(p, dir, 1U << SPEC_READ | 1U << SPEC_WRITE) == REACH_OVER)
		policy_add_rule(p, SPEC_DENY_READ, false, dir);
	if (reach_of(p, dir, 1U << SPEC_WRITE) == REACH_OVER)
		policy_add_rule(p, SPEC_DENY_WRITE, false, dir);
}

/* The cache where the workspace's settings put it, when that is inside. (sandboxed.c covers one that
 * is elsewhere.) */
static char *
cache_dir_inside(const struct workspace *w)
{
	const char *dir = w->settings.cache_dir;
	cleanup_free char *path = NULL;

	if (!dir || !*dir || *dir == '~')
		return NULL;
	if (*dir == '/') {
		path = canonical(dir);
		return path_is_within(path, w->path) ? xstrdup(path_below(path, w->path)) : NULL;
	}
	path = path_normalise(dir);
	return *path && path_is_normal(path) ? take_ptr(&path) : NULL;
}

/* Where nobody may look, whatever is granted. */
static void
hide_own(struct policy *p, const char *dir)
{
	if (*dir && !path_is_within(dir, ".vx"))
		policy_add_rule(p, SPEC_QUIET, false, dir);
}

/* What a linked package says to vx is vx's own business, and no part of the key has its bytes. */
static void
add_config_walls(struct policy *p, const char *dir)
{
	static const char *const stems[] = {"vx.config", "vx.workspace"};
	static const char *const kinds[] = {"json", "ts", "mts", "js", "mjs", "cts", "cjs"};
	const struct project *linked = htab_get(&p->w->by_dir, dir);

	if (linked->config)
		add_wall(p, linked->config);
	for (size_t i = 0; i < array_len(stems) * array_len(kinds); i++) {
		cleanup_free char *path = xasprintf(
			"%s/%s.%s", dir, stems[i / array_len(kinds)], kinds[i % array_len(kinds)]);
		size_t from, to;

		files_below(p->files, path, &from, &to);
		if (from < to && !strcmp(p->files->paths[from], path) &&
			(!linked->config || strcmp(path, linked->config) != 0))
			add_wall(p, path);
	}
}

static void
add_walls(struct policy *p, const char *area)
{
	const struct project *project = p->node->project;
	cleanup_free char *cache = cache_dir_inside(p->w);

	for (size_t i = 0; i < project->nnested; i++)
		if (!policy_outputs_cross(p, project->nested[i]->dir))
			add_wall(p, project->nested[i]->dir);
	for (size_t i = 0; i < p->stores.n; i++)
		add_wall(p, p->stores.v[i]);
	for (size_t i = 0; i < p->linked.n; i++)
		add_config_walls(p, p->linked.v[i]);
	add_wall(p, ".git");
	policy_add_rule(p, SPEC_QUIET, false, ".vx");
	if (cache)
		hide_own(p, cache);
	if (path_is_within(area, p->w->path))
		hide_own(p, path_below(area, p->w->path));
}

/* Outputs. */

static int
add_outputs(struct policy *p, struct err *e)
{
	const struct globset *set = policy_outputs(p);

	for (size_t i = 0; set && i < set->npos; i++) {
		const struct glob *g = set->pos[i];

		for (size_t k = 0; k < glob_nalternatives(g); k++) {
			const char *head = glob_literal_head(g, k);
			/* an output may itself be a link, but not lie beyond one */
			size_t n = glob_alternative_is_literal(g, k) ? path_parent_len(head)
								     : strlen(head);
			cleanup_free char *dir = xmemdupz(head, n), *real = NULL;
			int inside = policy_resolve(p->w, dir, &real);

			if (inside < 0)
				return refuse_unresolved(p, "output", glob_text(g), errno, e);
			if (!inside || strcmp(real, dir) != 0)
				return refuse_link(p, "output", glob_text(g), real, e);
		}
		if (!p->added)
			add_glob(p, SPEC_OUTPUT, g);
	}
	for (size_t i = 0; p->added && i < p->added->n; i++)
		policy_add_rule(p, SPEC_OUTPUT, false, p->added->v[i]);
	return 0;
}

/* Home. */

static char *
find_home(const struct taskdef *def)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	for (size_t i = 0; i < def->ndefine; i++)
		if (!strcmp(def->define[i].name, "HOME"))
			home = def->define[i].value;
	if (!home || !*home) {
		pw = getpwuid(geteuid());
		home = pw ? pw->pw_dir : NULL;
	}
	return home && *home == '/' ? realpath(home, NULL) : NULL;
}

int
policy_build(const struct workspace *w, const struct node *node, const struct files *files,
	const struct inputs *inputs, const char *area, const struct strvec *added,
	struct policy **ret, struct err *e)
{
	struct policy *p = xcalloc(1, sizeof(*p));

	p->w = w;
	p->added = added;
	p->node = node;
	p->files = files;
	p->derived = !node->def->sandbox;
	p->live = node->def->persistent || (!p->derived && node->def->sandbox->live);
	p->home = find_home(node->def);
	find_stores(p);
	if (p->derived)
		add_derived(p, inputs);
	else if (add_config(p, e))
		goto failed;
	p->nconfig = p->derived ? 0 : p->nrules;
	if (policy_add_node_modules(p, e))
		goto failed;
	hide_other_outputs(p, inputs);
	add_walls(p, area);
	if (add_outputs(p, e) || policy_compile(p, e))
		goto failed;
	*ret = p;
	return 0;
failed:
	policy_free(p);
	return -1;
}

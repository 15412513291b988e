/* SPDX-License-Identifier: MIT */
#include "graph/select.h"
#include "graph/affected.h"
#include "graph/order.h"
#include "graph/scope.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

enum {
	SELECT_TASKS_SHOWN = 12
};

/* As other runners write it: "app#build" for "app:build", owned. NULL: no project is called so. */
static char *
meant_by_colon(const struct workspace *w, const char *word)
{
	for (const char *colon = strchr(word, ':'); colon; colon = strchr(colon + 1, ':')) {
		cleanup_free char *name = xmemdupz(word, (size_t)(colon - word));

		if (colon[1] && workspace_project(w, name))
			return xasprintf("%s#%s", name, colon + 1);
	}
	return NULL;
}

/* In no project, and no other was chosen. */
static int
refuse_nowhere(const struct workspace *w, const struct selection *s, struct err *e)
{
	const char *here = *s->cwd ? s->cwd : "the workspace root";

	for (size_t i = 0; i < s->ntasks; i++) {
		cleanup_free char *meant = meant_by_colon(w, s->tasks[i]);

		if (meant)
			return err_set(e, ERR_USAGE, 0, "%s is in no project; did you mean \"%s\"?",
				here, meant);
	}
	return err_set(e, ERR_USAGE, 0,
		"%s is in no project: name one (\"app#build\"), or select with --filter or --all",
		here);
}

static int
find_scope(struct workspace *w, const struct selection *s, struct scope_bases *bases,
	struct scope *ret, struct err *e)
{
	const struct project *here;

	if (s->nfilters)
		return scope_filter(w, s->filters, s->nfilters, bases, ret, e);
	if (s->all || s->affected) {
		memset(ret->has, true, ret->n * sizeof(bool));
		return 0;
	}
	here = workspace_project_at(w, s->cwd);
	if (!here)
		return refuse_nowhere(w, s, e);
	ret->has[here->index] = true;
	return 0;
}

struct picked {
	struct request *v;
	size_t n, cap;
	size_t **seen; /* by project and task: where in v, from 1 */
	bool by_diff;  /* that a name selects nothing now is no slip */
};

static void
pick(struct picked *p, struct project *project, struct taskdef *def, bool anchored)
{
	size_t **seen = &p->seen[project->index], *at;

	if (!*seen)
		*seen = xcalloc(project->def.ntasks, sizeof(**seen));
	at = &(*seen)[def - project->def.tasks];
	if (!*at) {
		GROW(p->v, p->n + 1, p->cap);
		p->v[p->n++] = (struct request){project, def, false};
		*at = p->n;
	}
	p->v[*at - 1].anchored |= anchored;
}

/* The names of all tasks in the scope (NULL: everywhere), each once, in the order of projects. */
static void
task_names(const struct workspace *w, const struct scope *scope, struct htab *ret)
{
	htab_init(ret);
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct projectdef *def = &w->projects[i]->def;

		for (size_t j = 0; j < def->ntasks && (!scope || scope->has[i]); j++)
			htab_put(ret, def->tasks[j].name, w->projects[i]);
	}
}

static const char **
keys_of(const struct htab *t)
{
	const char **names = xcalloc(t->n, sizeof(*names));

	for (size_t i = 0; i < t->n; i++)
		names[i] = t->entries[i].key;
	return names;
}

/* Appends "; did you mean …?" or the list of what there is. */
static void
add_task_hint(struct strbuf *sb, const char *word, const char *prefix, const struct htab *tasks)
{
	cleanup_free const char **names = keys_of(tasks);
	const char *near = word ? nearest_name(word, names, tasks->n) : NULL;

	if (near) {
		strbuf_addf(sb, "; did you mean \"%s%s\"?", prefix, near);
	} else if (tasks->n) {
		strbuf_adds(sb, word ? scope_there_are(tasks->n) : ": ");
		scope_add_list(sb, names, tasks->n, SELECT_TASKS_SHOWN);
	}
}

static const struct project *
only_project(const struct workspace *w, const struct scope *scope)
{
	size_t i = 0;

	while (!scope->has[i])
		i++;
	return w->projects[i];
}

/* Who comes from a package manager, or has only just begun, expects scripts to be tasks. */
static void
add_first_task(struct strbuf *sb, const struct project *here, const char *task)
{
	cleanup_free char *file = path_join(here ? here->dir : "", "vx.config.json");

	strbuf_addf(sb,
		", nor any other: %swrite { \"tasks\": { \"%s\": { \"exec\": { \"command\": \"…\" "
		"} } } } "
		"in %s%s",
		here && !here->has_manifest ? "" : "scripts in a package.json are no tasks; ", task,
		here ? "" : "the project's ", file);
}

static bool
is_declared(const struct workspace *w, const char *task)
{
	for (size_t i = 0; i < w->nprojects; i++)
		if (project_task(w->projects[i], task))
			return true;
	return false;
}

/* NULL: the word is a task's name or a slip in one. */
static const char *
find_stray(const struct selection *s, const char *word)
{
	for (size_t i = 0; i < s->nstrays; i++)
		if (!strcmp(strchr(s->strays[i], '=') + 1, word))
			return s->strays[i];
	return NULL;
}

/* "app has no task …", or "no selected project declares …", and where it can be found instead. */
static int
refuse_bare(struct workspace *w, const struct selection *s, const struct scope *scope,
	const char *task, struct err *e)
{
	cleanup_free const char **holders = xcalloc(w->nprojects, sizeof(*holders));
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const struct project *here = workspace_project_at(w, s->cwd);
	const char *stray = find_stray(s, task);
	struct htab tasks;
	size_t n = 0;

	for (size_t i = 0; i < w->nprojects; i++)
		if (project_task(w->projects[i], task))
			holders[n++] = w->projects[i]->is_root ? "//" : w->projects[i]->name;
	if (!n) {
		cleanup_free char *meant = meant_by_colon(w, task);

		strbuf_addf(&text, "no project declares a task \"%s\"", task);
		task_names(w, NULL, &tasks);
		if (stray)
			strbuf_addf(&text, "; did you mean %s?", stray);
		else if (meant)
			strbuf_addf(&text, "; did you mean \"%s\"?", meant);
		else if (tasks.n)
			add_task_hint(&text, task, "", &tasks);
		else
			add_first_task(&text, here, task);
		htab_release(&tasks);
		return err_set(e, ERR_USAGE, 0, "%s", text.buf);
	}
	if ((s->nfilters || !here) && scope_size(scope) == 1)
		strbuf_addf(&text, "the selected project %s declares no task \"%s\"; ",
			only_project(w, scope)->name, task);
	else if (s->nfilters || !here)
		strbuf_addf(&text, "none of the %zu selected projects declares a task \"%s\"; ",
			scope_size(scope), task);
	else
		strbuf_addf(&text, "%s has no task \"%s\"; ",
			here->is_root ? "the root project" : here->name, task);
	scope_add_list(&text, holders, n, SCOPE_NAMES_SHOWN);
	strbuf_addf(&text, n == 1 ? " does (\"%s#%s\"%s)" : " do (\"%s#%s\"%s)", holders[0], task,
		s->nfilters ? "" : ", or --all");
	return err_set(e, ERR_USAGE, 0, "%s", text.buf);
}

static int
pick_bare(struct workspace *w, const struct selection *s, const struct scope *scope,
	const char *task, struct picked *ret, struct err *e)
{
	bool any = false;

	if (workspace_define(w, scope->has, e))
		return -1;
	for (size_t i = 0; i < w->nprojects; i++) {
		struct taskdef *def = scope->has[i] ? project_task(w->projects[i], task) : NULL;

		if (!def)
			continue;
		pick(ret, w->projects[i], def, false);
		any = true;
	}
	if (any)
		return 0;
	/* Who else has it? */
	if (workspace_define(w, NULL, e))
		return -1;
	if (ret->by_diff && is_declared(w, task))
		return 0;
	return refuse_bare(w, s, scope, task, e);
}

static int
refuse_project(const struct workspace *w, const char *word, const char *name, const char *task,
	struct err *e)
{
	cleanup_free const char **names = xcalloc(w->nprojects, sizeof(*names));
	cleanup_strbuf struct strbuf hint = STRBUF_INIT;
	const struct project *there = htab_get(&w->by_dir, name);
	const char *near = there ? there->name : NULL;

	for (size_t i = 0; i < w->nprojects; i++) {
		names[i] = w->projects[i]->name;
		if (!near && !strcmp(scope_bare_name(names[i]), name))
			near = names[i];
	}
	if (!near)
		near = nearest_name(name, names, w->nprojects);
	if (near) {
		strbuf_addf(&hint, "; did you mean \"%s#%s\"?", near, task);
	} else if (w->nprojects) {
		strbuf_adds(&hint, scope_there_are(w->nprojects));
		scope_add_list(&hint, names, w->nprojects, SCOPE_NAMES_SHOWN);
	}
	return err_set(e, ERR_USAGE, 0, "\"%s\": there is no %s%s%s%s", word,
		strcmp(name, "//") ? "project \""
				   : "root project: the workspace root has neither "
				     "package.json nor vx.config.json",
		strcmp(name, "//") ? name : "", strcmp(name, "//") ? "\"" : "", hint.buf);
}

static int
pick_anchored(
	struct workspace *w, const char *word, const char *hash, struct picked *ret, struct err *e)
{
	cleanup_free char *name = xmemdupz(word, (size_t)(hash - word));
	cleanup_strbuf struct strbuf text = STRBUF_INIT, prefix = STRBUF_INIT;
	const char *task = hash + 1;
	struct project *p;
	struct taskdef *def;
	cleanup_scope struct scope one = {0};
	struct htab tasks;

	if (!*name || !*task)
		return err_set(e, ERR_USAGE, 0,
			"\"%s\": write project and task as in \"app#build\"", word);
	p = workspace_project(w, name);
	if (!p)
		return refuse_project(w, word, name, task, e);
	one = scope_new(w);
	one.has[p->index] = true;
	if (workspace_define(w, one.has, e))
		return -1;
	def = project_task(p, task);
	if (def) {
		pick(ret, p, def, true);
		return 0;
	}
	strbuf_addf(&text, "\"%s\": %s has no task \"%s\"", word,
		p->is_root ? "the root project" : p->name, task);
	strbuf_addf(&prefix, "%s#", name);
	task_names(w, &one, &tasks);
	add_task_hint(&text, task, prefix.buf, &tasks);
	htab_release(&tasks);
	return err_set(
		e, ERR_USAGE, 0, "%s%s", text.buf, p->config ? "" : " (it has no vx.config.json)");
}

/* No task named: what could have been. */
static int
refuse_none(
	struct workspace *w, const struct selection *s, struct scope_bases *bases, struct err *e)
{
	cleanup_scope struct scope scope = scope_new(w);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct htab tasks;

	if (find_scope(w, s, bases, &scope, e) < 0 || workspace_define(w, scope.has, e))
		return -1;
	strbuf_adds(&text, "no task named");
	task_names(w, &scope, &tasks);
	if (tasks.n)
		strbuf_adds(&text, tasks.n == 1 ? "; here there is" : "; here there are");
	add_task_hint(&text, NULL, "", &tasks);
	htab_release(&tasks);
	return err_set(e, ERR_USAGE, 0, "%s", text.buf);
}

static bool
has_ref(const char *filter)
{
	for (; *filter; filter++) {
		if (*filter == '[')
			return true;
		filter += *filter == '\\' && filter[1];
	}
	return false;
}

static int
pick_all(struct workspace *w, const struct selection *s, struct scope_bases *bases,
	struct picked *ret, struct err *e)
{
	cleanup_scope struct scope scope = scope_new(w);
	bool scoped = false;

	ret->by_diff = s->affected;
	for (size_t i = 0; i < s->nfilters; i++)
		ret->by_diff |= has_ref(s->filters[i]);
	if (s->nfilters) {
		/* Refused even where only anchored tasks are named: a filter with a slip in it. */
		if (find_scope(w, s, bases, &scope, e) < 0)
			return -1;
		scoped = true;
	}
	for (size_t i = 0; i < s->ntasks; i++) {
		const char *hash = strchr(s->tasks[i], '#');

		if (hash) {
			if (pick_anchored(w, s->tasks[i], hash, ret, e) < 0)
				return -1;
			continue;
		}
		if (!scoped && find_scope(w, s, bases, &scope, e) < 0)
			return -1;
		scoped = true;
		if (pick_bare(w, s, &scope, s->tasks[i], ret, e) < 0)
			return -1;
	}
	return 0;
}

/* --affected: what of the picked tasks is. Their graph comes first, which defines all that they need: what the configs rest
 * on says which changes count. */
static int
narrow(struct workspace *w, const struct selection *s, struct scope_bases *bases, struct picked *p,
	struct err *e)
{
	const struct touched *t;
	struct graph g;
	int r;

	if (!s->affected)
		return 0;
	if (graph_build(w, p->v, p->n, &g, e))
		return -1;
	r = order_sort(&g, e);
	if (!r && scope_touched(w, bases, s->base, &t, e))
		r = err_wrap(e, "--affected%s%s", s->base ? "=" : "", s->base ? s->base : "");
	if (!r)
		touched_narrow(w, t, &g, p->v, &p->n);
	graph_release(&g);
	return r;
}

/* What there is to say of the base, of --affected if that was asked, else of the first filter. */
static int
tell_base(const struct workspace *w, const struct selection *s, struct scope_bases *bases,
	struct selected *ret, struct err *e)
{
	const struct touched *t = bases->n ? bases->v[0].touched : NULL;

	if (s->affected && scope_touched(w, bases, s->base, &t, e))
		return -1;
	if (t)
		ret->since = xstrdup(t->changes.since);
	for (size_t i = 0; !s->affected && i < s->nfilters && !ret->by; i++)
		ret->by = has_ref(s->filters[i]) ? s->filters[i] : NULL;
	if (s->affected && t->changes.is_head) {
		bool is_itself = !strcmp(t->changes.since, "HEAD");

		ret->note =
			xasprintf("%s %s, so only what is not committed counts: "
				  "--affected=HEAD~1 adds the last commit, --all runs everything",
				is_itself ? "the base is" : t->changes.since,
				is_itself ? "HEAD" : "is where HEAD is, or ahead of it");
	}
	return 0;
}

int
select_requests(struct workspace *w, const struct selection *s, struct selected *ret, struct err *e)
{
	struct scope_bases bases = {.widening = s->widening, .nwidening = s->nwidening};
	struct picked p = {0};
	int r;

	if (!s->ntasks) {
		r = refuse_none(w, s, &bases, e);
		scope_bases_release(&bases);
		return r;
	}
	p.seen = xcalloc(w->nprojects + 1, sizeof(*p.seen));
	r = pick_all(w, s, &bases, &p, e) || narrow(w, s, &bases, &p, e) ? -1 : 0;
	for (size_t i = 0; i < w->nprojects; i++)
		free(p.seen[i]);
	free(p.seen);
	if (!r)
		r = tell_base(w, s, &bases, ret, e);
	if (r < 0) {
		free(p.v);
	} else {
		ret->v = p.v;
		ret->n = p.n;
	}
	scope_bases_release(&bases);
	return r;
}

void
selected_release(struct selected *s)
{
	free(s->v);
	free(s->since);
	free(s->note);
	*s = (struct selected){0};
}

int
select_choices(struct workspace *w, const struct selection *s, struct select_choice **ret,
	size_t *ret_n, struct err *e)
{
	struct scope_bases bases = {.widening = s->widening, .nwidening = s->nwidening};
	cleanup_scope struct scope scope = scope_new(w);
	struct select_choice *v;
	struct htab tasks;
	int r = find_scope(w, s, &bases, &scope, e);

	scope_bases_release(&bases);
	if (r < 0 || workspace_define(w, scope.has, e))
		return -1;
	task_names(w, &scope, &tasks);
	v = xcalloc(tasks.n + 1, sizeof(*v));
	for (size_t i = 0; i < tasks.n; i++) {
		v[i].name = tasks.entries[i].key;
		for (size_t k = 0; k < w->nprojects && !v[i].description; k++) {
			const struct taskdef *def =
				scope.has[k] ? project_task(w->projects[k], v[i].name) : NULL;

			v[i].description = def ? def->description : NULL;
		}
	}
	*ret = v;
	*ret_n = tasks.n;
	htab_release(&tasks);
	return 0;
}

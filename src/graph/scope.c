/* SPDX-License-Identifier: MIT */
#include "graph/scope.h"
#include "config/upstream.h"
#include "graph/affected.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include "workspace/workspace.h"

struct scope
scope_new(const struct workspace *w)
{
	return (struct scope){xcalloc(w->nprojects, sizeof(bool)), w->nprojects};
}

void
scope_release(struct scope *s)
{
	free(s->has);
}

size_t
scope_size(const struct scope *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->has[i];
	return n;
}

static void
scope_add(struct scope *s, const struct scope *other)
{
	for (size_t i = 0; i < s->n; i++)
		s->has[i] |= other->has[i];
}

static void
scope_remove(struct scope *s, const struct scope *other)
{
	for (size_t i = 0; i < s->n; i++)
		s->has[i] &= !other->has[i];
}

const char *
scope_there_are(size_t n)
{
	return n == 1 ? "; there is " : "; there are ";
}

void
scope_add_list(struct strbuf *sb, const char *const *names, size_t n, size_t shown)
{
	for (size_t i = 0; i < n && i < shown; i++)
		strbuf_addf(sb, "%s%s", i ? ", " : "", names[i]);
	if (n > shown)
		strbuf_addf(sb, " and %zu more", n - shown);
}

void
scope_bases_release(struct scope_bases *b)
{
	for (size_t i = 0; i < b->n; i++) {
		touched_release(b->v[i].touched);
		free(b->v[i].touched);
		free(b->v[i].ref);
	}
	free(b->v);
	*b = (struct scope_bases){0};
}

static bool
is_same_ref(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : !a && !b;
}

int
scope_touched(const struct workspace *w, struct scope_bases *b, const char *ref,
	const struct touched **ret, struct err *e)
{
	struct touched *t;

	for (size_t i = 0; i < b->n; i++)
		if (is_same_ref(b->v[i].ref, ref)) {
			*ret = b->v[i].touched;
			return 0;
		}
	t = xcalloc(1, sizeof(*t));
	if (touched_find(w, ref, b->widening, b->nwidening, t, e)) {
		free(t);
		return -1;
	}
	GROW(b->v, b->n + 1, b->cap);
	b->v[b->n++] = (struct scope_base){ref ? xstrdup(ref) : NULL, t};
	*ret = t;
	return 0;
}

struct filter {
	const char *text;  /* as typed */
	char *base;        /* what is left without the operators and the ref; "": everything */
	char *ref;         /* of "[ref]"; NULL */
	bool deps_changed; /* "base...[ref]" */
	bool exclude;
	bool up;   /* "...p": dependents */
	bool down; /* "p...": dependencies */
	bool not_itself;
};

static void
filter_release(struct filter *f)
{
	free(f->base);
	free(f->ref);
}

static bool
strip_end(char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (n < m || strcmp(s + n - m, end) != 0)
		return false;
	s[n - m] = '\0';
	return true;
}

/* Takes "[ref]" off the end of the base. A '[' that belongs to a directory is escaped. */
static int
take_ref(struct filter *f, struct err *e)
{
	char *open = f->base;

	while (*open && *open != '[')
		open += *open == '\\' && open[1] ? 2 : 1;
	if (!*open)
		return 0;
	if (!strip_end(open, "]"))
		return err_set(e, ERR_USAGE, 0,
			"--filter \"%s\": a \"[ref]\" stands at the end, with nothing but \"...\" "
			"after it",
			f->text);
	f->ref = xstrdup(open + 1);
	*open = '\0';
	f->deps_changed = strip_end(f->base, "...");
	if (strip_end(f->base, "^"))
		return err_set(e, ERR_USAGE, 0,
			"--filter \"%s\": write \"p...[ref]\" for what of p has changed or depends "
			"on "
			"what has, or \"...^[ref]\" for what depends on it",
			f->text);
	return 0;
}

static int
filter_parse(const char *text, struct filter *ret, struct err *e)
{
	struct filter f = {.text = text, .exclude = *text == '!'};
	const char *s = text + f.exclude;

	if (!strncmp(s, "...", 3)) {
		f.up = true;
		s += 3;
		if (*s == '^') {
			f.not_itself = true;
			s++;
		}
	}
	f.base = xstrdup(s);
	if (strip_end(f.base, "...")) {
		f.down = true;
		f.not_itself |= strip_end(f.base, "^");
	}
	if (take_ref(&f, e)) {
		filter_release(&f);
		return -1;
	}
	if (!f.ref && (!*f.base || !strcmp(f.base, "^") || !strcmp(f.base, "!"))) {
		filter_release(&f);
		return err_set(
			e, ERR_USAGE, 0, "--filter \"%s\" names no project, only operators", text);
	}
	*ret = f;
	return 0;
}

static bool
is_dir_filter(const char *s)
{
	return !strcmp(s, ".") || !strcmp(s, "..") || !strncmp(s, "./", 2) ||
	       !strncmp(s, "../", 3) || (*s == '{' && s[1] && s[strlen(s) - 1] == '}');
}

static char *
typed_dir(const struct filter *f)
{
	cleanup_free char *inner =
		*f->base == '{' ? xmemdupz(f->base + 1, strlen(f->base) - 2) : xstrdup(f->base);

	return path_normalise(inner);
}

/* "./dir" or "{dir}": from the workspace root. A directory that is no project stands for those under it. */
static int
match_dir(const struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	cleanup_free char *dir = typed_dir(f);
	struct project *exact;
	struct arena a;
	struct glob *g;

	if (!strcmp(dir, "..") || !strncmp(dir, "../", 3) || *dir == '/')
		return err_set(
			e, ERR_USAGE, 0, "--filter \"%s\" leads out of the workspace", f->text);
	exact = htab_get(&w->by_dir, dir);
	if (exact) {
		ret->has[exact->index] = true;
		return 0;
	}
	if (!*dir)
		return 0; /* "." where the root is no project */
	arena_init(&a);
	if (glob_parse(&a, "", dir, 0, &g, e) < 0) {
		arena_release(&a);
		return err_wrap(e, "--filter \"%s\"", f->text);
	}
	for (size_t i = 0; i < w->nprojects; i++)
		ret->has[i] |= glob_match(g, w->projects[i]->dir);
	arena_release(&a);
	return 0;
}

const char *
scope_bare_name(const char *name)
{
	const char *slash = *name == '@' ? strchr(name, '/') : NULL;

	return slash ? slash + 1 : name;
}

/* A bare name may omit the scope when one package carries it. */
static int
match_bare(const struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	const struct project *first = NULL;

	for (size_t i = 0; i < w->nprojects; i++) {
		const struct project *p = w->projects[i];

		if (strcmp(scope_bare_name(p->name), f->base) != 0)
			continue;
		if (first)
			return err_set(e, ERR_USAGE, 0,
				"--filter \"%s\" could be %s or %s: write the whole name", f->text,
				first->name, p->name);
		first = p;
	}
	if (first)
		ret->has[first->index] = true;
	return 0;
}

static const char tag_prefix[] = "tag:";

static const char *
tag_of(const struct filter *f)
{
	size_t n = sizeof(tag_prefix) - 1;

	return strncmp(f->base, tag_prefix, n) ? NULL : f->base + n;
}

static void
match_tag(const struct workspace *w, const char *pattern, struct scope *ret)
{
	for (size_t i = 0; i < w->nprojects; i++) {
		const struct projectdef *def = &w->projects[i]->def;

		for (size_t k = 0; k < def->ntags; k++)
			ret->has[i] |= name_matches(pattern, def->tags[k]);
	}
}

static int
match_base(struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	const struct project *p;

	if (!*f->base) {
		memset(ret->has, true, ret->n * sizeof(bool));
		return 0;
	}
	if (is_dir_filter(f->base))
		return match_dir(w, f, ret, e);
	if (tag_of(f)) {
		if (workspace_define(w, NULL, e))
			return -1;
		match_tag(w, tag_of(f), ret);
		return 0;
	}
	p = workspace_project(w, f->base);
	if (p) {
		ret->has[p->index] = true;
		return 0;
	}
	if (!strchr(f->base, '*'))
		return match_bare(w, f, ret, e);
	for (size_t i = 0; i < w->nprojects; i++)
		ret->has[i] |= name_matches(f->base, w->projects[i]->name);
	return 0;
}

/* Appends "; did you mean …?", or the list of what there is. */
static void
add_hint(struct strbuf *sb, const char *word, const char *prefix, const char **names, size_t n,
	size_t shown)
{
	const char *near = word ? nearest_name(word, names, n) : NULL;

	if (near) {
		strbuf_addf(sb, "; did you mean \"%s%s\"?", prefix, near);
	} else if (shown) {
		strbuf_adds(sb, scope_there_are(shown));
		scope_add_list(sb, names, shown, SCOPE_NAMES_SHOWN);
	}
}

static int
refuse_tag(const struct workspace *w, const struct filter *f, struct err *e)
{
	cleanup_strbuf struct strbuf hint = STRBUF_INIT;
	cleanup_free const char **names = NULL;
	struct htab tags;

	htab_init(&tags);
	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t k = 0; k < w->projects[i]->def.ntags; k++)
			htab_put(&tags, w->projects[i]->def.tags[k], &tags);
	names = xcalloc(tags.n + 1, sizeof(*names));
	for (size_t i = 0; i < tags.n; i++)
		names[i] = tags.entries[i].key;
	if (!tags.n)
		strbuf_adds(&hint, "; no project has tags (\"tags\" in a vx.config.json)");
	add_hint(&hint, tag_of(f), tag_prefix, names, tags.n, tags.n);
	htab_release(&tags);
	return err_set(e, ERR_USAGE, 0, "--filter \"%s\" matches no project%s", f->text, hint.buf);
}

/* A directory as it is typed in such a filter, owned. */
static char *
dir_filter(const struct filter *f, const char *dir)
{
	return *f->base == '{' ? xasprintf("{%s}", *dir ? dir : ".") : xasprintf("./%s", dir);
}

/* The directory of a project that is called so, else the nearest one. NULL: there is none. */
static const char *
near_dir(const struct workspace *w, const char *dir)
{
	cleanup_free const char **dirs = xcalloc(w->nprojects + 1, sizeof(*dirs));
	const char *base = path_base(dir);

	for (size_t i = 0; i < w->nprojects; i++) {
		dirs[i] = w->projects[i]->dir;
		if (!strcmp(path_base(dirs[i]), base) ||
			!strcmp(scope_bare_name(w->projects[i]->name), base))
			return dirs[i];
	}
	return nearest_name(dir, dirs, w->nprojects);
}

static int
refuse_dir(const struct workspace *w, const struct filter *f, struct err *e)
{
	cleanup_free char *dir = typed_dir(f), *near = NULL;
	cleanup_strvec struct strvec there = STRVEC_INIT;
	cleanup_strbuf struct strbuf hint = STRBUF_INIT;
	const char *found = near_dir(w, dir);

	if (found) {
		near = dir_filter(f, found);
		strbuf_addf(&hint, "; did you mean \"%s\"?", near);
	} else if (w->nprojects) {
		for (size_t i = 0; i < w->nprojects; i++)
			strvec_push_take(&there, dir_filter(f, w->projects[i]->dir));
		strbuf_adds(&hint, scope_there_are(there.n));
		scope_add_list(&hint, (const char *const *)there.v, there.n, SCOPE_NAMES_SHOWN);
	}
	return err_set(e, ERR_USAGE, 0, "--filter \"%s\" matches no project%s", f->text, hint.buf);
}

static int
refuse_unmatched(const struct workspace *w, const struct filter *f, struct err *e)
{
	cleanup_free const char **names = xcalloc(w->nprojects * 2 + 1, sizeof(*names));
	cleanup_strbuf struct strbuf hint = STRBUF_INIT;

	if (tag_of(f))
		return refuse_tag(w, f, e);
	if (is_dir_filter(f->base))
		return refuse_dir(w, f, e);
	if (htab_get(&w->by_dir, f->base))
		return err_set(e, ERR_USAGE, 0,
			"--filter \"%s\" matches no project; did you mean \"./%s\"?", f->text,
			f->base);
	for (size_t i = 0; i < w->nprojects; i++) {
		names[i] = w->projects[i]->name;
		names[w->nprojects + i] = scope_bare_name(names[i]);
	}
	add_hint(&hint, f->base, "", names, w->nprojects * 2, w->nprojects);
	return err_set(e, ERR_USAGE, 0, "--filter \"%s\" matches no project%s", f->text, hint.buf);
}

/* For each project, who reaches it. */
struct reverse {
	size_t *first; /* by index: its run in `from` */
	size_t *from;
};

static struct reverse
reverse_reach(const struct workspace *w)
{
	struct reverse r = {xcalloc(w->nprojects + 2, sizeof(size_t)), NULL};
	size_t total = 0;

	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t j = 0; j < w->projects[i]->nreach; j++) {
			r.first[w->projects[i]->reach[j]->index + 2]++;
			total++;
		}
	for (size_t i = 2; i < w->nprojects + 2; i++)
		r.first[i] += r.first[i - 1];
	r.from = xcalloc(total, sizeof(size_t));
	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t j = 0; j < w->projects[i]->nreach; j++)
			r.from[r.first[w->projects[i]->reach[j]->index + 1]++] = i;
	return r;
}

/* What lies one step or more from `start`, against the edges with `up`. */
static void
walk(const struct workspace *w, const struct scope *start, bool up, struct scope *ret)
{
	cleanup_free size_t *stack = xcalloc(w->nprojects * 2, sizeof(*stack));
	struct reverse rev = up ? reverse_reach(w) : (struct reverse){0};
	size_t n = 0;

	for (size_t i = 0; i < w->nprojects; i++)
		if (start->has[i])
			stack[n++] = i;
	while (n) {
		size_t at = stack[--n];
		const struct project *p = w->projects[at];
		size_t from = up ? rev.first[at] : 0, to = up ? rev.first[at + 1] : p->nreach;

		for (size_t i = from; i < to; i++) {
			size_t next = up ? rev.from[i] : p->reach[i]->index;

			if (ret->has[next])
				continue;
			ret->has[next] = true;
			if (!start->has[next])
				stack[n++] = next;
		}
	}
	free(rev.first);
	free(rev.from);
}

static int
refuse_empty_walk(const struct workspace *w, const struct filter *f, const struct scope *matched,
	struct err *e)
{
	cleanup_free const char **names = xcalloc(w->nprojects, sizeof(*names));
	cleanup_strbuf struct strbuf list = STRBUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < w->nprojects; i++)
		if (matched->has[i])
			names[n++] = w->projects[i]->name;
	scope_add_list(&list, names, n, SCOPE_NAMES_SHOWN);
	return err_set(e, ERR_USAGE, 0,
		"--filter \"%s\" selects nothing: it matches %s, without any %s", f->text, list.buf,
		f->up ? "dependents" : "dependencies");
}

/* Leaves what has changed since, or also what depends on such a one. */
static int
keep_changed(struct workspace *w, const struct filter *f, struct scope_bases *bases,
	struct scope *matched, struct err *e)
{
	cleanup_scope struct scope changed = scope_new(w), above = scope_new(w);
	const struct touched *t;

	/* What configs rest on has changed, too. */
	if (workspace_define(w, NULL, e))
		return -1;
	if (scope_touched(w, bases, f->ref, &t, e))
		return err_wrap(e, "--filter \"%s\"", f->text);
	if (!w->nprojects)
		return 0;
	memcpy(changed.has, t->projects, changed.n * sizeof(bool));
	if (f->deps_changed) {
		walk(w, &changed, true, &above);
		scope_add(&changed, &above);
	}
	for (size_t i = 0; i < matched->n; i++)
		matched->has[i] &= changed.has[i];
	return 0;
}

static int
filter_apply(struct workspace *w, const struct filter *f, struct scope_bases *bases,
	struct scope *ret, struct err *e)
{
	cleanup_scope struct scope matched = scope_new(w);
	cleanup_scope struct scope around = scope_new(w);

	if (match_base(w, f, &matched, e) < 0)
		return -1;
	if (!scope_size(&matched))
		return refuse_unmatched(w, f, e);
	if (f->ref && keep_changed(w, f, bases, &matched, e))
		return -1;
	/* Any config may name what it depends on. */
	if (f->up && workspace_define(w, NULL, e))
		return -1;
	if (f->down && workspace_define_reached(w, matched.has, NULL, e))
		return -1;
	if (f->up)
		walk(w, &matched, true, &around);
	if (f->down) {
		cleanup_scope struct scope start = scope_new(w);

		scope_add(&start, &matched);
		scope_add(&start, &around);
		walk(w, &start, false, &around);
	}
	if (!f->not_itself)
		scope_add(&around, &matched);
	else if (scope_size(&matched) == 1)
		scope_remove(&around, &matched); /* in a circle it is its own dependency */
	if (!scope_size(&around) && !f->ref)
		return refuse_empty_walk(w, f, &matched, e);
	scope_add(ret, &around);
	return 0;
}

int
scope_filter(struct workspace *w, const char *const *filters, size_t n, struct scope_bases *bases,
	struct scope *ret, struct err *e)
{
	cleanup_scope struct scope excluded = scope_new(w);
	bool includes = false, by_diff = false;

	for (size_t i = 0; i < n; i++) {
		struct filter f = {0};
		int r;

		if (filter_parse(filters[i], &f, e) < 0)
			return -1;
		includes |= !f.exclude;
		by_diff |= f.ref != NULL;
		r = filter_apply(w, &f, bases, f.exclude ? &excluded : ret, e);
		filter_release(&f);
		if (r < 0)
			return -1;
	}
	if (!includes)
		memset(ret->has, true, ret->n * sizeof(bool));
	scope_remove(ret, &excluded);
	if (!scope_size(ret) && !by_diff)
		return err_set(e, ERR_USAGE, 0, "the filters exclude every project they select");
	return 0;
}

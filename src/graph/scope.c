/* SPDX-License-Identifier: MIT */
#include "graph/scope.h"
#include "config/upstream.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
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

struct filter {
	const char *text; /* as typed */
	char *base;       /* what is left without the operators */
	bool exclude;
	bool up;   /* "...p": dependents */
	bool down; /* "p...": dependencies */
	bool not_itself;
};

static bool
strip_end(char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (n < m || strcmp(s + n - m, end) != 0)
		return false;
	s[n - m] = '\0';
	return true;
}

static int
filter_parse(const char *text, struct filter *ret, struct err *e)
{
	struct filter f = {.text = text, .exclude = *text == '!'};
	const char *s = text + f.exclude;

	if (strchr(s, '[') || strchr(s, '{') || !strncmp(s, "tag:", 4))
		return err_set(e, ERR_USAGE, 0,
			"--filter \"%s\": %s filters are not in this vx yet; select by name, by "
			"\"@scope/*\" or by \"./dir\"",
			text,
			strchr(s, '[')   ? "[ref]"
			: strchr(s, '{') ? "{dir}"
					 : "tag:");
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
	if (!*f.base || !strcmp(f.base, "^") || !strcmp(f.base, "!")) {
		free(f.base);
		return err_set(
			e, ERR_USAGE, 0, "--filter \"%s\" names no project, only operators", text);
	}
	*ret = f;
	return 0;
}

static bool
is_dir_filter(const char *s)
{
	return !strcmp(s, ".") || !strcmp(s, "..") || !strncmp(s, "./", 2) || !strncmp(s, "../", 3);
}

/* "./dir": from the workspace root. A directory that is no project stands for those under it. */
static int
match_dir(const struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	cleanup_free char *dir = path_normalise(f->base);
	struct project *exact;
	struct arena a;
	struct glob *g;

	if (!strcmp(dir, "..") || !strncmp(dir, "../", 3))
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

static int
match_base(const struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	const struct project *p;

	if (is_dir_filter(f->base))
		return match_dir(w, f, ret, e);
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

static int
refuse_unmatched(const struct workspace *w, const struct filter *f, struct err *e)
{
	cleanup_free const char **names = xcalloc(w->nprojects * 2, sizeof(*names));
	cleanup_strbuf struct strbuf hint = STRBUF_INIT;
	const char *near;

	for (size_t i = 0; i < w->nprojects; i++) {
		names[i] = w->projects[i]->name;
		names[w->nprojects + i] = scope_bare_name(names[i]);
	}
	near = is_dir_filter(f->base) ? NULL : nearest_name(f->base, names, w->nprojects * 2);
	if (near) {
		strbuf_addf(&hint, "; did you mean \"%s\"?", near);
	} else if (w->nprojects) {
		strbuf_adds(&hint, scope_there_are(w->nprojects));
		scope_add_list(&hint, names, w->nprojects, SCOPE_NAMES_SHOWN);
	}
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

static int
filter_apply(const struct workspace *w, const struct filter *f, struct scope *ret, struct err *e)
{
	cleanup_scope struct scope matched = scope_new(w);
	cleanup_scope struct scope around = scope_new(w);

	if (match_base(w, f, &matched, e) < 0)
		return -1;
	if (!scope_size(&matched))
		return refuse_unmatched(w, f, e);
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
	if (!scope_size(&around))
		return refuse_empty_walk(w, f, &matched, e);
	scope_add(ret, &around);
	return 0;
}

int
scope_filter(const struct workspace *w, const char *const *filters, size_t n, struct scope *ret,
	struct err *e)
{
	cleanup_scope struct scope excluded = scope_new(w);
	bool includes = false;

	for (size_t i = 0; i < n; i++) {
		struct filter f = {0};
		int r;

		if (filter_parse(filters[i], &f, e) < 0)
			return -1;
		includes |= !f.exclude;
		r = filter_apply(w, &f, f.exclude ? &excluded : ret, e);
		free(f.base);
		if (r < 0)
			return -1;
	}
	if (!includes)
		memset(ret->has, true, ret->n * sizeof(bool));
	scope_remove(ret, &excluded);
	if (!scope_size(ret))
		return err_set(e, ERR_USAGE, 0, "the filters exclude every project they select");
	return 0;
}

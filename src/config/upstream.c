/* SPDX-License-Identifier: MIT */
#include "config/upstream.h"
#include "config/fields.h"
#include "util/arena.h"
#include "util/err.h"

bool
name_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			resume = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static int
parse_entry(const struct json_at *at, const char *text, struct arena *a, struct upstream_rule *ret,
	struct err *e)
{
	struct upstream_rule r = {*text == '!', {DEP_SELF, text, NULL, text + (*text == '!')}};
	struct depspec *d = &r.what;
	const char *s = d->task, *hash = strchr(s, '#');

	if (*s == '!')
		return json_error(at, e, "'%s': write one '!', or none", text);
	if (*s == '$')
		return json_error(at, e, "'%s': a variable belongs in cache.inputs.env", text);
	if (*s == '^' && hash)
		return json_error(at, e, "'%s': write '%s' for one project, '^%s' for all others",
			text, s + 1, hash + 1);
	if (*s == '^') {
		d->form = DEP_UPSTREAM;
		d->task = s + 1;
	} else if (hash) {
		d->form = DEP_PROJECT;
		d->project = arena_memdupz(a, s, (size_t)(hash - s));
		d->task = hash + 1;
	}
	if (!*d->task || (d->project && !*d->project) || strchr(d->task, '#') ||
		field_has_outer_blank(d->task))
		return json_error(at, e, "'%s': write NAME, ^NAME or PROJECT#NAME", text);
	*ret = r;
	return 0;
}

static bool
is_exact(const struct depspec *d)
{
	return !strchr(d->task, '*') && !(d->project && strchr(d->project, '*'));
}

/* Whether the entry can mean what `dep`, of dependsOn, names. In which project ^NAME finds a task is
 * known to the graph alone. */
static bool
is_named_by(const struct depspec *d, const struct depspec *dep)
{
	if (!name_matches(dep->task, d->task))
		return false;
	if (d->form == DEP_PROJECT && dep->form == DEP_PROJECT)
		return !strcmp(d->project, dep->project);
	return d->form == dep->form || d->form == DEP_PROJECT;
}

static int
check_named(const struct json_at *at, const struct upstream_rule *r,
	const struct depspec *depends_on, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (is_named_by(&r->what, &depends_on[i]))
			return 0;
	return json_error(at, e,
		"'%s' names nothing in 'dependsOn', so there is no key to %s: add it there, or "
		"leave "
		"it out",
		r->what.text, r->takes_back ? "leave out" : "take in");
}

int
upstream_parse(const struct json_at *at, const char *const *v, size_t n,
	const struct depspec *depends_on, size_t ndepends_on, struct arena *a,
	struct upstream_rule **ret, struct err *e)
{
	struct upstream_rule *rules = arena_array(a, n, struct upstream_rule);
	size_t taking = 0;

	for (size_t i = 0; i < n; i++) {
		const struct json_at here = {at->doc, at, NULL, i};

		if (parse_entry(&here, v[i], a, &rules[i], e) < 0)
			return -1;
		if (is_exact(&rules[i].what) &&
			check_named(&here, &rules[i], depends_on, ndepends_on, e) < 0)
			return -1;
		taking += !rules[i].takes_back;
	}
	if (n && !taking)
		return json_error(at, e,
			"holds only '!' entries, which take in nothing: begin with \"*\", \"^*\", "
			"or "
			"write [] to take in no key");
	*ret = rules;
	return 0;
}

static bool
means(const struct depspec *d, bool own, bool is_root, const char *project, const char *task)
{
	if (!name_matches(d->task, task))
		return false;
	switch (d->form) {
	case DEP_SELF:
		return own;
	case DEP_UPSTREAM:
		return !own;
	case DEP_PROJECT:
		return name_matches(d->project, project) ||
		       (is_root && name_matches(d->project, "//"));
	}
	return false;
}

bool
upstream_folds(const struct upstream_rule *rules, size_t n, bool own, bool is_root,
	const char *project, const char *task)
{
	while (n--)
		if (means(&rules[n].what, own, is_root, project, task))
			return !rules[n].takes_back;
	return false;
}

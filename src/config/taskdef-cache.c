/* SPDX-License-Identifier: MIT */
/*
 * The cache block of a task: what is read and written for the cache.
 */
#include "config/fields.h"
#include "config/taskdef-private.h"
#include "config/taskdef.h"
#include "config/upstream.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"

/* What can be seen of their grammar without reading it: no path that leaves, no "!!". */
static const struct shape globs_shape = {.schema = "'type': 'array', 'items': { 'type': 'string', "
						   "'pattern': '^!?(?!/|!|\\.\\.(/|$))' }"};
const struct shape taskdef_env_names_shape = {.schema = "'type': 'array', 'items': { "
							"'type': 'string', 'pattern': '^(?!!)[^=*]*"
							"[^=*" BLANKS "][^=*]*$' }"};

static const struct field inputs_fields[] = {
	{"env", FIELD_HERE,
		"Names of variables whose values, in the environment of vx, are in the key. "
		"exec.env.passThrough lets the command see them.",
		&taskdef_env_names_shape},
	{"files", FIELD_HERE,
		"Patterns, from the project, of the files that the task reads; ! takes back.",
		&globs_shape},
	{"runtime", FIELD_HERE,
		"Commands whose output is in the key: for what the task uses outside of the "
		"workspace.",
		&field_texts_shape},
	{"tasks", FIELD_HERE,
		"Whose keys, of the tasks in dependsOn, are folded into this one: name, ^name, "
		"project#name, with * and !; the last that means a task decides. By default all.",
		&field_texts_shape},
	{"workspaceFiles", FIELD_HERE,
		"Patterns, from the workspace's root, of files outside of the project that the "
		"task reads.",
		&globs_shape},
	{"workspaceRuntime", FIELD_HERE,
		"As runtime, in the workspace's root: once for all tasks that list the command.",
		&field_texts_shape},
	{"globs", FIELD_FOREIGN, "write 'files'", NULL},
	{"passThrough", FIELD_FOREIGN, "belongs in exec.env, or write 'env' for what is in the key",
		NULL},
};
static const struct shape inputs_shape = {
	.schema = "'type': 'object', 'required': ['files']", FIELDS(inputs_fields)};

static const struct field outputs_fields[] = {
	{"files", FIELD_HERE,
		"Patterns, from the project, of what the task makes; ! takes back. Everything they "
		"select is deleted first. [] where it writes nothing.",
		&globs_shape},
	{"workspaceFiles", FIELD_HERE,
		"Patterns, from the workspace's root, of what the task makes outside of its "
		"project.",
		&globs_shape},
	{"globs", FIELD_FOREIGN, "write 'files'", NULL},
	{"logs", FIELD_FOREIGN, "what a task prints is always stored: leave it out", NULL},
};
static const struct shape outputs_shape = {
	.schema = "'type': 'object', 'required': ['files']", FIELDS(outputs_fields)};

static const struct field cache_fields[] = {
	{"inputs", FIELD_HERE, "What is in the key: a change of it makes the task run again.",
		&inputs_shape},
	{"outputs", FIELD_HERE,
		"What the task makes: it is deleted before the task runs, stored, and put in its "
		"place again.",
		&outputs_shape},
	{"inputStability", FIELD_LATER, NULL, NULL},
	{"env", FIELD_FOREIGN, "belongs in 'inputs': write inputs.env", NULL},
	{"files", FIELD_FOREIGN,
		"write inputs.files for what the task reads, outputs.files for what "
		"it writes",
		NULL},
	{"workspaceFiles", FIELD_FOREIGN, "belongs in 'inputs': write inputs.workspaceFiles", NULL},
};
const struct shape cachedef_shape = {
	.schema = "'type': 'object', 'required': ['inputs', 'outputs']", FIELDS(cache_fields)};

/* What an output may not select: a hit would put back an old project under a new task. */
static const char *const own_files[][2] = {
	{"vx.workspace.json", "!vx.workspace.*"},
	{"package.json", "!package.json"},
	{"vx.config.json", "!vx.config.*"},
	{"vx.config.ts", "!vx.config.*"},
	{"vx.config.mts", "!vx.config.*"},
	{"vx.config.js", "!vx.config.*"},
	{"vx.config.mjs", "!vx.config.*"},
	{"vx.config.cts", "!vx.config.*"},
	{"vx.config.cjs", "!vx.config.*"},
};

/* The place of the n-th entry that selects, or of the list. */
static struct json_at
positive_at(const struct json_at *list, const json_t *value, size_t n)
{
	struct json_at at = {list->doc, list, NULL, 0};

	for (;; at.index++)
		if (*json_string_value(json_array_get(value, at.index)) != '!' && !n--)
			return at;
}

/* Of the value, in front of what is wrong with it. */
static int
put_place(const struct json_at *at, struct err *e)
{
	const struct err why = *e;

	err_clear(e);
	return json_error(at, e, "%s", why.text);
}

/* Entries without and with "!", relative to base; `flags` are those of glob_parse. */
static int
parse_globs(const struct json_at *at, const json_t *value, const char *base, unsigned flags,
	struct arena *a, struct globset *ret, struct err *e)
{
	size_t n = json_array_size(value);
	struct globset set = {0};

	if (!json_is_array(value))
		return json_error(at, e, "is %s: write an array of patterns like [\"src/**\"]",
			json_kind(value));
	set.pos = arena_array(a, n, struct glob *);
	set.neg = arena_array(a, n, struct glob *);
	for (size_t i = 0; i < n; i++) {
		struct json_at here = {at->doc, at, NULL, i};
		const char *s;
		bool neg;

		if (field_text(&here, json_array_get(value, i), &s, e) < 0)
			return -1;
		neg = *s == '!' && s[1] != '(';
		if (glob_parse(a, base, s + neg, flags,
			    neg ? &set.neg[set.nneg] : &set.pos[set.npos], e) < 0)
			return put_place(&here, e);
		set.nneg += neg;
		set.npos += !neg;
	}
	if (set.nneg && !set.npos)
		return json_error(at, e,
			"holds only '!' entries, which select nothing: add what they "
			"take from");
	*ret = set;
	return 0;
}

/* A literal input that a "!" entry takes back would never be an input: one of the two is a mistake.
 */
static int
check_literals(
	const struct json_at *at, const json_t *value, const struct globset *set, struct err *e)
{
	for (size_t i = 0; i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++) {
			const struct json_at here = positive_at(at, value, i);

			if (glob_alternative_is_literal(set->pos[i], k) &&
				globset_excludes(
					set, set->pos[i], glob_literal_head(set->pos[i], k)))
				return json_error(&here, e,
					"'%s': a '!' entry of this list takes it back: leave out "
					"one "
					"of them",
					glob_text(set->pos[i]));
		}
	return 0;
}

/* Whether the pattern speaks of the project's own files alone, by their names. */
static bool
names_own_files(const struct glob *g)
{
	const char *name = path_base(glob_text(g));

	return !strcmp(name, "package.json") || !strncmp(name, "vx.config.", 10) ||
	       !strncmp(name, "vx.workspace.", 13);
}

/* Whether a "!" entry beside the output may take back some of what g selects. The project's own files do
 * not count: they had to be taken back, and are in the key anyway. */
static bool
may_be_taken_back(const struct globset *outputs, const struct glob *by, const struct glob *g)
{
	for (size_t i = 0; i < outputs->nneg; i++) {
		const struct glob *neg = outputs->neg[i];

		if (glob_is_workspace(neg) == glob_is_workspace(by) && glob_may_overlap(neg, g) &&
			(names_own_files(g) || !names_own_files(neg)))
			return true;
	}
	return false;
}

static const struct glob *
covering_output(
	const struct globset *outputs, const struct glob *g, size_t alternative, bool anywhere)
{
	for (size_t i = 0; i < outputs->npos; i++) {
		const struct glob *by = outputs->pos[i];

		/* The outputs of a project end at those inside it, which are not known here. */
		if ((glob_is_workspace(by) || !anywhere) && glob_covers(by, g, alternative) &&
			!may_be_taken_back(outputs, by, g))
			return by;
	}
	return NULL;
}

/* Where outputs select everything that g does: one of them, else NULL. */
static const struct glob *
selected_by_outputs(const struct globset *outputs, const struct glob *g, bool anywhere)
{
	const struct glob *by = NULL;

	for (size_t k = 0; k < glob_nalternatives(g); k++) {
		by = covering_output(outputs, g, k, anywhere);
		if (!by)
			return NULL;
	}
	return by;
}

/* `anywhere`: projects are no boundary for this list.
 * A task's own outputs are no inputs of it, and are deleted before it runs: an entry of which nothing is
 * left is a mistake, be it in this list or, as "**", in the other. */
static int
check_not_outputs(const struct json_at *at, const json_t *value, bool anywhere,
	const struct globset *files, const struct globset *outputs, struct err *e)
{
	for (size_t i = 0; i < files->npos; i++) {
		const struct glob *by = selected_by_outputs(outputs, files->pos[i], anywhere);
		struct json_at here;

		if (!by)
			continue;
		here = positive_at(at, value, i);
		return json_error(&here, e,
			"'%s' selects nothing but the task's own outputs ('%s'), which are never "
			"inputs and are deleted before it runs: if the task makes these files, "
			"leave it out here; if they are sources, name the outputs more narrowly, "
			"or take them back there ('!…')",
			glob_text(files->pos[i]), glob_text(by));
	}
	return 0;
}

/* Whether an entry could select one of them in `dir`: not where all it selects is in a directory there
 * or has another name. */
static bool
may_select_own(const struct glob *g, const char *dir)
{
	for (size_t k = 0; k < glob_nalternatives(g); k++) {
		const char *head = glob_literal_head(g, k), *below;

		if (!path_is_within(head, dir) || !strcmp(head, dir))
			return true;
		below = path_below(head, dir);
		for (size_t f = 0; f < array_len(own_files); f++)
			if (*below == *own_files[f][0] && !strcmp(below, own_files[f][0]))
				return true;
	}
	return false;
}

/* `dir`: the project's, or, for workspaceFiles, the root as well. */
static int
check_own_files(const struct json_at *at, const json_t *value, const char *dir, const char *whose,
	const struct globset *outputs, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	bool may = false;

	for (size_t i = 0; i < outputs->npos && !may; i++)
		may = may_select_own(outputs->pos[i], dir);
	if (!may)
		return 0;
	/* the first stands at the root alone */
	for (size_t f = *dir ? 1 : 0; outputs->npos && f < array_len(own_files); f++) {
		const char *path;

		strbuf_reset(&name);
		strbuf_adds(&name, dir);
		path_append(&name, own_files[f][0]);
		path = name.buf;
		if (!globset_match(outputs, path))
			continue;
		for (size_t i = 0; i < outputs->npos; i++) {
			const struct json_at here = positive_at(at, value, i);

			if (glob_match(outputs->pos[i], path))
				return json_error(&here, e,
					"'%s' selects the %s's own %s: write a narrower "
					"pattern, or add '%s' (everything that outputs select is "
					"deleted before the task runs)",
					glob_text(outputs->pos[i]), whose, own_files[f][0],
					own_files[f][1]);
		}
	}
	return 0;
}

/* Behind those of outputs.files, in one set. */
static int
add_workspace_outputs(const struct json_at *at, const json_t *value, const char *dir,
	struct arena *a, struct globset *outputs, struct err *e)
{
	struct globset set, all = {0};

	if (parse_globs(at, value, "", GLOB_OUTPUT | GLOB_WORKSPACE, a, &set, e) < 0 ||
		check_own_files(at, value, dir, "project", &set, e) < 0 ||
		check_own_files(at, value, "", "workspace", &set, e) < 0)
		return -1;
	all.pos = arena_array(a, outputs->npos + set.npos, struct glob *);
	all.neg = arena_array(a, outputs->nneg + set.nneg, struct glob *);
	for (size_t i = 0; i < outputs->npos; i++)
		all.pos[all.npos++] = outputs->pos[i];
	for (size_t i = 0; i < set.npos; i++)
		all.pos[all.npos++] = set.pos[i];
	for (size_t i = 0; i < outputs->nneg; i++)
		all.neg[all.nneg++] = outputs->neg[i];
	for (size_t i = 0; i < set.nneg; i++)
		all.neg[all.nneg++] = set.neg[i];
	*outputs = all;
	return 0;
}

int
taskdef_check_env_name(const struct json_at *at, const char *s, struct err *e)
{
	if (strchr(s, '='))
		return json_error(at, e, "'%s': write the name alone", s);
	if (strchr(s, '*') || *s == '!')
		return json_error(at, e, "'%s': wildcards are not allowed, write each name", s);
	return 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t
sort_unique(const char **names, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n; i++)
		if (!kept || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	return kept;
}

/* Commands: the same one twice is one. */
static int
parse_commands(const struct json_at *up, const json_t *inputs, const char *key, struct arena *a,
	const char ***ret, size_t *ret_n, struct err *e)
{
	struct json_at at;
	const json_t *v = json_member(inputs, up, key, &at);

	if (v && field_strings(&at, v, a, NULL, ret, ret_n, e) < 0)
		return -1;
	*ret_n = sort_unique(*ret, *ret_n);
	return 0;
}

static int
parse_upstream(const struct json_at *up, const json_t *inputs, const struct taskdef *t,
	struct arena *a, struct cachedef *c, struct err *e)
{
	struct json_at at;
	const json_t *v = json_member(inputs, up, "tasks", &at);
	const char **texts;

	if (!v)
		return 0;
	if (field_strings(&at, v, a, NULL, &texts, &c->ntasks, e) < 0)
		return -1;
	return upstream_parse(
		&at, texts, c->ntasks, t->depends_on, t->ndepends_on, a, &c->tasks, e);
}

int
cachedef_parse(const struct json_at *at, const json_t *value, const char *dir,
	const struct taskdef *t, struct arena *a, struct cachedef **ret, struct err *e)
{
	struct json_at in_at, out_at, files_at, written_at, here;
	const json_t *inputs, *outputs, *files, *written, *v;
	struct cachedef *c = arena_new(a, struct cachedef);

	if (fields_check(at, value, &cachedef_shape,
		    json_is_false(value)  ? "leave 'cache' out, then the task is never cached"
		    : json_is_true(value) ? "write { \"inputs\": { \"files\": [ … ] }, "
					    "\"outputs\": { \"files\": [ … ] } }"
					  : NULL,
		    e) < 0)
		return -1;
	inputs = json_member(value, at, "inputs", &in_at);
	outputs = json_member(value, at, "outputs", &out_at);
	if (!inputs)
		return json_error(&in_at, e, "is missing: write { \"files\": [ … ] }");
	if (!outputs)
		return json_error(&out_at, e,
			"is missing: write { \"files\": [ … ] }, or an empty list "
			"for a task that writes nothing");
	if (fields_check(&in_at, inputs, &inputs_shape,
		    json_is_array(inputs) ? "write { \"files\": [ … ] }" : NULL, e) < 0 ||
		fields_check(&out_at, outputs, &outputs_shape,
			json_is_array(outputs) ? "write { \"files\": [ … ] }" : NULL, e) < 0)
		return -1;
	files = json_member(inputs, &in_at, "files", &files_at);
	written = json_member(outputs, &out_at, "files", &written_at);
	if (!files)
		return json_error(&files_at, e, "is missing: write the patterns, or an empty list");
	if (!written)
		return json_error(
			&written_at, e, "is missing: write the patterns, or an empty list");
	if (parse_globs(&files_at, files, dir, 0, a, &c->files, e) < 0 ||
		parse_globs(&written_at, written, dir, GLOB_OUTPUT, a, &c->outputs, e) < 0 ||
		check_literals(&files_at, files, &c->files, e) < 0 ||
		check_own_files(&written_at, written, dir, "project", &c->outputs, e) < 0)
		return -1;
	v = json_member(outputs, &out_at, "workspaceFiles", &here);
	if (v && add_workspace_outputs(&here, v, dir, a, &c->outputs, e) < 0)
		return -1;
	if (check_not_outputs(&files_at, files, false, &c->files, &c->outputs, e) < 0)
		return -1;
	v = json_member(inputs, &in_at, "workspaceFiles", &here);
	if (v &&
		(parse_globs(&here, v, "", 0, a, &c->workspace_files, e) < 0 ||
			check_literals(&here, v, &c->workspace_files, e) < 0 ||
			check_not_outputs(&here, v, true, &c->workspace_files, &c->outputs, e) < 0))
		return -1;
	v = json_member(inputs, &in_at, "env", &here);
	if (v && field_strings(&here, v, a, taskdef_check_env_name, &c->env, &c->nenv, e) < 0)
		return -1;
	c->nenv = sort_unique(c->env, c->nenv);
	if (parse_commands(&in_at, inputs, "runtime", a, &c->runtime, &c->nruntime, e) < 0 ||
		parse_commands(&in_at, inputs, "workspaceRuntime", a, &c->workspace_runtime,
			&c->nworkspace_runtime, e) < 0 ||
		parse_upstream(&in_at, inputs, t, a, c, e) < 0)
		return -1;
	*ret = c;
	return 0;
}

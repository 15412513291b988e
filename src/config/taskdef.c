/* SPDX-License-Identifier: MIT */
#include "config/taskdef.h"
#include "config/fields.h"
#include "config/taskdef-private.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/regex.h"
#include "util/strbuf.h"

#define IN_TASK "belongs to a task: write it in tasks.NAME"
#define IN_WORKSPACE "belongs in vx.workspace.json"

static const struct field project_fields[] = {
	{"$schema", FIELD_HERE, NULL},
	{"dependencies", FIELD_HERE, NULL},
	{"name", FIELD_HERE, NULL},
	{"tags", FIELD_HERE, NULL},
	{"tasks", FIELD_HERE, NULL},
	{"plugins", FIELD_NOT, NULL},
	{"affectedBase", FIELD_FOREIGN, IN_WORKSPACE},
	{"cacheDir", FIELD_FOREIGN, IN_WORKSPACE},
	{"concurrency", FIELD_FOREIGN, IN_WORKSPACE},
	{"projects", FIELD_FOREIGN, IN_WORKSPACE},
	{"rules", FIELD_FOREIGN, IN_WORKSPACE},
	{"cache", FIELD_FOREIGN, IN_TASK},
	{"dependsOn", FIELD_FOREIGN, IN_TASK},
	{"env", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.exec.env"},
	{"exec", FIELD_FOREIGN, IN_TASK},
	{"inputs", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.cache.inputs"},
	{"outputs", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.cache.outputs"},
	{"extends", FIELD_FOREIGN, "a config stands alone: write the tasks themselves"},
	{"implicitDependencies", FIELD_FOREIGN, "write 'dependencies': the names of projects"},
	{"namedInputs", FIELD_FOREIGN, "write the patterns in tasks.NAME.cache.inputs.files"},
	{"pipeline", FIELD_FOREIGN, "write 'tasks'"},
	{"scripts", FIELD_FOREIGN, "write 'tasks': { NAME: { \"exec\": { \"command\": \"…\" } } }"},
	{"targets", FIELD_FOREIGN, "write 'tasks'"},
};

static const struct field task_fields[] = {
	{"cache", FIELD_HERE, NULL},
	{"dependsOn", FIELD_HERE, NULL},
	{"description", FIELD_HERE, NULL},
	{"exec", FIELD_HERE, NULL},
	{"interactive", FIELD_NOT, NULL},
	{"remote", FIELD_NOT, NULL},
	{"args", FIELD_FOREIGN, "write them into exec.command"},
	{"cmd", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"command", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"configurations", FIELD_FOREIGN, "write one task for each"},
	{"cwd", FIELD_FOREIGN,
		"commands start in the project's directory: write 'cd DIR && …' in "
		"exec.command"},
	{"dependencies", FIELD_FOREIGN, "write 'dependsOn'"},
	{"deps", FIELD_FOREIGN, "write 'dependsOn'"},
	{"env", FIELD_FOREIGN,
		"write exec.env.passThrough for what the task sees, and "
		"cache.inputs.env for what is in its key"},
	{"executor", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"inputs", FIELD_FOREIGN, "write cache.inputs: { \"files\": [ … ] }"},
	{"options", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"outputLogs", FIELD_FOREIGN, "is said on the command line: --output-logs"},
	{"outputs", FIELD_FOREIGN, "write cache.outputs: { \"files\": [ … ] }"},
	{"passThroughEnv", FIELD_FOREIGN, "write exec.env.passThrough"},
	{"persistent", FIELD_FOREIGN, "belongs in 'exec': write exec.persistent: {}"},
	{"retries", FIELD_FOREIGN, "belongs in 'exec', and is not in this vx yet"},
	{"run", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"sandbox", FIELD_FOREIGN, "belongs in 'exec': write exec.sandbox"},
	{"script", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }"},
	{"tags", FIELD_FOREIGN, "belongs to the project: write it beside 'tasks'"},
	{"timeout", FIELD_FOREIGN, "belongs in 'exec': write exec.timeout"},
	{"type", FIELD_FOREIGN, "leave it out: a task without 'exec' is a group"},
};

static const struct field exec_fields[] = {
	{"command", FIELD_HERE, NULL},
	{"env", FIELD_HERE, NULL},
	{"persistent", FIELD_HERE, NULL},
	{"sandbox", FIELD_HERE, NULL},
	{"timeout", FIELD_HERE, NULL},
	{"retries", FIELD_LATER, NULL},
	{"interactive", FIELD_NOT, NULL},
	{"remote", FIELD_NOT, NULL},
	{"resources", FIELD_NOT, "'concurrency' in vx.workspace.json is the only limit"},
	{"args", FIELD_FOREIGN, "write them into 'command'"},
	{"cache", FIELD_FOREIGN, "belongs beside 'exec'"},
	{"cmd", FIELD_FOREIGN, "write 'command'"},
	{"cwd", FIELD_FOREIGN,
		"commands start in the project's directory: write 'cd DIR && …' in 'command'"},
	{"define", FIELD_FOREIGN, "belongs in 'env': write env.define"},
	{"dependsOn", FIELD_FOREIGN, "belongs beside 'exec'"},
	{"passThrough", FIELD_FOREIGN, "belongs in 'env': write env.passThrough"},
	{"readyWhen", FIELD_FOREIGN, "belongs in 'persistent': write persistent.readyWhen"},
	{"shell", FIELD_FOREIGN, "commands are run by 'sh -c'"},
};

static const struct field env_fields[] = {
	{"define", FIELD_HERE, NULL},
	{"passThrough", FIELD_HERE, NULL},
	{"secret", FIELD_LATER, NULL},
};

static const struct field persistent_fields[] = {
	{"readyWhen", FIELD_HERE, NULL},
};

/* What has a meaning in dependsOn, in filters or to a person's eye cannot be in a name. */
static const char *
task_name_fault(const char *s)
{
	if (!*s)
		return "a task's name is empty";
	if (field_has_outer_blank(s))
		return "a task's name may not begin or end in a blank";
	if (strchr(s, '#'))
		return "a task's name may hold no '#': it stands between project and task";
	if (strchr(s, '*'))
		return "a task's name may hold no '*': it is a wildcard in dependsOn";
	if (*s == '^' || *s == '!')
		return "a task's name may not begin with '^' or '!'";
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return "a task's name may hold no control character";
	return NULL;
}

static int
check_tag(const struct json_at *at, const char *s, struct err *e)
{
	size_t n = strlen(s);

	if (field_has_outer_blank(s))
		return json_error(at, e, "begins or ends in a blank");
	if (strchr(s, '*'))
		return json_error(at, e, "a tag may hold no '*': it is a wildcard in filters");
	if (n >= 3 && !strcmp(s + n - 3, "..."))
		return json_error(at, e, "a tag may not end in '...': a filter would walk from it");
	if (s[n - 1] == ']' && strchr(s, '['))
		return json_error(at, e,
			"a tag may not end in '[…]': a filter would take it for a "
			"git reference");
	return 0;
}

static int
check_project_name(const struct json_at *at, const char *s, struct err *e)
{
	if (field_has_outer_blank(s))
		return json_error(at, e, "begins or ends in a blank");
	if (strchr(s, '#'))
		return json_error(at, e,
			"a project's name may hold no '#': it stands between project "
			"and task");
	if (!strcmp(s, "//"))
		return json_error(at, e, "'//' stands for the root project: choose another name");
	return 0;
}

static bool
is_env_name(const char *s)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";

	return *s && strchr(letters, *s) &&
	       !s[strspn(s, "0123456789"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz_")];
}

static int
check_pass_through(const struct json_at *at, const char *s, struct err *e)
{
	if (strchr(s, '*'))
		return json_error(at, e, "'%s': wildcards are not allowed, write each name", s);
	if (*s == '!')
		return json_error(at, e, "'%s': leave it out, only names that are listed pass", s);
	if (strchr(s, '='))
		return json_error(at, e, "'%s': write values in 'define'", s);
	if (!is_env_name(s))
		return json_error(at, e,
			"'%s' is no variable name: letters, digits and '_', no digit first", s);
	return 0;
}

static int
parse_define(const struct json_at *at, const json_t *value, struct arena *a, struct taskdef *t,
	struct err *e)
{
	if (!json_is_object(value))
		return json_error(
			at, e, "is %s: write an object { NAME: \"value\" }", json_kind(value));
	t->define = arena_array(a, json_object_size(value), struct define);
	for (size_t i = 0; i < value->n; i++) {
		const json_t *v = &value->items[i];
		struct json_at here = {at->doc, at, v->key, 0};

		if (!is_env_name(here.key))
			return json_error_key(&here, e,
				"is no variable name: letters, digits and '_', no digit first");
		if (!json_is_string(v))
			return json_error(&here, e, "is %s: write a string", json_kind(v));
		if (!json_c_string(v))
			return json_error(&here, e, "holds a NUL (\\u0000): leave it out");
		t->define[t->ndefine++] = (struct define){
			arena_strdup(a, here.key), arena_strdup(a, json_string_value(v))};
	}
	return 0;
}

/* `"env": { "FOO": "1" }`, as other runners have it. */
static int
check_no_values(const struct json_at *at, const json_t *value, struct err *e)
{
	for (size_t i = 0; json_is_object(value) && i < value->n; i++) {
		const json_t *v = &value->items[i];
		struct json_at here = {at->doc, at, v->key, 0};
		bool is_field = false;

		for (size_t k = 0; k < array_len(env_fields); k++)
			is_field |= !strcmp(env_fields[k].name, v->key);
		if (!is_field && json_is_string(v) && is_env_name(v->key))
			return json_error_key(
				&here, e, "is no field: write \"define\": { \"%s\": … }", v->key);
	}
	return 0;
}

static int
parse_env(const struct json_at *at, const json_t *value, struct arena *a, struct taskdef *t,
	struct err *e)
{
	struct json_at here;
	const json_t *v;

	if (check_no_values(at, value, e) ||
		fields_check(at, value, env_fields, array_len(env_fields),
			json_is_array(value) ? "write { \"passThrough\": [ … ] }" : NULL, e) < 0)
		return -1;
	v = json_member(value, at, "passThrough", &here);
	if (v && field_strings(&here, v, a, check_pass_through, &t->pass_through, &t->npass_through,
			 e) < 0)
		return -1;
	v = json_member(value, at, "define", &here);
	return v ? parse_define(&here, v, a, t, e) : 0;
}

static int
parse_persistent(const struct json_at *at, const json_t *value, struct arena *a, struct taskdef *t,
	struct err *e)
{
	struct err why = ERR_INIT;
	struct regex *re;
	struct json_at here;
	const json_t *v;

	if (fields_check(at, value, persistent_fields, array_len(persistent_fields),
		    "write {}, or { \"readyWhen\": \"…\" } with a regular expression for the line "
		    "that says that it is ready",
		    e) < 0)
		return -1;
	t->persistent = true;
	v = json_member(value, at, "readyWhen", &here);
	if (!v)
		return 0;
	if (field_string(&here, v, a, &t->ready_when, e) < 0)
		return -1;
	re = regex_new(t->ready_when, &why);
	if (!re)
		return json_error(&here, e, "is no regular expression: %s", why.text);
	regex_free(re);
	return 0;
}

static int
parse_exec(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct taskdef *t, struct err *e)
{
	struct json_at here;
	const json_t *v;

	if (fields_check(at, value, exec_fields, array_len(exec_fields),
		    json_is_string(value) ? "write { \"command\": \"…\" }" : NULL, e) < 0)
		return -1;
	v = json_member(value, at, "command", &here);
	if (!v)
		return json_error(&here, e, "is missing: write what 'sh -c' is to run");
	if (field_string(&here, v, a, &t->command, e) < 0)
		return -1;
	v = json_member(value, at, "timeout", &here);
	if (v && field_timeout(&here, v, &t->timeout_ms, e) < 0)
		return -1;
	v = json_member(value, at, "env", &here);
	if (v && parse_env(&here, v, a, t, e) < 0)
		return -1;
	v = json_member(value, at, "persistent", &here);
	if (v && parse_persistent(&here, v, a, t, e) < 0)
		return -1;
	v = json_member(value, at, "sandbox", &here);
	return v ? sandboxdef_parse(&here, v, dir, t->persistent, a, &t->sandbox, e) : 0;
}

/* The micro-syntax of dependsOn (spec/config.md §3). */
static int
parse_dependency(const struct json_at *at, const char *s, struct arena *a, struct depspec *ret,
	struct err *e)
{
	struct depspec d = {DEP_SELF, s, NULL, s};
	const char *hash = strchr(s, '#'), *fault;

	if (*s == '!')
		return json_error(
			at, e, "'%s': exceptions exist only in filters, leave the task out", s);
	if (*s == '$')
		return json_error(at, e, "'%s': a variable belongs in cache.inputs.env", s);
	if (*s == '^') {
		d.form = DEP_UPSTREAM;
		d.task = s + 1;
		if (hash)
			return json_error(at, e,
				"'%s': write '%s' for one project, '^%s' for those that "
				"this one depends on",
				s, s + 1, hash + 1);
		if (!*d.task)
			return json_error(at, e, "'^' alone names no task: write '^build'");
	} else if (hash) {
		d.form = DEP_PROJECT;
		d.project = arena_memdupz(a, s, (size_t)(hash - s));
		d.task = hash + 1;
		if (!*d.project)
			return json_error(
				at, e, "'%s': write '%s' for a task of this project", s, d.task);
		if (strchr(s, '*'))
			return json_error(
				at, e, "'%s': patterns are allowed without a project only", s);
	}
	if (!d.task[strspn(d.task, "*")] && *d.task)
		return json_error(
			at, e, "'%s' is every task: write the names, or a pattern like 'gen.*'", s);
	if (d.form == DEP_PROJECT || !strchr(d.task, '*')) {
		fault = task_name_fault(d.task);
		if (fault)
			return json_error(at, e, "'%s': %s", s, fault);
	} else if (field_has_outer_blank(d.task) || *d.task == '^' || *d.task == '!') {
		return json_error(at, e, "'%s': write NAME, ^NAME or PROJECT#NAME", s);
	}
	*ret = d;
	return 0;
}

static int
parse_depends_on(const struct json_at *at, const json_t *value, struct arena *a, struct taskdef *t,
	struct err *e)
{
	size_t n = json_array_size(value);

	if (!json_is_array(value))
		return json_error(at, e, "is %s: write an array like [\"^build\", \"gen\"]",
			json_kind(value));
	t->depends_on = arena_array(a, n, struct depspec);
	for (size_t i = 0; i < n; i++) {
		struct json_at here = {at->doc, at, NULL, i};
		const json_t *v = json_array_get(value, i);
		const char *s;

		if (json_is_object(v))
			return json_error(&here, e,
				"is an object: write \"NAME\", \"^NAME\" or "
				"\"PROJECT#NAME\"");
		if (field_string(&here, v, a, &s, e) < 0 ||
			parse_dependency(&here, s, a, &t->depends_on[i], e) < 0)
			return -1;
	}
	t->ndepends_on = n;
	return 0;
}

static int
parse_task(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct taskdef *t, struct err *e)
{
	cleanup_strbuf struct strbuf canonical = STRBUF_INIT;
	const json_t *v, *exec, *depends_on, *cache;
	struct json_at here;

	if (fields_check(at, value, task_fields, array_len(task_fields),
		    json_is_string(value) ? "write { \"exec\": { \"command\": \"…\" } }" : NULL,
		    e) < 0)
		return -1;
	v = json_member(value, at, "description", &here);
	if (v && !json_is_string(v))
		return json_error(&here, e, "is %s: write a string", json_kind(v));
	if (v && !json_c_string(v))
		return json_error(&here, e, "holds a NUL (\\u0000): leave it out");
	t->description = v ? arena_strdup(a, json_string_value(v)) : NULL;

	exec = json_member(value, at, "exec", &here);
	if (exec && parse_exec(&here, exec, dir, a, t, e) < 0)
		return -1;
	depends_on = json_member(value, at, "dependsOn", &here);
	if (depends_on && parse_depends_on(&here, depends_on, a, t, e) < 0)
		return -1;
	if (!exec && !depends_on)
		return json_error(at, e,
			"has neither 'exec' nor 'dependsOn': write what it runs, or "
			"\"dependsOn\": [] for an empty group");
	cache = json_member(value, at, "cache", &here);
	if (cache && !exec)
		return json_error_key(&here, e,
			"a group runs nothing and has no results: leave 'cache' "
			"out");
	if (cache && t->persistent)
		return json_error_key(
			&here, e, "a persistent task has no result to keep: leave 'cache' out");
	if (cache && t->sandbox && t->sandbox->live)
		return json_error_key(&here, e,
			"a task with the live view (exec.sandbox.view) writes into the workspace "
			"as "
			"it goes, over outputs of before, so there is no result to keep: leave "
			"'cache' out, or the view");
	if (cache && cachedef_parse(&here, cache, dir, t, a, &t->cache, e) < 0)
		return -1;

	json_canonical(value, &canonical);
	t->canonical = arena_memdupz(a, canonical.buf, canonical.len);
	return 0;
}

static int
parse_tasks(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct projectdef *p, struct err *e)
{
	size_t n = json_object_size(value);
	cleanup_strbuf struct strbuf place = STRBUF_INIT;
	size_t file_len;

	if (!json_is_object(value))
		return json_error(
			at, e, "is %s: write an object { NAME: { … } }", json_kind(value));
	strbuf_add_sanitised(&place, at->doc->file, strlen(at->doc->file));
	file_len = place.len;
	p->tasks = arena_array(a, n, struct taskdef);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = &value->items[i];
		struct json_at here = {at->doc, at, v->key, 0};
		const char *fault = task_name_fault(here.key);
		struct taskdef *t = &p->tasks[p->ntasks];

		if (fault)
			return json_error_key(&here, e, "%s", fault);
		t->name = arena_strdup(a, here.key);
		strbuf_truncate(&place, file_len);
		if (!at->doc->evaluated) {
			strbuf_addch(&place, ':');
			strbuf_addu(&place, v->key_line);
			strbuf_addch(&place, ':');
			strbuf_addu(&place, v->key_col);
		}
		t->place = arena_memdupz(a, place.buf, place.len);
		if (parse_task(&here, v, dir, a, t, e) < 0)
			return -1;
		p->ntasks++;
	}
	return 0;
}

int
projectdef_parse(const struct json_doc *doc, const char *dir, struct arena *a,
	struct projectdef *ret, struct err *e)
{
	const struct json_at root = {doc, NULL, NULL, 0};
	struct projectdef p = {0};
	struct json_at at;
	const json_t *v;

	if (fields_check(&root, doc->root, project_fields, array_len(project_fields), NULL, e) < 0)
		return -1;
	v = json_member(doc->root, &root, "$schema", &at);
	if (v && !json_is_string(v))
		return json_error(&at, e, "is %s: write a string", json_kind(v));
	v = json_member(doc->root, &root, "name", &at);
	if (v &&
		(field_string(&at, v, a, &p.name, e) < 0 || check_project_name(&at, p.name, e) < 0))
		return -1;
	v = json_member(doc->root, &root, "dependencies", &at);
	if (v && field_strings(
			 &at, v, a, check_project_name, &p.dependencies, &p.ndependencies, e) < 0)
		return -1;
	v = json_member(doc->root, &root, "tags", &at);
	if (v && field_strings(&at, v, a, check_tag, &p.tags, &p.ntags, e) < 0)
		return -1;
	v = json_member(doc->root, &root, "tasks", &at);
	if (v && parse_tasks(&at, v, dir, a, &p, e) < 0)
		return -1;
	*ret = p;
	return 0;
}

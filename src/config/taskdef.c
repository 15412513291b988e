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
#include "util/utf8.h"

#define IN_TASK "belongs to a task: write it in tasks.NAME"
#define IN_WORKSPACE "belongs in vx.workspace.json"

#define PROJECT_NAME "'type': 'string', 'pattern': '^(?!//$)" TRIMMED("#\\x00-\\x1f\\x7f") "$'"

static const struct shape project_name_shape = {.schema = PROJECT_NAME};
static const struct shape project_names_shape = {
	.schema = "'type': 'array', 'items': { " PROJECT_NAME " }"};
static const struct shape tags_shape = {
	.schema = "'type': 'array', 'items': { 'type': 'string', "
		  "'pattern': '^(?!.*(\\.\\.\\.|\\[.*\\])$)" TRIMMED("*") "$' }"};
static const struct shape env_names_shape = {
	.schema = "'type': 'array', 'items': { "
		  "'type': 'string', 'pattern': '^[A-Za-z_][A-Za-z0-9_]*$' }"};
static const struct shape define_shape = {.schema = "'type': 'object', 'propertyNames': { "
						    "'pattern': '^[A-Za-z_][A-Za-z0-9_]*$' }",
	.each = &field_any_text_shape};
/* NAME and ^NAME, with `*` but not only that, or PROJECT#NAME. */
static const struct shape depends_on_shape = {
	.schema = "'type': 'array', 'items': { "
		  "'type': 'string', 'pattern': '^(?![!$])(\\^?(?![\\^!]|\\*+$)" TRIMMED(
			  "#") "|(?!\\^)[^#*]+#(?![\\^!])" TRIMMED("#*") ")$' }"};

static const struct field env_fields[] = {
	{"define", FIELD_HERE,
		"Variables that the command sees with the value written here, which is in the key.",
		&define_shape},
	{"passThrough", FIELD_HERE,
		"Names of variables that the command sees with the value that vx has, which is in "
		"no key.",
		&env_names_shape},
	{"secret", FIELD_HERE,
		"Names of variables, seen or not, whose values vx prints and stores as ***, as it "
		"does with those whose names speak of a secret.",
		&taskdef_env_names_shape},
};
static const struct shape env_shape = {.schema = "'type': 'object'", FIELDS(env_fields)};

static const struct field persistent_fields[] = {
	{"readyWhen", FIELD_HERE,
		"A regular expression: the task is ready at the first line that holds a match.",
		&field_text_shape},
};
static const struct shape persistent_shape = {
	.schema = "'type': 'object'", FIELDS(persistent_fields)};

static const struct shape retries_shape = {
	.schema = "'type': 'integer', 'minimum': 0, 'maximum': 1000"};
_Static_assert(TASKDEF_RETRIES_MAX == 1000, "as in the shape");
static const struct shape remote_shape = {.schema = "'enum': [true, false, 'only']"};

static const struct field exec_fields[] = {
	{"command", FIELD_HERE, "What sh -c runs in the project's directory.", &field_text_shape},
	{"env", FIELD_HERE,
		"The variables that the command sees, beside a short list that all commands see.",
		&env_shape},
	{"persistent", FIELD_HERE,
		"The command goes on until it is ended, as a server does. {} is one that is ready "
		"when it has started.",
		&persistent_shape},
	{"remote", FIELD_HERE,
		"Whether an executor on another machine may run the command: true, false, or "
		"'only' where no other may. In no key.",
		&remote_shape},
	{"retries", FIELD_HERE,
		"How many times the command is run again when it has failed. The last attempt "
		"decides.",
		&retries_shape},
	{"sandbox", FIELD_HERE,
		"The command runs in a sandbox that grants what this says; {} grants nothing.",
		&sandboxdef_shape},
	{"timeout", FIELD_HERE,
		"Milliseconds after which the command is ended and the task fails. Of a persistent "
		"task: until it is ready.",
		&field_timeout_shape},
	{"interactive", FIELD_NOT, NULL, NULL},
	{"resources", FIELD_NOT, "'concurrency' in vx.workspace.json is the only limit", NULL},
	{"args", FIELD_FOREIGN, "write them into 'command'", NULL},
	{"cache", FIELD_FOREIGN, "belongs beside 'exec'", NULL},
	{"cmd", FIELD_FOREIGN, "write 'command'", NULL},
	{"cwd", FIELD_FOREIGN,
		"commands start in the project's directory: write 'cd DIR && …' in 'command'",
		NULL},
	{"define", FIELD_FOREIGN, "belongs in 'env': write env.define", NULL},
	{"dependsOn", FIELD_FOREIGN, "belongs beside 'exec'", NULL},
	{"passThrough", FIELD_FOREIGN, "belongs in 'env': write env.passThrough", NULL},
	{"readyWhen", FIELD_FOREIGN, "belongs in 'persistent': write persistent.readyWhen", NULL},
	{"secret", FIELD_FOREIGN, "belongs in 'env': write env.secret", NULL},
	{"retry", FIELD_FOREIGN, "write 'retries': how many times it is run again", NULL},
	{"shell", FIELD_FOREIGN, "commands are run by 'sh -c'", NULL},
};
static const struct shape exec_shape = {
	.schema = "'type': 'object', 'required': ['command'], "
		  "'dependencies': { 'persistent': { 'not': { 'required': ['retries'] }, "
		  "'properties': { 'sandbox': { 'properties': { "
		  "'view': { 'not': { 'const': 'transaction' }, 'errorMessage': 'A persistent task "
		  "has no end at which a transaction could be put in the workspace.' } } } } } }",
	FIELDS(exec_fields)};

static const struct field task_fields[] = {
	{"cache", FIELD_HERE,
		"What is read and written: the task is cached. Without it the task runs each time.",
		&cachedef_shape},
	{"dependsOn", FIELD_HERE,
		"The tasks that must be done before: name (of this project), ^name (of the "
		"projects that this one depends on), project#name, //#name (of the root); * in a "
		"name without a project is any run of characters.",
		&depends_on_shape},
	{"description", FIELD_HERE, "What the task is for, for people.", &field_any_text_shape},
	{"exec", FIELD_HERE, "What runs. A task without it is a group.", &exec_shape},
	{"interactive", FIELD_NOT, NULL, NULL},
	{"args", FIELD_FOREIGN, "write them into exec.command", NULL},
	{"cmd", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"command", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"configurations", FIELD_FOREIGN, "write one task for each", NULL},
	{"cwd", FIELD_FOREIGN,
		"commands start in the project's directory: write 'cd DIR && …' in "
		"exec.command",
		NULL},
	{"dependencies", FIELD_FOREIGN, "write 'dependsOn'", NULL},
	{"deps", FIELD_FOREIGN, "write 'dependsOn'", NULL},
	{"env", FIELD_FOREIGN,
		"write exec.env.passThrough for what the task sees, and "
		"cache.inputs.env for what is in its key",
		NULL},
	{"executor", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"inputs", FIELD_FOREIGN, "write cache.inputs: { \"files\": [ … ] }", NULL},
	{"options", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"outputLogs", FIELD_FOREIGN, "is said on the command line: --output-logs", NULL},
	{"outputs", FIELD_FOREIGN, "write cache.outputs: { \"files\": [ … ] }", NULL},
	{"passThroughEnv", FIELD_FOREIGN, "write exec.env.passThrough", NULL},
	{"persistent", FIELD_FOREIGN, "belongs in 'exec': write exec.persistent: {}", NULL},
	{"continuous", FIELD_FOREIGN, "write exec.persistent: {}", NULL},
	{"files", FIELD_FOREIGN, "write cache.inputs: { \"files\": [ … ] }", NULL},
	{"needs", FIELD_FOREIGN, "write 'dependsOn'", NULL},
	{"output", FIELD_FOREIGN, "write cache.outputs: { \"files\": [ … ] }", NULL},
	{"retries", FIELD_FOREIGN, "belongs in 'exec': write exec.retries", NULL},
	{"retry", FIELD_FOREIGN, "write exec.retries: how many times it is run again", NULL},
	{"secret", FIELD_FOREIGN, "belongs in exec.env: write exec.env.secret", NULL},
	{"service", FIELD_FOREIGN, "write exec.persistent: {}", NULL},
	{"remote", FIELD_FOREIGN, "belongs in 'exec': write exec.remote", NULL},
	{"run", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"sandbox", FIELD_FOREIGN, "belongs in 'exec': write exec.sandbox", NULL},
	{"script", FIELD_FOREIGN, "write exec: { \"command\": \"…\" }", NULL},
	{"tags", FIELD_FOREIGN, "belongs to the project: write it beside 'tasks'", NULL},
	{"timeout", FIELD_FOREIGN, "belongs in 'exec': write exec.timeout", NULL},
	{"type", FIELD_FOREIGN, "leave it out: a task without 'exec' is a group", NULL},
};
static const struct shape task_shape = {
	.schema = "'type': 'object', "
		  "'anyOf': [{ 'required': ['exec'] }, { 'required': ['dependsOn'] }], "
		  "'dependencies': { 'cache': { 'required': ['exec'], 'properties': { 'exec': { "
		  "'not': { 'anyOf': [{ 'required': ['persistent'] }, { 'required': ['sandbox'], "
		  "'properties': { 'sandbox': { 'required': ['view'], 'properties': { 'view': { "
		  "'const': 'live' } } } } }] }, "
		  "'errorMessage': 'A persistent task, or one with the live view, has no result to "
		  "keep: leave cache out.' } } } }",
	FIELDS(task_fields)};
static const struct shape tasks_shape = {
	.schema = "'type': 'object', 'propertyNames': { "
		  "'pattern': '^(?![\\^!])" TRIMMED("#*\\x00-\\x1f\\x7f") "$' }",
	.each = &task_shape};

static const struct field project_fields[] = {
	{"$schema", FIELD_HERE, "The schema of this file, for editors.", &field_any_text_shape},
	{"dependencies", FIELD_HERE,
		"Projects that this one depends on, beside those in its package.json: what ^task "
		"and filters follow.",
		&project_names_shape},
	{"name", FIELD_HERE,
		"The name of the project, unless package.json has one. By default that of its "
		"directory.",
		&project_name_shape},
	{"tags", FIELD_HERE, "Words by which filters select projects.", &tags_shape},
	{"tasks", FIELD_HERE, "The tasks of the project, by name.", &tasks_shape},
	{"plugins", FIELD_NOT, NULL, NULL},
	{"affectedBase", FIELD_FOREIGN, IN_WORKSPACE, NULL},
	{"cacheDir", FIELD_FOREIGN, IN_WORKSPACE, NULL},
	{"concurrency", FIELD_FOREIGN, IN_WORKSPACE, NULL},
	{"projects", FIELD_FOREIGN, IN_WORKSPACE, NULL},
	{"rules", FIELD_FOREIGN, IN_WORKSPACE, NULL},
	{"cache", FIELD_FOREIGN, IN_TASK, NULL},
	{"dependsOn", FIELD_FOREIGN, IN_TASK, NULL},
	{"env", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.exec.env", NULL},
	{"exec", FIELD_FOREIGN, IN_TASK, NULL},
	{"inputs", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.cache.inputs", NULL},
	{"outputs", FIELD_FOREIGN, "belongs to a task: write tasks.NAME.cache.outputs", NULL},
	{"extends", FIELD_FOREIGN, "a config stands alone: write the tasks themselves", NULL},
	{"implicitDependencies", FIELD_FOREIGN, "write 'dependencies': the names of projects",
		NULL},
	{"namedInputs", FIELD_FOREIGN, "write the patterns in tasks.NAME.cache.inputs.files", NULL},
	{"pipeline", FIELD_FOREIGN, "write 'tasks'", NULL},
	{"scripts", FIELD_FOREIGN, "write 'tasks': { NAME: { \"exec\": { \"command\": \"…\" } } }",
		NULL},
	{"targets", FIELD_FOREIGN, "write 'tasks'", NULL},
};
const struct shape projectdef_shape = {.schema = "'type': 'object'", FIELDS(project_fields)};

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
	return utf8_has_control(s) ? "a task's name may hold no control character" : NULL;
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
	if (utf8_has_control(s))
		return json_error(at, e, "a project's name may hold no control character");
	return 0;
}

static bool
is_env_name(const char *s)
{
	for (size_t i = 0; s[i]; i++) {
		char c = s[i];

		if (c != '_' && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') &&
			!(i && c >= '0' && c <= '9'))
			return false;
	}
	return *s;
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
		fields_check(at, value, &env_shape,
			json_is_array(value) ? "write { \"passThrough\": [ … ] }" : NULL, e) < 0)
		return -1;
	v = json_member(value, at, "passThrough", &here);
	if (v && field_strings(&here, v, a, check_pass_through, &t->pass_through, &t->npass_through,
			 e) < 0)
		return -1;
	v = json_member(value, at, "secret", &here);
	if (v && field_strings(&here, v, a, taskdef_check_env_name, &t->secret, &t->nsecret, e) < 0)
		return -1;
	v = json_member(value, at, "define", &here);
	return v ? parse_define(&here, v, a, t, e) : 0;
}

/* "/ready/i", as in the source of a script: it would match that very text. */
static bool
is_in_slashes(const char *s)
{
	const char *last = strrchr(s, '/');

	return *s == '/' && last > s + 1 && !last[1 + strspn(last + 1, "dgimsuvy")];
}

static int
parse_persistent(const struct json_at *at, const json_t *value, struct arena *a, struct taskdef *t,
	struct err *e)
{
	struct err why = ERR_INIT;
	struct regex *re;
	struct json_at here;
	const json_t *v;

	if (fields_check(at, value, &persistent_shape,
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
	if (is_in_slashes(t->ready_when))
		return json_error(&here, e,
			"a regular expression is written without slashes around it and flags; for "
			"a "
			"slash at its start write [/]");
	re = regex_new(t->ready_when, &why);
	if (!re)
		return json_error(&here, e, "is no regular expression: %s", why.text);
	regex_free(re);
	return 0;
}

static int
parse_retries(const struct json_at *at, const json_t *value, struct taskdef *t, struct err *e)
{
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 0 || n > TASKDEF_RETRIES_MAX)
		return json_error(at, e, "write a whole number from 0 to %d", TASKDEF_RETRIES_MAX);
	if (t->persistent)
		return json_error_key(at, e,
			"a persistent task goes on until it is ended, and is not run again: leave "
			"'retries' out");
	t->has_retries = true;
	t->retries = (unsigned)n;
	return 0;
}

static int
parse_remote(const struct json_at *at, const json_t *value, struct taskdef *t, struct err *e)
{
	const char *s = json_c_string(value);

	if (!json_is_boolean(value) && !(s && !strcmp(s, "only")))
		return json_error(at, e, "is %s: write true, false or \"only\"",
			s ? "another string" : json_kind(value));
	t->remote = s ? REMOTE_ONLY : json_is_true(value) ? REMOTE_MAY : REMOTE_NEVER;
	if (s && t->sandbox)
		return json_error(at, e,
			"a sandboxed task is executed by this machine: leave 'sandbox' out, or "
			"this");
	return 0;
}

static int
parse_exec(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct taskdef *t, struct err *e)
{
	struct json_at here;
	const json_t *v;

	if (fields_check(at, value, &exec_shape,
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
	v = json_member(value, at, "retries", &here);
	if (v && parse_retries(&here, v, t, e) < 0)
		return -1;
	v = json_member(value, at, "sandbox", &here);
	if (v && sandboxdef_parse(&here, v, dir, t->persistent, a, &t->sandbox, e) < 0)
		return -1;
	v = json_member(value, at, "remote", &here);
	return v ? parse_remote(&here, v, t, e) : 0;
}

/* Who executes it is no part of what is executed. */
static void
add_canonical(const json_t *task, const json_t *exec, struct strbuf *out)
{
	json_t bare_task = *task, bare_exec;

	if (!json_object_get(exec, "remote")) {
		json_canonical(task, out);
		return;
	}
	bare_exec = *exec;
	bare_exec.n = 0;
	bare_exec.items = xcalloc(exec->n, sizeof(*exec->items));
	for (size_t i = 0; i < exec->n; i++)
		if (strcmp(exec->items[i].key, "remote") != 0)
			bare_exec.items[bare_exec.n++] = exec->items[i];
	bare_task.items = xcalloc(task->n, sizeof(*task->items));
	for (size_t i = 0; i < task->n; i++)
		bare_task.items[i] = &task->items[i] == exec ? bare_exec : task->items[i];
	json_canonical(&bare_task, out);
	free(bare_exec.items);
	free(bare_task.items);
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
	enum {
		CANONICAL_ROOM = 1000 /* most have it */
	};
	cleanup_strbuf struct strbuf canonical = STRBUF_INIT;
	const json_t *v, *exec, *depends_on, *cache;
	struct json_at here;

	if (fields_check(at, value, &task_shape,
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
	if (!cache && t->remote == REMOTE_ONLY) {
		const struct json_at in_exec = {at->doc, at, "exec", 0},
				     remote = {at->doc, &in_exec, "remote", 0};

		return json_error(&remote, e,
			"\"only\" is for a task with results: write 'cache' beside 'exec'");
	}
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

	strbuf_grow(&canonical, CANONICAL_ROOM);
	add_canonical(value, exec, &canonical);
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

	if (fields_check(&root, doc->root, &projectdef_shape, NULL, e) < 0)
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

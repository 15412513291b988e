/* SPDX-License-Identifier: MIT */
#include "exec/wire.h"
#include "config/json.h"
#include "config/taskdef.h"
#include "exec/denials.h"
#include "proto/status.h"
#include "util/alloc.h"
#include "util/base64.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/mask.h"
#include "util/proc.h"
#include "util/utf8.h"
#include <math.h>

/* ------------------------------------------------------------------ what an executor says */

#define CPU_MAX_MS 1e12 /* 30 years of a core; added up, and in nanoseconds, still a number */

static const struct {
	const char *name;
	/* Beside "type": those that must be there, then those that may. */
	const char *must[3], *may[6];
} types[] = {
	[WIRE_DESCRIPTION] = {"description", {"protocol", "name"}, {"remote", "capacity"}},
	[WIRE_ACCEPTED] = {"accepted", {"id", "accepts"}, {NULL}},
	[WIRE_STDOUT] = {"stdout", {"id", "data"}, {NULL}},
	[WIRE_STDERR] = {"stderr", {"id", "data"}, {NULL}},
	[WIRE_RESULT] = {"result", {"id", "exitCode", "durationMs"},
		{"violations", "outputs", "where", "cpuMs", "peakRssBytes"}},
	[WIRE_FAILED] = {"failed", {"id", "message"}, {NULL}},
};

const char *
wire_type_name(enum wire_type t)
{
	return types[t].name;
}

static bool
is_among(const char *key, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && names[i]; i++)
		if (!strcmp(key, names[i]))
			return true;
	return false;
}

/* Its own words. */
static void
add_quoted(const struct wire_message *m, struct strbuf *out, const char *s)
{
	cleanup_free char *hidden = mask_text(m->mask, s);
	size_t n = strlen(hidden), shown = n < WIRE_TEXT_MAX ? n : WIRE_TEXT_MAX;

	strbuf_add_sanitised(out, hidden, shown);
	strbuf_adds(out, shown < n ? "…" : "");
}

/* "MEMBER is a string: write …". */
static int
wrong(const struct json *v, const char *write, struct err *e)
{
	if (json_is_integer(v))
		return err_set(
			e, ERR_BUG, 0, "%s is %lld: %s", v->key, (long long)v->integer, write);
	return err_set(e, ERR_BUG, 0, "%s is %s: %s", v->key, json_kind(v), write);
}

static int
read_integer(const struct json *o, const char *key, int64_t min, int64_t max, const char *write,
	int64_t *ret, struct err *e)
{
	const struct json *v = json_object_get(o, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || v->integer < min || v->integer > max)
		return wrong(v, write, e);
	*ret = v->integer;
	return 0;
}

/* Milliseconds, or bytes: any number that is not absurd. */
static int
read_number(const struct json *o, const char *key, double max, double *ret, struct err *e)
{
	const struct json *v = json_object_get(o, key);
	double d = -1;

	if (!v)
		return 0;
	if (json_is_integer(v))
		d = (double)v->integer;
	else if (json_is(v, JSON_REAL))
		d = strtod(v->text, NULL);
	if (!isfinite(d) || d < 0 || d > max) {
		if (json_is(v, JSON_REAL))
			return err_set(e, ERR_BUG, 0,
				"%s is %.40s: a number from 0 to %.0f is wanted", key, v->text,
				max);
		return err_set(e, ERR_BUG, 0, "%s is %s: a number from 0 to %.0f is wanted", key,
			json_is_integer(v) ? "out of bounds" : json_kind(v), max);
	}
	*ret = d;
	return 0;
}

static int
read_bool(const struct json *o, const char *key, bool *ret, struct err *e)
{
	const struct json *v = json_object_get(o, key);

	if (v && !json_is_boolean(v))
		return wrong(v, "true or false is wanted", e);
	*ret = json_is_true(v);
	return 0;
}

/* Without a NUL, and not empty. *ret is borrowed; untouched where it is not there. */
static int
read_text(const struct json *o, const char *key, const char **ret, struct err *e)
{
	const struct json *v = json_object_get(o, key);
	const char *s = json_c_string(v);

	if (!v)
		return 0;
	if (!s && json_is_string(v))
		return err_set(e, ERR_BUG, 0, "%s holds a NUL", key);
	if (!s)
		return wrong(v, "a string is wanted", e);
	if (!*s)
		return err_set(e, ERR_BUG, 0, "%s is empty", key);
	*ret = s;
	return 0;
}

static int
read_description(const struct json *o, struct wire_message *m, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	int64_t protocol = 0, capacity = 0;
	const char *name = NULL;

	if (read_integer(o, "protocol", WIRE_PROTOCOL, WIRE_PROTOCOL, "this vx speaks 1", &protocol,
		    e) ||
		read_text(o, "name", &name, e) || read_bool(o, "remote", &m->remote, e) ||
		read_integer(o, "capacity", 1, WIRE_CAPACITY_MAX,
			"a whole number from 1 to 10000 is wanted", &capacity, e))
		return -1;
	if (strlen(name) > WIRE_NAME_MAX || name[strspn(name, letters)])
		return err_set(e, ERR_BUG, 0,
			"name is not at most %d letters, digits, '_', '.' and '-'", WIRE_NAME_MAX);
	if (!strcmp(name, "local"))
		return err_set(e, ERR_BUG, 0, "name is 'local', which is that of vx itself");
	m->name = xstrdup(name);
	m->capacity = (unsigned)capacity;
	return 0;
}

static int
read_data(const struct json *o, struct wire_message *m, struct err *e)
{
	const struct json *v = json_object_get(o, "data");

	if (!json_is_string(v))
		return wrong(v, "a string in base64 is wanted", e);
	if (!base64_decode(v->text, v->len, &m->data))
		return err_set(e, ERR_BUG, 0, "data is no base64 (RFC 4648, padded)");
	return 0;
}

/* "read", "write", …: -1 for what is none. */
static int
operation_of(const char *name)
{
	static const enum denial_op ops[] = {DENIAL_READ, DENIAL_WRITE, DENIAL_DELETE, DENIAL_LIST,
		DENIAL_CONNECT, DENIAL_SOCKET};

	for (size_t i = 0; i < array_len(ops); i++)
		if (!strcmp(name, denial_op_name(ops[i])))
			return (int)ops[i];
	return -1;
}

static int
read_violation(const struct json *v, size_t i, struct exec_result *r, struct err *e)
{
	const char *operation = NULL, *path = NULL;
	struct err why = ERR_INIT;
	struct exec_denial d = {.class = DENIAL_FINDING};

	if (!json_is_object(v))
		return err_set(e, ERR_BUG, 0,
			"violations[%zu] is %s: an object with operation and path is wanted", i,
			json_kind(v));
	if (read_text(v, "operation", &operation, &why) || read_text(v, "path", &path, &why))
		return err_set(e, ERR_BUG, 0, "violations[%zu].%s", i, why.text);
	if (!operation || !path)
		return err_set(e, ERR_BUG, 0, "violations[%zu] has no %s", i,
			operation ? "path" : "operation");
	if (v->n > 2)
		return err_set(
			e, ERR_BUG, 0, "violations[%zu] has more than operation and path", i);
	d.op = operation_of(operation);
	if (d.op < 0)
		return err_set(e, ERR_BUG, 0,
			"violations[%zu].operation is none of read, write, delete, list, connect, "
			"socket",
			i);
	d.path = xstrdup(path);
	d.program = xstrdup("");
	d.cmdline = xstrdup("");
	d.grant = xstrdup("");
	denials_add_take(r, &d);
	return 0;
}

static int
read_violations(const struct json *o, struct exec_result *r, struct err *e)
{
	const struct json *v = json_object_get(o, "violations");

	if (v && !json_is_array(v))
		return wrong(v, "an array is wanted", e);
	for (size_t i = 0; i < json_array_size(v); i++)
		if (read_violation(&v->items[i], i, r, e))
			return -1;
	denials_sort(r);
	return 0;
}

/* Where the outputs are. Another place than this disk is for a later vx. */
static int
check_outputs(const struct json *o, const struct wire_message *m, struct err *e)
{
	const struct json *v = json_object_get(o, "outputs");
	const char *kind = NULL;
	struct err why = ERR_INIT;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return wrong(v, "an object is wanted", e);
	if (read_text(v, "kind", &kind, &why))
		return err_set(e, ERR_BUG, 0, "outputs.%s", why.text);
	if (!kind)
		return err_set(e, ERR_BUG, 0, "outputs has no kind");
	if (strcmp(kind, "disk") != 0) {
		cleanup_strbuf struct strbuf shown = STRBUF_INIT;

		add_quoted(m, &shown, kind);
		return err_set(e, ERR_BUG, 0, "outputs.kind is '%s': this vx knows only 'disk'",
			shown.buf);
	}
	if (v->n > 1)
		return err_set(e, ERR_BUG, 0, "outputs has more than a kind");
	return 0;
}

static int
read_result(const struct json *o, struct wire_message *m, struct err *e)
{
	const char *where = NULL;
	double ms = 0, cpu_ms = 0, bytes = 0;
	int64_t code = 0;

	if (read_integer(
		    o, "exitCode", 0, 255, "a whole number from 0 to 255 is wanted", &code, e) ||
		read_number(o, "durationMs", WIRE_DURATION_MAX_MS, &ms, e) ||
		read_number(o, "cpuMs", CPU_MAX_MS, &cpu_ms, e) ||
		read_number(o, "peakRssBytes", 1e18, &bytes, e) || check_outputs(o, m, e) ||
		read_text(o, "where", &where, e) || read_violations(o, &m->result, e))
		return -1;
	m->result.exit_code = (int)code;
	m->result.duration_ns = (uint64_t)(ms * 1e6);
	m->result.cpu_us = (uint64_t)(cpu_ms * 1e3);
	m->result.peak_rss_kb = (uint64_t)(bytes / 1024);
	if (where) {
		struct strbuf shown = STRBUF_INIT;

		add_quoted(m, &shown, where);
		m->where = strbuf_take(&shown);
	}
	return 0;
}

static int
read_failed(const struct json *o, struct wire_message *m, struct err *e)
{
	const char *text = NULL;

	if (read_text(o, "message", &text, e))
		return -1;
	add_quoted(m, &m->data, text);
	return 0;
}

/* Its type, its id, and whether its members are those of the type. */
static int
read_head(const struct json *o, struct wire_message *m, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;
	const char *type = NULL;
	int64_t id = 0;

	if (read_text(o, "type", &type, e) ||
		read_integer(o, "id", 1, INT64_MAX, "a whole number from 1 on is wanted", &id, e))
		return -1;
	m->id = (uint64_t)id;
	if (!type)
		return err_set(e, ERR_BUG, 0, "type is missing");
	for (size_t i = WIRE_DESCRIPTION; i < array_len(types); i++)
		if (!strcmp(type, types[i].name))
			m->type = (enum wire_type)i;
	if (m->type == WIRE_NONE) {
		add_quoted(m, &shown, type);
		return err_set(e, ERR_BUG, 0,
			"type is '%s', which is none of description, accepted, stdout, stderr, "
			"result, "
			"failed",
			shown.buf);
	}
	for (size_t i = 0; i < array_len(types[0].must) && types[m->type].must[i]; i++)
		if (!json_object_get(o, types[m->type].must[i]))
			return err_set(e, ERR_BUG, 0, "%s is missing", types[m->type].must[i]);
	for (size_t i = 0; i < o->n; i++) {
		const char *key = o->items[i].key;

		if (!strcmp(key, "type") ||
			is_among(key, types[m->type].must, array_len(types[0].must)) ||
			is_among(key, types[m->type].may, array_len(types[0].may)))
			continue;
		add_quoted(m, &shown, key);
		return err_set(e, ERR_BUG, 0, "'%s' is no member of it", shown.buf);
	}
	return 0;
}

static int
read_members(const struct json *o, struct wire_message *m, struct err *e)
{
	switch (m->type) {
	case WIRE_DESCRIPTION:
		return read_description(o, m, e);
	case WIRE_ACCEPTED:
		return read_bool(o, "accepts", &m->accepts, e);
	case WIRE_STDOUT:
	case WIRE_STDERR:
		return read_data(o, m, e);
	case WIRE_RESULT:
		return read_result(o, m, e);
	case WIRE_FAILED:
		return read_failed(o, m, e);
	case WIRE_NONE:
		break;
	}
	bug("a message without a type");
}

int
wire_read(
	const char *line, size_t n, const struct mask *mask, struct wire_message *m, struct err *e)
{
	struct json_doc doc = {0};
	struct err why = ERR_INIT;
	int r;

	*m = (struct wire_message){.mask = mask, .data = STRBUF_INIT};
	exec_result_init(&m->result);
	if (json_parse(line, n, "line", JSON_STRICT, &doc, &why))
		return err_set(e, ERR_BUG, 0, "a line is no JSON: %s", why.text);
	if (!json_is_object(doc.root)) {
		r = err_set(
			e, ERR_BUG, 0, "a line is %s: an object is wanted", json_kind(doc.root));
	} else {
		r = read_head(doc.root, m, &why) || read_members(doc.root, m, &why) ? -1 : 0;
		if (r)
			err_set(e, ERR_BUG, 0, "%s: %s",
				m->type ? types[m->type].name : "a message", why.text);
	}
	json_doc_release(&doc);
	return r;
}

void
wire_message_release(struct wire_message *m)
{
	free(m->name);
	free(m->where);
	strbuf_release(&m->data);
	exec_result_release(&m->result);
	*m = (struct wire_message){.data = STRBUF_INIT};
	exec_result_init(&m->result);
}

/* ------------------------------------------------------------------ what vx says */

/* A message that is being written: nothing of it counts once some text was no UTF-8. */
struct writer {
	struct strbuf *out;
	const char *bad; /* the member of the first that is none */
};

static void
add_name(struct writer *w, const char *name)
{
	char last = w->out->len ? w->out->buf[w->out->len - 1] : '{';

	strbuf_addf(w->out, "%s\"%s\":", last == '{' ? "" : ",", name);
}

static void
add_string(struct writer *w, const char *s, const char *name)
{
	size_t n = strlen(s);

	if (!w->bad && !utf8_is_valid(s, n))
		w->bad = name;
	json_add_string(s, n, w->out);
}

static void
add_text(struct writer *w, const char *name, const char *s)
{
	add_name(w, name);
	add_string(w, s, name);
}

static void
add_bool(struct writer *w, const char *name, bool v)
{
	add_name(w, name);
	strbuf_adds(w->out, v ? "true" : "false");
}

static void
add_number(struct writer *w, const char *name, uint64_t v)
{
	add_name(w, name);
	strbuf_addu(w->out, v);
}

static struct writer
begin(struct strbuf *out, const char *type, uint64_t id)
{
	struct writer w = {out, NULL};

	strbuf_addf(out, "{\"type\":\"%s\"", type);
	if (id)
		add_number(&w, "id", id);
	return w;
}

/* `mark`: where the line began. */
static int
end(struct writer *w, size_t mark, const char *task, struct err *e)
{
	strbuf_adds(w->out, "}\n");
	if (!w->bad)
		return 0;
	strbuf_truncate(w->out, mark);
	return err_set(e, ERR_CONFIG, 0, "%s cannot be handed to an executor: its %s is no UTF-8",
		task, w->bad);
}

void
wire_add_describe(struct strbuf *out)
{
	struct writer w = begin(out, "describe", 0);

	add_number(&w, "protocol", WIRE_PROTOCOL);
	strbuf_adds(out, "}\n");
}

int
wire_add_accepts(struct strbuf *out, uint64_t id, const struct exec_view *v, struct err *e)
{
	size_t mark = out->len;
	struct writer w = begin(out, "accepts", id);

	add_text(&w, "taskId", v->task_id);
	add_text(&w, "projectName", v->project_name);
	add_text(&w, "projectDir", v->project_dir);
	add_text(&w, "command", v->command);
	add_bool(&w, "pinnedLocal", v->pinned_local);
	add_bool(&w, "cacheable", v->cacheable);
	return end(&w, mark, v->task_id, e);
}

static void
add_variables(struct writer *w, const struct strvec *env)
{
	add_name(w, "env");
	strbuf_addch(w->out, '{');
	for (size_t i = 0; i < env->n; i++) {
		const char *value = strchr(env->v[i], '=');
		cleanup_free char *name = xmemdupz(env->v[i], (size_t)(value - env->v[i]));

		strbuf_adds(w->out, i ? "," : "");
		add_string(w, name, "env");
		strbuf_addch(w->out, ':');
		add_string(w, value + 1, "env");
	}
	strbuf_addch(w->out, '}');
}

static void
add_defined(struct writer *w, const struct taskdef *def)
{
	add_name(w, "envDefine");
	strbuf_addch(w->out, '{');
	for (size_t i = 0; i < def->ndefine; i++) {
		strbuf_adds(w->out, i ? "," : "");
		add_string(w, def->define[i].name, "envDefine");
		strbuf_addch(w->out, ':');
		add_string(w, def->define[i].value, "envDefine");
	}
	strbuf_addch(w->out, '}');
}

/* Of one of the two lists, what is selected, then what is taken back. */
static void
add_globs(struct writer *w, const char *name, const struct cachedef *c, bool workspace)
{
	bool first = true;

	add_name(w, name);
	strbuf_addch(w->out, '[');
	for (size_t i = 0; c && i < c->outputs.npos + c->outputs.nneg; i++) {
		bool back = i >= c->outputs.npos;
		const struct glob *g =
			back ? c->outputs.neg[i - c->outputs.npos] : c->outputs.pos[i];
		cleanup_free char *text = NULL;

		if (glob_is_workspace(g) != workspace)
			continue;
		text = xasprintf("%s%s", back ? "!" : "", glob_text(g));
		strbuf_adds(w->out, first ? "" : ",");
		add_string(w, text, "outputs");
		first = false;
	}
	strbuf_addch(w->out, ']');
}

int
wire_add_execute(struct strbuf *out, uint64_t id, const struct exec_request *rq, struct err *e)
{
	const struct taskdef *def = rq->handed->def;
	size_t mark = out->len;
	struct writer w = begin(out, "execute", id);

	add_text(&w, "taskId", rq->id);
	add_text(&w, "workspaceRoot", rq->handed->root);
	add_text(&w, "cwd", rq->handed->cwd);
	add_text(&w, "command", rq->command);
	add_name(&w, "forwardArgs");
	strbuf_addch(out, '[');
	for (size_t i = 0; i < rq->handed->nforward; i++) {
		strbuf_adds(out, i ? "," : "");
		add_string(&w, rq->handed->forward[i], "forwardArgs");
	}
	strbuf_addch(out, ']');
	add_variables(&w, rq->env);
	add_defined(&w, def);
	add_name(&w, "outputs");
	strbuf_addch(out, '{');
	add_globs(&w, "files", def->cache, false);
	add_globs(&w, "workspaceFiles", def->cache, true);
	strbuf_addch(out, '}');
	if (rq->timeout_ms)
		add_number(&w, "timeoutMs", rq->timeout_ms);
	if (rq->handed->cache_key)
		add_text(&w, "cacheKey", rq->handed->cache_key);
	add_bool(&w, "refresh", rq->handed->refresh);
	add_bool(&w, "remoteOnly", def->remote == REMOTE_ONLY);
	return end(&w, mark, rq->id, e);
}

void
wire_add_cancel(struct strbuf *out, uint64_t id, int sig)
{
	const char *name = proc_signal_name(sig);
	struct writer w = begin(out, "cancel", id);

	add_text(&w, "signal", name ? name : "SIGTERM");
	strbuf_adds(out, "}\n");
}

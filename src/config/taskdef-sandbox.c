/* SPDX-License-Identifier: MIT */
/*
 * exec.sandbox of a task: what it grants, denies and ignores, and what kind of view it is.
 */
#include "config/fields.h"
#include "config/taskdef-private.h"
#include "config/taskdef.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"

static const struct shape grants_shape = {.schema =
						  "'type': 'array', 'items': { "
						  "'type': 'string', 'pattern': '^(?!!|~[^/])' }"};
static const struct shape sockets_shape = {.schema =
						   "'type': ['boolean', 'array'], 'items': { "
						   "'type': 'string', 'pattern': '^(?!!|~[^/])' }"};
static const struct shape view_shape = {.schema = "'enum': ['transaction', 'live']"};

static const struct field allow_fields[] = {
	{"gitConfig", FIELD_HERE,
		"Where allow.write grants a .git, its config may be written, too.",
		&field_bool_shape},
	{"read", FIELD_HERE, "Patterns, from the project, or paths (/…, ~/…) that may be read.",
		&grants_shape},
	{"unixSockets", FIELD_HERE,
		"true: the task may use Unix sockets. Paths: of those of the host only these.",
		&sockets_shape},
	{"write", FIELD_HERE,
		"Patterns, from the project, or paths (/…, ~/…) that may be written, and read.",
		&grants_shape},
	{"network", FIELD_LATER, NULL, NULL},
	{"localBinding", FIELD_IGNORED, "For another system: without effect here.",
		&field_bool_shape},
	{"machLookup", FIELD_IGNORED, "For another system: without effect here.",
		&field_texts_shape},
	{"pty", FIELD_IGNORED, "For another system: without effect here.", &field_bool_shape},
	{"systemInfo", FIELD_IGNORED, "For another system: without effect here.",
		&field_texts_shape},
};
static const struct shape allow_shape = {.schema = "'type': 'object'", FIELDS(allow_fields)};

static const struct field deny_fields[] = {
	{"read", FIELD_HERE, "Patterns or paths that may not be read.", &grants_shape},
	{"write", FIELD_HERE, "Patterns or paths that may not be written.", &grants_shape},
	{"network", FIELD_LATER, NULL, NULL},
};
static const struct shape deny_shape = {.schema = "'type': 'object'", FIELDS(deny_fields)};

static const struct field ignore_fields[] = {
	{"read", FIELD_HERE, "Patterns or paths whose denied reads are nobody's business.",
		&grants_shape},
	{"write", FIELD_HERE,
		"Patterns or paths: what is written there, and not granted, is thrown away.",
		&grants_shape},
	{"network", FIELD_IGNORED, "Without effect yet.", &field_texts_shape},
	{"systemInfo", FIELD_IGNORED, "For another system: without effect here.",
		&field_texts_shape},
};
static const struct shape ignore_shape = {.schema = "'type': 'object'", FIELDS(ignore_fields)};

static const struct field sandbox_fields[] = {
	{"allow", FIELD_HERE, "What the task may do.", &allow_shape},
	{"deny", FIELD_HERE,
		"What it may not, in what is allowed. Of two rules the longer literal path "
		"decides, of equals deny.",
		&deny_shape},
	{"hermetic", FIELD_HERE,
		"The home directory is empty, and of the rest of the machine only the system is "
		"visible.",
		&field_bool_shape},
	{"ignore", FIELD_HERE, "What is denied and is no finding.", &ignore_shape},
	{"nested", FIELD_HERE,
		"The task may make namespaces of its own, as vx, bwrap and browsers do.",
		&field_bool_shape},
	{"view", FIELD_HERE,
		"transaction: what the task writes is put in the workspace at its end. live: it "
		"stands at once, and nothing can be cached.",
		&view_shape},
	{"weakerWhenNested", FIELD_HERE,
		"Where the kernel refuses a /proc of its own, the task gets an empty one instead "
		"of failing.",
		&field_bool_shape},
	{"weakerNetworkIsolation", FIELD_IGNORED, "For another system: without effect here.",
		&field_bool_shape},
	{"network", FIELD_FOREIGN, "belongs in 'allow': write allow.network", NULL},
	{"gitConfig", FIELD_FOREIGN, "belongs in 'allow': write allow.gitConfig", NULL},
	{"pty", FIELD_FOREIGN, "belongs in 'allow': write allow.pty", NULL},
	{"read", FIELD_FOREIGN, "belongs in 'allow': write allow.read", NULL},
	{"unixSockets", FIELD_FOREIGN, "belongs in 'allow': write allow.unixSockets", NULL},
	{"write", FIELD_FOREIGN, "belongs in 'allow': write allow.write", NULL},
};
const struct shape sandboxdef_shape = {.schema = "'type': 'object'", FIELDS(sandbox_fields)};

/* Those without a meaning here, which a config for another system has all the same. */
static const char *const ignored_booleans[] = {"pty", "localBinding"};
static const char *const ignored_lists[] = {"machLookup", "systemInfo", "network"};

struct grants {
	struct grant *v;
	size_t n;
	size_t cap;
};

static void
add_grant(struct grants *to, struct grant g)
{
	GROW(to->v, to->n + 1, to->cap);
	to->v[to->n++] = g;
}

/* Whether a component, of a brace's arm too, is "..". */
static bool
has_dotdot(const char *s)
{
	for (size_t i = 0; s[i]; i++)
		if (s[i] == '.' && s[i + 1] == '.' && (!i || strchr("/{,", s[i - 1])) &&
			strchr("/},", s[i + 2])) /* or the end */
			return true;
	return false;
}

/* "/…" and "~/…": the rest is read in the same grammar, but holds no wildcards. */
static int
parse_absolute(const struct json_at *at, const char *text, struct arena *a, struct grants *to,
	struct err *e)
{
	static const char *const tails[] = {"/**/*", "/**"};
	size_t n = strlen(text);
	const char *rest;
	struct err why = ERR_INIT;
	struct glob *g;

	for (size_t i = 0; i < array_len(tails); i++)
		if (n >= strlen(tails[i]) && !strcmp(text + n - strlen(tails[i]), tails[i])) {
			n -= strlen(tails[i]);
			break;
		}
	rest = arena_memdupz(a, text, n);
	rest += *rest == '~';
	rest += strspn(rest, "/");
	if (has_dotdot(rest))
		return json_error(at, e, "'%s': write the path without '..'", text);
	/* Nothing left: the root or the home itself. No name in it means more for being the first. */
	if (glob_parse(a, "", arena_printf(a, "./%s", rest), GLOB_GRANT, &g, &why) < 0)
		return json_error(at, e, "%s", why.text);
	if (!glob_is_literal(g))
		return json_error(at, e,
			"'%s': wildcards in absolute paths are not in this vx yet: write the "
			"directory, or, of what is in the workspace, the path from the project",
			text);
	for (size_t i = 0; i < glob_nalternatives(g); i++) {
		const char *head = glob_literal_head(g, i);
		const char *absolute = text[0] == '/'
					       ? arena_printf(a, "/%s", head)
					       : arena_printf(a, *head ? "~/%s" : "~%s", head);

		add_grant(to, (struct grant){text, NULL, absolute});
	}
	return 0;
}

static int
parse_grant(const struct json_at *at, const char *text, const char *dir, struct arena *a,
	struct grants *to, struct err *e)
{
	struct grant g = {text, NULL, NULL};
	struct err why = ERR_INIT;

	if (*text == '!' && text[1] != '(')
		return json_error(
			at, e, "'%s': grants have no '!' entries: write it in 'deny'", text);
	if (*text == '~' && text[1] && text[1] != '/')
		return json_error(at, e,
			"'%s': write '~/…' for the home directory, './~…' for a name "
			"that begins with '~'",
			text);
	if (*text == '/' || *text == '~')
		return parse_absolute(at, text, a, to, e);
	if (glob_parse(a, dir, text, GLOB_GRANT, &g.glob, &why) < 0)
		return json_error(at, e, "%s", why.text);
	add_grant(to, g);
	return 0;
}

static int
parse_grants(const struct json_at *up, const json_t *object, const char *key, const char *dir,
	struct arena *a, struct grant **ret, size_t *ret_n, struct err *e)
{
	struct json_at at;
	const json_t *value = json_member(object, up, key, &at);
	struct grants list = {0};
	const char **texts;
	size_t n;
	int r = 0;

	if (!value)
		return 0;
	if (field_strings(&at, value, a, NULL, &texts, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n && !r; i++) {
		struct json_at here = {at.doc, &at, NULL, i};

		r = parse_grant(&here, texts[i], dir, a, &list, e);
	}
	if (!r) {
		*ret = arena_array(a, list.n, struct grant);
		if (list.n)
			memcpy(*ret, list.v, list.n * sizeof(**ret));
		*ret_n = list.n;
	}
	free(list.v);
	return r;
}

static int
read_bool(const struct json_at *up, const json_t *object, const char *key, bool *ret, struct err *e)
{
	struct json_at at;
	const json_t *value = json_member(object, up, key, &at);

	return value ? field_bool(&at, value, ret, e) : 0;
}

static int
check_ignored(const struct json_at *up, const json_t *object, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < array_len(ignored_booleans); i++) {
		bool value;

		if (read_bool(up, object, ignored_booleans[i], &value, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < array_len(ignored_lists); i++) {
		struct json_at at;
		const json_t *value = json_member(object, up, ignored_lists[i], &at);
		const char **texts;
		size_t n;

		if (value && field_strings(&at, value, a, NULL, &texts, &n, e) < 0)
			return -1;
	}
	return 0;
}

/* true, false, or the sockets. */
static int
parse_sockets(const struct json_at *up, const json_t *allow, const char *dir, struct arena *a,
	struct sandboxdef *s, struct err *e)
{
	struct json_at at;
	const json_t *value = json_member(allow, up, "unixSockets", &at);

	if (!value)
		return 0;
	if (json_is_boolean(value)) {
		s->any_socket = json_is_true(value);
		return 0;
	}
	if (!json_is_array(value))
		return json_error(
			&at, e, "is %s: write true, or the paths of the sockets", json_kind(value));
	if (parse_grants(up, allow, "unixSockets", dir, a, &s->sockets, &s->nsockets, e) < 0)
		return -1;
	for (size_t i = 0; i < s->nsockets; i++)
		if (s->sockets[i].glob && !glob_is_literal(s->sockets[i].glob))
			return json_error(&at, e, "'%s': write the path of each socket, no pattern",
				s->sockets[i].text);
	return 0;
}

static int
parse_allow(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct sandboxdef *s, struct err *e)
{
	struct json_at ports_at;
	const json_t *ports;

	if (fields_check(at, value, &allow_shape, NULL, e) < 0)
		return -1;
	/* As a boolean it says nothing on Linux; ports would have to be opened. */
	ports = json_member(value, at, "localBinding", &ports_at);
	if (json_is_array(ports))
		return json_error(&ports_at, e, "a list of ports is not in this vx yet");
	if (check_ignored(at, value, a, e) < 0 ||
		read_bool(at, value, "gitConfig", &s->git_config, e) < 0 ||
		parse_sockets(at, value, dir, a, s, e) < 0 ||
		parse_grants(at, value, "read", dir, a, &s->allow_read, &s->nallow_read, e) < 0)
		return -1;
	return parse_grants(at, value, "write", dir, a, &s->allow_write, &s->nallow_write, e);
}

static int
parse_deny(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct sandboxdef *s, struct err *e)
{
	if (fields_check(at, value, &deny_shape, NULL, e) < 0 ||
		parse_grants(at, value, "read", dir, a, &s->deny_read, &s->ndeny_read, e) < 0)
		return -1;
	return parse_grants(at, value, "write", dir, a, &s->deny_write, &s->ndeny_write, e);
}

static int
parse_ignore(const struct json_at *at, const json_t *value, const char *dir, struct arena *a,
	struct sandboxdef *s, struct err *e)
{
	if (fields_check(at, value, &ignore_shape, NULL, e) < 0 ||
		check_ignored(at, value, a, e) < 0 ||
		parse_grants(at, value, "read", dir, a, &s->ignore_read, &s->nignore_read, e) < 0)
		return -1;
	return parse_grants(at, value, "write", dir, a, &s->ignore_write, &s->nignore_write, e);
}

static int
parse_view(const struct json_at *at, const json_t *value, bool persistent, struct sandboxdef *s,
	struct err *e)
{
	static const char *const names[] = {"transaction", "live"};
	const char *word = json_c_string(value), *nearest;

	if (!word)
		return json_error(
			at, e, "is %s: write \"transaction\" or \"live\"", json_kind(value));
	s->live = !strcmp(word, names[1]);
	if (s->live)
		return 0;
	if (strcmp(word, names[0]) != 0) {
		nearest = nearest_name(word, names, array_len(names));
		return json_error(at, e, "'%s': write \"transaction\" or \"live\"%s%s%s", word,
			nearest ? ", did you mean '" : "", nearest ? nearest : "",
			nearest ? "'?" : "");
	}
	if (persistent)
		return json_error(at, e,
			"a persistent task has no end at which a transaction could be put in the "
			"workspace, and would not see what comes meanwhile: leave it out, or write "
			"\"live\"");
	return 0;
}

int
sandboxdef_parse(const struct json_at *at, const json_t *value, const char *dir, bool persistent,
	struct arena *a, struct sandboxdef **ret, struct err *e)
{
	struct sandboxdef *s = arena_new(a, struct sandboxdef);
	const char *shape = json_is_true(value)    ? "write {}, which grants nothing, and add to it"
			    : json_is_false(value) ? "leave it out"
						   : NULL;
	struct json_at here;
	const json_t *v;
	bool ignored;

	if (fields_check(at, value, &sandboxdef_shape, shape, e) < 0)
		return -1;
	s->live = persistent;
	if (read_bool(at, value, "weakerNetworkIsolation", &ignored, e) < 0 ||
		read_bool(at, value, "hermetic", &s->hermetic, e) < 0 ||
		read_bool(at, value, "nested", &s->nested, e) < 0 ||
		read_bool(at, value, "weakerWhenNested", &s->weaker_when_nested, e) < 0)
		return -1;
	v = json_member(value, at, "allow", &here);
	if (v && parse_allow(&here, v, dir, a, s, e) < 0)
		return -1;
	v = json_member(value, at, "deny", &here);
	if (v && parse_deny(&here, v, dir, a, s, e) < 0)
		return -1;
	v = json_member(value, at, "ignore", &here);
	if (v && parse_ignore(&here, v, dir, a, s, e) < 0)
		return -1;
	v = json_member(value, at, "view", &here);
	if (v && parse_view(&here, v, persistent, s, e) < 0)
		return -1;
	*ret = s;
	return 0;
}

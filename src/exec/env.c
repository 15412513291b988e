/* SPDX-License-Identifier: MIT */
#include "exec/env.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* What every task sees of vx's own environment; none of it is in a key. */
static const char *const essentials[] = {"PATH", "HOME", "SHELL", "USER", "LOGNAME", "TMPDIR",
	"TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "FORCE_COLOR", "NO_COLOR",
	"CI", "NODE_OPTIONS", "COREPACK_HOME", "PNPM_HOME"};

/* A sandboxed task writes to a /tmp of its own, and to no other place that these may name. */
static const char *const temporary[] = {"TMPDIR", "TEMP", "TMP"};

/* Where vx was started without a PATH, what a shell would take. */
static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

static void
copy_if_set(struct strvec *env, char *const *base, const char *name)
{
	size_t n = strlen(name);

	for (; *base; base++) {
		if (!strncmp(*base, name, n) && (*base)[n] == '=') {
			strvec_setenv(env, name, *base + n + 1);
			return;
		}
	}
}

static bool
is_temporary(const char *name)
{
	for (size_t i = 0; i < array_len(temporary); i++)
		if (!strcmp(name, temporary[i]))
			return true;
	return false;
}

bool
env_has(const struct taskdef *t, const char *name)
{
	bool has = false;

	for (size_t i = 0; i < array_len(essentials) && !has; i++)
		has = !strcmp(essentials[i], name);
	for (size_t i = 0; i < t->npass_through && !has; i++)
		has = !strcmp(t->pass_through[i], name);
	for (size_t i = 0; i < t->ndefine && !has; i++)
		has = !strcmp(t->define[i].name, name);
	return has;
}

/* An entry that holds a ':' cannot be spelled in PATH: left out. */
static void
add_bin(struct strbuf *path, const char *dir)
{
	if (!strchr(dir, ':'))
		strbuf_addf(path, "%s/node_modules/.bin:", dir);
}

static void
set_path(struct strvec *env, const char *root_path, const char *dir)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_free char *project = path_join(root_path, dir);
	const char *old = strvec_getenv(env, "PATH");

	add_bin(&path, project);
	if (*dir)
		add_bin(&path, root_path);
	strbuf_adds(&path, old ? old : default_path);
	strvec_setenv(env, "PATH", path.buf);
}

void
env_build(const char *root_path, const struct project *p, const struct taskdef *t,
	const char *task_id, bool sandboxed, char *const *base, struct strvec *ret)
{
	const char *no_color;

	for (size_t i = 0; i < array_len(essentials); i++)
		if (!sandboxed || !is_temporary(essentials[i]))
			copy_if_set(ret, base, essentials[i]);
	for (size_t i = 0; i < t->npass_through; i++)
		if (!sandboxed || !is_temporary(t->pass_through[i]))
			copy_if_set(ret, base, t->pass_through[i]);
	if (sandboxed)
		strvec_setenv(ret, "TMPDIR", "/tmp");
	for (size_t i = 0; i < t->ndefine; i++)
		strvec_setenv(ret, t->define[i].name, t->define[i].value);
	set_path(ret, root_path, p->dir);
	no_color = strvec_getenv(ret, "NO_COLOR");
	if (!strvec_getenv(ret, "FORCE_COLOR") && !(no_color && *no_color))
		strvec_setenv(ret, "FORCE_COLOR", "1");
	strvec_setenv(ret, "VX_RUN_WORKSPACE", root_path);
	strvec_setenv(ret, "VX_RUN_TASK", task_id);
}

void
env_build_probe(const char *root_path, const char *dir, char *const *base, struct strvec *ret)
{
	static const char task[] = "VX_RUN_TASK=";

	for (; *base; base++)
		if (strncmp(*base, task, sizeof(task) - 1) != 0)
			strvec_push(ret, *base);
	set_path(ret, root_path, dir);
	strvec_setenv(ret, "VX_RUN_WORKSPACE", root_path);
}

/* Forwarded arguments. */

static void
add_quoted(struct strbuf *out, const char *arg)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_@%+=:,./-";

	if (*arg && !arg[strspn(arg, safe)]) {
		strbuf_adds(out, arg);
		return;
	}
	strbuf_addch(out, '\'');
	for (; *arg; arg++) {
		if (*arg == '\'')
			strbuf_adds(out, "'\\''");
		else
			strbuf_addch(out, *arg);
	}
	strbuf_addch(out, '\'');
}

/* A here-document whose body is still to come. */
struct heredoc {
	struct strbuf end; /* the line that ends it */
	bool tabs;         /* <<-: leading tabs do not count */
};

struct heredocs {
	struct heredoc v[8]; /* of one line; more are not looked for */
	size_t n;
};

/* s is behind "<<". Returns where the word of the delimiter ends. */
static const char *
read_delimiter(const char *s, struct heredoc *ret)
{
	char quote = 0;

	strbuf_init(&ret->end);
	ret->tabs = *s == '-';
	s += ret->tabs;
	s += strspn(s, " \t");
	for (; *s && (quote || !strchr(" \t\n;&|()<>", *s)); s++) {
		if (quote ? *s == quote : *s == '\'' || *s == '"')
			quote = quote ? 0 : *s;
		else if (*s != '\\' || quote == '\'')
			strbuf_addch(&ret->end, *s);
	}
	return s;
}

/* s is at the start of the bodies. Returns what follows them. */
static const char *
skip_bodies(const char *s, struct heredocs *h)
{
	for (size_t i = 0; i < h->n; i++) {
		bool ended = false;

		while (*s && !ended) {
			size_t n = strcspn(s, "\n");
			size_t tabs = h->v[i].tabs ? strspn(s, "\t") : 0;

			ended = n - tabs == h->v[i].end.len &&
				!memcmp(s + tabs, h->v[i].end.buf, n - tabs);
			s += n;
			s += *s == '\n';
		}
		strbuf_release(&h->v[i].end);
	}
	h->n = 0;
	return s;
}

static const char *skip_quoted(const char *s);

/* Behind the "$(…)", "$((…))" or "${…}" that starts at s. */
static const char *
skip_substitution(const char *s)
{
	char open = s[1], close = open == '(' ? ')' : '}';
	size_t depth = 0;

	for (s++; *s;) {
		if (*s == '\\' && s[1]) {
			s += 2;
		} else if (strchr("'\"`", *s)) {
			s = skip_quoted(s);
		} else if (*s == '$' && (s[1] == '(' || s[1] == '{')) {
			s = skip_substitution(s);
		} else {
			depth += *s == open;
			depth -= *s == close;
			s++;
			if (!depth)
				break;
		}
	}
	return s;
}

/* Behind the quoted part that starts at s. */
static const char *
skip_quoted(const char *s)
{
	char quote = *s++;

	while (*s && *s != quote) {
		if (quote != '\'' && *s == '\\' && s[1])
			s += 2;
		else if (quote == '"' && *s == '$' && (s[1] == '(' || s[1] == '{'))
			s = skip_substitution(s);
		else
			s++;
	}
	return *s ? s + 1 : s;
}

/*
 * The end of the last piece of the command that a shell would run: not a blank, not a comment, not
 * the body of a here-document. What is appended there belongs to the last command.
 */
static size_t
end_of_code(const char *command)
{
	struct heredocs h = {.n = 0};
	const char *s = command, *end = command;
	bool word_start = true;

	while (*s) {
		if (*s == '#' && word_start) {
			s += strcspn(s, "\n");
			continue;
		}
		if (*s == '\n' && h.n) {
			s = skip_bodies(s + 1, &h);
			continue;
		}
		if (strchr(" \t\n", *s)) {
			word_start = true;
			s++;
			continue;
		}
		word_start = strchr(";&|()<>", *s) != NULL;
		if (*s == '\\' && s[1]) {
			s += 2;
		} else if (*s == '\'' || *s == '"' || *s == '`') {
			s = skip_quoted(s);
		} else if (*s == '$' && (s[1] == '(' || s[1] == '{')) {
			s = skip_substitution(s);
		} else if (!strncmp(s, "<<<", 3)) {
			s += 3;
		} else if (!strncmp(s, "<<", 2) && h.n < array_len(h.v)) {
			s = read_delimiter(s + 2, &h.v[h.n++]);
		} else {
			s++;
		}
		end = s;
	}
	skip_bodies(s, &h);
	return (size_t)(end - command);
}

char *
env_command(const char *command, const char *const *args, size_t nargs)
{
	struct strbuf out = STRBUF_INIT;
	size_t end = end_of_code(command);
	const char *rest = command + end;

	if (!nargs)
		return xstrdup(command);
	strbuf_add(&out, command, end);
	for (size_t i = 0; i < nargs; i++) {
		strbuf_addch(&out, ' ');
		add_quoted(&out, args[i]);
	}
	if (rest[strspn(rest, " \t\n")])
		strbuf_adds(&out, rest);
	return strbuf_take(&out);
}

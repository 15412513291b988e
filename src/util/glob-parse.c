/* SPDX-License-Identifier: MIT */
/*
 * A pattern as written to rows of components: first one scan that refuses what is not in the
 * grammar, then the braces, then each alternative, taken apart at '/' and joined to its base.
 */
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/glob-private.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"

enum {
	BRACE_DEPTH_MAX = 16
};

static const char escapable[] = "[]{}()!\\*?,";

struct parser {
	struct arena *arena;
	const char *base;
	const char *pattern;
	unsigned flags;
	struct err *e;
};

static int attr_printf(2, 3) refuse(const struct parser *p, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	size_t n = strlen(p->pattern);
	va_list ap;

	strbuf_add_sanitised(&name, p->pattern, n < 200 ? n : 200);
	if (n > 200)
		strbuf_adds(&name, "…");
	va_start(ap, fmt);
	strbuf_vaddf(&why, fmt, ap);
	va_end(ap);
	return err_set(p->e, ERR_CONFIG, 0, "'%s': %s", name.buf, why.buf);
}

static const char in_workspace[] = "list it in workspaceFiles, from the workspace root";
static const char in_project[] = "paths here start at the project, leave it out";

/* What other runners write in such lists, and what vx has for it. */
static const struct {
	const char *word;
	const char *instead;
} placeholders[] = {
	{"$TURBO_DEFAULT$", "write '**' for all files of the project"},
	{"$TURBO_ROOT$", in_workspace},
	{"{projectRoot}", in_project},
	{"{workspaceRoot}", in_workspace},
	{"{projectName}", "write the project's name"},
	{"{options.", "write the path"},
	{"$projectRoot", in_project},
	{"$workspaceRoot", in_workspace},
};
static const char *const file_groups[] = {"@group(", "@globs(", "@files(", "@dirs(", "@root("};

static int
refuse_foreign(const struct parser *p)
{
	if (!strchr("$@{^", *p->pattern))
		return 0;
	for (size_t i = 0; i < array_len(placeholders); i++) {
		const char *word = placeholders[i].word, *instead = placeholders[i].instead;

		if (strncmp(p->pattern, word, strlen(word)) != 0)
			continue;
		return refuse(p, "vx has no '%s%s': %s", word,
			word[strlen(word) - 1] == '.' ? "…}" : "", instead);
	}
	for (size_t i = 0; i < array_len(file_groups); i++)
		if (!strncmp(p->pattern, file_groups[i], strlen(file_groups[i])))
			return refuse(p, "vx has no file groups: write the patterns themselves");
	if (*p->pattern == '^' && (p->flags & GLOB_OUTPUT))
		return refuse(p, "a name that begins with '^' is written './^…'");
	if (*p->pattern == '^')
		return refuse(p,
			"'^' belongs to dependsOn: a task that depends on '^build' already "
			"counts what those builds read (for a name that begins with '^' write "
			"'./^…')");
	return 0;
}

static int
refuse_escape(const struct parser *p, const char *s)
{
	if (!s[1])
		return refuse(p, "ends in a '\\' that escapes nothing");
	if (s[1] && strchr(escapable, s[1]))
		return 0;
	return refuse(p, "write '/' between names; '\\' only escapes one of %s", escapable);
}

/* Escapes, braces and extended globs, over the whole text. */
static int
scan(const struct parser *p)
{
	size_t commas[BRACE_DEPTH_MAX];
	size_t depth = 0;

	for (const char *s = p->pattern; *s; s++) {
		if (*s == '\\') {
			if (refuse_escape(p, s) < 0)
				return -1;
			s++;
		} else if (*s == '{') {
			if (depth == BRACE_DEPTH_MAX)
				return refuse(
					p, "braces are nested more than %d deep", BRACE_DEPTH_MAX);
			commas[depth++] = 0;
		} else if (*s == '}') {
			if (!depth)
				return refuse(p, "'}' without '{': write '\\}' for the character");
			if (!commas[--depth])
				return refuse(p,
					"braces with one alternative: leave them out, or write "
					"'\\{' and '\\}' for the characters");
		} else if (*s == ',' && depth) {
			commas[depth - 1]++;
		} else if (s[1] == '(' && strchr("!?+*@", *s)) {
			return refuse(p,
				"extended globs are not part of the grammar: write {a,b} for "
				"alternatives and a '!' entry for exceptions, or '\\(' for the "
				"character");
		}
	}
	if (depth)
		return refuse(p, "'{' without '}': write '\\{' for the character");
	return 0;
}

/* The first unescaped '{' at s, or NULL. */
static const char *
find_brace(const char *s)
{
	for (; *s; s++) {
		if (*s == '{')
			return s;
		if (*s == '\\')
			s++;
	}
	return NULL;
}

/* Puts text with its first pair of braces replaced by each arm onto `stack`, the last arm first. */
static void
push_arms(const char *text, const char *open, struct strvec *stack)
{
	cleanup_strvec struct strvec arms = STRVEC_INIT;
	const char *start = open + 1, *s = start;
	size_t depth = 1;

	for (; depth; s++) {
		if (*s == '\\') {
			s++;
			continue;
		}
		depth += *s == '{';
		depth -= *s == '}';
		if (!depth || (depth == 1 && *s == ',')) {
			strvec_push_take(&arms, xmemdupz(start, (size_t)(s - start)));
			start = s + 1;
		}
	}
	for (size_t i = arms.n; i-- > 0;)
		strvec_pushf(stack, "%.*s%s%s", (int)(open - text), text, arms.v[i], s);
}

/* The texts that the braces stand for, in their order. */
static int
expand(const struct parser *p, struct strvec *ret)
{
	cleanup_strvec struct strvec stack = STRVEC_INIT;

	strvec_push(&stack, p->pattern);
	while (stack.n) {
		char *text = stack.v[--stack.n];
		const char *open = find_brace(text);

		stack.v[stack.n] = NULL;
		if (!open) {
			strvec_push_take(ret, text);
			continue;
		}
		push_arms(text, open, &stack);
		free(text);
		if (stack.n + ret->n > GLOB_ALTERNATIVES_MAX)
			return refuse(p, "the braces stand for more than %d patterns",
				GLOB_ALTERNATIVES_MAX);
	}
	return 0;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What an alternative may not begin with. */
static int
refuse_start(const struct parser *p, const char *s)
{
	if (!*s)
		return refuse(p, *p->pattern ? "an alternative is empty" : "a pattern is empty");
	if (*s == '/' && (p->flags & GLOB_MEMBER))
		return refuse(p,
			"an absolute path: write it from the workspace's root, the directory of "
			"vx.workspace.json (for a project outside of it move that file up)");
	if (*s == '/' && (p->flags & GLOB_GRANT))
		return refuse(p, "an absolute path is an entry of its own, without braces");
	if (*s == '/')
		return refuse(p, "absolute paths are not allowed: paths start at the %s",
			*p->base ? "project's directory" : "workspace root");
	if (is_letter(s[0]) && s[1] == ':' && (!s[2] || s[2] == '/' || s[2] == '\\'))
		return refuse(p, "a drive letter is not allowed: paths are relative, with '/'");
	if (*s == '~' && (!s[1] || s[1] == '/'))
		return refuse(p, "'~' has no meaning here (for a name that is '~' write './~')");
	if (*s == '$')
		return refuse(p,
			"no variables are put in: write the path itself (for a name that begins "
			"with '$' write './$…')");
	if (*s == '!')
		return refuse(p,
			"only one '!', in front of the entry, takes back: write '\\!' for a name "
			"that begins with '!'");
	return 0;
}

/* ".." where it is refused: what to write can be said when the place is inside the workspace. */
static int
refuse_dotdot(const struct parser *p)
{
	if (p->flags & GLOB_MEMBER)
		return refuse(p,
			"leaves the workspace's root, the directory of vx.workspace.json: move "
			"that "
			"file up to a directory that holds all projects, or leave the entry out");
	if (p->flags & GLOB_GRANT)
		return refuse(p, "leaves the workspace: write its absolute path");
	if (*p->base)
		return refuse(p,
			"'..' leaves the project: list it in workspaceFiles, from the workspace "
			"root");
	return refuse(p, "'..' leaves the workspace");
}

/* A `*` may not stop inside a character, nor `?` take a part of one. */
static bool
is_utf8(const char *s, size_t n)
{
	for (size_t i = 0, len; i < n; i += len) {
		len = glob_char_len(s + i, n - i);
		if (len == 1 && (unsigned char)s[i] >= 0x80)
			return false;
	}
	return true;
}

/* The name without its escapes, ended by a NUL; how long it is. It takes no more room than with them. */
static size_t
put_unescaped(char *out, const char *s, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		i += s[i] == '\\';
		out[len++] = s[i];
	}
	out[len] = '\0';
	return len;
}

/* 1: the name holds a wildcard, 0: it does not. */
static int
find_wildcard(const struct parser *p, const char *s, size_t n)
{
	bool found = false, star = false;

	if (n == 2 && s[0] == '*' && s[1] == '*')
		return 1;
	for (size_t i = 0; i < n; i++) {
		found |= s[i] == '*' || s[i] == '?';
		if (s[i] == '*' && star)
			return refuse(p,
				"'**' stands for whole directories: write '**/*' or '*' in place "
				"of this one");
		star = s[i] == '*';
		i += s[i] == '\\';
	}
	if (found && !is_utf8(s, n))
		return refuse(p, "a name with wildcards must be UTF-8");
	return found;
}

/* A name with a wildcard. */
static struct component
compile_component(struct arena *arena, const char *s, size_t n)
{
	struct component c = {COMPONENT_PATTERN, NULL, 0};
	size_t i = 0;
	char *out;

	if (n <= 2 && s[n - 1] == '*' && *s == '*')
		return (struct component){n == 1 ? COMPONENT_ANY : COMPONENT_DEEP, "", 0};
	out = arena_alloc(arena, n);
	c.text = out;
	if (*s == '*' && !memchr(s + 1, '*', n - 1) && !memchr(s, '?', n)) {
		c.kind = COMPONENT_SUFFIX;
		i = 1;
	}
	for (; i < n; i++) {
		bool escape = s[i] == '\\';

		i += escape;
		if (escape && c.kind == COMPONENT_PATTERN && strchr("*?\\", s[i]))
			out[c.len++] = '\\';
		out[c.len++] = s[i];
	}
	return c;
}

static size_t
count_components(const char *s)
{
	size_t n = 1;

	for (; *s; s++)
		n += *s == '/';
	return n;
}

/* One component of an alternative, onto its head (for which there is room) or its components. */
static int
push_component(const struct parser *p, const char *s, size_t n, char *head, struct alternative *a)
{
	int wild;

	if (n == 0 || (n == 1 && *s == '.'))
		return 0;
	if (n == 2 && s[0] == '.' && s[1] == '.') {
		if (!(p->flags & (GLOB_GRANT | GLOB_MEMBER)) || (!a->n && !a->head_len))
			return refuse_dotdot(p);
		if (a->n)
			return refuse(p, "'..' after a wildcard: write the path without it");
		a->head_len = path_parent_len(head);
		head[a->head_len] = '\0';
		return 0;
	}
	wild = find_wildcard(p, s, n);
	if (wild < 0)
		return -1;
	if (!wild && !a->n) {
		if (a->head_len)
			head[a->head_len++] = '/';
		a->head_len += put_unescaped(head + a->head_len, s, n);
		return 0;
	}
	if (!a->n)
		a->components = arena_array(p->arena, count_components(s), struct component);
	if (wild) {
		a->components[a->n] = compile_component(p->arena, s, n);
	} else {
		char *name = arena_alloc(p->arena, n + 1);

		a->components[a->n] =
			(struct component){COMPONENT_LITERAL, name, put_unescaped(name, s, n)};
	}
	/* Two "**" say no more than one. */
	if (a->components[a->n].kind != COMPONENT_DEEP || !a->n ||
		a->components[a->n - 1].kind != COMPONENT_DEEP)
		a->n++;
	return 0;
}

/* A tail of "**" and at most one "*" takes every path below the components before it. */
static size_t
find_open(const struct alternative *a)
{
	bool deep = false, any = false;
	size_t u = a->n;

	for (; u; u--) {
		if (a->components[u - 1].kind == COMPONENT_DEEP)
			deep = true;
		else if (a->components[u - 1].kind == COMPONENT_ANY && !any)
			any = true;
		else
			break;
	}
	return deep ? u : SIZE_MAX;
}

static int
compile(const struct parser *p, const char *text, struct alternative *ret)
{
	size_t base_len = strlen(p->base);
	struct alternative a = {.head_len = base_len};
	char *head;

	if (refuse_start(p, text) < 0)
		return -1;
	a.head = head = arena_alloc(p->arena, base_len + 1 + strlen(text) + 1);
	memcpy(head, p->base, base_len);
	for (const char *s = text; *s;) {
		size_t n = (size_t)(strchrnul(s, '/') - s);

		if (push_component(p, s, n, head, &a) < 0)
			return -1;
		s += n + (s[n] == '/');
	}
	if (!a.n && a.head_len == base_len && !(p->flags & (GLOB_GRANT | GLOB_MEMBER)))
		return refuse(p, "names the whole directory: write '**'");
	a.open = find_open(&a);
	*ret = a;
	return 0;
}

int
glob_parse(struct arena *a, const char *base, const char *pattern, unsigned flags,
	struct glob **ret, struct err *e)
{
	const struct parser p = {a, base, pattern, flags, e};
	cleanup_strvec struct strvec texts = STRVEC_INIT;
	struct glob *g;

	if (strlen(pattern) > GLOB_PATTERN_MAX)
		return refuse(&p, "a pattern is longer than %d bytes", GLOB_PATTERN_MAX);
	if (refuse_foreign(&p) < 0 || scan(&p) < 0)
		return -1;
	if (find_brace(pattern) && expand(&p, &texts) < 0)
		return -1;
	g = arena_new(a, struct glob);
	g->text = arena_strdup(a, pattern);
	g->base = base;
	g->is_workspace = flags & GLOB_WORKSPACE;
	g->n = texts.n ? texts.n : 1;
	g->alternatives = arena_array(a, g->n, struct alternative);
	for (size_t i = 0; i < g->n; i++)
		if (compile(&p, texts.n ? texts.v[i] : pattern, &g->alternatives[i]) < 0)
			return -1;
	*ret = g;
	return 0;
}

static void
add_escaped(struct strbuf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr(escapable, s[i]))
			strbuf_addch(out, '\\');
		strbuf_addch(out, s[i]);
	}
}

static void
add_component(struct strbuf *out, const struct component *c)
{
	switch (c->kind) {
	case COMPONENT_DEEP:
		strbuf_adds(out, "**");
		break;
	case COMPONENT_ANY:
	case COMPONENT_SUFFIX:
		strbuf_addch(out, '*');
		add_escaped(out, c->text, c->len);
		break;
	case COMPONENT_LITERAL:
		add_escaped(out, c->text, c->len);
		break;
	case COMPONENT_PATTERN:
		for (size_t i = 0; i < c->len; i++) {
			bool wild = c->text[i] == '*' || c->text[i] == '?';

			i += c->text[i] == '\\';
			if (wild)
				strbuf_addch(out, c->text[i]);
			else
				add_escaped(out, c->text + i, 1);
		}
		break;
	}
}

/* Whether a name would mean more than itself at the start of a pattern. */
static bool
is_special_start(const char *s, size_t n)
{
	return n && (strchr("^~$@", *s) || (n > 1 && s[1] == ':'));
}

void
glob_add_text(const struct glob *g, size_t alternative, struct strbuf *out)
{
	const struct alternative *a = &g->alternatives[alternative];

	if (!a->n && !a->head_len)
		strbuf_addch(out, '.');
	if (a->head_len ? is_special_start(a->head, a->head_len)
			: a->n && is_special_start(a->components[0].text, a->components[0].len))
		strbuf_adds(out, "./");
	add_escaped(out, a->head, a->head_len);
	for (size_t i = 0; i < a->n; i++) {
		if (i || a->head_len)
			strbuf_addch(out, '/');
		add_component(out, &a->components[i]);
	}
}

const char *
glob_text_path(const char *text)
{
	return text + (!strncmp(text, "./", 2) ? 2 : 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * The text form of a spec. One table names every word and says where its value goes; the encoder
 * walks the same table, so that what is written is what is read.
 */
#include "proto/spec.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"

static const char FIRST_LINE[] = "vx-spec 1";
static const char LAST_LINE[] = "end";

enum word_kind {
	WORD_ABSOLUTE, /* one path, absolute */
	WORD_RELATIVE, /* one path, from the workspace; "." is the workspace */
	WORD_LIST,     /* any number of any text */
	WORD_ENV,      /* any number of NAME=value */
	WORD_PATHS,    /* any number of absolute paths */
	WORD_PLACES,   /* any number of paths from the workspace; "." is the workspace */
	WORD_FLAG,     /* no value */
};

static const struct word {
	const char *name;
	enum word_kind kind;
	size_t offset;
	bool required;
} words[] = {
	{"workspace", WORD_ABSOLUTE, offsetof(struct spec, workspace), true},
	{"cwd", WORD_RELATIVE, offsetof(struct spec, cwd), true},
	{"scratch", WORD_ABSOLUTE, offsetof(struct spec, scratch), true},
	{"home", WORD_ABSOLUTE, offsetof(struct spec, home), false},
	{"program", WORD_ABSOLUTE, offsetof(struct spec, program), false},
	{"arg", WORD_LIST, offsetof(struct spec, argv), true},
	{"env", WORD_ENV, offsetof(struct spec, env), false},
	{"hide", WORD_PATHS, offsetof(struct spec, hide), false},
	{"store", WORD_PATHS, offsetof(struct spec, stores), false},
	{"socket", WORD_PATHS, offsetof(struct spec, sockets), false},
	{"report", WORD_PLACES, offsetof(struct spec, reports), false},
	{"live", WORD_FLAG, offsetof(struct spec, live), false},
	{"unix-sockets", WORD_FLAG, offsetof(struct spec, unix_sockets), false},
	{"nested", WORD_FLAG, offsetof(struct spec, nested), false},
	{"hermetic", WORD_FLAG, offsetof(struct spec, hermetic), false},
	{"weaker-when-nested", WORD_FLAG, offsetof(struct spec, weaker), false},
	{"git-config", WORD_FLAG, offsetof(struct spec, git_config), false},
	{"fuse-off", WORD_FLAG, offsetof(struct spec, fuse_off), false},
	{"attached", WORD_FLAG, offsetof(struct spec, attached), false},
};

/* A rule's word, with "-glob" after it when the value is a pattern. */
static const char *const rule_words[] = {
	[SPEC_READ] = "read",
	[SPEC_WRITE] = "write",
	[SPEC_DENY_READ] = "deny-read",
	[SPEC_DENY_WRITE] = "deny-write",
	[SPEC_OUTPUT] = "output",
	[SPEC_QUIET] = "quiet",
	[SPEC_IGNORE_READ] = "ignore-read",
	[SPEC_IGNORE_WRITE] = "ignore-write",
};

static void *
field(const struct spec *s, const struct word *w)
{
	return (char *)(uintptr_t)s + w->offset;
}

void
spec_release(struct spec *s)
{
	free(s->workspace);
	free(s->cwd);
	free(s->scratch);
	free(s->home);
	free(s->program);
	strvec_release(&s->argv);
	strvec_release(&s->env);
	strvec_release(&s->hide);
	strvec_release(&s->stores);
	strvec_release(&s->sockets);
	strvec_release(&s->reports);
	free(s->rules);
	arena_release(&s->paths);
	*s = (struct spec)SPEC_INIT;
}

/* path: in the arena. */
static void
add_rule(struct spec *s, enum spec_rule_kind kind, bool is_glob, char *path)
{
	GROW(s->rules, s->nrules + 1, s->rules_cap);
	s->rules[s->nrules++] = (struct spec_rule){kind, is_glob, path};
}

void
spec_add_rule(struct spec *s, enum spec_rule_kind kind, bool is_glob, const char *path)
{
	add_rule(s, kind, is_glob, arena_strdup(&s->paths, path));
}

static void
put_line(struct strbuf *out, const char *word, const char *value)
{
	strbuf_adds(out, word);
	if (*value)
		strbuf_addch(out, ' ');
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '\\')
			strbuf_adds(out, "\\\\");
		else if (c == '\n')
			strbuf_adds(out, "\\n");
		else if (c < 0x20 || c == 0x7f)
			strbuf_addf(out, "\\x%02x", c);
		else
			strbuf_addch(out, (char)c);
	}
	strbuf_addch(out, '\n');
}

static const char *
shown(const char *relative)
{
	return *relative ? relative : ".";
}

static void
put_word(const struct spec *s, const struct word *w, struct strbuf *out)
{
	const struct strvec *list;
	const char *one;

	switch (w->kind) {
	case WORD_ABSOLUTE:
	case WORD_RELATIVE:
		one = *(char *const *)field(s, w);
		if (one)
			put_line(out, w->name, shown(one));
		break;
	case WORD_LIST:
	case WORD_ENV:
	case WORD_PATHS:
	case WORD_PLACES:
		list = field(s, w);
		for (size_t i = 0; i < list->n; i++)
			put_line(out, w->name,
				w->kind == WORD_PLACES ? shown(list->v[i]) : list->v[i]);
		break;
	case WORD_FLAG:
		if (*(const bool *)field(s, w))
			put_line(out, w->name, "");
		break;
	}
}

void
spec_encode(const struct spec *s, struct strbuf *out)
{
	strbuf_adds(out, FIRST_LINE);
	strbuf_addch(out, '\n');
	for (size_t i = 0; i < array_len(words); i++)
		put_word(s, &words[i], out);
	for (size_t i = 0; i < s->nrules; i++) {
		const struct spec_rule *r = &s->rules[i];
		char word[32];

		snprintf(
			word, sizeof(word), "%s%s", rule_words[r->kind], r->is_glob ? "-glob" : "");
		put_line(out, word, r->is_glob ? r->path : shown(r->path));
	}
	strbuf_adds(out, LAST_LINE);
	strbuf_addch(out, '\n');
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One escape after its backslash: the byte and, in *ret_n, how many characters it took. */
static int
unescape_one(const char *p, size_t n, size_t *ret_n, struct err *e)
{
	if (n >= 1 && (p[0] == '\\' || p[0] == 'n')) {
		*ret_n = 1;
		return p[0] == 'n' ? '\n' : '\\';
	}
	if (n >= 3 && p[0] == 'x') {
		int hi = hex_digit(p[1]), lo = hex_digit(p[2]);

		if (hi >= 0 && lo >= 0 && (hi || lo)) {
			*ret_n = 3;
			return hi << 4 | lo;
		}
	}
	return err_set(e, ERR_USAGE, 0, "a bad escape: \\\\, \\n and \\x01 to \\xff are known");
}

/* The value of a line, n bytes, in its place. */
static int
unescape(char *p, size_t n, struct err *e)
{
	char *to, *end = p + n;

	if (memchr(p, '\0', n))
		return err_set(e, ERR_USAGE, 0, "a NUL byte");
	p = to = memchr(p, '\\', n);
	while (p && p < end) {
		size_t taken = 0;
		int c;

		if (*p != '\\') {
			*to++ = *p++;
			continue;
		}
		p++;
		c = unescape_one(p, (size_t)(end - p), &taken, e);
		if (c < 0)
			return -1;
		*to++ = (char)c;
		p += taken;
	}
	if (to)
		*to = '\0';
	return 0;
}

static int
check_absolute(const char *path, struct err *e)
{
	if (*path != '/' || !path_is_normal(path + 1))
		return err_set(e, ERR_USAGE, 0,
			"an absolute path without '.', '..', '//' and a slash at the end is due");
	return 0;
}

/* "." becomes "", the workspace itself. */
static int
check_relative(char *path, struct err *e)
{
	if (!strcmp(path, "."))
		*path = '\0';
	else if (!*path || !path_is_normal(path))
		return err_set(e, ERR_USAGE, 0,
			"a path from the workspace without '.', '..', '//' and a slash at the end "
			"is due");
	return 0;
}

static int
check_rule(enum spec_rule_kind kind, bool is_glob, char *path, struct err *e)
{
	if (is_glob) {
		if (!*path || *path == '/')
			return err_set(e, ERR_USAGE, 0, "a pattern from the workspace is due");
		return 0;
	}
	if (*path != '/')
		return check_relative(path, e);
	if (kind == SPEC_DENY_READ || kind == SPEC_OUTPUT || kind == SPEC_QUIET)
		return err_set(e, ERR_USAGE, 0,
			"no absolute path is due: \"store\" and \"hide\" are for such");
	return check_absolute(path, e);
}

static int
check_value(const struct word *w, char *value, struct err *e)
{
	switch (w->kind) {
	case WORD_ABSOLUTE:
	case WORD_PATHS:
		return check_absolute(value, e);
	case WORD_RELATIVE:
	case WORD_PLACES:
		return check_relative(value, e);
	case WORD_ENV:
		if (*value == '=' || !strchr(value, '='))
			return err_set(e, ERR_USAGE, 0, "NAME=value is due");
		return 0;
	case WORD_FLAG:
		return *value ? err_set(e, ERR_USAGE, 0, "no value is due") : 0;
	case WORD_LIST:
		return 0;
	}
	bug("word kind %d", w->kind);
}

/* Puts the value where the table says. Takes it, also on failure. */
static int
set_word_take(struct spec *s, const struct word *w, char *value, struct err *e)
{
	bool *flag;
	char **one;

	if (check_value(w, value, e)) {
		free(value);
		return -1;
	}
	switch (w->kind) {
	case WORD_LIST:
	case WORD_ENV:
	case WORD_PATHS:
	case WORD_PLACES:
		strvec_push_take(field(s, w), value);
		return 0;
	case WORD_FLAG:
		free(value);
		flag = field(s, w);
		if (*flag)
			return err_set(e, ERR_USAGE, 0, "given twice");
		*flag = true;
		return 0;
	case WORD_ABSOLUTE:
	case WORD_RELATIVE:
		one = field(s, w);
		if (*one) {
			free(value);
			return err_set(e, ERR_USAGE, 0, "given twice");
		}
		*one = value;
		return 0;
	}
	bug("word kind %d", w->kind);
}

static bool
word_is(const char *word, size_t n, const char *name)
{
	return !strncmp(name, word, n) && strlen(name) == n;
}

static const struct word *
find_word(const char *word, size_t n)
{
	for (size_t i = 0; i < array_len(words); i++)
		if (word_is(word, n, words[i].name))
			return &words[i];
	return NULL;
}

static bool
find_rule_word(const char *word, size_t n, enum spec_rule_kind *ret, bool *ret_glob)
{
	static const char suffix[] = "-glob";
	size_t k = sizeof(suffix) - 1;

	*ret_glob = n > k && !memcmp(word + n - k, suffix, k);
	if (*ret_glob)
		n -= k;
	for (size_t i = 0; i < array_len(rule_words); i++) {
		if (word_is(word, n, rule_words[i])) {
			*ret = (enum spec_rule_kind)i;
			return true;
		}
	}
	return false;
}

static int
read_rule(struct spec *s, enum spec_rule_kind kind, bool is_glob, const char *p, size_t n,
	struct err *e)
{
	char *path = arena_memdupz(&s->paths, p, n);

	if (unescape(path, n, e) || check_rule(kind, is_glob, path, e))
		return -1;
	add_rule(s, kind, is_glob, path);
	return 0;
}

static int
read_word(struct spec *s, const struct word *w, const char *p, size_t n, struct err *e)
{
	char *value = xmemdupz(p, n);

	if (unescape(value, n, e)) {
		free(value);
		return -1;
	}
	return set_word_take(s, w, value, e);
}

static int
read_line(struct spec *s, const char *p, size_t n, struct err *e)
{
	const char *blank = memchr(p, ' ', n), *value = blank ? blank + 1 : p + n;
	size_t wn = blank ? (size_t)(blank - p) : n, nvalue = n - (size_t)(value - p);
	enum spec_rule_kind kind;
	bool is_glob;
	const struct word *w;

	if (!wn)
		return err_set(e, ERR_USAGE, 0,
			n ? "it begins with a blank: take that out" : "it is empty: take it out");
	if (find_rule_word(p, wn, &kind, &is_glob)) {
		if (read_rule(s, kind, is_glob, value, nvalue, e))
			return err_wrap(e, "%.*s", (int)wn, p);
		return 0;
	}
	w = find_word(p, wn);
	if (!w) {
		cleanup_strbuf struct strbuf sb = STRBUF_INIT;

		strbuf_add_sanitised(&sb, p, wn < 40 ? wn : 40);
		return err_set(e, ERR_USAGE, 0, "unknown word \"%s\"", sb.buf);
	}
	return read_word(s, w, value, nvalue, e) ? err_wrap(e, "%s", w->name) : 0;
}

/* What no single line can show. */
static int
check_whole(const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < array_len(words); i++) {
		const struct word *w = &words[i];
		bool given;

		if (!w->required)
			continue;
		if (w->kind == WORD_LIST)
			given = ((const struct strvec *)field(s, w))->n > 0;
		else
			given = *(char *const *)field(s, w) != NULL;
		if (!given)
			return err_set(e, ERR_USAGE, 0, "no line \"%s\"", w->name);
	}
	/* They are what stands in the workspace: nobody can take them away at the start. */
	for (size_t i = 0; s->live && i < s->nrules; i++)
		if (s->rules[i].kind == SPEC_OUTPUT)
			return err_set(e, ERR_USAGE, 0, "\"output\" has no meaning in a live view");
	return 0;
}

static int
refuse_first(const char *p, size_t n, struct err *e)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	strbuf_add_sanitised(&sb, p, n < 40 ? n : 40);
	return err_set(e, ERR_USAGE, 0, "line 1 is \"%s\", and \"%s\" is what this version reads",
		sb.buf, FIRST_LINE);
}

static int
decode(const char *p, size_t n, struct spec *s, struct err *e)
{
	const char *end = p + n;
	bool ended = false;

	if (n > SPEC_MAX)
		return err_set(e, ERR_USAGE, 0, "more than %d bytes", SPEC_MAX);
	for (unsigned long line = 1; p < end; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len;

		if (!nl)
			return err_set(e, ERR_USAGE, 0, "line %lu does not end", line);
		len = (size_t)(nl - p);
		if (ended)
			return err_set(e, ERR_USAGE, 0, "line %lu is after \"end\"", line);
		if (line == 1 && !word_is(p, len, FIRST_LINE))
			return refuse_first(p, len, e);
		ended = word_is(p, len, LAST_LINE);
		if (line > 1 && !ended && read_line(s, p, len, e))
			return err_wrap(e, "line %lu", line);
		p = nl + 1;
	}
	if (!ended)
		return err_set(e, ERR_USAGE, 0, "no line \"end\": it was cut off");
	return check_whole(s, e);
}

int
spec_decode(const char *p, size_t n, struct spec *ret, struct err *e)
{
	struct spec s = SPEC_INIT;

	if (decode(p, n, &s, e)) {
		spec_release(&s);
		return err_wrap(e, "spec");
	}
	*ret = s;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Globs against a slow reading of the same grammar. Input, by lines: "g" for a grant or anything
 * else, the base, the pattern, and then paths. The reference expands the braces by recursion, and
 * matches by tables of all pairs of positions; it shares no code with util/glob*.c.
 */
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

enum {
	INPUT_MAX = 600,
	PATHS_MAX = 12
};

/* The length of the character at s: UTF-8 or a byte. */
static size_t
char_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] >= 0xf0 && u[0] <= 0xf4   ? 4
		   : u[0] >= 0xe0 && u[0] <= 0xef ? 3
		   : u[0] >= 0xc2 && u[0] <= 0xdf ? 2
						  : 1;

	for (size_t i = 1; i < n; i++)
		if (u[i] < 0x80 || u[i] > 0xbf)
			return 1;
	return n;
}

/* One component: can[i][j] says whether pattern from i matches name from j. */
static bool
name_matches(const char *p, const char *s)
{
	size_t np = strlen(p), ns = strlen(s), w = ns + 1;
	bool *can = xcalloc((np + 1) * w, sizeof(*can)), r;

	for (size_t i = np + 1; i-- > 0;)
		for (size_t j = ns + 1; j-- > 0;) {
			bool *here = &can[i * w + j];

			if (i == np)
				*here = j == ns;
			else if (p[i] == '*')
				*here = can[(i + 1) * w + j] ||
					(j < ns && can[i * w + j + char_len(s + j)]);
			else if (p[i] == '?')
				*here = j < ns && can[(i + 1) * w + j + char_len(s + j)];
			else if (p[i] == '\\')
				*here = j < ns && p[i + 1] == s[j] && can[(i + 2) * w + j + 1];
			else
				*here = j < ns && p[i] == s[j] && can[(i + 1) * w + j + 1];
		}
	r = can[0];
	free(can);
	return r;
}

static void
split(const char *s, bool grant, struct strvec *ret)
{
	while (*s) {
		size_t n = strcspn(s, "/");
		char *name = xmemdupz(s, n);

		if (!strcmp(name, "..") && grant && ret->n)
			free(ret->v[--ret->n]), ret->v[ret->n] = NULL;
		else if (n && strcmp(name, ".") != 0)
			strvec_push(ret, name);
		free(name);
		s += n + (s[n] == '/');
	}
}

static bool
names_match(const struct strvec *p, bool literal, const struct strvec *s)
{
	size_t w = s->n + 1;
	bool *can = xcalloc((p->n + 1) * w, sizeof(*can)), r;

	for (size_t i = p->n + 1; i-- > 0;)
		for (size_t j = s->n + 1; j-- > 0;) {
			bool *here = &can[i * w + j];

			if (i == p->n)
				*here = literal || j == s->n;
			else if (!strcmp(p->v[i], "**"))
				*here = can[(i + 1) * w + j] || (j < s->n && can[i * w + j + 1]);
			else
				*here = j < s->n && can[(i + 1) * w + j + 1] &&
					name_matches(p->v[i], s->v[j]);
		}
	r = can[0];
	free(can);
	return r;
}

static bool
plain_matches(const char *base, const char *pattern, bool grant, const char *path)
{
	cleanup_strvec struct strvec p = STRVEC_INIT, s = STRVEC_INIT;
	cleanup_strbuf struct strbuf whole = STRBUF_INIT;
	bool literal = true;

	/* The base has no wildcards, whatever is in it. */
	for (const char *c = base; *c; c++) {
		if (strchr("*?\\", *c))
			strbuf_addch(&whole, '\\');
		strbuf_addch(&whole, *c);
	}
	strbuf_addch(&whole, '/');
	strbuf_adds(&whole, pattern);
	split(whole.buf, grant, &p);
	split(path, false, &s);
	for (const char *c = whole.buf; *c; c++) {
		if (*c == '*' || *c == '?')
			literal = false;
		c += *c == '\\';
	}
	return names_match(&p, literal, &s);
}

/* Tries each arm of the first braces in turn. */
static bool
reference_matches(const char *base, const char *pattern, bool grant, const char *path)
{
	const char *open = pattern, *arm, *end;
	size_t depth = 0;
	bool r = false;

	for (; *open && *open != '{'; open++)
		open += *open == '\\';
	if (!*open)
		return plain_matches(base, pattern, grant, path);
	for (end = open;; end++) {
		if (*end == '\\') {
			end++;
			continue;
		}
		depth += *end == '{';
		depth -= *end == '}';
		if (!depth)
			break;
	}
	arm = open + 1;
	for (const char *s = arm; s <= end && !r; s++) {
		if (*s == '\\') {
			s++;
			continue;
		}
		if (s == end || (*s == ',' && !depth)) {
			cleanup_free char *one = xasprintf("%.*s%.*s%s", (int)(open - pattern),
				pattern, (int)(s - arm), arm, end + 1);

			r = reference_matches(base, one, grant, path);
			arm = s + 1;
		}
		depth += *s == '{';
		depth -= *s == '}' && s != end;
	}
	return r;
}

/* A list of the one glob is the glob; a list that takes it back is empty. */
static void
check_sets(struct glob *g, const char *path, bool matched)
{
	const struct globset one = {&g, 1, NULL, 0}, none = {&g, 1, &g, 1};
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	REQUIRE(globset_match(&one, path) == matched && !globset_match(&none, path));
	REQUIRE(globset_excludes(&none, g, path) == matched);
	REQUIRE(!matched || !*path || globset_may_match_below(&one, dir));
	REQUIRE(globset_may_match_below(&none, dir) ==
		(glob_may_match_below(g, dir) && !glob_matches_all_below(g, dir)));
}

/* What the queries say of the directories above a path fits what is said of the path. */
static void
check_queries(const struct glob *g, const char *path, bool matched)
{
	cleanup_free char *dir = xstrdup(path);

	while (*dir) {
		dir[path_parent_len(dir)] = '\0';
		REQUIRE(!matched || glob_may_match_below(g, dir));
		REQUIRE(matched || !glob_matches_all_below(g, dir));
	}
}

/* Each alternative printed and parsed again is itself. */
static void
check_texts(struct arena *a, const struct glob *g)
{
	for (size_t i = 0; i < glob_nalternatives(g); i++) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT, again = STRBUF_INIT;
		struct err e = ERR_INIT;
		struct glob *h = NULL;

		glob_add_text(g, i, &text);
		if (text.len > GLOB_PATTERN_MAX)
			continue;
		REQUIRE(glob_parse(a, "", text.buf, GLOB_GRANT, &h, &e) == 0);
		REQUIRE(glob_nalternatives(h) == 1);
		glob_add_text(h, 0, &again);
		REQUIRE(!strcmp(text.buf, again.buf));
		REQUIRE(!strcmp(glob_literal_head(g, i), glob_literal_head(h, 0)));
		REQUIRE(glob_alternative_is_literal(g, i) == glob_is_literal(h));
		REQUIRE(glob_surely_overlap(g, h) && glob_surely_overlap(h, g));
	}
}

static void
check_error(const struct err *e)
{
	REQUIRE(e->kind == ERR_CONFIG && *e->text);
	for (const char *s = e->text; *s; s++)
		REQUIRE((unsigned char)*s >= 0x20 && *s != 0x7f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *input = xmemdupz(data, size < INPUT_MAX ? size : INPUT_MAX);
	char *rest = input, *kind = strsep(&rest, "\n"), *base = strsep(&rest, "\n"),
	     *pattern = strsep(&rest, "\n"), *path;
	bool grant = kind && *kind == 'g';
	struct err e = ERR_INIT;
	struct glob *g = NULL;
	struct arena a;

	if (!pattern || (*base && !path_is_normal(base)))
		return 0;
	arena_init(&a);
	if (glob_parse(&a, base, pattern, grant ? GLOB_GRANT : 0, &g, &e) < 0) {
		check_error(&e);
	} else {
		check_texts(&a, g);
		for (int i = 0; i < PATHS_MAX && (path = strsep(&rest, "\n")); i++) {
			bool matched;

			if (*path && !path_is_normal(path))
				continue;
			matched = glob_match(g, path);
			REQUIRE(matched == reference_matches(base, pattern, grant, path));
			check_queries(g, path, matched);
			check_sets(g, path, matched);
		}
	}
	arena_release(&a);
	return 0;
}

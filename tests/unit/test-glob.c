/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/arena.h"
#include "util/glob.h"
#include "util/strbuf.h"

static struct arena arena;

static struct glob *
parse(const char *base, const char *pattern, unsigned flags)
{
	struct err e = ERR_INIT;
	struct glob *g = NULL;

	if (glob_parse(&arena, base, pattern, flags, &g, &e) < 0) {
		printf("Bail out! %s\n", e.text);
		exit(1);
	}
	return g;
}

static void
check(const char *base, const char *pattern, const char *path, bool want)
{
	ok(glob_match(parse(base, pattern, GLOB_GRANT), path) == want, "%s: '%s' %s '%s'", base,
		pattern, want ? "selects" : "leaves", path);
}

static void
check_refused(const char *base, const char *pattern, unsigned flags, const char *why)
{
	struct err e = ERR_INIT;
	struct glob *g = NULL;

	ok(glob_parse(&arena, base, pattern, flags, &g, &e) < 0 && !g, "'%s' is refused", pattern);
	ok_err(&e, why, why);
	ok_int(e.kind, ERR_CONFIG, "as an error of the config");
}

static void
test_match(void)
{
	static const struct {
		const char *pattern, *path;
		bool want;
	} t[] = {
		{"src", "src", true},
		{"src", "src/a/b.ts", true},
		{"src/", "src/a/b.ts", true},
		{"src", "srcs", false},
		{"src", "", false},
		{"./src//a/./b", "src/a/b", true},
		{"*.ts", "a.ts", true},
		{"*.ts", ".ts", true},
		{"*.ts", "a/b.ts", false},
		{"*.ts", "a.tsx", false},
		{"*", ".hidden", true},
		{"*", "a/b", false},
		{"*", "", false},
		{"src/*", "src", false},
		{"src/*/", "src/x", true},
		{"src/**", "src", true},
		{"src/**", "src/.a/b", true},
		{"src/**", "srcx/a", false},
		{"src/**/*", "src", false},
		{"src/**/*", "src/a", true},
		{"src/**/*", "src/a/b", true},
		{"**", "", true},
		{"**", "a/b", true},
		{"**/*.ts", "a.ts", true},
		{"**/*.ts", "a/b/c.ts", true},
		{"**/*.ts", "a/b/c.ts/d", false},
		{"**/test/**", "a/test/b/c", true},
		{"**/test/**", "test", true},
		{"**/test/**", "a/tests/b", false},
		{"a/**/b/**/c", "a/b/c", true},
		{"a/**/b/**/c", "a/x/b/y/z/c", true},
		{"a/**/b/**/c", "a/x/b/y/c/d", false},
		{"a/**/b/c", "a/b/x/b/c", true},
		{"**/a/*/b", "a/a/a/x/b", true},
		{"**/**/x", "x", true},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"a?c", "ac", false},
		{"caf?", "caf\xc3\xa9", true},
		{"caf??", "caf\xc3\xa9", false},
		{"*??", "\xe2\x82\xac", false},
		{"*?", "\xe2\x82\xac", true},
		{"*??b*",
			"\xe2\x82\xac"
			"bc",
			false},
		{"a?", "a\xff", true},
		{"a*b*c", "a1b2b3c", true},
		{"a*b*c", "a1b2c3", false},
		{"*a*", "bab", true},
		{"*ab", "aab", true},
		{"{a,b}.ts", "b.ts", true},
		{"{a,b}.ts", "c.ts", false},
		{"{a,b{c,d}}/x", "bd/x", true},
		{"{a,b{c,d}}/x", "b/x", false},
		{"src/{,gen/}*.c", "src/a.c", true},
		{"src/{,gen/}*.c", "src/gen/a.c", true},
		{"{src,test}/**", "test/a/b", true},
		{"a{1,2}b{3,4}", "a2b3", true},
		{"a,b", "a,b", true},
		{"{a\\,b,c}", "a,b", true},
		{"[id].ts", "[id].ts", true},
		{"[id].ts", "i.ts", false},
		{"\\[id\\]/*.ts", "[id]/a.ts", true},
		{"\\{a\\}", "{a}", true},
		{"\\!x", "!x", true},
		{"x!", "x!", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"a\\*b*", "a*bc", true},
		{"\\**", "*b", true},
		{"a\\*b*", "axbc", false},
		{"a\\?*", "a?", true},
		{"a\\\\b", "a\\b", true},
		{"*\\\\", "x\\", true},
		{"(group)/x", "(group)/x", true},
		{"@\\(x)", "@(x)", true},
		{"./^x", "^x", true},
		{"./~", "~", true},
		{"./$HOME/*", "$HOME/x", true},
		{"a/$id.ts", "a/$id.ts", true},
		{"@scope/x", "@scope/x", true},
		{"..x/...", "..x/...", true},
	};

	for (size_t i = 0; i < array_len(t); i++)
		check("", t[i].pattern, t[i].path, t[i].want);
	check("packages/a", "src/**", "packages/a/src/x", true);
	check("packages/a", "src/**", "src/x", false);
	check("packages/a", "**", "packages/a", true);
	check("packages/a", "**", "packages/ab", false);
	check("packages/a", ".", "packages/a/x", true);
	check("packages/a", "../b/dist", "packages/b/dist/x", true);
	check("packages/a", "../b/*.d.ts", "packages/b/x.d.ts", true);
	check("packages/a", "x/../y", "packages/a/y", true);
	check("packages/a", "../..", "anything", true);
	check("a*b", "*.c", "a*b/x.c", true);
	check("a*b", "*.c", "axb/x.c", false);
}

static void
test_refused(void)
{
	check_refused("", "", 0, "a pattern is empty");
	check_refused("", "{,a}", 0, "an alternative is empty");
	check_refused("", ".", 0, "write '**'");
	check_refused("", "./", 0, "write '**'");
	check_refused("p", "/etc/passwd", 0, "start at the project's directory");
	check_refused("", "/etc/passwd", 0, "start at the workspace root");
	check_refused("p", "{/etc,src}", GLOB_GRANT, "an entry of its own");
	check_refused("p", "../x", 0, "list it in workspaceFiles");
	check_refused("", "a/../../x", 0, "leaves the workspace");
	check_refused("p", "{a,../x}", 0, "'..' leaves the project");
	check_refused("p", "../../x", GLOB_GRANT, "write its absolute path");
	check_refused("p", "../x", GLOB_OUTPUT,
		"'..' leaves the project: list it in workspaceFiles, from the workspace root");
	check_refused("p", "{workspaceRoot}/x", GLOB_OUTPUT,
		"vx has no '{workspaceRoot}': list it in workspaceFiles, from the workspace root");
	check_refused("p", "^build", GLOB_OUTPUT, "a name that begins with '^' is written './^");
	check_refused("", "../x", GLOB_MEMBER, "leaves the workspace's root");
	check_refused("", "a/../../x", GLOB_MEMBER, "leaves the workspace's root");
	check_refused("", "{a,../b}", GLOB_MEMBER, "leaves the workspace's root");
	check_refused("", "/srv/x", GLOB_MEMBER, "write it from the workspace's root");
	check_refused("p", "*/../x", GLOB_GRANT, "'..' after a wildcard");
	check_refused("", "C:/x", 0, "drive letter");
	check_refused("", "{c:\\\\x,a}", 0, "drive letter");
	check_refused("", "src\\lib", 0, "write '/' between names");
	check_refused("", "src\\", 0, "escapes nothing");
	check_refused("", "~/x", 0, "'~' has no meaning here");
	check_refused("", "!x", 0, "write '\\!'");
	check_refused("", "{b}.ts", 0, "one alternative");
	check_refused("", "{1..3}", 0, "one alternative");
	check_refused("", "{a,b", 0, "'{' without '}'");
	check_refused("", "a}", 0, "'}' without '{'");
	check_refused("", "!(a)", 0, "extended globs");
	check_refused("", "src/@(a|b)", 0, "extended globs");
	check_refused("", "*(a)", 0, "extended globs");
	check_refused("", "a**b", 0, "'**' stands for whole directories");
	check_refused("", "src/**.ts", 0, "write '**/*'");
	check_refused("", "***", 0, "'**' stands for whole directories");
	check_refused("", "$TURBO_DEFAULT$", 0, "write '**'");
	check_refused("", "$HOME/x", GLOB_GRANT, "write './$");
	check_refused("", "{src,$OUT}/x", 0, "no variables are put in");
	check_refused("", "{projectRoot}/src", 0, "paths here start at the project");
	check_refused("", "{workspaceRoot}/x", 0, "workspaceFiles");
	check_refused("", "^production", 0, "belongs to dependsOn");
	check_refused("", "*\xff", 0, "must be UTF-8");
	check_refused(
		"", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", 0, "more than 1024");
	check_refused("", "{{{{{{{{{{{{{{{{{a,b", 0, "nested more than");
	char *longest = malloc(GLOB_PATTERN_MAX + 2);
	memset(longest, 'x', GLOB_PATTERN_MAX + 1);
	longest[GLOB_PATTERN_MAX + 1] = '\0';
	check_refused("", longest, 0, "longer than");
	free(longest);
	check_refused("", "\x1b[2J/../../x", 0, "'\\x1b[2J");
}

static void
test_queries(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct glob *g = parse("p", "src/{a,b/*.c}", 0);

	ok(!glob_is_literal(g), "one wildcard makes a glob");
	ok_int((long long)glob_nalternatives(g), 2, "two alternatives");
	ok_str(glob_literal_head(g, 0), "p/src/a", "the head of a literal");
	ok_str(glob_literal_head(g, 1), "p/src/b", "the head of a glob");
	ok(glob_alternative_is_literal(g, 0) && !glob_alternative_is_literal(g, 1),
		"which is which");
	ok_str(glob_text(g), "src/{a,b/*.c}", "as written");
	strbuf_reset(&text);
	glob_add_text(g, 1, &text);
	ok_str(text.buf, "p/src/b/*.c", "from the root");
	ok(glob_may_match_below(g, "") && glob_may_match_below(g, "p/src"), "on the way down");
	ok(glob_may_match_below(g, "p/src/a/deep"), "below a literal");
	ok(glob_may_match_below(g, "p/src/b"), "in the directory of a glob");
	ok(!glob_may_match_below(g, "p/src/b/x.c"), "not below what it names");
	ok(!glob_may_match_below(g, "p/test") && !glob_may_match_below(g, "q"), "not beside it");
	g = parse("", "a/*/c/**/d", 0);
	ok(glob_may_match_below(g, "a/x") && glob_may_match_below(g, "a/x/c/y/z"), "through '**'");
	ok(!glob_may_match_below(g, "a/x/d"), "not where a name before '**' differs");

	ok(glob_matches_all_below(parse("", "a/b", 0), "a/b"), "a literal takes all below it");
	ok(!glob_matches_all_below(parse("", "a/b", 0), "a"), "and nothing beside it");
	ok(glob_matches_all_below(parse("", "a/**", 0), "a/x/y"), "'**' takes all");
	ok(glob_matches_all_below(parse("", "a/**/*", 0), "a"), "'**/*' takes all below");
	ok(glob_matches_all_below(parse("", "*/dist/**", 0), "a/dist/x"), "below a wildcard too");
	ok(!glob_matches_all_below(parse("", "*/dist/**", 0), "a"), "but not above it");
	ok(!glob_matches_all_below(parse("", "a/**/*.c", 0), "a/b"), "a suffix does not");
	ok(!glob_matches_all_below(parse("", "a/*", 0), "a"), "one level does not");
	ok(!glob_matches_all_below(parse("", "**/*/*", 0), "a"), "two levels at least do not");
	ok(glob_matches_all_below(parse("", "**/x/**", 0), "a/x/b"), "'**' in front");
}

static void
check_overlap(const char *a, const char *b, bool want)
{
	struct glob *x = parse("p", a, GLOB_GRANT), *y = parse("p", b, GLOB_GRANT);

	ok(glob_surely_overlap(x, y) == want && glob_surely_overlap(y, x) == want, "%s and %s: %s",
		a, b, want ? "overlap" : "may not overlap");
}

static void
test_overlap(void)
{
	check_overlap("dist", "./dist/", true);
	check_overlap("dist", "dist/x", true);
	check_overlap("dist/a", "dist/b", false);
	check_overlap("dist/a.js", "dist/*.js", true);
	check_overlap("dist/a.css", "dist/*.js", false);
	check_overlap("dist/**", "dist/x/*.js", true);
	check_overlap("dist/x/**", "dist/**", true);
	check_overlap("dist/x/**", "dist/**/*.js", false);
	check_overlap("dist/*.js", "dist/{a,*}.js", true);
	check_overlap("dist/*.js", "dist/*.css", false);
	check_overlap("../q/dist/**", "dist/**", false);
}

static void
check_covers(const char *a, const char *b, bool want)
{
	struct glob *x = parse("p", a, GLOB_GRANT), *y = parse("p", b, GLOB_GRANT);
	bool all = true;

	for (size_t k = 0; k < glob_nalternatives(y); k++)
		all = glob_covers(x, y, k) && all;
	ok(all == want, "%s %s %s", a, want ? "covers" : "need not cover", b);
}

static void
test_covers(void)
{
	check_covers("**", "src/**", true);
	check_covers("**", "**", true);
	check_covers("**/*", "**", true);
	check_covers("**/*", "src/**", true);
	check_covers("**/*.ts", "src/**", false);
	check_covers("dist/**/*", "dist/**", false);
	check_covers("src/**", "**", false);
	check_covers("src/**", "src/a.c", true);
	check_covers("src/*", "src/a.c", false);
	check_covers("src", "src/a.c", true);
	check_covers("src/a.c", "src", false);
	check_covers("src/{a,b}/**", "src/{b/x,a/y}/**", true);
	check_covers("src/{a,b}/**", "src/{b,c}/**", false);
	check_covers("**/*.ts", "src/**/*.ts", true);
	check_covers("**/*.ts", "**/*.ts", true);
	check_covers("**/*.ts", "*.ts", true);
	check_covers("*.ts", "**/*.ts", false);
	check_covers("**/*.ts", "src/*.d.ts", true);
	check_covers("**/*.d.ts", "src/*.ts", false);
	check_covers("**/*.ts", "src/a*b.ts", true);
	check_covers("*\\*.ts", "a*b.ts", false);
	check_covers("a*.?s", "a*.?s", true);
	check_covers("a*.?s", "b*.?s", false);
	check_covers("*/x/**", "a/x/y", true);
	check_covers("*/x/*.c", "a/x/*.c", true);
	check_covers("*/x/*.c", "a/*/*.c", false);
	check_covers("*/*.c", "a/**/*.c", false);
	check_covers("**/a/**/b", "x/a/c/**/a/b", true);
	check_covers("**/a/**/b", "x/a/c/**/a/b/c", false);
	check_covers("../q/**", "**", false);
	ok(!glob_may_overlap(parse("p", "src/**", 0), parse("p", "{a,b}/**", 0)) &&
			glob_may_overlap(parse("p", "src/**", 0), parse("p", "{a,src/b}/*", 0)) &&
			glob_may_overlap(parse("p", "*.c", 0), parse("p", "src/**", 0)),
		"what may overlap");
}

static void
test_sets(void)
{
	struct glob *pos[] = {parse("", "src/**", 0), parse("", "a.txt", 0)};
	struct glob *neg[] = {parse("", "src/gen/**", 0), parse("", "**/*.md", 0)};
	struct globset s = {pos, 2, neg, 2};

	ok(globset_match(&s, "src/a.c") && globset_match(&s, "a.txt"), "selected");
	ok(!globset_match(&s, "src/gen/x.c") && !globset_match(&s, "src/a.md"), "taken back");
	ok(!globset_match(&s, "b.txt"), "not named");
	ok(globset_excludes(&s, pos[0], "src/gen") && !globset_excludes(&s, pos[0], "src"),
		"which are taken back");
	ok(globset_may_match_below(&s, "src/x") && !globset_may_match_below(&s, "src/gen/x"),
		"where to walk");
	s.npos = 0;
	ok(!globset_match(&s, "src/a.c"), "nothing positive selects nothing");
}

/* files of p and workspaceFiles in one set. */
static void
test_two_lists(void)
{
	struct glob *pos[] = {
		parse("p", "out/**", 0), parse("", "{out,p/out}/*.txt", GLOB_WORKSPACE)};
	struct glob *neg[] = {parse("p", "**/a.txt", 0), parse("", "**/b.txt", GLOB_WORKSPACE)};
	struct glob *all[] = {parse("p", "**", 0)};
	const struct globset s = {pos, 2, neg, 2}, none_below = {pos, 2, all, 1};

	ok(glob_is_workspace(pos[1]) && !glob_is_workspace(pos[0]), "which list");
	ok(globset_match(&s, "p/out/b.txt") && globset_match(&s, "p/out/a.txt"),
		"what one list takes back the other one may select");
	ok(!globset_match(&s, "out/b.txt") && globset_match(&s, "out/a.txt"),
		"an exception is one of its own list");
	ok(globset_match_nested(&s, "p/out/a.txt") && !globset_match_nested(&s, "p/out/x"),
		"only workspaceFiles reach into other projects");
	ok(globset_may_match_below(&none_below, "p/out") &&
			!globset_may_match_below(&none_below, "p/out/x"),
		"where to walk, list by list");
}

/* A text from the root parses back to the same. */
static void
test_texts(void)
{
	static const char *const t[][2] = {
		{"a*b", "[x]{c,d}/\\*?\\{*"},
		{"^x", "**/y"},
		{"~", "*"},
		{"", "\\!(x)"},
		{"c:", "d"},
		{"$TURBO_ROOT$", "x*"},
		{"@group(a)", "."},
		{"", "."},
		{"back\\slash", "a\\\\*"},
	};

	for (size_t i = 0; i < array_len(t); i++) {
		struct glob *g = parse(t[i][0], t[i][1], GLOB_GRANT);
		cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
		struct glob *h;

		glob_add_text(g, 0, &a);
		h = parse("", a.buf, GLOB_GRANT);
		glob_add_text(h, 0, &b);
		ok_str(b.buf, a.buf, t[i][1]);
		ok_str(glob_literal_head(h, 0), glob_literal_head(g, 0), "with the same head");
	}
}

/* Exponential backtracking would take longer than any machine lives. */
static void
test_pathological(void)
{
	char pattern[2 * 120 + 2], name[2001], deep[4001];

	for (size_t i = 0; i < 120; i++)
		memcpy(pattern + 2 * i, "*a", 2);
	memcpy(pattern + 240, "b", 2);
	memset(name, 'a', 2000);
	name[2000] = '\0';
	check("", pattern, name, false);
	for (size_t i = 0; i < 2000; i++)
		memcpy(deep + 2 * i, i + 1 < 2000 ? "a/" : "a", 2);
	deep[3999] = '\0';
	check("", "**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", deep, false);
}

int
main(void)
{
	arena_init(&arena);
	ok(arena_alloc(&arena, 0) != NULL, "nothing in an empty arena has an address");
	test_match();
	test_refused();
	test_queries();
	test_overlap();
	test_covers();
	test_sets();
	test_two_lists();
	test_texts();
	test_pathological();
	arena_release(&arena);
	return tap_done();
}

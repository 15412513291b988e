/* SPDX-License-Identifier: MIT */
#include "tests/unit/globs.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/inputs.h"
#include "workspace/workspace.h"

static struct arena arena;

static struct files
listing(const char **sorted, size_t n)
{
	return (struct files){.paths = sorted, .n = n};
}
#define LISTING(...)                                                                               \
	listing((const char *[]){__VA_ARGS__},                                                     \
		sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void
check(const struct files *f, const struct project *p, const struct taskdef *t, const char *want,
	const char *name)
{
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	struct inputs in = {0};
	struct err e = ERR_INIT;

	if (inputs_resolve(ws_fd, f, p, t, &in, &e))
		strbuf_adds(&got, e.text);
	for (size_t i = 0; i < in.n; i++)
		strbuf_addf(&got, "%s%s", i ? " " : "", in.paths[i]);
	ok_str(got.buf, want, name);
	inputs_release(&in);
}

static void
test_below(void)
{
	struct files f = LISTING("a", "a-b", "a/b", "a/c/d", "a0", "ab", "b\xff");
	size_t from, to;

	files_below(&f, "a", &from, &to);
	ok(from == 0 && to == 4, "a range holds the directory, its siblings up to it, no more");
	files_below(&f, "a/c", &from, &to);
	ok(from == 3 && to == 4, "a directory that is not listed itself");
	files_below(&f, "", &from, &to);
	ok(from == 0 && to == 7, "the root holds all");
	files_below(&f, "zz", &from, &to);
	ok(from == to, "nothing");
	files_below(&f, "b\xff", &from, &to);
	ok(from == 6 && to == 7, "bytes, not characters");
}

static void
test_globs(void)
{
	struct files f = LISTING("lib/x.h", "p-other/src/a.c", "p/.1234567890abcdef-12345678.tmp/x",
		"p/a.bun-build", "p/a.tsbuildinfo", "p/dist/keep.txt", "p/dist/o.js",
		"p/package.json", "p/src/a.c", "p/src/deep/b.c", "p/src/new\nline", "p/sub/src/n.c",
		"p/vx-lock.json", "shared/y.h");
	struct project sub = {.name = "sub", .dir = "p/sub"};
	struct project *nested[] = {&sub};
	struct project p = {.name = "p", .dir = "p", .nested = nested, .nnested = 1};
	struct cachedef c = {.files = GLOBS(&arena, "p", "src/**")};
	struct taskdef t = {.name = "build", .place = "p/vx.config.json:1:1", .cache = &c};

	check(&f, &p, &t, "p/src/a.c p/src/deep/b.c p/src/new\nline", "a subtree");
	c.files = GLOBS(&arena, "p", "**", "!src/deep/**");
	c.outputs = GLOBS(&arena, "p", "dist/**", "!dist/keep.txt");
	check(&f, &p, &t, "p/dist/keep.txt p/package.json p/src/a.c p/src/new\nline",
		"all less what is taken back, outputs, nested projects and what never is an input");
	c.files = GLOBS(&arena, "p", "src/*.c", "src/**", "src/a.c");
	check(&f, &p, &t, "p/src/a.c p/src/deep/b.c p/src/new\nline", "no file twice");
	c.files = GLOBS(&arena, "p", "src/*.c");
	c.workspace_files = GLOBS(&arena, "", "lib/**", "p/sub/**");
	check(&f, &p, &t, "lib/x.h p/src/a.c p/sub/src/n.c", "workspace files know no project");
	c.files = GLOBS(&arena, "p", "nothing/**");
	c.workspace_files = (struct globset){0};
	check(&f, &p, &t, "", "a glob may match nothing");
	c.files = (struct globset){0};
	check(&f, &p, &t, "", "no globs, no inputs");
	t.cache = NULL;
	check(&f, &p, &t,
		"p/dist/keep.txt p/dist/o.js p/package.json p/src/a.c p/src/deep/b.c "
		"p/src/new\nline",
		"an uncached task has all of its project");
	p = (struct project){.name = "root", .dir = ""};
	check(&f, &p, &t,
		"lib/x.h p-other/src/a.c p/dist/keep.txt p/dist/o.js p/package.json p/src/a.c "
		"p/src/deep/b.c p/src/new\nline p/sub/src/n.c shared/y.h",
		"also at the root");
}

static void
test_literals(void)
{
	struct files f = LISTING("p/src/a.c", "p/tree/x");
	struct project p = {.name = "p", .dir = "p"};
	struct cachedef c = {.files = GLOBS(&arena, "p", "src/a.c", "tree")};
	struct taskdef t = {.name = "build", .place = "p/vx.config.json:1:1", .cache = &c};

	ws_begin();
	check(&f, &p, &t, "p/src/a.c p/tree/x", "a file and a tree");
	c.files = GLOBS(&arena, "p", "src/a.c", "gone.txt", "tree/x/y");
	check(&f, &p, &t, "p/src/a.c", "one that does not exist adds nothing");
	ws_write("p/gone.txt", "");
	check(&f, &p, &t,
		"p/vx.config.json:1:1: task build: the input \"p/gone.txt\" exists but git ignores "
		"it, so "
		"a change of it would not be seen; remove the entry, or un-ignore the file",
		"one that git ignores is refused");
	c.files = GLOBS(&arena, "p", "empty");
	fs_mkdirs(ws_fd, "p/empty");
	check(&f, &p, &t,
		"p/vx.config.json:1:1: task build: the input \"p/empty\" is a directory with no "
		"file that "
		"counts: it is empty or git ignores it; remove the entry, or un-ignore it",
		"so is a directory of none");
	c.files = GLOBS(&arena, "p", "src/{a.c,b.c}");
	check(&f, &p, &t, "p/src/a.c", "each alternative is a literal");
	ws_write("p/src/b.c", "");
	check(&f, &p, &t,
		"p/vx.config.json:1:1: task build: the input \"p/src/b.c\" exists but git ignores "
		"it, so a "
		"change of it would not be seen; remove the entry, or un-ignore the file",
		"of its own");
	ws_end();
}

static void
check_absent(const struct files *f, const struct project *p, const struct taskdef *t,
	const char *path, const char *want, const char *name)
{
	struct err e = ERR_INIT;

	ok_str(inputs_check_absent(ws_fd, f, p, t, path, &e) ? e.text : "", want, name);
}

#define PLACE "p/vx.config.json:1:1: task build: the input "
#define UNSEEN ", so a change of it would not be seen; "

static void
test_links(void)
{
	struct files f = LISTING("p/link", "p/real/a", "p/sub/s");
	struct files stale = LISTING("p/link", "p/link/a", "p/real/a", "p/sub/s");
	struct project sub = {.name = "sub", .dir = "p/sub"};
	struct project *nested[] = {&sub};
	struct project p = {.name = "p", .dir = "p", .nested = nested, .nnested = 1};
	struct cachedef c = {.files = GLOBS(&arena, "p", "link/a")};
	struct taskdef t = {.name = "build", .place = "p/vx.config.json:1:1", .cache = &c};

	ws_begin();
	ws_write("p/real/a", "");
	ws_write("p/real/d/x", "");
	ws_write("p/sub/s", "");
	ws_write("other/o", "");
	ws_link("p/link", "real");
	check(&f, &p, &t,
		PLACE "\"p/link/a\" lies behind the link p/link" UNSEEN
		      "name it where it is: \"real/a\"",
		"a literal behind a link");
	c.files = GLOBS(&arena, "p", "link/**");
	check(&f, &p, &t,
		PLACE "\"link/**\" lies behind the link p/link" UNSEEN
		      "name its files where they are: \"real\"",
		"a wildcard that starts at one");
	c.files = GLOBS(&arena, "p", "{real,link/d}/*");
	check(&f, &p, &t,
		PLACE "\"{real,link/d}/*\" lies behind the link p/link" UNSEEN
		      "name its files where they are: \"real/d\"",
		"one of several");
	c.files = GLOBS(&arena, "p", "link", "link/none", "link/none/**", "link/a/**", "*");
	check(&f, &p, &t, "p/link", "a link is an input as one, and nothing behind it is none");
	c.files = GLOBS(&arena, "p", "out/o");
	ws_link("p/out", "../other");
	check(&f, &p, &t,
		PLACE "\"p/out/o\" lies behind the link p/out" UNSEEN
		      "name it where it is, in cache.inputs.workspaceFiles: \"other/o\"",
		"one that leads out of the project");
	c.files = GLOBS(&arena, "p", "in/s");
	ws_link("p/in", "sub");
	check(&f, &p, &t,
		PLACE "\"p/in/s\" lies behind the link p/in" UNSEEN
		      "name it where it is, in cache.inputs.workspaceFiles: \"p/sub/s\"",
		"into a nested project");
	c.files = GLOBS(&arena, "p", "up/null");
	ws_link("p/up", "/dev");
	check(&f, &p, &t,
		PLACE "\"p/up/null\" lies behind the link p/up, which leads out of the workspace "
		      "(/dev/null), so a change of it would not be seen; remove the entry",
		"out of the workspace");
	c.files = GLOBS(&arena, "p", "loop/a", "loop/**", "gone/a", "gone/**");
	ws_link("p/loop", "loop");
	ws_link("p/gone", "nowhere");
	check(&f, &p, &t, "", "a link that leads nowhere is as what is not there");

	c.files = GLOBS(&arena, "p", "link/**");
	check(&stale, &p, &t, "p/link p/link/a", "what git's index names behind a link");
	check_absent(&stale, &p, &t, "p/link/a",
		PLACE "\"p/link/a\" lies behind the link p/link" UNSEEN
		      "name it where it is: \"real/a\"",
		"is refused when it turns out to be gone");
	c.files = GLOBS(&arena, "p", "*/a", "!real/**");
	check_absent(&stale, &p, &t, "p/link/a",
		PLACE "\"p/link/a\" lies behind the link p/link" UNSEEN
		      "name it where it is: \"real/a\"",
		"whatever selects it");
	c.files = GLOBS(&arena, "p", "**");
	check_absent(&stale, &p, &t, "p/link/a", "", "unless it is an input by its real name");
	check_absent(&stale, &p, &t, "p/gone/a", "", "or really gone");
	ws_end();
}

/* 1090 projects of 4 files, 3 tasks each: what a walk of all files for each task would cost shows. */
static void
test_many(void)
{
	enum {
		N = 1090
	};
	static const char *paths[N * 4];
	static const char *const names[] = {"package.json", "src/a.c", "src/b.c", "vx.config.json"};
	struct files f = {.paths = paths, .n = N * 4};
	size_t found = 0;

	for (size_t i = 0; i < f.n; i++)
		paths[i] = arena_printf(&arena, "packages/p%04zu/%s", i / 4, names[i % 4]);
	for (size_t i = 0; i < N * 3; i++) {
		char dir[32];
		struct project p = {.dir = dir};
		struct cachedef c;
		struct taskdef t = {.name = "build", .place = "", .cache = &c};
		struct inputs in;
		struct err e = ERR_INIT;

		snprintf(dir, sizeof(dir), "packages/p%04zu", i / 3);
		c = (struct cachedef){.files = GLOBS(&arena, dir, "src/**"),
			.outputs = GLOBS(&arena, dir, "dist/**")};
		if (inputs_resolve(ws_fd, &f, &p, &t, &in, &e))
			bug("%s", e.text);
		found += in.n;
		inputs_release(&in);
	}
	ok_int((long long)found, N * 3 * 2, "many tasks");
}

int
main(void)
{
	arena_init(&arena);
	test_below();
	test_globs();
	test_literals();
	test_links();
	test_many();
	arena_release(&arena);
	return tap_done();
}

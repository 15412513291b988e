/* SPDX-License-Identifier: MIT */
/* Grants of a task from its definition, on a small workspace made by hand. */
#include "cache/never.h"
#include "exec/policy.h"
#include "graph/graph.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "workspace/files.h"
#include "workspace/inputs.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <sys/stat.h>

static char top[] = "/var/tmp/vx-test-policy-XXXXXX";
static char *canonical_top;
static char *area; /* of scratches */
static int rootfd;
static struct arena arena;
static struct workspace w;
/* packages/app holds packages/app/nested and depends on lib; util is linked but not keyed. */
static struct project app, lib, util, nested;
static struct taskdef app_task, lib_task;
static struct cachedef app_cache, lib_cache;
static struct node app_node, lib_node;

static const char *paths[] = {
	".gitignore",
	"package.json",
	"packages/app/README",
	"packages/app/link",
	"packages/app/nested/n.ts",
	"packages/app/package.json",
	"packages/app/src/a.ts",
	"packages/app/src/b.md",
	"packages/lib/README.md",
	"packages/lib/src/l.ts",
	"packages/util/u.ts",
	"packages/util/vx.config.mts",
	"packages/util/vx.workspace.cjs",
	"packages/util/vx.workspaces",
	"tsconfig.base.json",
	"tsconfig.json",
};
static struct files files = {.paths = paths, .n = array_len(paths), .listed_ns = UINT64_MAX};

static struct glob *
glob(const char *base, const char *text, unsigned flags)
{
	struct err e = ERR_INIT;
	struct glob *g;

	if (glob_parse(&arena, base, text, flags, &g, &e))
		bug("%s", e.text);
	return g;
}

/* The first of v is the directory that the others are relative to. */
static unsigned glob_flags;

static void
set_globs(struct globset *set, const char *const *v)
{
	const char *base = *v++;

	*set = (struct globset){.pos = arena_array(&arena, 8, struct glob *),
		.neg = arena_array(&arena, 8, struct glob *)};
	for (; *v; v++) {
		if (**v == '!')
			set->neg[set->nneg++] = glob(base, *v + 1, glob_flags);
		else
			set->pos[set->npos++] = glob(base, *v, glob_flags);
	}
}
#define GLOBS(set, ...) set_globs(set, (const char *const[]){__VA_ARGS__, NULL})

static void
set_grants(struct grant **list, size_t *n, const char *const *v)
{
	*list = arena_array(&arena, 8, struct grant);
	for (*n = 0; *v; v++) {
		struct grant *g = &(*list)[(*n)++];

		g->text = *v;
		if (**v == '/' || **v == '~')
			g->absolute = *v;
		else
			g->glob = glob("packages/app", *v, GLOB_GRANT);
	}
}

static struct sandboxdef *
sandbox(const char *const *reads, const char *const *writes, const char *const *denies)
{
	static const char *const none[] = {NULL};
	struct sandboxdef *s = arena_new(&arena, struct sandboxdef);

	set_grants(&s->allow_read, &s->nallow_read, reads ? reads : none);
	set_grants(&s->allow_write, &s->nallow_write, writes ? writes : none);
	set_grants(&s->deny_read, &s->ndeny_read, denies ? denies : none);
	return s;
}
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
put(const char *path)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	if (fs_mkdirs(rootfd, dir))
		bug("mkdirs: %s", strerror(errno));
	close(fs_open_beneath(rootfd, path, O_WRONLY | O_CREAT, 0644));
}

static void
link_to(const char *target, const char *path)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	if (fs_mkdirs(rootfd, dir) || symlinkat(target, rootfd, path))
		bug("link %s: %s", path, strerror(errno));
}

static void
add_project(struct project *p, const char *name, const char *dir, size_t index)
{
	p->name = name;
	p->dir = dir;
	p->index = index;
	w.projects[index] = p;
	htab_put(&w.by_dir, p->dir, p);
	htab_put(&w.by_name, p->name, p);
}

static void
make_workspace(void)
{
	static struct project *projects[4];
	static struct project *nested_of_app[] = {&nested};
	static struct node *deps_of_app[] = {&lib_node};

	w.rootfd = rootfd;
	w.path = canonical_top;
	w.projects = projects;
	w.nprojects = 4;
	htab_init(&w.by_dir);
	htab_init(&w.by_name);
	add_project(&app, "app", "packages/app", 0);
	add_project(&lib, "lib", "packages/lib", 1);
	add_project(&util, "util", "packages/util", 2);
	add_project(&nested, "nested", "packages/app/nested", 3);
	app.nested = nested_of_app;
	app.nnested = 1;
	app_task = (struct taskdef){.name = "build", .command = "true"};
	lib_task = (struct taskdef){.name = "build", .command = "true", .cache = &lib_cache};
	GLOBS(&app_cache.files, "packages/app", "src/**");
	GLOBS(&app_cache.workspace_files, "", "tsconfig.base.json");
	GLOBS(&app_cache.outputs, "packages/app", "dist/**", "!dist/tmp/**");
	GLOBS(&lib_cache.files, "packages/lib", "src/**");
	GLOBS(&lib_cache.workspace_files, "");
	GLOBS(&lib_cache.outputs, "packages/lib", "dist/**");
	app_node = (struct node){.id = "app#build",
		.project = &app,
		.def = &app_task,
		.deps = deps_of_app,
		.ndeps = 1,
		.folded = deps_of_app,
		.nfolded = 1};
	lib_node = (struct node){.id = "lib#build", .project = &lib, .def = &lib_task};
	for (size_t i = 0; i < array_len(paths); i++)
		if (strcmp(paths[i], "packages/app/link") != 0)
			put(paths[i]);
	put("packages/app/nested/n.ts");
	put("packages/app/.env"); /* ignored by git: not among the files */
	put("packages/app/dist/old");
	put("packages/lib/dist/l.js");
	put(".git/config");
	link_to("src/a.ts", "packages/app/link");
	link_to("../../lib", "packages/app/node_modules/lib");
	link_to("../../../util", "packages/app/node_modules/@scope/util");
	link_to("../packages/app", "node_modules/app");
	link_to("/usr/share", "node_modules/outside");
	link_to("../lib/out", "packages/app/leaves");
	link_to("/tmp/x", "packages/app/far");
	link_to("real/out", "packages/app/stays");
	link_to("circle", "packages/app/circle");
}

static struct policy *
build(const struct inputs *inputs, struct err *e)
{
	static const struct inputs none;
	struct policy *p = NULL;

	if (policy_build(&w, &app_node, &files, inputs ? inputs : &none, area, NULL, &p, e))
		return NULL;
	return p;
}

static bool
reads(const struct policy *p, const char *path)
{
	return policy_may_see(p, path, false);
}

static bool
writes(const struct policy *p, const char *path)
{
	return policy_judge_write(p, path) == WRITE_GRANTED;
}

static bool
has_rule(const struct policy *p, enum spec_rule_kind kind, bool is_glob, const char *path)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rules[i].kind == kind && p->rules[i].is_glob == is_glob &&
			!strcmp(p->rules[i].path, path))
			return true;
	return false;
}

static void
test_never_names(void)
{
	ok_int((long long)never_prefix("a/.NPMRC", 0), 8, "in any case");
	ok_int((long long)never_prefix("a/.github/b/.npmrc", 0), 9, "the first");
	ok_int((long long)never_prefix("a/.github/b/.npmrc", 9), 18, "then the next");
	ok_int((long long)never_prefix("vx.config.mjs", 0), 13, "every config");
	ok_int((long long)never_prefix("a/.cargo/config.toml", 0), 20, "below a parent");
	ok_int((long long)never_prefix("a/config.toml", 0), 0, "only there");
	ok_int((long long)never_prefix("a/.git/modules/x/hooks/y", 0), 22, "in any git directory");
	ok_int((long long)never_prefix("a/.git/refs/heads/config", 0), 0,
		"but not a branch's name");
	ok_int((long long)never_prefix("a/.npmrcs", 0), 0, "whole names");
	ok_int((long long)never_prefix("a/node_modules/b/.github/x", 0), 0,
		"a package brings its .github along");
	ok_int((long long)never_prefix("node_modules/b/.GitHub/.npmrc", 0), 29,
		"and nothing else: not below it");
	ok_int((long long)never_prefix("a/node_modules/b/.vscode", 0), 24, "not beside it");
	ok_int((long long)never_prefix("my_node_modules/.github", 0), 23, "not in any other");
	ok_int((long long)never_prefix(".github/node_modules/x", 0), 7, "nor above it");
	ok(never_is_of_package("node_modules/b/.github") && !never_is_of_package("b/.github") &&
			!never_is_of_package("node_modules/b/.npmrc"),
		"the same of one name");
	ok(never_leads(".Cargo", 6) && never_leads(".claude", 7) && !never_leads(".cargo", 5) &&
			!never_leads("cargo", 5),
		"where a link would lead to one");
}

static void
test_explicit(void)
{
	struct err e = ERR_INIT;
	struct policy *p;
	cleanup_free char *inside = xasprintf("%s/packages/util", canonical_top);

	app_task.cache = NULL;
	app_task.sandbox = sandbox(NULL, NULL, NULL);
	p = build(NULL, &e);
	ok(p && !reads(p, "packages/app/src/a.ts") && !writes(p, "packages/app/x"),
		"{} reads nothing of its own project (%s)", e.text);
	ok(reads(p, "packages/app/node_modules/x") && reads(p, "node_modules/x"),
		"but node_modules");
	ok(reads(p, "packages/lib/x") && reads(p, "packages/util/x"),
		"without a cache every linked package");
	ok(!reads(p, "packages/app/x"), "a link to the project itself opens nothing");
	policy_free(p);

	app_task.sandbox = sandbox(LIST(".", "../../tsconfig.base.json", inside, "/opt/tool"),
		LIST("dist/", "gen/*.{c,h}"), LIST("src/b.md"));
	p = build(NULL, &e);
	ok(p != NULL, "grants (%s)", e.text);
	ok(reads(p, "packages/app/src/a.ts") && !reads(p, "packages/app/src/b.md"),
		"a deny inside of a grant");
	ok(!reads(p, "packages/app/nested/n.ts"), "a nested project is a wall");
	ok(reads(p, "tsconfig.base.json") && reads(p, "packages/util/u.ts"),
		"outside of the project, and by an absolute path");
	ok(has_rule(p, SPEC_READ, false, "/opt/tool"), "outside of the workspace");
	ok(has_rule(p, SPEC_WRITE, true, "packages/app/gen/*.c") &&
			has_rule(p, SPEC_WRITE, true, "packages/app/gen/*.h"),
		"braces are two rules");
	ok(writes(p, "packages/app/dist/x") && writes(p, "packages/app/gen/x.h") &&
			!writes(p, "packages/app/gen/x.o"),
		"writes");
	ok(policy_may_make_dir(p, "packages/app/gen") && !policy_may_make_dir(p, "packages/app/x"),
		"a missing ancestor of a granted name");
	policy_free(p);

	app_task.sandbox = sandbox(LIST("../.."), LIST("../.."), NULL);
	p = build(NULL, &e);
	ok(p && !reads(p, ".git/config") && !writes(p, ".git/config") && !writes(p, ".vx/x") &&
			!reads(p, ".vx/x") && reads(p, "package.json"),
		"the whole workspace is not .git and not .vx");
	policy_free(p);
	free(area);
	area = path_join(canonical_top, "volume/vx-scratch-0");
	p = build(NULL, &e);
	ok(p && !reads(p, "volume/vx-scratch-0/x") && !writes(p, "volume/vx-scratch-0/x") &&
			reads(p, "volume/x"),
		"nor where the scratches are");
	policy_free(p);
	free(area);
	area = path_join(canonical_top, ".vx/scratch");

	app_task.sandbox = sandbox(LIST("../..", "../../.git"), LIST("nested/out"), NULL);
	p = build(NULL, &e);
	ok(p && reads(p, ".git/config") && !writes(p, ".git/config"), "unless named");
	ok(p && writes(p, "packages/app/nested/out/x") && !writes(p, "packages/app/nested/x") &&
			!reads(p, "packages/app/nested/n.ts"),
		"or something inside is");
	policy_free(p);

	app_task.sandbox = sandbox(LIST("**"), NULL, NULL);
	p = build(NULL, &e);
	ok(p && has_rule(p, SPEC_READ, false, "packages/app") &&
			!reads(p, "packages/app/nested/n.ts"),
		"'**' is the directory, walls and all");
	policy_free(p);
}

static void
test_ignored(void)
{
	struct define define = {"HOME", "/usr"};
	struct err e = ERR_INIT;
	struct sandboxdef *s = sandbox(NULL, LIST("dist", ".husky"), NULL);
	struct policy *p;

	set_grants(&s->ignore_read, &s->nignore_read, LIST("secret/**", "*.log", "~/share"));
	set_grants(&s->ignore_write, &s->nignore_write, LIST("dist", "tmp", ".husky"));
	app_task.sandbox = s;
	app_task.define = &define;
	app_task.ndefine = 1;
	p = build(NULL, &e);
	ok(p && policy_ignores_read(p, "packages/app/secret") &&
			policy_ignores_read(p, "packages/app/secret/x") &&
			policy_ignores_read(p, "packages/app/a.log"),
		"ignored reads (%s)", e.text);
	ok(p && !policy_ignores_read(p, "packages/app/src/a.log") &&
			!policy_ignores_read(p, "packages/app/other"),
		"and no others");
	ok(p && policy_ignores_read(p, "packages/app/tmp/x"), "and what may not be kept");
	ok(p && !reads(p, "packages/app/secret/x"), "grant nothing");
	ok(p && policy_ignores_read(p, "/usr/share/x") && !policy_ignores_read(p, "/usr/sharex"),
		"of the home as well");
	ok(p && policy_judge_write(p, "packages/app/tmp/x") == WRITE_IGNORED, "ignored writes");
	ok(p && writes(p, "packages/app/dist/x"), "what is granted is granted");
	ok(p && policy_judge_write(p, "packages/app/other") == WRITE_UNDECLARED, "and no others");
	policy_free(p);
	app_task.define = NULL;
	app_task.ndefine = 0;
}

static void
test_kinds(void)
{
	cleanup_free char *inside = xasprintf("%s/packages/app/src/a.ts", canonical_top);
	struct err e = ERR_INIT, e2 = ERR_INIT;
	struct sandboxdef *s = sandbox(NULL, NULL, NULL);
	struct policy *p;

	app_task.sandbox = s;
	p = build(NULL, &e);
	ok(p && !p->unix_sockets && !p->sockets.n && !p->live && !p->may_nest && !p->weaker &&
			!p->hermetic && !p->git_config,
		"nothing of it by itself (%s)", e.text);
	policy_free(p);
	set_grants(&s->sockets, &s->nsockets, LIST("src/a.ts", "/usr/none.sock"));
	s->live = s->nested = s->weaker_when_nested = s->hermetic = s->git_config = true;
	p = build(NULL, &e);
	ok(p && p->unix_sockets && p->sockets.n == 2, "sockets by name (%s)", e.text);
	ok_str(p ? p->sockets.v[0] : "", inside, "in the workspace");
	ok_str(p ? p->sockets.v[1] : "", "/usr/none.sock", "and elsewhere");
	ok(p && reads(p, "packages/app/src/a.ts") && !reads(p, "packages/app/src/b.md"),
		"are names that may be seen");
	ok(p && p->live && p->may_nest && p->weaker && p->hermetic && p->git_config, "the rest");
	policy_free(p);
	s->nsockets = 0;
	s->any_socket = true;
	p = build(NULL, &e);
	ok(p && p->unix_sockets && !p->sockets.n, "any socket");
	policy_free(p);

	app_task.sandbox = NULL;
	app_task.persistent = true;
	p = build(NULL, &e2);
	ok(p && p->live, "a persistent task has the live view (%s)", e2.text);
	policy_free(p);
	app_task.persistent = false;
}

static void
test_home(void)
{
	struct err e = ERR_INIT;
	struct policy *p;
	struct define define = {"HOME", canonical_top};

	app_task.define = &define;
	app_task.ndefine = 1;
	app_task.sandbox = sandbox(LIST("~/packages/lib/src"), NULL, NULL);
	p = build(NULL, &e);
	ok(p && p->home && !strcmp(p->home, canonical_top), "the task's own home");
	ok(p && has_rule(p, SPEC_READ, false, "packages/lib/src"), "and what '~' means");
	policy_free(p);
	app_task.define = NULL;
	app_task.ndefine = 0;
}

/* A home that is the workspace: `**` takes the stores among the inputs, but only what is named is shown. */
static void
test_stores(void)
{
	static const char *const keyed[] = {"packages/app/.netrc", "packages/app/.ssh/id",
		"packages/app/.ssh/known_hosts", "packages/app/src/a.ts"};
	const struct inputs inputs = {.paths = (void *)(uintptr_t)keyed, .n = array_len(keyed)};
	cleanup_free char *home = path_join(canonical_top, "packages/app");
	struct define define = {"HOME", home};
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.define = &define;
	app_task.ndefine = 1;
	app_task.cache = &app_cache;
	app_task.sandbox = NULL;
	GLOBS(&app_cache.files, "packages/app", "**", ".ssh/known_hosts");
	p = build(&inputs, &e);
	ok(p && reads(p, "packages/app/src/a.ts"), "an input is seen");
	ok(p && !reads(p, "packages/app/.netrc") && !reads(p, "packages/app/.ssh/id"),
		"credential stores are not, though they are inputs");
	ok(p && reads(p, "packages/app/.ssh/known_hosts"), "but for what is named");
	ok(p && policy_read_is_finding(p, "packages/app/.netrc"), "to ask for one is a finding");
	ok(p && !policy_read_is_finding(p, "packages/app/.npmrc") &&
			policy_read_is_finding(p, "packages/app/src/.npmrc"),
		"but not for one that tools read at each start");
	policy_free(p);
	GLOBS(&app_cache.files, "packages/app", "src/**");
	app_task.cache = NULL;

	app_task.sandbox = sandbox(LIST("."), LIST("."), NULL);
	p = build(NULL, &e);
	ok(p && reads(p, "packages/app/src/a.ts") && !reads(p, "packages/app/.npmrc") &&
			!writes(p, "packages/app/.aws/x"),
		"nor are they with a grant of the whole project");
	policy_free(p);
	app_task.sandbox = sandbox(LIST(".", ".npmrc"), NULL, NULL);
	p = build(NULL, &e);
	ok(p && reads(p, "packages/app/.npmrc") && !reads(p, "packages/app/.netrc"),
		"one by name is");
	policy_free(p);
	app_task.define = NULL;
	app_task.ndefine = 0;

	app_task.sandbox = sandbox(LIST("."), NULL, NULL);
	p = build(NULL, &e);
	ok(p && reads(p, "packages/app/.npmrc"), "where no home is, it is a file like any other");
	policy_free(p);
}

static void
test_links(void)
{
	struct err e = ERR_INIT, e2 = ERR_INIT;
	struct policy *p;

	app_task.sandbox = sandbox(NULL, LIST("leaves"), NULL);
	ok(!build(NULL, &e), "a write grant that a link leads out of the project");
	ok_err(&e, "'leaves' leads through a link to <workspace>/packages/lib/out",
		"is refused, with where it lands");
	app_task.sandbox = sandbox(NULL, LIST("far/**"), NULL);
	ok(!build(NULL, &e2), "and out of the workspace");
	ok_err(&e2, "'far/**' leads through a link to /tmp/x", "too");
	app_task.sandbox = sandbox(NULL, LIST("stays/*.o"), NULL);
	e = (struct err)ERR_INIT;
	ok(!build(NULL, &e),
		"nor does one lead through a link that stays: a task may have made it");
	ok_err(&e, "'stays/*.o' leads through a link", "the link is named");
	app_task.sandbox = sandbox(NULL, LIST("circle/x"), NULL);
	e = (struct err)ERR_INIT;
	ok(!build(NULL, &e), "nor where links lead in a circle");
	ok_err(&e, "'circle/x' leads through more than 40 links, or in a circle: remove the link",
		"which is said");
	app_task.sandbox = sandbox(NULL, LIST("stays"), NULL);
	e = (struct err)ERR_INIT;
	p = build(NULL, &e);
	ok(p && writes(p, "packages/app/stays") && !writes(p, "packages/app/real/out/a.o"),
		"a literal grant of a link is a grant of the link (%s)", e.text);
	policy_free(p);
}

/* So could one that may write outside of the workspace. */
static void
test_links_from_outside(void)
{
	cleanup_free char *link = xasprintf("%s-link", canonical_top);
	cleanup_free char *below = xasprintf("%s/lib", link);
	cleanup_free char *target = xasprintf("%s/packages", canonical_top);

	if (symlink(target, link))
		bug("link %s: %s", link, strerror(errno));
	for (int i = 0; i < 4; i++) {
		const char *const *list = i & 1 ? LIST(below) : LIST(link);
		struct err e = ERR_INIT;

		app_task.sandbox = i & 2 ? sandbox(NULL, list, NULL) : sandbox(list, NULL, NULL);
		ok(!build(NULL, &e), "an absolute grant that a link leads into the workspace");
		ok_err(&e,
			i & 1 ? "leads through a link to <workspace>/packages/lib"
			      : "leads through a link to <workspace>/packages",
			"is refused");
	}
	unlink(link);
}

/* A task that could write in node_modules in an earlier run chose where these lead. */
static void
test_planted_links(void)
{
	static const struct {
		const char *target;
		const char *opens; /* by that link only */
		bool with_cache, without;
	} v[] = {
		{"../../util", "packages/util/u.ts", false, true}, /* a project */
		{"../../lib", "packages/lib/README.md", true, true},
		{"../../util/node_modules/.store/x", "packages/util/node_modules/.store/x/i.js",
			false, true},
		{"../../lib/node_modules", "packages/lib/node_modules/x/i.js", false, false},
		{"../../util/src", "packages/util/src/x", false, false}, /* not all of a project */
		{"../../../tools", "tools/x", false, false},             /* none at all */
		{"../../../.git", ".git/config", false, false},
		{"../../../.git/modules", ".git/modules/x", false, false},
		{"../../../.vx", ".vx/x", false, false},
		{"..", "packages/app/src/a.ts", false, false}, /* itself */
		{"../..", "packages/util/u.ts", false, false}, /* what is above it */
		{"../../..", "package.json", false, false},
		{"../../../packages/../", "package.json", false, false},
		{"../src", "packages/app/src/a.ts", false, false},
		{"../nested", "packages/app/nested/n.ts", false, true},
	};
	static const char path[] = "packages/app/node_modules/planted";
	struct project whole = {.name = "whole", .dir = "", .index = 4};
	static struct project *projects[5];

	/* the root is a project too, and holds all others */
	memcpy(projects, w.projects, 4 * sizeof(*projects));
	projects[4] = &whole;
	w.projects = projects;
	w.nprojects = 5;
	htab_put(&w.by_dir, "", &whole);
	unlinkat(rootfd, "packages/app/node_modules/lib", 0);
	unlinkat(rootfd, "packages/app/node_modules/@scope/util", 0);
	app_task.sandbox = sandbox(NULL, NULL, NULL);
	for (size_t i = 0; i < array_len(v); i++) {
		link_to(v[i].target, path);
		for (int cached = 0; cached < 2; cached++) {
			struct err e = ERR_INIT;
			struct policy *p;

			app_task.cache = cached ? &app_cache : NULL;
			p = build(NULL, &e);
			ok(p && reads(p, v[i].opens) == (cached ? v[i].with_cache : v[i].without),
				"%s, %s a cache: %s (%s)", v[i].target, cached ? "with" : "without",
				v[i].opens, e.text);
			policy_free(p);
		}
		unlinkat(rootfd, path, 0);
	}
	w.nprojects = 4;
	htab_put(&w.by_dir, "", NULL);
	link_to("../../lib", "packages/app/node_modules/lib");
	link_to("../../../util", "packages/app/node_modules/@scope/util");
}

/* Such a link does not stop the task. */
static void
test_bad_links(void)
{
	cleanup_free char *name = xcalloc(1, 301), *target = NULL;
	struct err e = ERR_INIT;
	struct policy *p;

	memset(name, 'x', 300);
	target = xasprintf("../../%s", name);
	link_to(target, "packages/app/node_modules/long");
	link_to("loop", "packages/app/node_modules/loop");
	link_to("../../lib/README.md/x", "packages/app/node_modules/file");
	app_task.cache = NULL;
	app_task.sandbox = sandbox(NULL, NULL, NULL);
	p = build(NULL, &e);
	ok(p && reads(p, "packages/lib/x"), "links that lead nowhere open nothing (%s)", e.text);
	ok(!policy_read_is_finding(p, "tools"), "the wall");
	policy_free(p);
	link_to("../../../tools/deep/pkg", "packages/app/node_modules/deep");
	p = build(NULL, &e);
	ok(policy_read_is_finding(p, "tools/deep/pkg/x") && policy_read_is_finding(p, "tools") &&
			!policy_read_is_finding(p, "tools/deep/other"),
		"a package that is withheld, also where a directory above it is hidden as a whole");
	policy_free(p);
	unlinkat(rootfd, "packages/app/node_modules/deep", 0);
	unlinkat(rootfd, "packages/app/node_modules/long", 0);
	unlinkat(rootfd, "packages/app/node_modules/loop", 0);
	unlinkat(rootfd, "packages/app/node_modules/file", 0);
}

static void
grant_is(const struct policy *p, bool write, const char *path, const char *want)
{
	cleanup_free char *text = policy_grant_text(p, write, path);
	cleanup_free char *whole = xasprintf(
		"%s%s", want, write && !p->derived ? ", or ignore.write to throw it away" : "");

	ok_str(text, whole, path);
}

static void
check_inputs_text(const struct policy *p)
{
	struct strvec v = STRVEC_INIT;
	char *text;

	strvec_push(&v, "packages/app/nested/n.ts");
	strvec_push(&v, "packages/app/README");
	strvec_push(&v, "tsconfig.json");
	strvec_push(&v, "packages/app/.env");
	text = policy_inputs_text(p, &v);
	ok_str(text,
		"cache.inputs.files: [\"README\"], cache.inputs.workspaceFiles: "
		"[\"packages/app/nested/n.ts\", \"tsconfig.json\"]",
		"what to key, each where it belongs, and nothing that git ignores");
	free(text);
	strvec_release(&v);
}

/* What a finding says to write: JSON, in the spelling of the project's config. */
static void
test_grant_text(void)
{
	cleanup_free char *own = NULL;
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.cache = NULL;
	app_task.sandbox = sandbox(LIST("src"), NULL, NULL);
	p = build(NULL, &e);
	grant_is(p, false, "packages/app/README", "allow.read: [\"README\"]");
	grant_is(p, false, "packages/util/u[1].ts", "allow.read: [\"../util/u\\\\[1\\\\].ts\"]");
	grant_is(p, false, "packages/app/a\"b\n", "allow.read: [\"a\\\"b\\u000a\"]");
	grant_is(p, true, "packages/app", "allow.write: [\".\"]");
	grant_is(p, true, "packages/app/~x", "allow.write: [\"./~x\"]");
	own = policy_grant_text(p, true, ".vx/x");
	ok_str(own, "no entry does, it is vx's own directory", "for .vx nothing is promised");
	policy_free(p);

	app_task.cache = &app_cache;
	p = build(NULL, &e);
	grant_is(p, false, "packages/app/README",
		"allow.read: [\"README\"], and cache.inputs.files: [\"README\"]");
	grant_is(p, false, "packages/app", "allow.read: [\".\"], and cache.inputs.files: [\"**\"]");
	grant_is(p, false, "packages/util/u.ts",
		"allow.read: [\"../util/u.ts\"], and cache.inputs.workspaceFiles: "
		"[\"packages/util/u.ts\"]");
	grant_is(p, false, "packages/app/nested/n.ts",
		"allow.read: [\"nested/n.ts\"], and cache.inputs.workspaceFiles: "
		"[\"packages/app/nested/n.ts\"]");
	grant_is(p, false, "packages/app/src/a.ts", "allow.read: [\"src/a.ts\"]");
	grant_is(p, false, "tsconfig.base.json", "allow.read: [\"../../tsconfig.base.json\"]");
	grant_is(p, false, "packages/app/package.json", "allow.read: [\"package.json\"]");
	grant_is(p, false, "packages/lib/dist/l.js", "allow.read: [\"../lib/dist/l.js\"]");
	grant_is(p, true, "packages/app/gen",
		"allow.write: [\"gen\"], and cache.outputs.files: [\"gen\"]");
	grant_is(p, true, "packages/util/gen",
		"allow.write: [\"../util/gen\"], and cache.outputs.workspaceFiles: "
		"[\"packages/util/gen\"]");
	grant_is(p, true, "packages/app/dist/a", "allow.write: [\"dist/a\"]");
	grant_is(p, true, "packages/app/dist/tmp/a", "allow.write: [\"dist/tmp/a\"]");
	grant_is(p, true, "packages/app/node_modules/.cache/a",
		"allow.write: [\"node_modules/.cache/a\"]");
	grant_is(p, true, "packages/app/package.json", "allow.write: [\"package.json\"]");
	grant_is(p, false, "packages/app/.env",
		"allow.read: [\".env\"] (git ignores it, so it cannot be in the key)");
	grant_is(p, false, "packages/app/.git/HEAD",
		"allow.read: [\".git/HEAD\"] (it is git's own, so it cannot be in the key)");
	files.listed_ns = 1;
	grant_is(p, false, "packages/app/.env",
		"allow.read: [\".env\"] (it came after vx had listed the files, so it cannot be in "
		"the key)");
	files.listed_ns = UINT64_MAX;
	check_inputs_text(p);
	policy_free(p);

	/* A grant of what is denied by an entry as long would change nothing. */
	app_task.sandbox = sandbox(LIST("."), LIST("out"), LIST("README", "**/*.key"));
	set_grants(&app_task.sandbox->deny_write, &app_task.sandbox->ndeny_write,
		LIST("out/keep", "../util"));
	p = build(NULL, &e);
	grant_is(p, false, "packages/app/README",
		"take \"README\" out of deny.read, and cache.inputs.files: [\"README\"]");
	grant_is(p, false, "packages/app/src/a.key",
		"take \"**/*.key\" out of deny.read (git ignores it, so it cannot be in the key)");
	grant_is(p, true, "packages/app/out/.vscode",
		"allow.write: [\"out/.vscode\"] (names that tools obey need an entry of their "
		"own), and cache.outputs.files: [\"out/.vscode\"]");
	grant_is(p, true, "packages/app/out/.git",
		"allow.write: [\"out/.git\"] (names that tools obey need an entry of their own), "
		"and cache.outputs.files: [\"out/.git\"]");
	grant_is(p, true, "packages/app/else/.vscode",
		"allow.write: [\"else/.vscode\"], and cache.outputs.files: [\"else/.vscode\"]");
	grant_is(p, true, "packages/app/out/keep/x",
		"take \"out/keep\" out of deny.write, and cache.outputs.files: [\"out/keep/x\"]");
	grant_is(p, true, "packages/util/x",
		"take \"../util\" out of deny.write, and allow.write: [\"../util/x\"], and "
		"cache.outputs.workspaceFiles: [\"packages/util/x\"]");
	policy_free(p);

	app_task.sandbox = NULL;
	p = build(NULL, &e);
	grant_is(p, false, "packages/app/README", "cache.inputs.files: [\"README\"]");
	grant_is(p, false, "packages/util/u.ts",
		"cache.inputs.workspaceFiles: [\"packages/util/u.ts\"]");
	grant_is(p, true, "packages/app/gen", "cache.outputs.files: [\"gen\"]");
	grant_is(p, true, "packages/util/gen",
		"cache.outputs.workspaceFiles: [\"packages/util/gen\"]");
	grant_is(p, true, "packages/util/package.json",
		"exec.sandbox, in place of what is derived, with allow.write: "
		"[\"../util/package.json\"]");
	grant_is(p, false, "packages/util/dist/u.js",
		"\"packages/util/dist/u.js\" is ignored by git: name the task that makes it in "
		"dependsOn");
	grant_is(p, false, "packages/app/.env",
		"exec.sandbox, in place of what is derived, with allow.read: [\".env\"] (git "
		"ignores it, so it cannot be in the "
		"key)");
	ok(!policy_read_is_finding(p, "packages/app/lib/__pycache__") &&
			policy_read_is_finding(p, "packages/app/lib/pycache"),
		"an old cache of a tool is hidden, and no finding");
	policy_free(p);

	app_task.cache = NULL;
	p = build(NULL, &e);
	grant_is(p, false, "packages/util/u.ts",
		"exec.sandbox, in place of what is derived, with allow.read: [\"../util/u.ts\"]");
	policy_free(p);
}

#define WITHHELD                                                                                   \
	"packages/util, linked as packages/app/node_modules/@scope/util, is hidden from it, as "   \
	"its "                                                                                     \
	"key has nothing of that project: an edit there would not run it again"
static struct taskdef util_tasks[] = {{.name = "all"}, {.name = "gen", .command = "true"}};

static void
withheld_is(const struct policy *p, const char *path, const char *want)
{
	cleanup_free char *text = policy_withheld_text(p, path);

	ok_str(text ? text : "", want, path);
}

static void
test_keyed_links(void)
{
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.cache = &app_cache;
	app_task.sandbox = sandbox(LIST("src"), LIST("dist"), NULL);
	p = build(NULL, &e);
	ok(p && reads(p, "packages/lib/README.md"), "a package whose task is folded in (%s)",
		e.text);
	ok(!reads(p, "packages/util/u.ts"), "one that is not is withheld");
	ok(!has_rule(p, SPEC_DENY_READ, false, "packages/util"), "by not granting it");
	ok(policy_read_is_finding(p, "packages/util/u.ts"), "and a read of it a finding");
	withheld_is(p, "packages/util/u.ts", WITHHELD);
	withheld_is(p, "packages/util", WITHHELD);
	withheld_is(p, "packages/lib/README.md", "");
	withheld_is(p, "packages/app/README", "");
	util.def = (struct projectdef){.tasks = util_tasks, .ntasks = array_len(util_tasks)};
	withheld_is(p, "packages/util/u.ts",
		WITHHELD "; to show it, dependsOn: [\"util#gen\"], or what is said above");
	util.def = (struct projectdef){0};
	ok(policy_read_is_finding(p, "packages/app/README") &&
			!policy_read_is_finding(p, "packages/other/x"),
		"as in the project; elsewhere it is the wall");
	ok(has_rule(p, SPEC_OUTPUT, false, "packages/app/dist"), "its outputs are hidden");
	ok(policy_is_output(p, "packages/app/dist/x") &&
			!policy_is_output(p, "packages/app/dist/tmp/x") &&
			!policy_is_output(p, "packages/app/src/x"),
		"what is an output");
	policy_free(p);
}

/* As isolated installations link: what lib needs is in its own node_modules. */
static void
test_links_of_links(void)
{
	struct err e = ERR_INIT;
	struct policy *p;
	static struct taskdef util_task;
	static struct cachedef util_cache;
	static struct node util_node, *deps_of_lib[] = {&util_node};

	util_task = (struct taskdef){.name = "build", .command = "true", .cache = &util_cache};
	util_node = (struct node){.id = "util#build", .project = &util, .def = &util_task};
	unlinkat(rootfd, "packages/app/node_modules/@scope/util", 0);
	link_to("../../../util", "packages/lib/node_modules/@scope/util");
	link_to("../../app", "packages/util/node_modules/app");
	link_to("../../lib", "packages/util/node_modules/lib");
	link_to("../../../src", "packages/util/node_modules/src");
	app_task.sandbox = sandbox(LIST("src"), LIST("dist"), NULL);
	app_task.cache = NULL;
	p = build(NULL, &e);
	ok(p && reads(p, "packages/util/u.ts"), "what a linked package links (%s)", e.text);
	ok(!reads(p, "packages/app/README"), "but not the project of the task");
	policy_free(p);

	app_task.cache = &app_cache;
	p = build(NULL, &e);
	ok(p && !reads(p, "packages/util/u.ts"), "with a key, not what that has nothing of");
	ok(policy_read_is_finding(p, "packages/util/u.ts"), "a read of it is a finding");
	policy_free(p);

	lib_node.folded = deps_of_lib;
	lib_node.nfolded = 1;
	util.config = "packages/util/vx.config.ts"; /* git ignores it */
	p = build(NULL, &e);
	ok(p && reads(p, "packages/util/u.ts"), "but what it folds, however far");
	ok(!reads(p, "packages/util/vx.config.ts") && !reads(p, "packages/util/vx.config.mts") &&
			!reads(p, "packages/util/vx.workspace.cjs") &&
			reads(p, "packages/util/vx.workspaces"),
		"without its config, in whatever language");
	ok(!policy_read_is_finding(p, "packages/util/vx.config.ts"), "to ask for it is no finding");
	policy_free(p);
	util.config = NULL;
	lib_node.nfolded = 0;
	fs_remove_tree(rootfd, "packages/lib/node_modules");
	fs_remove_tree(rootfd, "packages/util/node_modules");
	link_to("../../../util", "packages/app/node_modules/@scope/util");
}

/* Of tasks that may run meanwhile: hidden by a rule, so that no directory above passes whole. */
static void
test_other_outputs(void)
{
	static const char *const in[] = {"packages/app/src/a.ts", "packages/lib/gen/a.in"};
	struct inputs inputs = {.paths = (const char **)(uintptr_t)in, .n = array_len(in)};
	static struct taskdef of_app[2], of_lib[1];
	static struct cachedef other, far;
	struct err e = ERR_INIT;
	struct policy *p;

	GLOBS(&other.outputs, "packages/app", "gen/**", "src/*.{js,map}", "dist/x");
	GLOBS(&far.outputs, "packages/lib", "gen/**", "dist/**");
	app.def.tasks = of_app;
	app.def.ntasks = 2;
	of_app[0] = (struct taskdef){.name = "gen", .command = "true", .cache = &other};
	of_app[1] = (struct taskdef){.name = "none", .command = "true"};
	lib.def.tasks = of_lib;
	lib.def.ntasks = 1;
	of_lib[0] = (struct taskdef){.name = "gen", .command = "true", .cache = &far};
	app_task.sandbox = NULL;
	app_task.cache = &app_cache;
	unlinkat(rootfd, "packages/app/node_modules/lib", 0);
	p = build(&inputs, &e);
	ok(p && has_rule(p, SPEC_DENY_READ, false, "packages/app/gen") &&
			has_rule(p, SPEC_DENY_READ, true, "packages/app/src/*.js") &&
			has_rule(p, SPEC_DENY_READ, true, "packages/app/src/*.map"),
		"outputs of another task of the project (%s)", e.text);
	ok(has_rule(p, SPEC_DENY_READ, false, "packages/lib/gen"),
		"and of a project with inputs of this one");
	ok(reads(p, "packages/app/src/a.ts") && reads(p, "packages/lib/gen/a.in"),
		"do not take the inputs away");
	ok(reads(p, "packages/lib/dist/l.js") &&
			!has_rule(p, SPEC_DENY_READ, false, "packages/lib/dist"),
		"nor what is granted");
	ok(writes(p, "packages/app/dist/x"), "nor the task's own outputs");
	policy_free(p);

	app_task.sandbox = sandbox(LIST("**/*.js"), NULL, NULL);
	p = build(&inputs, &e);
	ok(p && reads(p, "packages/app/gen/x.js") && reads(p, "packages/app/src/x.js"),
		"nor what a pattern grants");
	policy_free(p);

	app_task.sandbox = sandbox(LIST("src", "gen/a"), NULL, NULL);
	p = build(&inputs, &e);
	ok(p && reads(p, "packages/app/gen/a/x") && !reads(p, "packages/app/gen/b") &&
			reads(p, "packages/app/src/x.js"),
		"nor what a path does");
	policy_free(p);
	app.def.ntasks = lib.def.ntasks = 0;
	link_to("../../lib", "packages/app/node_modules/lib");
}

static void
test_derived(void)
{
	static const char *const in[] = {
		"packages/app/link", "packages/app/src/a.ts", "tsconfig.base.json"};
	struct inputs inputs = {.paths = (const char **)(uintptr_t)in, .n = array_len(in)};
	cleanup_strvec struct strvec unkeyed = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.sandbox = NULL;
	app_task.cache = &app_cache;
	p = build(&inputs, &e);
	ok(p && p->derived, "derived (%s)", e.text);
	ok(reads(p, "packages/app/src/a.ts") && reads(p, "tsconfig.base.json") &&
			reads(p, "packages/app/package.json"),
		"reads its inputs and its manifest");
	ok(!reads(p, "packages/app/src/b.md") && !reads(p, "packages/app/.env") &&
			!reads(p, "packages/app/vx.config.json") && !reads(p, "package.json"),
		"nothing else");
	ok(reads(p, "packages/lib/dist/l.js"), "the outputs of what is folded in");
	ok(writes(p, "packages/app/dist/x") && writes(p, "packages/app/dist/tmp/x") &&
			!writes(p, "packages/app/x"),
		"writes its outputs, those of '!' too");
	ok_int(policy_judge_write(p, "packages/app/node_modules/.cache/x"), WRITE_IGNORED,
		"tool caches are ignored");
	ok_int(policy_judge_write(p, "node_modules/.vite-temp"), WRITE_IGNORED,
		"those of the root too");
	ok(reads(p, "packages/app/node_modules/x/a") && reads(p, "node_modules/x/a") &&
			!reads(p, "packages/app/node_modules/.cache/x") &&
			!reads(p, "node_modules/.cache/x") &&
			!reads(p, "packages/lib/node_modules/.vite/x"),
		"and old ones are not there");
	ok(!policy_read_is_finding(p, "packages/app/node_modules/.cache"), "which is no finding");
	ok_int(policy_judge_write(p, "packages/app/dist/.npmrc"), WRITE_NEVER, "some names never");
	ok_int(policy_unkeyed(p, &inputs, 3, &unkeyed, &e), 1,
		"what is readable without being in the key");
	ok_str(unkeyed.n ? unkeyed.v[0] : "", "packages/lib/README.md", "is in a linked package");
	policy_free(p);

	GLOBS(&app_cache.outputs, "packages/app", "node_modules/.vite/**");
	p = build(&inputs, &e);
	ok(writes(p, "packages/app/node_modules/.vite/x") &&
			!reads(p, "packages/app/node_modules/.cache/x"),
		"one that is an output is what that says");
	policy_free(p);
	GLOBS(&app_cache.outputs, "packages/app", "dist/**", "!dist/tmp/**");

	/* What "!" takes back is not in the key of who makes it. */
	unlinkat(rootfd, "packages/app/node_modules/lib", 0);
	GLOBS(&lib_cache.outputs, "packages/lib", "dist/**", "!dist/tmp/**");
	put("packages/lib/dist/tmp/x");
	strvec_release(&unkeyed);
	p = build(&inputs, &e);
	ok_int(policy_unkeyed(p, &inputs, 3, &unkeyed, &e), 1, "outputs with exceptions");
	ok_str(unkeyed.n ? unkeyed.v[0] : "", "packages/lib/dist/tmp/x", "are not covered whole");
	policy_free(p);
	GLOBS(&lib_cache.outputs, "packages/lib", "dist/**");
	link_to("../../lib", "packages/app/node_modules/lib");

	app_task.cache = NULL;
	p = build(&inputs, &e);
	ok(p && writes(p, "packages/app/x") && !writes(p, "packages/app/nested/x") &&
			!writes(p, "packages/lib/x"),
		"without a cache: its project, but no nested one");
	ok(!reads(p, "packages/app/node_modules/.cache/x"), "nor old caches of tools");
	policy_free(p);
}

static void
test_unkeyed(void)
{
	static const char *const in[] = {"packages/app/src/a.ts", "packages/app/src/b.md"};
	struct inputs inputs = {.paths = (const char **)(uintptr_t)in, .n = array_len(in)};
	cleanup_strvec struct strvec unkeyed = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.cache = &app_cache;
	app_task.sandbox = sandbox(LIST("src", "../lib/src", "../lib/dist"), LIST("dist"), NULL);
	app_node.deps[0] = &lib_node;
	unlinkat(rootfd, "packages/app/node_modules/lib", 0);
	p = build(&inputs, &e);
	ok_int(policy_unkeyed(p, &inputs, 3, &unkeyed, &e), 0,
		"own inputs, and inputs and outputs of what is folded in, are covered");
	policy_free(p);

	app_task.sandbox = sandbox(LIST("."), LIST("dist"), NULL);
	p = build(&inputs, &e);
	ok_int(policy_unkeyed(p, &inputs, 1, &unkeyed, &e), 1, "a wide grant is not, bounded");
	ok_str(unkeyed.n ? unkeyed.v[0] : "", "packages/app/.env", "an ignored file is named");
	policy_free(p);

	link_to("../../util/u.ts", "packages/app/src/l.ts");
	inputs.paths = (const char *[]){"packages/app/src/l.ts"};
	inputs.n = 1;
	app_task.sandbox = sandbox(LIST("src/l.ts"), NULL, NULL);
	strvec_release(&unkeyed);
	p = build(&inputs, &e);
	ok(p && reads(p, "packages/app/src/l.ts") && !reads(p, "packages/util/u.ts"),
		"an input that is a link is granted as a link");
	ok_int(policy_unkeyed(p, &inputs, 3, &unkeyed, &e), 0, "and its text is in the key");
	policy_free(p);
}

/* cache.outputs.workspaceFiles, of the task and of others. */
static void
test_workspace_outputs(void)
{
	static const struct taskdef *far[1];
	struct cachedef mine = app_cache, theirs = lib_cache;
	struct taskdef other = {.name = "far", .command = "true", .cache = &theirs};
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.sandbox = NULL;
	app_task.cache = &mine;
	glob_flags = GLOB_WORKSPACE;
	GLOBS(&mine.outputs, "", "reports/app/**", "packages/lib/gen/x", "packages/app/**/*.gen",
		"!packages/app/nested/keep.gen");
	GLOBS(&theirs.outputs, "", "packages/app/src/far.ts");
	glob_flags = 0;
	far[0] = &other;
	w.far = far;
	w.nfar = 1;
	p = build(NULL, &e);
	ok(p && policy_judge_write(p, "reports/app/x") == WRITE_GRANTED &&
			policy_judge_write(p, "packages/lib/gen/x") == WRITE_GRANTED &&
			policy_judge_write(p, "packages/lib/gen/y") == WRITE_UNDECLARED,
		"what is declared is granted in other projects (%s)", e.text);
	ok(policy_is_output(p, "packages/app/nested/n.gen") &&
			policy_judge_write(p, "packages/app/nested/n.gen") == WRITE_GRANTED &&
			policy_judge_write(p, "packages/app/nested/n.ts") == WRITE_UNDECLARED,
		"and in one inside its own");
	ok(!policy_is_output(p, "packages/app/nested/keep.gen"), "if it is not taken back");
	ok(policy_judge_write(p, "reports/app/.npmrc") == WRITE_NEVER,
		"never what others would obey");
	ok(policy_judge_write(p, ".vx/x.gen") == WRITE_UNDECLARED &&
			policy_judge_write(p, ".git/x.gen") == WRITE_UNDECLARED,
		"nor beyond the walls");
	policy_free(p);
	GLOBS(&mine.outputs, "packages/app", "**/*.gen");
	p = build(NULL, &e);
	ok(p && policy_judge_write(p, "packages/app/x.gen") == WRITE_GRANTED &&
			policy_judge_write(p, "packages/app/nested/x.gen") == WRITE_UNDECLARED,
		"files end at a project inside");
	policy_free(p);
	GLOBS(&mine.outputs, "packages/app", "dist/**");
	p = build(NULL, &e);
	ok(has_rule(p, SPEC_DENY_READ, false, "packages/app/src/far.ts"),
		"what a task of another project writes in this one stays hidden");
	policy_free(p);
	w.nfar = 0;
	app_task.cache = NULL;
}

/* It sees what is there, but for what it added itself. */
static void
test_additive(void)
{
	static const struct inputs none;
	struct strvec added = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct policy *p;

	app_task.sandbox = NULL;
	app_task.cache = &app_cache;
	strvec_push(&added, "packages/app/dist/added");
	if (policy_build(&w, &app_node, &files, &none, area, &added, &p, &e))
		bug("%s", e.text);
	ok(reads(p, "packages/app/dist/old") && !reads(p, "packages/app/dist/added"),
		"one that adds sees what others made");
	ok(policy_is_output(p, "packages/app/dist/old") &&
			!policy_hides_output(p, "packages/app/dist/old") &&
			policy_hides_output(p, "packages/app/dist/added"),
		"and only what it made goes before it");
	ok(policy_judge_write(p, "packages/app/dist/old") == WRITE_GRANTED, "it may write to both");
	policy_free(p);
	strvec_release(&added);
	app_task.cache = NULL;
}

int
main(void)
{
	if (!mkdtemp(top))
		bug("mkdtemp: %s", strerror(errno));
	canonical_top = realpath(top, NULL);
	area = path_join(canonical_top, ".vx/scratch");
	rootfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	arena_init(&arena);
	make_workspace();
	test_never_names();
	test_explicit();
	test_ignored();
	test_kinds();
	test_home();
	test_stores();
	test_links();
	test_links_from_outside();
	test_planted_links();
	test_bad_links();
	test_grant_text();
	test_keyed_links();
	test_links_of_links();
	test_other_outputs();
	test_derived();
	test_unkeyed();
	test_workspace_outputs();
	test_additive();
	htab_release(&w.by_dir);
	htab_release(&w.by_name);
	arena_release(&arena);
	free(canonical_top);
	free(area);
	close(rootfd);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "tests/unit/ws.h"
#include "util/arena.h"
#include "workspace/members.h"
#include "workspace/root.h"

/* Where the root is found from `from`, both relative to the temporary directory. */
static void
found(const char *from, const char *want, const char *want_cwd, const char *name)
{
	char *start = path_join(ws_path, from), *expected = path_join(ws_path, want);
	struct err e = ERR_INIT;
	struct root r;

	if (root_find(start, ROOT_EVALUATE, &r, &e) < 0) {
		ok(false, "%s", name);
		diag("%s", e.text);
	} else {
		ok_str(r.path, expected, name);
		ok_str(r.cwd, want_cwd, "and the directory in it");
		root_release(&r);
	}
	free(start);
	free(expected);
}

static void
refused(const char *from, const char *why, enum err_kind kind)
{
	char *start = path_join(ws_path, from);
	struct err e = ERR_INIT;
	struct root r;

	ok_int(root_find(start, ROOT_EVALUATE, &r, &e), -1, from);
	ok_err(&e, why, why);
	ok_int(e.kind, kind, "of that kind");
	free(start);
}

static void
noted(const char *from, const char *want, const char *name)
{
	char *start = path_join(ws_path, from);
	char *expected = want ? xasprintf("%s/%s", ws_path, want) : NULL;
	struct err e = ERR_INIT;
	struct root r;

	if (root_find(start, ROOT_EVALUATE, &r, &e) < 0)
		bug("%s", e.text);
	ok_str(r.note, expected, name);
	root_release(&r);
	free(expected);
	free(start);
}

/* A config that the workspace above does not know. */
static void
test_forgotten(void)
{
	ws_write("big/vx.workspace.json", "{'projects': ['packages/*', '!packages/out']}");
	ws_write("big/packages/a/vx.config.json", "{}");
	ws_write("big/packages/out/vx.config.json", "{}");
	ws_write("big/tools/x/vx.config.json", "{}");
	ws_write("big/tools/x/src/f", "");
	ws_write("big/tools/bare/package.json", "{}");
	ws_write("big/tools/own/vx.config.json", "{}");
	ws_write("big/tools/own/vx.workspace.json", "{}");
	ws_write("big/clone/vx.config.json", "{}");
	ws_write("big/clone/.git/HEAD", "");
	noted("big/packages/a", NULL, "a member");
	noted("big", NULL, "the root");
	noted("big/tools/x",
		"big/vx.workspace.json does not name tools/x, which so is a workspace of its own: "
		"add \"tools/x\" there, or put a vx.workspace.json that says {} here",
		"a config that no glob names is said");
	noted("big/tools/x/src",
		"big/vx.workspace.json does not name tools/x, which so is a workspace of its own: "
		"add \"tools/x\" there, or put a vx.workspace.json that says {} here",
		"and below it");
	noted("big/packages/out", NULL, "but not one that '!' leaves out");
	noted("big/tools/bare", NULL, "nor one of a package manager alone");
	noted("big/tools/own", NULL, "nor one that says so itself");
	noted("big/clone", NULL, "nor another repository");
	ws_write("yaml/vx.config.yaml", "");
	found("yaml", "yaml", "", "a config that is not read, which is then said");
	ws_write("toml/vx.workspace.toml", "");
	refused("toml",
		"toml/vx.workspace.toml: is not read: write it as vx.workspace.json (where "
		"comments "
		"are no errors) or vx.workspace.ts",
		ERR_CONFIG);
}

static void
test_discovery(void)
{
	ws_write("empty/x", "");
	refused("empty", "no workspace in", ERR_USAGE);
	refused("absent", "No such file", ERR_USAGE);

	ws_write("npm/package.json", "{'workspaces': ['packages/*', '!packages/out']}");
	ws_write("npm/packages/a/package.json", "{}");
	ws_write("npm/packages/a/src/deep/x", "");
	ws_write("npm/packages/out/package.json", "{}");
	ws_write("npm/tools/t/package.json", "{}");
	ws_write("npm/docs/x", "");
	found("npm", "npm", "", "the declaring root");
	found("npm/packages/a", "npm", "packages/a", "a member resolves to its root");
	found("npm/packages/a/src/deep", "npm", "packages/a/src/deep", "and so does what is in it");
	found("npm/packages/out", "npm/packages/out", "", "a negated member does not");
	found("npm/tools/t", "npm/tools/t", "", "nor does what no glob names");
	found("npm/docs", "npm", "docs", "no manifest of its own: the nearest candidate");

	ws_write("npm/packages/a/package.json", "{'workspaces': ['inner/*']}");
	ws_write("npm/packages/a/inner/i/package.json", "{}");
	found("npm/packages/a/inner/i", "npm/packages/a", "inner/i",
		"the nearest that claims wins");
	found("npm/packages/a/src", "npm", "packages/a/src",
		"one that does not claim is passed over");
	found("npm/packages/a", "npm/packages/a", "", "a declared root claims itself");

	ws_write("npm/packages/p/pnpm-workspace.yaml", "packages: [x/*]\n");
	ws_write("npm/packages/p/y/package.json", "{}");
	found("npm/packages/p/y", "npm/packages/p/y", "", "a pnpm file stops the walk");
	ws_write("npm/packages/p/x/new/file", "");
	found("npm/packages/p/x/new", "npm/packages/p", "x/new", "and claims by its globs");

	ws_write("linked/vx.workspace.json", "{'projects': ['packages/*', 'by/link/*']}");
	ws_write("linked/packages/a/vx.config.json", "{}");
	ws_write("linked/vendor/b/vx.config.json", "{}");
	ws_write("linked/vendor/b/src/x", "");
	ws_write("linked/vendor/c/vx.config.json", "{}");
	ws_write("linked/other/d/vx.config.json", "{}");
	ws_link("linked/packages/b", "../vendor/b");
	ws_link("linked/packages/root", "..");
	ws_write("linked/by/x", "");
	ws_link("linked/by/link", "../other");
	found("linked/vendor/b", "linked", "vendor/b", "where a member that is a link really lies");
	found("linked/packages/b/src", "linked", "vendor/b/src", "and below");
	found("linked/vendor/c", "linked/vendor/c", "", "nothing beside it");
	found("linked/other/d", "linked", "other/d", "one behind a link");
}

static void
test_precedence(void)
{
	ws_write("both/pnpm-workspace.yaml", "packages: [a/*]\n");
	ws_write("both/package.json", "{'workspaces': ['b/*']}");
	ws_write("both/a/x/package.json", "{}");
	ws_write("both/b/x/package.json", "{}");
	found("both/a/x", "both", "a/x", "the yaml list is the one read");
	found("both/b/x", "both/b/x", "", "and not package.json");
	ws_write("both/vx.workspace.json", "{'projects': ['b/*']}");
	found("both/b/x", "both", "b/x", "\"projects\" outranks both");
	ws_remove("both/vx.workspace.json");
	ws_write("both/pnpm-workspace.yaml", "catalog: {}\n");
	found("both/b/x", "both", "b/x", "a yaml without packages defers to package.json");

	ws_write("single/vx.config.json", "{}");
	ws_write("single/src/x", "");
	found("single/src", "single", "src", "a lone vx.config.json is a workspace of one");
	ws_write("bad/vx.workspace.ts", "");
	setenv("PATH", ws_path, 1);
	refused("bad", "bad/vx.workspace.ts: no runtime of JavaScript is on the PATH", ERR_CONFIG);
	ws_write("broken/package.json", "{");
	refused("broken", "broken/package.json", ERR_CONFIG);
	ws_write("below/vx.workspace.json", "{'projects': ['../*']}");
	refused("below",
		"/below/vx.workspace.json:1:15: projects[0]: '../*': leaves the workspace's root, "
		"the directory of vx.workspace.json: move that file up",
		ERR_CONFIG);
}

static bool
claims(const char *glob, const char *path)
{
	struct strvec globs = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct members m;
	struct arena a;
	bool r = false;

	arena_init(&a);
	strvec_push(&globs, glob);
	if (members_parse(&globs, "package.json", "/w", &a, &m, &e) < 0) {
		diag("%s", e.text);
	} else {
		r = members_claim(&m, path);
		members_release(&m);
	}
	strvec_release(&globs);
	arena_release(&a);
	return r;
}

static void
glob_refused(const char *glob, const char *why)
{
	struct strvec globs = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct members m;
	struct arena a;

	arena_init(&a);
	strvec_push(&globs, glob);
	ok_int(members_parse(&globs, "package.json", "/w", &a, &m, &e), -1, glob);
	ok_err(&e, why, why);
	strvec_release(&globs);
	arena_release(&a);
}

static void
test_globs(void)
{
	ok(claims("packages/*", "packages/a"), "a star is one component");
	ok(claims("packages/*", "packages/a/src"), "what lies in a member is claimed");
	ok(!claims("packages/*", "packages"), "the parent is not");
	ok(!claims("packages/*", "other/packages/a"), "nor is it found deeper");
	ok(claims("./packages//*/./", "packages/a"), "spellings are normalised");
	ok(claims("packages/**", "packages"), "two stars can be nothing");
	ok(claims("**/lib", "a/b/lib"), "or many");
	ok(claims("a/**/b/**/c", "a/x/b/y/b/c"), "with backtracking");
	ok(!claims("a/**/b/**/c", "a/x/c"), "that fails where it must");
	ok(claims("{apps,packages}/*", "apps/web"), "braces");
	ok(claims("{a,{b,c}/d}", "c/d"), "in braces");
	ok(!claims("{a}", "a") && claims("{a}", "{a}"), "one arm is no choice");
	ok(claims("pkg-[ab]", "pkg-b") && !claims("pkg-[ab]", "pkg-c"), "classes");
	ok(claims("pkg-[!ab]", "pkg-c"), "negated classes");
	ok(!claims("*", ".git") && claims(".x/*", ".x/a"), "a leading dot is to be written");
	ok(!claims("**", "node_modules/x") && !claims("packages/*", "packages/node_modules"),
		"node_modules holds no members");
	ok(claims("a\\*", "a*") && !claims("a\\*", "ab"), "escapes");
	glob_refused("packages/!(a)", "\"packages/*\" and \"!packages/a\"");
	glob_refused("packages/!(a|b)/x",
		"\"packages/*/x\" and \"!packages/a/x\" and \"!packages/b/x\"");
	glob_refused("!(a)", "\"*\" and \"!a\"");
	glob_refused("@(apps|libs)/*", "\"{apps,libs}/*\"");
	glob_refused("packages/lib-+(a)", "extglob");
	glob_refused("../x", "(/x) is outside the workspace root /w: move package.json up to a "
			     "directory that holds all members, or leave the entry out");
	glob_refused("/x/y", "(/x/y) is outside");
	glob_refused("/w/p/*", "\"/w/p/*\": write it from the workspace root: \"p/*\"");
	glob_refused("a/../b", "member glob \"a/../b\" holds \"..\": write the path without it");
}

int
main(void)
{
	ws_begin();
	test_discovery();
	test_forgotten();
	test_precedence();
	test_globs();
	ws_end();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"

static int
load(const char *from, struct root *root, struct workspace *w, struct err *e)
{
	char *start = path_join(ws_path, from);
	int r = root_find(start, ROOT_EVALUATE, root, e);

	free(start);
	if (r < 0)
		return -1;
	r = workspace_load(root, -1, w, e);
	if (r < 0)
		root_release(root);
	return r;
}

static void
refused(const char *from, const char *why)
{
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	ok_int(load(from, &root, &w, &e), -1, from);
	ok_err(&e, why, why);
}

/* "a b c" */
static void
names_are(struct project *const *p, size_t n, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		strbuf_addf(&sb, "%s%s", i ? " " : "", p[i]->name);
	ok_str(sb.buf, want, name);
}

static void
deps_are(const struct workspace *w, const char *project, const char *deps, const char *reach)
{
	const struct project *p = workspace_project(w, project);

	names_are(p->deps, p->ndeps, deps, project);
	if (reach)
		names_are(p->reach, p->nreach, reach, "and it reaches");
}

static void
test_members(void)
{
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	ws_write("m/package.json", "{'workspaces': ['packages/*', './libs/**', '!packages/old']}");
	ws_write("m/packages/a/package.json", "{'name': '@s/a'}");
	ws_write("m/packages/b/package.json", "{'private': true}");
	ws_write("m/packages/old/package.json", "{'name': 'old'}");
	ws_write("m/packages/none/readme", "");
	ws_write("m/packages/file", "");
	ws_write("m/packages/c/vx.config.json",
		"{'name': 'see', // a comment\n 'tasks': {'t': {'exec': {'command': 'true'}}}}");
	ws_write("m/packages/node_modules/x/package.json", "{'name': 'x'}");
	ws_write("m/libs/deep/er/package.json", "{'name': 'er'}");
	ws_write("m/libs/deep/package.json", "{'name': 'deep'}");
	ws_write("m/libs/node_modules/y/package.json", "{'name': 'y'}");
	ws_write("m/vendor/linked/package.json", "{'name': 'linked'}");
	ws_link("m/packages/l", "../vendor/linked");
	ws_link("m/packages/again", "a");
	ws_link("m/packages/dangling", "nowhere");
	ws_link("m/libs/loop", "..");
	if (load("m/packages/a", &root, &w, &e) < 0)
		bug("%s", e.text);
	names_are(w.projects, w.nprojects, "// @s/a b deep er linked see",
		"members: named by manifest, config or directory, sorted, each once");
	ok_str(workspace_project(&w, "linked")->dir, "vendor/linked",
		"a member reached through a link lies where it really is");
	ok(workspace_project(&w, "//")->is_root, "the root has its own name");
	ok(!workspace_project(&w, "m"), "and not that of the directory that it was cloned to");
	ok_str(workspace_project(&w, "see")->config, "packages/c/vx.config.json", "its config");
	ok(!workspace_project(&w, "see")->has_manifest, "without a manifest");
	ok(project_task(workspace_project(&w, "see"), "t") &&
			!project_task(workspace_project(&w, "see"), "u"),
		"tasks are found by name");
	ok_str(workspace_project_at(&w, "packages/a/src/x")->name, "@s/a", "the project of a path");
	ok_str(workspace_project_at(&w, "packages/ab")->name, "//", "is found by component");
	ok_str(workspace_project_at(&w, "libs/deep/er/x")->name, "er", "the deepest");
	names_are(workspace_project(&w, "//")->nested, workspace_project(&w, "//")->nnested,
		"deep @s/a b see linked",
		"the root's nested projects: the outermost, by directory");
	names_are(workspace_project(&w, "deep")->nested, workspace_project(&w, "deep")->nnested,
		"er", "nested in nested");
	ok_int((long long)w.nnotes, 0, "nothing to say");
	workspace_release(&w);
	root_release(&root);
}

static void
test_notes(void)
{
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	ws_write("note/package.json", "{'name': 'one'}");
	ws_write("note/vx.config.json", "{'name': 'two'}");
	if (load("note", &root, &w, &e) < 0)
		bug("%s", e.text);
	names_are(w.projects, w.nprojects, "one", "the manifest's name is the one");
	ok_int((long long)w.nnotes, 1, "a name that is not used is said");
	ok_str(w.nnotes ? w.notes[0] : "",
		"vx.config.json: \"name\": \"two\" is not used: package.json says \"one\"",
		"by both");
	workspace_release(&w);
	root_release(&root);

	ws_write(
		"miss/vx.workspace.json", "{'projects': ['p/*', '{q,r}/*', 'lib', '!p/x', 's/*']}");
	ws_write("miss/p/a/vx.config.json", "{}");
	ws_write("miss/r/b/vx.config.json", "{}");
	ws_write("miss/lib/readme", "");
	ws_link("miss/s/l", "../r/b");
	if (load("miss", &root, &w, &e) < 0)
		bug("%s", e.text);
	ok_int((long long)w.nnotes, 1, "a pattern without a project is said, others are not");
	ok_str(w.nnotes ? w.notes[0] : "",
		"vx.workspace.json: projects: \"lib\" matches no directory with a vx.config.json "
		"or "
		"package.json",
		"by name");
	workspace_release(&w);
	root_release(&root);

	ws_write("rooted/package.json", "{'workspaces': ['p/*']}");
	if (load("rooted", &root, &w, &e) < 0)
		bug("%s", e.text);
	ok_int((long long)w.nnotes, 1, "so it is where the root is a project");
	workspace_release(&w);
	root_release(&root);
	ws_write("rooted/vx.workspace.json", "{'projects': ['p/*']}");
	refused("rooted", "vx.workspace.json: projects: \"p/*\" matches no directory");
}

static void
test_no_project(void)
{
	ws_write("empty/vx.workspace.json", "{'projects': ['q/*']}");
	refused("empty", "vx.workspace.json: projects: \"q/*\" matches no directory with a "
			 "vx.config.json or "
			 "package.json");
	ws_write("empty/vx.workspace.json", "{'projects': ['q/*', '!q/x', 'lib/**']}");
	ws_write("empty/q/x/vx.config.json", "{}");
	refused("empty",
		"projects: \"q/*\" and \"lib/**\" match no directory with a vx.config.json");
	ws_write("empty/vx.workspace.json", "{'projects': []}");
	refused("empty", "vx.workspace.json: projects: the list is empty, and there is no "
			 "vx.config.json or package.json beside it");
	ws_write("empty/vx.workspace.json", "{}");
	refused("empty",
		"holds neither a vx.config.json nor a package.json, and no file there names "
		"projects: write \"projects\": [\"packages/*\"] in its vx.workspace.json");
	ws_write("pnpm/pnpm-workspace.yaml", "packages: [x/*]\n");
	refused("pnpm", "pnpm-workspace.yaml: packages: \"x/*\" matches no directory");
}

static void
test_refusals(void)
{
	ws_write("twins/vx.workspace.json", "{'projects': ['p/*', 'q/*']}");
	ws_write("twins/p/x/package.json", "{'name': 'x'}");
	ws_write("twins/q/x/vx.config.json", "{}");
	refused("twins", "two projects are called \"x\": p/x and q/x");
	refused("twins", "write \"name\": \"another-name\" in q/x/vx.config.json");

	ws_write("two/vx.config.json", "{}");
	ws_write("two/vx.config.mjs", "");
	refused("two", "holds two configs, vx.config.json and vx.config.mjs");
	ws_write("unread/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("unread/vx.config.yaml.txt", "");
	ws_write("unread/p/a/vx.config.json", "{}");
	ws_write("unread/p/b/vx.config.jsonc", "{}");
	refused("unread",
		"p/b/vx.config.jsonc: is not read: write it as vx.config.json (where comments "
		"are no errors) or vx.config.ts");
	ws_write("dir/package.json", "{}");
	ws_write("dir/vx.config.json/file", "");
	refused("dir", "vx.config.json: is not a regular file");
	ws_write("yaml/vx.config.yaml", "");
	refused("yaml", "vx.config.yaml: is not read: write it as vx.config.json");
	ws_write("script/package.json", "{'workspaces': ['p/*']}");
	ws_write("script/p/a/vx.config.ts", "");
	setenv("PATH", ws_path, 1);
	refused("script", "p/a/vx.config.ts: no runtime of JavaScript is on the PATH");

	ws_write("out/package.json", "{'workspaces': ['p/*']}");
	ws_write("elsewhere/package.json", "{}");
	ws_link("out/p/a", "../../elsewhere");
	refused("out", "elsewhere) is outside the workspace root");
	refused("out",
		"/out: move package.json up to a directory that holds both, or remove the link");
	ws_remove("elsewhere/package.json");
	{
		struct err e = ERR_INIT;
		struct root root;
		struct workspace w;

		ok_int(load("out", &root, &w, &e), 0, "a link to what is no project is no member");
		workspace_release(&w);
		root_release(&root);
	}

	ws_write("bad/package.json", "{'workspaces': ['p/*']}");
	ws_write("bad/p/a/package.json", "{'name': 'a#b'}");
	refused("bad", "p/a/package.json: name \"a#b\"");
	ws_write("bad/p/a/package.json", "{'name': 'a'");
	refused("bad", "p/a/package.json:1:");
	ws_write("bad/p/a/package.json", "{'name': 'a'}");
	ws_write("bad/p/a/vx.config.json", "{'dependencies': ['reactt'], 'nme': 1}");
	refused("bad", "p/a/vx.config.json:1:");
	ws_write("bad/p/a/vx.config.json", "{'dependencies': ['reac']}");
	ws_write("bad/p/b/package.json", "{'name': 'react'}");
	refused("bad",
		"p/a/vx.config.json:1:19: dependencies[0]: there is no project \"reac\"; did you "
		"mean \"react\"?");
	ws_write("bad/p/a/vx.config.json", "{'dependencies': [\n 'react',\n 'zzzzz']}");
	refused("bad", "p/a/vx.config.json:3:2: dependencies[1]: there is no project \"zzzzz\"");
	refused("bad", "; there are //, react");
	ws_write("bad/p/a/vx.config.json", "{'dependencies': ['react', 'a']}");
	refused("bad", "p/a/vx.config.json:1:28: dependencies[1]: \"a\" is this project itself: "
		       "leave it out");
	ws_write("hash/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("hash/p/a#b/vx.config.json", "{}");
	refused("hash", "p/a#b/vx.config.json: the project has no name but its directory's, "
			"\"a#b\", and that holds a \"#\", which separates project and task: write "
			"\"name\": \"another-name\" here");
	ws_write("out-of/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("out-of/p/!d/package.json", "{}");
	refused("out-of", "p/!d/package.json: the project has no name but its directory's, "
			  "\"!d\", and that begins with \"!\", which leaves out");
	ws_write("out-of/p/!d/package.json", "{'name': '!e'}");
	refused("out-of", "p/!d/package.json: name \"!e\" begins with \"!\"");
	ws_write("caret/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("caret/p/c/vx.config.json", "{'name': '^c'}");
	refused("caret", "p/c/vx.config.json: name \"^c\" begins with \"^\", which means the "
			 "dependencies");
	ws_write("line/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("line/p/a\nb/vx.config.json", "{}");
	refused("line", "p/a\\x0ab/vx.config.json: the project has no name but its directory's, "
			"\"a\\x0ab\", and that holds a control character");
	ws_write("line/p/a\nb/vx.config.json", "{'name': 'ab\\t'}");
	refused("line", "name: begins or ends in a blank");
	ws_write("line/p/a\nb/vx.config.json", "{'name': 'a\\tb'}");
	refused("line", "name: a project's name may hold no control character");
	ws_write("line/p/a\nb/vx.config.json", "{'name': 'a\xc2\x9b'}");
	refused("line", "name: a project's name may hold no control character");
	ws_write("byte/vx.workspace.json", "{'projects': ['p/*']}");
	ws_write("byte/p/a\xff/package.json", "{}");
	refused("byte", "\", and that is not UTF-8: write");

	ws_write("loop/vx.workspace.json", "{'projects': ['p/*']}");
	ws_link("loop/p/a/vx.config.json", "vx.config.json");
	refused("loop", "p/a/vx.config.json: Too many levels of symbolic links");
	{
		struct err e = ERR_INIT;
		struct root root;
		struct workspace w;

		load("loop", &root, &w, &e);
		ok(!strstr(e.text, "links: "), "which is said once");
		ws_remove("loop/p/a/vx.config.json");
		ws_write("loop/p/a/vx.config.json", "{}");
		ws_link("loop/p/self", "self");
		err_clear(&e);
		if (load("loop", &root, &w, &e) < 0)
			bug("%s", e.text);
		names_are(w.projects, w.nprojects, "a", "a link that leads nowhere is no member");
		workspace_release(&w);
		root_release(&root);
	}
}

/* Every form of spec/config.md §1, package graph. */
static void
test_edges(void)
{
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	ws_write("e/pnpm-workspace.yaml",
		"packages: [p/*]\ncatalog:\n  lib: ^1.0.0\n  old: ^9.0.0\n"
		"catalogs:\n  next:\n    lib: ^2.0.0\n");
	ws_write("e/p/lib/package.json", "{'name': 'lib', 'version': '1.2.3'}");
	ws_write("e/p/old/package.json", "{'name': 'old', 'version': '1.0.0'}");
	ws_write("e/p/bare/package.json", "{'name': 'bare'}");
	ws_write("e/p/pre/package.json", "{'name': 'pre', 'version': '1.0.0-rc.1'}");
	ws_write("e/p/ws/package.json",
		"{'name': 'ws', 'dependencies': {'lib': 'workspace:*', 'bare': 'workspace:^', "
		"'old': 'workspace:^2.0.0', 'pre': 'workspace:'}}");
	ws_write("e/p/alias/package.json",
		"{'name': 'alias', 'dependencies': {'x': 'workspace:lib@*', 'y': 'npm:old@^1', "
		"'z': 'npm:pre@^2'}}");
	ws_write("e/p/paths/package.json",
		"{'name': 'paths', 'dependencies': {'a': 'file:../lib', 'b': 'link:../old', "
		"'c': 'portal:../none', 'd': '../bare', 'e': 'file:./x.tgz', "
		"'f': 'workspace:p/pre'}}");
	ws_write("e/p/plain/package.json",
		"{'name': 'plain', 'dependencies': {'lib': '^1.0.0', 'old': '^2', 'bare': '*', "
		"'pre': '^1.0.0', 'plain': '*'}}");
	ws_write("e/p/tags/package.json",
		"{'name': 'tags', 'dependencies': {'lib': 'latest', 'old': 'git+https://x/y.git', "
		"'bare': '^1'}}");
	ws_write("e/p/cat/package.json",
		"{'name': 'cat', 'dependencies': {'lib': 'catalog:', 'old': 'catalog:', "
		"'bare': 'catalog:unknown'}}");
	ws_write("e/p/cat2/package.json",
		"{'name': 'cat2', 'devDependencies': {'lib': 'catalog:next'}}");
	ws_write("e/p/opt/package.json", "{'name': 'opt', 'dependencies': {'lib': '*'}, "
					 "'optionalDependencies': {'lib': '^9'}, "
					 "'devDependencies': {'old': '*'}}");
	ws_write("e/p/peer/package.json",
		"{'name': 'peer', 'peerDependencies': {'lib': '^99', 'old': '*', 'none': '*'}, "
		"'devDependencies': {'old': '^99'}}");
	ws_write("e/p/ring1/package.json", "{'name': 'ring1', 'dependencies': {'ring2': '*'}}");
	ws_write("e/p/ring2/package.json",
		"{'name': 'ring2', 'peerDependencies': {'ring1': '*', 'lib': '*'}}");
	/* The forms that are left. */
	ws_write("e/p/ws2/package.json",
		"{'name': 'ws2', 'dependencies': {'lib': 'workspace:^1.0.0', 'old': 'workspace:~', "
		"'bare': 'workspace:*', 'pre': 'workspace:1.0.0-rc.1'}}");
	ws_write("e/p/ws3/package.json",
		"{'name': 'ws3', 'dependencies': {'a': 'workspace:../lib', 'b': 'workspace:./', "
		"'c': 'workspace:bare@^9', 'd': 'workspace:p/old', 'pre': 'workspace:^1.0.0'}}");
	ws_write("e/p/paths2/package.json",
		"{'name': 'paths2', 'dependencies': {'a': 'portal:../lib', 'b': './../old', "
		"'c': 'link:../bare/', 'd': 'file:../../p/./pre'}}");
	ws_write("e/p/paths3/package.json",
		"{'name': 'paths3', 'dependencies': {'a': 'file:../lib/lib.tgz', 'lib': '..', "
		"'b': '/srv/lib', 'c': 'file:///srv/lib', 'old': '../lib.tgz', 'd': "
		"'../../../..'}}");
	ws_write("e/p/plain2/package.json",
		"{'name': 'plain2', 'dependencies': {'lib': '', 'bare': '', 'pre': '', "
		"'old': '>=1.0.1 || 0.x'}}");
	ws_write("e/p/npm/package.json",
		"{'name': 'npm', 'dependencies': {'a': 'npm:lib@1.x', 'lib': 'npm:other@*', "
		"'b': 'npm:bare@^1', 'old': 'npm:@s/old@1'}}");
	ws_write("e/p/tags2/package.json",
		"{'name': 'tags2', 'dependencies': {'lib': 'https://x.example/lib.tgz', "
		"'old': 'user/old', 'bare': 'next', 'pre': 'github:user/pre#v1'}}");
	ws_write("e/p/cat3/package.json",
		"{'name': 'cat3', 'dependencies': {'lib': 'catalog:default'}}");
	ws_write("e/p/dev/package.json",
		"{'name': 'dev', 'dependencies': {'old': '^9'}, 'devDependencies': {'old': '^1', "
		"'lib': '^9'}, 'optionalDependencies': {'lib': '1'}}");
	ws_write("e/p/peer2/package.json", "{'name': 'peer2', 'peerDependencies': {'lib': '*', "
					   "'bare': 'latest', 'peer2': '*'}, "
					   "'optionalDependencies': {'lib': '^9'}}");
	ws_write("e/p/conf/vx.config.json", "{'dependencies': ['lib'], 'tasks': {'t': "
					    "{'dependsOn': ['old#x', 'gone#y', "
					    "'conf#z']}}}");
	if (load("e", &root, &w, &e) < 0)
		bug("%s", e.text);
	deps_are(&w, "ws", "bare lib pre", NULL);
	deps_are(&w, "alias", "lib old", NULL);
	deps_are(&w, "paths", "bare lib old pre", NULL);
	deps_are(&w, "plain", "bare lib", NULL);
	deps_are(&w, "tags", "", NULL);
	deps_are(&w, "cat", "bare lib", NULL);
	deps_are(&w, "cat2", "", NULL);
	deps_are(&w, "opt", "old", NULL);
	deps_are(&w, "peer", "lib", "lib");
	deps_are(&w, "ring1", "ring2", "ring2");
	deps_are(&w, "ring2", "lib", "lib ring1");
	deps_are(&w, "conf", "lib old", "lib old");
	deps_are(&w, "ws2", "bare lib old pre", NULL);
	deps_are(&w, "ws3", "bare lib old", NULL);
	deps_are(&w, "paths2", "bare lib old pre", NULL);
	deps_are(&w, "paths3", "", NULL);
	deps_are(&w, "plain2", "bare lib pre", NULL);
	deps_are(&w, "npm", "lib", NULL);
	deps_are(&w, "tags2", "", NULL);
	deps_are(&w, "cat3", "lib", NULL);
	deps_are(&w, "dev", "lib old", NULL);
	deps_are(&w, "peer2", "bare", "bare");
	workspace_release(&w);
	root_release(&root);

	ws_write("bun/package.json",
		"{'workspaces': {'packages': ['p/*'], 'catalog': {'lib': '^2'}}}");
	ws_write("bun/p/lib/package.json", "{'name': 'lib', 'version': '1.0.0'}");
	ws_write("bun/p/a/package.json", "{'name': 'a', 'dependencies': {'lib': 'catalog:'}}");
	if (load("bun", &root, &w, &e) < 0)
		bug("%s", e.text);
	deps_are(&w, "a", "", NULL);
	workspace_release(&w);
	root_release(&root);
}

/* "workspace:" entries that no project answers: no edges, and each is said. */
static void
test_unmet(void)
{
	static const char *const want[] = {
		"p/a/package.json: \"lib\": \"workspace:^2.0.0\" is not met: lib is 1.2.3 here, so "
		"a does not depend on it",
		"p/a/package.json: \"bare\": \"workspace:^1.0.0\" is not met: bare has no version "
		"here, so a does not depend on it",
		"p/a/package.json: \"lob\": \"workspace:*\" is not met: no project is called "
		"\"lob\"; did you mean \"lib\"?",
		"p/a/package.json: \"nothing-like\": \"workspace:^1\" is not met: no project is "
		"called \"nothing-like\"",
		"p/a/package.json: \"x\": \"workspace:@s/none@*\" is not met: no project is called "
		"\"@s/none\"",
		"p/a/package.json: \"y\": \"workspace:../none\" is not met: no project is in that "
		"directory",
		"p/a/package.json: \"z\": \"workspace:p/none\" is not met: no project is in that "
		"directory",
		"p/a/package.json: \"gone\": \"workspace:*\" is not met: no project is called "
		"\"gone\"",
		"and 1 more \"workspace:\" entries are not met",
	};
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	ws_write("unmet/pnpm-workspace.yaml", "packages: [p/*]\ncatalog:\n  gone: 'workspace:*'\n");
	ws_write("unmet/p/lib/package.json", "{'name': 'lib', 'version': '1.2.3'}");
	ws_write("unmet/p/bare/package.json", "{'name': 'bare'}");
	ws_write("unmet/p/a/package.json",
		"{'name': 'a', 'version': '1.0.0', 'dependencies': {'lib': 'workspace:^2.0.0', "
		"'bare': 'workspace:^1.0.0', "
		"'lob': 'workspace:*', 'nothing-like': 'workspace:^1', 'x': 'workspace:@s/none@*', "
		"'y': 'workspace:../none', 'z': 'workspace:p/none', 'gone': 'catalog:', "
		"'npm-has-it': '^1', 'a': 'workspace:^9'}, 'devDependencies': {'more': "
		"'workspace:~'}}");
	if (load("unmet", &root, &w, &e) < 0)
		bug("%s", e.text);
	deps_are(&w, "a", "", NULL);
	ok_int((long long)w.nnotes, array_len(want), "each is said, up to some");
	for (size_t i = 0; i < array_len(want); i++)
		ok_str(i < w.nnotes ? w.notes[i] : "", want[i], "what is not met");
	workspace_release(&w);
	root_release(&root);

	ws_write("unmet/vx.workspace.json", "{'projects': ['p/*']}");
	if (load("unmet", &root, &w, &e) < 0)
		bug("%s", e.text);
	ok_int((long long)w.nnotes, 2, "a project of pnpm need not be one of vx");
	workspace_release(&w);
	root_release(&root);
}

int
main(void)
{
	ws_begin();
	test_members();
	test_notes();
	test_no_project();
	test_refusals();
	test_edges();
	test_unmet();
	ws_end();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "graph/select.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"

static struct root root;
static struct workspace w;

/* Words as on the command line: "build --all", "--filter=x build", "@dir" for the directory. */
static int
run(const char *words, struct selected *ret, struct err *e)
{
	cleanup_strvec struct strvec tasks = STRVEC_INIT, filters = STRVEC_INIT;
	cleanup_free char *copy = xstrdup(words);
	struct selection s = {.cwd = ""};
	char *save = NULL;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!strcmp(word, "--all"))
			s.all = true;
		else if (!strcmp(word, "--affected") || !strncmp(word, "--affected=", 11)) {
			s.affected = true;
			s.base = word[10] ? word + 11 : NULL;
		} else if (!strncmp(word, "-f=", 3))
			strvec_push(&filters, word + 3);
		else if (!strncmp(word, "in:", 3))
			s.cwd = word + 3;
		else
			strvec_push(&tasks, word);
	}
	s.tasks = (const char *const *)tasks.v;
	s.ntasks = tasks.n;
	s.filters = (const char *const *)filters.v;
	s.nfilters = filters.n;
	err_clear(e);
	return select_requests(&w, &s, ret, e);
}

static void
picks(const char *words, const char *want)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct selected r = {0};

	if (run(words, &r, &e) < 0)
		diag("%s", e.text);
	for (size_t i = 0; i < r.n; i++)
		strbuf_addf(&sb, "%s%s#%s", i ? " " : "", r.v[i].project->name, r.v[i].def->name);
	ok_str(sb.buf, want, words);
	selected_release(&r);
}

static void
refused(const char *words, const char *why)
{
	struct err e = ERR_INIT;
	struct selected r = {0};

	ok_int(run(words, &r, &e), -1, words);
	ok_err(&e, why, why);
	ok_int(e.kind, ERR_USAGE, "a usage error");
}

static void
project(const char *dir, const char *name, const char *deps, const char *tags, const char *tasks)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	cleanup_free char *path = path_join(dir, "vx.config.json"), *copy = xstrdup(tasks);
	char *save = NULL;

	strbuf_addf(&sb, "{'name': '%s', 'dependencies': [%s], 'tags': [%s], 'tasks': {", name,
		deps, tags);
	for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save))
		strbuf_addf(&sb, "%s'%s': {'exec': {'command': 'true'}}",
			sb.buf[sb.len - 1] == '{' ? "" : ", ", t);
	strbuf_adds(&sb, "}}");
	ws_write(path, sb.buf);
}

static void
test_plain(void)
{
	picks("in:apps/web build", "@s/web#build");
	picks("in:apps/web/src/x build test", "@s/web#build @s/web#test");
	picks("lib#build", "lib#build");
	picks("in:apps/web lib#build lib#build build", "lib#build @s/web#build");
	picks("//#setup", "root#setup");
	picks("root#setup", "root#setup");
	picks("setup", "root#setup");
	picks("--all build", "@s/api#build @s/web#build @t/api#build lib#build");
	picks("--all test lib#build", "@s/web#test lib#build");
}

static void
test_filters(void)
{
	picks("-f=lib build", "lib#build");
	picks("-f=@s/* build", "@s/api#build @s/web#build");
	picks("-f=*api build", "@s/api#build @t/api#build");
	picks("-f=web build", "@s/web#build");
	picks("-f=./apps/web build", "@s/web#build");
	picks("-f=./apps build", "@s/api#build @s/web#build @t/api#build");
	picks("-f=./apps/*/api build", "@t/api#build");
	picks("-f=. setup", "root#setup");
	picks("-f=// setup", "root#setup");
	picks("-f=@s/web... build", "@s/api#build @s/web#build lib#build");
	picks("-f=@s/web^... build", "@s/api#build lib#build");
	picks("-f=...lib build", "@s/api#build @s/web#build lib#build");
	picks("-f=...^lib build", "@s/api#build @s/web#build");
	picks("-f=...@s/api... build", "@s/api#build @s/web#build lib#build");
	picks("-f=@s/*^... build", "@s/api#build lib#build");
	picks("-f=!lib build", "@s/api#build @s/web#build @t/api#build");
	picks("-f=!@s/api -f=@s/* build", "@s/web#build");
	picks("-f=@s/web... -f=!...@s/api build", "lib#build");
	picks("--all -f=lib build", "lib#build");
	picks("-f=lib @t/api#build", "@t/api#build");
	picks("-f={apps/web} build", "@s/web#build");
	picks("-f={apps} build", "@s/api#build @s/web#build @t/api#build");
	picks("-f={./apps/{web,api}} build", "@s/api#build @s/web#build");
	picks("-f=...{lib} build", "@s/api#build @s/web#build lib#build");
	picks("-f=tag:web build", "@s/web#build");
	picks("-f=tag:* build", "@s/api#build @s/web#build lib#build");
	picks("-f=tag:web^... build", "@s/api#build lib#build");
	picks("-f=tag:* -f=!tag:slow build", "@s/api#build @s/web#build");
	picks("-f=!lib -f=!./apps/x build", "@s/api#build @s/web#build");
}

static void
test_refusals(void)
{
	refused("in:apps/web biuld",
		"no project declares a task \"biuld\"; did you mean \"build\"?");
	refused("in:apps/web nothing-like", "there are build, test, setup");
	refused("in:lib test", "lib has no task \"test\"; @s/web does (\"@s/web#test\", or --all)");
	refused("build", "the root project has no task \"build\"; @s/api, @s/web, @t/api, lib do");
	refused("-f=lib test", "the selected project lib declares no task \"test\"; @s/web does");
	refused("-f=lib -f=@s/api test",
		"none of the 2 selected projects declares a task \"test\"; @s/web does");
	refused("lib#nothing-like", "; there is build");
	refused("in:lib", "no task named; here there is: build");
	refused("lbi#build", "there is no project \"lbi\"; did you mean \"lib#build\"?");
	refused("web#build", "did you mean \"@s/web#build\"?");
	refused("lib#biuld", "lib has no task \"biuld\"; did you mean \"lib#build\"?");
	refused("#build", "project and task");
	refused("lib#", "project and task");
	refused("-f=lbi build", "--filter \"lbi\" matches no project; did you mean \"lib\"?");
	refused("-f=nothing-like build", "there are @s/api, @s/web");
	refused("-f=!lbi build", "matches no project");
	refused("-f=api build", "could be @s/api or @t/api");
	refused("-f=... build", "only operators");
	refused("-f=! build", "only operators");
	refused("-f=...^... build", "only operators");
	refused("-f=apps/web build", "matches no project; did you mean \"./apps/web\"?");
	refused("apps/web#build", "did you mean \"@s/web#build\"?");
	refused("in:lib @s/web:build",
		"no project declares a task \"@s/web:build\"; did you mean \"@s/web#build\"?");
	refused("in:lib lib:a:b", "did you mean \"lib#a:b\"?");
	refused("in:lib nope:build", "no project declares a task \"nope:build\"; there are");
	refused("-f=lib^... build", "it matches lib, without any dependencies");
	refused("-f=...^@t/api build", "it matches @t/api, without any dependents");
	refused("-f=lib -f=!lib build", "exclude every project");
	refused("-f=./nowhere build", "matches no project");
	refused("-f=../x build", "leads out of the workspace");
	refused("-f=tag:wbe build",
		"--filter \"tag:wbe\" matches no project; did you mean \"tag:web\"?");
	refused("-f=tag:nothing-like build", "matches no project; there are ui, web, slow");
	refused("-f={../x} build", "leads out of the workspace");
	refused("-f={nowhere} build",
		"--filter \"{nowhere}\" matches no project; there are {apps/api}");
	refused("-f=./apps/wbe build",
		"--filter \"./apps/wbe\" matches no project; did you mean \"./apps/web\"?");
	refused("-f={apps/wbe}... build", "matches no project; did you mean \"{apps/web}\"?");
	refused("-f=./web build", "did you mean \"./apps/web\"?");
	refused("-f={web} build", "did you mean \"{apps/web}\"?");
	refused("-f={somewhere-else} build", "matches no project; there are {apps/api}");
	refused("-f=[main build",
		"a \"[ref]\" stands at the end, with nothing but \"...\" after it");
	refused("-f=[main]lib build", "a \"[ref]\" stands at the end");
	refused("-f=lib^...[main] build", "write \"p...[ref]\" for what of p has changed");
	refused("-f=nope[main] build", "--filter \"nope[main]\" matches no project");
	refused("-f=[] build", "is in no git work tree, so what has changed is not known");
	refused("--affected build", "--affected: ");
	refused("--affected=x build", "--affected=x: ");
	refused("-f=./apps/\\[id\\] build", "matches no project");
	refused("--all", "no task named; here there are: build, test, setup");
}

int
main(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	ws_write("vx.workspace.json", "{'projects': ['apps/*', 'apps/x/*', 'lib']}");
	project("", "root", "", "", "setup");
	project("lib", "lib", "", "'slow', 'ui'", "build");
	project("apps/api", "@s/api", "'lib'", "'ui'", "build");
	project("apps/web", "@s/web", "'@s/api', 'lib'", "'web', 'ui'", "build test");
	project("apps/x/api", "@t/api", "", "", "build");
	if (root_find(ws_path, ROOT_EVALUATE, &root, &e) < 0 ||
		workspace_load(&root, -1, &w, &e) < 0)
		bug("%s", e.text);
	test_plain();
	test_filters();
	test_refusals();
	workspace_release(&w);
	root_release(&root);
	ws_end();
	return tap_done();
}

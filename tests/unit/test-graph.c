/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"
#include "graph/order.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"

static struct root root;
static struct workspace w;

static void
load(void)
{
	struct err e = ERR_INIT;

	if (root_find(ws_path, ROOT_EVALUATE, &root, &e) < 0 ||
		workspace_load(&root, -1, &w, &e) < 0)
		bug("%s", e.text);
}

static void
unload(void)
{
	workspace_release(&w);
	root_release(&root);
}

static int
build(const char *project, const char *task, struct graph *g, struct err *e)
{
	struct project *p = workspace_project(&w, project);
	struct request r = {.project = p, .def = project_task(p, task)};

	err_clear(e);
	return graph_build(&w, &r, 1, g, e);
}

/* "id: dep dep" of every node, one after the other. */
static void
graph_is(const char *project, const char *task, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct graph g;

	if (build(project, task, &g, &e) < 0) {
		ok(false, "%s", name);
		diag("%s", e.text);
		return;
	}
	for (size_t i = 0; i < g.n; i++) {
		strbuf_addf(&sb, "%s%s%s", i ? "; " : "", g.nodes[i]->requested ? "*" : "",
			g.nodes[i]->id);
		for (size_t j = 0; j < g.nodes[i]->ndeps; j++)
			strbuf_addf(&sb, " %s", g.nodes[i]->deps[j]->id);
	}
	ok_str(sb.buf, want, name);
	graph_release(&g);
}

static void
refused(const char *project, const char *task, const char *why)
{
	struct err e = ERR_INIT;
	struct graph g;

	if (!ok(build(project, task, &g, &e) < 0, "%s#%s is refused", project, task)) {
		graph_release(&g);
		return;
	}
	ok_err(&e, why, why);
	ok_err(&e, "vx.config.json:", "with its place");
}

static void
config(const char *project, const char *text)
{
	char *path = xasprintf("p/%s/vx.config.json", project);

	ws_write(path, text);
	free(path);
}

#define RUN "'exec': {'command': 'true'}"

static void
test_expansion(void)
{
	/* top -> mid -> {left, right} -> base; mid has no build */
	config("top",
		"{'dependencies': ['mid'], 'tasks': {'build': {" RUN ", 'dependsOn': ['^build']}, "
		"'test': {" RUN ", 'dependsOn': ['build', 'gen.*']}, 'gen.a': {" RUN "}, "
		"'gen.b': {" RUN
		", 'dependsOn': ['gen.*']}, 'all': {'dependsOn': ['^gen.*', 'base#build', "
		"'//#setup']}, 'none': {" RUN
		", 'dependsOn': ['^nothing-like-it', 'x.*', '^y.*']}}}");
	config("mid", "{'dependencies': ['left', 'right'], 'tasks': {}}");
	config("left",
		"{'dependencies': ['base'], 'tasks': {'build': {" RUN ", 'dependsOn': ['^build']}, "
		"'gen.l': {" RUN "}, 'gen.m': {" RUN "}}}");
	config("right", "{'dependencies': ['base'], 'tasks': {'test': {" RUN "}}}");
	config("base", "{'tasks': {'build': {" RUN "}, 'gen.z': {" RUN "}}}");
	ws_write("vx.config.json", "{'tasks': {'setup': {" RUN "}}}");
	load();
	graph_is("top", "build",
		"base#build; left#build base#build; *top#build base#build left#build",
		"the nearest holders on every path, non-holders passed through");
	graph_is("top", "test",
		"base#build; left#build base#build; top#build base#build left#build; top#gen.a; "
		"top#gen.b top#gen.a; *top#test top#build top#gen.a top#gen.b",
		"a pattern means all that match, never itself");
	graph_is("top", "all",
		"//#setup; base#build; base#gen.z; left#gen.l; left#gen.m; "
		"*top#all //#setup base#build base#gen.z left#gen.l left#gen.m",
		"a holder gives all its matches; pkg#task and the root");
	graph_is("top", "none", "*top#none", "what may match nothing does");
	unload();
}

static void
folded_is(const char *task, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct graph g = {0};
	const struct node **v;
	size_t n;

	if (!ok(!build("top", task, &g, &e), "top#%s", task))
		return;
	strbuf_addf(&sb, "top#%s", task);
	v = graph_upstream(graph_node(&g, sb.buf), true, &n);
	strbuf_reset(&sb);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&sb, "%s%s", i ? " " : "", v[i]->id);
	ok_str(sb.buf, want, name);
	free(v);
	graph_release(&g);
}

#define CACHED(tasks) RUN ", 'cache': {'inputs': {'files': []" tasks "}, 'outputs': {'files': []}}"

static void
test_folded(void)
{
	config("top",
		"{'dependencies': ['base', 'left'], 'tasks': {'gen': {" CACHED(
			"") "}, "
			    "'all': {'dependsOn': ['gen', '^build']}, "
			    "'every': {" CACHED(
				    "") ", 'dependsOn': ['gen', '^build']}, "
					"'own': {" CACHED(
						", 'tasks': ['*']") ", 'dependsOn': "
								    "['gen', '^build']}, "
								    "'none': {" CACHED(
									    ", 'tasks': "
									    "[]") ", "
										  "'depen"
										  "dsOn':"
										  " ['"
										  "gen', "
										  "'^"
										  "build'"
										  "]}, "
										  "'group"
										  "': "
										  "{" CACHED(
											  ", "
											  "'tasks':"
											  " ['all'"
											  "]") ", "
											       "'de"
											       "pen"
											       "dsO"
											       "n':"
											       " ['"
											       "all"
											       "']}"
											       ", "
											       "'bu"
											       "t':"
											       " "
											       "{" CACHED(
												       ", 'tasks': ['*', '^*', '!left#*']") ", 'dependsOn': ['gen', '^build', 'none']}, "
																	    "'root': {" CACHED(
																		    ", 'tasks': ['//#s*']") ", 'dependsOn': ['gen', '//#setup']}}}");
	config("left", "{'dependencies': ['base'], 'tasks': {'build': {" CACHED(
			       ", 'tasks': []") ", 'dependsOn': ['^build']}}}");
	load();
	folded_is("every", "base#build left#build top#gen", "all where nothing is said");
	folded_is("own", "top#gen", "those of the project");
	folded_is("none", "", "none");
	folded_is("group", "top#all base#build left#build top#gen", "a group passes all on");
	folded_is("but", "base#build top#gen top#none", "not what those leave out");
	folded_is("root", "//#setup", "a pattern for the root project");
	unload();
}

static void
test_missing(void)
{
	config("top",
		"{'dependencies': ['base'], 'tasks': {'a': {" RUN
		", 'dependsOn': ['buidl']}, 'b': {" RUN ", 'dependsOn': ['base#bild']}, 'c': {" RUN
		", 'dependsOn': ['bsae#build']}, 'd': {" RUN
		", 'dependsOn': ['^biuld']}, 'e': {" RUN
		", 'dependsOn': ['nowhere-near']}, 'build': {" RUN "}, 'f': {" RUN
		", 'dependsOn': ['mid#x']}}}");
	load();
	refused("top", "a", "p/top/vx.config.json:1:87: task top#a: dependsOn \"buidl\"");
	refused("top", "a",
		"task top#a: dependsOn \"buidl\": top has no task \"buidl\"; did you mean "
		"\"build\"?");
	refused("top", "b", "base has no task \"bild\"; did you mean \"base#build\"?");
	refused("top", "c", "there is no project \"bsae\"; did you mean \"base#build\"?");
	refused("top", "d", "no project declares \"biuld\"; did you mean \"^build\"?");
	refused("top", "e", "top has no task \"nowhere-near\"; it has a, b, c, d, e, build, f");
	refused("top", "f", "mid has no task \"x\"");
	graph_is("top", "build", "*top#build", "only what is needed is judged");
	unload();
}

/* Packages in a circle: the walk ends, and never comes back to where it started. */
static void
test_package_cycle(void)
{
	config("top", "{'dependencies': ['mid'], 'tasks': {'build': {" RUN
		      ", 'dependsOn': ['^build']}}}");
	config("mid", "{'dependencies': ['top', 'base'], 'tasks': {}}");
	load();
	graph_is("top", "build", "base#build; *top#build base#build", "a circle of packages");
	unload();
}

static void
test_deep(void)
{
	enum {
		DEPTH = 50000
	};
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct graph g;

	strbuf_adds(&sb, "{'tasks': {'t0': {" RUN "}");
	for (int i = 1; i <= DEPTH; i++)
		strbuf_addf(&sb, ", 't%d': {" RUN ", 'dependsOn': ['t%d']}", i, i - 1);
	strbuf_adds(&sb, "}}");
	config("top", sb.buf);
	load();
	ok_int(build("top", "t50000", &g, &e), 0, "a chain of 50,000 tasks");
	ok_int((long long)g.n, DEPTH + 1, "is all there");
	ok_int(order_sort(&g, &e), 0, "and sorted");
	order_priorities(&g);
	ok_int(g.nodes[0]->priority, DEPTH, "its first task has them all behind it");
	ok_str(g.nodes[0]->id, "top#t0", "and comes first");
	graph_release(&g);
	unload();
}

int
main(void)
{
	ws_begin();
	ws_write("vx.workspace.json", "{'projects': ['p/*']}");
	test_expansion();
	test_folded();
	test_missing();
	test_package_cycle();
	test_deep();
	ws_end();
	return tap_done();
}

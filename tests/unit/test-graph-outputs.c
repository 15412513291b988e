/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"

/* One project "a" (in p/a) with these tasks, and beside it what else was written; all tasks of all
 * projects requested. */
/* A task that does not run. */
static const char *idle;

/* Called with the graph that passed. */
static void (*look)(const struct graph *g);

static int
check(const char *tasks, struct err *e)
{
	cleanup_free char *text = xasprintf("{'tasks': {%s}}", tasks);
	struct request *requests = NULL;
	struct workspace w;
	struct root root;
	struct graph g;
	size_t n = 0, cap = 0;
	int r;

	err_clear(e);
	ws_write("p/a/vx.config.json", text);
	if (root_find(ws_path, ROOT_EVALUATE, &root, e) < 0 || workspace_load(&root, -1, &w, e) < 0)
		bug("%s", e->text);
	for (size_t i = 0; i < w.nprojects; i++)
		for (size_t j = 0; j < w.projects[i]->def.ntasks; j++) {
			if (idle && !strcmp(w.projects[i]->def.tasks[j].name, idle))
				continue;
			GROW(requests, n + 1, cap);
			requests[n++] = (struct request){
				.project = w.projects[i], .def = &w.projects[i]->def.tasks[j]};
		}
	if (graph_build(&w, requests, n, &g, e) < 0)
		bug("%s", e->text);
	free(requests);
	r = graph_check_outputs(&g, e);
	if (!r && look)
		look(&g);
	graph_release(&g);
	workspace_release(&w);
	root_release(&root);
	return r;
}

/* A task with these inputs and outputs, each a list as in "'a', 'b'". */
#define TASK(name, in, out)                                                                        \
	"'" name "': {'exec': {'command': 'true'}, 'cache': {'inputs': {'files': [" in             \
	"]}, 'outputs': {'files': [" out "]}}}"
#define WIDE(name, in, out)                                                                        \
	"'" name "': {'exec': {'command': 'true'}, 'cache': {'inputs': {'files': [], "             \
	"'workspaceFiles': [" in "]}, 'outputs': {'files': [" out "]}}}"

static void
passes(const char *tasks, const char *name)
{
	struct err e = ERR_INIT;

	if (!ok(!check(tasks, &e), "%s", name))
		diag("%s", e.text);
}

static void
refused(const char *tasks, const char *why, const char *name)
{
	struct err e = ERR_INIT;

	ok(check(tasks, &e) < 0, "%s", name);
	ok_err(&e, why, why);
}

#define OUT2(x, y) TASK("one", "", x) "," TASK("two", "", y)

static void
test_exclusive(void)
{
	passes(OUT2("'dist/**'", "'lib/**'"), "different trees");
	refused(OUT2("'dist/**'", "'dist/**'"), "is also an output of a#one", "the same tree");
	refused(OUT2("'out.js'", "'./out.js'"), "out.js",
		"equal literals, by path not by spelling");
	refused(OUT2("'dist/**'", "'dist/types/**'"),
		"add \"!dist/types/**\" to the outputs.files of a#one", "a tree in a tree");
	refused(OUT2("'dist/types/x.d.ts'", "'dist'"), "overlaps", "a literal names a tree");
	refused(OUT2("'dist/*.js'", "'dist/a.js'"), "overlaps", "a literal under a glob");
	refused(OUT2("'dist/*.js'", "'dist/**'"), "overlaps", "a glob whose head lies in a tree");
	refused(OUT2("'dist/**'", "'dist/a/b/*.js'"), "overlaps", "deep inside a tree");
	refused(OUT2("'{lib,dist}/**'", "'dist/x'"), "overlaps", "one alternative of a brace");
	passes(OUT2("'dist/*.js'", "'dist/a*'"), "globs that only might overlap");
	passes(OUT2("'dist/*.js'", "'dist/a.css'"), "a literal that the glob does not match");
	passes(OUT2("'dist/**', '!dist/types/**'", "'dist/types/**'"), "a tree taken back");
	passes(OUT2("'dist/types/**'", "'dist/**', '!dist/types'"), "in whatever order");
	passes(OUT2("'dist/**', '!dist/**/*.map'", "'dist/*.map'"), "names taken back");
	passes(OUT2("'dist/**', '!dist/a.js'", "'dist/a.js'"), "a file taken back");
	refused(OUT2("'dist/**', '!dist/a.js'", "'dist/b.js'"), "overlaps", "another file");
	refused(OUT2("'dist/**', '!dist/types/**'", "'dist/**'"), "is also an output",
		"the tree around it");
}

/* What a task that does not run has left there would be removed, or taken for a source. */
static void
test_idle(void)
{
	idle = "one";
	refused(OUT2("'dist/**'", "'dist/docs/**'"), "overlaps",
		"an output of a task that does not run");
	refused(TASK("one", "'src/**'", "'dist/**'") "," TASK("test", "'**'", ""),
		"can match what a#one writes", "an input among the outputs of one");
	passes(TASK("one", "'**'", "") "," TASK("test", "'src/**'", "'dist/**'"),
		"what one would read is its own matter");
	idle = NULL;
}

#define OUT(name, in, out, far)                                                                    \
	"'" name "': {'exec': {'command': 'true'}, 'cache': {'inputs': {'files': [" in             \
	"]}, 'outputs': {'files': [" out "], 'workspaceFiles': [" far "]}}}"

/* Outputs that are named from the root have no project: p/a's, which a#far writes, belong to it as its
 * own do. */
static void
test_workspace_files(void)
{
	refused(OUT("far", "", "", "'p/a/dist/**'") "," TASK("one", "", "'dist/**'"),
		"cache.outputs.files \"dist/**\" overlaps the output \"p/a/dist/**\" of a#far",
		"workspaceFiles against files of one project");
	refused(OUT("far", "", "", "'p/*/dist/*.js'") "," TASK("one", "", "'dist/a.js'"),
		"add \"!p/a/dist/a.js\" to the outputs.workspaceFiles of a#far",
		"spelled from the root");
	passes(OUT("far", "", "", "'p/*/dist/*.js', '!p/a/dist/a.js'") "," TASK(
		       "one", "", "'dist/a.js'"),
		"which heals it");
	refused(OUT("far", "", "", "'p/a/dist/x'") "," TASK("one", "", "'dist/**'"),
		"add \"!dist/x\" to the outputs.files of a#one",
		"or from the project of the other");
	passes(OUT("far", "", "", "'p/a/dist/x'") "," TASK("one", "", "'dist/**', '!dist/x'"),
		"which heals it, too");
	passes(OUT("far", "", "'out/**', '!out/x'", "'p/a/out/x'"),
		"one task's own lists may overlap");
	refused(OUT("far", "", "", "'gen/**'") "," OUT("near", "", "", "'gen/x'"), "overlaps",
		"two in the workspace");
	passes(OUT("far", "", "", "'dist/**'") "," TASK("one", "", "'dist/**'"),
		"the same text in two places");
	refused(OUT("far", "", "", "'**/dist/**'") "," TASK("one", "", "'dist/*.js'"), "overlaps",
		"one that takes the outputs of every project");
	refused(OUT("far", "", "", "'**/*.d.ts'") "," TASK("one", "", "'dist/**'"), "overlaps",
		"or some of them");
	passes(OUT("far", "", "", "'**/*.d.ts', '!p/a/dist/**'") "," TASK("one", "", "'dist/**'"),
		"which can be taken back");
	passes(OUT("far", "", "", "'**/*.d.ts'") "," TASK("one", "", "'dist/**/*.js'"),
		"names of another kind are no outputs in common");
	refused(OUT("far", "", "", "'p/a/gen/**'") "," TASK("one", "'**'", ""),
		"add \"!gen/**\" to cache.inputs.files", "an input of the project");
	refused(OUT("far", "", "", "'gen/**'") "," WIDE("one", "'**/*.ts'", ""),
		"add \"!gen/**\" to cache.inputs.workspaceFiles", "one of the workspace");
	passes(OUT("far", "'**'", "", "'p/a/gen/**'"), "its own are no inputs of it");
	refused(OUT("far", "", "", "'p/a/gen/**'") "," TASK("two", "'gen/x'", ""),
		"remove the entry", "nothing but outputs of the other");

	ws_write("p/b/vx.config.json", "{'tasks': {" TASK("build", "'**'", "'dist/**'") "}}");
	refused(OUT("far", "", "", "'p/b/dist/x'"), "overlaps", "the outputs of another project");
	refused(OUT("far", "", "", "'p/b/gen/x'"), "can match what a#far writes", "and its inputs");
	refused(OUT("far", "", "", "'p/b/*.json'"),
		"cache.outputs.workspaceFiles select p/b/vx.config.json, which belongs to project "
		"b",
		"the config of another project");
	refused(OUT("far", "", "", "'p/b/package.*'"), "select p/b/package.json",
		"or its manifest, be there one or not");
	ws_write("p/b/vx.config.json", "{'tasks': {" TASK("idle", "'**'", "'dist/**'") "}}");
	idle = "idle";
	refused(OUT("far", "", "", "'p/b/dist/x'"), "overlaps",
		"those of a project that does not run");
	idle = NULL;
	ws_write("p/b/vx.config.json", "{'tasks': {" OUT("idle", "", "", "'p/a/gen/x'") "}}");
	idle = "idle";
	refused(TASK("one", "'gen/**'", ""), "can match what b#idle writes",
		"nor does the one that writes into others");
	idle = NULL;

	/* Nested: files end there, workspaceFiles do not. */
	ws_write("p/b/vx.config.json", "{}");
	ws_write("p/a/in/vx.config.json", "{'tasks': {" TASK("x", "", "'dist/**'") "}}");
	passes(TASK("one", "", "'**/dist/**'"), "a glob of files ends at a nested project");
	refused(OUT("far", "", "", "'p/a/in/dist/x'"), "overlaps",
		"one of workspaceFiles does not");
	passes(OUT("far", "", "", "'p/a/in/gen/**'") "," TASK("one", "'**'", "'**/gen/**'"),
		"what lies in there is nothing to the project around it");
	ws_write("p/a/in/vx.config.json", "{}");
}

#define NEEDS(name, deps, in, out)                                                                 \
	"'" name "': {'dependsOn': [" deps "], 'exec': {'command': 'true'}, 'cache': {'inputs': "  \
	"{'files': [" in "], 'tasks': []}, 'outputs': {'files': [" out "]}}}"
#define GROUP(name, deps) "'" name "': {'dependsOn': [" deps "]}"

static void
post_adds(const struct graph *g)
{
	const struct node *post = graph_node(g, "a#post"), *build = graph_node(g, "a#build");

	ok(post->nadds_to == 1 && post->adds_to[0] == build && !post->nadded_by,
		"who adds to whom");
	ok(build->nadded_by == 1 && build->added_by[0] == post && !build->nadds_to, "and back");
}

static void
idle_post_adds(const struct graph *g)
{
	const struct node *build = graph_node(g, "a#build");

	ok(!graph_node(g, "a#post") && build->nadded_by == 1 &&
			!strcmp(build->added_by[0]->id, "a#post"),
		"the owner knows of a task that does not run");
}

static void
chain_adds(const struct graph *g)
{
	const struct node *last = graph_node(g, "a#last"), *post = graph_node(g, "a#post");

	ok(last->nadds_to == 2 && post->nadds_to == 1 && post->nadded_by == 1,
		"each to all before it");
}

static void
nobody_adds(const struct graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		ok(!g->nodes[i]->nadds_to && !g->nodes[i]->nadded_by, "nothing to add");
}

static void
test_additive(void)
{
	ws_write("vx.workspace.json",
		"{'projects': ['p/**'], 'rules': {'exclusiveOutputs': false}}");
	refused(OUT2("'dist/**'", "'dist/x'"), "overlaps",
		"without an edge they are exclusive still");
	look = post_adds;
	passes(NEEDS("build", "", "", "'dist/**', 'x'") "," NEEDS(
		       "post", "'build'", "", "'dist/**', 'x'"),
		"with an edge one adds");
	passes(NEEDS("build", "", "", "'dist/a/b/*.js'") "," NEEDS(
		       "post", "'via'", "", "'dist/**'") "," GROUP("via", "'build'"),
		"be it by way of a group, and the wider one");
	idle = "post";
	look = idle_post_adds;
	passes(NEEDS("build", "", "", "'dist/**'") "," NEEDS(
		       "post", "'via'", "", "'dist/x'") "," GROUP("via", "'build'"),
		"what adds need not run");
	passes(NEEDS("build", "", "", "'dist/**', 'x'") "," NEEDS(
		       "post", "'build'", "", "'dist/x', 'dist/y', 'x'"),
		"be it in many places");
	look = NULL;
	refused(NEEDS("build", "", "", "'dist/**'") "," NEEDS("post", "", "", "'dist/x'"),
		"overlaps", "but it needs its edge");
	idle = NULL;
	look = chain_adds;
	passes(NEEDS("build", "", "", "'dist/**'") "," NEEDS("post", "'build'", "",
		       "'dist/x'") "," NEEDS("last", "'post'", "", "'dist/**'"),
		"a chain");
	look = nobody_adds;
	passes(NEEDS("build", "", "", "'dist/**', '!dist/x'") "," NEEDS(
		       "post", "'build'", "", "'dist/x'"),
		"what is taken back is not in common");
	look = NULL;
	ws_write("vx.workspace.json", "{'projects': ['p/**']}");
}

static bool waits; /* a#test */

static void
is_late(const struct graph *g)
{
	ok(graph_node(g, "a#test")->reads_ahead == waits, "%s",
		waits ? "it waits" : "it need not wait");
}

#define GRANTED(name, write, out)                                                                  \
	"'" name "': {'exec': {'command': 'true', 'sandbox': {'allow': {'write': [" write          \
	"]}}}, 'cache': {'inputs': {'files': []}, 'outputs': {'files': [" out "]}}}"

/* Whose keys have to wait. */
static void
test_late(void)
{
	look = is_late;
	waits = true;
	passes(GRANTED("fmt", "'src/**'", "") "," NEEDS("test", "'fmt'", "'src/a.c'", ""),
		"a task before it may write an input that is no output");
	passes(GRANTED("fmt", "'..'", "") "," NEEDS("test", "'fmt'", "'src/a.c'", ""),
		"or anything");
	waits = false;
	passes(GRANTED("fmt", "'dist'", "'dist/**'") "," NEEDS("test", "'fmt'", "'src/**'", ""),
		"an output that is none");
	passes(GRANTED("fmt", "'src/**'", "") "," NEEDS("test", "", "'src/a.c'", ""),
		"one that it does not need");
	ws_write("vx.workspace.json", "{'projects': ['p/**'], 'rules': {'upfrontKeys': false}}");
	waits = true;
	passes(NEEDS("gen", "", "", "'gen/**'") "," NEEDS("test", "'gen'", "'**'", ""),
		"with upfrontKeys off, an output as well");
	passes(NEEDS("gen", "", "", "'gen/**'") "," GROUP("via", "'gen'") "," NEEDS(
		       "test", "'via'", "'gen/x'", ""),
		"of any task before it");
	waits = false;
	passes(NEEDS("gen", "", "", "'gen/**'") "," NEEDS("test", "'gen'", "'**', '!gen/**'", ""),
		"if it is not taken back");
	passes(NEEDS("gen", "", "", "'gen/**'") "," NEEDS("test", "", "'**'", ""),
		"there is nothing to wait for without an edge");
	look = NULL;
	ws_write("vx.workspace.json", "{'projects': ['p/**']}");
}

static void
test_upfront(void)
{
	passes(TASK("build", "'src/**'", "'dist/**'") "," TASK("test", "'src/**'", ""),
		"sources apart from products");
	passes(TASK("build", "'**'", "'dist/**'"), "a task's own outputs are no inputs of it");
	refused(TASK("build", "'src/**'", "'dist/**'") "," TASK("test", "'**'", ""),
		"cache.inputs.files \"**\" can match what a#build writes (\"dist/**\"",
		"everything holds the products of another task");
	refused(TASK("build", "'src/**'", "'dist/**'") "," TASK("test", "'**'", ""),
		"add \"!dist/**\" to cache.inputs.files", "the exclusion is said");
	passes(TASK("build", "'src/**'", "'dist/**'") "," TASK("test", "'**', '!dist/**'", ""),
		"and heals it");
	passes(TASK("build", "", "'dist/**'") "," TASK("test", "'**', '!dist'", ""),
		"as does a literal");
	refused(TASK("build", "", "'dist/**'") "," TASK("test", "'**', '!dist/*.map'", ""),
		"!dist/**", "a part of it does not");
	refused(TASK("build", "", "'dist/**'") "," TASK("test", "'**/*.js'", ""), "!dist/**",
		"an ending that may lie anywhere");
	passes(TASK("build", "", "'dist/**'") "," TASK("test", "'**/*.js', '!dist/**/*.js'", ""),
		"but not there");
	passes(TASK("build", "", "'dist/**'") "," TASK("test", "'*.js'", ""), "nor at the top");
	refused(TASK("build", "", "'dist'") "," TASK("test", "'dist/a.js'", ""), "remove the entry",
		"what another task makes");
	refused(TASK("gen", "", "'src/gen.js'") "," TASK("test", "'src'", ""), "!src/gen.js",
		"a product among the sources");
	passes(TASK("gen", "", "'gen.c'") "," TASK("test", "'**/*.js'", ""), "a file is no tree");
	refused(TASK("gen", "", "'src/**/*.gen.ts'") "," TASK("test", "'src/**/*.{js,ts}'", ""),
		"!src/**/*.gen.ts", "two patterns with a name in common");
	passes(TASK("gen", "", "'src/*.css'") "," TASK("test", "'src/*.ts'", ""),
		"and without one");
	passes(TASK("tsc", "", "'x.tsbuildinfo'") "," TASK("test", "'**'", ""),
		"incremental state is never an input");
	passes(TASK("tsc", "", "'node_modules/.cache/**'") "," TASK("test", "'**'", ""),
		"nor is node_modules");

	ws_write("p/b/vx.config.json", "{'tasks': {" TASK("build", "'**'", "'dist/**'") "}}");
	ws_write("p/a/in/vx.config.json", "{'tasks': {" TASK("build", "", "'dist/**'") "}}");
	passes(TASK("test", "'**'", ""), "other projects, nested ones too, are out of reach");
	refused(WIDE("test", "'p/b/**'", ""), "add \"!p/b/dist/**\" to cache.inputs.workspaceFiles",
		"but not of workspaceFiles");
	passes(WIDE("test", "'p/b/**', '!p/b/dist/**'", ""), "which takes it back likewise");
	passes(WIDE("test", "'tsconfig.base.json'", ""), "or names a file");
}

int
main(void)
{
	ws_begin();
	ws_write("vx.workspace.json", "{'projects': ['p/**']}");
	test_exclusive();
	test_idle();
	test_workspace_files();
	test_additive();
	test_late();
	test_upfront();
	ws_end();
	return tap_done();
}

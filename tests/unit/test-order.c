/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"
#include "graph/order.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"

static struct root root;
static struct workspace w;

/* The graph of all tasks of the one project, from "a: b c; b: c" style text: one letter each. */
static void
graph_of(const char *text, struct graph *g)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct request requests[16];
	struct err e = ERR_INIT;
	size_t n = 0;

	strbuf_adds(&sb, "{'tasks': {");
	for (const char *s = text; *s; s++) {
		if (s[1] == ':') {
			strbuf_addf(&sb, "%s'%c': {'exec': {'command': 'true'}, 'dependsOn': [",
				s == text ? "" : "]}, ", *s);
			s++;
		} else if (*s != ' ') {
			strbuf_addf(&sb, "%s'%c'", sb.buf[sb.len - 1] == '[' ? "" : ", ", *s);
		}
	}
	strbuf_adds(&sb, "]}}}");
	ws_write("vx.config.json", sb.buf);
	if (root_find(ws_path, ROOT_EVALUATE, &root, &e) < 0 ||
		workspace_load(&root, -1, &w, &e) < 0)
		bug("%s", e.text);
	for (size_t i = 0; i < w.projects[0]->def.ntasks; i++)
		requests[n++] = (struct request){
			.project = w.projects[0], .def = &w.projects[0]->def.tasks[i]};
	if (graph_build(&w, requests, n, g, &e) < 0)
		bug("%s", e.text);
}

static void
drop(struct graph *g)
{
	graph_release(g);
	workspace_release(&w);
	root_release(&root);
}

static void
sorts_to(const char *text, const char *want, const char *priorities)
{
	cleanup_strbuf struct strbuf ids = STRBUF_INIT, numbers = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct graph g;

	graph_of(text, &g);
	ok_int(order_sort(&g, &e), 0, text);
	order_priorities(&g);
	for (size_t i = 0; i < g.n; i++) {
		strbuf_adds(&ids, g.nodes[i]->def->name);
		strbuf_addf(&numbers, "%u", g.nodes[i]->priority);
		if (g.nodes[i]->index != i)
			ok(false, "index of %s", g.nodes[i]->id);
	}
	ok_str(ids.buf, want, "dependencies first, then by id");
	ok_str(numbers.buf, priorities, "each with the number of its transitive dependents");
	drop(&g);
}

static void
cycle_is(const char *text, const char *want)
{
	struct err e = ERR_INIT;
	struct graph g;

	graph_of(text, &g);
	ok_int(order_sort(&g, &e), -1, text);
	ok_err(&e, want, want);
	ok_int(e.kind, ERR_CONFIG, "an error of the config");
	drop(&g);
}

static void
test_heap(void)
{
	struct node nodes[7] = {{.priority = 1}, {.priority = 5}, {.priority = 1}, {.priority = 3},
		{.priority = 5}, {.priority = 0}, {.priority = 5}};
	static const size_t want[] = {1, 4, 6, 3, 0, 2, 5};
	struct ready r = {0};

	ok(!ready_pop(&r), "an empty queue");
	for (size_t i = 0; i < array_len(nodes); i++)
		ready_push(&r, &nodes[i]);
	for (size_t i = 0; i < array_len(want); i++)
		ok_int(ready_pop(&r) - nodes, (long long)want[i],
			"highest priority, then first come");
	ok(!ready_pop(&r), "and empty again");
	ready_release(&r);
}

/* More nodes than one sweep of the bitsets has columns, as node i depending on i - 1 and i - 2
 * would be, counted by hand. */
static void
test_wide(void)
{
	enum {
		N = 1500
	};
	static struct node nodes[N];
	static struct node *all[N], *dependents[N][2];
	struct graph g = {.nodes = all, .n = N};
	bool good = true;

	for (size_t i = 0; i < N; i++) {
		all[i] = &nodes[i];
		nodes[i] = (struct node){.index = i, .dependents = dependents[i]};
		for (size_t j = i + 1; j <= i + 2 && j < N; j++)
			dependents[i][nodes[i].ndependents++] = &nodes[j];
	}
	order_priorities(&g);
	for (size_t i = 0; i < N; i++)
		good &= nodes[i].priority == N - 1 - i;
	ok(good, "priorities over several sweeps");
}

int
main(void)
{
	ws_begin();
	sorts_to("a: b: c:", "abc", "000");
	sorts_to("a: b c b: d c: d d:", "dbca", "3110");
	sorts_to("a: z z: m: z", "zam", "200");
	sorts_to("a: b b: c c: d d:", "dcba", "3210");
	cycle_is("a: a", "circle: //#a -> //#a");
	cycle_is("a: a", "vx.config.json:1:61: tasks depend");
	cycle_is("a: b c b: c: a", "vx.config.json:1:66: tasks depend");
	cycle_is("a: b b: c c: a", "//#a -> //#b -> //#c -> //#a");
	cycle_is("a: c b: c c: d d: e b e:", "circle: //#b -> //#c -> //#d -> //#b");
	cycle_is("a: b b: c c: b", "circle: //#b -> //#c -> //#b");
	test_heap();
	test_wide();
	ws_end();
	return tap_done();
}

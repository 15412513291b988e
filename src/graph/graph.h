/* SPDX-License-Identifier: MIT */
/*
 * Tasks and the edges between them: what the requested tasks need, transitively.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "util/arena.h"
#include "util/htab.h"

struct err;
struct project;
struct taskdef;
struct workspace;

struct node {
	const char *id; /* "app#build"; the root project's is "//#build" */
	struct project *project;
	struct taskdef *def;
	struct node **deps; /* sorted by id */
	size_t ndeps;
	struct node **folded; /* those whose keys are folded into its own (cache.inputs.tasks) */
	size_t nfolded;
	struct node **dependents; /* sorted by id */
	size_t ndependents;
	/* What graph_check_outputs found, by the rules of vx.workspace.json that are off. Only with
	 * exclusiveOutputs: the tasks it needs that have outputs in common with it, to which it adds; and those
	 * that add to its own. Of the latter some may not run: they have a def and a project, but no edges. */
	const struct node **adds_to, **added_by;
	size_t nadds_to, nadded_by;
	/* Its inputs can be what a task before it writes: an output (upfrontKeys), or something else that it
	 * was granted. */
	bool reads_ahead;
	bool requested;
	/* --exclude-dependencies: no command of it is run and nothing restored; it is keyed, and keeps its
	 * place in the order. */
	bool left_out;
	const struct node *rests_on; /* one that is left out, whose key its own is made of; NULL */
	uint32_t priority;           /* number of transitive dependents (order.c) */
	size_t index;                /* in graph.nodes */
};
static inline bool node_is_group(const struct node *n);
static inline bool node_is_idle(const struct node *n);

struct graph {
	struct workspace *w; /* that it was built from */
	struct arena arena;
	struct node **nodes; /* sorted by id before order_sort, in dependency order after */
	size_t n;
	struct htab by_id;
};

/* Links `requested` (each a project and one of its tasks) and what they need, and has the scripts of the projects evaluated
 * that this leads to. Errors name the task,
 * the config's place, the dependsOn entry, and the nearest name. Iterative: 50,000-deep chains
 * work. */
struct request {
	struct project *project;
	struct taskdef *def;
	bool anchored; /* named with its project: no scope is asked about it */
};
int graph_build(struct workspace *w, const struct request *requested, size_t n, struct graph *ret,
	struct err *e);
void graph_release(struct graph *g);
struct node *graph_node(const struct graph *g, const char *id);
/* That of the task, which is in the graph. */
struct node *graph_node_of(
	const struct graph *g, const struct project *p, const struct taskdef *def);

/* Has the scripts of the projects evaluated into which files of the graph's tasks may reach (workspaceFiles): what is
 * declared there may be in their way. */
int graph_define_around(struct graph *g, struct err *e);

/* Refuses tasks whose outputs provably overlap (spec/config.md §3, graph-level output rules), and
 * cached tasks whose inputs can match another task's outputs; names both
 * tasks and the exclusion to add. What a rule that is off allows is noted in the nodes. */
int graph_check_outputs(struct graph *g, struct err *e);
/* After order_sort. Leaves out what the requested tasks need by edges to these alone: "build", "app#build"; none:
 * by any edge. A name that no project declares is refused. */
int graph_leave_out(struct graph *g, const char *const *names, size_t n, struct err *e);

/* Whether the node needs the other one, transitively. */
bool graph_needs(const struct node *node, const struct node *other);

/* All that the node needs, transitively, each once, without the node; with `folded` only those whose
 * keys are in its own. The array is the caller's. */
const struct node **graph_upstream(const struct node *node, bool folded, size_t *ret_n);

#include "config/taskdef.h"
static inline bool
node_is_group(const struct node *n)
{
	return !n->def->command;
}
/* Nothing is run of it. */
static inline bool
node_is_idle(const struct node *n)
{
	return n->left_out || node_is_group(n);
}

#endif

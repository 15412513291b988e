/* SPDX-License-Identifier: MIT */
#include "run/predict.h"
#include "graph/graph.h"
#include "graph/order.h"
#include "util/alloc.h"
#include "util/cleanup.h"

struct slot {
	uint64_t until;
	const struct node *node;
};

struct simulation {
	const struct predict_task *tasks;
	size_t *waits; /* by node: dependencies that have not ended */
	const struct node **ended;
	size_t nended;
	struct ready ready;
	struct slot *slots;
	size_t nslots;
};

static void
release(struct simulation *s, struct node *n)
{
	if (s->tasks[n->index].runs && s->tasks[n->index].ms)
		ready_push(&s->ready, n);
	else
		s->ended[s->nended++] = n;
}

/* Iterative, as chains are long. */
static void
tell_dependants(struct simulation *s)
{
	while (s->nended) {
		const struct node *n = s->ended[--s->nended];

		for (size_t i = 0; i < n->ndependents; i++)
			if (!--s->waits[n->dependents[i]->index])
				release(s, n->dependents[i]);
	}
}

/* The one that ends first. */
static struct slot
take_first(struct simulation *s)
{
	size_t first = 0;
	struct slot ret;

	for (size_t i = 1; i < s->nslots; i++)
		if (s->slots[i].until < s->slots[first].until)
			first = i;
	ret = s->slots[first];
	s->slots[first] = s->slots[--s->nslots];
	return ret;
}

static uint64_t
simulate(struct graph *g, struct simulation *s, unsigned concurrency)
{
	uint64_t now = 0;
	struct node *n;

	for (size_t i = 0; i < g->n; i++)
		s->waits[i] = g->nodes[i]->ndeps;
	for (size_t i = 0; i < g->n; i++)
		if (!g->nodes[i]->ndeps)
			release(s, g->nodes[i]);
	for (;;) {
		tell_dependants(s);
		while (s->nslots < concurrency && (n = ready_pop(&s->ready)))
			s->slots[s->nslots++] = (struct slot){now + s->tasks[n->index].ms, n};
		if (!s->nslots)
			return now;
		struct slot first = take_first(s);

		now = first.until;
		s->ended[s->nended++] = first.node;
	}
}

void
predict(struct graph *g, const struct predict_task *tasks, unsigned concurrency,
	struct predicted *ret)
{
	cleanup_free size_t *waits = xcalloc(g->n + 1, sizeof(*waits));
	cleanup_free const struct node **ended = xcalloc(g->n + 1, sizeof(*ended));
	cleanup_free struct slot *slots = xcalloc(concurrency, sizeof(*slots));
	struct simulation s = {.tasks = tasks, .waits = waits, .ended = ended, .slots = slots};
	struct predicted p = {.nothing = true};

	for (size_t i = 0; i < g->n; i++) {
		if (!tasks[i].runs)
			continue;
		p.nothing = false;
		p.any |= tasks[i].known;
		p.unknown += !tasks[i].known;
		p.work_ms += tasks[i].ms;
	}
	if (p.any) {
		order_priorities(g);
		p.wall_ms = simulate(g, &s, concurrency);
	}
	ready_release(&s.ready);
	*ret = p;
}

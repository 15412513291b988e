/* SPDX-License-Identifier: MIT */
#include "run/dry.h"
#include "cache/history.h"
#include "run/report.h"
#include "run/run.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

struct counts {
	size_t hits, misses, unknown, uncached, unneeded;
};

/* Keys, and what the cache has. Where all that a late task needs is in place, nothing will run or be
 * restored before it either, and its key is what it will be; in_place is by task. */
static int
look_up(struct plan *p, struct task *t, struct index **ix, const struct run_options *o,
	bool *in_place, struct err *e)
{
	struct err why = ERR_INIT;
	enum entry_making least = o->sandbox == SANDBOX_ALL ? MADE_CONFINED : MADE_UNCONFINED;
	const struct node *n = t->node;
	bool settled = true;
	int current;

	for (size_t d = 0; d < n->ndeps && settled; d++)
		settled = in_place[n->deps[d]->index];
	if (t->late && (t->own_probes || !settled))
		return 0;
	if (plan_key(p, t, e))
		return -1;
	in_place[n->index] = settled && (node_is_group(n) || n->def->persistent);
	if (!n->def->cache || !*ix || o->no_read)
		return 0;
	/* As in a run: what cannot be looked up is a miss. */
	if (plan_look_up(p, t, *ix, least, &why)) {
		report_warn("%s", why.text);
		*ix = NULL;
	}
	if (!t->found || !settled)
		return 0;
	current = index_is_current(*ix, p->w->rootfd, n->id, &t->key, &why);
	in_place[n->index] = current > 0;
	return 0;
}

static const char *
describe(const struct task *t, bool needed, bool cached, bool no_read, struct counts *c,
	const char **ret_phrase)
{
	if (node_is_group(t->node)) {
		*ret_phrase = "group";
		return "○";
	}
	if (t->node->def->persistent && !needed) {
		c->unneeded++;
		*ret_phrase = "not needed, not started";
		return "−";
	}
	if (!cached) {
		c->uncached++;
		*ret_phrase = t->node->def->persistent ? "persistent" : "no-cache";
		return "·";
	}
	if (t->found) {
		c->hits++;
		*ret_phrase = "hit";
		return "◉";
	}
	if (!t->has_key && !no_read) {
		c->unknown++;
		*ret_phrase = "known when its dependencies have run";
		return "?";
	}
	c->misses++;
	*ret_phrase = "miss";
	return "▶";
}

int
dry_print(struct plan *p, struct index *ix, struct history *h, const struct run_options *o,
	struct strbuf *out, struct err *e)
{
	cleanup_free bool *needed = NULL, *in_place = xcalloc(p->g->n, sizeof(*in_place));
	struct counts c = {0};
	size_t n;

	for (size_t i = 0; i < p->g->n; i++)
		if (look_up(p, &p->tasks[i], &ix, o, in_place, e))
			return -1;
	needed = plan_find_needed(p, false, true);
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		const struct taskdef *def = t->node->def;
		const char *phrase,
			*symbol = describe(t, needed[i], def->cache && !(o->no_read && o->no_write),
				o->no_read, &c, &phrase);
		char hex[DIGEST_HEX] = "--------", p50[40] = "";
		struct err none = ERR_INIT;
		uint64_t ms = 0;

		if (t->has_key)
			digest_hex(&t->key, hex);
		if (!t->found && !node_is_group(t->node) && !def->persistent)
			history_p50(h, t->node->id, &ms, &none);
		if (ms)
			snprintf(p50, sizeof(p50), "  ~%llums", (unsigned long long)ms);
		strbuf_addf(out, "%s %s  %s  %.8s%s\n", symbol, t->node->id, phrase, hex, p50);
		if (def->description)
			strbuf_addf(out, "    %s\n", def->description);
	}
	n = c.hits + c.misses + c.unknown + c.uncached;
	strbuf_addf(out, "%zu task%s: %zu to be %s, %zu to miss, %zu without cache", n,
		n == 1 ? "" : "s", c.hits, c.hits == 1 ? "a hit" : "hits", c.misses, c.uncached);
	if (c.unknown)
		strbuf_addf(out, ", %zu unknown", c.unknown);
	if (c.unneeded)
		strbuf_addf(out, "; %zu not needed", c.unneeded);
	strbuf_addch(out, '\n');
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "run/dry.h"
#include "cache/history.h"
#include "run/run.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

int
dry_print(struct plan *p, struct index *ix, struct history *h, const struct run_options *o,
	struct strbuf *out, struct err *e)
{
	size_t hits = 0, misses = 0, uncached = 0;
	enum entry_making least = o->sandbox == SANDBOX_ALL ? MADE_CONFINED : MADE_UNCONFINED;

	for (size_t i = 0; i < p->g->n; i++) {
		struct task *t = &p->tasks[i];
		const struct taskdef *def = t->node->def;
		const char *symbol = "▶", *phrase = "miss";
		char hex[DIGEST_HEX] = "--------", p50[40] = "";
		uint64_t ms = 0;

		if (!t->late) {
			if (plan_key(p, t, e))
				return -1;
			digest_hex(&t->key, hex);
		}
		if (node_is_group(t->node)) {
			symbol = "○";
			phrase = "group";
		} else if (!def->cache || !ix) {
			symbol = "·";
			phrase = "no-cache";
			uncached++;
		} else if (t->late) {
			phrase = "known when its dependencies have run";
			misses++;
		} else {
			if (!o->no_read && plan_look_up(p, t, ix, least, e))
				return -1;
			if (t->found) {
				symbol = "◉";
				phrase = "hit";
				hits++;
			} else {
				misses++;
			}
		}
		if (!t->found && !node_is_group(t->node) && history_p50(h, t->node->id, &ms, e) < 0)
			return -1;
		if (ms)
			snprintf(p50, sizeof(p50), "  ~%llums", (unsigned long long)ms);
		strbuf_addf(out, "%s %s  %s  %.8s%s\n", symbol, t->node->id, phrase, hex, p50);
		if (def->description)
			strbuf_addf(out, "    %s\n", def->description);
	}
	strbuf_addf(out, "%zu task%s: %zu to be hits, %zu to miss, %zu without cache\n",
		hits + misses + uncached, hits + misses + uncached == 1 ? "" : "s", hits, misses,
		uncached);
	return 0;
}

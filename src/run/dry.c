/* SPDX-License-Identifier: MIT */
#include "run/dry.h"
#include "cache/history.h"
#include "config/json.h"
#include "run/predict.h"
#include "run/report.h"
#include "run/run.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/mask.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* What is said of one task. */
enum verdict {
	V_HIT,
	V_MISS,
	V_UNKNOWN,
	V_NO_CACHE,
	V_PERSISTENT,
	V_NOOP,
	V_UNNEEDED,
	V_LEFT_OUT,
	V_GROUP,
	VERDICTS
};
static const struct {
	const char *symbol, *phrase;
	const char *status; /* in JSON: docs/DRY.md */
} verdicts[VERDICTS] = {
	[V_HIT] = {"◉", "hit", "hit"},
	[V_MISS] = {"▶", "miss", "miss"},
	[V_UNKNOWN] = {"?", "known when its dependencies have run", "unknown"},
	[V_NO_CACHE] = {"·", "no-cache", "no-cache"},
	[V_PERSISTENT] = {"·", "persistent", "no-cache"},
	[V_NOOP] = {"∅", "@noop, only for another machine", "noop"},
	[V_UNNEEDED] = {"−", "not needed, not started", "not-started"},
	[V_LEFT_OUT] = {"−", "left out by --exclude-dependencies", "left-out"},
	[V_GROUP] = {"○", "group", "group"},
};

struct row {
	enum verdict verdict;
	bool has_p50;
	uint64_t p50;
	char *key_text; /* JSON only; it holds NULs */
	size_t key_text_len;
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
	in_place[n->index] = settled && (node_is_idle(n) || n->def->persistent);
	if (n->left_out || !n->def->cache || n->def->remote == REMOTE_ONLY || !*ix || o->no_read)
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

static enum verdict
judge(const struct task *t, bool needed, const struct run_options *o)
{
	const struct taskdef *def = t->node->def;

	if (t->node->left_out)
		return V_LEFT_OUT;
	if (node_is_group(t->node))
		return V_GROUP;
	if (task_is_noop(t))
		return V_NOOP;
	if (def->persistent)
		return needed ? V_PERSISTENT : V_UNNEEDED;
	if (!def->cache || def->remote == REMOTE_ONLY || (o->no_read && o->no_write))
		return V_NO_CACHE;
	if (t->found)
		return V_HIT;
	return t->has_key || o->no_read ? V_MISS : V_UNKNOWN;
}

static bool
runs(enum verdict v)
{
	return v == V_MISS || v == V_NO_CACHE || v == V_UNKNOWN;
}

static void
find_rows(const struct plan *p, struct history *h, const struct run_options *o, struct row *rows,
	struct predict_task *times)
{
	cleanup_free bool *needed = plan_find_needed(p, false, true);

	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		struct row *row = &rows[i];
		struct err none = ERR_INIT;

		row->verdict = judge(t, needed[i], o);
		if (!runs(row->verdict))
			continue;
		row->has_p50 = history_p50(h, t->node->id, &row->p50, &none) > 0;
		/* one whose key is not known may be a hit: then its time is no part of the whole */
		times[i].runs = true;
		times[i].known = row->has_p50 && row->verdict != V_UNKNOWN;
		times[i].ms = times[i].known ? row->p50 : 0;
	}
}

/* ------------------------------------------------------------------ text */

static void
add_ms(struct strbuf *out, uint64_t ms)
{
	char text[32];

	report_duration(ms * 1000000, text, sizeof(text));
	strbuf_addf(out, "~%s", text);
}

static void
add_counts(const struct row *rows, size_t ntasks, struct strbuf *out)
{
	size_t c[VERDICTS] = {0}, n;

	for (size_t i = 0; i < ntasks; i++)
		c[rows[i].verdict]++;
	c[V_NO_CACHE] += c[V_PERSISTENT];
	n = c[V_HIT] + c[V_MISS] + c[V_UNKNOWN] + c[V_NO_CACHE];
	strbuf_addf(out, "%zu task%s: %zu to be %s, %zu to miss, %zu without cache", n,
		n == 1 ? "" : "s", c[V_HIT], c[V_HIT] == 1 ? "a hit" : "hits", c[V_MISS],
		c[V_NO_CACHE]);
	if (c[V_UNKNOWN])
		strbuf_addf(out, ", %zu unknown", c[V_UNKNOWN]);
	if (c[V_NOOP])
		strbuf_addf(out, "; %zu only remote, done by nobody", c[V_NOOP]);
	if (c[V_UNNEEDED])
		strbuf_addf(out, "; %zu not needed", c[V_UNNEEDED]);
	if (c[V_LEFT_OUT])
		strbuf_addf(out, "; %zu left out", c[V_LEFT_OUT]);
	strbuf_addch(out, '\n');
}

static void
add_prediction(const struct predicted *pr, struct strbuf *out)
{
	if (pr->nothing)
		return;
	strbuf_adds(out, "predicted: ");
	if (!pr->any) {
		strbuf_adds(out, "nothing, as none of what may run has run before\n");
		return;
	}
	add_ms(out, pr->wall_ms);
	strbuf_adds(out, " wall · ");
	add_ms(out, pr->work_ms);
	strbuf_adds(out, " total");
	if (pr->unknown)
		strbuf_addf(out, ", without %zu task%s of which too little is known", pr->unknown,
			pr->unknown == 1 ? "" : "s");
	strbuf_addch(out, '\n');
}

/* NULL: nobody executes it, or there is nobody but vx. */
static const char *
executor_of(const struct plan *p, const struct task *t)
{
	if (!p->w->settings.nexecutors || node_is_idle(t->node) || task_is_noop(t))
		return NULL;
	return t->placed_on ? t->placed_on : "local";
}

static void
print_text(const struct plan *p, const struct row *rows, const struct predicted *pr,
	struct strbuf *out)
{
	for (size_t i = 0; i < p->g->n; i++) {
		const struct task *t = &p->tasks[i];
		const struct taskdef *def = t->node->def;
		char hex[DIGEST_HEX] = "--------";

		if (t->has_key)
			digest_hex(&t->key, hex);
		strbuf_addf(out, "%s %s  %s  %.8s", verdicts[rows[i].verdict].symbol, t->node->id,
			verdicts[rows[i].verdict].phrase, hex);
		if (rows[i].has_p50) {
			strbuf_adds(out, "  ");
			add_ms(out, rows[i].p50);
		}
		if (executor_of(p, t))
			strbuf_addf(out, "  on %s", executor_of(p, t));
		strbuf_addch(out, '\n');
		if (def->description) {
			strbuf_adds(out, "    ");
			strbuf_add_sanitised(out, def->description, strlen(def->description));
			strbuf_addch(out, '\n');
		}
	}
	add_counts(rows, p->g->n, out);
	add_prediction(pr, out);
}

/* ------------------------------------------------------------------ JSON */

static void
add_member(struct strbuf *out, const char *name, const char *value)
{
	strbuf_addf(out, "\"%s\":", name);
	if (value)
		json_add_string(value, strlen(value), out);
	else
		strbuf_adds(out, "null");
}

static void
add_task(const struct plan *p, const struct task *t, const struct row *row, struct strbuf *out)
{
	const struct node *n = t->node;
	char hex[DIGEST_HEX];

	if (t->has_key)
		digest_hex(&t->key, hex);
	strbuf_addch(out, '{');
	add_member(out, "id", n->id);
	strbuf_addch(out, ',');
	add_member(out, "project", n->project->name);
	strbuf_addch(out, ',');
	add_member(out, "dir", *n->project->dir ? n->project->dir : ".");
	strbuf_addch(out, ',');
	add_member(out, "task", n->def->name);
	if (n->def->description) {
		strbuf_addch(out, ',');
		add_member(out, "description", n->def->description);
	}
	strbuf_addf(out, ",\"requested\":%s,", n->requested ? "true" : "false");
	add_member(out, "hash", t->has_key ? hex : NULL);
	strbuf_addch(out, ',');
	add_member(out, "cacheStatus", verdicts[row->verdict].status);
	strbuf_adds(out, ",\"deps\":[");
	for (size_t i = 0; i < n->ndeps; i++) {
		strbuf_adds(out, i ? "," : "");
		json_add_string(n->deps[i]->id, strlen(n->deps[i]->id), out);
	}
	strbuf_addch(out, ']');
	if (executor_of(p, t)) {
		strbuf_addch(out, ',');
		add_member(out, "executor", executor_of(p, t));
	}
	if (row->has_p50)
		strbuf_addf(out, ",\"p50Ms\":%llu", (unsigned long long)row->p50);
	if (row->key_text) {
		strbuf_adds(out, ",\"keyText\":");
		json_add_string(row->key_text, row->key_text_len, out);
	}
	strbuf_addch(out, '}');
}

static void
print_json(const struct plan *p, const struct row *rows, const struct predicted *pr,
	struct strbuf *out)
{
	strbuf_addf(out, "{\"version\":%d,\"tasks\":[", DRY_VERSION);
	for (size_t i = 0; i < p->g->n; i++) {
		strbuf_adds(out, i ? ",\n" : "\n");
		add_task(p, &p->tasks[i], &rows[i], out);
	}
	strbuf_adds(out, "]");
	if (pr->any || pr->nothing)
		strbuf_addf(out,
			",\n\"predicted\":{\"wallMs\":%llu,\"workMs\":%llu,\"unknownCount\":%zu}",
			(unsigned long long)pr->wall_ms, (unsigned long long)pr->work_ms,
			pr->unknown);
	strbuf_adds(out, "}\n");
}

/* Variables are in it with their values. */
static void
take_key_text(const struct plan *p, struct row *row)
{
	struct strbuf out = STRBUF_INIT;

	mask_whole(p->mask, p->text.buf, p->text.len, &out);
	row->key_text_len = out.len;
	row->key_text = strbuf_take(&out);
}

int
dry_print(struct plan *p, struct index *ix, struct history *h, const struct run_options *o,
	unsigned concurrency, struct strbuf *out, struct err *e)
{
	cleanup_free bool *in_place = xcalloc(p->g->n + 1, sizeof(*in_place));
	cleanup_free struct row *rows = xcalloc(p->g->n + 1, sizeof(*rows));
	cleanup_free struct predict_task *times = xcalloc(p->g->n + 1, sizeof(*times));
	struct predicted pr;
	int r = 0;

	for (size_t i = 0; i < p->g->n && !r; i++) {
		struct task *t = &p->tasks[i];

		r = look_up(p, t, &ix, o, in_place, e);
		/* a group's key is of other keys alone */
		if (!r && o->dry == DRY_JSON && t->has_key && !node_is_group(t->node))
			take_key_text(p, &rows[i]);
	}
	if (!r) {
		find_rows(p, h, o, rows, times);
		predict(p->g, times, concurrency, &pr);
		if (o->dry == DRY_JSON)
			print_json(p, rows, &pr, out);
		else
			print_text(p, rows, &pr, out);
	}
	for (size_t i = 0; i < p->g->n; i++)
		free(rows[i].key_text);
	return r;
}

/* ------------------------------------------------------------------ DOT */

/* Quoted: of what stands in quotes DOT takes a quote and a backslash for more than itself. */
static void
add_dot_name(const char *name, struct strbuf *out)
{
	strbuf_addch(out, '"');
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *name);
	}
	strbuf_addch(out, '"');
}

void
dry_print_graph(const struct graph *g, struct strbuf *out)
{
	strbuf_adds(out, "digraph vx {\n\trankdir = LR;\n\tnode [shape = box];\n");
	for (size_t i = 0; i < g->n; i++) {
		const struct node *n = g->nodes[i];
		const char *shape = node_is_group(n) ? ", shape = ellipse" : "",
			   *style = n->left_out    ? ", style = dashed"
				    : n->requested ? ", style = bold"
						   : "";

		strbuf_addch(out, '\t');
		add_dot_name(n->id, out);
		if (*shape || *style)
			strbuf_addf(out, " [%s%s%s]", *shape ? shape + 2 : "",
				*shape && *style ? ", " : "", *style ? style + 2 : "");
		strbuf_adds(out, ";\n");
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->ndeps; d++) {
			strbuf_addch(out, '\t');
			add_dot_name(g->nodes[i]->id, out);
			strbuf_adds(out, " -> ");
			add_dot_name(g->nodes[i]->deps[d]->id, out);
			strbuf_adds(out, ";\n");
		}
	strbuf_adds(out, "}\n");
}

/* SPDX-License-Identifier: MIT */
/*
 * Why a task runs that could have been a hit: its key beside the last one of it that the history knows. One phrase, of
 * what is sure; where nothing is, nothing is said. A hit costs nothing here.
 */
#include "cache/key.h"
#include "cache/keydiff.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/mask.h"
#include "util/path.h"
#include "workspace/workspace.h"

struct explaining {
	const struct task *task;
	size_t n[KEYDIFF_PARTS];
	struct strbuf first[KEYDIFF_PARTS]; /* in words */
	char *manifest;
	const struct plan *plan;
};

static const char *
how_word(enum keydiff_how how)
{
	return how == KEYDIFF_CAME ? "is new" : how == KEYDIFF_WENT ? "is gone" : "changed";
}

/* Who has the key. */
static const struct node *
upstream_with(const struct explaining *x, const char *hex)
{
	const struct node *n = x->task->node;
	char other[DIGEST_HEX];

	for (size_t i = 0; i < n->nfolded; i++) {
		digest_hex(&plan_task(x->plan, n->folded[i])->key, other);
		if (!strncmp(other, hex, DIGEST_HEX - 1))
			return n->folded[i];
	}
	return NULL;
}

static void
describe(struct explaining *x, enum keydiff_part part, enum keydiff_how how, const char *name,
	struct strbuf *out)
{
	const struct node *up;

	switch (part) {
	case KEYDIFF_CONFIG:
		strbuf_adds(out, "its config changed");
		break;
	case KEYDIFF_ARGUMENTS:
		strbuf_adds(out, "the arguments after -- changed");
		break;
	case KEYDIFF_ENV:
		strbuf_adds(out, "env ");
		strbuf_add_sanitised(out, name, strlen(name));
		strbuf_adds(out, " changed");
		break;
	case KEYDIFF_RUNTIME:
		strbuf_adds(out, "what `");
		strbuf_add_sanitised(out, name, strlen(name));
		strbuf_adds(out, "` prints changed");
		break;
	case KEYDIFF_INPUT:
		strbuf_adds(out, how == KEYDIFF_MODE ? "mode of " : "");
		strbuf_add_sanitised(out, name, strlen(name));
		strbuf_addf(out, " %s", how_word(how));
		break;
	case KEYDIFF_MANIFEST:
		strbuf_addf(out, "%s changed", x->manifest);
		break;
	case KEYDIFF_UPSTREAM:
		up = how == KEYDIFF_CAME ? upstream_with(x, name) : NULL;
		if (up)
			strbuf_addf(out, "upstream %s changed", up->id);
		else
			strbuf_adds(out, "what it depends on changed");
		break;
	case KEYDIFF_WORKSPACE:
		strbuf_adds(out, "a lock file or setting of the package manager changed");
		break;
	case KEYDIFF_PLATFORM:
		strbuf_adds(out, "the system changed");
		break;
	case KEYDIFF_PARTS:
		break;
	}
}

static void
differs(void *ctx, enum keydiff_part part, enum keydiff_how how, const char *name)
{
	struct explaining *x = ctx;

	/* One file, though it stands at two places. */
	if (part == KEYDIFF_INPUT && x->n[KEYDIFF_MANIFEST] && !strcmp(name, x->manifest))
		return;
	/* A key that went is the one in the place of which another came, unless more of them went. */
	if (part == KEYDIFF_UPSTREAM && how == KEYDIFF_WENT)
		return;
	if (!x->n[part]++)
		describe(x, part, how, name, &x->first[part]);
}

/* By what is kept of the keys. */
static char *
compare(struct sched *s, const struct task *t, const struct strbuf *was, const struct strbuf *is)
{
	struct explaining x = {.task = t, .plan = s->plan};
	struct strbuf out = STRBUF_INIT;
	size_t others = 0, at = KEYDIFF_PARTS;
	bool good;

	x.manifest = path_join(t->node->project->dir, "package.json");
	for (size_t i = 0; i < KEYDIFF_PARTS; i++)
		strbuf_init(&x.first[i]);
	good = keydiff(was->buf, was->len, is->buf, is->len, differs, &x);
	/* It moves every key. */
	if (x.n[KEYDIFF_WORKSPACE] || x.n[KEYDIFF_PLATFORM])
		x.n[KEYDIFF_UPSTREAM] = 0;
	for (size_t i = KEYDIFF_PARTS; i-- > 0;) {
		others += x.n[i];
		at = x.n[i] ? i : at;
	}
	if (good && at < KEYDIFF_PARTS) {
		strbuf_add(&out, x.first[at].buf, x.first[at].len);
		/* Another config may read other files: that says it all. */
		if (others > 1 && at != KEYDIFF_CONFIG)
			strbuf_addf(&out, ", and %zu more", others - 1);
	}
	for (size_t i = 0; i < KEYDIFF_PARTS; i++)
		strbuf_release(&x.first[i]);
	free(x.manifest);
	return out.len ? strbuf_take(&out) : NULL;
}

static const char *
why_same_key(const struct history_last *last)
{
	if (last->failed)
		return "it failed last time";
	if (last->was_hit || last->saved == 1)
		return "its last result is not in the cache any more";
	return last->saved == 0 ? "its last result was not saved" : NULL;
}

/* Of one that was looked up, and is not there. */
static char *
find_why(struct sched *s, struct task *t, const struct strbuf *is, struct err *e)
{
	cleanup_strbuf struct strbuf was = STRBUF_INIT;
	struct history_last last;
	const char *why;
	bool never;
	int r = history_last(s->o->history, t->node->id, &last, &never, e);

	t->is_new = never;
	if (never)
		return xstrdup("no earlier run recorded");
	if (r <= 0 || !last.has_key)
		return NULL;
	if (digest_equal(&last.key, &t->key)) {
		why = why_same_key(&last);
		return why ? xstrdup(why) : NULL;
	}
	if (!is->len || history_key_text(s->o->history, t->node->id, &last.key, &was, e) != 1)
		return NULL;
	return compare(s, t, &was, is);
}

void
miss_explain(struct sched *s, struct task *t)
{
	cleanup_strbuf struct strbuf is = STRBUF_INIT;
	struct err e = ERR_INIT;

	if (!s->o->history || t->tainted)
		return;
	if (plan_text(s->plan, t, &e) == 1 &&
		keydiff_reduce(s->plan->text.buf, s->plan->text.len, &is))
		history_pack(is.buf, is.len, &t->key_text);
	else
		strbuf_reset(&is);
	if (t->lost)
		t->why = xstrdup("its stored result was damaged or gone");
	else if (t->too_weak)
		t->why = xstrdup("its stored result was not made in a sandbox");
	else if (t->answered)
		t->why = find_why(s, t, &is, &e);
	/* A name can hold a secret as well. */
	if (t->why) {
		char *shown = mask_text(s->plan->mask, t->why);

		free(t->why);
		t->why = shown;
	}
	/* What only explains fails nothing. */
	if (err_is_set(&e))
		log_debug("cache", "%s: %s", t->node->id, e.text);
}

/* What the history has of this key, with this end of it. False where it knows none. */
static bool
count_outcomes(struct sched *s, struct task *t, const struct exec_result *r)
{
	struct err e = ERR_INIT;

	if (!s->o->history || !t->has_key || t->is_new || r->nfindings ||
		r->outcome == EXEC_NOT_STARTED || r->outcome == EXEC_BROKEN)
		return false;
	if (history_outcomes(s->o->history, t->node->id, &t->key, &t->passes, &t->failures, &e)) {
		log_debug("cache", "%s: %s", t->node->id, e.text);
		return false;
	}
	return true;
}

void
miss_note_flaky(struct sched *s, struct job *j, const struct exec_result *r)
{
	struct task *t = j->task;
	bool succeeded = t->status == TASK_SUCCESS;
	uint64_t others = 0;

	if (t->node->def->persistent)
		return;
	if (count_outcomes(s, t, r))
		others = succeeded ? t->failures : t->passes;
	t->passes += succeeded;
	t->failures += t->status == TASK_FAILED;
	if (others)
		settle_note(j, "flaky: with the same key it %s %llu time%s before",
			succeeded ? "failed" : "succeeded", (unsigned long long)others,
			others == 1 ? "" : "s");
	if (succeeded && t->attempts > 1)
		settle_note(j, "flaky: it succeeded in attempt %u", t->attempts);
	t->flaky = others || (succeeded && t->attempts > 1);
}

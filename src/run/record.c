/* SPDX-License-Identifier: MIT */
#include "proto/status.h"
#include "run/sched-private.h"
#include "util/alloc.h"

static char *
copy_or_null(const char *s)
{
	return s && *s ? xstrdup(s) : NULL;
}

const char *
record_status(const struct task *t)
{
	switch (t->status) {
	case TASK_SUCCESS:
		return "success";
	case TASK_HIT:
		return "cache-hit";
	case TASK_FAILED:
		return "failed";
	case TASK_SKIPPED:
		return "skipped";
	case TASK_ABORTED:
		return "aborted";
	case TASK_NOT_RUN:
	case TASK_NOOP:
	case TASK_UNNEEDED:
		break;
	}
	return "not-run";
}

const char *
record_cache(const struct task *t)
{
	switch (t->cache) {
	case CACHE_UP_TO_DATE:
		return "up-to-date";
	case CACHE_RESTORED:
		return "restored";
	case CACHE_MISS:
		return "miss";
	case CACHE_NONE:
		break;
	}
	return "no-cache";
}

void
record_task(struct sched *s, const struct task *t, const struct exec_result *r)
{
	struct sched_result *out = s->result;
	struct history_denial *denials = NULL;
	size_t n = r ? r->ndenials : 0;

	if (node_is_idle(t->node) || t->status == TASK_ABORTED || t->status == TASK_NOT_RUN ||
		t->status == TASK_NOOP || t->status == TASK_UNNEEDED)
		return;
	if (n)
		denials = xcalloc(n, sizeof(*denials));
	for (size_t i = 0; i < n; i++) {
		static const char *const classes[] = {"finding", "walled", "probe", "ignored"};
		const struct exec_denial *d = &r->denials[i];

		denials[i] = (struct history_denial){
			.op = denial_op_name((enum denial_op)d->op),
			.path = xstrdup(d->path),
			.class = classes[d->class],
			.program = copy_or_null(d->program),
			.grant = copy_or_null(d->grant),
			.pid = d->pid,
		};
	}
	GROW(out->history, out->nhistory + 1, s->history_cap);
	out->history[out->nhistory++] = (struct history_task){
		.task = t->node->id,
		.status = record_status(t),
		.cache = record_cache(t),
		/* What an executor broke says nothing of the key. */
		.has_key = t->has_key &&
			   !(r && (r->outcome == EXEC_NOT_STARTED || r->outcome == EXEC_BROKEN)),
		.key = t->key,
		.exit_code = t->exit_code,
		.duration_ns = t->duration_ns,
		.cpu_us = t->cpu_us,
		.peak_rss_kb = t->peak_rss_kb,
		.started_ns = t->started_ns,
		.timed_out = t->timed_out,
		.attempts = t->attempts,
		.blocked_by = t->blocked_by ? t->blocked_by->id : NULL,
		.nfindings = r ? r->nfindings : 0,
		.saved = t->saved,
		.key_text = t->key_text.len ? t->key_text.buf : NULL,
		.key_text_len = t->key_text.len,
		.denials = denials,
		.ndenials = n,
	};
}

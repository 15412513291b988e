/* SPDX-License-Identifier: MIT */
/*
 * Runs, tasks and denials that happened (WORKSPACE/.vx/history.db), for `vx last` and `vx why`, and
 * for predicted times. Kept 30 days, at most a million task rows. A run that a signal stopped records
 * nothing.
 */
#ifndef CACHE_HISTORY_H
#define CACHE_HISTORY_H

#include "util/digest.h"
#include "util/strbuf.h"

struct err;
struct history;

struct history_denial {
	const char *op, *path, *class, *program, *grant;
	uint32_t pid;
};
struct history_task {
	const char *task;
	const char *status; /* success, cache-hit, failed, skipped */
	const char *cache;  /* up-to-date, restored, miss, no-cache */
	bool has_key;
	struct digest key;
	int exit_code;
	uint64_t duration_ns, cpu_us, peak_rss_kb;
	int64_t started_ns;
	bool timed_out;
	unsigned attempts;      /* at its command; the last one decided */
	const char *blocked_by; /* NULL */
	uint64_t nfindings;
	const struct history_denial *denials;
	size_t ndenials;
	bool saved;           /* its result is in the cache */
	const char *key_text; /* of history_pack; NULL: not kept */
	size_t key_text_len;
};
struct history_run {
	const char *run_id;  /* UUIDv7 text */
	const char *command; /* as typed, but for secrets */
	int64_t started_ns, ended_ns;
	unsigned concurrency;
	int exit_code;
	const char *tags; /* JSON; NULL: none */
	const struct history_task *tasks;
	size_t ntasks;
};

/* A --dry has no run lock: it is beside whoever has, and reads what was there after the last run. */
int history_open(const char *state_dir, bool is_dry, struct history **ret, struct err *e);
void history_close(struct history *h);
/* One transaction. */
int history_record(struct history *h, const struct history_run *run, struct err *e);
/* Median of the last nine executions that succeeded, in ms, for --dry: 1, or 0 when the task never ran. */
int history_p50(struct history *h, const char *task, uint64_t *ret_ms, struct err *e);
void history_run_id(char ret[37]);

/* What is kept of a key (cache/keydiff.h), of the newest four with which each task was executed. False: it is too much. */
bool history_pack(const char *text, size_t n, struct strbuf *ret);

/* What a task was last, of what ran or was a hit in the last 64 runs. */
struct history_last {
	bool has_key;
	struct digest key;
	bool was_hit, failed;
	int saved; /* as history_task.saved; -1: not known, or a hit */
};
/* 1; 0: not known, or, with *ret_never, in no run that was ever recorded. */
int history_last(struct history *h, const char *task, struct history_last *ret, bool *ret_never,
	struct err *e);
/* The bytes that were kept of this key of the task: 1, or 0. */
int history_key_text(struct history *h, const char *task, const struct digest *key,
	struct strbuf *ret, struct err *e);
/* How often it was executed with this key, by how that ended; what a sandbox found fault with does not count. Of
 * successes those among the last hundred. */
int history_outcomes(struct history *h, const char *task, const struct digest *key,
	uint64_t *ret_passes, uint64_t *ret_failures, struct err *e);

#endif

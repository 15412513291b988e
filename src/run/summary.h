/* SPDX-License-Identifier: MIT */
/*
 * A run in writing, when it is over: for programs (--summarize, docs/SUMMARY.md), as a trace for chrome://tracing and
 * Perfetto (--profile), and as a page of markdown (--report).
 */
#ifndef RUN_SUMMARY_H
#define RUN_SUMMARY_H

#include "run/sched.h"

enum {
	SUMMARY_VERSION = 1
};

struct summary {
	const struct plan *plan;
	const struct sched_result *result; /* for what was denied */
	const char *run_id;
	const char *command;          /* as typed, but for secrets */
	const char *tags;             /* a JSON object; NULL: none */
	int64_t started_ns, ended_ns; /* wall */
	uint64_t total_ns;
	int exit_code;
};

void summary_json(const struct summary *s, struct strbuf *out);
void summary_trace(const struct summary *s, struct strbuf *out);
void summary_markdown(const struct summary *s, struct strbuf *out);

/* By task: whether it is on the chain of executed tasks, each needing the one before, that took longest. The array is
 * the caller's; *ret_ns is what the chain took. */
bool *summary_critical(const struct plan *p, uint64_t *ret_ns);

/* {"k":"v",…} of k=v, in the order of their first mention; the last one of a name counts. Values are masked. */
struct strvec;
struct mask;
char *summary_tags(const struct strvec *tags, const struct mask *mask);

#endif

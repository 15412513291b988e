/* SPDX-License-Identifier: MIT */
/*
 * An executor that starts nothing: each job ends at the next turn of the loop as the test says, so
 * that the whole run layer is tested without a child process.
 */
#ifndef TESTS_FAKE_FAKE_EXEC_H
#define TESTS_FAKE_FAKE_EXEC_H

#include "exec/exec.h"

struct fake_script {
	const char *id;
	int exit_code;
	const char *prints;
	/* Called as the command would run: writes outputs, touches inputs. */
	void (*work)(void *ctx);
	bool holds; /* ends only when cancelled */
	bool finds; /* as a sandboxed task with one finding */
	/* Persistent: */
	bool starts; /* it is not ready until fake_ready; else at the next turn of the loop */
	const char
		*ended_by; /* ends when this one is started, with exit_code; else when cancelled */
};

struct fake {
	struct executor ex;
	struct loop *loop;
	const struct fake_script *scripts; /* ended by a NULL id; others exit 0 in silence */
	void *ctx;
	char order[2048]; /* ids in the order of their start, each followed by a blank */
	unsigned running, most;
	unsigned cancels;
	char ends[2048]; /* as `order`, of those that were cancelled, in the order of that */
	struct exec_job *jobs;
	void (*on_start)(struct fake *f, const char *id);
	/* As one that is asked: what it takes, as in `order`, and what it was asked about; "-" behind what is
	 * pinned. */
	const char *takes;
	char asked[2048];
	void (*on_ask)(struct fake *f, const char *id);
};

/* That persistent one is ready now. */
void fake_ready(struct fake *f, const char *id);
void fake_init(struct fake *f, struct loop *l, const struct fake_script *scripts, void *ctx);

#endif

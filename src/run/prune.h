/* SPDX-License-Identifier: MIT */
/*
 * vx cache prune: the sweep of cache/gc.h when the user asks for it, without a limit of time, under
 * the workspace's run lock.
 */
#ifndef RUN_PRUNE_H
#define RUN_PRUNE_H

#include "util/base.h"

struct err;
struct strbuf;

struct prune_options {
	const char *command;   /* as typed, for the lock */
	const char *cache_dir; /* relative to the current directory; NULL: the settings' */
	/* 0: not given; when none is, those of cacheRetention */
	uint64_t older_than_ns, max_bytes;
	bool dry, json;
};

/* The exit code, or -1. A named directory that is not there is an error; a workspace that never ran
 * has nothing to prune, and nothing is made. */
int prune_cache(const struct prune_options *o, struct strbuf *product, struct err *e);

#endif

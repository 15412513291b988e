/* SPDX-License-Identifier: MIT */
/*
 * Workspace settings: vx.workspace.json or what vx.workspace.ts and its like yielded, then the environment, then flags (each outranks the one
 * before). None of them is in a cache key.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include "util/base.h"

struct arena;
struct err;
struct script;
struct shape;

struct settings {
	const char **projects; /* globs of "projects", NULL when the field is absent */
	size_t nprojects;
	unsigned concurrency;   /* 0: not set */
	uint64_t timeout_ms;    /* 0: none */
	const char *timeout_by; /* who said so, for messages */
	const char *cache_dir;  /* as written, NULL: not set */
	const char *affected_base;
	bool exclusive_outputs, upfront_keys; /* rules */
	const char **
		executors; /* absolute, or "./" and a path from the root; in the order in which they are asked */
	size_t nexecutors;
	/* cacheRetention; 0: no limit */
	uint64_t cache_older_than_ns;
	uint64_t cache_max_bytes;
};

/* Of the whole file (config/fields.h). */
extern const struct shape settings_shape;

void settings_init(struct settings *s);

/* The name of the directory's workspace config ("vx.workspace.ts"), NULL: it has none. Two are refused,
 * and so is one that is not read, as vx.workspace.yaml. */
int settings_find(int rootfd, const char **ret_name, struct err *e);
/* Takes `script`, where that has been evaluated, else reads vx.workspace.json if it is there. */
int settings_load(int rootfd, const struct script *script, struct arena *a, struct settings *ret,
	struct err *e);

/* VX_TASK_TIMEOUT (bad values ignored, huge ones clamped), VX_CACHE_DIR. */
void settings_apply_env(struct settings *s);

/* Usable cores: online CPUs this process may run on, capped by the cgroup quota (v2 cpu.max or v1
 * cfs quota), at least 1. */
unsigned settings_usable_cores(void);

/* The part of it that knows cgroups: the tightest quota, rounded up, from the groups in the text of
 * /proc/self/cgroup up to the tops of their hierarchies, below the cgroup mount. 0: none. */
unsigned settings_quota_cores(const char *groups, int cgroupfd);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * package.json, as far as a task runner needs it: the name, the version, the `workspaces` globs and
 * the dependency fields.
 */
#ifndef WORKSPACE_MANIFEST_H
#define WORKSPACE_MANIFEST_H

#include "util/base.h"

struct arena;
struct err;

enum manifest_bucket { MANIFEST_DEPS, MANIFEST_DEV, MANIFEST_OPTIONAL, MANIFEST_PEER };

struct manifest_dep {
	enum manifest_bucket bucket;
	const char *name;
	const char *spec; /* "workspace:*", "^1.0.0", … */
};

struct manifest {
	const char *name;    /* NULL: none */
	const char *version; /* NULL: none */
	const char **workspaces;
	size_t nworkspaces;
	bool has_workspaces;
	struct manifest_dep *deps;
	size_t ndeps;
};

/* 1 read, 0 no such file, -1. `path` from dirfd, also for messages. */
int manifest_load(int dirfd, const char *path, struct arena *a, struct manifest *ret, struct err *e);

#endif

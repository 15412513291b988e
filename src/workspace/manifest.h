/* SPDX-License-Identifier: MIT */
/*
 * package.json, as far as a task runner needs it: the name, the version, the `workspaces` globs,
 * the dependency fields and bun's catalogs.
 */
#ifndef WORKSPACE_MANIFEST_H
#define WORKSPACE_MANIFEST_H

#include "util/base.h"

struct arena;
struct err;

enum manifest_bucket {
	MANIFEST_DEPS,
	MANIFEST_DEV,
	MANIFEST_OPTIONAL,
	MANIFEST_PEER
};

struct manifest_dep {
	enum manifest_bucket bucket;
	const char *name;
	const char *spec; /* "workspace:*", "^1.0.0", … */
};

/* What "catalog:" and "catalog:NAME" stand for: one line of a catalog. */
struct catalog_entry {
	const char *catalog; /* "default" for the one without a name */
	const char *name;
	const char *spec;
};

struct manifest {
	const char *name;    /* NULL: none */
	const char *version; /* NULL: none */
	const char **workspaces;
	size_t nworkspaces;
	bool has_workspaces;
	struct manifest_dep *deps;
	size_t ndeps;
	struct catalog_entry *catalogs;
	size_t ncatalogs;
};

/* 1 read, 0 no such file, -1. `path` from dirfd; `shown` is the name that messages give it. */
int manifest_load(int dirfd, const char *path, const char *shown, struct arena *a,
	struct manifest *ret, struct err *e);
/* The same of its text, which ends in a NUL. */
int manifest_parse(const char *text, size_t len, const char *shown, struct arena *a,
	struct manifest *ret, struct err *e);

/* The quick way that manifest_parse tries first (manifest-scan.c): whether the text, ended by a NUL,
 * was understood. When not, it may be anything. Separate for its test. */
bool manifest_scan(const char *text, size_t len, struct arena *a, struct manifest *ret);

/* Why no project may be called that, as the end of a sentence about the name: blanks around it, a `#`, … NULL: it may. */
const char *manifest_name_fault(const char *name);
/* `shown` names the file that says so. */
int manifest_check_name(const char *name, const char *shown, struct err *e);

#endif

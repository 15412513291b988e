/* SPDX-License-Identifier: MIT */
/*
 * pnpm-workspace.yaml, as far as a task runner needs it: the member globs and the catalogs.
 */
#ifndef WORKSPACE_PNPM_H
#define WORKSPACE_PNPM_H

#include "workspace/manifest.h"

struct pnpm {
	const char **packages; /* none: the file defers to package.json */
	size_t npackages;
	struct catalog_entry *catalogs;
	size_t ncatalogs;
};

/* 1 read, 0 no such file, -1. Looks for pnpm-workspace.yaml in dirfd; `shown` is the name that
 * messages give it. */
int pnpm_load(int dirfd, const char *shown, struct arena *a, struct pnpm *ret, struct err *e);

#endif

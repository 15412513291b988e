/* SPDX-License-Identifier: MIT */
/*
 * Package edges: which entries of manifests and configs make one project depend on another
 * (spec/config.md §1, package graph). Two adjacencies: order (what `^task` walks) and reach (what
 * filters walk), which is order and every workspace peer.
 */
#ifndef WORKSPACE_EDGES_H
#define WORKSPACE_EDGES_H

#include "util/base.h"

struct catalog_entry;
struct err;
struct manifest;
struct strvec;
struct workspace;

/* Fills deps and reach of every project. `manifests` is by project index. An earlier catalog entry
 * outranks a later one of the same name. */
struct edge_sources {
	const struct manifest *const *manifests;
	const struct catalog_entry *catalogs;
	size_t ncatalogs;
	/* Whether the package manager knows no other projects: then a "workspace:" of none is a slip. */
	bool is_whole;
};
/* Adds to `notes` a line for each "workspace:" entry that no project answers: a package manager would refuse it. */
int edges_link(
	struct workspace *w, const struct edge_sources *from, struct strvec *notes, struct err *e);

#endif

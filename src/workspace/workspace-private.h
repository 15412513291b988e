/* SPDX-License-Identifier: MIT */
/* What workspace.c and workspace-define.c share: a workspace while it is being read. */
#ifndef WORKSPACE_WORKSPACE_PRIVATE_H
#define WORKSPACE_WORKSPACE_PRIVATE_H

#include "config/json.h"
#include "util/strbuf.h"
#include "workspace/manifest.h"
#include "workspace/workspace.h"

struct catalog_entry;

/* A project while it is being read; the manifest is needed until the edges are known. */
struct loaded {
	struct project p;
	struct manifest manifest;
	const char *manifest_shown;
	bool named; /* by its manifest or config, not by its directory */
};

struct loading {
	struct workspace *w;
	const struct root *root;
	struct sources *sources;
	struct evaluated *evaluated;
	struct script_runtime *runtime;
	/* The directory of the last member: the next one is often beside it. */
	char *parent;
	int parentfd;
	/* The last config that was parsed: often the next one says the same. */
	struct strbuf config_text;
	struct json_doc config;
	struct strbuf shown;   /* the file that is being read */
	struct loaded **items; /* sorted as the projects are, once all have names */
	size_t n, cap;
	size_t nfar;                       /* tasks for workspace.far, at most */
	const struct manifest **manifests; /* by project index */
	struct catalog_entry *catalogs;
	size_t ncatalogs;
	const char **notes;
	size_t nnotes, notes_cap;
};

void workspace_note(struct loading *l, const char *text);

/* Its name and what it declares, from the text of its config; NULL: it has none. */
int workspace_define_data(
	struct loading *l, struct loaded *it, const char *config, size_t len, struct err *e);
/* Evaluates the scripts of projects that no manifest gives a name. Before there are indexes. */
int workspace_define_nameless(struct loading *l, struct err *e);
/* Edges, and what else is made of the definitions of all projects. Again when there are more of them. */
int workspace_link(struct loading *l, struct err *e);

/* Copies. */
struct rests workspace_take_rests(
	struct workspace *w, const struct strvec *needs, const struct strvec *manifests, bool any);

#endif

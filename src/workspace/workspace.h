/* SPDX-License-Identifier: MIT */
/*
 * All projects of a workspace, their tasks and the edges between them. Filled once, then const;
 * everything lives in its arena.
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include "config/settings.h"
#include "config/taskdef.h"
#include "util/arena.h"
#include "util/htab.h"
#include "workspace/members.h"

struct err;
struct root;

/* What a config in JavaScript rests on: files from the root, there or not. */
struct rests {
	const char **files;
	size_t nfiles;
	const char **manifests; /* package.json files, by what they say of modules alone */
	size_t nmanifests;
	bool on_any; /* it may have read any file beside */
};

struct project {
	const char *name;
	const char *dir;    /* from the root; "" for the root project */
	bool is_root;       /* also answers to "//" */
	bool has_manifest;  /* package.json beside it */
	const char *config; /* "packages/a/vx.config.ts" from the root, NULL: none */
	struct rests rests;
	struct projectdef def; /* no tasks when there is no config */
	struct project **deps; /* order edges (what ^task walks): direct, sorted by name, no self */
	size_t ndeps;
	struct project **reach; /* deps and workspace peers: what `pkg...` walks */
	size_t nreach;
	struct project **
		unmet; /* that its manifest names with a range which their version does not satisfy */
	size_t nunmet;
	struct project **nested; /* the outermost projects inside this one's directory, by dir */
	size_t nnested;
	size_t index; /* in workspace.projects */
};

struct workspace {
	struct arena arena;
	int rootfd; /* borrowed from struct root */
	const char *path;
	struct settings settings;
	struct rests rests;        /* of the settings */
	struct project **projects; /* sorted by name */
	size_t nprojects;
	struct htab by_name;
	struct htab by_dir;
	struct members members; /* that its projects were found by; none: it is a single one */
	/* Those with outputs in other projects than their own (taskdef_leaves_project). */
	const struct taskdef **far;
	size_t nfar;
	const char **notes; /* one line each, to be said once */
	size_t nnotes;
};

/* Reads settings, lists members, parses manifests and configs, links package edges. Everything that
 * spec/config.md §1 refuses is an error that names the file. What was read is remembered in statefd (-1:
 * nowhere; workspace/sources.h). */
int workspace_load(const struct root *root, int statefd, struct workspace *ret, struct err *e);
void workspace_release(struct workspace *w);

/* The project whose directory is, or most deeply holds, `dir`. NULL: none. */
struct project *workspace_project_at(const struct workspace *w, const char *dir);
/* Whether the directory would be one, had it a manifest or a config. */
bool workspace_would_hold(const struct workspace *w, const char *dir);
/* By name, or "//" for the root project. */
struct project *workspace_project(const struct workspace *w, const char *name);
/* NULL: it has none of that name. */
struct taskdef *project_task(const struct project *p, const char *task);

/* "p/a/vx.config.json:7:20": where entry `index` of a list of the project's config stands, of
 * `list` (NULL `task`) or of tasks.TASK.`list`, for what only the whole workspace shows to be wrong.
 * The file is read once more; where that fails, and where it is a script, the file alone. Owned. */
char *workspace_entry_place(const struct workspace *w, const struct project *p, const char *task,
	const char *list, size_t index);

/* The order of paths in which a directory is followed by all that it holds: '/' before every other
 * byte. */
int workspace_compare_paths(const char *a, const char *b);

#endif

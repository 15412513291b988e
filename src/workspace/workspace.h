/* SPDX-License-Identifier: MIT */
/*
 * All projects of a workspace, their tasks and the edges between them. Everything lives in its arena. Filled once, but for what
 * scripts declare (vx.config.ts and its like), which is there when it has been asked for; const when it is settled.
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include "config/settings.h"
#include "config/taskdef.h"
#include "util/arena.h"
#include "util/htab.h"
#include "workspace/members.h"

struct err;
struct loading;
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
	const char *dir;       /* from the root; "" for the root project */
	bool is_root;          /* also answers to "//" */
	bool has_manifest;     /* package.json beside it */
	const char *config;    /* "packages/a/vx.config.ts" from the root, NULL: none */
	struct rests rests;    /* of a config in JavaScript, as far as is known */
	bool undefined;        /* nobody has asked for its script: what it declares is not known */
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
	const char **notes; /* one line each, to be said once; when it is settled */
	size_t nnotes;
	size_t nundefined;       /* of the projects */
	struct loading *loading; /* workspace.c's own; NULL: it is settled */
};

/* Reads settings, lists members, parses manifests and configs that are data, links package edges. Of the scripts only those are
 * evaluated that a project's name depends on, as no manifest says it. Everything that
 * spec/config.md §1 refuses is an error that names the file. What was read is remembered in statefd (-1:
 * nowhere; workspace/sources.h), when the workspace is settled: at once where there is no script. `root` and statefd are
 * borrowed until then, and `ret` stays where it is. */
int workspace_load(const struct root *root, int statefd, struct workspace *ret, struct err *e);
/* Evaluates the scripts of these projects (by index; NULL: of all), those that were not yet, in one process. The error
 * names the one that failed, and then nothing is known of any of these. Edges are made anew: do not walk them meanwhile. */
int workspace_define(struct workspace *w, const bool *which, struct err *e);
/* The same with all that these depend on, whose edges are then those of the whole workspace; and of `alone` without. */
int workspace_define_reached(
	struct workspace *w, const bool *which, const bool *alone, struct err *e);
/* Nothing more will be asked for. */
void workspace_settle(struct workspace *w);
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

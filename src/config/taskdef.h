/* SPDX-License-Identifier: MIT */
/*
 * One project's config (vx.config.json, or what one in JavaScript yielded), validated: every field of spec/config.md §3 and §4 that
 * this vx has. A field that a later vx will have is refused by name with "not in this vx yet"; an
 * unknown one with the allowed ones and the nearest. Errors carry file, line, column and path.
 */
#ifndef CONFIG_TASKDEF_H
#define CONFIG_TASKDEF_H

#include "util/base.h"
#include "util/glob.h"

struct arena;
struct err;
struct json_doc;
struct shape;

struct define {
	const char *name;
	const char *value;
};

/* A path or glob of a sandbox list, as written, and parsed: exactly one of glob and absolute. An
 * entry outside with braces becomes one grant for each alternative. */
struct grant {
	const char *text;
	struct glob *glob; /* in the workspace, relative to its root */
	/* "/…", "~" or "~/…": a literal, normal, escapes undone, without the "**" that may end it.
	 * Nothing is known yet of links, home and where the workspace is: the policy resolves it.
	 */
	const char *absolute;
};

struct sandboxdef {
	struct grant *allow_read, *allow_write, *deny_read, *deny_write;
	size_t nallow_read, nallow_write, ndeny_read, ndeny_write;
	struct grant *ignore_read, *ignore_write;
	size_t nignore_read, nignore_write;
	struct grant *sockets; /* allow.unixSockets as a list, literals */
	size_t nsockets;
	bool any_socket; /* allow.unixSockets: true */
	bool git_config;
	bool hermetic;
	bool nested;
	bool weaker_when_nested;
	bool live; /* the view; of a persistent task always */
};

struct cachedef {
	struct globset files;           /* inputs.files, from the workspace root */
	struct globset workspace_files; /* inputs.workspaceFiles */
	const char **env;               /* inputs.env, sorted, unique */
	size_t nenv;
	/* inputs.runtime and inputs.workspaceRuntime: commands, sorted, unique */
	const char **runtime, **workspace_runtime;
	size_t nruntime, nworkspace_runtime;
	struct upstream_rule *tasks; /* inputs.tasks; NULL: not written (config/upstream.h) */
	size_t ntasks;
	struct globset outputs; /* outputs.files, then outputs.workspaceFiles */
};

enum dep_form {
	DEP_SELF,     /* name: same project */
	DEP_UPSTREAM, /* ^name */
	DEP_PROJECT,  /* pkg#name, //#name */
};
struct depspec {
	enum dep_form form;
	const char *text;    /* as written */
	const char *project; /* DEP_PROJECT */
	const char *task;    /* may hold `*` with DEP_SELF and DEP_UPSTREAM */
};

enum {
	TASKDEF_RETRIES_MAX = 1000
};

enum remote_rule {
	REMOTE_MAY, /* another machine may execute it */
	REMOTE_NEVER,
	REMOTE_ONLY, /* never this one */
};

struct taskdef {
	const char *name;
	const char *description; /* NULL */
	const char *command;     /* NULL: a group */
	const char **pass_through;
	size_t npass_through;
	struct define *define;
	size_t ndefine;
	const char **secret; /* names of variables whose values are not shown */
	size_t nsecret;
	uint64_t timeout_ms; /* 0: none */
	bool has_retries;
	unsigned retries;        /* attempts after the first one; never with persistent */
	bool persistent;         /* goes on until somebody ends it: never with cache */
	const char *ready_when;  /* a valid regular expression (util/regex.h); NULL: at its start */
	enum remote_rule remote; /* in no key */
	struct sandboxdef *sandbox; /* NULL: no exec.sandbox */
	struct depspec *depends_on;
	size_t ndepends_on;
	struct cachedef *cache; /* NULL: never cached */
	const char *
		canonical; /* JSON text of the task object without exec.remote, keys sorted, no blanks: for the key */
	/* "packages/a/vx.config.json:12:5", "packages/a/vx.config.ts": for later errors about the task */
	const char *place;
};

struct projectdef {
	const char *name; /* "name", or NULL */
	const char **dependencies;
	size_t ndependencies;
	const char **tags;
	size_t ntags;
	struct taskdef *tasks; /* in the order of the file */
	size_t ntasks;
};

/* Of the whole file (config/fields.h). */
extern const struct shape projectdef_shape;

/* `dir`: the project's directory from the workspace root. */
int projectdef_parse(const struct json_doc *doc, const char *dir, struct arena *a,
	struct projectdef *ret, struct err *e);

/* Whether its outputs may lie in other projects: it has workspaceFiles, which stand behind the others. */
static inline bool
taskdef_leaves_project(const struct taskdef *t)
{
	const struct globset *set = t->cache ? &t->cache->outputs : NULL;

	return set && set->npos && glob_is_workspace(set->pos[set->npos - 1]);
}

/* The nearest of the names within two edits, or NULL. For "did you mean". */
const char *nearest_name(const char *word, const char *const *names, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Configs in JavaScript and TypeScript, evaluated to JSON by a runtime of the machine (bun, node, deno): one
 * process for all of them, that waits for more until it is closed. It runs helpers/config.mjs, a text that vx holds. Evaluating runs code of the workspace with the
 * user's rights. What it yields is remembered elsewhere (config/evaluated.h).
 */
#ifndef CONFIG_SCRIPT_H
#define CONFIG_SCRIPT_H

#include "util/base.h"
#include "util/strvec.h"

struct digest;
struct err;

/* One config. Zero all but `path` first. */
struct script {
	const char *path; /* from the root; borrowed */
	char *json;       /* what it yields, a NUL behind it */
	size_t len;
	/* Why the next evaluation may yield something else though no file changes: "it mentions process". "": it
	 * cannot. */
	char *why;
	/* The files from the root that the value rests on, there or not; and the package.json files that it rests on by
	 * what they say of modules alone. */
	struct strvec needs, manifests;
	bool reads_any; /* these are not all: it may have read any file. Not where `why` is "" */
	int64_t learned_ns; /* the files' clock before it was evaluated */
};
void script_release(struct script *s);

/* The endings that a config can have beside ".json", without the dot: sorted as they are preferred. */
extern const char *const script_endings[6];
/* How configs may end that somebody takes for such, and that nobody reads: refused, as silence would puzzle. */
extern const char *const script_unread_endings[5];

/* For the configs of one workspace; root_path is borrowed. Nothing is started yet. */
struct script_runtime *script_open(const char *root_path);
/* Evaluates all, in order, up to the first that fails. The error names it, kind CONFIG; ECANCELED in e->num when
 * a stop is asked (util/stop.h). On failure the runtime is killed, and the next call starts another. What they print goes to
 * standard error. */
int script_evaluate(struct script_runtime *rt, struct script *v, size_t n, struct err *e);
/* Nothing that a config has started goes on, when this process is a reaper of its descendants, or had one start the
 * runtime (util/keeper.h). */
void script_close(struct script_runtime *rt);

/* Which runtimes there are for the workspace (by path and stat, none is started), and which text they would run: what an
 * evaluation rests on beside the files. */
void script_identity(const char *root_path, struct digest *ret);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The environment of a task (spec/execution.md §4): essentials, passThrough, define, and
 * node_modules/.bin on PATH. Nothing else of vx's own environment.
 */
#ifndef EXEC_ENV_H
#define EXEC_ENV_H

#include "util/strvec.h"

struct project;
struct taskdef;

/* `base`: vx's environment as NAME=value. VX_RUN_WORKSPACE and VX_RUN_TASK are set; FORCE_COLOR=1
 * unless the task already sees FORCE_COLOR or a non-empty NO_COLOR. sandboxed: TMPDIR is /tmp, and TMP and TEMP are
 * not there, whatever `base` has; what the task defines stands. */
void env_build(const char *root_path, const struct project *p, const struct taskdef *t,
	const char *task_id, bool sandboxed, char *const *base, struct strvec *ret);

/* Whether a variable of vx's environment, or one defined in its place, is in that. */
bool env_has(const struct taskdef *t, const char *name);

/* That of a command whose output is in a key, in the project at `dir` from the root: all of `base`,
 * and node_modules/.bin first on PATH. VX_RUN_WORKSPACE is set, VX_RUN_TASK is not. */
void env_build_probe(const char *root_path, const char *dir, char *const *base, struct strvec *ret);

/* The command with forwarded arguments: quoted unless safe, appended to its last line. Owned. */
char *env_command(const char *command, const char *const *args, size_t nargs);

#endif

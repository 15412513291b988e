/* SPDX-License-Identifier: MIT */
/*
 * What most likely is behind the end of a command that the shell reports as 126, 127 or 128 + a signal
 * (spec/execution.md §5): one line beside the task's end. It looks at the disk, as it is afterwards, and at
 * what a sandbox has denied; it is a reading, never a verdict.
 */
#ifndef EXEC_EXPLAIN_H
#define EXEC_EXPLAIN_H

#include "exec/exec.h"

struct exit_facts {
	const char *command;
	const char *path;      /* the PATH that it had */
	const char *root_path; /* of the workspace */
	const char *dir;       /* the project's, from there */
	int cwd;               /* the same, open */
	const struct exec_result *result;
};

/* Owned; NULL: there is nothing to say. */
char *explain_exit(const struct exit_facts *f);

/* "SIGKILL: …", what usually sends it; NULL for a signal that speaks for itself. Borrowed. */
const char *explain_signal(int sig);

#endif

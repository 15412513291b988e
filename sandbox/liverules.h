/* SPDX-License-Identifier: MIT */
/*
 * What a command with a live view may change. Granted is what the rules of the spec grant for reading and
 * for writing; not, though granted, the names that are never committed (proto/never.h), unless a rule
 * names them. In the transaction the core decides that when the command has ended. Here the write is the
 * commit, so it is refused where this side serves the name, and looked for afterwards where the command
 * works in the host's own directory (liveplan.h, livescan.h).
 *
 * exec/commit-judge.c says the same of what a transaction left.
 */
#ifndef SANDBOX_LIVERULES_H
#define SANDBOX_LIVERULES_H

#include "proto/ruleset.h"
#include <sys/types.h>

struct liverules {
	const struct ruleset *rules;
	const char *cwd; /* the names that it lies in are there by the user's will */
	int host;        /* the workspace, O_PATH */
	bool git_config; /* a .git/config that is granted is free, as a file */
};

/* Whether the path is, or lies in, a name that is never committed and that no rule names. */
bool liverules_is_never(const struct liverules *lr, const char *path);
/* Of a walk, which has asked the same of the directories above: whether the name itself, of this type
 * (S_IFMT), is never committed. Looks at the end of the path only, however deep that is. */
bool liverules_ends_never(const struct liverules *lr, const char *path, mode_t type);
/* Whether a directory of this name can get such names by what is in it: ".git", ".cargo". */
bool liverules_leads(const char *name);
/* Whether a name of this type at the path would make a repository, turn one, or lead to such a
 * name. It need not be there. */
bool liverules_is_trap(const struct liverules *lr, const char *path, mode_t type);
/* Whether a rule names the directory, which is called as repositories are. */
bool liverules_is_called_repository(const struct liverules *lr, const char *dir);
/* Whether the directory is a repository: what it obeys is refused in it, also where a rule names it. */
bool liverules_is_repository(const struct liverules *lr, const char *dir);
/* Whether names of this type may be made, changed or removed at the path. */
bool liverules_may_change(const struct liverules *lr, const char *path, mode_t type);
/* Whether a directory may be made there: also on the way to something granted. */
bool liverules_may_make_dir(const struct liverules *lr, const char *path);
/* Whether the directory can be handed over as the host has it: all in it granted for writing, whatever
 * may come to be there. */
bool liverules_is_whole(const struct liverules *lr, const char *dir);

#endif

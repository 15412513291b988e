/* SPDX-License-Identifier: MIT */
/*
 * Names that are never moved into the workspace unless a grant names them itself: what git, shells,
 * editors, package managers and vx execute or obey when somebody works there later (design §5,
 * spec/sandbox.md §6, security.md S27). At any depth, in any case.
 *
 * That a new `.git`, a directory that becomes a repository, and a link that leads to such a name are
 * not moved either needs more than the name: commit-judge.c.
 */
#ifndef EXEC_NEVER_H
#define EXEC_NEVER_H

#include "util/base.h"

/* The length of the first leading part of `path`, longer than `from`, that ends in such a name; 0:
 * there is none. */
size_t never_prefix(const char *path, size_t from);

/* A link of this name (n bytes) would lead to such names: ".cargo" to somebody's "config.toml". */
bool never_leads(const char *name, size_t n);
/* The name (n bytes) is ".git" in any case. */
bool never_is_git(const char *name, size_t n);
/* What decides, in a directory that is a repository, which program runs: hooks, config, … */
bool never_in_repository(const char *name, size_t n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What is never put into the workspace, by a commit or by a restore, unless its own path is named
 * for it: what git, shells, editors, package managers and vx execute or obey when somebody works there
 * later (design §5, spec/sandbox.md §6, security.md S27). Mostly names: at any depth, in any case.
 *
 * Two things need more than a name. A directory becomes a repository by what is in it. And a
 * package.json becomes a workspace root by its "workspaces": who stands beside it would get another
 * vx.config.json, another .vx and another package manager's root than before.
 *
 * exec/commit-judge.c asks of what a task wrote, cache/outputs-never.c of what is stored and restored,
 * sandbox/livewall.c and livescan.c of what a task with a live view writes.
 */
#ifndef PROTO_NEVER_H
#define PROTO_NEVER_H

#include "util/base.h"

/* The length of the first leading part of `path`, longer than `from`, that ends in such a name; 0:
 * there is none. */
size_t never_prefix(const char *path, size_t from);

/* The last name of the path is one that is none of them in a package: .github below a node_modules. Of the whole path
 * never_prefix knows it itself. */
bool never_is_of_package(const char *path);

/* A link of this name (n bytes) would lead to such names: ".cargo" to somebody's "config.toml". */
bool never_leads(const char *name, size_t n);
/* The name (n bytes) is ".git" in any case. */
bool never_is_git(const char *name, size_t n);
/* The path is that of the config of a repository called .git: allow.gitConfig may free it. */
bool never_is_git_config(const char *path);
/* The name (n bytes) is, directly in a repository, that of a directory of branches or objects: no name in it is one
 * that git obeys. */
bool never_is_git_data(const char *name, size_t n);
/* What decides, in a directory that is a repository, which program runs: hooks, config, … */
bool never_in_repository(const char *name, size_t n);
/* In which repositories of their own stand there. A link of the name, or in one of that name, would put others in
 * their place. */
bool never_holds_repositories(const char *name, size_t n);

/* Repositories: bits of the names by which git knows one. */
unsigned never_repo_bit(const char *name); /* 0: it is none of them */
unsigned never_repo_bits_at(int rootfd, const char *dir);
bool never_is_repo(unsigned bits);

/* Whether the path is that of a package.json, in any case. In a node_modules, where packages come as
 * their authors made them and where nobody stands, none counts. What it says: cache/never.h. */
bool never_is_manifest(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/* Shared by policy.c, policy-links.c, policy-keyed.c and judge.c. */
#ifndef EXEC_POLICY_PRIVATE_H
#define EXEC_POLICY_PRIVATE_H

#include "exec/policy.h"

void policy_add_rule(struct policy *p, enum spec_rule_kind kind, bool is_glob, const char *path);

/* Where a workspace path really is, through every link on the way and at its end: 1 and the path
 * from the root; 0 and the absolute path outside where it lands; -1 (ELOOP, or the error). What is
 * missing is taken as text. Nothing outside is looked at. *ret is owned. */
int policy_resolve(const struct workspace *w, const char *path, char **ret);
/* The same below any directory, of which `root` is the canonical path. */
int links_resolve(int rootfd, const char *root, const char *path, char **ret);

/* Grants node_modules of project and root, and the workspace packages linked there or in node_modules
 * of such a package (spec/sandbox.md §4). After the task's own grants. */
int policy_add_node_modules(struct policy *p, struct err *e);
/* `modules`, a node_modules directory, is granted, but not the caches of tools in it, in which the results of
 * earlier runs are: no key has them. One that a rule so far names stays as that says. */
void policy_hide_tool_caches(struct policy *p, const char *modules);

#endif

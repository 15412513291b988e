/* SPDX-License-Identifier: MIT */
/*
 * Which values nobody is to read in what vx prints or keeps (spec/execution.md §4): those of variables, in vx's
 * own environment or defined by a task, whose names speak of a secret or that a task lists in exec.env.secret.
 * A value of several lines is one, and so is each of its lines.
 */
#ifndef EXEC_SECRETS_H
#define EXEC_SECRETS_H

#include "util/base.h"

struct graph;
struct mask;

/* Of all tasks of the graph together, if there is one yet: what one may not show, another could print as well.
 * NULL: there are none. env: NAME=value, ended by NULL. */
struct mask *secrets_mask(char *const *env, const struct graph *g);

/* Whether the name of a variable says that its value is a secret. */
bool secrets_has_name(const char *name, size_t n);

#endif

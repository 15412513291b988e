/* SPDX-License-Identifier: MIT */
/*
 * vx run --dry: the plan as text, one line per task with the predicted hit (spec/cli.md, --dry).
 */
#ifndef RUN_DRY_H
#define RUN_DRY_H

#include "util/base.h"

struct err;
struct history;
struct index;
struct plan;
struct run_options;
struct strbuf;

/* index NULL: no cache. Returns the exit code, or -1. */
int dry_print(struct plan *p, struct index *ix, struct history *h, const struct run_options *o,
	struct strbuf *out, struct err *e);

#endif

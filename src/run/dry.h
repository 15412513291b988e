/* SPDX-License-Identifier: MIT */
/*
 * Plans that are printed and not carried out (spec/cli.md, --dry and --graph): as text, one line for each task; as
 * JSON, the form of which is docs/DRY.md's; the graph alone in the DOT language.
 */
#ifndef RUN_DRY_H
#define RUN_DRY_H

#include "util/base.h"

struct err;
struct graph;
struct history;
struct index;
struct plan;
struct run_options;
struct strbuf;

enum dry_form {
	DRY_NONE,
	DRY_TEXT,
	DRY_JSON
};

enum {
	DRY_VERSION = 1 /* of the JSON */
};

/* index NULL: no cache. Returns the exit code, or -1. */
int dry_print(struct plan *p, struct index *ix, struct history *h, const struct run_options *o,
	unsigned concurrency, struct strbuf *out, struct err *e);

void dry_print_graph(const struct graph *g, struct strbuf *out);

#endif

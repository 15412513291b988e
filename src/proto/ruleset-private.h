/* SPDX-License-Identifier: MIT */
/*
 * The tree that ruleset.c builds and ruleset-ask.c asks: one node for each literal path that a rule
 * names, for each literal head of a pattern, and for all their ancestors. A rule can select a path
 * only from a node at or above it; what could select something below it stands at such a node too,
 * or is summed up in the node's `below`.
 */
#ifndef PROTO_RULESET_PRIVATE_H
#define PROTO_RULESET_PRIVATE_H

#include "proto/ruleset.h"
#include "util/arena.h"
#include "util/htab.h"

enum {
	RULESET_READ = 1 << SPEC_READ,
	RULESET_WRITE = 1 << SPEC_WRITE,
	RULESET_DENY_READ = 1 << SPEC_DENY_READ,
	RULESET_DENY_WRITE = 1 << SPEC_DENY_WRITE,
	RULESET_OUTPUT = 1 << SPEC_OUTPUT,
	RULESET_QUIET = 1 << SPEC_QUIET,

	RULESET_LITERAL = 8, /* a shift, see `below`; there are no more kinds */
};

struct ruleset_pattern {
	struct glob *glob; /* one alternative */
	unsigned bit;
	struct ruleset_pattern *next;
};

struct ruleset_node {
	size_t len;                  /* of its path */
	struct ruleset_node *parent; /* NULL for the workspace */
	unsigned own;                /* literal rules here */
	unsigned below; /* rules of any form whose literal part lies strictly below; shifted by
			 * RULESET_LITERAL: those that are literals */
	struct ruleset_pattern *patterns; /* those whose literal head this is */
};

struct ruleset {
	struct arena arena;
	struct htab nodes;
	struct ruleset_node *root;
	size_t longest; /* path of a node */
};

/* The node of the longest prefix of path that has one. */
const struct ruleset_node *ruleset_deepest(const struct ruleset *rs, const char *path);

#endif

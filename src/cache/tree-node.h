/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one directory of a stored tree (docs/CACHE.md), both ways. Used by tree.c,
 * tree-restore.c and tests.
 */
#ifndef CACHE_TREE_NODE_H
#define CACHE_TREE_NODE_H

#include "cache/outputs.h"
#include "util/digest.h"

struct strbuf;

enum {
	TREE_NODE_MAX = 64 << 20,
	/* Names in a tree. A node may stand in many places: small trees could unfold without end. */
	TREE_ENTRIES_MAX = 1 << 20,
};

/*
 * So much of a tree's content may be holes or packed away (store_hollow). It is digested as what it
 * stands for, at some 1.5 GB a second, while the loop stands still.
 */
#define TREE_HOLLOW_MAX ((uint64_t)64 << 30)

struct tree_line {
	enum output_type type;
	bool on_the_way; /* a directory that is no output itself: its mode is not known */
	uint32_t mode;
	uint64_t size;
	struct digest digest; /* FILE: content; DIR: its node */
	const char *name;
	const char *target; /* LINK */
};

void tree_node_begin(struct strbuf *node);
/* Lines are added in byte order of their names. */
void tree_node_add(struct strbuf *node, const struct tree_line *line);

/* Calls `each` for every line. False: not bytes that tree_node_add could have made, or each said
 * false. Nothing of the bytes is believed: names are single components, in order, each once. */
bool tree_node_parse(const char *bytes, size_t n,
	bool (*each)(void *ctx, const struct tree_line *line), void *ctx);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where outputs start: the literal heads of a set's globs, and where those really are when a link to
 * a directory stands on the way. Used by outputs.c, tree-restore.c and tree-moves.c
 * alone.
 */
#ifndef CACHE_OUTPUTS_HEAD_H
#define CACHE_OUTPUTS_HEAD_H

#include "util/base.h"
#include <sys/stat.h>

struct err;
struct globset;
struct outputs;

enum head_kind {
	HEAD_ABSENT, /* nothing there: `real` is where it would be made */
	HEAD_DIR,
	HEAD_OTHER, /* a file, a link that is an output itself, … */
};

struct output_head {
	char *path; /* as declared, from the workspace root */
	char *real; /* without any link */
	enum head_kind what;
	const char *base; /* the directory out of which no link may lead */
	bool wide;        /* only entries of workspaceFiles start here */
	bool stays;       /* is not removed: a wildcard starts here, or a link leads here */
	struct stat st;   /* unless HEAD_ABSENT */
};
struct output_heads {
	struct output_head *v; /* sorted by path, unique */
	size_t n, cap;
};

/* A link on the way that leads out of the globs' base directory (the project, or for workspaceFiles the
 * workspace), to .git, .vx or, unless it is wide, a nested project is refused by name. */
int output_heads_find(int rootfd, const struct globset *set, const char *const *nested,
	size_t nnested, struct output_heads *ret, struct err *e);
void output_heads_release(struct output_heads *h);
#define cleanup_output_heads __attribute__((cleanup(output_heads_release)))

/* Fills ret->roots: the heads that are really somewhere else. */
void output_heads_roots(const struct output_heads *h, struct outputs *ret);
bool output_heads_has(const struct output_heads *h, const char *path);
bool output_heads_stays(const struct output_heads *h, const char *path);
/* Strictly below some head. */
bool output_heads_is_below(const struct output_heads *h, const char *path);

#endif

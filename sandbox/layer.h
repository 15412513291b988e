/* SPDX-License-Identifier: MIT */
/*
 * The policy layer: a small read-only FUSE file system, the overlay's top lower layer. It answers
 * each name with a verdict: ENOENT (pass), a directory (traverse), a whiteout (hidden). It lists
 * nothing, serves no content, and never touches the overlay (that would wait for itself).
 *
 * Bytes from the kernel are checked (length, NUL, node number) before use.
 *
 * The home's overlay has a layer of the same connection, a directory of its own that lies in the root
 * (enum layer_part). All passes there but the credential stores. So lie the mirrors there (mirror.h) of the
 * workspace and of the home, which begin with the first look-up of their names; and, since no layer of an overlay
 * may hold another, the workspace's policy once more, for an overlay that has its mirror.
 */
#ifndef SANDBOX_LAYER_H
#define SANDBOX_LAYER_H

#include "proto/ruleset.h"
#include "proto/status.h"
#include "sandbox/host.h"
#include "sandbox/wall.h"
#include <sys/types.h>

struct layer;
struct strvec;

enum {
	/* Of these are probes told; they are counted nowhere. */
	LAYER_PROBES_MAX = 10000,
};

struct layer_denial {
	/* From the workspace; absolute: a credential store of the home. */
	const char *path;
	/* READ; PROBE: the host has no such name, or had none when the directory was listed; of a live view
	 * WRITE and DELETE too. */
	enum denial_op op;
	uint32_t pid; /* thread id of the asker, in the pid namespace of the mount's owner */
};

struct layer_options {
	const struct ruleset *rules;
	const char *home;            /* the home directory's path; NULL: it has no overlay */
	int homefd;                  /* that directory, O_PATH */
	const struct strvec *stores; /* absolute paths in it that are hidden, and told */
	int hostfd;          /* the real workspace, O_PATH, opened before the overlay covered it */
	struct wall *wall;   /* filled before a directory's first READDIR is answered */
	struct owner owner;  /* who is shown as owner where the host's is not mapped */
	struct stat scratch; /* a directory that no mirror lets into */
	/* First time a hidden name is asked for. Names asked again are not told again. */
	void (*denied)(void *ctx, const struct layer_denial *d);
	void *ctx;
};

enum layer_part {
	LAYER_HOME,
	LAYER_WORKSPACE,
	LAYER_MIRROR,
	LAYER_HOME_MIRROR,
};
/* Longer than a name can be in any overlay, so that it is none of the workspace's. */
const char *layer_part_name(enum layer_part part);

struct layer *layer_new(const struct layer_options *o);
/* As fuse_serve (fuse.h). */
int layer_serve(struct layer *l, int fusefd);
/* Exact number of names denied (distinct, that the host has). */
uint64_t layer_denials(const struct layer *l);
/* Looks at the directories that passed whole once more: true when one changed since (not proven).
 * ret_late: names that came to be in them and that nothing grants, a few (pure.h). */
bool layer_look_again(const struct layer *l, struct strvec *ret_late);
void layer_free(struct layer *l);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The workspace of a live view: a FUSE file system that the helper serves at the workspace's root, from
 * the host's own files. Each name is judged by the rules each time it is asked for; what is granted is the
 * host's, now, and a granted write is the host's at once. What is not granted is not there, and told; what
 * may not be written is EROFS, and told.
 *
 * The directories of the plan are covered by binds (liveplan.h), so most of the traffic never comes here.
 *
 * Nobody is trusted: not the command, not what other tasks do to the workspace meanwhile. Every object is
 * opened beneath the workspace, no link followed on the way, and only regular files are opened for
 * content, so that neither a link nor a fifo nor a device put in a file's place does anything. What may be
 * moved or linked is asked at both ends, and of a directory for all in it: else a hidden name would be
 * seen, or a read-only file written, under another name.
 *
 * Not there, and said so by the error: extended attributes, fallocate, O_TMPFILE, and nodes other than
 * files, directories and links.
 */
#ifndef SANDBOX_LIVEWALL_H
#define SANDBOX_LIVEWALL_H

#include "sandbox/layer.h"
#include "sandbox/liverules.h"
#include "util/strvec.h"

struct livewall;

struct livewall_options {
	struct liverules rules;
	int proc;           /* a procfs */
	struct owner owner; /* as in layer.h */
	void (*denied)(void *ctx, const struct layer_denial *d);
	void *ctx;
};

struct livewall *livewall_new(const struct livewall_options *o);
/* As fuse_serve. */
int livewall_serve(struct livewall *w, int fusefd);
/* Distinct accesses denied: names that the host has, and writes. */
uint64_t livewall_denials(const struct livewall *w);
/* Each package.json that was written through here and that no rule names: what it says decides whether
 * it may be (cache/never.h). */
const struct strvec *livewall_manifests(const struct livewall *w);
void livewall_free(struct livewall *w);

#endif

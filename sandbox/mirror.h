/* SPDX-License-Identifier: MIT */
/*
 * The mirror: a tree of the host (the workspace, the home), read-only, with all that is mounted in it,
 * served through the policy layer's connection. It is the overlay's last layer where the tree itself cannot be
 * one: the kernel takes none with mounts inside, or on overlays over others, and copies up nothing whose
 * owner has no id in the sandbox (findings 6, 7, 9). The overlay above it, with its walls, is the same.
 *
 * What it says is kept: names, attributes and pages are what they were when they were first asked for. A file
 * is opened by its path when it is read; one that was replaced meanwhile is not read in the place of the
 * one that was looked up (ESTALE).
 */
#ifndef SANDBOX_MIRROR_H
#define SANDBOX_MIRROR_H

#include "sandbox/host.h"

struct fuse_request;
struct mirror;

/* In node numbers: which file system of the connection they are of. */
#define MIRROR_TAGS (3ULL << 62)
#define MIRROR_WORKSPACE (2ULL << 62)
#define MIRROR_HOME (3ULL << 62)

/* rootfd: O_PATH, borrowed. tag: of MIRROR_TAGS, in every node number. owner: who is shown where the host's
 * owner is not mapped. scratch: a directory that nobody gets into (the overlay's own, which would answer ELOOP in
 * a lower layer of the kernel's). */
struct mirror *mirror_new(
	int rootfd, uint64_t tag, const struct owner *owner, const struct stat *scratch);
/* A look-up of the root's own name, in the connection's root. */
int mirror_enter(struct mirror *m, const struct fuse_request *r);
/* A request of one of its nodes. Returns as fuse_answer. */
int mirror_request(struct mirror *m, const struct fuse_request *r);
void mirror_forget(struct mirror *m, uint64_t id, uint64_t lookups);
void mirror_free(struct mirror *m);

#endif

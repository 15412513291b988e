/* SPDX-License-Identifier: MIT */
/*
 * Outputs to a Merkle tree in the store and back. A tree node is canonical bytes, one line per name
 * in byte order (docs/CACHE.md), its identity the digest of those; the root's digest names the
 * whole. Content of the store is taken as hostile: every name, type and digest is checked, nothing is
 * written outside the declared outputs, and nothing there that others would execute or obey.
 */
#ifndef CACHE_TREE_H
#define CACHE_TREE_H

#include "cache/outputs.h"
#include "util/digest.h"

struct stage;
struct store;

/* Stores the content of `o`, read below `fromfd` (the workspace, or a task's scratch) at the same
 * relative paths, and the tree. *ret_bytes: sum of file sizes. A file that changed while it was
 * read (size or mtime) is an error naming it, and so is what no restore would accept
 * (cache/outputs-never.h). `set`: what o was selected by. */
int tree_save(struct store *s, int fromfd, const struct globset *set, const struct outputs *o,
	struct digest *ret, uint64_t *ret_bytes, struct err *e);

/* Makes the declared outputs equal to the tree (root NULL: to none): content staged, then moved into
 * place, modes and links as stored, then everything else that `set` selects, and is in `part`, is removed
 * (create first, delete after). When the process dies all of it has happened, or nothing, or it is finished
 * by moves_roll_forward. 1 done, and *ret (may be NULL) is what is on disk now, as far as it is the task's; 2 done, but
 * somebody has changed it since, and *e names what; 0 a blob is gone or damaged: the workspace is as it was; -1,
 * with ECANCELED when a stop is asked (util/stop.h). */
int tree_restore(struct store *s, struct stage *stage, const struct digest *root, int rootfd,
	const struct globset *set, const char *const *nested, size_t nnested,
	const struct outputs_part *part, struct outputs *ret, struct err *e);

/* Whether the declared outputs are those of the tree, by their content. 1, and *ret is what is on disk; 0: not
 * so, or a node is gone or damaged; -1. */
int tree_is_there(struct store *s, const struct digest *root, int rootfd, const struct globset *set,
	const char *const *nested, size_t nnested, struct outputs *ret, struct err *e);

/* Pushes the files and links of the tree. 1; 0: a node is gone or damaged; -1. */
int tree_names(struct store *s, const struct digest *root, int rootfd, const struct globset *set,
	const char *const *nested, size_t nnested, struct strvec *ret, struct err *e);

#endif

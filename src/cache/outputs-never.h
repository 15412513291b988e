/* SPDX-License-Identifier: MIT */
/*
 * Outputs that are neither stored nor restored: what never.h names, where no glob of the task names it
 * itself. One rule for both sides, so that what is stored can be restored, anywhere, and a tree that
 * somebody put into a shared cache can do no more than a sandboxed task could. It knows only the tree and
 * the globs; but for what turns a repository that stands in `rootfd`.
 *
 * Named is what lies at or above the literal head of a glob that selects it: `dist/.npmrc`,
 * or a glob that starts in `.github/actions/x/dist`.
 */
#ifndef CACHE_OUTPUTS_NEVER_H
#define CACHE_OUTPUTS_NEVER_H

#include "cache/outputs.h"

/* The first that is refused, and in *ret_why why (for people); NULL: none is. `v`: all that a tree
 * holds. */
const struct output *outputs_find_never(int rootfd, const struct globset *set,
	const struct output *const *v, size_t n, const char **ret_why);

/* Whether a file's content has to be looked at, too. */
bool outputs_is_manifest(const struct globset *set, const char *path);
/* Then: why it is refused; NULL: it is not. The offset of the fd moves. */
const char *outputs_why_not_manifest(int fd);

#endif

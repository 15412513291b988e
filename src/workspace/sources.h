/* SPDX-License-Identifier: MIT */
/*
 * What a run reads to learn its workspace, remembered from the run before: for each member directory
 * the names in it that matter, its package.json and its vx.config.json, with what stat said of each.
 * What stat says now decides whether a text is still what reading would give; it is then parsed like
 * any other, so nothing but reading is saved, and nothing that was understood can be out of date.
 */
#ifndef WORKSPACE_SOURCES_H
#define WORKSPACE_SOURCES_H

#include "util/base.h"
#include <sys/stat.h>

enum source {
	SOURCE_LISTING, /* of the directory; what it holds is the caller's */
	SOURCE_MANIFEST,
	SOURCE_CONFIG,
	SOURCE_KINDS
};

struct sources;

/* Loads STATEFD/sources (missing or damaged: empty). statefd, borrowed: -1 remembers nothing. */
struct sources *sources_open(int statefd);

/* Whether there is a text, of now or of before: else there is no need of a stat. */
bool sources_has(struct sources *s, const char *dir, enum source which);
/* The text, ended by a NUL, if it is known for the file that `now` is of. Valid until sources_close. */
const char *sources_get(struct sources *s, const char *dir, enum source which,
	const struct stat *now, size_t *ret_len);
/* It was read: `seen` and `learned_ns` as for filestate_take. */
void sources_put(struct sources *s, const char *dir, enum source which, const struct stat *seen,
	int64_t learned_ns, const char *text, size_t len);

/* Writes what was asked for or put in this run, if that is not what is there, when `keep`; and frees.
 * Failing to write is no error to the run: said in VX_DEBUG. */
void sources_close(struct sources *s, bool keep);

#endif

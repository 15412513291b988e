/* SPDX-License-Identifier: MIT */
/*
 * What a name is to the task, from the spec's rules alone: pure code, no file system, fuzzed
 * (tests/fuzz/fuzz-verdict.c). layer.c and wall.c ask it and bring what the host has.
 *
 * Rules stand in a tree of the literal paths that they name or start with, so that a question looks
 * at the rules on the way to its path and at no others: a derived policy grants each of thousands
 * of files by a rule of its own.
 */
#ifndef SANDBOX_VERDICT_H
#define SANDBOX_VERDICT_H

#include "proto/spec.h"

struct err;
struct ruleset;

/* Compiles the rules inside the workspace (those with relative paths). Borrowed spec must outlive.
 */
int ruleset_new(const struct spec *s, struct ruleset **ret, struct err *e);
void ruleset_free(struct ruleset *rs);
/* The spec's workspace: absolute. */
const char *ruleset_workspace(const struct ruleset *rs);

/* Adds a literal READ rule while running: the target of a granted link. Does nothing where a deny
 * rule selects the path: a link in the workspace's content cannot lift what the policy denies. */
void ruleset_add_read(struct ruleset *rs, const char *path);

enum verdict {
	VERDICT_PASS,     /* granted, and so is everything below: the layer is never asked again */
	VERDICT_TRAVERSE, /* a directory whose names are asked one by one */
	VERDICT_HIDE,     /* denied: absent, and reported when the host has it */
	VERDICT_QUIET,    /* absent, silently */
};

/* How a path can be looked at: what the host has there. */
enum host_kind {
	HOST_ABSENT,
	HOST_DIR,
	HOST_FILE,
	HOST_LINK
};

/*
 * HOST_ABSENT: a granted name passes, so that it can appear later. A denied one is HIDE although
 * there is nothing to hide: were it to pass, what another task or the user puts there a moment
 * later would be seen, with all that is below.
 *
 * HOST_DIR, not granted: TRAVERSE when some grant could select a name below, else HIDE.
 */
enum verdict ruleset_verdict(const struct ruleset *rs, const char *path, enum host_kind host);

/* Whether the path itself is granted for reading, by the most specific rule. OUTPUT and QUIET do
 * not count here. */
bool ruleset_may_read(const struct ruleset *rs, const char *path);
/* Whether some WRITE rule selects the path, or could select one below it. */
bool ruleset_is_written(const struct ruleset *rs, const char *path);
/* Whether the grant that decides names the path itself (literally, or by a pattern) rather than a
 * directory above: then a link there was granted on purpose, and its target with it. */
bool ruleset_names(const struct ruleset *rs, const char *path);
/* Whether names below dir can have other answers than each other (so a directory cannot pass whole,
 * nor be hidden whole). */
bool ruleset_is_mixed_below(const struct ruleset *rs, const char *dir);

#endif

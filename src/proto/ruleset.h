/* SPDX-License-Identifier: MIT */
/*
 * What the rules of a spec say of a name: the one place where their meaning (proto/spec.h) is code.
 * The helper asks what the task may see; the core asks afterwards what it could see and what it was
 * granted to write. Pure code: no file system, fuzzed against a slow reference
 * (tests/fuzz/fuzz-verdict.c).
 *
 * Rules stand in a tree of the literal paths that they name or start with, so that a question looks
 * at the rules on the way to its path and at no others: a derived policy grants each of thousands
 * of files by a rule of its own.
 */
#ifndef PROTO_RULESET_H
#define PROTO_RULESET_H

#include "proto/spec.h"

struct err;
struct ruleset;

/* Compiles the rules inside the workspace (those with relative paths). `cwd`: the directory where
 * the command starts, which is there for it whatever the rules say; NULL for none. The paths are
 * borrowed. */
int ruleset_new(
	const struct spec_rule *v, size_t n, const char *cwd, struct ruleset **ret, struct err *e);
void ruleset_free(struct ruleset *rs);

/* What is seen. */

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
 *
 * HOST_LINK is as any name that is no directory: where the link leads is another path, with a verdict
 * of its own.
 */
enum verdict ruleset_verdict(const struct ruleset *rs, const char *path, enum host_kind host);

/* Whether a rule could hide a name strictly below dir, be there such a name or not: a deny that no
 * more specific grant overrules, QUIET, OUTPUT. What is only not granted does not count. dir itself is
 * not VERDICT_QUIET. */
bool ruleset_hides_below(const struct ruleset *rs, const char *dir);
/* Whether a rule of the kind, QUIET or IGNORE_*, selects the path. */
bool ruleset_is_quiet(const struct ruleset *rs, const char *path);
bool ruleset_ignores(const struct ruleset *rs, enum spec_rule_kind kind, const char *path);

/* What is written. */

/* Whether some WRITE rule selects the path, or could select one below it, denied or not: what the
 * task may try to write there is judged only later. */
bool ruleset_is_written(const struct ruleset *rs, const char *path);
/* Whether what was written to the path itself is granted, by the most specific rule. Nothing is where
 * it is quiet. */
bool ruleset_may_write(const struct ruleset *rs, const char *path);
/* Whether some name strictly below dir could be: then dir is on the way to it. */
bool ruleset_may_write_below(const struct ruleset *rs, const char *dir);
/* Whether the directory, and whatever may be in it, is granted for reading and for writing, and none
 * of it is an output or quiet. */
bool ruleset_grants_whole(const struct ruleset *rs, const char *dir);
/* For a path that is `name` or lies in it: whether a literal WRITE rule names `name` itself or
 * something inside it, and covers the path or names something below it. Denies do not count. */
bool ruleset_names_write(const struct ruleset *rs, const char *name, const char *path);

#endif

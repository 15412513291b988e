/* SPDX-License-Identifier: MIT */
/*
 * What a name is to the task, from the spec's rules alone: pure code, no file system, fuzzed
 * (tests/fuzz/fuzz-verdict.c). layer.c and wall.c ask it and bring what the host has.
 */
#ifndef SANDBOX_VERDICT_H
#define SANDBOX_VERDICT_H

#include "proto/spec.h"

struct err;
struct ruleset;

/* Compiles the rules inside the workspace (those with relative paths). Borrowed spec must outlive. */
int ruleset_new(const struct spec *s, struct ruleset **ret, struct err *e);
void ruleset_free(struct ruleset *rs);

/* Adds a literal READ rule while running: the target of a granted link. */
void ruleset_add_read(struct ruleset *rs, const char *path);

enum verdict {
	VERDICT_PASS,	  /* granted, and so is everything below: the layer is never asked again */
	VERDICT_TRAVERSE, /* a directory on the way: names in it are asked one by one. `granted` says
			   * whether the directory itself is (its unknown names pass) */
	VERDICT_HIDE,	  /* denied: absent, and reported when the host has it */
	VERDICT_QUIET,	  /* absent, silently */
};

/* How a path can be looked at: what the host has there. */
enum host_kind { HOST_ABSENT, HOST_DIR, HOST_FILE, HOST_LINK };

/* HOST_ABSENT always passes when no rule hides the name quietly: there is nothing to hide, the
 * answer ENOENT comes from below and a later write lands in the upper layer. */
enum verdict ruleset_verdict(const struct ruleset *rs, const char *path, enum host_kind host);

/* Whether the path itself is granted for reading, by the most specific rule. */
bool ruleset_may_read(const struct ruleset *rs, const char *path);
/* Whether some rule could change the answer strictly below dir (so a directory cannot pass whole). */
bool ruleset_is_mixed_below(const struct ruleset *rs, const char *dir);

#endif

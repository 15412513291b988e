/* SPDX-License-Identifier: MIT */
/*
 * The purity test: a directory whose names are asked one by one, but in which every name that the
 * host has is granted, may as well pass whole; the task then works in it at the overlay's own speed
 * (findings 2). That is a statement about what the host has now: what comes to be there afterwards is
 * seen. So no directory passes whole in which a rule could hide a name, whether the host has it yet or
 * not; and each directory that was walked is remembered and looked at again at the end. A name that came
 * and that nothing grants may have been read, which nobody was told of (PURE_LATE_MAX of them are told
 * then: what the task made is not what its key says). One that came and went in between only shows as
 * a change.
 */
#ifndef SANDBOX_PURE_H
#define SANDBOX_PURE_H

#include "sandbox/host.h"
#include "util/htab.h"
#include "util/strvec.h"

enum {
	/* Names looked at in one test: some 20 ms. */
	PURE_NAMES_MAX = 20000,
	PURE_LATE_MAX = 4,
};

struct pure_dir {
	char *path;
	struct timespec mtime, ctime;
	bool is_fresh; /* changed so lately that another change may leave the times as they are */
};

struct pure {
	int host; /* borrowed */
	const struct ruleset *rules;
	const struct owner *owner;
	struct pure_dir *dirs;
	size_t n, cap;
	size_t names;      /* listed so far */
	struct htab roots; /* those that passed */
};

void pure_init(struct pure *p, int hostfd, const struct ruleset *rules, const struct owner *owner);
void pure_release(struct pure *p);
/* Whether the directory may pass whole. */
bool pure_check(struct pure *p, const char *path);
/* Lists those that changed once more. False: none did. ret_late: what nothing grants of what came. At
 * most as many names are looked at as in the tests, and PURE_NAMES_MAX more; the directory where that
 * ends is told like a name that came. */
bool pure_look_again(const struct pure *p, struct strvec *ret_late);

#endif

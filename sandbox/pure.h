/* SPDX-License-Identifier: MIT */
/*
 * The purity test: a directory whose names are asked one by one, but in which every name that the
 * host has is granted, may as well pass whole; the task then works in it at the overlay's own speed
 * (findings 2). That is a statement about what the host has now, so each directory that was walked
 * is remembered and looked at again before the result may count as proven.
 *
 * What comes to be there afterwards is seen. So no directory passes whole in which a rule could hide
 * a name, whether the host has it yet or not.
 */
#ifndef SANDBOX_PURE_H
#define SANDBOX_PURE_H

#include "sandbox/host.h"
#include "util/htab.h"

enum {
	/* Names looked at in one test: some 20 ms. */
	PURE_NAMES_MAX = 20000
};

struct pure_dir {
	char *path;
	struct timespec mtime, ctime;
};

struct pure {
	int host; /* borrowed */
	const struct ruleset *rules;
	const struct owner *owner;
	struct pure_dir *dirs;
	size_t n, cap;
	struct htab roots; /* those that passed */
};

void pure_init(struct pure *p, int hostfd, const struct ruleset *rules, const struct owner *owner);
void pure_release(struct pure *p);
/* Whether the directory may pass whole. */
bool pure_check(struct pure *p, const char *path);
bool pure_changed(const struct pure *p);

#endif

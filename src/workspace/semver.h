/* SPDX-License-Identifier: MIT */
/*
 * npm version ranges: whether a version satisfies a range. ||, hyphen, ^, ~, x, comparators,
 * prereleases by npm's rule (only when the same major.minor.patch carries one in the range).
 */
#ifndef WORKSPACE_SEMVER_H
#define WORKSPACE_SEMVER_H

#include "util/base.h"

/* version NULL: satisfies only "*" and "". An unreadable range or version satisfies nothing. */
bool semver_satisfies(const char *version, const char *range);

#endif

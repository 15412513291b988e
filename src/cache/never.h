/* SPDX-License-Identifier: MIT */
/*
 * What makes of a package.json a name that is never committed: its content. The names are those of
 * proto/never.h.
 */
#ifndef CACHE_NEVER_H
#define CACHE_NEVER_H

#include "proto/never.h"

enum never_manifest {
	MANIFEST_PLAIN,
	MANIFEST_WORKSPACES, /* makes its directory a workspace root */
	MANIFEST_UNREADABLE, /* it cannot be opened or read: it could say anything */
};

/* What the open file says, from its beginning. */
enum never_manifest never_manifest_at(int fd);
/* For people: why one that is not plain stays out. */
const char *never_manifest_why(enum never_manifest m);

#endif

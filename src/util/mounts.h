/* SPDX-License-Identifier: MIT */
/* The mounts of this mount namespace, as a mountinfo of procfs lists them. */
#ifndef UTIL_MOUNTS_H
#define UTIL_MOUNTS_H

#include "util/strbuf.h"

struct err;

struct mount_row {
	uint64_t id; /* as STATX_MNT_ID */
	const char *
		dev; /* "8:1": of the file system; in btrfs one for all subvolumes, which st_dev is not */
	const char *root;  /* what of the file system is shown: a path from its top, "/", "/a/b" */
	const char *point; /* where */
};

struct mounts {
	struct strbuf text;
	struct mount_row *v;
	size_t n, cap;
};

#define MOUNTS_INIT                                                                                \
	{                                                                                          \
		STRBUF_INIT, NULL, 0, 0                                                            \
	}

/* Replaces what is in *m by what procfd/path lists ("self/mountinfo"). -1 with e. */
int mounts_read(struct mounts *m, int procfd, const char *path, struct err *e);
void mounts_release(struct mounts *m);

/* NULL: none. */
const struct mount_row *mounts_find(const struct mounts *m, uint64_t id);

#endif

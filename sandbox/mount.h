/* SPDX-License-Identifier: MIT */
/*
 * Mounts as fds: made detached, given their attributes, then attached. All return -1 with errno.
 */
#ifndef SANDBOX_MOUNT_H
#define SANDBOX_MOUNT_H

#include "util/strbuf.h"

/* A new file system. options: key, value, ..., NULL; a value of "" makes a flag. attrs: MOUNT_ATTR_*. */
int mount_new(const char *type, unsigned attrs, const char *const *options);

/* The device of FUSE, -1 where it cannot be opened. (Containers are kept from it by another in its place.) */
int mount_open_fuse(void);

/* A copy of the mount at dirfd/path (path "": dirfd itself), with what is mounted below when deep. */
int mount_clone(int dirfd, const char *path, bool deep);

/* Attaches at dirfd/path, path "": on dirfd itself. */
int mount_attach(int mnt, int dirfd, const char *path);

/* Sets and clears MOUNT_ATTR_* of the mount itself. */
int mount_set(int mnt, unsigned set);

/* What the kernel said through a file system context, "" when nothing. */
void mount_message(int context, struct strbuf *ret);

#endif

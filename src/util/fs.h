/* SPDX-License-Identifier: MIT */
/*
 * The file system below a trusted directory fd. Every *_beneath call stays below dirfd and follows
 * no symbolic link in any component (openat2: RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS; where openat2 is missing or a filter refuses it, component by component
 * with O_NOFOLLOW). Paths are normal relative paths (util/path.h), of any length, else EINVAL; "" is
 * dirfd itself. Failures return -1 with errno.
 */
#ifndef UTIL_FS_H
#define UTIL_FS_H

#include "util/base.h"
#include <fcntl.h>
#include <sys/stat.h>

struct err;

/* O_CLOEXEC is added. ELOOP: a component is a link. */
int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* The parent directory of path, opened O_PATH; *ret_base points at path's last component. */
int fs_open_parent(int dirfd, const char *path, const char **ret_base);
/* lstat below dirfd, no link followed on the way. */
int fs_stat_beneath(int dirfd, const char *path, struct stat *ret);

/* Makes path and its missing ancestors (mode 0777 less umask); existing directories are fine. */
int fs_mkdirs(int dirfd, const char *path);
/* As fs_mkdirs; returns an O_PATH fd of the directory. */
int fs_open_mkdirs(int dirfd, const char *path);

/* Removes name in dirfd, whatever it is: file, link, or directory with all below, however deep and
 * whatever its modes (made accessible as needed). Iterative, with bounded fds and some 64 bytes a
 * level. A missing name is success. Never leaves dirfd, never follows a link, never crosses into
 * another mount (EXDEV or EBUSY). ESTALE: moved meanwhile; ENOTEMPTY: somebody keeps writing. Stops
 * at the first error. */
int fs_remove_tree(int dirfd, const char *name);

/* Replaces dirfd/name by these bytes: temporary file (FS_TMP_PREFIX…) beside it, then rename. The mode is
 * less umask. No fsync. */
#define FS_TMP_PREFIX ".vx-tmp-"
int fs_replace_file(int dirfd, const char *name, const void *p, size_t n, mode_t mode);
/* The same where they do not stand together. */
struct fs_part {
	const void *p;
	size_t n;
};
int fs_replace_file_by(
	int dirfd, const char *name, const struct fs_part *parts, size_t nparts, mode_t mode);

/* Copies the content of `from` into the empty `to`: reflink, else copy_file_range, else read and write.
 * Holes stay holes. The position of `from` is anywhere afterwards. */
int fs_copy_content(int from, int to);

/* One visit of fs_walk. */
struct fs_entry {
	const char *path;      /* relative to the start, normal */
	int parent;            /* O_PATH or readable fd of its directory */
	const char *name;      /* in that directory */
	const struct stat *st; /* lstat */
};
enum fs_visit {
	FS_VISIT_CONTINUE,
	FS_VISIT_SKIP, /* a directory: do not go in */
	FS_VISIT_STOP, /* ends the walk with -1; errno is the visitor's */
};
/* Calls visit for everything below dirfd/path in byte order of names, directories before their
 * content. Links are reported, never followed; mount points are gone into, as git does. Depth is
 * bounded by memory only, not by the stack or by fds. A directory that cannot be read ends the walk
 * with -1. */
int fs_walk(int dirfd, const char *path,
	enum fs_visit (*visit)(void *ctx, const struct fs_entry *entry), void *ctx);

/* Test seam: pretends that openat2 and fchmodat2 are missing. */
void fs_force_fallback(bool on);
bool fs_fallback_is_forced(void);

#endif

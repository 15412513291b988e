/* SPDX-License-Identifier: MIT */
/*
 * For vx-sandbox where it is built with musl (configure.ac says why): what its sources use of glibc
 * 2.36 and musl 1.2.3 does not have. Included before all else, by the compiler's command line.
 */
#include <errno.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/stat.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int
fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int
fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int
fsmount(int fd, unsigned flags, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int
move_mount(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	return (int)syscall(SYS_move_mount, fromfd, from, tofd, to, flags);
}

static inline int
open_tree(int fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, fd, path, flags);
}

static inline int
mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
	return (int)syscall(SYS_mount_setattr, fd, path, flags, attr, size);
}

static inline int
close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int
statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
	return (int)syscall(SYS_statx, fd, path, flags, mask, ret);
}

/* In the parent, and to the same end: all that vx opens is closed by exec anyway. */
static inline int
posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first)
{
	(void)actions;
	return close_range((unsigned)first, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) ? errno : 0;
}

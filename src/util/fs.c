/* SPDX-License-Identifier: MIT */
#include "util/fs.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fs_fallback; /* the test seam */

void
fs_force_fallback(bool on)
{
	fs_fallback = on;
}

bool
fs_fallback_is_forced(void)
{
	return fs_fallback;
}

static int
sys_openat2(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		/* openat2 refuses a mode that would not be used */
		.mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/*
 * An old kernel says ENOSYS, an old seccomp filter EPERM. As EPERM is also an honest answer about a
 * file, it is asked once about ".", where it can only be the filter's.
 */
static bool
have_openat2(void)
{
	static int known; /* 1: yes, -1: no */

	if (!known) {
		int saved = errno;
		int fd = sys_openat2(AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0);

		known = fd < 0 && (errno == ENOSYS || errno == EPERM) ? -1 : 1;
		if (fd >= 0)
			close(fd);
		errno = saved;
	}
	return known > 0 && !fs_fallback;
}

/* openat says ENOTDIR for a link where a directory was wanted, openat2 ELOOP: the latter is told. */
static void
explain_not_a_directory(int dirfd, const char *name)
{
	struct stat st;

	if (errno != ENOTDIR)
		return;
	if (!fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
		errno = ELOOP;
	else
		errno = ENOTDIR;
}

/* The last component of the slow way: flags as openat2 would take them. */
static int
open_last(int dirfd, const char *name, int flags, mode_t mode)
{
	bool link_wanted = (flags & (O_PATH | O_NOFOLLOW)) == (O_PATH | O_NOFOLLOW);
	cleanup_close int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
	struct stat st;

	if (fd < 0) {
		if (!link_wanted)
			explain_not_a_directory(dirfd, name);
		return -1;
	}
	if ((flags & O_PATH) && !link_wanted) {
		if (fstat(fd, &st))
			return -1;
		if (S_ISLNK(st.st_mode)) {
			errno = ELOOP;
			return -1;
		}
	}
	return take_fd(&fd);
}

static int
open_dir_component(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		explain_not_a_directory(dirfd, name);
	return fd;
}

/*
 * Splits the first component off *path into name: 1, or 0 at the last one, which stays in *path.
 * -1 (ENAMETOOLONG) where it is longer than a name can be.
 */
static int
next_component(const char **path, char name[NAME_MAX + 1])
{
	const char *slash = strchr(*path, '/');
	size_t n;

	if (!slash)
		return 0;
	n = (size_t)(slash - *path);
	if (n > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, *path, n);
	name[n] = '\0';
	*path = slash + 1;
	return 1;
}

static int
open_by_components(int dirfd, const char *path, int flags, mode_t mode)
{
	cleanup_close int at = -1;
	char name[NAME_MAX + 1];
	int more;

	while ((more = next_component(&path, name)) > 0) {
		int fd = open_dir_component(at < 0 ? dirfd : at, name);

		if (fd < 0)
			return -1;
		fd_close(&at);
		at = fd;
	}
	return more < 0 ? -1 : open_last(at < 0 ? dirfd : at, path, flags, mode);
}

int
fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	if (!path_is_normal(path)) {
		errno = EINVAL;
		return -1;
	}
	if (!*path)
		path = ".";
	if (flags & O_PATH) /* openat2 refuses what open ignores */
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
	else /* no link is followed anyway; with it openat2 would say ENOTDIR for one */
		flags &= ~O_NOFOLLOW;
	/* What tasks make can be deeper than PATH_MAX; the slow way has no such bound. */
	if (!have_openat2() || strlen(path) >= PATH_MAX)
		return open_by_components(dirfd, path, flags, mode);
	return sys_openat2(dirfd, path, flags | O_CLOEXEC, mode);
}

int
fs_open_parent(int dirfd, const char *path, const char **ret_base)
{
	cleanup_free char *parent = NULL;
	int fd;

	if (!*path || !path_is_normal(path)) {
		errno = EINVAL;
		return -1;
	}
	parent = xmemdupz(path, path_parent_len(path));
	fd = fs_open_beneath(dirfd, parent, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0)
		*ret_base = path_base(path);
	return fd;
}

int
fs_stat_beneath(int dirfd, const char *path, struct stat *ret)
{
	cleanup_close int fd = -1;

	/* one component needs no resolution */
	if (*path && !strchr(path, '/') && path_is_normal(path))
		return fstatat(dirfd, path, ret, AT_SYMLINK_NOFOLLOW);
	fd = fs_open_beneath(dirfd, path, O_PATH | O_NOFOLLOW, 0);
	return fd < 0 ? -1 : fstat(fd, ret);
}

static int
make_and_open(int dirfd, const char *name)
{
	int fd = open_dir_component(dirfd, name);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdirat(dirfd, name, 0777) && errno != EEXIST)
		return -1;
	return open_dir_component(dirfd, name);
}

int
fs_open_mkdirs(int dirfd, const char *path)
{
	cleanup_close int at = fs_open_beneath(dirfd, path, O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];
	int more;

	if (at >= 0 || errno != ENOENT)
		return take_fd(&at);
	while ((more = next_component(&path, name)) > 0) {
		int fd = make_and_open(at < 0 ? dirfd : at, name);

		if (fd < 0)
			return -1;
		fd_close(&at);
		at = fd;
	}
	return more < 0 ? -1 : make_and_open(at < 0 ? dirfd : at, path);
}

int
fs_mkdirs(int dirfd, const char *path)
{
	cleanup_close int fd = fs_open_mkdirs(dirfd, path);

	return fd < 0 ? -1 : 0;
}

static int
write_parts(int fd, const struct fs_part *parts, size_t nparts)
{
	for (size_t i = 0; i < nparts; i++)
		if (fd_write_all(fd, parts[i].p, parts[i].n))
			return -1;
	return 0;
}

int
fs_replace_file(int dirfd, const char *name, const void *p, size_t n, mode_t mode)
{
	return fs_replace_file_by(dirfd, name, &(struct fs_part){p, n}, 1, mode);
}

int
fs_replace_file_by(
	int dirfd, const char *name, const struct fs_part *parts, size_t nparts, mode_t mode)
{
	cleanup_close int fd = -1;
	char tmp[32];
	uint64_t r;

	do {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -1;
		snprintf(tmp, sizeof(tmp), FS_TMP_PREFIX "%016llx", (unsigned long long)r);
		fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0)
		return -1;
	if (write_parts(fd, parts, nparts) || renameat(dirfd, tmp, dirfd, name)) {
		int saved = errno;

		unlinkat(dirfd, tmp, 0);
		errno = saved;
		return -1;
	}
	return 0;
}

/* From `at` to `end`, or to where the file ends. */
static int
copy_by_hand(int from, int to, off_t at, off_t end)
{
	enum {
		CHUNK = 128 << 10
	};
	cleanup_free char *buf = xmalloc(CHUNK);

	while (at < end) {
		ssize_t n = pread(from, buf, end - at < CHUNK ? (size_t)(end - at) : CHUNK, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -1 : 0;
		for (ssize_t done = 0; done < n;) {
			ssize_t k = pwrite(to, buf + done, (size_t)(n - done), at + done);

			if (k < 0) {
				if (errno == EINTR)
					continue;
				return -1;
			}
			done += k;
		}
		at += n;
	}
	return 0;
}

static int
copy_range(int from, int to, off_t at, off_t end)
{
	off_t in = at, out = at;

	while (in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);

		if (n > 0)
			continue;
		switch (n ? errno : EINVAL) {
		case EINTR:
			continue;
		case EXDEV:
		case EINVAL:
		case ENOSYS:
		case EOPNOTSUPP:
		case EPERM: /* a filter's */
			return copy_by_hand(from, to, in, end);
		default:
			return -1;
		}
	}
	return 0;
}

int
fs_copy_content(int from, int to)
{
	off_t at = 0, data, hole;
	struct stat st;

	if (!ioctl(to, FICLONE, from))
		return 0;
	/* Files that the kernel makes up (proc) have no size and copy as nothing: only a read's end is
	 * to be believed. */
	if (fstat(from, &st) || !st.st_size)
		return copy_by_hand(from, to, 0, INT64_MAX);
	/* A hole stays one. */
	for (;; at = hole) {
		data = lseek(from, at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		if (hole < 0)
			return copy_by_hand(from, to, at, INT64_MAX);
		if (copy_range(from, to, data, hole))
			return -1;
	}
	at = lseek(from, 0, SEEK_END);
	return at < 0 ? -1 : ftruncate(to, at);
}

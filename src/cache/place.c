/* SPDX-License-Identifier: MIT */
#include "cache/place.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

enum {
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
};

static int place_as(int from, const char *from_name, int to, const char *name, bool may_exchange);

/* What is in the directory from/from_name goes into the directory to/name, which is no link. */
static int
merge(int from, const char *from_name, int to, const char *name)
{
	cleanup_close int src = openat(from, from_name, OPEN_DIR);
	cleanup_close int dst = openat(to, name, OPEN_DIR);
	cleanup_close int list = -1;
	cleanup_dir DIR *d = NULL;
	struct dirent *de;
	int failed = 0;

	if (src < 0 || dst < 0)
		return -1;
	list = openat(src, ".", OPEN_DIR);
	d = list < 0 ? NULL : fdopendir(list);
	if (!d)
		return -1;
	take_fd(&list);
	while (errno = 0, (de = readdir(d))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		/* Not by exchange: nothing would say, after a crash, which of the two is the new one. */
		if (place_as(src, de->d_name, dst, de->d_name, false))
			failed = errno;
	}
	if (errno || failed) {
		errno = errno ? errno : failed;
		return -1;
	}
	return 0;
}

static int
place_as(int from, const char *from_name, int to, const char *name, bool may_exchange)
{
	struct stat src, dst;

	if (!renameat2(from, from_name, to, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EEXIST && errno != EINVAL)
		return -1;
	if (fstatat(from, from_name, &src, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (fstatat(to, name, &dst, AT_SYMLINK_NOFOLLOW)) {
		/* a file system without NOREPLACE, or it went away just now */
		return errno == ENOENT ? renameat(from, from_name, to, name) : -1;
	}
	if (S_ISDIR(dst.st_mode)) {
		if (S_ISDIR(src.st_mode))
			return merge(from, from_name, to, name);
		errno = EISDIR;
		return -1;
	}
	if (may_exchange && !renameat2(from, from_name, to, name, RENAME_EXCHANGE))
		return 0;
	if (S_ISDIR(src.st_mode) && unlinkat(to, name, 0))
		return -1;
	return renameat(from, from_name, to, name);
}

static int
copy_file(int from, const char *from_name, int to, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	cleanup_close int in =
		openat(from, from_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_close int out =
		in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (out < 0 || fs_copy_content(in, out) || fchmod(out, st->st_mode & 0777))
		return -1;
	return futimens(out, times);
}

static int
copy_link(int from, const char *from_name, int to, const char *name, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	cleanup_free char *target = xmalloc(PATH_MAX + 1);
	ssize_t n = readlinkat(from, from_name, target, PATH_MAX);

	if (n < 0)
		return -1;
	target[n] = '\0';
	if (symlinkat(target, to, name))
		return -1;
	return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static int
copy_one(int from, const char *from_name, int to, const char *name, const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(from, from_name, to, name, st);
	case S_IFLNK:
		return copy_link(from, from_name, to, name, st);
	case S_IFDIR:
		return mkdirat(to, name, (st->st_mode & 0777) | S_IRWXU);
	default:
		errno = EINVAL;
		return -1;
	}
}

static enum fs_visit
copy_visit(void *ctx, const struct fs_entry *entry)
{
	const char *base;
	cleanup_close int to = fs_open_parent(*(const int *)ctx, entry->path, &base);

	if (to < 0 || copy_one(entry->parent, entry->name, to, base, entry->st))
		return FS_VISIT_STOP;
	return FS_VISIT_CONTINUE;
}

/* From below a copied directory upwards: writing into one changes its time. */
static enum fs_visit
date_visit(void *ctx, const struct fs_entry *entry)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->st->st_mtim};
	const char *base;
	cleanup_close int to = -1;

	if (!S_ISDIR(entry->st->st_mode))
		return FS_VISIT_CONTINUE;
	to = fs_open_parent(*(const int *)ctx, entry->path, &base);
	if (to < 0 || utimensat(to, base, times, AT_SYMLINK_NOFOLLOW))
		return FS_VISIT_STOP;
	return FS_VISIT_CONTINUE;
}

static int
copy_tree(int from, const char *from_name, int to, const char *copy, const struct stat *st)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	cleanup_close int fd = -1;

	if (copy_one(from, from_name, to, copy, st))
		return -1;
	if (!S_ISDIR(st->st_mode))
		return 0;
	fd = openat(to, copy, OPEN_DIR);
	if (fd < 0 || fs_walk(from, from_name, copy_visit, &fd) ||
		fs_walk(from, from_name, date_visit, &fd))
		return -1;
	return futimens(fd, times);
}

/*
 * The copy's name follows from the inode, so that after a crash the next attempt finds and removes
 * the half copy.
 */
static int
place_by_copy(int from, const char *from_name, int to, const char *name, const struct stat *st)
{
	char copy[48];

	snprintf(copy, sizeof(copy), ".vx-commit-%llu-%llu", (unsigned long long)st->st_dev,
		(unsigned long long)st->st_ino);
	if (fs_remove_tree(to, copy))
		return -1;
	if (!copy_tree(from, from_name, to, copy, st)) {
		log_debug("phase", "copied");
		if (!place_as(to, copy, to, name, true))
			return fs_remove_tree(to, copy);
	}
	int saved = errno;
	fs_remove_tree(to, copy);
	errno = saved;
	return -1;
}

int
place(int from, const char *from_name, int to, const char *name, const struct stat *st)
{
	if (!place_as(from, from_name, to, name, true))
		return 0;
	if (errno != EXDEV || place_by_copy(from, from_name, to, name, st))
		return -1;
	/* Gone as after a rename: the list's later moves may shut what this one would go into. */
	return fs_remove_tree(from, from_name);
}

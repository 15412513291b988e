/* SPDX-License-Identifier: MIT */
/*
 * Rules compare bytes. On a file system that takes "Secret" for "secret" a deny by one spelling does not hold for
 * the other, so what is on one is refused, as far as that can be known: by the flag of the directory (ext4, f2fs and
 * tmpfs fold where it is set), by the file system's type, and, as some fold by an option of their mount, by asking
 * for a name of the directory in other letters.
 */
#include "sandbox/setup.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef FS_CASEFOLD_FL
#define FS_CASEFOLD_FL 0x40000000
#endif

enum {
	LOOKED_AT_MAX = 256, /* rules: of thousands the first ones */
	NAMES_MAX = 16,
	EXFAT_MAGIC = 0x2011bab0,
};

/* The first letter in the other case; false: there is none. */
static bool
flip_case(char *name)
{
	for (; *name; name++)
		if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z')) {
			*name ^= 0x20;
			return true;
		}
	return false;
}

/* What has several names may have both of these; a mount can show one thing under both. */
static bool
is_one(int dir, const char *name, const char *other)
{
	struct statx a, b;
	unsigned mask = STATX_TYPE | STATX_INO | STATX_NLINK | STATX_MNT_ID;

	return !statx(dir, other, AT_SYMLINK_NOFOLLOW, mask, &b) &&
	       !statx(dir, name, AT_SYMLINK_NOFOLLOW, mask, &a) && a.stx_ino == b.stx_ino &&
	       a.stx_mnt_id == b.stx_mnt_id && a.stx_dev_major == b.stx_dev_major &&
	       a.stx_dev_minor == b.stx_dev_minor && (S_ISDIR(a.stx_mode) || a.stx_nlink == 1);
}

static bool
shows_it(int rootfd, const char *path)
{
	cleanup_dir DIR *d = host_opendir(rootfd, path);
	enum host_kind kind;
	const char *name;

	for (int i = 0; d && i < NAMES_MAX && host_readdir(d, &name, &kind) == 1; i++) {
		cleanup_free char *other = xstrdup(name);

		if (flip_case(other) && is_one(dirfd(d), name, other))
			return true;
	}
	return false;
}

static bool
folds(int rootfd, const char *path)
{
	cleanup_close int fd =
		fs_open_beneath(rootfd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	struct statfs fs;
	int flags = 0;

	if (fd < 0)
		return false; /* not there, or closed: nothing is known */
	if (!ioctl(fd, FS_IOC_GETFLAGS, &flags) && (flags & FS_CASEFOLD_FL))
		return true;
	if (!fstatfs(fd, &fs) && (fs.f_type == MSDOS_SUPER_MAGIC || fs.f_type == EXFAT_MAGIC))
		return true;
	return shows_it(rootfd, path);
}

attr_noreturn static void
refuse(const char *root, const char *path)
{
	setup_die(0,
		"keep it on a file system, or in a directory, that tells them apart (of a new, "
		"empty directory "
		"of ext4: chattr -F)",
		"%s%s%s takes upper and lower case of a name for the same, so that no rule about "
		"names can hold "
		"there",
		root, *path ? "/" : "", path);
}

void
folds_check(const struct setup *s)
{
	const struct spec *spec = &s->spec;
	size_t n = 0;

	if (folds(s->host, ""))
		refuse(spec->workspace, "");
	for (size_t i = 0; i < spec->nrules && n < LOOKED_AT_MAX; i++) {
		const struct spec_rule *r = &spec->rules[i];

		if (r->is_glob || *r->path == '/' ||
			(r->kind != SPEC_READ && r->kind != SPEC_WRITE))
			continue;
		n++;
		if (folds(s->host, r->path))
			refuse(spec->workspace, r->path);
	}
	for (size_t i = 0; i < s->outside.tops.n; i++)
		if (folds(s->outside.host, s->outside.tops.v[i]))
			refuse("", s->outside.tops.v[i]);
}

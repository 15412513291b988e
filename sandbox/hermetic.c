/* SPDX-License-Identifier: MIT */
/*
 * The hermetic view: of the host only the directories of the system are to be seen. All else at the root
 * is covered, files by nothing, directories by empty trees of their own, in which the workspace, what is granted, and what PATH names have
 * their mount points.
 */
#include "sandbox/mount.h"
#include "sandbox/view.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

/* Programs, what they are made of, and how the machine is set up; and what dev.c has of its own. */
static const char *const visible[] = {"bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32",
	"nix", "opt", "proc", "run", "sbin", "sys", "tmp", "usr"};

static bool
is_visible(const char *name, size_t n)
{
	for (size_t i = 0; i < array_len(visible); i++)
		if (strlen(visible[i]) == n && !memcmp(visible[i], name, n))
			return true;
	return false;
}

bool
hermetic_covers(const struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;

	return spec->hermetic && !is_visible(path + 1, strcspn(path + 1, "/")) &&
	       !path_is_within(path, spec->workspace);
}

static void
cover(struct view *v, const char *name)
{
	static const char *const options[] = {"source", "vx-hidden", "mode", "0755", NULL};
	cleanup_close int at = openat(v->root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[NAME_MAX + 2];
	struct stat st;
	int mnt;

	if (at < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT)) {
		snprintf(path, sizeof(path), "/%s", name);
		/* What a link leads to is hidden or shown by itself. */
		if (!fstatat(v->root, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISLNK(st.st_mode))
			view_cover(v, path);
		return;
	}
	mnt = at < 0 ? -1 : mount_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options);
	if (mnt < 0 || mount_attach(mnt, at, ""))
		setup_die(errno, no_remedy, "cannot hide /%s", name);
	GROW(v->covers, v->ncovers + 1, v->covers_cap);
	v->covers[v->ncovers++] = mnt;
}

void
hermetic_attach(struct view *v)
{
	cleanup_dir DIR *root = NULL;
	const struct dirent *d;

	if (!v->s->spec.hermetic)
		return;
	root = opendir("/");
	if (!root)
		setup_die(errno, no_remedy, "cannot list the root directory");
	while ((d = readdir(root)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
			!is_visible(d->d_name, strlen(d->d_name)))
			cover(v, d->d_name);
}

void
hermetic_close(const struct view *v)
{
	for (size_t i = 0; i < v->ncovers; i++)
		if (mount_set(v->covers[i], MOUNT_ATTR_RDONLY))
			setup_die(errno, no_remedy, "cannot close what hides the host");
}

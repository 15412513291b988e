/* SPDX-License-Identifier: MIT */
#include "sandbox/mount.h"
#include "util/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
	/* Of /dev/fuse, in every kernel. */
	FUSE_MAJOR = 10,
	FUSE_MINOR = 229,
};

int
mount_new(const char *type, unsigned attrs, const char *const *options)
{
	cleanup_close int context = fsopen(type, FSOPEN_CLOEXEC);

	if (context < 0)
		return -1;
	for (; *options; options += 2) {
		const char *value = options[1];
		int r = *value ? fsconfig(context, FSCONFIG_SET_STRING, options[0], value, 0)
			       : fsconfig(context, FSCONFIG_SET_FLAG, options[0], NULL, 0);

		if (r)
			return -1;
	}
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	return fsmount(context, FSMOUNT_CLOEXEC, attrs);
}

int
mount_open_fuse(void)
{
	cleanup_close int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISCHR(st.st_mode) ||
		st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR))
		return -1;
	return take_fd(&fd);
}

int
mount_clone(int dirfd, const char *path, bool deep)
{
	return open_tree(dirfd, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT |
			(*path ? 0 : AT_EMPTY_PATH) | (deep ? AT_RECURSIVE : 0));
}

int
mount_attach(int mnt, int dirfd, const char *path)
{
	return move_mount(mnt, "", dirfd, path,
		MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}

int
mount_set(int mnt, unsigned set)
{
	struct mount_attr attr = {.attr_set = set};

	return mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

void
mount_message(int context, struct strbuf *ret)
{
	char line[512];
	ssize_t n;

	/* One message a read, "e overlay: text\n". ENODATA ends them. */
	while ((n = read(context, line, sizeof(line))) > 0) {
		if (line[n - 1] == '\n')
			n--;
		if (n < 3 || line[0] != 'e')
			continue;
		if (ret->len)
			strbuf_adds(ret, "; ");
		strbuf_add(ret, line + 2, (size_t)n - 2);
	}
}

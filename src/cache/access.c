/* SPDX-License-Identifier: MIT */
#include "cache/access.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* By fd: chmod by name would follow a link put there meanwhile. */
int
access_chmod(int rootfd, const char *path, mode_t mode)
{
	cleanup_close int fd = fs_open_beneath(rootfd, path, O_PATH | O_NOFOLLOW, 0);
	char proc[40];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return chmod(proc, mode);
}

int
access_add(struct access_fixes *a, int rootfd, const char *path, mode_t mode, mode_t need)
{
	mode &= 07777;
	if ((mode & need) == need)
		return 0;
	if (access_chmod(rootfd, path, mode | need))
		return -1;
	GROW(a->v, a->n + 1, a->cap);
	a->v[a->n++] = (struct access_fix){xstrdup(path), mode};
	return 0;
}

void
access_release(struct access_fixes *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i].path);
	free(a->v);
	*a = (struct access_fixes){0};
}

int
access_restore(struct access_fixes *a, int rootfd)
{
	int num = 0;

	while (a->n) {
		struct access_fix *f = &a->v[--a->n];

		if (access_chmod(rootfd, f->path, f->mode) && errno != ENOENT)
			num = errno;
		free(f->path);
	}
	free(a->v);
	*a = (struct access_fixes){0};
	errno = num;
	return num ? -1 : 0;
}

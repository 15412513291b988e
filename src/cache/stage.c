/* SPDX-License-Identifier: MIT */
#include "cache/stage.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

struct stage {
	int rootfd;
	int vxfd, fd; /* -1: not made yet */
	char name[48];
	uint64_t mount;
	size_t next;
};

struct stage *
stage_new(int rootfd)
{
	struct stage *s = xcalloc(1, sizeof(*s));

	*s = (struct stage){.rootfd = rootfd, .vxfd = -1, .fd = -1};
	return s;
}

uint64_t
stage_mount_of(int fd)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) || !(sx.stx_mask & STATX_MNT_ID))
		return 0;
	return sx.stx_mnt_id;
}

static int
make_named(struct stage *s)
{
	int rc;

	do {
		uint64_t x;

		if (getrandom(&x, sizeof(x), 0) != sizeof(x))
			return -1;
		snprintf(s->name, sizeof(s->name), "vx-scratch-%016llx", (unsigned long long)x);
		rc = mkdirat(s->vxfd, s->name, 0700);
	} while (rc && errno == EEXIST);
	if (rc)
		s->name[0] = '\0';
	return rc;
}

int
stage_open(struct stage *s, struct err *e)
{
	if (s->fd >= 0)
		return s->fd;
	if (s->vxfd < 0)
		s->vxfd = fs_open_mkdirs(s->rootfd, ".vx");
	if (s->vxfd < 0 || (!s->name[0] && make_named(s)))
		return err_set(e, ERR_IO, errno, "make a scratch directory in .vx");
	s->fd = openat(s->vxfd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->fd < 0 || flock(s->fd, LOCK_EX | LOCK_NB)) {
		err_set(e, ERR_IO, errno, ".vx/%s", s->name);
		fd_close(&s->fd);
		return -1;
	}
	s->mount = stage_mount_of(s->fd);
	return s->fd;
}

uint64_t
stage_mount(const struct stage *s)
{
	return s->mount;
}

void
stage_name(struct stage *s, char *ret, size_t size)
{
	snprintf(ret, size, "%zu", s->next++);
}

void
stage_free(struct stage *s)
{
	if (!s)
		return;
	if (s->name[0] && fs_remove_tree(s->vxfd, s->name))
		log_debug("cache", ".vx/%s: %s", s->name, strerror(errno));
	fd_close(&s->fd);
	fd_close(&s->vxfd);
	free(s);
}

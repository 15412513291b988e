/* SPDX-License-Identifier: MIT */
#include "cache/stage.h"
#include "cache/moves.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include <errno.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>

enum {
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
};

struct stage {
	int rootfd;
	int areafd, fd, piecesfd; /* -1: not made yet */
	char name[48];
	uint64_t next;
};

struct stage *
stage_new(int rootfd)
{
	struct stage *s = xcalloc(1, sizeof(*s));

	*s = (struct stage){.rootfd = rootfd, .areafd = -1, .fd = -1, .piecesfd = -1};
	return s;
}

void
stage_area_name(int vxfd, char *ret, size_t size)
{
	struct stat st;

	if (fstatat(vxfd, "scratch", &st, AT_SYMLINK_NOFOLLOW) || st.st_uid == geteuid())
		snprintf(ret, size, "scratch");
	else
		snprintf(ret, size, "scratch-%u", (unsigned)geteuid());
}

void
stage_spread_on_disk(int areafd)
{
	int flags;

	if (!ioctl(areafd, FS_IOC_GETFLAGS, &flags) && !(flags & FS_TOPDIR_FL)) {
		flags |= FS_TOPDIR_FL;
		(void)ioctl(areafd, FS_IOC_SETFLAGS, &flags);
	}
}

static int
open_area(int rootfd)
{
	cleanup_close int vx = fs_open_mkdirs(rootfd, ".vx");
	char name[24];
	int fd;

	if (vx < 0)
		return -1;
	stage_area_name(vx, name, sizeof(name));
	if (mkdirat(vx, name, 0700) && errno != EEXIST)
		return -1;
	fd = openat(vx, name, OPEN_DIR);
	if (fd >= 0)
		stage_spread_on_disk(fd);
	return fd;
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
		rc = mkdirat(s->areafd, s->name, 0700);
	} while (rc && errno == EEXIST);
	if (rc)
		s->name[0] = '\0';
	return rc;
}

static int
make(struct stage *s)
{
	if (s->areafd < 0)
		s->areafd = open_area(s->rootfd);
	if (s->areafd < 0 || (!s->name[0] && make_named(s)))
		return -1;
	if (s->fd < 0)
		s->fd = openat(s->areafd, s->name, OPEN_DIR);
	/* its parent's set-group-id bit would be in all that is made here */
	if (s->fd < 0 || fchmod(s->fd, 0700) || flock(s->fd, LOCK_EX | LOCK_NB))
		return -1;
	if (mkdirat(s->fd, MOVES_FROM, 0700) && errno != EEXIST)
		return -1;
	s->piecesfd = openat(s->fd, MOVES_FROM, OPEN_DIR);
	return s->piecesfd < 0 ? -1 : 0;
}

int
stage_open(struct stage *s, struct err *e)
{
	if (s->piecesfd < 0 && make(s))
		return err_set(e, ERR_IO, errno, "make a directory in .vx/scratch");
	return 0;
}

int
stage_scratch(const struct stage *s)
{
	return s->fd;
}

int
stage_pieces(const struct stage *s)
{
	return s->piecesfd;
}

uint64_t
stage_number(struct stage *s)
{
	return s->next++;
}

void
stage_free(struct stage *s)
{
	if (!s)
		return;
	if (s->name[0] && fs_remove_tree(s->areafd, s->name))
		log_debug("cache", ".vx/scratch/%s: %s", s->name, strerror(errno));
	fd_close(&s->piecesfd);
	fd_close(&s->fd);
	fd_close(&s->areafd);
	free(s);
}

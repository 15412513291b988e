/* SPDX-License-Identifier: MIT */
#include "exec/scratch.h"
#include "cache/stage.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <linux/ioprio.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char SCRATCH[] = "vx-scratch-";
static const char TRASH[] = "vx-trash-";
static const char KEPT[] = "vx-moved-out-"; /* nobody removes these but the user */
enum {
	TAG_LEN = 12,
	RANDOM_LEN = 16,
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	/* More than this in the trash, or less room on the disk, does not wait for the end of the run. */
	TRASH_BYTES = 256 << 20,
	TRASH_NAMES = 10000,
	LITTLE_ROOM = 1 << 30,
};

struct scratch_area {
	int fd;
	char *path;
	char tag[TAG_LEN + 1]; /* of the workspace */
	uint64_t bytes, names; /* in the trash that no remover was started for */
	int remover;           /* pidfd; -1: none */
};

static void
tag_of(const char *root_path, char ret[TAG_LEN + 1])
{
	struct digest d;
	char hex[DIGEST_HEX];

	digest_bytes(root_path, strlen(root_path), &d);
	digest_hex(&d, hex);
	memcpy(ret, hex, TAG_LEN);
	ret[TAG_LEN] = '\0';
}

/* tmpfs as an overlay's upper: without user xattrs before 6.6, and directories could not be renamed
 * (findings 5). */
static bool
kernel_is_before_6_6(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u))
		return true;
	sscanf(u.release, "%u.%u", &major, &minor);
	return major < 6 || (major == 6 && minor < 6);
}

/* Whether the file system can hold the upper directory of an overlay; why not otherwise. */
static const char *
cannot_hold_upper(int fd)
{
	static const char probe[] = "user.vx.probe";
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return strerror(errno);
	switch ((unsigned long)fs.f_type) {
	case OVERLAYFS_SUPER_MAGIC:
		return "an overlay cannot hold another one's upper directory";
	case TMPFS_MAGIC:
		if (kernel_is_before_6_6())
			return "tmpfs can hold it from kernel 6.6 on";
		break;
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case V9FS_MAGIC:
	case CEPH_SUPER_MAGIC:
	case AFS_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC:
	case MSDOS_SUPER_MAGIC:
	case ECRYPTFS_SUPER_MAGIC:
		return "this kind of file system cannot hold it";
	default:
		break;
	}
	/* overlayfs keeps its marks in these */
	if (fsetxattr(fd, probe, "", 0, 0))
		return errno == ENOTSUP ? "no user extended attributes" : strerror(errno);
	fremovexattr(fd, probe);
	return NULL;
}

/* dirfd/name, made 0700 where it is missing; it must be a directory of ours that only we can use.
 * Nothing is made with `create` false: -1 with ENOENT. */
static int
open_private(int dirfd, const char *name, bool create)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (create && mkdirat(dirfd, name, 0700) && errno != EEXIST)
		return -1;
	fd = openat(dirfd, name, OPEN_DIR);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (st.st_uid != geteuid()) {
		errno = EPERM;
		return -1;
	}
	if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700))
		return -1;
	return take_fd(&fd);
}

/* <root>/.vx/scratch, or ours beside it. No link is followed below the root: the repository could have
 * planted one. */
static int
open_in_root(const char *root_path, bool create, char **ret_path)
{
	cleanup_close int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int vx = -1, ignore = -1;
	char name[24];

	*ret_path = path_join(root_path, ".vx/scratch");
	if (root < 0)
		return -1;
	if (create && mkdirat(root, ".vx", 0777) && errno != EEXIST)
		return -1;
	vx = openat(root, ".vx", OPEN_DIR);
	if (vx < 0)
		return -1;
	if (create) {
		ignore = openat(vx, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (ignore >= 0 && fd_write_all(ignore, "*\n", 2))
			return -1;
	}
	stage_area_name(vx, name, sizeof(name));
	free(*ret_path);
	*ret_path = xasprintf("%s/.vx/%s", root_path, name);
	return open_private(vx, name, create);
}

static int
open_elsewhere(const char *dir, const char *name, bool create)
{
	cleanup_close int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : open_private(fd, name, create);
}

static char *
place_name(void)
{
	return xasprintf("vx-scratch-%u", (unsigned)geteuid());
}

enum {
	NPLACES = 4
};

/* The i-th place, in order: an open fd and its path; -1 with errno, and the path all the same. NULL
 * in *ret_path: not given. */
static int
open_place(const char *root_path, unsigned i, bool create, char **ret_path)
{
	const char *env = getenv("VX_SCRATCH_DIR");
	const char *const dirs[NPLACES] = {root_path, env, "/var/tmp", "/dev/shm"};
	cleanup_free char *name = place_name();

	*ret_path = NULL;
	if (i == 0)
		return open_in_root(root_path, create, ret_path);
	if (!dirs[i] || *dirs[i] != '/')
		return -1;
	*ret_path = path_join(dirs[i], name);
	return open_elsewhere(dirs[i], name, create);
}

int
scratch_area_open(const char *root_path, struct scratch_area **ret, struct err *e)
{
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	const char *env = getenv("VX_SCRATCH_DIR");

	if (env && *env && *env != '/')
		return err_set(e, ERR_USAGE, 0, "VX_SCRATCH_DIR must be an absolute path: %s", env);
	for (unsigned i = 0; i < NPLACES; i++) {
		cleanup_free char *path = NULL;
		cleanup_close int fd = open_place(root_path, i, true, &path);
		const char * not ;

		if (!path)
			continue;
		not = fd < 0 ? strerror(errno) : cannot_hold_upper(fd);
		if (!not ) {
			struct scratch_area *a = xcalloc(1, sizeof(*a));

			stage_spread_on_disk(fd);
			a->fd = take_fd(&fd);
			a->remover = -1;
			/* It is hidden by this, and a link could lead to it. */
			a->path = realpath(path, NULL);
			if (!a->path)
				a->path = take_ptr(&path);
			tag_of(root_path, a->tag);
			*ret = a;
			return 0;
		}
		strbuf_addf(&why, "%s%s: %s", why.len ? "; " : "", path, not );
	}
	return err_set(e, ERR_SANDBOX, 0,
		"no place for what sandboxed tasks write (%s): set VX_SCRATCH_DIR to a directory "
		"on a "
		"volume, such as ext4, xfs or btrfs",
		why.buf);
}

const char *
scratch_area_path(const struct scratch_area *a)
{
	return a->path;
}

void
scratch_places_in(const char *dir, struct strvec *ret)
{
	const char *const dirs[] = {getenv("VX_SCRATCH_DIR"), "/var/tmp", "/dev/shm"};

	for (size_t i = 0; i < array_len(dirs); i++) {
		cleanup_free char *real =
			dirs[i] && *dirs[i] == '/' ? realpath(dirs[i], NULL) : NULL;
		cleanup_free char *name = place_name();
		cleanup_free char *path = real ? path_join(real, name) : NULL;
		cleanup_close int fd = -1;

		if (!path || !(path_is_within(path, dir) || path_is_within(dir, path)))
			continue;
		fd = open_elsewhere(real, name, true);
		/* One that is not ours no run uses. */
		if (fd >= 0 && !strvec_contains(ret, path))
			strvec_push(ret, path);
	}
}

static int
random_name(const char *prefix, const char *tag, char *ret, size_t size)
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		return -1;
	snprintf(ret, size, "%s%s-%016llx", prefix, tag, (unsigned long long)r);
	return 0;
}

int
scratch_new(struct scratch_area *a, struct scratch *ret, struct err *e)
{
	char name[sizeof(SCRATCH) + TAG_LEN + 1 + RANDOM_LEN];
	cleanup_close int fd = -1;
	bool is_emptied = false;
	int made;

	do {
		if (random_name(SCRATCH, a->tag, name, sizeof(name)))
			return err_set(e, ERR_IO, errno, "random bytes");
		made = mkdirat(a->fd, name, 0700);
		if (made && err_is_no_room(errno) && !is_emptied) {
			is_emptied = true;
			scratch_area_empty(a);
			made = mkdirat(a->fd, name, 0700);
		}
	} while (made && errno == EEXIST);
	fd = openat(a->fd, name, OPEN_DIR);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB))
		return err_set(e, ERR_IO, errno, "a scratch directory in %s", a->path);
	ret->path = path_join(a->path, name);
	ret->fd = take_fd(&fd);
	return 0;
}

/* Its new name, owned. */
static char *
keep(int areafd, const char *base, int fd)
{
	cleanup_free char *to = xasprintf("%s%s", KEPT, base + strlen(SCRATCH));

	return renameat(fd, SCRATCH_OUT, areafd, to) ? NULL : take_ptr(&to);
}

char *
scratch_keep(const struct scratch_area *a, const struct scratch *s)
{
	cleanup_free char *name = keep(a->fd, path_base(s->path), s->fd);

	return name ? path_join(a->path, name) : NULL;
}

/* Rolls forward and removes one leftover. A locked one is in use. */
static int
recover_one(int areafd, const char *name, int rootfd, struct err *e)
{
	cleanup_close int fd = openat(areafd, name, OPEN_DIR);
	int rc = 0;

	if (fd < 0) {
		if (errno == ENOENT)
			return 0;
		/* None of ours: a file or link that came with a copy or an archive. */
		if ((errno == ENOTDIR || errno == ELOOP) && !unlinkat(areafd, name, 0))
			return 0;
		return err_set(e, ERR_IO, errno, "left-over scratch %s", name);
	}
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK
			       ? 0
			       : err_set(e, ERR_IO, errno, "left-over scratch %s", name);
	if (moves_roll_forward(fd, rootfd, e) < 0)
		rc = err_wrap(e, "finishing what an earlier run began");
	/* Of a live view that nobody heard of any more: some of it may be the user's own. */
	if (!strncmp(name, SCRATCH, strlen(SCRATCH)))
		free(keep(areafd, name, fd));
	if (fs_remove_tree(areafd, name) && !rc)
		rc = err_set(e, ERR_IO, errno, "removing left-over scratch %s", name);
	return rc;
}

static bool
has_tag(const char *name, const char *prefix, const char *tag)
{
	size_t n = strlen(prefix);

	return !strncmp(name, prefix, n) && !strncmp(name + n, tag, TAG_LEN) &&
	       name[n + TAG_LEN] == '-';
}

/* `tag` NULL: those of any workspace. */
static int
each_name(int areafd, const char *prefix, const char *tag,
	int (*fn)(int areafd, const char *name, int rootfd, struct err *e), int rootfd,
	struct err *e)
{
	cleanup_close int fd = openat(areafd, ".", OPEN_DIR);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	cleanup_strvec struct strvec found = STRVEC_INIT;
	struct dirent *de;
	int rc = 0;

	if (!d)
		return err_set(e, ERR_IO, errno, "the scratch directory");
	take_fd(&fd);
	while (errno = 0, (de = readdir(d)))
		if (tag ? has_tag(de->d_name, prefix, tag)
			: !strncmp(de->d_name, prefix, strlen(prefix)))
			strvec_push(&found, de->d_name);
	if (errno)
		return err_set(e, ERR_IO, errno, "the scratch directory");
	for (size_t i = 0; i < found.n; i++)
		if (fn(areafd, found.v[i], rootfd, e))
			rc = -1;
	return rc;
}

static int
remove_trash(int areafd, const char *name, int rootfd, struct err *e)
{
	(void)rootfd;
	if (fs_remove_tree(areafd, name))
		return err_set(e, ERR_IO, errno, "removing %s", name);
	return 0;
}

static void
empty_trash(const struct scratch_area *a)
{
	struct err e = ERR_INIT;

	(void)each_name(a->fd, TRASH, a->tag, remove_trash, -1, &e);
}

/* Whether there is none. */
static bool
remover_is_gone(struct scratch_area *a)
{
	siginfo_t si = {0};

	/* Somebody else may have reaped it (proc_reap_orphans), and its number be another's: not its pidfd. */
	if (a->remover >= 0 &&
		(waitid(P_PIDFD, (id_t)a->remover, &si, WEXITED | WNOHANG) || si.si_pid))
		fd_close(&a->remover);
	return a->remover < 0;
}

/*
 * A child that removes what is in the trash now, when nothing else wants processor or disk. It has no other
 * descriptor of ours: helpers take the end of theirs for our death. It ends with us.
 */
attr_noreturn static void
be_the_remover(const struct scratch_area *a, pid_t core)
{
	prctl(PR_SET_NAME, "vx-trash");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != core ||
		syscall(SYS_close_range, a->fd + 1, ~0U, 0) ||
		(a->fd && syscall(SYS_close_range, 0, a->fd - 1, 0)))
		_exit(1);
	setpriority(PRIO_PROCESS, 0, 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
	empty_trash(a);
	_exit(0);
}

static void
start_remover(struct scratch_area *a)
{
	pid_t core = getpid(), remover;

	if (!remover_is_gone(a))
		return;
	remover = fork();
	if (!remover)
		be_the_remover(a, core);
	if (remover > 0) /* else the end of the run does it */
		a->remover = pidfd_open(remover, 0);
	a->bytes = a->names = 0;
}

static bool
is_much(const struct scratch_area *a)
{
	return a->bytes > TRASH_BYTES || a->names > TRASH_NAMES;
}

static enum fs_visit
weigh(void *ctx, const struct fs_entry *entry)
{
	struct scratch_area *a = ctx;

	a->names++;
	a->bytes += (uint64_t)entry->st->st_blocks * 512;
	return is_much(a) ? FS_VISIT_STOP : FS_VISIT_CONTINUE;
}

static bool
has_little_room(const struct scratch_area *a)
{
	struct statvfs v;

	return !fstatvfs(a->fd, &v) && (uint64_t)v.f_bavail * v.f_frsize < LITTLE_ROOM;
}

/* What the task left lies in these: in what it wrote of the workspace and of the home, and in its /tmp. */
static void
look_at_trash(struct scratch_area *a, const char *name)
{
	static const char *const parts[] = {SCRATCH_UPPER, "hu", "home", "tmp"};

	for (size_t i = 0; i < array_len(parts) && !is_much(a); i++) {
		cleanup_free char *part = path_join(name, parts[i]);

		(void)fs_walk(a->fd, part, weigh, a);
	}
	if (is_much(a) || (a->names && has_little_room(a)))
		start_remover(a);
}

void
scratch_drop(struct scratch_area *a, struct scratch *s)
{
	char name[sizeof(TRASH) + TAG_LEN + 1 + RANDOM_LEN];

	if (!s->path)
		return;
	/* One that cannot be renamed stays, unlocked: the next start removes it. */
	if (!random_name(TRASH, a->tag, name, sizeof(name)) &&
		!renameat(a->fd, path_base(s->path), a->fd, name))
		look_at_trash(a, name);
	fd_close(&s->fd);
	cleanup_free_p(&s->path);
	s->path = NULL;
}

void
scratch_area_empty(struct scratch_area *a)
{
	/* It would take its time. */
	if (!remover_is_gone(a)) {
		pidfd_send_signal(a->remover, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)a->remover, &(siginfo_t){0}, WEXITED) &&
			errno == EINTR)
			;
		fd_close(&a->remover);
	}
	empty_trash(a);
	a->bytes = a->names = 0;
}

void
scratch_area_close(struct scratch_area *a)
{
	if (!a)
		return;
	scratch_area_empty(a);
	fd_close(&a->fd);
	free(a->path);
	free(a);
}

int
scratch_recover(const char *root_path, int rootfd, struct err *e)
{
	char tag[TAG_LEN + 1];
	int rc = 0;

	tag_of(root_path, tag);
	for (unsigned i = 0; i < NPLACES; i++) {
		cleanup_free char *path = NULL;
		cleanup_close int fd = open_place(root_path, i, false, &path);

		/* Not there, or not ours: nothing of ours is in it. */
		if (fd < 0)
			continue;
		/* In the workspace all are its own, whatever path it had. */
		if (each_name(fd, SCRATCH, i ? tag : NULL, recover_one, rootfd, e) ||
			each_name(fd, TRASH, i ? tag : NULL, remove_trash, -1, e))
			rc = err_wrap(e, "%s", path);
	}
	return rc;
}

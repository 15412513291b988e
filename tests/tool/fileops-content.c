/* SPDX-License-Identifier: MIT */
/* Content: reading, writing, mapping, copying; locks and watches. */
#include "tests/tool/fileops.h"
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

enum {
	PAGE = 4096,
};

/* --- content --- */

void
make_content(void)
{
	static const char *const names[] = {"f", "fd", "map", "private", "mapped", "trunc", "hole",
		"range", "clone", "send", "open", "pieces"};
	static const char *const big[] = {"map", "private", "mapped", "hole"};

	for (size_t i = 0; i < array_len(names); i++)
		must_put(names[i], "0123456789");
	for (size_t i = 0; i < array_len(big); i++)
		if (truncate(big[i], 4 * PAGE))
			die(big[i]);
}

static char *
map(int fd, int prot, int flags)
{
	char *m = mmap(NULL, 4 * PAGE, prot, flags, fd, 0);

	if (m == MAP_FAILED)
		die("mmap");
	return m;
}

static int
write_page_two(const char *name)
{
	char *m = map(must_open(name, O_RDWR), PROT_READ | PROT_WRITE, MAP_SHARED);

	memcpy(m + PAGE, "child", 6);
	return 0;
}

static void
run_maps(void)
{
	char text[8] = "";
	int fd = must_open("map", O_RDWR), ro = must_open("mapped", O_RDONLY);
	char *m = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED), *p, *old;

	told_child("write to a shared mapping in a child", in_child(write_page_two, "map"));
	value("seen in ours", "%s", m + PAGE);
	told("msync", msync(m, 4 * PAGE, MS_SYNC));
	if (pread(fd, text, 6, PAGE) != 6)
		die("map");
	value("and by read", "%s", text);
	if (pwrite(fd, "WR", 2, 0) != 2)
		die("map");
	value("a write seen in the mapping", "%.4s", m);

	p = map(must_open("private", O_RDONLY), PROT_READ | PROT_WRITE, MAP_PRIVATE);
	p[0] = 'P';
	value("write to a private mapping, seen by read", "%s", get("private"));

	old = map(ro, PROT_READ, MAP_SHARED);
	told("write to a file that was mapped for reading", scribble("mapped", "NEW"));
	value("seen in the mapping from before", "%.4s", old);
	told("mmap for writing of a reading fd",
		mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, ro, 0) == MAP_FAILED ? -1 : 0);
	value("executable mapping", "%s",
		mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, ro, 0) == MAP_FAILED
			? strerrorname_np(errno)
			: "ok");
}

static void
run_holes(void)
{
	int fd = must_open("sparse", O_RDWR | O_CREAT), lower = must_open("hole", O_RDWR);
	struct stat st;

	told("ftruncate to 1 GiB", ftruncate(fd, 1 << 30));
	told("pwrite far in", pwrite(fd, "x", 1, 900 << 20));
	fstat(fd, &st);
	claim("the file is sparse", st.st_blocks < 2048);
	value("SEEK_DATA in MiB", "%lld", (long long)lseek(fd, PAGE, SEEK_DATA) >> 20);
	value("SEEK_HOLE", "%lld", (long long)lseek(fd, 0, SEEK_HOLE));
	told("fallocate", fallocate(fd, 0, 0, 1 << 16));
	told("fallocate FALLOC_FL_KEEP_SIZE", fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 30, PAGE));
	told("fallocate FALLOC_FL_PUNCH_HOLE",
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	told("fallocate FALLOC_FL_ZERO_RANGE", fallocate(fd, FALLOC_FL_ZERO_RANGE, PAGE, PAGE));
	told("fallocate in a file from before",
		fallocate(lower, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	claim("which is zero there", !*at(lower));
	told("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ? -1 : 0);
	told("fsync", fsync(fd));
	told("fdatasync of a file from before", fdatasync(lower));
	told("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	close(fd);
	close(lower);
}

static void
run_copies(void)
{
	int from = must_open("range", O_RDONLY), to = must_open("copy", O_RDWR | O_CREAT);
	int sent = must_open("sent", O_RDWR | O_CREAT), pipes[2];
	struct fiemap extents = {.fm_length = ~0ULL};
	loff_t zero = 0;

	value("copy_file_range", "%zd", copy_file_range(from, &zero, to, NULL, 5, 0));
	value("what it copied", "%s", *at(to) ? at(to) : "-");
	zero = 0;
	value("copy_file_range within a file from before", "%s", ({
		int fd = must_open("clone", O_RDWR);
		loff_t end = 10;

		copy_file_range(fd, &zero, fd, &end, 3, 0) < 0 ? strerrorname_np(errno) : at(fd);
	}));
	told("FICLONE", ioctl(to, FICLONE, from));
	value("sendfile", "%zd", sendfile(sent, from, NULL, 10));
	value("what it sent", "%s", at(sent));
	if (pipe2(pipes, O_CLOEXEC))
		die("pipe");
	zero = 0;
	value("splice into a pipe", "%zd", splice(from, &zero, pipes[1], NULL, 10, 0));
	zero = 20;
	value("splice out of it", "%zd", splice(pipes[0], NULL, sent, &zero, 10, 0));
	told("FS_IOC_FIEMAP", ioctl(from, FS_IOC_FIEMAP, &extents));
	told("FIONREAD", ioctl(from, FIONREAD, &(int){0}));
	close(from);
	close(to);
	close(sent);
}

void
run_content(void)
{
	int ro = must_open("fd", O_RDONLY), open_one;
	struct stat before = of("fd"), after, by_fd;
	char self[32];

	told("truncate", truncate("trunc", 4));
	value("content after truncate", "%s", get("trunc"));
	told("truncate to more", truncate("trunc", 8));
	value("size after truncate", "%lld", (long long)of("trunc").st_size);
	told("write of a file that is open for reading", scribble("fd", "NEW"));
	value("seen by the reading fd", "%s", at(ro));
	after = of("fd");
	claim("its number is as before", before.st_ino == after.st_ino);
	claim("its device is as before", before.st_dev == after.st_dev);
	if (fstat(ro, &by_fd))
		die("fd");
	claim("the reading fd shows the same inode", same_inode(after, by_fd));
	value("size by the reading fd", "%lld", (long long)by_fd.st_size);
	told("fchmod by the reading fd", fchmod(ro, 0600));
	value("mode after fchmod", "%o", of("fd").st_mode & 07777);
	told("futimens by the reading fd", futimens(ro, NULL));
	told("write by the reading fd", write(ro, "x", 1));
	close(ro);

	open_one = must_open("open", O_RDWR);
	told("unlink of an open file", unlink("open"));
	value("its content", "%s", at(open_one));
	told("write to it", write(open_one, "AB", 2));
	value("its content after that", "%s", at(open_one));
	fstat(open_one, &by_fd);
	value("names of an unlinked file counted", "%d", (int)by_fd.st_nlink);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", open_one);
	told("link of an unlinked file",
		linkat(AT_FDCWD, self, AT_FDCWD, "back", AT_SYMLINK_FOLLOW));
	value("open of an unlinked file through /proc", "%s", get(self));
	told("creat in its place", put("open", "second"));
	value("which the old fd does not see", "%s", at(open_one));
	close(open_one);

	run_maps();
	run_holes();
	run_copies();
}

/* --- locks --- */

void
make_locks(void)
{
	static const char *const names[] = {"flock", "posix", "ofd", "mixed", "lease"};

	for (size_t i = 0; i < array_len(names); i++)
		must_put(names[i], "text");
}

static int
try_flock(const char *name)
{
	return flock(must_open(name, O_RDWR), LOCK_EX | LOCK_NB);
}

static int
lock_with(int command, int fd, short type)
{
	struct flock l = {.l_type = type};

	return fcntl(fd, command, &l);
}

static int
try_posix(const char *name)
{
	return lock_with(F_SETLK, must_open(name, O_RDWR), F_WRLCK);
}

void
run_locks(void)
{
	int a = must_open("flock", O_RDWR), b = must_open("posix", O_RDWR),
	    c = must_open("ofd", O_RDWR), d, lease = must_open("lease", O_RDONLY);
	struct flock seen = {.l_type = F_WRLCK};

	told("flock", flock(a, LOCK_EX | LOCK_NB));
	told_child("flock of another process", in_child(try_flock, "flock"));
	told("flock given up", flock(a, LOCK_UN));
	told_child("flock of another process after that", in_child(try_flock, "flock"));
	told("fcntl lock", lock_with(F_SETLK, b, F_WRLCK));
	told_child("fcntl lock of another process", in_child(try_posix, "posix"));
	told("OFD lock", lock_with(F_OFD_SETLK, c, F_WRLCK));
	d = must_open("ofd", O_RDWR);
	told("OFD lock of another fd", lock_with(F_OFD_SETLK, d, F_WRLCK));
	told("F_OFD_GETLK", fcntl(d, F_OFD_GETLK, &seen));
	claim("which names the lock", seen.l_type == F_WRLCK);
	/* The file is copied up between the two opens. */
	a = must_open("mixed", O_RDONLY);
	told("flock by a reading fd", flock(a, LOCK_EX | LOCK_NB));
	told("write of a locked file", scribble("mixed", "TEXT"));
	told_child("flock of another process after the first write", in_child(try_flock, "mixed"));
	told("read lease", fcntl(lease, F_SETLEASE, F_RDLCK));
	told("lease given up", fcntl(lease, F_SETLEASE, F_UNLCK));
	close(lease);
	lease = must_open("lease", O_RDWR);
	told("write lease", fcntl(lease, F_SETLEASE, F_WRLCK));
	close(lease);
}

/* --- watches --- */

void
make_watch(void)
{
	must_mkdir("d");
	must_put("d/f", "text");
	must_put("d/old", "text");
}

static void
tell_events(const char *what, int fd, int file)
{
	static char events[1 << 14] __attribute__((aligned(8)));
	ssize_t n = read(fd, events, sizeof(events));
	uint32_t dir = 0, of_file = 0;

	for (ssize_t i = 0; i < n;) {
		struct inotify_event e;

		memcpy(&e, events + i, sizeof(e));
		if (e.wd == file)
			of_file |= e.mask & (IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF);
		else
			dir |= e.mask &
			       (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVE | IN_DELETE);
		i += (ssize_t)(sizeof(e) + e.len);
	}
	printf("%s, told of the directory:%s%s%s%s%s%s%s\n", what, dir ? "" : " nothing",
		dir & IN_CREATE ? " create" : "", dir & IN_MODIFY ? " modify" : "",
		dir & IN_CLOSE_WRITE ? " close" : "", dir & IN_MOVED_FROM ? " from" : "",
		dir & IN_MOVED_TO ? " to" : "", dir & IN_DELETE ? " delete" : "");
	printf("%s, told of the file:%s%s%s%s\n", what, of_file ? "" : " nothing",
		of_file & IN_MODIFY ? " modify" : "", of_file & IN_ATTRIB ? " attrib" : "",
		of_file & IN_DELETE_SELF ? " delete" : "");
}

void
run_watch(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), file;

	told("inotify watch of a directory", inotify_add_watch(fd, "d", IN_ALL_EVENTS));
	file = inotify_add_watch(fd, "d/f", IN_ALL_EVENTS);
	told("inotify watch of a file", file);
	must_put("d/new", "new");
	tell_events("a new file", fd, file);
	if (rename("d/new", "d/newer"))
		die("d/new");
	tell_events("a rename", fd, file);
	if (scribble("d/f", "TEXT"))
		die("d/f");
	tell_events("the first write", fd, file);
	if (scribble("d/f", "MORE"))
		die("d/f");
	tell_events("the second write", fd, file);
	if (chmod("d/f", 0600))
		die("d/f");
	tell_events("a chmod", fd, file);
	if (unlink("d/old") || unlink("d/newer"))
		die("d/old");
	tell_events("a removal", fd, file);
	if (unlink("d/f"))
		die("d/f");
	tell_events("the file's removal", fd, file);
	close(fd);
}

/* SPDX-License-Identifier: MIT */
/*
 * File operations that a program may expect to work, each told by one line "NAME: RESULT" that is the
 * same each time. tests/sandbox/fileops.sh runs it outside and inside of a sandbox and compares.
 *
 *	fileops make	makes below the current directory what was there before the command started,
 *			a directory for each group
 *	fileops run	runs the operations on it
 *	fileops own	runs those on files of another owner, which fileops.sh makes
 *
 * A result is "ok", the name of an errno, "yes" or "no" where NAME is a claim, or a value.
 */
#include "util/base.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	OVERLAY_MAGIC = 0x794c7630,
	FUSE_MAGIC = 0x65735546,
};

/* --- telling and common steps ------------------------------------------------------------------ */

/* The errno is that of the call in the argument, which is evaluated first. */
static void
told(const char *name, long r)
{
	printf("%s: %s\n", name, r < 0 ? strerrorname_np(errno) : "ok");
}

static void
claim(const char *name, bool holds)
{
	printf("%s: %s\n", name, holds ? "yes" : "no");
}

__attribute__((format(printf, 2, 3))) static void
value(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

attr_noreturn static void
die(const char *what)
{
	fprintf(stderr, "fileops: %s: %s\n", what, strerror(errno));
	exit(9);
}

/* Makes or overwrites a file. */
static int
put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* Writes over the start of a file that is there. */
static int
scribble(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* The start of a file, or the name of an errno. */
static const char *
at(int fd)
{
	static char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return strerrorname_np(errno);
	text[n] = 0;
	return text;
}

static const char *
get(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *text;

	if (fd < 0)
		return strerrorname_np(errno);
	text = at(fd);
	close(fd);
	return text;
}

static struct stat
of(const char *name)
{
	struct stat st;

	if (lstat(name, &st))
		memset(&st, 0, sizeof(st));
	return st;
}

static bool
same_inode(struct stat a, struct stat b)
{
	return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static bool
later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static bool
equal(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Opens, or ends the program: what comes after it would tell nothing. */
static int
must_open(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		die(name);
	return fd;
}

static void
must_put(const char *name, const char *text)
{
	if (put(name, text))
		die(name);
}

static void
must_mkdir(const char *name)
{
	if (mkdir(name, 0755))
		die(name);
}

/* 0 or the errno of what a child does: for locks, which belong to a process. */
static int
in_child(int (*act)(const char *), const char *name)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		_exit(act(name) < 0 ? errno : 0);
	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
}

static void
told_child(const char *name, int error)
{
	printf("%s: %s\n", name, error ? strerrorname_np(error) : "ok");
}

static int
rename_flags(const char *from, const char *to, unsigned flags)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* --- opening ------------------------------------------------------------------------------------- */

static void
make_open(void)
{
	must_put("f", "text");
	must_put("trunc", "text");
	must_put("app", "text");
	must_put("ro", "text");
	must_put("reopen", "text");
	must_mkdir("d");
	must_put("d/in", "text");
	if (symlink("f", "ln") || chmod("ro", 0444))
		die("open");
}

static void
run_tmpfile(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	char self[32];

	told("open O_TMPFILE", fd);
	if (fd < 0)
		return;
	if (write(fd, "tmp", 3) != 3)
		die("O_TMPFILE");
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	told("linkat of an O_TMPFILE through /proc",
		linkat(AT_FDCWD, self, AT_FDCWD, "tmp1", AT_SYMLINK_FOLLOW));
	value("content of an O_TMPFILE that was given a name", "%s", get("tmp1"));
	close(fd);
	fd = open(".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	told("linkat of an O_TMPFILE that is O_EXCL",
		linkat(AT_FDCWD, self, AT_FDCWD, "tmp2", AT_SYMLINK_FOLLOW));
	close(fd);
}

static int
beneath(const char *name, uint64_t how)
{
	struct open_how h = {.flags = O_RDONLY | O_CLOEXEC, .resolve = how};

	int fd;

	/* Whenever something anywhere is renamed while it goes through a "..". */
	do
		fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &h, sizeof(h));
	while (fd < 0 && errno == EAGAIN);
	return fd;
}

static void
run_open(void)
{
	char self[32], target[16];
	int fd;

	told("open O_CREAT of what is there", open("f", O_CREAT | O_RDONLY | O_CLOEXEC, 0644));
	told("open O_CREAT|O_EXCL of what is there",
		open("f", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644));
	told("open O_CREAT|O_EXCL of a new name",
		open("new", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644));
	told("open O_TRUNC", open("trunc", O_WRONLY | O_TRUNC | O_CLOEXEC));
	value("size after O_TRUNC", "%lld", (long long)of("trunc").st_size);
	fd = must_open("app", O_WRONLY | O_APPEND);
	told("write O_APPEND", write(fd, "+", 1));
	value("content after O_APPEND", "%s", get("app"));
	close(fd);
	told("open O_NOFOLLOW of a link", open("ln", O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
	told("open O_DIRECTORY of a file", open("f", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	told("open O_WRONLY of a directory", open("d", O_WRONLY | O_CLOEXEC));
	told("open O_CREAT with a slash at the end",
		open("no/", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	told("open of a name below a file", open("f/x", O_RDONLY | O_CLOEXEC));
	told("open O_NOATIME", open("f", O_RDONLY | O_NOATIME | O_CLOEXEC));
	told("open O_DIRECT", open("f", O_RDWR | O_DIRECT | O_CLOEXEC));
	fd = must_open("new", O_WRONLY | O_SYNC);
	told("write O_SYNC", write(fd, "s", 1));
	close(fd);
	fd = must_open("f", O_PATH);
	claim("O_PATH then fstat is stat", !fstatat(fd, "", &(struct stat){0}, AT_EMPTY_PATH));
	told("read of an O_PATH", read(fd, target, 1));
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	value("open of an O_PATH through /proc", "%s", get(self));
	close(fd);
	fd = must_open("ln", O_PATH | O_NOFOLLOW);
	value("readlinkat of an O_PATH", "%zd", readlinkat(fd, "", target, sizeof(target)));
	close(fd);
	fd = must_open("reopen", O_RDONLY);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	told("open of a reading fd for writing, through /proc", scribble(self, "TE"));
	value("which the reading fd sees", "%s", at(fd));
	close(fd);
	fd = must_open("d", O_RDONLY | O_DIRECTORY);
	told("openat below a directory's fd", openat(fd, "in", O_RDWR | O_CLOEXEC));
	close(fd);
	told("openat2 RESOLVE_BENEATH", beneath("d/../f", RESOLVE_BENEATH));
	told("openat2 RESOLVE_BENEATH, out", beneath("../open/f", RESOLVE_BENEATH));
	told("openat2 RESOLVE_IN_ROOT", beneath("/../f", RESOLVE_IN_ROOT));
	told("openat2 RESOLVE_NO_XDEV", beneath("d/in", RESOLVE_NO_XDEV));
	told("openat2 RESOLVE_NO_SYMLINKS", beneath("ln", RESOLVE_NO_SYMLINKS));
	told("access W_OK of a read-only file", access("ro", W_OK));
	told("open O_WRONLY of a read-only file", open("ro", O_WRONLY | O_CLOEXEC));
	run_tmpfile();
}

/* --- renames ------------------------------------------------------------------------------------- */

static void
make_rename(void)
{
	static const char *const dirs[] = {"d1", "d2", "d3", "d4", "d5", "d6", "empty", "into"};
	static const char *const files[] = {"f1", "f2", "f3", "f4", "f5", "f6", "f7", "d1/x",
		"d2/x", "d3/x", "d4/x", "d5/x", "d6/x"};

	for (size_t i = 0; i < array_len(dirs); i++)
		must_mkdir(dirs[i]);
	for (size_t i = 0; i < array_len(files); i++)
		must_put(files[i], files[i]);
	if (symlink("f1", "ln") || link("f7", "f7b"))
		die("rename");
}

static void
run_rename_dirs(void)
{
	told("rename of a directory", rename("d1", "d1r"));
	told("rename of an empty directory", rename("empty", "emptyr"));
	told("rename of a directory into another", rename("d2", "into/d2"));
	told("exchange of two directories", rename_flags("d3", "d4", RENAME_EXCHANGE));
	must_mkdir("n1");
	must_put("n1/y", "n1/y");
	told("rename of a new directory", rename("n1", "n2"));
	must_mkdir("over");
	told("rename of a new directory over an empty one", rename("n2", "over"));
	value("content of what was moved", "%s", get("over/y"));
	must_mkdir("n3");
	told("rename of a new directory over a full one", rename("n3", "d5"));
	told("exchange of a directory and a new one", rename_flags("d5", "n3", RENAME_EXCHANGE));
	must_mkdir("n4");
	told("exchange of two new directories", rename_flags("n4", "n3", RENAME_EXCHANGE));
	told("rename of a directory into itself", rename("d6", "d6/z"));
	told("rename of a directory over a file", rename("d6", "f6"));
	told("rename of a file over a directory", rename("f6", "d6"));
	told("rename of .", rename(".", "dot"));
	told("rmdir of a full directory", rmdir("d6"));
	told("rmdir of .", rmdir("."));
	told("unlink of a directory", unlink("d6"));
	told("rmdir of a file", rmdir("f6"));
	if (unlink("d6/x"))
		die("d6/x");
	told("rmdir of a directory that was emptied", rmdir("d6"));
	told("mkdir in its place", mkdir("d6", 0755));
	value("what the new one holds", "%s", get("d6/x"));
	told("mkdir of what is there", mkdir("d6", 0755));
}

static void
run_rename(void)
{
	told("rename of a file", rename("f1", "f1r"));
	told("rename of a file over another", rename("f1r", "f2"));
	value("content after the rename", "%s", get("f2"));
	told("rename of a file into a directory", rename("f2", "into/f2"));
	told("rename of a file that is not there", rename("none", "none2"));
	told("rename of a file with a slash at the end", rename("f3/", "f3r"));
	told("exchange of two files", rename_flags("f3", "f4", RENAME_EXCHANGE));
	value("content after the exchange", "%s", get("f3"));
	must_put("new", "new");
	told("exchange of a file and a new one", rename_flags("f3", "new", RENAME_EXCHANGE));
	told("exchange with what is not there", rename_flags("f3", "none", RENAME_EXCHANGE));
	must_mkdir("nd");
	told("exchange of a file and a new directory", rename_flags("f5", "nd", RENAME_EXCHANGE));
	told("rename RENAME_NOREPLACE onto what is there",
		rename_flags("f3", "f4", RENAME_NOREPLACE));
	told("rename RENAME_NOREPLACE", rename_flags("f4", "f4r", RENAME_NOREPLACE));
	told("rename RENAME_WHITEOUT", rename_flags("f4r", "f4w", RENAME_WHITEOUT));
	told("rename of a link", rename("ln", "ln2"));
	told("rename of a file onto its other name", rename("f7", "f7b"));
	claim("after which both names are there", of("f7").st_ino && of("f7b").st_ino);
	run_rename_dirs();
}

/* --- links --------------------------------------------------------------------------------------- */

static void
make_links(void)
{
	must_put("f", "text");
	must_put("a1", "text");
	must_put("b1", "text");
	must_put("c1", "text");
	must_mkdir("d");
	if (link("a1", "a2") || link("b1", "b2") || link("c1", "c2") || symlink("f", "ln") ||
		symlink("none", "dangling") || symlink("loop", "loop"))
		die("links");
}

static void
run_symlinks(void)
{
	static const size_t lengths[] = {1, 59, 60, 255, 1000, 4095};
	static char target[PAGE], seen[PAGE + 1];
	char name[64];

	for (size_t i = 0; i < array_len(lengths); i++) {
		ssize_t n;

		memset(target, 'x', lengths[i]);
		target[lengths[i]] = 0;
		snprintf(name, sizeof(name), "symlink of %zu bytes", lengths[i]);
		told(name, symlink(target, name));
		n = readlink(name, seen, sizeof(seen));
		snprintf(seen, 32, "%s",
			n == (ssize_t)lengths[i] && !memcmp(seen, target, (size_t)n) ? "yes"
										     : "no");
		printf("%s reads back: %s\n", name, seen);
	}
	told("symlink to nothing", symlink("", "empty"));
	told("symlink of a name that is there", symlink("f", "ln"));
	value("open through a link", "%s", get("ln"));
	value("open of a dangling link", "%s", get("dangling"));
	value("open of a link to itself", "%s", get("loop"));
	told("open O_CREAT through a dangling link", put("dangling", "made"));
	value("content of what it made", "%s", get("none"));
	told("unlink of a link", unlink("ln"));
	value("what it led to", "%s", get("f"));
}

static void
run_links(void)
{
	struct stat before = of("f");

	told("link to a file", link("f", "f2"));
	claim("its names are one inode", same_inode(of("f"), of("f2")));
	claim("which has the number from before", of("f").st_ino == before.st_ino);
	value("its names counted", "%d", (int)of("f").st_nlink);
	told("write through one of them", scribble("f", "TEXT"));
	value("seen through the other", "%s", get("f2"));
	told("unlink of one", unlink("f2"));
	value("its names counted after that", "%d", (int)of("f").st_nlink);

	claim("two names from before are one inode", same_inode(of("a1"), of("a2")));
	told("write through one name from before", scribble("a1", "TEXT"));
	value("seen through the other name from before", "%s", get("a2"));
	told("unlink of one name from before", unlink("b1"));
	value("names counted after that", "%d", (int)of("b2").st_nlink);
	value("content of the other", "%s", get("b2"));
	told("chmod through one name from before", chmod("c1", 0600));
	value("mode of the other", "%o", of("c2").st_mode & 07777);

	must_put("n", "n");
	told("link to a new file", link("n", "n2"));
	value("names of a new file counted", "%d", (int)of("n").st_nlink);
	told("link to a directory", link("d", "d2"));
	told("link onto what is there", link("n", "f"));
	told("linkat AT_SYMLINK_FOLLOW",
		linkat(AT_FDCWD, "ln", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
	claim("which leads to a file", S_ISREG(of("followed").st_mode));
	told("link to a link", link("ln", "ln2"));
	claim("which is a link", S_ISLNK(of("ln2").st_mode));
	run_symlinks();
}

/* --- content ------------------------------------------------------------------------------------- */

static void
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
	value("what it copied", "%s", at(to));
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

static void
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

/* --- locks --------------------------------------------------------------------------------------- */

static void
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

static void
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

/* --- directories --------------------------------------------------------------------------------- */

enum {
	MANY = 300,
};

static void
make_dirs(void)
{
	char name[32];

	must_mkdir("mixed");
	must_put("mixed/file", "");
	must_mkdir("mixed/dir");
	must_mkdir("mixed/dir/sub");
	if (symlink("file", "mixed/link"))
		die("mixed");
	must_mkdir("many");
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%03d", i);
		must_put(name, "");
	}
	must_mkdir("gone");
	must_put("gone/f", "text");
	must_mkdir("times");
	must_put("times/f", "text");
}

static unsigned char
type_of(mode_t mode)
{
	return (unsigned char)((mode & S_IFMT) >> 12);
}

/* Every name of a directory against what stat says of it. */
static void
compare_names(const char *what, const char *dir)
{
	DIR *d = opendir(dir);
	bool types = true, numbers = true, self = false, parent = false;
	struct dirent *e;
	struct stat st;
	int n = 0;

	if (!d)
		die(dir);
	while ((e = readdir(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			die(e->d_name);
		n++;
		if (!strcmp(e->d_name, "."))
			self = e->d_ino == st.st_ino;
		else if (!strcmp(e->d_name, ".."))
			parent = e->d_ino == st.st_ino;
		else
			numbers = numbers && e->d_ino == st.st_ino;
		types = types && (e->d_type == DT_UNKNOWN || e->d_type == type_of(st.st_mode));
	}
	closedir(d);
	printf("names in %s: %d\n", what, n);
	printf("d_type in %s is that of stat: %s\n", what, types ? "yes" : "no");
	printf("d_ino in %s is that of stat: %s\n", what, numbers ? "yes" : "no");
	printf("d_ino of . in %s is that of stat: %s\n", what, self ? "yes" : "no");
	printf("d_ino of .. in %s is that of stat: %s\n", what, parent ? "yes" : "no");
}

static int
count(DIR *d)
{
	int n = 0;

	while (readdir(d))
		n++;
	return n;
}

static void
run_positions(void)
{
	DIR *d = opendir("many");
	char name[300];
	struct dirent *e;
	bool again;
	long place;

	if (!d)
		die("many");
	for (int i = 0; i < 100; i++)
		readdir(d);
	place = telldir(d);
	e = readdir(d);
	snprintf(name, sizeof(name), "%s", e->d_name);
	count(d);
	seekdir(d, place);
	e = readdir(d);
	again = e && !strcmp(name, e->d_name);
	claim("seekdir comes back to the same name", again);
	value("names left from there", "%d", count(d));
	must_put("many/more", "");
	if (unlink("many/000"))
		die("many/000");
	rewinddir(d);
	value("names after rewinddir, one more and one less", "%d", count(d));
	rewinddir(d);
	for (int n = 0; (e = readdir(d)); n++)
		if (*e->d_name != '.' && unlinkat(dirfd(d), e->d_name, 0))
			die(e->d_name);
	rewinddir(d);
	value("names after each was removed as it was read", "%d", count(d));
	closedir(d);
	told("rmdir after that", rmdir("many"));
}

static void
run_kept(void)
{
	int fd = must_open("gone", O_RDONLY | O_DIRECTORY), moved,
	    cwd = must_open(".", O_RDONLY | O_DIRECTORY);
	char where[PAGE];
	struct stat st;

	if (unlinkat(fd, "f", 0) || rmdir("gone"))
		die("gone");
	told("openat O_CREAT in a removed directory",
		openat(fd, "x", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	told("fstat of a removed directory", fstat(fd, &st));
	value("names of a removed directory counted", "%d", (int)st.st_nlink);
	must_mkdir("gone");
	told("openat in a removed directory that was made anew",
		openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	claim("which is another", !same_inode(st, of("gone")));
	close(fd);

	must_mkdir("new");
	moved = must_open("new", O_RDONLY | O_DIRECTORY);
	told("rename of an open directory", rename("new", "renamed"));
	told("openat O_CREAT in a renamed directory",
		openat(moved, "x", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	claim("which is there by its new name", of("renamed/x").st_ino);
	close(moved);

	must_mkdir("cwd");
	if (chdir("cwd") || rmdir("../cwd"))
		die("cwd");
	told("getcwd in a removed directory", getcwd(where, sizeof(where)) ? 0 : -1);
	told("creat in a removed working directory", put("x", ""));
	told("chdir .. from it", chdir(".."));
	if (fchdir(cwd))
		die("cwd");
	close(cwd);
}

static void
run_dirs(void)
{
	struct timespec before = of("times").st_mtim;

	compare_names("a directory", "mixed");
	must_mkdir("fresh");
	must_put("fresh/f", "");
	must_mkdir("fresh/d");
	compare_names("a new directory", "fresh");
	must_put("mixed/added", "");
	if (scribble("mixed/file", "w"))
		die("mixed/file");
	compare_names("a directory that was written to", "mixed");
	value("links of a directory with one in it", "%d", (int)of("mixed/dir").st_nlink);
	value("links of a new directory with one in it", "%d", (int)of("fresh").st_nlink);
	must_put("times/new", "");
	claim("a new name moves the directory's mtime", later(of("times").st_mtim, before));
	claim("a file and its directory are on one device",
		of("mixed/dir").st_dev == of("mixed/link").st_dev);
	run_positions();
	run_kept();
}

/* --- attributes ---------------------------------------------------------------------------------- */

static const struct timespec long_ago[2] = {{981173106, 123456789}, {981173107, 987654321}};

static void
make_attributes(void)
{
	static const char *const names[] = {
		"mode", "times", "setid", "atime", "owner", "read", "acl", "x", "flags", "big"};

	for (size_t i = 0; i < array_len(names); i++)
		must_put(names[i], "text");
	must_mkdir("group");
	must_mkdir("sticky");
	if (symlink("mode", "ln") || chmod("setid", 06755) || chmod("group", 02755) ||
		chmod("sticky", 01777) || utimensat(AT_FDCWD, "mode", long_ago, 0) ||
		utimensat(AT_FDCWD, "read", long_ago, 0))
		die("attributes");
}

static void
run_times(void)
{
	struct timespec omit[2] = {{0, UTIME_OMIT}, {5, 5}};
	struct stat before = of("mode"), st;

	told("chmod", chmod("mode", 0640));
	st = of("mode");
	claim("chmod keeps atime and mtime",
		equal(st.st_mtim, before.st_mtim) && equal(st.st_atim, before.st_atim));
	claim("and moves ctime", later(st.st_ctim, before.st_ctim));
	told("utimensat", utimensat(AT_FDCWD, "times", long_ago, 0));
	st = of("times");
	claim("times are kept to the ns",
		equal(st.st_atim, long_ago[0]) && equal(st.st_mtim, long_ago[1]));
	told("utimensat UTIME_OMIT", utimensat(AT_FDCWD, "times", omit, 0));
	claim("leaves atime", equal(of("times").st_atim, long_ago[0]));
	told("utimensat of a link", utimensat(AT_FDCWD, "ln", long_ago, AT_SYMLINK_NOFOLLOW));
	claim("is the link's own", equal(of("ln").st_mtim, long_ago[1]) &&
					   later(of("times").st_ctim, of("ln").st_mtim));
	told("utimensat of a directory", utimensat(AT_FDCWD, "group", long_ago, 0));
	get("read");
	claim("reading moves an old atime", later(of("read").st_atim, long_ago[0]));
	must_put("first", "");
	must_put("second", "");
	claim("a later write is not earlier", !later(of("first").st_mtim, of("second").st_mtim));
	claim("nor earlier than what was there", !later(of("big").st_mtim, of("first").st_mtim));
}

static void
run_modes(void)
{
	struct stat st = of("setid");

	claim("set-id bits are shown", (st.st_mode & 07777) == 06755);
	told("chmod with set-id bits", chmod("owner", 06711));
	value("mode after it", "%o", of("owner").st_mode & 07777);
	told("write to a set-id file", scribble("setid", "TEXT"));
	value("mode after the write", "%o", of("setid").st_mode & 07777);
	told("chown to oneself", chown("owner", geteuid(), getegid()));
	value("mode after chown", "%o", of("owner").st_mode & 07777);
	told("chown to somebody else", chown("owner", 12345, 12345));
	told("lchown of a link", lchown("ln", geteuid(), getegid()));
	claim("a new file is ours", ({
		must_put("mine", "");
		of("mine").st_uid == geteuid();
	}));
	told("mkdir in a set-group-id directory", mkdir("group/d", 0755));
	value("mode of what it made", "%o", of("group/d").st_mode & 07777);
	value("mode of a sticky directory", "%o", of("sticky").st_mode & 07777);
	told("unlink in a sticky directory", put("sticky/f", "") || unlink("sticky/f") ? -1 : 0);
	told("chmod 0 of a directory", chmod("sticky", 0));
	umask(027);
	must_put("masked", "");
	umask(022);
	value("mode under a umask", "%o", of("masked").st_mode & 07777);
	told("fchmodat of a link, not followed",
		fchmodat(AT_FDCWD, "ln", 0600, AT_SYMLINK_NOFOLLOW));
	told("access X_OK of a file without x", access("x", X_OK));
}

static void
run_statx(void)
{
	struct statx x, dir;

	told("statx", statx(AT_FDCWD, "big", AT_SYMLINK_NOFOLLOW, STATX_ALL, &x));
	claim("statx knows the basic fields",
		(x.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
	claim("statx knows when it was born", x.stx_mask & STATX_BTIME);
	value("statx: bytes of a block are 512 or more", "%s", x.stx_blksize >= 512 ? "yes" : "no");
	value("statx: size", "%llu", (unsigned long long)x.stx_size);
	if (statx(AT_FDCWD, ".", 0, STATX_ALL, &dir))
		die("statx");
	claim("statx: a file and its directory are on one device",
		x.stx_dev_major == dir.stx_dev_major && x.stx_dev_minor == dir.stx_dev_minor);
	claim("statx: a directory in the workspace is no mount point",
		!(dir.stx_attributes & STATX_ATTR_MOUNT_ROOT));
}

/* An ACL by which one user more may read. */
static int
set_acl(const char *name, const char *attribute, uint32_t uid)
{
	/* version 2; then tag, permissions, id: user rw, a named user r, group r, mask r, other - */
	const uint16_t acl[] = {2, 0, 1, 6, 0xffff, 0xffff, 2, 4, (uint16_t)uid,
		(uint16_t)(uid >> 16), 4, 4, 0xffff, 0xffff, 16, 4, 0xffff, 0xffff, 32, 0, 0xffff,
		0xffff};
	unsigned char bytes[sizeof(acl)];

	for (size_t i = 0; i < array_len(acl); i++) {
		bytes[2 * i] = (unsigned char)acl[i];
		bytes[2 * i + 1] = (unsigned char)(acl[i] >> 8);
	}
	return setxattr(name, attribute, bytes, sizeof(bytes), 0);
}

static void
run_xattrs(void)
{
	static char large[3000];
	char names[256];

	told("setxattr user.", setxattr("x", "user.a", "value", 5, 0));
	value("getxattr user.", "%zd", getxattr("x", "user.a", names, sizeof(names)));
	told("setxattr XATTR_CREATE of what is there",
		setxattr("x", "user.a", "v", 1, XATTR_CREATE));
	told("setxattr of 3000 bytes", setxattr("x", "user.large", large, sizeof(large), 0));
	value("listxattr", "%zd", listxattr("x", names, sizeof(names)));
	told("removexattr", removexattr("x", "user.a"));
	told("getxattr of what is not there", getxattr("x", "user.a", names, sizeof(names)));
	told("setxattr user. of a directory", setxattr("group", "user.a", "v", 1, 0));
	told("setxattr user. of a link", lsetxattr("ln", "user.a", "v", 1, 0));
	told("setxattr user.overlay.", setxattr("x", "user.overlay.opaque", "y", 1, 0));
	told("setxattr trusted.", setxattr("x", "trusted.a", "v", 1, 0));
	told("setxattr security.capability", setxattr("x", "security.capability", "v", 1, 0));
	told("set an ACL that names us", set_acl("acl", "system.posix_acl_access", geteuid()));
	value("mode with an ACL", "%o", of("acl").st_mode & 07777);
	told("set a default ACL that names us",
		set_acl("group", "system.posix_acl_default", geteuid()));
	must_put("group/inherits", "");
	value("mode of what inherits it", "%o", of("group/inherits").st_mode & 07777);
	told("set an ACL that names somebody else",
		set_acl("acl", "system.posix_acl_access", 12345));
}

static void
run_attributes(void)
{
	int fd = must_open("flags", O_RDONLY), flags = 0;

	run_times();
	run_modes();
	run_statx();
	run_xattrs();
	told("FS_IOC_GETFLAGS", ioctl(fd, FS_IOC_GETFLAGS, &flags));
	flags |= FS_NODUMP_FL;
	told("FS_IOC_SETFLAGS", ioctl(fd, FS_IOC_SETFLAGS, &flags));
	close(fd);
}

/* --- what is no file ------------------------------------------------------------------------------ */

static void
make_special(void)
{
	if (mkfifo("fifo", 0644))
		die("fifo");
	must_mkdir("root");
	must_put("root/f", "text");
}

static int
write_fifo(const char *name)
{
	int fd = must_open(name, O_RDWR);

	return write(fd, "ff", 2) < 0 ? -1 : 0;
}

static void
through_fifo(const char *what, const char *name)
{
	/* Open for both, so that neither end waits for the other. */
	int fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	char text[4] = "";

	printf("open of %s: %s\n", what, fd < 0 ? strerrorname_np(errno) : "ok");
	if (fd < 0)
		return;
	printf("write to %s: %d\n", what, in_child(write_fifo, name));
	printf("read from %s: %zd\n", what, read(fd, text, sizeof(text)));
	close(fd);
}

static void
run_sockets(void)
{
	struct sockaddr_un at_path = {.sun_family = AF_UNIX, .sun_path = "sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];

	told("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	told("socket AF_UNIX", fd);
	if (fd < 0)
		return;
	told("bind at a path", bind(fd, (struct sockaddr *)&at_path, sizeof(at_path)));
	claim("makes a socket", S_ISSOCK(of("sock").st_mode));
	told("listen", listen(fd, 1));
	told("connect to the path", connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
					    (struct sockaddr *)&at_path, sizeof(at_path)));
	told("rename of a socket", rename("sock", "sock2"));
	told("unlink of a socket", unlink("sock2"));
	close(fd);
}

static int
look_from_root(const char *name)
{
	return chroot(name) || chdir("/") ? -1 : open("/f", O_RDONLY | O_CLOEXEC);
}

static void
run_special(void)
{
	told("mkfifo", mkfifo("newfifo", 0644));
	through_fifo("a new fifo", "newfifo");
	through_fifo("a fifo from before", "fifo");
	told("rename of a fifo", rename("newfifo", "renamed"));
	told("unlink of a fifo", unlink("renamed"));
	compare_names("a directory with a fifo", ".");
	told("mknod of a file", mknod("file", S_IFREG | 0644, 0));
	told("mknod of a character device", mknod("chr", S_IFCHR | 0644, makedev(1, 3)));
	told("mknod of a block device", mknod("blk", S_IFBLK | 0644, makedev(7, 0)));
	told("mknod of a whiteout", mknod("whiteout", S_IFCHR, makedev(0, 0)));
	run_sockets();
	told_child("chroot, and open from there", in_child(look_from_root, "root"));
}

/* --- watches ------------------------------------------------------------------------------------- */

static void
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

static void
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

/* --- names and the file system ------------------------------------------------------------------- */

static void
make_names(void)
{
	must_put("f", "text");
	must_put("bad\xff\nname", "text");
}

static void
run_names(void)
{
	static const char *const odd[] = {
		"-rf", "...", " ", "a\nb", "\xff\xfe", "wh", ".wh.f", "a:b,c=d", "\\"};
	static char name[PAGE + 8];
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = {.h.handle_bytes = MAX_HANDLE_SZ};
	int dir = must_open(".", O_RDONLY | O_DIRECTORY), mount_id, good = 0;
	struct statvfs v;
	struct statfs f;

	memset(name, 'a', 256);
	told("a name of 256 bytes", put(name, ""));
	name[255] = 0;
	told("a name of 255 bytes", put(name, "long"));
	value("content of it", "%s", get(name));
	told("unlink of a name of 255 bytes", unlink(name));
	memset(name, '/', PAGE);
	memcpy(name + PAGE - 1, "f", 2);
	told("a path of 4096 bytes", open(name, O_RDONLY | O_CLOEXEC));
	for (size_t i = 0; i < array_len(odd); i++)
		good += !put(odd[i], odd[i]) && !strcmp(get(odd[i]), odd[i]) && !unlink(odd[i]);
	value("odd names that can be made, read and removed", "%d of %d", good,
		(int)array_len(odd));
	value("a name from before that is no text", "%s", get("bad\xff\nname"));
	told("the empty name", open("", O_RDONLY | O_CLOEXEC));
	told("fsync of a directory", fsync(dir));
	told("syncfs", syncfs(dir));
	told("name_to_handle_at", name_to_handle_at(AT_FDCWD, "f", &handle.h, &mount_id, 0));
	if (statfs(".", &f) || statvfs(".", &v))
		die("statfs");
	value("statfs", "%s",
		f.f_type == OVERLAY_MAGIC ? "overlay"
		: f.f_type == FUSE_MAGIC  ? "fuse"
					  : "other");
	claim("there is free space", v.f_bavail > 0);
	claim("set-id programs work there", !(v.f_flag & ST_NOSUID));
	claim("device nodes work there", !(v.f_flag & ST_NODEV));
	value("longest name", "%lu", v.f_namemax);
	close(dir);
}

/* --- files of another owner ---------------------------------------------------------------------- */

static int
append(const char *name, int flags)
{
	int fd = open(name, O_WRONLY | flags | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, "n", 1);
	close(fd);
	return n < 0 ? -1 : 0;
}

/* What fileops.sh made: mine/, ours, in it theirs of 644 (f644, r644, u644, o644) and of 666 (f666, t666, m666,
 * r666, u666), and ours of another group (group). d755/ and d777/, theirs, in each ours (own) and theirs of 666
 * (theirs); in d777 also theirs (u) and an empty directory. */
static void
run_own(void)
{
	claim("a file of theirs shows its owner", of("mine/f644").st_uid == 1005);
	value("theirs, 644: read", "%s", get("mine/f644"));
	told("theirs, 644: write", append("mine/f644", O_APPEND));
	told("theirs, 644: chmod", chmod("mine/f644", 0600));
	told("theirs, 644: rename in our directory", rename("mine/r644", "mine/r644b"));
	told("theirs, 644: unlink in our directory", unlink("mine/u644"));
	must_put("mine/ours", "");
	told("theirs, 644: rename over it", rename("mine/ours", "mine/o644"));
	value("theirs, 666: read", "%s", get("mine/f666"));
	told("theirs, 666: append", append("mine/f666", O_APPEND));
	told("theirs, 666: O_TRUNC", append("mine/t666", O_TRUNC));
	told("theirs, 666: truncate", truncate("mine/t666", 0));
	told("theirs, 666: utimes", utimensat(AT_FDCWD, "mine/m666", NULL, 0));
	told("theirs, 666: rename in our directory", rename("mine/r666", "mine/r666b"));
	told("theirs, 666: link", link("mine/f666", "mine/l666"));
	told("theirs, 666: unlink in our directory", unlink("mine/u666"));
	told("ours, of another group: append", append("mine/group", O_APPEND));
	told("ours, of another group: chmod", chmod("mine/group", 0600));
	told("their directory, 755: create", append("d755/new", O_CREAT));
	told("their directory, 755: write of ours", append("d755/own", O_APPEND));
	told("their directory, 755: write of theirs, 666", append("d755/theirs", O_APPEND));
	told("their directory, 755: unlink", unlink("d755/own"));
	told("their directory, 777: create", append("d777/new", O_CREAT));
	told("their directory, 777: mkdir", mkdir("d777/newdir", 0755));
	told("their directory, 777: write of ours", append("d777/own", O_APPEND));
	told("their directory, 777: write of theirs, 666", append("d777/theirs", O_APPEND));
	told("their directory, 777: unlink of ours", unlink("d777/own"));
	told("their directory, 777: unlink of theirs", unlink("d777/u"));
	told("their directory, 777: rmdir of theirs", rmdir("d777/empty"));
}

/* --------------------------------------------------------------------------------------------------- */

static const struct group {
	const char *name;
	void (*make)(void), (*run)(void);
} groups[] = {
	{"open", make_open, run_open},
	{"rename", make_rename, run_rename},
	{"links", make_links, run_links},
	{"content", make_content, run_content},
	{"locks", make_locks, run_locks},
	{"dirs", make_dirs, run_dirs},
	{"attributes", make_attributes, run_attributes},
	{"special", make_special, run_special},
	{"watch", make_watch, run_watch},
	{"names", make_names, run_names},
};

int
main(int argc, char **argv)
{
	const char *word = argc == 2 ? argv[1] : "";
	bool make = !strcmp(word, "make");

	umask(022);
	if (!strcmp(word, "own")) {
		run_own();
		return 0;
	}
	if (!make && strcmp(word, "run") != 0) {
		fputs("usage: fileops make|run|own\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < array_len(groups); i++) {
		if (make)
			must_mkdir(groups[i].name);
		if (chdir(groups[i].name))
			die(groups[i].name);
		if (make)
			groups[i].make();
		else
			groups[i].run();
		if (chdir(".."))
			die("..");
	}
	return 0;
}

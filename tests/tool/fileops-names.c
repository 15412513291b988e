/* SPDX-License-Identifier: MIT */
/* Opening, renaming, links, and names as such. */
#include "tests/tool/fileops.h"
#include <linux/openat2.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum {
	PAGE = 4096,
	OVERLAY_MAGIC = 0x794c7630,
	FUSE_MAGIC = 0x65735546,
};

/* --- opening --- */

void
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

void
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

/* --- renames --- */

void
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

void
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

/* --- links --- */

void
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

void
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

/* --- names and the file system --- */

void
make_names(void)
{
	must_put("f", "text");
	must_put("bad\xff\nname", "text");
}

void
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

/* SPDX-License-Identifier: MIT */
/* Directories as they are listed and kept, attributes, and what is no file. */
#include "tests/tool/fileops.h"
#include <dirent.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

enum {
	PAGE = 4096,
};

/* --- directories --- */

enum {
	MANY = 300,
};

void
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
	struct stat st = {0};

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

void
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

/* --- attributes --- */

static const struct timespec long_ago[2] = {{981173106, 123456789}, {981173107, 987654321}};

void
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

void
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

/* --- what is no file --- */

void
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

void
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

/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int top = -1; /* of all that this test makes */
static char top_name[] = "test-fs.XXXXXX";

static void
put(int dirfd, const char *name, const char *text)
{
	cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		diag("%s: %s", name, strerror(errno));
}

static bool
exists(int dirfd, const char *name)
{
	struct stat st;

	return !fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
}

/* What opening says: 0, or the errno. */
static int
try_open(const char *path, int flags)
{
	int fd = fs_open_beneath(top, path, flags, 0);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void
test_open(const char *how)
{
	cleanup_free char *long_name = xcalloc(1, 300);
	const char *base = NULL;
	struct stat st, parent_st;
	int fd;

	memset(long_name, 'x', 299);
	long_name[256] = '/';
	diag("%s", how);
	ok_int(try_open("a/b/f", O_RDONLY), 0, "a file");
	ok_int(try_open("", O_PATH), 0, "the directory itself");
	ok_int(try_open("a/b/none", O_RDONLY), ENOENT, "a missing file");
	ok_int(try_open("a/b/f/x", O_RDONLY), ENOTDIR, "below a file");
	ok_int(try_open("a/b/f", O_RDONLY | O_DIRECTORY), ENOTDIR, "a file as a directory");
	ok_int(try_open("a/link/f", O_RDONLY), ELOOP, "through a link");
	ok_int(try_open("a/link", O_RDONLY), ELOOP, "a link");
	ok_int(try_open("a/link", O_RDONLY | O_DIRECTORY), ELOOP, "a link as a directory");
	ok_int(try_open("a/link", O_PATH), ELOOP, "a link by O_PATH");
	ok_int(try_open("a/link", O_PATH | O_NOFOLLOW), 0, "the link itself, when asked for");
	ok_int(try_open("a/link/", O_PATH), EINVAL, "not a normal path");
	ok_int(try_open("a/../a/b/f", O_RDONLY), EINVAL, "no way up");
	ok_int(try_open("/etc/passwd", O_RDONLY), EINVAL, "nothing absolute");
	ok_int(try_open(long_name, O_RDONLY), ENAMETOOLONG, "a name that cannot be");
	fd = fs_open_beneath(top, "a/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	ok(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "makes a file, close-on-exec");
	ok(!fstat(fd, &st) && (st.st_mode & 0777) == 0640, "with its mode");
	close(fd);
	ok_int(fs_open_beneath(top, "a/new", O_WRONLY | O_CREAT | O_EXCL, 0640), -1, "once");
	unlinkat(top, "a/new", 0);

	fd = fs_open_parent(top, "a/b/f", &base);
	ok_str(base, "f", "the last component");
	ok(!fstat(fd, &st) && !fs_stat_beneath(top, "a/b", &parent_st) &&
			st.st_ino == parent_st.st_ino,
		"and its directory");
	close(fd);
	ok(!fs_stat_beneath(top, "a/link", &st) && S_ISLNK(st.st_mode), "stat shows a link");
	ok(!fs_stat_beneath(top, "link", &st) && S_ISLNK(st.st_mode), "here, too");
	ok(fs_stat_beneath(top, "link/f", &st) && errno == ELOOP, "but follows none");

	ok_int(fs_mkdirs(top, "m/n/o"), 0, "makes directories");
	ok_int(fs_mkdirs(top, "m/n/o"), 0, "that may exist");
	ok(fs_mkdirs(top, "a/b/f/x") && errno == ENOTDIR, "not below a file");
	ok(fs_mkdirs(top, "a/link/x") && errno == ELOOP && !exists(top, "a/b/x"),
		"not through a link");
	ok(fs_mkdirs(top, "a/dangling") && errno == ELOOP, "not at the end of a dangling link");
	ok_int(fs_remove_tree(top, "m"), 0, "removes them");
	ok(!exists(top, "m"), "gone");
	ok_int(fs_remove_tree(top, "m"), 0, "what is missing is removed");
}

static void
make_deep(int depth)
{
	cleanup_close int at = fcntl(top, F_DUPFD_CLOEXEC, 3);

	for (int i = 0; i < depth; i++) {
		int next;

		if (mkdirat(at, "d", 0777))
			diag("level %d: %s", i, strerror(errno));
		put(at, "file", "x");
		next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	put(at, "last", "x");
}

struct seen {
	struct strbuf text;
	size_t n, deepest;
	bool saw_last;
	const char *skip;
};

static enum fs_visit
visit(void *ctx, const struct fs_entry *en)
{
	struct seen *s = ctx;
	size_t n = strlen(en->path);
	struct stat st;

	s->n++;
	if (n > s->deepest)
		s->deepest = n;
	if (!strcmp(en->name, "last"))
		s->saw_last = !fstatat(en->parent, en->name, &st, AT_SYMLINK_NOFOLLOW) &&
			      st.st_ino == en->st->st_ino;
	if (n < 100)
		strbuf_addf(&s->text, "%s%c ", en->path, S_ISDIR(en->st->st_mode) ? '/' : '.');
	if (s->skip && !strcmp(en->path, s->skip))
		return FS_VISIT_SKIP;
	if (!strcmp(en->name, "stop")) {
		errno = ECANCELED;
		return FS_VISIT_STOP;
	}
	return FS_VISIT_CONTINUE;
}

static void
test_walk(void)
{
	struct seen s = {.text = STRBUF_INIT};

	fs_mkdirs(top, "w/b/c");
	put(top, "w/b-", "");
	put(top, "w/b/c/x", "");
	put(top, "w/B", "");
	ok(!symlinkat("b", top, "w/z"), "a tree with a link");
	ok_int(fs_walk(top, "w", visit, &s), 0, "a walk");
	ok_str(s.text.buf, "B. b/ b/c/ b/c/x. b-. z. ", "in byte order, no link followed");
	strbuf_reset(&s.text);
	s.skip = "b";
	ok_int(fs_walk(top, "w", visit, &s), 0, "a walk that skips");
	ok_str(s.text.buf, "B. b/ b-. z. ", "what it was told to");
	put(top, "w/stop", "");
	ok(fs_walk(top, "w", visit, &s) && errno == ECANCELED, "a visitor ends the walk");
	ok(fs_walk(top, "w/none", visit, &s) && errno == ENOENT, "a start that is not there");
	ok(fs_walk(top, "w/z", visit, &s) && errno == ELOOP, "a start that is a link");
	fs_remove_tree(top, "w");
	strbuf_release(&s.text);
}

static void
test_deep(void)
{
	enum {
		DEPTH = 20000
	};
	struct seen s = {.text = STRBUF_INIT};
	struct rlimit old, few;

	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){64, old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	make_deep(DEPTH);
	ok_int(fs_walk(top, "d", visit, &s), 0, "walks a deep tree");
	ok_int((long long)s.n, 2LL * DEPTH - 1, "sees all of it");
	ok(s.saw_last, "down to the last file");
	ok(s.deepest > 2u * DEPTH - 10, "with its whole path");
	ok_int(fs_remove_tree(top, "d"), 0, "removes a deep tree");
	ok(!exists(top, "d"), "all of it");
	unlinkat(top, "file", 0);
	setrlimit(RLIMIT_NOFILE, &old);
	strbuf_release(&s.text);
}

static void
test_wide(void)
{
	char name[NAME_MAX + 1];
	int made = 0;
	cleanup_close int fd = fs_open_mkdirs(top, "wide/in");

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	for (int i = 0; i < 10000; i++) {
		snprintf(name, 6, "%05d", i);
		name[5] = 'n';
		/* every tenth a directory with something in it */
		if (i % 10) {
			made += !mknodat(fd, name, S_IFREG | 0600, 0);
		} else {
			cleanup_close int sub = -1;

			made += !mkdirat(fd, name, 0700);
			sub = openat(fd, name, O_PATH | O_CLOEXEC);
			put(sub, "x", "");
		}
	}
	ok_int(made, 10000, "10^4 long names");
	ok_int(fs_remove_tree(top, "wide"), 0, "are removed");
	ok(!exists(top, "wide"), "all of them");
}

static int
child_result(pid_t pid)
{
	int st = 0;

	waitpid(pid, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static void
set_mode(const char *path, mode_t mode)
{
	if (fchmodat(top, path, mode, 0))
		diag("chmod %s: %s", path, strerror(errno));
}

/* As an ordinary user, as modes mean nothing to root. */
static void
test_modes(bool fallback)
{
	pid_t pid;

	fs_mkdirs(top, "modes/zero/deeper");
	fs_mkdirs(top, "modes/zero/ro");
	fs_mkdirs(top, "modes/empty");
	put(top, "modes/zero/ro/x", "x");
	put(top, "outside", "x");
	if (symlinkat("../outside", top, "modes/link"))
		diag("link: %s", strerror(errno));
	set_mode("outside", 0400);
	set_mode("modes/zero/ro", 0500);
	set_mode("modes/zero/deeper", 0);
	if (!geteuid())
		for (const char *const *p =
				(const char *const[]){"modes", "modes/zero", "modes/zero/deeper",
					"modes/zero/ro", "modes/zero/ro/x", "modes/empty", NULL};
			*p; p++)
			if (fchownat(top, *p, 65534, 65534, 0))
				diag("chown: %s", strerror(errno));
	set_mode("modes/zero", 0);
	set_mode("modes/empty", 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && (setgid(65534) || setuid(65534)))
			_exit(99);
		prctl(PR_SET_DUMPABLE, 1);
		fs_force_fallback(fallback);
		_exit(fs_remove_tree(top, "modes") ? errno : 0);
	}
	ok_int(child_result(pid), 0, "directories that forbid everything are removed");
	ok(!exists(top, "modes"), "all of them");
	ok(exists(top, "outside"), "and not what a link leads to");
	unlinkat(top, "outside", 0);
}

static void
test_mount(void)
{
	pid_t pid;
	int r;

	fs_mkdirs(top, "src");
	put(top, "src/precious", "x");
	fs_mkdirs(top, "tree/a/mnt");
	pid = fork();
	if (!pid) {
		/* by name: top is a directory of the old mount namespace */
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || chdir(top_name) ||
			mount("src", "tree/a/mnt", NULL, MS_BIND, NULL))
			_exit(77);
		if (!fs_remove_tree(AT_FDCWD, "tree"))
			_exit(1);
		_exit((errno == EXDEV || errno == EBUSY) && exists(top, "src/precious") ? 0 : 2);
	}
	r = child_result(pid);
	if (r == 77)
		skip("removal stays in its mount", "no user namespace");
	else
		ok_int(r, 0, "removal stays in its mount");
	fs_remove_tree(top, "tree");
	fs_remove_tree(top, "src");
}

static void
check_copy(const char *from, size_t at_least)
{
	cleanup_close int in = open(from, O_RDONLY | O_CLOEXEC);
	cleanup_close int out = openat(top, "copy", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cleanup_free char *a = xcalloc(1, 1 << 20), *b = xcalloc(1, 1 << 20);
	ssize_t n, m;

	ok_int(fs_copy_content(in, out), 0, from);
	n = pread(in, a, 1 << 20, 0);
	m = pread(out, b, 1 << 20, 0);
	ok(n == m && n >= (ssize_t)at_least && !memcmp(a, b, (size_t)n), "%zd bytes are the same",
		m);
	unlinkat(top, "copy", 0);
}

/* Holes at the start, in the middle and at the end, at no round places. */
static void
test_sparse(void)
{
	enum {
		SIZE = 5000001
	};
	cleanup_close int in = openat(top, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cleanup_close int out = openat(top, "copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cleanup_free char *a = xcalloc(1, SIZE), *b = xcalloc(1, SIZE);
	struct digest want, got;
	struct stat st;
	uint64_t size;

	memset(a + 1400000, 'x', 300001);
	memset(a + 3000007, 'y', 5);
	if (ftruncate(in, SIZE) || pwrite(in, a + 1400000, 300001, 1400000) != 300001 ||
		pwrite(in, a + 3000007, 5, 3000007) != 5)
		bug("sparse");
	digest_bytes(a, SIZE, &want);
	lseek(in, 0, SEEK_SET);
	ok(!digest_fd(in, &got, &size) && size == SIZE && digest_equal(&want, &got),
		"holes are digested as what they are read as");
	lseek(in, 1500000, SEEK_SET);
	digest_bytes(a + 1500000, SIZE - 1500000, &want);
	ok(!digest_fd(in, &got, &size) && size == SIZE - 1500000 && digest_equal(&want, &got),
		"from the middle, too");
	ok(!fs_copy_content(in, out) && pread(out, b, SIZE, 0) == SIZE && !memcmp(a, b, SIZE),
		"and copied so");
	ok(!fstat(out, &st) && st.st_size == SIZE && st.st_blocks < SIZE / 512 / 2,
		"into holes (%lld blocks)", (long long)st.st_blocks);
	unlinkat(top, "sparse", 0);
	unlinkat(top, "copy", 0);
}

static void
test_stop(void)
{
	cleanup_close int fd = openat(top, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct digest d;
	sigset_t set, old;
	int sig;

	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	ok(!stop_is_asked(), "nobody asks for a stop");
	ok(!digest_fd(fd, &d, NULL), "a file is digested");
	raise(SIGINT);
	ok(stop_is_asked(), "a blocked signal asks for it");
	ok(digest_fd(fd, &d, NULL) && errno == ECANCELED, "and nothing is digested any more");
	sigwait(&set, &sig);
	ok(sig == SIGINT && !stop_is_asked(), "until it was taken");
	sigprocmask(SIG_SETMASK, &old, NULL);
	unlinkat(top, "f", 0);
}

static void
test_files(void)
{
	cleanup_free char *big = xmalloc(700001), *path = NULL;
	char name[NAME_MAX + 1];
	struct stat st;
	size_t n = 0;
	cleanup_close int fd = -1;
	cleanup_dir DIR *d = NULL;

	memset(big, 'q', 700000);
	big[700000] = '\0';
	put(top, "big", big);
	path = xasprintf("/proc/self/fd/%d/big", top);
	check_copy(path, 700000);
	check_copy("/proc/filesystems", 20);
	check_copy("/dev/null", 0);
	unlinkat(top, "big", 0);

	memset(name, 'r', NAME_MAX);
	name[NAME_MAX] = '\0';
	ok_int(fs_replace_file(top, name, "one", 3, 0644), 0, "a file with the longest name");
	ok_int(fs_replace_file(top, name, "two!", 4, 0600), 0, "is replaced");
	ok(!fstatat(top, name, &st, 0) && st.st_size == 4 && (st.st_mode & 0777) == 0600,
		"by the new");
	fs_mkdirs(top, "isdir/x");
	ok_int(fs_replace_file(top, "isdir", "x", 1, 0644), -1, "a directory is not");
	fs_remove_tree(top, "isdir");
	unlinkat(top, name, 0);
	fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fdopendir(take_fd(&fd));
	for (struct dirent *en; (en = readdir(d));)
		n += !strncmp(en->d_name, ".vx-tmp-", 8);
	ok_int((long long)n, 0, "and no temporary file is left");
}

/* Runs a test in a directory of its own; it leaves it empty. */
static void
in_directory(const char *dir, void (*test)(void))
{
	cleanup_free char *path = xasprintf("%s/vx-test-fs.XXXXXX", dir);
	int before = top;

	if (!mkdtemp(path)) {
		diag("%s: %s", path, strerror(errno));
		return;
	}
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test();
	close(top);
	ok_int(rmdir(path), 0, "nothing is left");
	top = before;
}

int
main(void)
{
	umask(022);
	if (!mkdtemp(top_name))
		return 99;
	top = open(top_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	set_mode(".", 0777);
	fs_mkdirs(top, "a/b");
	put(top, "a/b/f", "text");
	if (symlinkat("b", top, "a/link") || symlinkat("a/b", top, "link") ||
		symlinkat("nowhere", top, "a/dangling"))
		return 99;
	test_open("openat2");
	fs_force_fallback(true);
	test_open("component by component");
	fs_force_fallback(false);
	test_walk();
	/* a disk takes its time over so many directories */
	in_directory(access("/dev/shm", W_OK) ? "." : "/dev/shm", test_deep);
	test_wide();
	test_modes(false);
	test_modes(true);
	test_mount();
	test_files();
	test_sparse();
	test_stop();
	ok_int(fs_remove_tree(AT_FDCWD, top_name), 0, "the whole test is removed");
	close(top);
	return tap_done();
}

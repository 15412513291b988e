/* SPDX-License-Identifier: MIT */
#include "run/state.h"
#include "run/report.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum {
	LOCK_POLL_MS = 50, /* flock has no event to wait for */
	LOCK_NOTICE_MS = 1000,
};

static int
write_ignore_file(int dirfd, const char *shown, struct err *e)
{
	cleanup_close int fd = openat(
		dirfd, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? 0
				       : err_set(e, ERR_IO, errno, "write %s/.gitignore", shown);
	if (fd_write_all(fd, "*\n", 2)) {
		err_set(e, ERR_IO, errno, "write %s/.gitignore", shown);
		unlinkat(dirfd, ".gitignore", 0);
		return -1;
	}
	return 0;
}

int
state_make(int rootfd, const char *root_path, char **ret_path, struct err *e)
{
	cleanup_free char *path = path_join(root_path, ".vx");
	cleanup_close int fd = -1;

	if (mkdirat(rootfd, ".vx", 0777) && errno != EEXIST)
		return err_set(e, ERR_IO, errno,
			"cannot make %s, where vx keeps its state, also for --dry", path);
	/* No link: what is below is trusted, so the name must be the directory itself. */
	fd = openat(rootfd, ".vx", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "%s is not a directory that vx can use", path);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		return err_set(e, ERR_IO, errno,
			"cannot write in %s, where vx keeps its state, also for --dry", path);
	if (write_ignore_file(fd, path, e))
		return -1;
	*ret_path = take_ptr(&path);
	return 0;
}

/* What the holder wrote, for a message: one line, made safe. */
static void
holder(int fd, struct strbuf *out)
{
	char buf[256];
	ssize_t n = pread(fd, buf, sizeof(buf), 0);

	if (n > 0) {
		const char *nl = memchr(buf, '\n', (size_t)n);

		strbuf_add_sanitised(out, buf, nl ? (size_t)(nl - buf) : (size_t)n);
	} else {
		strbuf_adds(out, "another process");
	}
}

void
state_sweep(const char *state_path)
{
	static const char *const dirs[] = {".", "empty.git"};

	for (size_t i = 0; i < array_len(dirs); i++) {
		cleanup_free char *path = path_join(state_path, dirs[i]);
		cleanup_dir DIR *d = opendir(path);
		struct dirent *de;

		while (d && (de = readdir(d)))
			if (!strncmp(de->d_name, FS_TMP_PREFIX, strlen(FS_TMP_PREFIX)))
				unlinkat(dirfd(d), de->d_name, 0);
	}
}

/* It would wait for itself: whoever holds the lock waits for this process to end. The environment would have said so
 * (run.c), but a command may have cleared that. By then the holder has written who it is. */
static int
refuse_inner(const struct strbuf *holder, struct err *e)
{
	long pid = 0;

	if (sscanf(holder->buf, "pid %ld: ", &pid) != 1 || !proc_is_ancestor((pid_t)pid))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"vx run inside a command of another run in this workspace (%s) would wait for "
		"itself; name what it needs in dependsOn instead",
		holder->buf);
}

int
state_lock(const char *state_path, const char *command, int *ret_fd, int *ret_signal, struct err *e)
{
	cleanup_free char *path = path_join(state_path, "lock");
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint64_t begin = clock_monotonic_ns();
	bool said = false;
	sigset_t stops;

	if (fd < 0)
		return err_set(e, ERR_IO, errno, "open %s", path);
	stop_signals(&stops);
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		struct timespec wait = {.tv_nsec = LOCK_POLL_MS * 1000000};
		int sig;

		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, ERR_IO, errno, "lock %s", path);
		if (!said && clock_monotonic_ns() - begin >= LOCK_NOTICE_MS * 1000000ull) {
			holder(fd, &text);
			if (refuse_inner(&text, e))
				return -1;
			report_warn("waiting for another run in this workspace: %s", text.buf);
			said = true;
		}
		sig = sigtimedwait(&stops, NULL, &wait);
		if (sig > 0) {
			*ret_signal = sig;
			return 0;
		}
	}
	strbuf_reset(&text);
	strbuf_addf(&text, "pid %ld: %s\n", (long)getpid(), command);
	/* Only for a waiter's message: on a full disk prune has to get past this. */
	if ((ftruncate(fd, 0) || pwrite(fd, text.buf, text.len, 0) < 0) && !err_is_no_room(errno))
		return err_set(e, ERR_IO, errno, "write %s", path);
	state_sweep(state_path);
	*ret_fd = take_fd(&fd);
	return 1;
}

void
state_unlock(int fd)
{
	flock(fd, LOCK_UN);
}

bool
state_lock_again(int fd)
{
	return !flock(fd, LOCK_EX | LOCK_NB);
}

/* A cache is told by its index; one that was only begun holds nothing but what vx puts first. */
static bool
is_cache_place(int fd)
{
	static const char *const begun[] = {".", "..", ".gitignore", "blobs", "tmp", "lost+found"};
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	cleanup_dir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *de;
	bool only_begun = true;

	if (!d) {
		fd_close(&copy);
		return true;
	}
	while ((de = readdir(d))) {
		size_t i = 0;

		/* or what was it, set aside as broken */
		if (!strncmp(de->d_name, "index.db", 8))
			return true;
		while (i < array_len(begun) && strcmp(de->d_name, begun[i]) != 0)
			i++;
		only_begun = only_begun && i < array_len(begun);
	}
	return only_begun;
}

int
state_check_cache(int fd, const char *dir, struct err *e)
{
	if (is_cache_place(fd))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"the cache directory %s holds what is no cache of vx: name an empty directory, or "
		"a new one",
		dir);
}

int
state_cache_path(const struct root *root, const char *state_path, const char *setting,
	const char *flag, char **ret, struct err *e)
{
	cleanup_free char *dir = NULL, *cwd = path_join(root->path, root->cwd);
	const char *set = flag ? flag : setting;
	const char *home = getenv("HOME");
	struct stat st;

	if (set && *set == '~' && flag)
		return err_set(e, ERR_USAGE, 0,
			"--cache-dir=%s: ~ is the shell's, which leaves it as it is there: write "
			"--cache-dir \"$HOME/…\"",
			set);
	if (set && *set == '~' && (set[1] != '/' || !home))
		return err_set(e, ERR_CONFIG, 0, "the cache directory \"%s\": %s", set,
			set[1] != '/'
				? "of homes only one's own is known: write ~/…, or the whole path"
				: "HOME is not set: write the whole path");
	if (!set)
		dir = path_join(state_path, "cache");
	else if (*set == '/')
		dir = xstrdup(set);
	else if (*set == '~')
		dir = path_join(home, set + 2);
	else
		dir = path_join(flag ? cwd : root->path, set);
	/* A repository can ship a link there. */
	if (!set && !lstat(dir, &st) && S_ISLNK(st.st_mode))
		return err_set(e, ERR_CONFIG, 0,
			"%s is a link, which vx does not follow: remove it, and name the cache by "
			"cacheDir",
			dir);
	*ret = take_ptr(&dir);
	return 0;
}

int
state_find_cache(const char *dir, char **ret_path, struct err *e)
{
	cleanup_free char *index = path_join(dir, "index.db");

	*ret_path = realpath(dir, NULL);
	if (!*ret_path && errno != ENOENT)
		return err_set(e, ERR_IO, errno, "open the cache directory %s", dir);
	if (!*ret_path)
		*ret_path = xstrdup(dir);
	return !access(index, F_OK);
}

int
state_make_cache(const char *dir, char **ret_path, struct err *e)
{
	cleanup_free char *real = NULL;
	cleanup_strbuf struct strbuf part = STRBUF_INIT;
	cleanup_close int fd = -1;

	for (const char *p = dir; *p;) {
		size_t n = strcspn(p, "/");

		strbuf_add(&part, p, n);
		if (part.len && mkdir(part.buf, 0777) && errno != EEXIST)
			return err_set(e, ERR_IO, errno, "make the cache directory %s", dir);
		p += n;
		if (*p == '/') {
			strbuf_addch(&part, '/');
			p++;
		}
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "open the cache directory %s", dir);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		return err_set(e, ERR_IO, 0,
			"the cache directory %s cannot be written: %s; --cache=local:r only reads "
			"it",
			dir, strerror(errno));
	if (state_check_cache(fd, dir, e))
		return -1;
	/* A full disk is no reason not to run: the next run writes it. */
	if (write_ignore_file(fd, dir, e)) {
		if (!err_is_no_room(e->num))
			return -1;
		err_clear(e);
	}
	real = realpath(dir, NULL);
	if (!real)
		return err_set(e, ERR_IO, errno, "open the cache directory %s", dir);
	*ret_path = take_ptr(&real);
	return 0;
}

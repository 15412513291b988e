/* SPDX-License-Identifier: MIT */
/*
 * What the parts of fileops share: telling a result, and steps that every group takes.
 */
#ifndef TESTS_TOOL_FILEOPS_H
#define TESTS_TOOL_FILEOPS_H

#include "util/base.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The errno is that of the call in the argument, which is evaluated first. */
__attribute__((unused)) static void
told(const char *name, long r)
{
	printf("%s: %s\n", name, r < 0 ? strerrorname_np(errno) : "ok");
}

__attribute__((unused)) static void
claim(const char *name, bool holds)
{
	printf("%s: %s\n", name, holds ? "yes" : "no");
}

__attribute__((format(printf, 2, 3), unused)) static void
value(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

attr_noreturn __attribute__((unused)) static void
die(const char *what)
{
	fprintf(stderr, "fileops: %s: %s\n", what, strerror(errno));
	exit(9);
}

/* Makes or overwrites a file. */
__attribute__((unused)) static int
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
__attribute__((unused)) static int
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
__attribute__((unused)) static const char *
at(int fd)
{
	static char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return strerrorname_np(errno);
	text[n] = 0;
	return text;
}

__attribute__((unused)) static const char *
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

__attribute__((unused)) static struct stat
of(const char *name)
{
	struct stat st;

	if (lstat(name, &st))
		memset(&st, 0, sizeof(st));
	return st;
}

__attribute__((unused)) static bool
same_inode(struct stat a, struct stat b)
{
	return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

__attribute__((unused)) static bool
later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

__attribute__((unused)) static bool
equal(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Opens, or ends the program: what comes after it would tell nothing. */
__attribute__((unused)) static int
must_open(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		die(name);
	return fd;
}

__attribute__((unused)) static void
must_put(const char *name, const char *text)
{
	if (put(name, text))
		die(name);
}

__attribute__((unused)) static void
must_mkdir(const char *name)
{
	if (mkdir(name, 0755))
		die(name);
}

/* 0 or the errno of what a child does: for locks, which belong to a process. */
__attribute__((unused)) static int
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

__attribute__((unused)) static void
told_child(const char *name, int error)
{
	printf("%s: %s\n", name, error ? strerrorname_np(error) : "ok");
}

__attribute__((unused)) static int
rename_flags(const char *from, const char *to, unsigned flags)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* The groups: what was there before the command started, made in an empty directory, and what is done to it. */

void make_open(void);
void run_open(void);
void make_rename(void);
void run_rename(void);
void make_links(void);
void run_links(void);
void make_content(void);
void run_content(void);
void make_locks(void);
void run_locks(void);
void make_dirs(void);
void run_dirs(void);
void make_attributes(void);
void run_attributes(void);
void make_special(void);
void run_special(void);
void make_watch(void);
void run_watch(void);
void make_names(void);
void run_names(void);

#endif

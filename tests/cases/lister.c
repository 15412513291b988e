/* SPDX-License-Identifier: MIT */
/*
 * lister SCENARIO: lists d and uses names in it, in one of the ways that a rule such as "names
 * asked for during a listing are no access" would get wrong. d holds v0..v3, granted, and h0..h199,
 * hidden. Which hidden names a scenario uses is what the report must have: tests/cases/listings.sh.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	HIDDEN = 200,
	CROWD = 4,
	LISTINGS = 50
};

static void
complain(const char *what)
{
	printf("lister: %s: %s\n", what, strerror(errno));
	exit(2);
}

static DIR *
open_d(void)
{
	DIR *d = opendir("d");

	if (!d)
		complain("opendir d");
	return d;
}

/* Every name that is listed is one of v0..v3. */
static void
list(DIR *d)
{
	const struct dirent *de;
	int n = 0;

	while ((de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		if (de->d_name[0] != 'v')
			complain("a hidden name was listed");
		n++;
	}
	if (n > 4)
		complain("too many names");
}

/* The hidden name must not open. */
static void
touch_hidden(int dirfd, int i)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "h%d", i);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		complain("a hidden name was opened");
}

static void
stat_hidden(int i)
{
	char path[16];
	struct stat st;

	snprintf(path, sizeof(path), "d/h%d", i);
	if (!stat(path, &st))
		complain("a hidden name was found");
}

static void *
lists(void *arg)
{
	(void)arg;
	for (int i = 0; i < LISTINGS; i++) {
		DIR *d = open_d();

		list(d);
		closedir(d);
	}
	return NULL;
}

static void *
stats_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < HIDDEN; i++)
		stat_hidden(i);
	return NULL;
}

static void *
rewinds(void *arg)
{
	DIR *d = open_d();

	list(d);
	touch_hidden(dirfd(d), *(const int *)arg);
	rewinddir(d);
	list(d);
	closedir(d);
	return NULL;
}

static void
start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	errno = pthread_create(t, NULL, fn, arg);
	if (errno)
		complain("pthread_create");
}

static void
list_and_stat(void)
{
	DIR *d = open_d();
	const struct dirent *de;
	struct stat st;

	while ((de = readdir(d)))
		if (fstatat(dirfd(d), de->d_name, &st, 0))
			complain(de->d_name);
	closedir(d);
}

static void
list_then_open(void)
{
	DIR *d = open_d();

	list(d);
	for (int i = 0; i < 5; i++)
		touch_hidden(dirfd(d), i);
	closedir(d);
}

static void
list_again_and_again(void)
{
	DIR *d = open_d();

	for (int i = 0; i < 5; i++) {
		list(d);
		rewinddir(d);
	}
	touch_hidden(dirfd(d), 1);
	rewinddir(d);
	list(d);
	closedir(d);
}

/* Room for one entry or two: several getdents64 calls, with accesses in between. */
static void
small_buffer(void)
{
	int fd = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buf[64];
	long n;

	if (fd < 0)
		complain("open d");
	for (int i = 0; (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0; i++)
		if (i < 3)
			touch_hidden(fd, i);
	if (n < 0)
		complain("getdents64");
	touch_hidden(fd, 10);
	close(fd);
}

static void
rewind_in_threads(void)
{
	pthread_t t[8];
	int names[8];

	for (int i = 0; i < 8; i++) {
		names[i] = i + 1;
		start(&t[i], rewinds, &names[i]);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

static void
list_beside_access(void)
{
	pthread_t a, b;

	start(&a, lists, NULL);
	start(&b, stats_all, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static void
crowd(void)
{
	pthread_t t[2 * CROWD];

	for (int i = 0; i < 2 * CROWD; i++)
		start(&t[i], i & 1 ? lists : stats_all, NULL);
	for (int i = 0; i < 2 * CROWD; i++)
		pthread_join(t[i], NULL);
}

static void
fork_after_list(void)
{
	DIR *d = open_d();
	int status;
	pid_t pid;

	list(d);
	pid = fork();
	if (pid < 0)
		complain("fork");
	if (!pid) {
		touch_hidden(dirfd(d), 3);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		complain("the child");
	touch_hidden(dirfd(d), 4);
	closedir(d);
}

static void
seek(void)
{
	DIR *d = open_d();
	long pos = 0;

	for (int i = 0; i < 3 && readdir(d); i++)
		pos = telldir(d);
	touch_hidden(dirfd(d), 7);
	list(d);
	seekdir(d, pos);
	list(d);
	touch_hidden(dirfd(d), 8);
	closedir(d);
}

static void
open_list_open(void)
{
	int fd = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (fd < 0)
		complain("open d");
	touch_hidden(fd, 1);
	d = open_d();
	list(d);
	closedir(d);
	touch_hidden(fd, 1);
	touch_hidden(fd, 2);
	close(fd);
}

/* A fresh name in each round, by turns over an open handle and by path after it was closed. */
static void
rounds(void)
{
	for (int i = 0; i < HIDDEN; i++) {
		DIR *d = open_d();

		list(d);
		if (i & 1)
			touch_hidden(dirfd(d), i);
		closedir(d);
		if (!(i & 1))
			stat_hidden(i);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"list-and-stat", list_and_stat},
	{"list-then-open", list_then_open},
	{"list-again-and-again", list_again_and_again},
	{"small-buffer", small_buffer},
	{"rewind-in-threads", rewind_in_threads},
	{"list-beside-access", list_beside_access},
	{"crowd", crowd},
	{"fork-after-list", fork_after_list},
	{"seek", seek},
	{"open-list-open", open_list_open},
	{"rounds", rounds},
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!strcmp(argv[1], scenarios[i].name)) {
			scenarios[i].run();
			return 0;
		}
	}
	printf("lister: which scenario?\n");
	return 2;
}

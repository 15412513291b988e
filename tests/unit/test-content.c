/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/content.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SIZE = 3 * CONTENT_PIECE + 5,
	GROWN_MAX = 100
};

static char piece[CONTENT_PIECE], buf[CONTENT_PIECE];

static int
new_file(void)
{
	char path[] = "/var/tmp/vx-test-content-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0 || unlink(path))
		bug("a file of its own");
	return fd;
}

static void
append(int fd, size_t n)
{
	struct stat st;

	if (fstat(fd, &st) || pwrite(fd, piece, n, st.st_size) != (ssize_t)n)
		bug("append");
}

/* How much is read of it while each step makes it longer by `by` bytes, or by a hole. */
static long long
read_growing(int fd, size_t by, bool hole)
{
	struct content c;
	long long size = 0;
	struct stat st;
	bool is_hole;
	ssize_t n;

	content_init(&c, fd);
	for (int grown = 0; grown < GROWN_MAX; grown++) {
		if (!hole)
			append(fd, by);
		else if (fstat(fd, &st) || ftruncate(fd, st.st_size + (off_t)by))
			bug("make longer");
		n = content_next(&c, buf, &is_hole);
		if (n < 0)
			return -1;
		if (!n)
			return size;
		size += n;
	}
	return size;
}

static void
check_growing(int fd, size_t by, bool hole, long long want, const char *what)
{
	long long size = read_growing(fd, by, hole);

	ok(size == want, "%s that grows by %s: %lld read", what, hole ? "holes" : "data", size);
	close(fd);
}

static void
test_growing(bool hole)
{
	int fd = new_file();

	check_growing(fd, CONTENT_PIECE, hole, 0, "an empty file");
	fd = new_file();
	for (int i = 0; i < 3; i++)
		append(fd, CONTENT_PIECE);
	append(fd, 5);
	check_growing(fd, CONTENT_PIECE, hole, SIZE, "a file");
	fd = new_file();
	if (ftruncate(fd, SIZE))
		bug("a hole");
	check_growing(fd, CONTENT_PIECE, hole, SIZE, "a hole");
	fd = new_file();
	append(fd, CONTENT_PIECE);
	lseek(fd, 7, SEEK_SET);
	check_growing(fd, 1, hole, CONTENT_PIECE - 7, "what is left of a file");
}

/* What programs serve is longer than stat says. */
static void
test_of_no_size(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC), ends[2];
	struct content c;
	bool hole;

	content_init(&c, fd);
	ok(content_next(&c, buf, &hole) > 0, "a file that is longer than stat says");
	ok_int(content_next(&c, buf, &hole), 0, "to its end");
	close(fd);
	if (pipe2(ends, O_CLOEXEC) || write(ends[1], "abc", 3) != 3)
		bug("a pipe");
	close(ends[1]);
	content_init(&c, ends[0]);
	ok_int(content_next(&c, buf, &hole), 3, "a pipe");
	ok_int(content_next(&c, buf, &hole), 0, "to its end");
	close(ends[0]);
}

int
main(void)
{
	memset(piece, 'x', sizeof(piece));
	test_growing(false);
	test_growing(true);
	test_of_no_size();
	return tap_done();
}

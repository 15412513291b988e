/* SPDX-License-Identifier: MIT */
/*
 * A workspace in a temporary directory, for the tests of the layers that read one. Text is written
 * with ' for ", so that JSON stays readable in C.
 */
#ifndef TESTS_UNIT_WS_H
#define TESTS_UNIT_WS_H

#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char ws_path[64];
static int ws_fd = -1;

static inline void
ws_begin(void)
{
	snprintf(ws_path, sizeof(ws_path), "/tmp/vx-test-XXXXXX");
	if (!mkdtemp(ws_path))
		bug("mkdtemp: %s", strerror(errno));
	ws_fd = open(ws_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void
ws_end(void)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	close(ws_fd);
	if (fs_remove_tree(tmp, path_base(ws_path)) < 0)
		diag("%s was not removed: %s", ws_path, strerror(errno));
	close(tmp);
}

static inline void
ws_mkdir_for(const char *path)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

	if (*dir && fs_mkdirs(ws_fd, dir) < 0)
		bug("mkdir %s: %s", dir, strerror(errno));
}

static inline void
ws_write(const char *path, const char *text)
{
	size_t n = strlen(text);
	cleanup_free char *copy = xmemdupz(text, n);
	cleanup_close int fd = -1;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	ws_mkdir_for(path);
	fd = openat(ws_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, copy, n) != (ssize_t)n)
		bug("write %s: %s", path, strerror(errno));
}

static inline void
ws_remove(const char *path)
{
	if (unlinkat(ws_fd, path, 0) < 0)
		bug("unlink %s: %s", path, strerror(errno));
}

static inline void
ws_link(const char *path, const char *target)
{
	ws_mkdir_for(path);
	if (symlinkat(target, ws_fd, path) < 0)
		bug("symlink %s: %s", path, strerror(errno));
}

#endif

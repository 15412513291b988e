/* SPDX-License-Identifier: MIT */
/*
 * A small workspace on disk and rules for it, for the tests of what asks the host.
 */
#ifndef TESTS_UNIT_TREE_H
#define TESTS_UNIT_TREE_H

#include "proto/ruleset.h"
#include "tests/tap.h"
#include "util/fs.h"
#include <errno.h>
#include <unistd.h>

struct tree {
	char path[64];
	int parent; /* /tmp or $TMPDIR, for removal */
	int fd;
	struct spec spec;
	struct ruleset *rules;
};

static inline void
tree_die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline void
tree_make(struct tree *t)
{
	*t = (struct tree){.path = "/tmp/vx-test-XXXXXX", .spec = SPEC_INIT};
	if (!mkdtemp(t->path))
		tree_die("mkdtemp");
	t->parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	t->fd = open(t->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	t->spec.workspace = strdup(t->path);
}

/* "dir/" makes a directory, "name" a file, "name>target" a link; ancestors are made. */
static inline void
tree_add(struct tree *t, const char *what)
{
	char path[256];
	char *target, *slash;
	size_t n;
	int fd;

	snprintf(path, sizeof(path), "%s", what);
	target = strchr(path, '>');
	if (target)
		*target++ = '\0';
	n = strlen(path);
	slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
		if (fs_mkdirs(t->fd, path))
			tree_die(path);
		*slash = '/';
	}
	if (path[n - 1] == '/')
		return;
	if (target) {
		if (symlinkat(target, t->fd, path))
			tree_die(path);
		return;
	}
	fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		tree_die(path);
	if (write(fd, what, strlen(what)) < 0)
		tree_die(path);
	close(fd);
}

static inline void
tree_compile(struct tree *t)
{
	struct err e = ERR_INIT;

	if (ruleset_new(t->spec.rules, t->spec.nrules, t->spec.cwd, &t->rules, &e))
		tree_die(e.text);
}

static inline void
tree_remove(struct tree *t)
{
	ruleset_free(t->rules);
	spec_release(&t->spec);
	close(t->fd);
	if (fs_remove_tree(t->parent, strrchr(t->path, '/') + 1))
		tree_die("remove the tree");
	close(t->parent);
}

#endif

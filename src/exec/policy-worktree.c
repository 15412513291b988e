/* SPDX-License-Identifier: MIT */
/*
 * A .git that is a file: that of a linked worktree or of a submodule. Who grants it has granted a line of text, and
 * what git writes goes to the repository that it leads to. This is advice alone: nothing is granted by it.
 */
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "proto/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first line of a regular file, a path from `base`; NULL: it has none, or is none. Takes fd. The file may be
 * anybody's: it is not waited for, and no more is read than a path has. */
static char *
read_path(int fd, const char *prefix, const char *base)
{
	cleanup_close int own = fd;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_free char *path = NULL, *joined = NULL;
	size_t n = strlen(prefix), len;
	struct stat st;

	if (own < 0 || fstat(own, &st) || !S_ISREG(st.st_mode) ||
		fd_read_all(own, &text, PATH_MAX) || strncmp(text.buf, prefix, n) != 0)
		return NULL;
	len = strcspn(text.buf + n, "\r\n");
	if (!len)
		return NULL;
	path = xmemdupz(text.buf + n, len);
	if (*path == '/')
		return path_normalise(path);
	joined = path_join(base, path);
	return path_normalise(joined);
}

static char *
read_file(const char *dir, const char *name)
{
	cleanup_free char *path = path_join(dir, name);

	return read_path(open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), "", dir);
}

/*
 * Canonical: the repository that `file`, a .git, leads to by `gitdir`. NULL: none that the user has made for it.
 * What is told here the user may grant, and whoever wrote that file could ask for anything: so a worktree is one
 * that its repository knows, as git itself has it, and a submodule has its repository in the workspace.
 */
static char *
find_repository(const struct policy *p, const char *file, const char *gitdir)
{
	cleanup_free char *common = read_file(gitdir, "commondir");
	cleanup_free char *back = read_file(gitdir, "gitdir");
	cleanup_free char *real = realpath(common ? common : gitdir, NULL);
	cleanup_free char *real_back = back ? realpath(back, NULL) : NULL;
	cleanup_free char *real_file = realpath(file, NULL);
	cleanup_close int fd = real ? open(real, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0 || !never_is_repo(never_repo_bits_at(fd, "")))
		return NULL;
	if (common ? !real_back || !real_file || strcmp(real_back, real_file) != 0
		   : !path_is_within(real, p->w->path))
		return NULL;
	return take_ptr(&real);
}

static bool
is_written(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->nconfig; i++) {
		cleanup_free char *full = NULL;

		if (p->rules[i].kind != SPEC_WRITE || p->rules[i].is_glob)
			continue;
		full = *p->rules[i].path == '/' ? xstrdup(p->rules[i].path)
						: path_join(p->w->path, p->rules[i].path);
		if (path_is_within(path, full))
			return true;
	}
	return false;
}

static void
note_one(const struct policy *p, const char *path, struct strvec *ret)
{
	cleanup_free char *full = *path == '/' ? xstrdup(path) : path_join(p->w->path, path);
	cleanup_free char *above = xmemdupz(full, path_parent_len(full));
	cleanup_free char *gitdir = NULL, *real = NULL, *grant = NULL;
	cleanup_strbuf struct strbuf note = STRBUF_INIT;
	int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;

	gitdir = read_path(
		*path == '/' ? open(path, flags) : fs_open_beneath(p->w->rootfd, path, flags, 0),
		"gitdir: ", above);
	if (!gitdir)
		return;
	real = find_repository(p, full, gitdir);
	if (!real || is_written(p, real))
		return;
	grant = policy_grant_text(
		p, true, path_is_within(real, p->w->path) ? path_below(real, p->w->path) : real);
	strbuf_add_sanitised(&note, path, strlen(path));
	strbuf_adds(&note, ", granted for writing, is a file that leads to the repository ");
	strbuf_add_sanitised(&note, real, strlen(real));
	strbuf_adds(&note, ", which is not: a commit made in the sandbox fails, or is lost with "
			   "it; to keep it: ");
	strbuf_add_sanitised(&note, grant, strlen(grant));
	strvec_push(ret, note.buf);
}

void
policy_note_worktrees(const struct policy *p, struct strvec *ret)
{
	for (size_t i = 0; i < p->nconfig; i++) {
		const struct spec_rule *r = &p->rules[i];
		const char *base = path_base(r->path);

		if (r->kind == SPEC_WRITE && !r->is_glob && never_is_git(base, strlen(base)))
			note_one(p, r->path, ret);
	}
}

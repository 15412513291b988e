/* SPDX-License-Identifier: MIT */
#include "run/fingerprint.h"
#include "cache/filehash.h"
#include "cache/key.h"
#include "config/json.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* What each leads to, wherever, as key_workspace reads it. */
static struct stat *
look_behind(int rootfd, const struct strvec *files)
{
	struct stat *v = xcalloc(files->n, sizeof(*v));

	for (size_t i = 0; i < files->n; i++)
		if (fstatat(rootfd, files->v[i], &v[i], AT_SYMLINK_NOFOLLOW) ||
			!S_ISLNK(v[i].st_mode) || fstatat(rootfd, files->v[i], &v[i], 0))
			v[i] = (struct stat){0};
	return v;
}

static void
look(struct fingerprint *f, int rootfd)
{
	moment_init(&f->seen);
	moment_take(&f->seen, rootfd, (const char *const *)f->files.v, f->files.n, NULL);
	f->behind = look_behind(rootfd, &f->files);
}

static void
forget_look(struct fingerprint *f)
{
	moment_release(&f->seen);
	cleanup_free_p(&f->behind);
}

/* A link on the way could lead elsewhere the next time, and its content would be another's to declare. */
static int
check_patch(int rootfd, const char *path, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	struct stat st;

	if (!fs_stat_beneath(rootfd, path, &st) || errno != ELOOP)
		return 0;
	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(e, ERR_CONFIG, 0,
		"bun.lock: the patch %s lies behind a link, which no key follows: have "
		"patchedDependencies name it by its own path",
		name.buf);
}

static int
add_patches(int rootfd, const struct json *patches, struct strvec *files, struct err *e)
{
	cleanup_strvec struct strvec found = STRVEC_INIT;

	for (size_t i = 0; i < json_object_size(patches); i++) {
		const char *path = json_c_string(&patches->items[i]);

		/* what it would be outside of the workspace is no path of a key */
		if (!path || !*path || !path_is_normal(path) || strvec_contains(&found, path))
			continue;
		if (check_patch(rootfd, path, e))
			return -1;
		strvec_push(&found, path);
	}
	strvec_sort(&found);
	for (size_t i = 0; i < found.n; i++)
		strvec_push(files, found.v[i]);
	return 0;
}

/* bun applies these patches when it installs, and its lock has their names alone. (Those of pnpm and yarn
 * have digests.) */
static int
find_patches(int rootfd, struct strvec *files, struct err *e)
{
	static const char field[] = "\"patchedDependencies\"";
	cleanup_close int fd =
		openat(rootfd, "bun.lock", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_doc doc;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (fd_read_all(fd, &text, JSON_FILE_MAX))
		return err_set(e, ERR_IO, errno, "read bun.lock");
	if (!memmem(text.buf, text.len, field, sizeof(field) - 1))
		return 0;
	if (json_parse(text.buf, text.len, "bun.lock", JSON_OURS, &doc, e))
		return -1;
	r = add_patches(rootfd, json_object_get(doc.root, "patchedDependencies"), files, e);
	json_doc_release(&doc);
	return r;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int
digest_of(const struct fingerprint *f, struct filehash *fh, int rootfd, struct digest *ret,
	struct err *e)
{
	return key_workspace(fh, rootfd, (const char *const *)f->files.v, f->files.n, ret, e);
}

int
fingerprint_files(int rootfd, struct strvec *ret, struct err *e)
{
	for (size_t i = 0; key_fingerprint_files[i]; i++)
		strvec_push(ret, key_fingerprint_files[i]);
	return find_patches(rootfd, ret, e);
}

int
fingerprint_take(struct fingerprint *f, struct filehash *fh, int rootfd, struct err *e)
{
	*f = (struct fingerprint){.files = STRVEC_INIT};
	if (fingerprint_files(rootfd, &f->files, e))
		return -1;
	/* First: what changes between the two looks has changed since. */
	look(f, rootfd);
	return digest_of(f, fh, rootfd, &f->digest, e);
}

void
fingerprint_release(struct fingerprint *f)
{
	forget_look(f);
	free(f->written);
	strvec_release(&f->files);
	*f = (struct fingerprint){0};
}

/* Borrowed; NULL: none of them was. */
static const char *
find_written(const struct fingerprint *f, int rootfd)
{
	const char *path = moment_find_change(&f->seen, rootfd);
	cleanup_free struct stat *now = path ? NULL : look_behind(rootfd, &f->files);

	for (size_t i = 0; i < f->files.n && !path; i++)
		if (!is_same(&f->behind[i], &now[i]))
			path = f->files.v[i];
	return path;
}

int
fingerprint_holds(
	struct fingerprint *f, struct filehash *fh, int rootfd, bool by_task, struct err *e)
{
	const char *path;
	struct digest d;

	if (f->moved)
		return 0;
	path = find_written(f, rootfd);
	if (!path)
		return 1;
	f->nwrites += !by_task;
	free(f->written);
	f->written = xstrdup(path);
	forget_look(f);
	look(f, rootfd);
	f->moved = true; /* also when that cannot be told: the next look will find no write */
	if (digest_of(f, fh, rootfd, &d, e))
		return -1;
	f->moved = !digest_equal(&f->digest, &d);
	return !f->moved;
}

/* A grant outside of the workspace as it is spelled, above the root or, by its whole path, in it. */
static bool
reaches_root(const char *grant, const char *root_path)
{
	const char *home = getenv("HOME");
	cleanup_free char *path =
		*grant == '~' && home ? xasprintf("%s%s", home, grant + 1) : xstrdup(grant);

	return path_is_within(root_path, path) || path_is_within(path, root_path);
}

static bool
declares(const struct node *n, const char *name)
{
	return n->def->cache && globset_match(&n->def->cache->outputs, name);
}

static bool
may_write(const struct node *n, const char *name, const char *root_path)
{
	const struct sandboxdef *s = n->def->sandbox;

	/* derived grants: its outputs */
	if (!s)
		return declares(n, name);
	for (size_t i = 0; i < s->nallow_write; i++) {
		const struct grant *g = &s->allow_write[i];

		if (g->glob ? glob_match(g->glob, name) : reaches_root(g->absolute, root_path))
			return true;
	}
	return false;
}

bool
fingerprint_may_move(
	const struct fingerprint *f, const struct node *n, bool sandboxed, const char *root_path)
{
	if (node_is_idle(n))
		return false;
	if (!sandboxed && !*n->project->dir)
		return true;
	for (size_t i = 0; i < f->files.n; i++)
		if (sandboxed ? may_write(n, f->files.v[i], root_path) : declares(n, f->files.v[i]))
			return true;
	return false;
}

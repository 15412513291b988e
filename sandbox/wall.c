/* SPDX-License-Identifier: MIT */
#include "sandbox/wall.h"
#include "sandbox/host.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <fcntl.h>

static const char WHITEOUT[] = "wh";

struct wall {
	int root; /* borrowed */
	int host; /* borrowed */
	int tree;
	const struct ruleset *rules;
	struct htab filled;
};

struct wall *
wall_new(int rootfd, const char *subdir, int hostfd, const struct ruleset *rules, struct err *e)
{
	cleanup_close int tree = -1;
	struct wall *w;

	if (mkdirat(rootfd, subdir, 0755) && errno != EEXIST) {
		err_set(e, ERR_SANDBOX, errno, "make the wall's directory");
		return NULL;
	}
	/* Anyone may make this one device (Linux 5.8); a link to it is cheaper than another. */
	if (mknodat(rootfd, WHITEOUT, S_IFCHR, 0)) {
		err_set(e, ERR_SANDBOX, errno, "make a whiteout");
		return NULL;
	}
	tree = openat(rootfd, subdir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0) {
		err_set(e, ERR_SANDBOX, errno, "open the wall's directory");
		return NULL;
	}
	w = xcalloc(1, sizeof(*w));
	w->root = rootfd;
	w->host = hostfd;
	w->tree = take_fd(&tree);
	w->rules = rules;
	htab_init(&w->filled);
	return w;
}

void
wall_free(struct wall *w)
{
	if (!w)
		return;
	fd_close(&w->tree);
	htab_release(&w->filled);
	free(w);
}

int
wall_mkdir(struct wall *w, const char *path)
{
	struct stat st;

	if (!*path || !mkdirat(w->tree, path, 0755))
		return 0;
	if (errno != EEXIST || fstatat(w->tree, path, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (S_ISDIR(st.st_mode))
		return 0;
	return unlinkat(w->tree, path, 0) || mkdirat(w->tree, path, 0755) ? -1 : 0;
}

static int
hide_name(struct wall *w, int dir, const char *name)
{
	if (!linkat(w->root, WHITEOUT, dir, name, 0) || errno == EEXIST)
		return 0;
	return -1;
}

/* The names of the host's directory d, at `path`. Those to traverse go to ret_dirs, unless that is NULL. */
static int
fill_from(struct wall *w, DIR *d, int dir, const char *path, struct strvec *ret_dirs)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	const char *name;
	enum host_kind kind;
	size_t start;
	int got;

	strbuf_adds(&sb, path);
	start = sb.len;
	while ((got = host_readdir(d, &name, &kind)) == 1) {
		strbuf_truncate(&sb, start);
		path_append(&sb, name);
		switch (ruleset_verdict(w->rules, sb.buf, kind)) {
		case VERDICT_HIDE:
		case VERDICT_QUIET:
			if (hide_name(w, dir, name))
				return -1;
			break;
		case VERDICT_TRAVERSE:
			if (ret_dirs)
				strvec_push(ret_dirs, sb.buf);
			break;
		case VERDICT_PASS:
			break;
		}
	}
	return got;
}

static int
fill(struct wall *w, const char *path, struct strvec *ret_dirs)
{
	cleanup_close int dir = -1;
	cleanup_dir DIR *d = NULL;

	if (htab_get(&w->filled, path))
		return 0;
	dir = *path ? openat(w->tree, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		    : fcntl(w->tree, F_DUPFD_CLOEXEC, 3);
	if (dir < 0)
		return -1;
	d = host_opendir(w->host, path);
	if (!d || fill_from(w, d, dir, path, ret_dirs))
		return -1;
	htab_putn_copy(&w->filled, path, strlen(path), w);
	return 0;
}

int
wall_fill(struct wall *w, const char *path)
{
	return fill(w, path, NULL);
}

bool
wall_is_newer(const struct wall *w, const char *path)
{
	struct stat st;

	return htab_getn(&w->filled, path, path_parent_len(path)) &&
	       fstatat(w->tree, path, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

/* As the host's. Last, and from the deepest up: filling needs the rights and changes the time. */
static int
copy_attributes(struct wall *w, const char *path)
{
	enum host_kind kind;
	struct stat st;

	if (host_look(w->host, path, &kind, &st))
		return -1;
	if (kind != HOST_DIR)
		return 0;
	if (!*path)
		path = ".";
	if (fchmodat(w->tree, path, st.st_mode & 07777, 0))
		return -1;
	return utimensat(w->tree, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0);
}

int
wall_fill_all(struct wall *w, struct err *e)
{
	cleanup_strvec struct strvec dirs = STRVEC_INIT;

	strvec_push(&dirs, "");
	for (size_t i = 0; i < dirs.n; i++)
		if (wall_mkdir(w, dirs.v[i]) || fill(w, dirs.v[i], &dirs))
			return err_set(e, ERR_SANDBOX, errno, "hide what is in \"%s\"", dirs.v[i]);
	for (size_t i = dirs.n; i--;)
		if (copy_attributes(w, dirs.v[i]))
			return err_set(e, ERR_SANDBOX, errno, "copy the mode of \"%s\"", dirs.v[i]);
	return 0;
}

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
	int tmpfs; /* borrowed */
	int host;  /* borrowed */
	int tree;
	const char *workspace;
	struct ruleset *rules;
	struct htab filled;
};

struct wall *
wall_new(int tmpfsfd, const char *subdir, int hostfd, const char *workspace, struct ruleset *rules,
	struct err *e)
{
	cleanup_close int tree = -1;
	struct wall *w;

	if (mkdirat(tmpfsfd, subdir, 0755) && errno != EEXIST) {
		err_set(e, ERR_SANDBOX, errno, "make the wall's directory");
		return NULL;
	}
	/* Anyone may make this one device (Linux 5.8); a link to it is cheaper than another. */
	if (mknodat(tmpfsfd, WHITEOUT, S_IFCHR, 0)) {
		err_set(e, ERR_SANDBOX, errno, "make a whiteout");
		return NULL;
	}
	tree = openat(tmpfsfd, subdir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0) {
		err_set(e, ERR_SANDBOX, errno, "open the wall's directory");
		return NULL;
	}
	w = xcalloc(1, sizeof(*w));
	w->tmpfs = tmpfsfd;
	w->host = hostfd;
	w->tree = take_fd(&tree);
	w->workspace = workspace;
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

void
wall_show(struct wall *w, const char *path)
{
	/* Fails where no whiteout is: nothing to take away. */
	if (*path)
		unlinkat(w->tree, path, 0);
}

/* What wall_fill_all wants to know of a directory while it is filled. */
struct found {
	struct strvec *dirs;  /* traverse directories */
	struct strvec *links; /* granted by a rule of their own */
};

static int
hide_name(struct wall *w, int dir, const char *name)
{
	if (!linkat(w->tmpfs, WHITEOUT, dir, name, 0) || errno == EEXIST)
		return 0;
	return -1;
}

static int
fill_from(struct wall *w, DIR *d, int dir, const char *path, struct found *found)
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
			if (dir >= 0 && hide_name(w, dir, name))
				return -1;
			break;
		case VERDICT_TRAVERSE:
			if (found)
				strvec_push(found->dirs, sb.buf);
			break;
		case VERDICT_PASS:
			if (found && kind == HOST_LINK && ruleset_names(w->rules, sb.buf))
				strvec_push(found->links, sb.buf);
			break;
		}
	}
	return got;
}

int
wall_fill(struct wall *w, const char *path)
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
	if (!d || fill_from(w, d, dir, path, NULL))
		return -1;
	htab_putn_copy(&w->filled, path, strlen(path), w);
	return 0;
}

/* All traverse directories, parents first, and the links that rules name. */
static int
walk(struct wall *w, struct strvec *dirs, struct strvec *links)
{
	struct found found = {dirs, links};

	strvec_push(dirs, "");
	for (size_t i = 0; i < dirs->n; i++) {
		cleanup_dir DIR *d = host_opendir(w->host, dirs->v[i]);

		if (!d && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
			continue;
		if (!d || fill_from(w, d, -1, dirs->v[i], &found))
			return -1;
	}
	return 0;
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
	cleanup_strvec struct strvec dirs = STRVEC_INIT, links = STRVEC_INIT;
	cleanup_strvec struct strvec granted = STRVEC_INIT;

	/* A target may be granted only because of its link: the links first, then look again. */
	if (walk(w, &dirs, &links))
		return err_set(e, ERR_SANDBOX, errno, "read the workspace");
	for (size_t i = 0; i < links.n; i++)
		host_grant_target(w->host, w->workspace, w->rules, links.v[i], &granted);
	if (granted.n) {
		strvec_release(&dirs);
		if (walk(w, &dirs, &links))
			return err_set(e, ERR_SANDBOX, errno, "read the workspace");
	}
	for (size_t i = 0; i < dirs.n; i++)
		if (wall_mkdir(w, dirs.v[i]) || wall_fill(w, dirs.v[i]))
			return err_set(e, ERR_SANDBOX, errno, "hide what is in \"%s\"", dirs.v[i]);
	for (size_t i = dirs.n; i--;)
		if (copy_attributes(w, dirs.v[i]))
			return err_set(e, ERR_SANDBOX, errno, "copy the mode of \"%s\"", dirs.v[i]);
	return 0;
}

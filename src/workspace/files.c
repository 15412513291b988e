/* SPDX-License-Identifier: MIT */
#include "workspace/files.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include "workspace/git.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Starting git. */

/* What makes a directory a git directory; git needs no more to read ignore files. */
static int
fill_empty_git_dir(int dirfd)
{
	static const char head[] = "ref: refs/heads/main\n";
	struct stat st;

	if (fs_mkdirs(dirfd, "objects") || fs_mkdirs(dirfd, "refs"))
		return -1;
	if (!fstatat(dirfd, "HEAD", &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	return fs_replace_file(dirfd, "HEAD", head, sizeof(head) - 1, 0644);
}

/* In .vx, else (a workspace that cannot be written) in the directory for temporary files. */
static int
make_empty_git_dir(
	int rootfd, const char *root_path, char **ret, char **ret_temporary, struct err *e)
{
	cleanup_close int dirfd = fs_open_mkdirs(rootfd, ".vx/empty.git");
	const char *tmp = getenv("TMPDIR");
	cleanup_free char *path = NULL;

	if (dirfd >= 0 && !fill_empty_git_dir(dirfd)) {
		*ret = path_join(root_path, ".vx/empty.git");
		return 0;
	}
	fd_close(&dirfd);
	path = path_join(tmp && *tmp == '/' ? tmp : "/tmp", "vx-git-XXXXXX");
	if (!mkdtemp(path))
		return err_set(e, ERR_IO, errno, "make %s", path);
	dirfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0 || fill_empty_git_dir(dirfd)) {
		int num = errno;

		fs_remove_tree(AT_FDCWD, path);
		return err_set(e, ERR_IO, num, "make an empty git directory in %s", path);
	}
	*ret = xstrdup(path);
	*ret_temporary = take_ptr(&path);
	return 0;
}

static void
drop_temporary(struct files_request *rq)
{
	if (rq->temporary)
		fs_remove_tree(AT_FDCWD, rq->temporary);
	free(rq->temporary);
	rq->temporary = NULL;
}

int
files_start(int rootfd, const char *root_path, struct files_request *ret, struct err *e)
{
	struct files_request rq = {0};
	cleanup_free char *git = git_find(root_path), *top = NULL, *git_dir = NULL;

	if (git && !git_find_work_tree(root_path, &top, &git_dir)) {
		top = xstrdup(root_path);
		if (make_empty_git_dir(rootfd, root_path, &git_dir, &rq.temporary, e))
			return -1;
	}
	if (git && git_list_start(git, rootfd, git_dir, top, "", &rq.git, e)) {
		drop_temporary(&rq);
		return err_wrap(e, "list files");
	}
	*ret = rq;
	return 0;
}

/* Reading what it said. */

struct list {
	struct strbuf text; /* paths, each with its NUL */
	size_t *at;         /* offsets, in the order added */
	size_t n, cap;
	size_t nothers;      /* git lists the untracked ones first */
	struct strvec walks; /* nested repositories */
};

static void
list_release(struct list *l)
{
	strbuf_release(&l->text);
	strvec_release(&l->walks);
	cleanup_free_p(&l->at);
}
#define cleanup_list __attribute__((cleanup(list_release)))

static void
list_add(struct list *l, const char *path, size_t n)
{
	GROW(l->at, l->n + 1, l->cap);
	l->at[l->n++] = l->text.len;
	strbuf_add(&l->text, path, n);
	strbuf_addch(&l->text, '\0');
}

bool
files_is_never_listed(const char *path, bool tracked)
{
	return path_find(path, ".vx") || path_find(path, ".git") ||
	       (!tracked && path_find(path, "node_modules"));
}

/* State that came with the repository (results, stamps, unfinished work) was made by who knows whom. */
static bool
is_tracked_state(const struct git_record *rec)
{
	return rec->tracked && !strncmp(rec->path, ".vx", 3) &&
	       (!rec->path[3] || rec->path[3] == '/');
}

static int
refuse_tracked_state(const struct git_record *rec, struct err *e)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, rec->path, rec->len);
	return err_set(e, ERR_CONFIG, 0,
		"git tracks %s, but what is in .vx is this machine's own: git rm -r --cached .vx",
		name.buf);
}

static int
take_listing(struct list *l, const struct strbuf *said, struct err *e)
{
	struct git_record rec;
	size_t at = 0;
	int r;

	while ((r = git_next_record(said, &at, &rec, e)) > 0) {
		if (is_tracked_state(&rec))
			return refuse_tracked_state(&rec, e);
		if (files_is_never_listed(rec.path, rec.tracked))
			continue;
		if (rec.is_repo) {
			strvec_push_take(&l->walks, xmemdupz(rec.path, rec.len));
		} else {
			list_add(l, rec.path, rec.len);
			l->nothers += !rec.tracked;
		}
	}
	return r;
}

static int
list_by_git(struct files_request *rq, struct list *l, struct err *e)
{
	cleanup_strbuf struct strbuf said = STRBUF_INIT;

	return git_list_end(&rq->git, &said, e) || take_listing(l, &said, e) ? -1 : 0;
}

struct walking {
	struct list *l;
	const char *dir;
	struct strbuf path;
};

static enum fs_visit
visit(void *ctx, const struct fs_entry *en)
{
	struct walking *w = ctx;

	if (stop_is_asked_by_now()) {
		errno = ECANCELED;
		return FS_VISIT_STOP;
	}
	if (!strcmp(en->name, ".git") || !strcmp(en->name, ".vx") ||
		!strcmp(en->name, "node_modules"))
		return FS_VISIT_SKIP;
	if (S_ISDIR(en->st->st_mode))
		return FS_VISIT_CONTINUE;
	/* As git: files and links, not what can be neither stored nor read. */
	if (!S_ISREG(en->st->st_mode) && !S_ISLNK(en->st->st_mode))
		return FS_VISIT_CONTINUE;
	strbuf_reset(&w->path);
	strbuf_adds(&w->path, w->dir);
	path_append(&w->path, en->path);
	list_add(w->l, w->path.buf, w->path.len);
	return FS_VISIT_CONTINUE;
}

static int
walk(int rootfd, const char *dir, struct list *l, struct err *e)
{
	struct walking w = {l, dir, STRBUF_INIT};
	int r = fs_walk(rootfd, dir, visit, &w);

	/* A submodule that is not checked out has no directory, or an empty one. */
	if (r && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		r = 0;
	if (r)
		err_set(e, ERR_IO, errno, "list files below %s", *dir ? dir : ".");
	strbuf_release(&w.path);
	return r;
}

/* Sorting: two runs that git has sorted already, and what was walked. */

static int
path_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
sort_unless_sorted(const char **v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(v[i - 1], v[i]) > 0) {
			qsort(v, n, sizeof(*v), path_cmp);
			return;
		}
}

/* a and b are sorted; the result has no path twice. */
static size_t
merge(const char **a, size_t na, const char **b, size_t nb, const char **out)
{
	size_t n = 0;

	while (na || nb) {
		int c = !na ? 1 : !nb ? -1 : strcmp(*a, *b);
		const char *p = c <= 0 ? *a : *b;

		if (c <= 0) {
			a++;
			na--;
		} else {
			b++;
			nb--;
		}
		if (!n || strcmp(out[n - 1], p) != 0)
			out[n++] = p;
	}
	return n;
}

static void
finish_list(struct list *l, struct files *ret)
{
	const char **v = xreallocarray(NULL, l->n + 1, sizeof(*v));

	ret->paths = xreallocarray(NULL, l->n + 1, sizeof(*ret->paths));
	ret->text = strbuf_take(&l->text);
	for (size_t i = 0; i < l->n; i++)
		v[i] = ret->text + l->at[i];
	sort_unless_sorted(v, l->nothers);
	sort_unless_sorted(v + l->nothers, l->n - l->nothers);
	ret->n = merge(v, l->nothers, v + l->nothers, l->n - l->nothers, ret->paths);
	free(v);
}

int
files_finish(struct files_request *rq, int rootfd, struct files *ret, struct err *e)
{
	cleanup_list struct list l = {.text = STRBUF_INIT, .walks = STRVEC_INIT};
	bool no_git = !rq->git.proc.pid;
	int r = no_git ? walk(rootfd, "", &l, e) : list_by_git(rq, &l, e);

	for (size_t i = 0; i < l.walks.n && !r; i++)
		r = walk(rootfd, l.walks.v[i], &l, e);
	drop_temporary(rq);
	if (r)
		return -1;
	*ret = (struct files){.listed_ns = clock_wall_ns(), .no_git = no_git};
	finish_list(&l, ret);
	return 0;
}

void
files_release(struct files *f)
{
	free(f->text);
	free(f->paths);
	*f = (struct files){0};
}

/* Whether the path is not less than dir followed by `after`. */
static bool
is_from(const char *path, const char *dir, size_t len, unsigned char after)
{
	int c = strncmp(path, dir, len);

	return c > 0 || (!c && (unsigned char)path[len] >= after);
}

/* The first path in [lo, hi) that is not less than dir followed by `after` (0: dir itself). */
static size_t
first_from(const struct files *f, size_t lo, size_t hi, const char *dir, size_t len,
	unsigned char after)
{

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (is_from(f->paths[mid], dir, len, after))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

void
files_below(const struct files *f, const char *dir, size_t *ret_from, size_t *ret_to)
{
	size_t len = strlen(dir);

	size_t end = f->n, step = 8;

	*ret_from = first_from(f, 0, f->n, dir, len, 0);
	/* Most directories are small: the end is near. */
	for (size_t at = *ret_from; len && at + step < f->n; at += step, step *= 2)
		if (is_from(f->paths[at + step], dir, len, '/' + 1)) {
			end = at + step;
			break;
		}
	*ret_to = len ? first_from(f, *ret_from, end, dir, len, '/' + 1) : f->n;
}

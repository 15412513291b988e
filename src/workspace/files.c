/* SPDX-License-Identifier: MIT */
#include "workspace/files.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/proc.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
	LISTING_MAX = 1 << 30
};

/* Starting git. */

static bool
is_git_dir(const char *path)
{
	cleanup_free char *head = path_join(path, "HEAD");
	struct stat st;

	/* lstat: HEAD of an old repository is a link to a branch that may not exist yet */
	return !lstat(head, &st);
}

/*
 * The work tree that holds the root, found as git does, but without asking git: with the git directory
 * named, git does not refuse a repository that somebody else owns (root on a user's workspace), and
 * nothing that its config could start is needed for listing. 1, 0 none.
 */
static int
find_work_tree(const char *root_path, char **ret_top, char **ret_git_dir)
{
	cleanup_free char *top = xstrdup(root_path);

	for (;;) {
		cleanup_free char *git = path_join(*top ? top : "/", ".git");
		struct stat st;

		if (!stat(git, &st) &&
			(S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && is_git_dir(git)))) {
			*ret_top = *top ? take_ptr(&top) : xstrdup("/");
			*ret_git_dir = take_ptr(&git);
			return 1;
		}
		if (!*top)
			return 0;
		top[path_parent_len(top)] = '\0';
	}
}

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

/* The user's environment less all that steers git, plus what keeps it still. */
static void
make_env(struct strvec *env, const char *git_dir, const char *top)
{
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "GIT_", 4) != 0)
			strvec_push(env, *v);
	strvec_setenv(env, "GIT_DIR", git_dir);
	strvec_setenv(env, "GIT_WORK_TREE", top);
	strvec_setenv(env, "GIT_OPTIONAL_LOCKS", "0");
	strvec_setenv(env, "GIT_TERMINAL_PROMPT", "0");
	/* A partial clone may want to fetch: its config would choose the program. */
	strvec_setenv(env, "GIT_NO_LAZY_FETCH", "1");
	strvec_setenv(env, "GIT_ALLOW_PROTOCOL", "none");
	strvec_setenv(env, "LC_ALL", "C");
}

static int
start_git(const char *git, int rootfd, const char *git_dir, const char *top,
	struct files_request *rq, struct err *e)
{
	/* -t and -s: a letter says tracked or not, a mode shows submodules. */
	static const char *const args[] = {"git", "--no-optional-locks", "-c",
		"core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
		"core.untrackedCache=false", "ls-files", "-z", "-t", "-s", "--cached", "--others",
		"--exclude-standard", NULL};
	cleanup_strvec struct strvec argv = STRVEC_INIT, env = STRVEC_INIT;
	cleanup_close int out = memfd_create("vx-git", MFD_CLOEXEC);
	cleanup_close int err = memfd_create("vx-git-err", MFD_CLOEXEC);
	/* For a child's directory an O_PATH fd is enough, fchdir takes it. */
	struct proc_fd fds[] = {{out, 1}, {err, 2}};
	struct proc_spec spec = {.file = git, .cwd = rootfd, .fds = fds, .nfds = array_len(fds)};
	struct proc p;

	if (out < 0 || err < 0)
		return err_set(e, ERR_IO, errno, "memfd_create");
	for (size_t i = 0; args[i]; i++)
		strvec_push(&argv, args[i]);
	make_env(&env, git_dir, top);
	spec.argv = strvec_argv(&argv);
	spec.env = strvec_argv(&env);
	if (proc_start(&spec, &p, e))
		return -1;
	rq->pid = p.pid;
	rq->pidfd = p.pidfd;
	rq->out = take_fd(&out);
	rq->err = take_fd(&err);
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
	struct files_request rq = {.pidfd = -1, .out = -1, .err = -1};
	const char *path = getenv("PATH");
	cleanup_free char *git = proc_find("git", path ? path : "/usr/local/bin:/usr/bin:/bin");
	cleanup_free char *top = NULL, *git_dir = NULL;

	if (git && !find_work_tree(root_path, &top, &git_dir)) {
		top = xstrdup(root_path);
		if (make_empty_git_dir(rootfd, root_path, &git_dir, &rq.temporary, e))
			return -1;
	}
	if (git && start_git(git, rootfd, git_dir, top, &rq, e)) {
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

static bool
has_component(const char *path, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = path; (p = strstr(p, name)); p++)
		if ((p == path || p[-1] == '/') && (!p[n] || p[n] == '/'))
			return true;
	return false;
}

static bool
is_never_listed(const char *path, bool tracked)
{
	return has_component(path, ".vx") || has_component(path, ".git") ||
	       (!tracked && has_component(path, "node_modules"));
}

/* "? path", or "H 100644 <id> <stage>\tpath"; an untracked nested repository ends in '/'. */
static int
take_record(struct list *l, const char *p, size_t n)
{
	bool tracked = *p != '?';
	const char *path = tracked ? memchr(p, '\t', n) : p + 1;
	bool submodule = tracked && n > 8 && !strncmp(p + 2, "160000", 6);

	if (n < 3 || p[1] != ' ' || !path)
		return -1;
	n -= (size_t)(path + 1 - p);
	p = path + 1;
	if (is_never_listed(p, tracked))
		return 0;
	if (n && p[n - 1] == '/') {
		strvec_push_take(&l->walks, xmemdupz(p, n - 1));
	} else if (submodule) {
		strvec_push(&l->walks, p);
	} else {
		list_add(l, p, n);
		l->nothers += !tracked;
	}
	return 0;
}

static int
take_listing(struct list *l, const struct strbuf *out, struct err *e)
{
	const char *p = out->buf, *end = out->buf + out->len;

	while (p < end) {
		size_t n = strlen(p);

		if (p + n == end || take_record(l, p, n))
			return err_set(
				e, ERR_IO, 0, "list files: git ls-files said what vx cannot read");
		p += n + 1;
	}
	return 0;
}

/* git's own words, on one line. */
static int
git_failed(int err, int status, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;

	if (lseek(err, 0, SEEK_SET) < 0 || fd_read_all(err, &text, 1 << 16))
		strbuf_reset(&text);
	strbuf_add_sanitised(&line, text.buf, strcspn(text.buf, "\n"));
	if (line.len)
		return err_set(e, ERR_IO, 0, "list files: git: %s", line.buf);
	return err_set(e, ERR_IO, 0, "list files: git ended with code %d", proc_exit_code(status));
}

static int
wait_for(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

static int
read_git(struct files_request *rq, struct list *l, struct err *e)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int status;

	if (wait_for(rq->pid, &status))
		return err_set(e, ERR_IO, errno, "wait for git");
	if (status)
		return git_failed(rq->err, status, e);
	if (lseek(rq->out, 0, SEEK_SET) < 0 || fd_read_all(rq->out, &out, LISTING_MAX))
		return err_set(e, ERR_IO, errno, "list files");
	return take_listing(l, &out, e);
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
	bool no_git = !rq->pid;
	int r = no_git ? walk(rootfd, "", &l, e) : read_git(rq, &l, e);

	for (size_t i = 0; i < l.walks.n && !r; i++)
		r = walk(rootfd, l.walks.v[i], &l, e);
	fd_close(&rq->pidfd);
	fd_close(&rq->out);
	fd_close(&rq->err);
	drop_temporary(rq);
	if (r)
		return -1;
	*ret = (struct files){.no_git = no_git};
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

/* The first path that is not less than dir followed by `after` (0: dir itself). */
static size_t
first_from(const struct files *f, const char *dir, size_t len, unsigned char after)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const char *p = f->paths[mid];
		int c = strncmp(p, dir, len);

		if (!c)
			c = (unsigned char)p[len] < after ? -1 : 1;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void
files_below(const struct files *f, const char *dir, size_t *ret_from, size_t *ret_to)
{
	size_t len = strlen(dir);

	*ret_from = first_from(f, dir, len, 0);
	*ret_to = len ? first_from(f, dir, len, '/' + 1) : f->n;
}

/* SPDX-License-Identifier: MIT */
#include "workspace/git.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/proc.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <sys/mman.h>
#include <sys/stat.h>

extern char **environ;

enum {
	LISTING_MAX = 1 << 30
};

static bool
is_git_dir(const char *path)
{
	cleanup_free char *head = path_join(path, "HEAD");
	struct stat st;

	/* lstat: HEAD of an old repository is a link to a branch that may not exist yet */
	return !lstat(head, &st);
}

char *
git_find(const char *root_path)
{
	const char *path = getenv("PATH");

	return proc_find_outside("git", path ? path : "/usr/local/bin:/usr/bin:/bin", root_path);
}

/*
 * Found as git does, but without asking git: with the git directory named, git does not refuse a
 * repository that somebody else owns (root on a user's workspace), and nothing that its config could
 * start is needed for listing.
 */
bool
git_find_work_tree(const char *root_path, char **ret_top, char **ret_git_dir)
{
	cleanup_free char *top = xstrdup(root_path);

	for (;;) {
		cleanup_free char *git = path_join(*top ? top : "/", ".git");
		struct stat st;

		if (!stat(git, &st) &&
			(S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && is_git_dir(git)))) {
			*ret_top = *top ? take_ptr(&top) : xstrdup("/");
			*ret_git_dir = take_ptr(&git);
			return true;
		}
		if (!*top)
			return false;
		top[path_parent_len(top)] = '\0';
	}
}

/* The user's environment less all that steers git, plus what keeps it still. */
static void
make_env(struct strvec *env, const struct git_repo *r)
{
	size_t n = r->filters ? r->filters->n : 0;

	for (char **v = environ; *v; v++)
		if (strncmp(*v, "GIT_", 4) != 0)
			strvec_push(env, *v);
	strvec_setenv(env, "GIT_DIR", r->git_dir);
	strvec_setenv(env, "GIT_WORK_TREE", r->top);
	strvec_setenv(env, "GIT_OPTIONAL_LOCKS", "0");
	strvec_setenv(env, "GIT_TERMINAL_PROMPT", "0");
	/* A partial clone may want to fetch: its config would choose the program. */
	strvec_setenv(env, "GIT_NO_LAZY_FETCH", "1");
	strvec_setenv(env, "GIT_ALLOW_PROTOCOL", "none");
	strvec_setenv(env, "LC_ALL", "C");
	/* Not by -c, which would end a name at its first '='. An empty command is none. */
	strvec_pushf(env, "GIT_CONFIG_COUNT=%zu", n);
	for (size_t i = 0; i < n; i++) {
		strvec_pushf(env, "GIT_CONFIG_KEY_%zu=%s", i, r->filters->v[i]);
		strvec_pushf(env, "GIT_CONFIG_VALUE_%zu=", i);
	}
}

/* What every command begins with. Names differ by case here, whatever the machine thought that made the
 * repository: with core.ignorecase an untracked FOO beside a tracked foo is not listed. A mode counts, as it is
 * in keys, and so does each time that stat tells: what only these show to be other is compared by its content. */
static void
make_argv(struct strvec *argv, const char *const *args)
{
	static const char *const first[] = {"git", "--no-optional-locks", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
		"core.untrackedCache=false", "-c", "core.ignorecase=false", "-c",
		"core.fileMode=true", "-c", "core.trustctime=true", "-c", "core.checkStat=default"};

	for (size_t i = 0; i < array_len(first); i++)
		strvec_push(argv, first[i]);
	for (size_t i = 0; args[i]; i++)
		strvec_push(argv, args[i]);
}

static int
start(const struct git_repo *r, const char *const *args, struct git_job *ret, struct err *e)
{
	cleanup_strvec struct strvec argv = STRVEC_INIT, env = STRVEC_INIT;
	cleanup_close int out = memfd_create("vx-git", MFD_CLOEXEC);
	cleanup_close int err = memfd_create("vx-git-err", MFD_CLOEXEC);
	/* For a child's directory an O_PATH fd is enough, fchdir takes it. */
	struct proc_fd fds[] = {{out, 1}, {err, 2}};
	struct proc_spec spec = {
		.file = r->git, .cwd = r->dirfd, .fds = fds, .nfds = array_len(fds)};
	struct proc p;

	if (out < 0 || err < 0)
		return err_set(e, ERR_IO, errno, "memfd_create");
	make_argv(&argv, args);
	make_env(&env, r);
	spec.argv = strvec_argv(&argv);
	spec.env = strvec_argv(&env);
	if (proc_start(&spec, &p, e))
		return -1;
	*ret = (struct git_job){p, take_fd(&out), take_fd(&err)};
	return 0;
}

int
git_list_start(const char *git, int rootfd, const char *git_dir, const char *top, const char *dir,
	struct git_job *ret, struct err *e)
{
	/* -t and -s: a letter says tracked or not, a mode shows submodules. Nothing here makes git
	 * look into a file, for which its config could name a program (a filter). */
	const char *const args[] = {"ls-files", "-z", "-t", "-s", "--cached", "--others",
		"--exclude-standard", "--", *dir ? dir : NULL, NULL};

	return start(&(struct git_repo){git, rootfd, git_dir, top, NULL}, args, ret, e);
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
		return err_set(e, ERR_IO, 0, "git: %s", line.buf);
	return err_set(e, ERR_IO, 0, "git ended with code %d", proc_exit_code(status));
}

/* As git_ask. */
static int
read_answer(struct git_job *j, struct strbuf *ret, struct err *e)
{
	struct stat st;
	int status;

	if (proc_wait(&j->proc, &status))
		return err_set(e, ERR_IO, errno, "wait for git");
	if (status) {
		git_failed(j->err, status, e);
		return 0;
	}
	if (!fstat(j->out, &st) && st.st_size < LISTING_MAX)
		strbuf_grow(ret, (size_t)st.st_size + FD_READ_ROOM);
	if (lseek(j->out, 0, SEEK_SET) < 0 || fd_read_all(j->out, ret, LISTING_MAX))
		return err_set(e, ERR_IO, errno, "read what git said");
	return 1;
}

static int
finish(struct git_job *j, struct strbuf *ret, struct err *e)
{
	int r = read_answer(j, ret, e);

	fd_close(&j->out);
	fd_close(&j->err);
	return r;
}

int
git_list_end(struct git_job *j, struct strbuf *ret, struct err *e)
{
	return finish(j, ret, e) == 1 ? 0 : err_wrap(e, "list files");
}

int
git_ask(const struct git_repo *r, const char *const *args, struct strbuf *ret, struct err *e)
{
	struct git_job job;

	return start(r, args, &job, e) ? -1 : finish(&job, ret, e);
}

/* git 2.31 is the first that can be asked so. */
static int
check_obedience(const struct git_repo *r, const struct strvec *filters, struct err *e)
{
	struct git_repo blind = *r;
	const char *const args[] = {"config", "--get", filters->v[0], NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;

	blind.filters = filters;
	if (git_ask(&blind, args, &said, e) < 0)
		return -1;
	if (strcmp(said.buf, "\n") != 0)
		return err_set(e, ERR_USAGE, 0,
			"this git cannot be kept from starting the filters of its config (%s): "
			"that takes git 2.31",
			filters->v[0]);
	return 0;
}

int
git_find_filters(const struct git_repo *r, struct strvec *ret, struct err *e)
{
	static const char *const args[] = {"config", "-z", "--name-only", "--get-regexp",
		"^filter\\..*\\.(clean|smudge|process|required)$", NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	struct err none = ERR_INIT;
	int found = git_ask(r, args, &said, &none);

	if (found < 0) {
		*e = none;
		return -1;
	}
	for (const char *key = said.buf; found && *key; key += strlen(key) + 1)
		if (!strvec_contains(ret, key))
			strvec_push(ret, key);
	return ret->n ? check_obedience(r, ret, e) : 0;
}

/* "? path", or "H 100644 <id> <stage>\tpath"; an untracked nested repository ends in '/'. */
static bool
parse_record(const char *p, size_t n, struct git_record *ret)
{
	enum {
		MODE = 2,
		ID = 9
	};
	bool tracked = n && *p != '?';
	const char *path = tracked ? memchr(p, '\t', n) : p + 1;
	struct git_record r = {.tracked = tracked};

	if (n < 3 || p[1] != ' ' || !path++)
		return false;
	if (tracked) {
		if (path - p < ID)
			return false;
		r.id = p + ID;
		r.id_len = strcspn(r.id, " ");
		if (r.id + r.id_len + 3 != path)
			return false;
		r.unmerged = r.id[r.id_len + 1] != '0';
		r.is_assumed = *p >= 'a' && *p <= 'z';
		r.is_skipped = *p == 'S' || *p == 's';
		r.is_executable = !strncmp(p + MODE, "100755 ", ID - MODE);
		r.is_link = !strncmp(p + MODE, "120000 ", ID - MODE);
		r.is_repo = !strncmp(p + MODE, "160000 ", ID - MODE);
	}
	r.path = path;
	r.len = (size_t)(p + n - path);
	if (r.len && path[r.len - 1] == '/') {
		r.is_repo = true;
		r.len--;
	}
	*ret = r;
	return true;
}

int
git_next_record(const struct strbuf *said, size_t *at, struct git_record *ret, struct err *e)
{
	const char *p = said->buf + *at;
	size_t n = strlen(p);

	if (*at == said->len)
		return 0;
	if (*at + n == said->len || !parse_record(p, n, ret))
		return err_set(e, ERR_IO, 0, "list files: git ls-files said what vx cannot read");
	*at += n + 1;
	return 1;
}

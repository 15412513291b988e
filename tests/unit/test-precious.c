/* SPDX-License-Identifier: MIT */
#include "tests/unit/git.h"
#include "util/strbuf.h"
#include "workspace/precious.h"
#include <sys/stat.h>

/* What is said of the paths (separated by blanks), from the workspace's directory root. */
static void
check_in(const char *root, const char *dir, const char *words, const char *want, const char *name)
{
	cleanup_close int fd = openat(ws_fd, *root ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *at = path_join(ws_path, root);
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	cleanup_strvec struct strvec paths = STRVEC_INIT;
	struct precious p;
	struct err e = ERR_INIT;
	int r;

	while (*words) {
		size_t n = strcspn(words, " ");

		strvec_push_take(&paths, xmemdupz(words, n));
		words += n;
		words += *words == ' ';
	}
	r = precious_find(fd, at, dir, (const char *const *)paths.v, paths.n, &p, &e);
	if (r < 0)
		strbuf_adds(&got, e.text);
	else if (!r)
		strbuf_adds(&got, "unknown");
	if (r == 1 && p.nheld)
		strbuf_addf(&got, "held %zu %s ", p.nheld, paths.v[p.held]);
	if (r == 1 && p.nchanged)
		strbuf_addf(&got, "changed %zu %s ", p.nchanged, paths.v[p.changed]);
	if (r == 1 && p.nuntracked)
		strbuf_addf(&got, "untracked %zu %s ", p.nuntracked, paths.v[p.untracked]);
	if (r == 1)
		strbuf_adds(&got, p.nothing_tracked ? "nothing tracked"
				  : p.among_tracked ? "among tracked"
						    : "alone");
	ok_str(got.buf, want, name);
}

static void
check(const char *words, const char *want, const char *name)
{
	check_in("", "p", words, want, name);
}

static void
commit(const char *what)
{
	cleanup_free char *add = xasprintf("add %s", what);

	run_git("", add);
	run_git("", "commit -qm x");
}

static void
test_states(void)
{
	ws_begin();
	ws_write("p/a", "a\n");
	ws_write("p/b", "b\n");
	ws_write("p/empty", "");
	ws_link("p/link", "a");
	ws_write("p/new", "");
	check("p/a", "unknown", "outside a work tree");
	run_git("", "init -q");
	check("p/a p/link", "untracked 2 p/a nothing tracked", "before the first commit");
	ws_write("elsewhere", "");
	commit("elsewhere");
	check("p/a", "untracked 1 p/a nothing tracked", "a directory of which nothing is tracked");
	commit("p/a p/b p/empty p/link");
	check("p/link p/empty p/b p/a", "held 4 p/link among tracked", "git has them all");
	check("p/a p/b p/a", "held 2 p/a among tracked", "each counts once");
	check("p/new", "untracked 1 p/new alone", "an untracked one");
	run_git("", "config core.ignorecase true");
	ws_write("p/A", "");
	check("p/A p/a", "held 1 p/a untracked 1 p/A among tracked",
		"one that differs by case, whatever the repository says of case");
	check("p/new p/a", "held 1 p/a untracked 1 p/new among tracked", "beside a tracked one");
	ws_write("p/b", "B\n");
	check("p/a p/b p/empty", "held 2 p/a changed 1 p/b among tracked",
		"changed, of the same size");
	run_git("", "add p/b");
	check("p/b", "held 1 p/b among tracked", "staged is enough: git has it");
	ws_write("p/b", "longer\n");
	check("p/b", "changed 1 p/b among tracked", "changed since it was staged");
	ws_remove("p/link");
	ws_link("p/link", "b");
	check("p/link", "changed 1 p/link among tracked", "a link that leads elsewhere");
	ws_remove("p/link");
	ws_write("p/link", "a");
	check("p/link", "changed 1 p/link among tracked", "a file in the place of a link");
	ws_remove("p/b");
	check("p/b p/a", "held 1 p/a among tracked", "one that is gone can be lost no more");
	check("p/b p/new", "untracked 1 p/new among tracked", "yet it was tracked");
	check_in("p", "", "a", "held 1 a among tracked", "from a directory inside the work tree");
	run_git("", "add -N p/new");
	check("p/new", "held 1 p/new among tracked", "promised and empty: nothing to lose");
	ws_write("p/new", "x");
	check("p/new", "changed 1 p/new among tracked", "promised only");
	ws_end();
}

static void
test_told_not_to_look(void)
{
	ws_begin();
	ws_write("p/a", "a\n");
	ws_write("p/b", "b\n");
	run_git("", "init -q");
	commit("p");
	run_git("", "update-index --assume-unchanged p/a");
	run_git("", "update-index --skip-worktree p/b");
	check("p/a p/b", "held 2 p/a among tracked", "files that git does not look at");
	ws_write("p/a", "mine\n");
	ws_write("p/b", "mine\n");
	check("p/a p/b", "changed 2 p/a among tracked", "are looked at");
	ws_end();
}

/* Content that is read shall not start what the repository names for reading it. */
static void
test_filter(void)
{
	struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
	cleanup_free char *arg = NULL;

	ws_begin();
	ws_write("p/a", "a\n");
	run_git("", "init -q");
	commit("p");
	arg = xasprintf("config filter.evil.clean %s/evil", ws_path);
	run_git("", arg);
	ws_write(".gitattributes", "* filter=evil\n");
	ws_write("evil", "#!/bin/sh\ntouch ran\ncat\n");
	if (fchmodat(ws_fd, "evil", 0755, 0) || utimensat(ws_fd, "p/a", long_ago, 0))
		bug("chmod");
	check("p/a", "held 1 p/a among tracked", "a repository's own filter");
	ok(faccessat(ws_fd, "ran", F_OK, 0), "is not started");
	ws_end();
}

static void
test_unmerged(void)
{
	ws_begin();
	ws_write("p/a", "1\n");
	run_git("", "init -q -b main");
	commit("p");
	run_git("", "checkout -qb other");
	ws_write("p/a", "2\n");
	commit("p");
	run_git("", "checkout -q main");
	ws_write("p/a", "3\n");
	commit("p");
	run_git_may_fail("", "merge -q other");
	check("p/a", "changed 1 p/a among tracked", "a conflict that is being solved");
	ws_end();
}

static void
test_nested(void)
{
	ws_begin();
	ws_write("p/a", "");
	ws_write("p/sub/f", "");
	run_git("", "init -q");
	run_git("p/sub", "init -q");
	commit("p/a");
	check("p/sub/f", "untracked 1 p/sub/f alone", "in a nested repository");
	check_in("", "p/sub", "p/sub/f", "untracked 1 p/sub/f alone", "which is never asked");
	check("p/a p/sub/f", "held 1 p/a untracked 1 p/sub/f among tracked",
		"beside a tracked file");
	run_git("p/sub", "add f");
	run_git("p/sub", "commit -qm x");
	run_git("", "-c advice.addEmbeddedRepo=false add p/sub");
	check("p/sub/f", "untracked 1 p/sub/f alone", "in a submodule");
	ws_end();
}

static void
test_names(void)
{
	ws_begin();
	ws_write("p[x]/*", "1");
	ws_write("p[x]/new\nline", "1");
	ws_write("px/y", "1");
	run_git("", "init -q");
	commit(".");
	ws_write("p[x]/*", "2");
	check_in("", "p[x]", "p[x]/* p[x]/new\nline",
		"held 1 p[x]/new\nline changed 1 p[x]/* among tracked", "names are no patterns");
	ws_end();
}

static void
test_sha256(void)
{
	ws_begin();
	ws_write("p/a", "a\n");
	ws_write("p/b", "b\n");
	run_git("", "init -q --object-format=sha256");
	commit("p");
	ws_write("p/b", "B\n");
	check("p/a p/b", "held 1 p/a changed 1 p/b among tracked", "a repository of SHA-256");
	ws_end();
}

int
main(void)
{
	umask(022);
	if (git_begin()) {
		test_states();
		test_told_not_to_look();
		test_filter();
		test_unmerged();
		test_nested();
		test_names();
		test_sha256();
	} else {
		skip("what git could give back", "there is no git");
	}
	git_end();
	return tap_done();
}

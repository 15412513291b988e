/* SPDX-License-Identifier: MIT */
#include "tests/unit/git.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include <sys/stat.h>

static void
check_at(const char *root, const char *want, const char *name)
{
	cleanup_close int fd = openat(ws_fd, *root ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *path = path_join(ws_path, root);
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	struct files_request rq;
	struct files f = {0};
	struct err e = ERR_INIT;

	if (files_start(fd, path, &rq, &e) || files_finish(&rq, fd, &f, &e))
		strbuf_adds(&got, e.text);
	if (f.no_git)
		strbuf_adds(&got, "no git: ");
	for (size_t i = 0; i < f.n; i++)
		strbuf_addf(&got, "%s%s", i ? "|" : "", f.paths[i]);
	ok_str(got.buf, want, name);
	files_release(&f);
}

static void
fill(void)
{
	ws_write(".gitignore", "ignored\n*.log\n");
	ws_write("a/tracked", "");
	ws_write("a/new\nline", "");
	ws_write("a/o\277\275est", "");
	ws_write("a/ignored/x", "");
	ws_write("a/x.log", "");
	ws_write("a/node_modules/m/i.js", "");
	ws_link("a/link", "nowhere");
	ws_write("b/c", "");
	ws_write(".vx/lock", "");
}

#define FILLED ".gitignore|a/link|a/new\nline|a/o\277\275est|a/tracked|b/c"

static void
test_work_tree(void)
{
	ws_begin();
	fill();
	run_git("", "init -q");
	check_at("", FILLED, "untracked files, less ignored ones");
	ws_write("a/node_modules/kept", "");
	ws_write("a/forced.log", "");
	run_git("", "add -f a/tracked a/node_modules/kept a/forced.log b");
	run_git("", "commit -qm x");
	check_at("",
		".gitignore|a/forced.log|a/link|a/new\nline|a/node_modules/kept|a/o\277\275est|"
		"a/tracked|b/c",
		"tracked ones too, whatever is ignored");
	check_at("a", "forced.log|link|new\nline|node_modules/kept|o\277\275est|tracked",
		"from a directory inside the work tree");
	ws_remove("b/c");
	check_at("b", "c", "a tracked file that is gone is listed still");
	ws_write(".gitignore", "ignored\n*.log\nb2\n# not committed\n");
	ws_write("b2/x", "");
	check_at("b2", "", "the ignore files on disk count");
	ws_end();
}

static void
test_steering(void)
{
	ws_begin();
	fill();
	run_git("", "init -q");
	setenv("GIT_DIR", "/nonexistent", 1);
	setenv("GIT_INDEX_FILE", "/nonexistent", 1);
	setenv("GIT_CEILING_DIRECTORIES", "/", 1);
	check_at("", FILLED, "GIT_ variables of the caller do not steer");
	unsetenv("GIT_DIR");
	unsetenv("GIT_INDEX_FILE");
	unsetenv("GIT_CEILING_DIRECTORIES");
	ws_write("evil", "#!/bin/sh\ntouch ran\n");
	if (fchmodat(ws_fd, "evil", 0755, 0))
		bug("chmod");
	{
		cleanup_free char *arg = xasprintf("config core.fsmonitor %s/evil", ws_path);

		run_git("", arg);
	}
	check_at("", ".gitignore|a/link|a/new\nline|a/o\277\275est|a/tracked|b/c|evil",
		"a repository's own monitor");
	ok(faccessat(ws_fd, "ran", F_OK, 0), "is not started");
	ws_end();
}

/* Of all settings core.ignorecase alone says that a file is another one. It is in repositories that were
 * made where names have no case. */
static void
test_settings(void)
{
	static const char *const settings[] = {"core.ignorecase true",
		"core.precomposeunicode true", "core.quotepath true", "core.untrackedcache true",
		"core.sparsecheckout true", "core.trustctime false", "core.checkstat minimal",
		"core.symlinks false", "core.filemode false", "core.bare true",
		"core.worktree /nonexistent", "core.autocrlf true", "index.sparse true",
		"status.showuntrackedfiles no", "submodule.recurse true", "feature.manyfiles true"};

	ws_begin();
	fill();
	run_git("", "init -q");
	run_git("", "add a/tracked");
	run_git("", "commit -qm x");
	ws_write("a/TRACKED", "");
	ws_write("A/x", "");
	ws_write("a/X.LOG", "");
	for (size_t i = 0; i < array_len(settings); i++) {
		cleanup_free char *set = xasprintf("config %s", settings[i]);
		cleanup_free char *unset = xasprintf("config -f .git/config --unset %.*s",
			(int)strcspn(settings[i], " "), settings[i]);

		run_git("", set);
		check_at("",
			".gitignore|A/x|a/TRACKED|a/X.LOG|a/link|a/new\nline|a/o\277\275est|"
			"a/tracked|b/c",
			settings[i]);
		run_git("", unset);
	}
	setenv("GIT_CONFIG_COUNT", "1", 1);
	setenv("GIT_CONFIG_KEY_0", "core.excludesFile", 1);
	setenv("GIT_CONFIG_VALUE_0", "../a/x.log", 1);
	setenv("GIT_LITERAL_PATHSPECS", "0", 1);
	setenv("GIT_ICASE_PATHSPECS", "1", 1);
	check_at("a", "TRACKED|X.LOG|link|new\nline|o\277\275est|tracked",
		"nor do settings of the environment steer");
	unsetenv("GIT_CONFIG_COUNT");
	unsetenv("GIT_LITERAL_PATHSPECS");
	unsetenv("GIT_ICASE_PATHSPECS");
	ws_end();
}

static void
test_foreign_owner(void)
{
	ws_begin();
	fill();
	run_git("", "init -q");
	if (fchownat(ws_fd, ".git", 12345, 12345, 0) || fchown(ws_fd, 12345, 12345))
		skip("a repository that somebody else owns", "only root can give files away");
	else
		check_at("", FILLED, "a repository that somebody else owns");
	ws_end();
}

static void
test_nested(void)
{
	ws_begin();
	ws_write("top", "");
	run_git("", "init -q");
	ws_write("sub/.gitignore", "hidden\n");
	ws_write("sub/hidden", "");
	ws_write("sub/deep/f", "");
	run_git("sub", "init -q");
	check_at("", "sub/.gitignore|sub/deep/f|sub/hidden|top",
		"a nested repository is walked, its own rules and .git left alone");
	run_git("sub", "add deep");
	run_git("sub", "commit -qm x");
	run_git("", "-c advice.addEmbeddedRepo=false add sub top");
	check_at("", "sub/.gitignore|sub/deep/f|sub/hidden|top", "so is a submodule");
	fs_remove_tree(ws_fd, "sub");
	check_at("", "top", "and one that is not checked out is nothing");
	ws_end();
}

static void
test_no_work_tree(void)
{
	struct stat st;

	ws_begin();
	fill();
	check_at("", FILLED, "without a work tree the ignore files count all the same");
	check_at("", FILLED, "again");
	ok(!fstatat(ws_fd, ".vx/empty.git/HEAD", &st, 0), "by an empty git directory in .vx");
	fs_mkdirs(ws_fd, ".git");
	check_at("", FILLED, "a .git that is no repository is none");
	ws_end();
}

static void
test_errors(void)
{
	struct files_request rq;
	struct files f;
	struct err e = ERR_INIT;

	ws_begin();
	run_git("", "init -q");
	ws_write(".git/index", "damaged beyond repair, surely more than 32 bytes of it");
	ok(!files_start(ws_fd, ws_path, &rq, &e) && files_finish(&rq, ws_fd, &f, &e) < 0,
		"what git cannot read is an error");
	ok_err(&e, "list files: git: error: bad signature", "in git's own words");
	ws_end();
}

static void
test_no_git(void)
{
	cleanup_free char *path = xstrdup(getenv("PATH"));

	ws_begin();
	fill();
	setenv("PATH", "/nonexistent", 1);
	check_at("",
		"no git: .gitignore|a/ignored/x|a/link|a/new\nline|a/o\277\275est|a/tracked|"
		"a/x.log|b/c",
		"without git every file counts");
	setenv("PATH", path, 1);
	ws_end();
}

int
main(void)
{
	umask(022);
	test_no_git();
	if (git_begin()) {
		test_work_tree();
		test_steering();
		test_settings();
		test_foreign_owner();
		test_nested();
		test_no_work_tree();
		test_errors();
	} else {
		skip("git's listing", "there is no git");
	}
	git_end();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * git in the workspace of ws.h, deaf to the settings of whoever runs the tests.
 */
#ifndef TESTS_UNIT_GIT_H
#define TESTS_UNIT_GIT_H

#include "tests/unit/ws.h"
#include "util/proc.h"
#include "util/strvec.h"
#include <sys/wait.h>

extern char **environ;
static char *git_program;

/* git ARGS in the workspace's directory dir, the words of `args` separated by blanks; how it ended. */
static inline int
run_git_may_fail(const char *dir, const char *args)
{
	cleanup_close int cwd = openat(ws_fd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_strvec struct strvec argv = STRVEC_INIT, env = STRVEC_INIT;
	struct proc_spec spec = {.file = git_program, .cwd = cwd};
	struct err e = ERR_INIT;
	struct proc p;
	int status = 0;

	if (cwd < 0)
		bug("no directory %s", dir);
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "GIT_", 4) != 0)
			strvec_push(&env, *v);
	strvec_setenv(&env, "HOME", "/nonexistent");
	strvec_setenv(&env, "GIT_CONFIG_NOSYSTEM", "1");
	strvec_push(&argv, "git");
	for (const char *a = "-c user.name=t -c user.email=t@example.invalid "; *a;) {
		size_t n = strcspn(a, " ");

		strvec_push_take(&argv, xmemdupz(a, n));
		a += n + 1;
	}
	while (*args) {
		size_t n = strcspn(args, " ");

		strvec_push_take(&argv, xmemdupz(args, n));
		args += n;
		args += *args == ' ';
	}
	spec.argv = strvec_argv(&argv);
	spec.env = strvec_argv(&env);
	if (proc_start(&spec, &p, &e) || waitpid(p.pid, &status, 0) != p.pid)
		bug("git cannot be run: %s", e.text);
	close(p.pidfd);
	return status;
}

static inline void
run_git(const char *dir, const char *args)
{
	if (run_git_may_fail(dir, args))
		bug("git failed: %s", args);
}

/* False: there is none. */
static inline bool
git_begin(void)
{
	git_program = proc_find("git", getenv("PATH"));
	return git_program != NULL;
}

static inline void
git_end(void)
{
	free(git_program);
}

#endif

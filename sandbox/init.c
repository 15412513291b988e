/* SPDX-License-Identifier: MIT */
/*
 * pid 1 of the sandbox: starts the command in a session of its own, passes signals on to its group,
 * reaps, and when the command has ended ends everything else. It reports before the namespaces are
 * torn down, so that the helper can look at what was written meanwhile.
 *
 * It shares its uid with the command. It is not dumpable, keeps no fd and no environment that the
 * command does not have, and the kernel shields pid 1 from signals sent inside.
 */
#include "sandbox/filter.h"
#include "sandbox/setup.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/proc.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	JOIN_SESSION_KEYRING = 1
};

static int
watch_children(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || (fd = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		setup_die(errno, "see the cause", "cannot watch the command");
	return fd;
}

attr_noreturn static void
finish(int wstatus, uint32_t nkilled)
{
	struct report r = {.type = REPORT_EXIT};
	struct rusage u, own;

	getrusage(RUSAGE_CHILDREN, &u);
	getrusage(RUSAGE_SELF, &own);
	r.u.exit.wstatus = wstatus;
	r.u.exit.user_us = (uint64_t)u.ru_utime.tv_sec * 1000000 + (uint64_t)u.ru_utime.tv_usec;
	r.u.exit.sys_us = (uint64_t)u.ru_stime.tv_sec * 1000000 + (uint64_t)u.ru_stime.tv_usec;
	/* A program has the peak of the one that started it from its birth: ours says nothing about it. */
	r.u.exit.max_rss_kb = u.ru_maxrss > own.ru_maxrss ? (uint64_t)u.ru_maxrss : 0;
	r.u.exit.nkilled = nkilled;
	setup_report(&r);
	_exit(0);
}

/* 127 where there is no such program, 126 where it cannot be run, as a shell says it. */
attr_noreturn static void
cannot_start(const struct setup *s, int num)
{
	int code = num == ENOENT || num == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC;

	setup_note("cannot run %s: %s", s->spec.program ? s->spec.program : s->spec.argv.v[0],
		strerror(num));
	finish(code << 8, 0);
}

static pid_t
start_command(struct setup *s, int cwd)
{
	static const struct proc_fd fds[] = {{0, 0}, {1, 1}, {2, 2}};
	const char *path = strvec_getenv(&s->spec.env, "PATH");
	const char *name = s->spec.program ? s->spec.program : s->spec.argv.v[0];
	cleanup_free char *found = NULL;
	struct proc_spec spec = {
		.file = name,
		.argv = strvec_argv(&s->spec.argv),
		.env = strvec_argv(&s->spec.env),
		.cwd = cwd,
		.fds = fds,
		.nfds = array_len(fds),
		.new_session = true,
	};
	struct proc proc;
	struct err e = ERR_INIT;

	if (!strchr(name, '/')) {
		found = proc_find(name, path ? path : "/usr/local/bin:/usr/bin:/bin");
		if (!found)
			cannot_start(s, ENOENT);
		spec.file = found;
	}
	umask(s->umask);
	if (proc_start(&spec, &proc, &e))
		cannot_start(s, e.num);
	close(proc.pidfd);
	return proc.pid;
}

/* Reaps what has ended. True when the command is among it. */
static bool
reap(pid_t command, int *ret_wstatus)
{
	bool ended = false;
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0)
		if (pid == command) {
			*ret_wstatus = wstatus;
			ended = true;
		}
	return ended;
}

/* Everything else in this pid namespace. What had ended by itself but was not waited for is not
 * counted. */
static uint32_t
kill_rest(void)
{
	uint32_t n = 0;
	int wstatus;

	for (;;) {
		pid_t pid;

		kill(-1, SIGKILL);
		pid = waitpid(-1, &wstatus, 0);
		if (pid > 0)
			n += WIFSIGNALED(wstatus) && WTERMSIG(wstatus) == SIGKILL;
		else if (errno == ECHILD)
			return n;
	}
}

/* One byte, one signal for the command's group. False: the helper is gone. */
static bool
forward(int control, pid_t command)
{
	uint8_t sig;
	ssize_t n = read(control, &sig, 1);

	if (n == 1) {
		kill(-command, sig);
		/* What is stopped hears of it only when it goes on. */
		kill(-command, SIGCONT);
	}
	return n == 1 || (n < 0 && errno == EINTR);
}

void
init_run(struct setup *s, int cwd, bool detached)
{
	struct report started = {.type = REPORT_STARTED};
	struct filter_options filter = {
		.unix_sockets = s->spec.unix_sockets,
		.nested = s->spec.nested,
		/* A process has one listener at most: the one sandbox in another shall have it. */
		.asks = !s->spec.nested && !(s->spec.unix_sockets && s->maps_all),
		.maps_all = s->maps_all,
		.uid = s->uid,
		.gid = s->gid,
	};
	struct signalfd_siginfo info;
	int children = watch_children(), wstatus = 0;
	int keep[] = {s->report[1], s->control[0], s->null, children, cwd}, listener;
	pid_t command;

	/* No fd of the set-up is left. */
	if (chdir("/"))
		setup_die(errno, "see the cause", "cannot enter the root");
	setup_keep_only(keep, array_len(keep));
	/* A keyring of our own in place of the caller's session's; where a container refuses the call it
	 * refuses it to the command as well, and so does the filter. */
	syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL);
	caps_drop(s);
	listener = filter_install(&filter);

	/* Before the command can ask for anything: what it is denied comes after this on the wire. */
	started.u.started.detached = detached;
	started.u.started.at = preload_settle(&s->preload);
	setup_report_fd(&started, listener);
	/* Whoever holds it could answer in the helper's place. */
	fd_close(&listener);
	command = start_command(s, cwd);
	close(cwd);
	/* Only the command's processes hold its output open. */
	for (int fd = 0; fd <= 2; fd++)
		dup2(s->null, fd); /* NOLINT(android-cloexec-dup): 0-2 */

	for (;;) {
		struct pollfd fds[] = {{.fd = children, .events = POLLIN},
			{.fd = s->control[0], .events = POLLIN}};

		if (poll(fds, array_len(fds), -1) < 0 && errno != EINTR)
			_exit(EXIT_SETUP);
		if (fds[1].revents && !forward(s->control[0], command))
			_exit(EXIT_SETUP);
		if (fds[0].revents & POLLIN) {
			if (read(children, &info, sizeof(info)) < 0 && errno != EINTR)
				_exit(EXIT_SETUP);
			if (reap(command, &wstatus))
				break;
		}
	}
	finish(wstatus, kill_rest());
}

/* SPDX-License-Identifier: MIT */
/*
 * Real processes: the test starts a child that forks into guard and core. The child's pid is the
 * guard's; the core talks over a pipe. Everything is awaited by pipes and wait.
 */
#include "exec/guard.h"
#include "tests/tap.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_test[2]; /* core and guard write, the test reads */
static int to_core[2];
static int held[2]; /* every process of a scenario holds the write end */
static pid_t core_pid;

static void
say(char c)
{
	fd_write_all(to_test[1], &c, 1);
}

/* The next byte that somebody says; 0 at the end. */
static char
hear(int fd)
{
	char c;

	return read(fd, &c, 1) == 1 ? c : '\0';
}

/* In the guard: are all others gone? It lets go of its own end first. */
static void
recover(void *ctx)
{
	struct pollfd p = {held[0], 0, 0};

	fd_close(&held[1]);
	poll(&p, 1, 0);
	say(p.revents & POLLHUP ? *(const char *)ctx : '!');
}

/* Starts guard and core; returns the guard's pid once the core has told its own. */
static pid_t
start(void (*core)(struct guard *g))
{
	char ctx = 'R';
	pid_t pid;

	if (fd_pipe(to_test) || fd_pipe(to_core) || fd_pipe(held))
		return -1;
	pid = fork();
	if (!pid) {
		struct guard g;
		struct err e = ERR_INIT;

		close(to_test[0]);
		close(to_core[1]);
		hear(to_core[0]); /* the test has let go of its ends */
		if (guard_fork(recover, &ctx, NULL, &g, &e))
			_exit(99);
		close(held[0]);
		core_pid = getpid();
		fd_write_all(to_test[1], &core_pid, sizeof(core_pid));
		core(&g);
		_exit(98);
	}
	close(to_test[1]);
	close(to_core[0]);
	close(held[1]);
	if (write(to_core[1], "g", 1) != 1)
		diag("no child");
	if (read(to_test[0], &core_pid, sizeof(core_pid)) != sizeof(core_pid))
		diag("no core");
	return pid;
}

/* What the guard ended with; what was still said is in ret_said. */
static int
end(pid_t guard, struct strbuf *ret_said)
{
	int st = 0;
	struct strbuf rest = STRBUF_INIT;

	strbuf_reset(ret_said);
	waitpid(guard, &st, 0);
	fd_read_all(to_test[0], ret_said, 100);
	fd_read_all(held[0], &rest, 100); /* ends when the last process has */
	strbuf_release(&rest);
	close(to_test[0]);
	close(to_core[1]);
	close(held[0]);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

static void
core_ends(struct guard *g)
{
	guard_core_is_done(g);
	_exit(7);
}

static void
core_forgets(struct guard *g)
{
	(void)g;
	_exit(3);
}

/* A child, a deaf one, and a daemon in a session of its own; then waits to be killed. */
static void
core_with_children(struct guard *g)
{
	(void)g;
	if (!fork()) {
		say('c');
		pause();
	}
	if (!fork()) {
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		say('d');
		pause();
	}
	if (!fork()) {
		setsid();
		if (fork())
			_exit(0);
		say('s');
		pause();
	}
	while (wait(NULL) < 0)
		;
	pause();
}

/* Tells the signals it gets until it hears a word. */
static void
core_with_signals(struct guard *g)
{
	sigset_t sigs;
	struct pollfd p[2];
	struct signalfd_siginfo si;

	/* what was sent since the fork has to be there still */
	say(hear(to_core[0]));
	guard_signals(&sigs);
	p[0] = (struct pollfd){signalfd(-1, &sigs, SFD_CLOEXEC), POLLIN, 0};
	p[1] = (struct pollfd){to_core[0], POLLIN, 0};
	while (poll(p, 2, -1) > 0) {
		if (p[0].revents && read(p[0].fd, &si, sizeof(si)) == sizeof(si))
			say((char)('A' + si.ssi_signo));
		else if (p[1].revents)
			break;
	}
	guard_core_is_done(g);
	_exit(0);
}

static void
core_watches_guard(struct guard *g)
{
	struct pollfd p = {g->pidfd, POLLIN, 0};

	say(poll(&p, 1, 0) ? '!' : 'a');
	poll(&p, 1, -1);
	say('g');
	_exit(0);
}

/* Deaf to the pidfd; were it not told otherwise, the alarm would end it. */
static void
core_is_busy(struct guard *g)
{
	(void)g;
	alarm(20);
	say('b');
	while (!stop_is_asked())
		sched_yield();
	say('t');
	_exit(0);
}

static void
test_ends(struct strbuf *said)
{
	pid_t guard = start(core_ends);

	ok_int(end(guard, said), 7, "the guard ends as the core did");
	ok_str(said->buf, "", "and recovers nothing when it was done");
	guard = start(core_forgets);
	ok_int(end(guard, said), 3, "a core that was not done");
	ok_str(said->buf, "R", "is recovered from");
}

static void
test_killed_core(struct strbuf *said)
{
	pid_t guard = start(core_with_children);

	for (int i = 0; i < 3; i++)
		hear(to_test[0]);
	kill(core_pid, SIGKILL);
	ok_int(end(guard, said), 137, "kill -9 of the core");
	ok_str(said->buf, "R", "leaves nothing, a daemon included, before it is recovered from");
}

static void
test_killed_guard(struct strbuf *said)
{
	pid_t guard = start(core_watches_guard);

	ok_int(hear(to_test[0]), 'a', "the guard's pidfd says that it lives");
	kill(guard, SIGKILL);
	ok_int(end(guard, said), -SIGKILL, "kill -9 of the guard");
	ok_str(said->buf, "g", "is seen by the core");

	guard = start(core_is_busy);
	hear(to_test[0]);
	kill(guard, SIGKILL);
	end(guard, said);
	ok_str(said->buf, "t", "a core that does not look is asked to stop");
}

static void
check_forward(pid_t guard, int sig)
{
	kill(guard, sig);
	ok_int(hear(to_test[0]), 'A' + sig, strsignal(sig));
}

static void
test_signals(struct strbuf *said)
{
	pid_t guard = start(core_with_signals);
	char name[64], path[64];
	int st;
	cleanup_file FILE *f = NULL;

	kill(guard, SIGTERM);
	fd_write_all(to_core[1], "x", 1);
	ok_int(hear(to_test[0]), 'x', "a signal before the core listens");
	ok_int(hear(to_test[0]), 'A' + SIGTERM, "is not lost");
	check_forward(guard, SIGINT);
	check_forward(guard, SIGHUP);
	check_forward(guard, SIGQUIT);

	kill(guard, SIGTSTP);
	ok_int(hear(to_test[0]), 'A' + SIGTSTP, "a stop is forwarded");
	waitpid(guard, &st, WUNTRACED);
	ok(WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP, "and the guard stops");
	check_forward(guard, SIGCONT);

	ok_int(getpgid(core_pid), core_pid, "the core has a group of its own");
	ok(getpgid(guard) != core_pid, "the guard is not in it");
	snprintf(path, sizeof(path), "/proc/%d/comm", guard);
	f = fopen(path, "re");
	ok(f && fgets(name, sizeof(name), f) && !strcmp(name, "vx-guard\n"),
		"it is called vx-guard");
	fd_write_all(to_core[1], "x", 1);
	ok_int(end(guard, said), 0, "the end");
	ok_str(said->buf, "", "each signal was forwarded once");
}

int
main(void)
{
	struct strbuf said = STRBUF_INIT;

	test_ends(&said);
	test_killed_core(&said);
	test_killed_guard(&said);
	test_signals(&said);
	strbuf_release(&said);
	return tap_done();
}

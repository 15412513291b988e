/* SPDX-License-Identifier: MIT */
#include "util/keeper.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/proc.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	KILL_SECONDS = 2
};

bool
keeper_is_needed(void)
{
	int is_reaper = 0;

	return prctl(PR_GET_CHILD_SUBREAPER, &is_reaper) || !is_reaper;
}

/* Until the program has ended, or nobody holds the other end of the leash any more. What wait says of it. */
static int
watch(struct proc *p, int leash)
{
	struct pollfd fds[] = {{p->pidfd, POLLIN, 0}, {leash, POLLIN, 0}};
	int status;

	while (poll(fds, array_len(fds), -1) < 0 && errno == EINTR)
		;
	if (!fds[0].revents)
		return SIGKILL;
	while (waitpid(p->pid, &status, 0) < 0)
		if (errno != EINTR)
			return SIGKILL;
	return status;
}

static void attr_noreturn
be_the_keeper(const struct proc_spec *spec, int leash)
{
	struct err e = ERR_INIT;
	struct proc p;
	sigset_t all;
	int status;

	/* What a terminal sends to the group is for those who are to end this one. `pkill -x vx` is, too. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "vx-guard");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		err_set(&e, ERR_IO, errno, "become a subreaper");
	else
		proc_start(spec, &p, &e);
	if (send(leash, &e, sizeof(e), MSG_NOSIGNAL) < 0 || err_is_set(&e))
		_exit(1);
	status = watch(&p, leash);
	proc_kill_descendants(NULL, 0, clock_monotonic_ns() + KILL_SECONDS * 1000000000ull);
	send(leash, &status, sizeof(status), MSG_NOSIGNAL);
	_exit(0);
}

/* One message. */
static int
hear(int leash, void *p, size_t n)
{
	ssize_t got;

	while ((got = recv(leash, p, n, 0)) < 0 && errno == EINTR)
		;
	if (got == (ssize_t)n)
		return 0;
	if (got >= 0)
		errno = ECHILD; /* killed */
	return -1;
}

int
keeper_start(const struct proc_spec *spec, struct keeper *ret, struct err *e)
{
	cleanup_close int ours = -1, theirs = -1;
	struct keeper k = {-1, -1, -1};
	struct err why = ERR_INIT;
	int ends[2], status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set(e, ERR_IO, errno, "start %s", spec->file);
	ours = ends[0];
	theirs = ends[1];
	fflush(NULL); /* or it is printed by both */
	k.pid = fork();
	if (k.pid < 0)
		return err_set(e, ERR_IO, errno, "fork");
	if (!k.pid) {
		fd_close(&ours);
		be_the_keeper(spec, theirs);
	}
	fd_close(&theirs);
	k.leash = take_fd(&ours);
	k.pidfd = pidfd_open(k.pid, 0);
	if (k.pidfd < 0)
		err_set(&why, ERR_IO, errno, "watch the keeper of %s", spec->file);
	else if (!hear(k.leash, &why, sizeof(why)) && !err_is_set(&why)) {
		*ret = k;
		return 0;
	}
	if (!err_is_set(&why))
		err_set(&why, ERR_IO, errno, "start %s", spec->file);
	keeper_end(&k, &status);
	*e = why;
	return -1;
}

int
keeper_end(struct keeper *k, int *ret_status)
{
	int r;

	shutdown(k->leash, SHUT_WR);
	r = hear(k->leash, ret_status, sizeof(*ret_status));
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(&k->leash);
	fd_close(&k->pidfd);
	return r;
}

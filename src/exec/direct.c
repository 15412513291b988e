/* SPDX-License-Identifier: MIT */
#include "exec/direct.h"
#include "exec/command.h"
#include "exec/job.h"
#include "util/alloc.h"
#include "util/err.h"
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

struct direct {
	struct executor ex;
	struct loop *loop;
	char *sh;
};

/* A job needs nothing of its own beside what job.c has. */

static void
ask_group(struct exec_job *j, int sig)
{
	kill(-j->proc.pid, sig);
	/* What is stopped hears of it only when it goes on. */
	kill(-j->proc.pid, SIGCONT);
}

static void
kill_group(struct exec_job *j)
{
	kill(-j->proc.pid, SIGKILL);
}

/* By the shell, which has exited and is not reaped yet. */
static bool
has_failed(const struct exec_job *j)
{
	siginfo_t si = {0};

	return !waitid(P_PID, (id_t)j->proc.pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_status;
}

/* A task that ends by itself may leave a daemon; but the next attempt should find the ports and files of this one
 * free, and nobody writing into its outputs. */
static bool
group_is_left(struct exec_job *j)
{
	return (j->stop || (j->rq.again && has_failed(j))) && proc_group_is_alive(j->proc.pid);
}

/*
 * Whether a process of the group lives. All of them are our children: the shell, a zombie until it is
 * reaped, and orphans, as we are their subreaper. Asked only of those that could be stopped, wait leaves
 * zombies out, and reads no /proc.
 */
static bool
group_goes_on(struct exec_job *j)
{
	siginfo_t si;

	return !waitid(P_PGID, (id_t)j->proc.pid, &si, WSTOPPED | WNOHANG | WNOWAIT);
}

static void
free_job(struct exec_job *j)
{
	free(j);
}

static const struct job_ops ops = {
	.ask = ask_group,
	.kill = kill_group,
	.is_left = group_is_left,
	.goes_on = group_goes_on,
	.free = free_job,
};

static struct exec_job *
start(struct executor *ex, const struct exec_request *rq, struct err *e attr_unused)
{
	struct direct *d = container_of(ex, struct direct, ex);
	struct exec_job *j = xcalloc(1, sizeof(*j));
	char name[] = "sh", option[] = "-c", *command = command_for_shell(rq->command);
	char *argv[] = {name, option, command, NULL};
	struct proc_spec spec = {
		.file = d->sh,
		.argv = argv,
		.env = strvec_argv(rq->env),
		.cwd = rq->cwd,
		.new_session = true,
	};

	job_start(j, d->loop, &ops, rq, &spec);
	job_command_started(j);
	free(command);
	return j;
}

static void
cancel(struct executor *ex attr_unused, struct exec_job *j, int sig)
{
	job_cancel(j, sig);
}

static void
forward(struct executor *ex attr_unused, struct exec_job *j, int sig)
{
	if (j->proc.pid)
		kill(-j->proc.pid, sig);
}

static void
free_direct(struct executor *ex)
{
	struct direct *d = container_of(ex, struct direct, ex);

	free(d->sh);
	free(d);
}

struct executor *
direct_new(struct loop *l, const char *sh)
{
	struct direct *d = xcalloc(1, sizeof(*d));

	d->ex = (struct executor){.name = "direct",
		.start = start,
		.cancel = cancel,
		.forward = forward,
		.free = free_direct};
	d->loop = l;
	d->sh = xstrdup(sh);
	return &d->ex;
}

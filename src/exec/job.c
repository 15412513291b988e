/* SPDX-License-Identifier: MIT */
#include "exec/job.h"
#include "exec/denials.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/log.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TICK_MS = 20, /* how often the rest of a stopped group is looked for */
	KILLED_MS =
		2000, /* what SIGKILL gets: a process in an uninterruptible sleep may outlast it */
	READ_SIZE = 65536, /* what a pipe holds */
	MAX_EXTRA_FDS = 5,
};

static void finish(struct exec_job *j);
static void proceed(struct exec_job *j);

static void
set_timer(struct exec_job *j, struct loop_timer *t, uint64_t ms)
{
	loop_remove_timer(j->loop, t);
	t->at_ns = clock_monotonic_ns() + ms * 1000000u;
	loop_add_timer(j->loop, t);
}

/* Readiness. */

static void
become_ready(struct exec_job *j)
{
	j->awaited = false;
	loop_remove_timer(j->loop, &j->started);
	loop_remove_timer(j->loop, &j->timeout);
	j->rq.ready(j->rq.ctx);
}

static void
started_fired(struct loop_timer *t)
{
	become_ready(container_of(t, struct exec_job, started));
}

void
job_command_started(struct exec_job *j)
{
	if (!j->proc.pid || !j->awaited || j->rq.ready_when || j->stop)
		return;
	/* Heard of late: nobody might be there at the next turn. */
	if (j->exited)
		become_ready(j);
	else
		set_timer(j, &j->started, 0);
}

/* Output. */

static void
close_output(struct exec_job *j, struct loop_fd *w)
{
	loop_remove_fd(j->loop, w);
	fd_close(&w->fd);
}

/* One read. False: nothing more at the moment, or for good. */
static bool
read_output(struct exec_job *j, struct loop_fd *w)
{
	char buf[READ_SIZE];
	ssize_t n = read(w->fd, buf, sizeof(buf));

	if (n > 0) {
		enum exec_stream stream = w == &j->out[0] ? EXEC_STDOUT : EXEC_STDERR;

		j->rq.output(j->rq.ctx, stream, buf, (size_t)n);
		if (j->awaited && j->rq.ready_when && !j->stop &&
			readiness_sees(&j->ready, stream, buf, (size_t)n))
			become_ready(j);
		return true;
	}
	if (!n || (errno != EAGAIN && errno != EINTR))
		close_output(j, w);
	return false;
}

static void
output_ready(struct exec_job *j, struct loop_fd *w)
{
	read_output(j, w);
	if (j->exited)
		proceed(j);
}

static void
stdout_ready(struct loop_fd *w, unsigned events attr_unused)
{
	output_ready(container_of(w, struct exec_job, out[0]), w);
}

static void
stderr_ready(struct loop_fd *w, unsigned events attr_unused)
{
	output_ready(container_of(w, struct exec_job, out[1]), w);
}

static bool
output_is_open(const struct exec_job *j)
{
	return j->out[0].fd >= 0 || j->out[1].fd >= 0;
}

/* What is in the pipes at this moment; no more than they hold, as somebody may keep writing. */
static void
take_what_is_there(struct exec_job *j)
{
	for (size_t i = 0; i < array_len(j->out); i++)
		for (int n = 0; n < 16 && j->out[i].fd >= 0; n++)
			if (!read_output(j, &j->out[i]))
				break;
}

/* Stopping. */

static void
kill_now(struct exec_job *j)
{
	j->killing = true;
	j->ops->kill(j);
	set_timer(j, &j->grace, KILLED_MS);
}

static void
stop(struct exec_job *j, enum job_stop why, int sig)
{
	bool first = j->stop == JOB_NOT_STOPPED;

	if (first)
		j->stop = why;
	loop_remove_timer(j->loop, &j->timeout);
	loop_remove_timer(j->loop, &j->drain);
	loop_remove_timer(j->loop, &j->started);
	if (sig == SIGKILL) {
		if (!j->killing)
			kill_now(j);
	} else {
		j->ops->ask(j, sig);
		if (first)
			set_timer(j, &j->grace, j->rq.grace_ms);
	}
	if (j->exited)
		set_timer(j, &j->tick, 0);
}

static void
timeout_fired(struct loop_timer *t)
{
	stop(container_of(t, struct exec_job, timeout), JOB_TIMED_OUT, SIGTERM);
}

/* The grace is over, or what SIGKILL gets. */
static void
grace_fired(struct loop_timer *t)
{
	struct exec_job *j = container_of(t, struct exec_job, grace);

	if (!j->killing) {
		kill_now(j);
		return;
	}
	log_debug("exec", "%d outlasts SIGKILL", j->proc.pid);
	finish(j);
}

void
job_cancel(struct exec_job *j, int sig)
{
	if (j->proc.pid)
		stop(j, JOB_CANCELLED, sig);
}

/* The end. */

static void
tick_fired(struct loop_timer *t)
{
	proceed(container_of(t, struct exec_job, tick));
}

static void
drain_fired(struct loop_timer *t)
{
	struct exec_job *j = container_of(t, struct exec_job, drain);

	/* It is vx that does not read. */
	if (loop_is_held(j->loop) && output_is_open(j)) {
		set_timer(j, t, EXEC_DRAIN_MS);
		return;
	}
	take_what_is_there(j);
	finish(j);
}

static bool
goes_on(struct exec_job *j)
{
	return !j->stop && j->ops->goes_on && j->ops->goes_on(j);
}

/* The child has exited: is there anything else to wait for? */
static void
proceed(struct exec_job *j)
{
	if (j->ops->is_left && j->ops->is_left(j)) {
		if (j->killing)
			j->ops->kill(j); /* what was forked meanwhile */
		else if (!j->stop)
			kill_now(j);
		set_timer(j, &j->tick, TICK_MS);
	} else if (j->stop) {
		take_what_is_there(j);
		finish(j);
	} else if (!output_is_open(j) && !goes_on(j)) {
		finish(j);
	} else {
		if (!j->drain.slot)
			set_timer(j, &j->drain, EXEC_DRAIN_MS);
		if (!output_is_open(j))
			set_timer(j, &j->tick, TICK_MS);
	}
}

void
job_command_ended(struct exec_job *j)
{
	loop_remove_timer(j->loop, &j->timeout);
	if (!j->ended_ns)
		j->ended_ns = clock_monotonic_ns();
}

static void
exit_ready(struct loop_fd *w, unsigned events attr_unused)
{
	struct exec_job *j = container_of(w, struct exec_job, exit);

	loop_remove_fd(j->loop, w);
	/* It did start, though its end was seen first. */
	if (j->started.slot)
		become_ready(j);
	j->exited = true;
	job_command_ended(j);
	proceed(j);
}

/*
 * A child has the peak of the program that spawned it from its birth, so a peak near our own says
 * nothing about it.
 */
static uint64_t
own_peak_of(const struct rusage *ru)
{
	enum {
		NOISE_KB = 4096
	};
	struct rusage own;

	getrusage(RUSAGE_SELF, &own);
	return ru->ru_maxrss > own.ru_maxrss + NOISE_KB ? (uint64_t)ru->ru_maxrss : 0;
}

static uint64_t
micros(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000u + (uint64_t)tv->tv_usec;
}

static void
reap(struct exec_job *j, struct exec_result *r)
{
	struct rusage ru;
	pid_t pid;

	do
		pid = wait4(j->proc.pid, &j->wstatus, WNOHANG, &ru);
	while (pid < 0 && errno == EINTR);
	if (pid == j->proc.pid) {
		proc_disown(pid);
		r->cpu_us = micros(&ru.ru_utime) + micros(&ru.ru_stime);
		r->peak_rss_kb = own_peak_of(&ru);
	} else {
		j->wstatus = SIGKILL;
	}
}

static void
describe(struct exec_job *j, struct exec_result *r)
{
	static const enum exec_outcome outcomes[] = {
		[JOB_NOT_STOPPED] = EXEC_EXITED,
		[JOB_TIMED_OUT] = EXEC_TIMED_OUT,
		[JOB_CANCELLED] = EXEC_STOPPED,
	};

	reap(j, r);
	r->outcome = outcomes[j->stop];
	r->exit_code = proc_exit_code(j->wstatus);
	r->signal = WIFSIGNALED(j->wstatus) ? WTERMSIG(j->wstatus) : 0;
	if (j->stop == JOB_TIMED_OUT)
		r->exit_code = 128 + (r->signal == SIGKILL ? SIGKILL : SIGTERM);
	r->duration_ns = (j->ended_ns ? j->ended_ns : clock_monotonic_ns()) - j->started_ns;
	r->output_cut = !j->stop && output_is_open(j);
}

static void
finish(struct exec_job *j)
{
	struct exec_result r;
	struct loop_timer *timers[] = {&j->timeout, &j->grace, &j->tick, &j->drain, &j->started};

	exec_result_init(&r);
	if (j->proc.pid) {
		r.left_some = goes_on(j);
		describe(j, &r);
	} else {
		r.outcome = EXEC_NOT_STARTED;
		r.exit_code = 127;
		r.error = j->error;
		strbuf_init(&j->error);
	}
	for (size_t i = 0; i < array_len(timers); i++)
		loop_remove_timer(j->loop, timers[i]);
	for (size_t i = 0; i < array_len(j->out); i++)
		close_output(j, &j->out[i]);
	loop_remove_fd(j->loop, &j->exit);
	fd_close(&j->input);
	readiness_release(&j->ready);
	if (j->ops->finish)
		j->ops->finish(j, &r);
	fd_close(&j->proc.pidfd);
	j->rq.done(j->rq.ctx, &r);
	j->ops->free(j);
}

/* The start. */

static void
init(struct exec_job *j, struct loop *l, const struct job_ops *ops, const struct exec_request *rq)
{
	j->loop = l;
	j->ops = ops;
	j->rq = *rq;
	j->rq.env = NULL;
	j->proc = (struct proc){0, -1};
	strbuf_init(&j->error);
	j->exit = (struct loop_fd){.fd = -1, .events = LOOP_READ, .ready = exit_ready};
	j->out[0] =
		(struct loop_fd){.fd = -1, .events = LOOP_READ | LOOP_BULK, .ready = stdout_ready};
	j->out[1] =
		(struct loop_fd){.fd = -1, .events = LOOP_READ | LOOP_BULK, .ready = stderr_ready};
	j->timeout.fire = timeout_fired;
	j->grace.fire = grace_fired;
	j->tick.fire = tick_fired;
	j->drain.fire = drain_fired;
	j->started.fire = started_fired;
	j->input = -1;
	j->awaited = rq->persistent;
	readiness_init(&j->ready, rq->ready_when);
	j->started_ns = clock_monotonic_ns();
}

/* Starts the child; its ends of the pipes are closed here whatever happens. */
static int
start(struct exec_job *j, const struct proc_spec *spec, struct err *e)
{
	int out[2][2] = {{-1, -1}, {-1, -1}}, in[2] = {-1, -1};
	struct proc_fd fds[MAX_EXTRA_FDS + 3];
	struct proc_spec full = *spec;
	int r = -1;

	if (spec->nfds > MAX_EXTRA_FDS)
		bug("%zu more fds for a job", spec->nfds);
	for (size_t i = 0; i < 2; i++) {
		if (fd_pipe(out[i])) {
			err_set(e, ERR_IO, errno, "make a pipe");
			goto out;
		}
		j->out[i].fd = out[i][0];
		fds[i] = (struct proc_fd){out[i][1], (int)i + 1};
		if (fd_set_nonblock(out[i][0])) {
			err_set(e, ERR_IO, errno, "make a pipe");
			goto out;
		}
	}
	full.fds = fds;
	full.nfds = 2;
	if (j->rq.persistent) {
		if (fd_pipe(in)) {
			err_set(e, ERR_IO, errno, "make a pipe");
			goto out;
		}
		fds[full.nfds++] = (struct proc_fd){in[0], 0};
		j->input = in[1];
	}
	if (spec->nfds)
		memcpy(fds + full.nfds, spec->fds, spec->nfds * sizeof(*fds));
	full.nfds += spec->nfds;
	r = proc_start(&full, &j->proc, e);
out:
	for (size_t i = 0; i < 2; i++)
		fd_close(&out[i][1]);
	fd_close(&in[0]);
	return r;
}

static void
fail_later(struct exec_job *j, const struct err *why)
{
	strbuf_adds(&j->error, why->text);
	j->drain.at_ns = 0;
	loop_add_timer(j->loop, &j->drain);
}

void
job_start(struct exec_job *j, struct loop *l, const struct job_ops *ops,
	const struct exec_request *rq, const struct proc_spec *spec)
{
	struct err e = ERR_INIT;

	init(j, l, ops, rq);
	if (start(j, spec, &e)) {
		for (size_t i = 0; i < 2; i++)
			fd_close(&j->out[i].fd);
		fail_later(j, &e);
		return;
	}
	j->exit.fd = j->proc.pidfd;
	loop_add_fd(l, &j->out[0]);
	loop_add_fd(l, &j->out[1]);
	loop_add_fd(l, &j->exit);
	if (rq->timeout_ms)
		set_timer(j, &j->timeout, rq->timeout_ms);
}

void
job_start_failed(struct exec_job *j, struct loop *l, const struct job_ops *ops,
	const struct exec_request *rq, const struct err *why)
{
	init(j, l, ops, rq);
	fail_later(j, why);
}

void
exec_result_init(struct exec_result *r)
{
	*r = (struct exec_result){.error = STRBUF_INIT,
		.late = STRVEC_INIT,
		.notes = STRVEC_INIT,
		.notices = STRVEC_INIT};
}

void
exec_result_release(struct exec_result *r)
{
	strbuf_release(&r->error);
	strvec_release(&r->late);
	strvec_release(&r->notes);
	strvec_release(&r->notices);
	for (size_t i = 0; i < r->ndenials; i++)
		denial_release(&r->denials[i]);
	free(r->denials);
	r->denials = NULL;
	r->ndenials = 0;
}

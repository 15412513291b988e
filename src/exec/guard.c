/* SPDX-License-Identifier: MIT */
#include "exec/guard.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/proc.h"
#include "util/stop.h"
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	KILL_SECONDS = 10,
	SPARED_SECONDS = 2,
	WAKE_MS = 100, /* between two looks whether a core that is to end was stopped */
	SPARED_MAX = 64,
};

/* What the guard has. */
struct watch {
	pid_t core;
	int pidfd;   /* of the core */
	int signals; /* signalfd */
	int done;    /* eventfd: the core counts it up */
	char *(*find_helper)(struct err *e);
};

void
guard_signals(sigset_t *ret)
{
	stop_signals(ret);
	if (!stop_is_ignored(SIGTSTP))
		sigaddset(ret, SIGTSTP);
	sigaddset(ret, SIGCONT);
}

static bool
is_stopped(pid_t core)
{
	siginfo_t si = {0};

	return !waitid(P_PID, (id_t)core, &si, WSTOPPED | WNOHANG | WNOWAIT) && si.si_pid;
}

/* A task may have stopped the core, its parent, which shall hear what ends it. */
static void
wake_core(const struct watch *w)
{
	if (is_stopped(w->core))
		pidfd_send_signal(w->pidfd, SIGCONT, NULL, 0);
}

/* *ending: whether what came last ends the core. */
static void
forward_signals(const struct watch *w, bool *ending)
{
	struct signalfd_siginfo si;

	while (read(w->signals, &si, sizeof(si)) == sizeof(si)) {
		pidfd_send_signal(w->pidfd, (int)si.ssi_signo, NULL, 0);
		*ending = si.ssi_signo != SIGTSTP && si.ssi_signo != SIGCONT;
		if (si.ssi_signo != SIGTSTP)
			wake_core(w);
		/* The shell that waits for us is to see the stop. The core stops its tasks and itself;
		 * the SIGCONT that wakes us is read here next, and forwarded. */
		if (si.ssi_signo == SIGTSTP)
			kill(getpid(), SIGSTOP);
	}
}

/* Until the core is dead; returns what wait says of it. */
static int
wait_for_core(const struct watch *w)
{
	struct pollfd fds[] = {{w->signals, POLLIN, 0}, {w->pidfd, POLLIN, 0}};
	bool ending = false;
	int wstatus;

	do {
		/* The stop may take effect after the signal was sent. */
		int n = poll(fds, array_len(fds), ending ? WAKE_MS : -1);

		if (n <= 0)
			fds[0].revents = fds[1].revents = 0;
		if (!n)
			wake_core(w);
		if (fds[0].revents)
			forward_signals(w, &ending);
	} while (!fds[1].revents);
	while (waitpid(w->core, &wstatus, 0) < 0)
		if (errno != EINTR)
			return SIGKILL; /* cannot be: it is our child, and nobody else waits for it */
	return wstatus;
}

/*
 * Helpers see that the core is gone, end what runs in their sandboxes and go. One with a live view looks
 * before that for what the task has planted in the workspace: nobody else knows where. What does not go by
 * itself is killed with the rest.
 */
static void
let_helpers_end(char *(*find_helper)(struct err *e))
{
	uint64_t deadline = clock_monotonic_ns() + SPARED_SECONDS * 1000000000ull;
	struct err none = ERR_INIT;
	cleanup_free char *helper = find_helper ? find_helper(&none) : NULL;
	pid_t pids[SPARED_MAX];
	size_t n = helper ? proc_find_children(helper, pids, array_len(pids)) : 0;

	if (n)
		proc_kill_descendants(pids, n, deadline);
	for (size_t i = 0; i < n; i++) {
		cleanup_close int fd = pidfd_open(pids[i], 0);
		struct pollfd w = {fd, POLLIN, 0};
		uint64_t now = clock_monotonic_ns();

		if (fd >= 0 && now < deadline)
			poll(&w, 1, (int)((deadline - now) / 1000000));
	}
}

static void attr_noreturn
be_the_guard(const struct watch *w, void (*recover)(void *ctx), void *ctx)
{
	uint64_t count;
	int wstatus;

	prctl(PR_SET_NAME, "vx-guard");
	wstatus = wait_for_core(w);
	if (read(w->done, &count, sizeof(count)) != sizeof(count)) {
		let_helpers_end(w->find_helper);
		proc_kill_descendants(NULL, 0, clock_monotonic_ns() + KILL_SECONDS * 1000000000ull);
		recover(ctx);
	}
	_exit(proc_exit_code(wstatus));
}

/*
 * A group of its own is a background one to the terminal: writing there must not stop the core.
 * Tasks get the default back (proc_start). The loop sees the guard's death by itself, what takes long
 * between two polls by the parent that it has then.
 */
static void
be_the_core(pid_t guard)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	stop_without(guard);
	setpgid(0, 0);
	sigaction(SIGTTOU, &ignore, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* not inherited by fork */
}

/* Everything that both sides need, made before there are two. */
static int
prepare(struct watch *w, struct guard *g, struct err *e)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t sigs;

	guard_signals(&sigs);
	if (sigprocmask(SIG_BLOCK, &sigs, NULL) || sigaction(SIGCHLD, &standard, NULL))
		return err_set(e, ERR_IO, errno, "set up signals");
	w->signals = signalfd(-1, &sigs, SFD_CLOEXEC | SFD_NONBLOCK);
	w->done = g->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->pidfd = pidfd_open(getpid(), 0);
	if (w->signals < 0 || w->done < 0 || g->pidfd < 0)
		return err_set(e, ERR_IO, errno, "prepare the guard");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return err_set(e, ERR_IO, errno, "become a subreaper");
	return 0;
}

/* In the parent: a core that cannot be watched is none. */
static int
watch_core(struct watch *w, struct err *e)
{
	setpgid(w->core, w->core); /* whoever comes first; the other's has no effect */
	w->pidfd = pidfd_open(w->core, 0);
	if (w->pidfd >= 0)
		return 0;
	err_set(e, ERR_IO, errno, "watch the core");
	kill(w->core, SIGKILL);
	while (waitpid(w->core, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

int
guard_fork(void (*recover)(void *ctx), void *ctx, char *(*find_helper)(struct err *e),
	struct guard *ret, struct err *e)
{
	struct watch w = {.pidfd = -1, .signals = -1, .done = -1, .find_helper = find_helper};
	struct guard g = {-1, -1};
	pid_t self = getpid();
	sigset_t old;

	sigprocmask(SIG_BLOCK, NULL, &old);
	if (prepare(&w, &g, e))
		goto fail;
	fflush(NULL); /* or it is printed by both */
	w.core = fork();
	if (w.core < 0) {
		err_set(e, ERR_IO, errno, "fork");
		goto fail;
	}
	if (!w.core) {
		be_the_core(self);
		fd_close(&w.signals);
		*ret = g;
		return 0;
	}
	if (watch_core(&w, e))
		goto fail;
	fd_close(&g.pidfd);
	be_the_guard(&w, recover, ctx);
fail:
	fd_close(&w.signals);
	fd_close(&g.done);
	fd_close(&g.pidfd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return -1;
}

void
guard_core_is_done(struct guard *g)
{
	uint64_t one = 1;

	/* a counter at 0 takes it at once */
	fd_write_all(g->done, &one, sizeof(one));
}

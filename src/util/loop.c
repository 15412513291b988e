/* SPDX-License-Identifier: MIT */
#include "util/loop.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/*
 * poll and not epoll: it cannot fail for lack of memory or watches, takes files and terminals alike,
 * and a run has some dozens of fds. slot is 1 + the place in the arrays, 0: not there. Between two
 * polls places are never used again, so whatever a callback removes or adds, an event of this round
 * reaches the watcher it was for or nobody.
 */
struct loop {
	struct pollfd *polls;
	struct loop_fd **watchers; /* NULL: a hole */
	size_t n, polls_cap, watchers_cap, nholes;

	struct loop_timer **timers; /* a binary heap, soonest first */
	size_t ntimers, timers_cap;

	struct loop_fd signals;
	void (*on_signal)(void *ctx, int sig);
	void *on_signal_ctx;
	void (*on_idle)(void *ctx);
	void *on_idle_ctx;
	bool stopping;
	bool held;
};

/* Fds. */

static void
set_events(const struct loop *l, struct pollfd *p, const struct loop_fd *w)
{
	bool held = l->held && (w->events & LOOP_BULK);

	p->events = (short)((w->events & LOOP_READ ? POLLIN : 0) |
			    (w->events & LOOP_WRITE ? POLLOUT : 0));
	/* poll tells of a hang-up even to those who want nothing */
	p->fd = p->events && !held ? w->fd : -1;
}

void
loop_add_fd(struct loop *l, struct loop_fd *w)
{
	if (w->slot)
		bug("fd %d is in the loop already", w->fd);
	GROW(l->polls, l->n + 1, l->polls_cap);
	GROW(l->watchers, l->n + 1, l->watchers_cap);
	l->polls[l->n] = (struct pollfd){0};
	set_events(l, &l->polls[l->n], w);
	l->watchers[l->n] = w;
	w->slot = ++l->n;
}

void
loop_update_fd(struct loop *l, struct loop_fd *w)
{
	if (w->slot)
		set_events(l, &l->polls[w->slot - 1], w);
}

void
loop_hold(struct loop *l, bool on)
{
	l->held = on;
	for (size_t i = 0; i < l->n; i++)
		if (l->watchers[i])
			set_events(l, &l->polls[i], l->watchers[i]);
}

bool
loop_is_held(const struct loop *l)
{
	return l->held;
}

void
loop_remove_fd(struct loop *l, struct loop_fd *w)
{
	if (!w->slot)
		return;
	l->polls[w->slot - 1] = (struct pollfd){.fd = -1};
	l->watchers[w->slot - 1] = NULL;
	l->nholes++;
	w->slot = 0;
}

static void
close_holes(struct loop *l)
{
	size_t to = 0;

	if (!l->nholes)
		return;
	for (size_t i = 0; i < l->n; i++) {
		if (!l->watchers[i])
			continue;
		l->polls[to] = l->polls[i];
		l->watchers[to] = l->watchers[i];
		l->watchers[to]->slot = to + 1;
		to++;
	}
	l->n = to;
	l->nholes = 0;
}

static void
call_ready(struct loop *l, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct loop_fd *w = l->watchers[i];
		short got = l->polls[i].revents;
		unsigned events = 0;

		l->polls[i].revents = 0;
		if (!w || !got)
			continue;
		if (got & (POLLIN | POLLERR | POLLHUP | POLLNVAL))
			events |= LOOP_READ;
		if (got & (POLLOUT | POLLERR | POLLHUP | POLLNVAL))
			events |= LOOP_WRITE;
		/* an earlier callback may have lost interest in some */
		if (events & w->events)
			w->ready(w, events & w->events);
	}
}

/* Timers. */

static void
place(struct loop *l, size_t i, struct loop_timer *t)
{
	l->timers[i] = t;
	t->slot = i + 1;
}

static void
sift(struct loop *l, size_t i, struct loop_timer *t)
{
	while (i && t->at_ns < l->timers[(i - 1) / 2]->at_ns) {
		place(l, i, l->timers[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < l->ntimers && l->timers[child + 1]->at_ns < l->timers[child]->at_ns)
			child++;
		if (child >= l->ntimers || l->timers[child]->at_ns >= t->at_ns)
			break;
		place(l, i, l->timers[child]);
		i = child;
	}
	place(l, i, t);
}

void
loop_add_timer(struct loop *l, struct loop_timer *t)
{
	if (t->slot)
		bug("a timer is in the loop already");
	GROW(l->timers, l->ntimers + 1, l->timers_cap);
	l->timers[l->ntimers++] = t;
	sift(l, l->ntimers - 1, t);
}

void
loop_remove_timer(struct loop *l, struct loop_timer *t)
{
	size_t i = t->slot;

	if (!i--)
		return;
	t->slot = 0;
	if (i != --l->ntimers)
		sift(l, i, l->timers[l->ntimers]);
}

/* One that sets itself again at once must not keep the others from being heard: each round fires at
 * most as many as there were. */
static void
fire_timers(struct loop *l)
{
	uint64_t now = clock_monotonic_ns();

	for (size_t n = l->ntimers; n && l->ntimers && l->timers[0]->at_ns <= now; n--) {
		struct loop_timer *t = l->timers[0];

		loop_remove_timer(l, t);
		t->fire(t);
	}
}

/* Signals. */

static void
signals_ready(struct loop_fd *w, unsigned events attr_unused)
{
	struct loop *l = container_of(w, struct loop, signals);
	struct signalfd_siginfo si;

	while (read(w->fd, &si, sizeof(si)) == sizeof(si))
		if (l->on_signal)
			l->on_signal(l->on_signal_ctx, (int)si.ssi_signo);
}

void
loop_on_signal(struct loop *l, void (*fn)(void *ctx, int sig), void *ctx)
{
	l->on_signal = fn;
	l->on_signal_ctx = ctx;
}

void
loop_on_idle(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
	l->on_idle = fn;
	l->on_idle_ctx = ctx;
}

/* The loop itself. */

int
loop_new(const sigset_t *sigs, struct loop **ret, struct err *e)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
	struct loop *l;
	int fd;

	if (sigprocmask(SIG_BLOCK, sigs, NULL))
		return err_set(e, ERR_IO, errno, "block signals");
	/* An ignored SIGCHLD, which one can inherit, has the kernel reap our children. */
	if (sigaction(SIGPIPE, &ignore, NULL) || sigaction(SIGCHLD, &standard, NULL))
		return err_set(e, ERR_IO, errno, "set up signals");
	fd = signalfd(-1, sigs, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(e, ERR_IO, errno, "watch signals");
	l = xcalloc(1, sizeof(*l));
	l->signals = (struct loop_fd){.fd = fd, .events = LOOP_READ, .ready = signals_ready};
	loop_add_fd(l, &l->signals);
	*ret = l;
	return 0;
}

void
loop_free(struct loop *l)
{
	if (!l)
		return;
	fd_close(&l->signals.fd);
	free(l->polls);
	free(l->watchers);
	free(l->timers);
	free(l);
}

/* Waits for an fd or the soonest timer. */
static int
wait_for_events(struct loop *l)
{
	struct timespec ts = {0};
	bool timed = l->ntimers != 0;

	if (timed) {
		uint64_t now = clock_monotonic_ns(), at = l->timers[0]->at_ns;
		uint64_t left = at > now ? at - now : 0;

		ts.tv_sec = (time_t)(left / 1000000000u);
		ts.tv_nsec = (long)(left % 1000000000u);
	}
	return ppoll(l->polls, l->n, timed ? &ts : NULL, NULL);
}

int
loop_run(struct loop *l, struct err *e)
{
	for (;;) {
		int r;

		if (l->on_idle && !l->stopping)
			l->on_idle(l->on_idle_ctx);
		if (l->stopping) {
			l->stopping = false;
			return 0;
		}
		close_holes(l);
		r = wait_for_events(l);
		if (r < 0 && errno != EINTR)
			return err_set(e, ERR_IO, errno, "wait for events");
		if (r > 0)
			call_ready(l, l->n);
		fire_timers(l);
	}
}

void
loop_stop(struct loop *l)
{
	l->stopping = true;
}

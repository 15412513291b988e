/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/loop.h"
#include "util/strbuf.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct loop *loop;
static struct strbuf told = STRBUF_INIT;

struct watch {
	struct loop_fd fd;
	struct loop_timer timer;
	char name;
	struct watch *victim; /* removed by the callback */
	int left;             /* how often to set itself again */
};

static void
tell_ready(struct loop_fd *w, unsigned events)
{
	struct watch *x = container_of(w, struct watch, fd);
	char c;

	strbuf_addf(&told, "%c%s%s ", x->name, events & LOOP_READ ? "r" : "",
		events & LOOP_WRITE ? "w" : "");
	if ((events & LOOP_READ) && read(w->fd, &c, 1) <= 0)
		loop_remove_fd(loop, w);
	if (x->victim)
		loop_remove_fd(loop, &x->victim->fd);
}

static void
tell_timer(struct loop_timer *t)
{
	struct watch *x = container_of(t, struct watch, timer);

	strbuf_addf(&told, "%c ", x->name);
	if (x->victim)
		loop_remove_timer(loop, &x->victim->timer);
	if (x->left-- > 0)
		loop_add_timer(loop, t);
}

static void
stop_timer(struct loop_timer *t)
{
	(void)t;
	loop_stop(loop);
}

static void
run_until(uint64_t at_ns)
{
	struct loop_timer t = {.at_ns = at_ns, .fire = stop_timer};
	struct err e = ERR_INIT;

	strbuf_reset(&told);
	loop_add_timer(loop, &t);
	ok_int(loop_run(loop, &e), 0, "the loop runs and stops");
	loop_remove_timer(loop, &t);
}

static void
test_fds(void)
{
	int a[2], b[2];
	struct watch ra = {.name = 'a'}, rb = {.name = 'b'}, wb = {.name = 'w'};
	struct watch *all[] = {&ra, &rb, &wb};

	if (fd_pipe(a) || fd_pipe(b))
		return;
	ra.fd = (struct loop_fd){.fd = a[0], .events = LOOP_READ};
	rb.fd = (struct loop_fd){.fd = b[0], .events = LOOP_READ};
	wb.fd = (struct loop_fd){.fd = b[1], .events = 0};
	for (size_t i = 0; i < array_len(all); i++) {
		all[i]->fd.ready = tell_ready;
		loop_add_fd(loop, &all[i]->fd);
	}
	run_until(0);
	ok_str(told.buf, "", "nothing is ready");
	fd_write_all(a[1], "x", 1);
	fd_write_all(b[1], "x", 1);
	ra.victim = &rb;
	run_until(0);
	ok_str(told.buf, "ar ", "what a callback removed is not called");
	loop_remove_fd(loop, &rb.fd);
	loop_add_fd(loop, &rb.fd);
	ra.victim = NULL;
	run_until(0);
	ok_str(told.buf, "br ", "it can be added again");
	wb.fd.events = LOOP_WRITE;
	loop_update_fd(loop, &wb.fd);
	run_until(0);
	ok_str(told.buf, "ww ", "writable when asked for");
	close(b[0]);
	loop_remove_fd(loop, &rb.fd);
	wb.fd.events = 0;
	loop_update_fd(loop, &wb.fd);
	close(a[1]);
	run_until(0);
	ok_str(told.buf, "ar ", "a hang-up is told to whom it concerns");
	ok_int((long long)ra.fd.slot, 0, "who left the loop");
	loop_remove_fd(loop, &wb.fd);
	close(a[0]);
	close(b[1]);
}

static void
test_hold(void)
{
	int a[2], b[2];
	struct watch bulk = {.name = 'b'}, other = {.name = 'o'};

	if (fd_pipe(a) || fd_pipe(b))
		bug("pipe");
	bulk.fd =
		(struct loop_fd){.fd = a[0], .events = LOOP_READ | LOOP_BULK, .ready = tell_ready};
	other.fd = (struct loop_fd){.fd = b[0], .events = LOOP_READ, .ready = tell_ready};
	loop_hold(loop, true);
	loop_add_fd(loop, &bulk.fd);
	loop_add_fd(loop, &other.fd);
	if (write(a[1], "x", 1) != 1 || write(b[1], "x", 1) != 1)
		bug("write");
	run_until(0);
	ok_str(told.buf, "or ", "held: what may wait waits");
	loop_hold(loop, false);
	strbuf_reset(&told);
	run_until(0);
	ok_str(told.buf, "br ", "then it comes");
	strbuf_reset(&told);
	loop_remove_fd(loop, &bulk.fd);
	loop_remove_fd(loop, &other.fd);
	for (int i = 0; i < 2; i++) {
		fd_close(&a[i]);
		fd_close(&b[i]);
	}
}

static void
test_timers(void)
{
	enum {
		N = 100
	};
	struct watch w[N] = {0}, again = {.name = '@', .left = 1000}, reader = {.name = 'f'};
	int p[2];
	bool sorted = true;

	for (int i = 0; i < N; i++) {
		w[i].name = (char)('0' + i % 64);
		w[i].timer =
			(struct loop_timer){.at_ns = (uint64_t)((i * 37) % N), .fire = tell_timer};
		loop_add_timer(loop, &w[i].timer);
	}
	for (int i = 0; i < N; i += 2)
		loop_remove_timer(loop, &w[i].timer);
	run_until(N);
	ok_int((long long)told.len, N, "those that were not removed fire"); /* two bytes each */
	for (size_t i = 2, last = 0; i < told.len; i += 2, last++) {
		size_t at[2] = {0};

		for (size_t k = 0; k < 2; k++)
			for (int j = 1; j < N; j += 2)
				if ((j * 37) % N == (int)(2 * (last + k) + 1))
					at[k] = (size_t)j;
		sorted &= told.buf[i] == w[at[1]].name;
	}
	ok(sorted, "the soonest first");

	w[0] = (struct watch){.name = 'x', .victim = &w[1]};
	w[0].timer = (struct loop_timer){.at_ns = 1, .fire = tell_timer};
	w[1].timer = (struct loop_timer){.at_ns = 2, .fire = tell_timer};
	loop_add_timer(loop, &w[0].timer);
	loop_add_timer(loop, &w[1].timer);
	run_until(3);
	ok_str(told.buf, "x ", "one that another removed does not fire");

	if (fd_pipe(p) || fd_write_all(p[1], "x", 1))
		return;
	reader.fd = (struct loop_fd){.fd = p[0], .events = LOOP_READ, .ready = tell_ready};
	again.timer = (struct loop_timer){.at_ns = 0, .fire = tell_timer};
	loop_add_fd(loop, &reader.fd);
	loop_add_timer(loop, &again.timer);
	run_until(1);
	ok(!strncmp(told.buf, "fr @ ", 5), "one that sets itself again does not keep fds waiting");
	loop_remove_timer(loop, &again.timer);
	loop_remove_fd(loop, &reader.fd);
	close(p[0]);
	close(p[1]);

	run_until(clock_monotonic_ns() + 1000000);
	ok(true, "a deadline ahead is waited for");
}

static void
tell_signal(void *ctx, int sig)
{
	strbuf_addf(ctx, "%s ", sig == SIGUSR1 ? "USR1" : sig == SIGTERM ? "TERM" : "?");
}

static void
tell_idle(void *ctx)
{
	++*(int *)ctx;
}

static void
test_signals(void)
{
	int idles = 0;

	loop_on_signal(loop, tell_signal, &told);
	loop_on_idle(loop, tell_idle, &idles);
	strbuf_reset(&told);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGTERM);
	run_until(0);
	ok(strstr(told.buf, "USR1") && strstr(told.buf, "TERM"), "signals arrive in the loop");
	ok_int(idles, 1, "idle work is asked for once a round");
	loop_on_idle(loop, NULL, NULL);
}

static void
test_many(void)
{
	enum {
		N = 4000
	};
	struct watch *w = xcalloc(N, sizeof(*w));
	struct rlimit rl;
	int n = 0;

	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
	for (; n < N; n++) {
		int p[2];

		if (fd_pipe(p))
			break;
		fd_write_all(p[1], "x", 1);
		close(p[1]);
		w[n] = (struct watch){
			.name = 'm', .fd = {.fd = p[0], .events = LOOP_READ, .ready = tell_ready}};
		loop_add_fd(loop, &w[n].fd);
	}
	run_until(0);
	ok_int((long long)told.len, 3LL * n, "many fds are read in one round");
	run_until(0);
	ok_int((long long)told.len, 3LL * n, "and leave the loop in another");
	run_until(0);
	ok_str(told.buf, "", "then nothing is left");
	while (n)
		close(w[--n].fd.fd);
	free(w);
}

int
main(void)
{
	sigset_t sigs;
	struct err e = ERR_INIT;

	sigemptyset(&sigs);
	sigaddset(&sigs, SIGUSR1);
	sigaddset(&sigs, SIGTERM);
	ok_int(loop_new(&sigs, &loop, &e), 0, "a loop");
	test_fds();
	test_hold();
	test_timers();
	test_signals();
	test_many();
	loop_free(loop);
	strbuf_release(&told);
	return tap_done();
}

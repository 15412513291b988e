/* SPDX-License-Identifier: MIT */
/* Durations, and the live region on a terminal of the test's own. */
#include "run/plan.h"
#include "run/report.h"
#include "tests/tap.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/loop.h"
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static uint64_t now_ns = 1000000000;
static int terminal;
static struct strbuf seen = STRBUF_INIT;

static uint64_t
now(void)
{
	return now_ns;
}

static void
check_duration(uint64_t ns, const char *want)
{
	char buf[32];

	report_duration(ns, buf, sizeof(buf));
	ok_str(buf, want, want);
}

static void
resize(unsigned short columns, unsigned short rows)
{
	struct winsize ws = {.ws_col = columns, .ws_row = rows};

	ioctl(terminal, TIOCSWINSZ, &ws);
}

static struct loop *loop;

static void
stop(struct loop_timer *t)
{
	(void)t;
	loop_stop(loop);
}

/* One turn, in which what waits is written. */
static void
turn(void)
{
	struct loop_timer timer = {.at_ns = now_ns, .fire = stop};
	struct err e = ERR_INIT;

	loop_add_timer(loop, &timer);
	loop_run(loop, &e);
}

static void
take(int master)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(master, buf, sizeof(buf))) > 0)
		strbuf_add(&seen, buf, (size_t)n);
}

/* Since the last call. */
static const char *
shows(int master)
{
	strbuf_reset(&seen);
	take(master);
	return seen.buf;
}

static void
test_region(int master)
{
	static struct taskdef def = {.command = "x"};
	static struct node nodes[] = {{.id = "a#b", .def = &def}, {.id = "日本語#b", .def = &def},
		{.id = "a-name-that-is-longer-than-a-narrow-terminal#b", .def = &def}};
	struct task t[] = {{.node = &nodes[0], .state = TASK_RUNNING},
		{.node = &nodes[1], .state = TASK_RUNNING},
		{.node = &nodes[2], .state = TASK_RUNNING}};
	struct report_options o = {.flow = FLOW_BROAD, .ntasks = 3, .nprojects = 3};
	struct node *order[] = {&nodes[0], &nodes[1], &nodes[2]};
	struct graph g = {.nodes = order, .n = 3};
	struct plan p = {.g = &g, .tasks = t};
	struct err e = ERR_INIT;
	struct report *r;
	uint64_t at;
	sigset_t none;

	sigemptyset(&none);
	if (loop_new(&none, &loop, &e))
		bug("%s", e.text);
	o.loop = loop;
	resize(80, 24);
	r = report_new(&o);
	report_started(r, &t[0], "x");
	at = report_redraw_at(r);
	ok(at > now_ns && at <= now_ns + 30000000, "drawn within 30 ms");
	now_ns += 10000000;
	report_started(r, &t[1], "x");
	report_started(r, &t[2], "x");
	ok(report_redraw_at(r) == at, "more that happens is drawn with it");
	ok_str(shows(master), "", "not before");
	report_redraw(r);
	ok_str(shows(master),
		"\n▸    10ms  a#b\n▸     0ms  日本語#b\n"
		"▸     0ms  a-name-that-is-longer-than-a-narrow-terminal#b\n"
		"  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 0/3 tasks\n",
		"a blank line, rows, a meter");
	ok(report_redraw_at(r) == now_ns + 200000000, "its times go on by themselves");
	t[0].state = TASK_DONE;
	t[0].status = TASK_SUCCESS;
	t[0].duration_ns = 10000000;
	report_ended(r, &(struct report_end){.task = &t[0]});
	ok(report_redraw_at(r) == now_ns + 30000000, "what happens is drawn sooner than that");
	ok_str(shows(master), "", "an end waits for the next redraw, too");
	resize(20, 24);
	report_redraw(r);
	ok_str(shows(master),
		"\r\033[8A\n\033[J\033[A⏺    10ms  success          no-cache  a#b\n\n▸     0ms "
		" "
		"日本語#b\n"
		"▸     0ms  a-name-…\n  1/3 tasks\n",
		"narrower: what the terminal has wrapped goes, too; no row is wider than that");
	resize(80, 4);
	report_redraw(r);
	ok_str(shows(master),
		"\r\033[4A\033[K\n▸     0ms  日本語#b\033[K\n  ━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 1/3 "
		"tasks · 1 more running\033[K\n\033[J",
		"lower: no more rows than fit; nothing is erased that is drawn again");
	report_let_go(r);
	ok(report_redraw_at(r) > now_ns, "continued");
	report_redraw(r);
	ok_str(shows(master),
		"\n▸     0ms  日本語#b\n  ━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 1/3 tasks · 1 more running\n",
		"it is drawn below what others have written");
	for (int i = 0; i < 20000; i++) {
		now_ns += 30000000;
		report_redraw(r);
	}
	ok(strlen(shows(master)) < 300000, "who does not read gets no more than fits");
	turn();
	shows(master);
	t[1].state = t[2].state = TASK_DONE;
	t[1].status = TASK_HIT;
	t[1].cache = CACHE_UP_TO_DATE;
	t[2].status = TASK_FAILED;
	t[2].exit_code = 1;
	report_ended(r, &(struct report_end){.task = &t[1]});
	report_ended(r, &(struct report_end){.task = &t[2]});
	report_footer(r, &p, 5000000, 0);
	ok(report_finish(r), "the end");
	ok(!strncmp(shows(master), "\r\033[3A\n\033[J\033[A◼", 15),
		"the region is gone before the footer");
	report_free(r);
	loop_free(loop);
}

int
main(void)
{
	struct termios raw;
	int master;

	check_duration(0, "0ms");
	check_duration(999499999, "999ms");
	check_duration(1250000000, "1.2s");
	check_duration(125000000000u, "2m 05s");
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	clock_set_monotonic(now);
	if (openpty(&master, &terminal, NULL, NULL, NULL)) {
		skip("the live region", "no pseudo-terminal");
	} else {
		/* The report writes to the descriptor, TAP to what it was before. */
		fflush(stdout);
		stdout = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w");
		dup2(terminal, STDOUT_FILENO);
		tcgetattr(terminal, &raw);
		cfmakeraw(&raw);
		tcsetattr(terminal, TCSANOW, &raw);
		fcntl(master, F_SETFL, O_NONBLOCK);
		test_region(master);
	}
	strbuf_release(&seen);
	return tap_done();
}

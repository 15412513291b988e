/* SPDX-License-Identifier: MIT */
#include "exec/direct.h"
#include "exec/job.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/loop.h"
#include "util/proc.h"
#include "util/regex.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;
static struct executor *direct;
static struct strvec env = STRVEC_INIT;
static int running;

/* One run: what to do when it says "ready", and what came of it. */
struct run {
	struct executor *ex;
	struct exec_job *job;
	struct strbuf out, err;
	size_t nread;
	bool keep_none; /* count only */
	void (*on_ready)(struct run *r);
	struct exec_result result;
	int ndone;
	/* A persistent one. */
	bool persistent, end_when_ready;
	const struct regex *ready_when;
	int nready;
};

static void
output(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct run *r = ctx;

	r->nread += n;
	if (r->keep_none)
		return;
	strbuf_add(stream == EXEC_STDOUT ? &r->out : &r->err, p, n);
	if (r->on_ready && strstr(r->out.buf, "ready")) {
		void (*fn)(struct run * r) = r->on_ready;

		r->on_ready = NULL;
		fn(r);
	}
}

static void
ready(void *ctx)
{
	struct run *r = ctx;

	r->nready++;
	if (r->end_when_ready)
		r->ex->cancel(r->ex, r->job, SIGTERM);
}

static void
done(void *ctx, struct exec_result *result)
{
	struct run *r = ctx;

	r->result = *result;
	r->ndone++;
	if (!--running)
		loop_stop(loop);
}

static void
run_start(struct run *r, const char *command, uint64_t timeout_ms, uint64_t grace_ms)
{
	struct exec_request rq = {.id = "app#test",
		.command = command,
		.env = &env,
		.cwd = -1,
		.timeout_ms = timeout_ms,
		.grace_ms = grace_ms,
		.output = output,
		.persistent = r->persistent,
		.ready_when = r->ready_when,
		.ready = ready,
		.done = done,
		.ctx = r};
	struct err e = ERR_INIT;

	strbuf_init(&r->out);
	strbuf_init(&r->err);
	if (!r->ex)
		r->ex = direct;
	running++;
	r->job = r->ex->start(r->ex, &rq, &e);
	if (!r->job)
		diag("%s", e.text);
}

static void
run_all(void)
{
	struct err e = ERR_INIT;

	if (loop_run(loop, &e))
		diag("%s", e.text);
}

static void
run(struct run *r, const char *command, uint64_t timeout_ms, uint64_t grace_ms)
{
	run_start(r, command, timeout_ms, grace_ms);
	run_all();
	ok_int(r->ndone, 1, "done once");
}

static void
run_release(struct run *r)
{
	strbuf_release(&r->out);
	strbuf_release(&r->err);
	exec_result_release(&r->result);
}

static size_t
count_fds(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	return n;
}

static void
persistent(struct run *r, const char *when, const char *command, uint64_t timeout_ms)
{
	struct err e = ERR_INIT;
	struct regex *re = when ? regex_new(when, &e) : NULL;

	r->persistent = true;
	r->ready_when = re;
	run(r, command, timeout_ms, 1000);
	regex_free(re);
	if (r->result.outcome == EXEC_NOT_STARTED)
		diag("%s", r->result.error.buf);
}

static void
test_persistent(void)
{
	struct run at_start = {.end_when_ready = true}, line = {.end_when_ready = true};
	struct run part = {.end_when_ready = true}, late = {0}, ends = {0}, slow = {0}, no = {0};
	struct run none = {.ex = direct_new(loop, "/no/sh")}, input = {.end_when_ready = true};
	size_t before = count_fds();

	/* The shell waits for input, which never comes and has no end. */
	persistent(&at_start, NULL, "read -r x; echo end", 0);
	ok_int(at_start.nready, 1, "without readyWhen it is ready at its start");
	ok(at_start.result.outcome == EXEC_STOPPED && !at_start.out.len,
		"and stays until it is ended");
	run_release(&at_start);

	persistent(&input, "input", "readlink /proc/$$/fd/0; echo input; read -r x; echo end", 0);
	ok(!strncmp(input.out.buf, "pipe:", 5) && input.nready == 1, "its input is a pipe");
	run_release(&input);

	persistent(
		&line, "^on \\d+$", "echo on x; printf '\033[1mon\033[0m 80\n' >&2; read -r x", 0);
	ok_int(line.nready, 1, "a line without its escapes, of either stream");
	run_release(&line);

	persistent(&part, "name: $", "printf 'your name: '; read -r x", 0);
	ok_int(part.nready, 1, "a line that does not end");
	run_release(&part);

	persistent(&late, "up", "echo up; echo up; exit 3", 0);
	ok(late.nready == 1 && late.result.outcome == EXEC_EXITED && late.result.exit_code == 3,
		"an end of its own after it was ready");
	run_release(&late);

	persistent(&ends, NULL, "exit 3", 0);
	ok(ends.nready == 1 && ends.result.exit_code == 3, "one that ends at once did start");
	run_release(&ends);

	persistent(&no, "up", "echo down; exit 4", 0);
	ok(!no.nready && no.result.exit_code == 4, "an end before it was ready");
	run_release(&no);

	persistent(&slow, "up", "echo down; read -r x", 50);
	ok(!slow.nready && slow.result.outcome == EXEC_TIMED_OUT, "not ready in time");
	run_release(&slow);

	persistent(&none, NULL, "true", 0);
	ok(!none.nready && none.result.outcome == EXEC_NOT_STARTED, "not started");
	run_release(&none);
	none.ex->free(none.ex);
	ok_int((long)count_fds(), (long)before, "no fd is left");
}

static void
test_exits(void)
{
	struct run r = {0}, sig = {0}, in = {0}, none = {.ex = direct_new(loop, "/no/sh")};
	struct run session = {0};

	run(&r, "echo out; echo $X $0; echo err >&2; exit 3", 0, 1000);
	ok_int(r.result.outcome, EXEC_EXITED, "ended by itself");
	ok_int(r.result.exit_code, 3, "with its code");
	ok_int(r.result.signal, 0, "by no signal");
	ok_str(r.out.buf, "out\ny sh\n", "stdout");
	ok_str(r.err.buf, "err\n", "stderr");
	ok(r.result.duration_ns > 0 && !r.result.output_cut && !r.result.sandboxed,
		"plain and whole");
	run_release(&r);

	run(&sig, "kill -9 $$", 0, 1000);
	ok(sig.result.outcome == EXEC_EXITED && sig.result.exit_code == 137 &&
			sig.result.signal == 9,
		"a signal of its own");
	run_release(&sig);

	run(&in, "cat; echo end", 0, 1000);
	ok_str(in.out.buf, "end\n", "nothing on stdin");
	run_release(&in);

	run(&session, "s=$(cat /proc/$$/stat); set -- ${s##*)}; echo $(($3 == $$)) $(($4 == $$))",
		0, 9);
	ok_str(session.out.buf, "1 1\n", "a group and a session of its own");
	run_release(&session);

	run_start(&none, "true", 0, 1000);
	ok_int(none.ndone, 0, "done comes from the loop");
	direct->cancel(direct, none.job, SIGTERM);
	none.ex->forward(none.ex, none.job, SIGSTOP);
	run_all();
	ok_int(none.result.outcome, EXEC_NOT_STARTED, "a shell that is not there");
	ok_int(none.result.exit_code, 127, "127");
	ok(strstr(none.result.error.buf, "/no/sh"), "says which: %s", none.result.error.buf);
	run_release(&none);
	none.ex->free(none.ex);
}

static void
test_usage(void)
{
	struct run r = {0}, big = {0}, flood = {.keep_none = true};

	run(&r, "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done", 0, 1000);
	ok(r.result.cpu_us > 0, "cpu time: %llu us", (unsigned long long)r.result.cpu_us);
	ok_int((long long)r.result.peak_rss_kb, 0, "a small program's memory is not known");
	run_release(&r);
	run(&big, "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c", 0, 1000);
	ok(big.result.peak_rss_kb > 150000, "a big one's is: %llu KiB",
		(unsigned long long)big.result.peak_rss_kb);
	run_release(&big);
	run(&flood, "head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2", 0, 1000);
	ok_int((long long)flood.nread, 4000000, "all output arrives");
	run_release(&flood);
}

static void
test_timeout(void)
{
	struct run term = {0}, deaf = {0}, cleans_up = {0};

	run(&term, "exec sleep 100", 20, 60000);
	ok_int(term.result.outcome, EXEC_TIMED_OUT, "timed out");
	ok(term.result.exit_code == 143 && term.result.signal == SIGTERM, "143");
	run_release(&term);

	run(&deaf, "trap '' TERM; sleep 100", 50, 20);
	ok_int(deaf.result.outcome, EXEC_TIMED_OUT, "timed out, deaf");
	ok_int(deaf.result.exit_code, 137, "137");
	run_release(&deaf);

	run(&cleans_up, "trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done", 50, 60000);
	ok_int(cleans_up.result.outcome, EXEC_TIMED_OUT, "timed out, and ended by itself then");
	ok_int(cleans_up.result.exit_code, 143, "is no success");
	ok_str(cleans_up.out.buf, "bye\n", "its last words are read");
	run_release(&cleans_up);
}

static pid_t
number_in(const struct run *r)
{
	const char *s = strpbrk(r->out.buf, "0123456789");

	return s ? (pid_t)strtol(s, NULL, 10) : 0;
}

static void
ask_to_end(struct run *r)
{
	r->ex->cancel(r->ex, r->job, SIGINT);
}

static void
ask_then_kill(struct run *r)
{
	r->ex->cancel(r->ex, r->job, SIGINT);
	r->ex->cancel(r->ex, r->job, SIGKILL);
	r->ex->cancel(r->ex, r->job, SIGKILL);
}

static void
stop_and_go_on(struct run *r)
{
	siginfo_t si;

	r->ex->forward(r->ex, r->job, SIGSTOP);
	waitid(P_PID, (id_t)number_in(r), &si, WSTOPPED | WNOWAIT);
	ok_int(si.si_status, SIGSTOP, "stopped");
	r->ex->forward(r->ex, r->job, SIGCONT);
	r->ex->cancel(r->ex, r->job, SIGTERM);
}

static void
stop_and_ask(struct run *r)
{
	siginfo_t si;

	kill(number_in(r), SIGSTOP);
	waitid(P_PID, (id_t)number_in(r), &si, WSTOPPED | WNOWAIT);
	r->ex->cancel(r->ex, r->job, SIGTERM);
}

static void
test_cancel(void)
{
	struct run polite = {.on_ready = ask_to_end}, killed = {.on_ready = ask_then_kill};
	struct run group = {.on_ready = ask_to_end}, stopped = {.on_ready = stop_and_go_on};
	struct run stays = {.on_ready = stop_and_ask};

	run(&polite, "trap 'echo cleanup; exit 5' INT; echo ready; while :; do sleep 0.01; done", 0,
		60000);
	ok_int(polite.result.outcome, EXEC_STOPPED, "stopped by us");
	ok_int(polite.result.exit_code, 5, "with its own code");
	ok_str(polite.out.buf, "ready\ncleanup\n", "after it cleaned up");
	run_release(&polite);

	run(&killed, "trap '' INT; echo ready; sleep 100", 0, 60000);
	ok(killed.result.outcome == EXEC_STOPPED && killed.result.exit_code == 137,
		"the second time there is no grace");
	run_release(&killed);

	/* the shell ends at once, what it started does not want to */
	run(&group, "echo $$; (trap '' INT; echo ready; exec sleep 100) & wait", 0, 50);
	ok_int(group.result.outcome, EXEC_STOPPED, "stopped with a deaf child");
	ok(!group.result.output_cut, "nobody holds its output");
	ok(number_in(&group) > 1 && !proc_group_is_alive(number_in(&group)),
		"which is gone when it is done");
	run_release(&group);

	run(&stopped, "echo $$ ready; exec sleep 100", 0, 60000);
	ok_int(stopped.result.signal, SIGTERM, "stopped, continued, ended");
	run_release(&stopped);

	run(&stays, "echo $$ ready; exec sleep 100", 0, 60000);
	ok_int(stays.result.signal, SIGTERM, "one that is stopped hears that it is to end");
	run_release(&stays);
}

static void
test_left_behind(void)
{
	struct run holds = {0}, quiet = {0}, ends = {0}, none = {0};
	pid_t pid;

	run(&holds, "sleep 100 & echo $!", 0, 1000);
	pid = number_in(&holds);
	ok(holds.result.outcome == EXEC_EXITED && !holds.result.exit_code,
		"the shell's exit decides");
	ok(holds.result.output_cut, "the pipes are still held: said");
	ok(holds.result.duration_ns < 200000000u, "the drain is not the task's time");
	ok(!kill(pid, 0), "what it left running is left alone");
	kill(pid, SIGKILL);
	run_release(&holds);

	run(&quiet, "sleep 100 >/dev/null 2>&1 & echo $!", 0, 1000);
	pid = number_in(&quiet);
	ok(!quiet.result.output_cut && !kill(pid, 0), "one that holds nothing goes on, too");
	ok(holds.result.left_some && quiet.result.left_some, "both are told");
	kill(pid, SIGKILL);
	run_release(&quiet);

	run(&ends, "trap '' TERM; (exec sleep 0.05) >/dev/null 2>&1 & exit 3", 0, 1000);
	ok(!ends.result.left_some && ends.result.exit_code == 3, "one that ends soon is not");
	run_release(&ends);
	run(&none, "sleep 0; echo x | cat", 0, 1000);
	ok(!none.result.left_some, "none is left");
	run_release(&none);
}

static void
test_many(void)
{
	enum {
		N = 20
	};
	struct run r[N] = {0};
	int good = 0;

	for (int i = 0; i < N; i++)
		run_start(&r[i], i % 2 ? "echo a; echo b >&2" : "exit 9", 0, 1000);
	run_all();
	for (int i = 0; i < N; i++) {
		good += r[i].ndone == 1 && r[i].result.exit_code == (i % 2 ? 0 : 9) &&
			r[i].nread == (i % 2 ? 4 : 0);
		run_release(&r[i]);
	}
	ok_int(good, N, "many at once");
}

/* A clock that runs. */
static uint64_t
hasty(void)
{
	static uint64_t now_ns;

	now_ns += 100 * 1000000u;
	return now_ns;
}

struct release {
	struct loop_timer timer;
	const struct run *r;
	int ndone;
	size_t nread;
};

static void
let_go(struct loop_timer *t)
{
	struct release *x = container_of(t, struct release, timer);

	x->ndone = x->r->ndone;
	x->nread = x->r->nread;
	loop_hold(loop, false);
}

/* What it printed last is still in its pipe when the drain would be over. */
static void
test_held(void)
{
	struct run r = {0};
	struct release x = {.timer = {.fire = let_go}, .r = &r};
	siginfo_t si;

	clock_set_monotonic(hasty);
	loop_hold(loop, true);
	run_start(&r, "printf held", 0, 100);
	waitid(P_PID, (id_t)r.job->proc.pid, &si, WEXITED | WNOWAIT);
	x.timer.at_ns = clock_monotonic_ns() + 5000 * 1000000ull;
	loop_add_timer(loop, &x.timer);
	run_all();
	clock_set_monotonic(NULL);
	ok(!x.ndone && !x.nread, "held: nothing is read, and nothing ends");
	ok_str(r.out.buf, "held", "then it is all there");
	ok(r.ndone == 1 && !r.result.output_cut, "and nothing was cut");
	run_release(&r);
}

int
main(void)
{
	sigset_t none;
	struct err e = ERR_INIT;
	size_t fds;

	/* as the core is */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&none);
	if (loop_new(&none, &loop, &e))
		return 99;
	strvec_push(&env, "PATH=/usr/bin:/bin");
	strvec_push(&env, "X=y");
	direct = direct_new(loop, "/bin/sh");
	fds = count_fds();
	test_persistent();
	test_exits();
	test_usage();
	test_timeout();
	test_cancel();
	test_left_behind();
	test_held();
	test_many();
	ok_int((long long)count_fds(), (long long)fds, "no fd is left open");
	direct->free(direct);
	loop_free(loop);
	strvec_release(&env);
	return tap_done();
}

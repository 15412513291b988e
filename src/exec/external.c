/* SPDX-License-Identifier: MIT */
#include "exec/external.h"
#include "exec/wire.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/mask.h"
#include "util/path.h"
#include "util/proc.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	READ_SIZE = 65536,
	SAID_MAX = 4096,  /* of its standard error, the last */
	SHOWN_MAX = 200,  /* of that, in a message */
	KILLED_MS = 2000, /* what SIGKILL gets */
};

/* What became of an id that vx has given. */
enum state {
	ASKED,   /* accepts */
	RUNNING, /* execute */
	ABANDONED, /* its end is decided; what still comes of it counts for nothing, until its result */
	OVER
};
struct entry {
	enum state state;
	enum wire_type kind; /* of the answer: accepted or result */
	const char *task;
	union {
		struct exec_job *job;
		struct {
			void (*answer)(void *ctx, bool takes);
			void *ctx;
		};
	};
};

struct external {
	struct executor ex;
	struct loop *loop;
	struct external_options o; /* command is owned; env is gone */
	struct proc proc;          /* pid 0: it is gone */
	struct loop_fd to, from, errors, exit;
	struct strbuf out; /* what it has not taken yet, from `sent` on */
	size_t sent;
	struct strbuf line, said;
	/* For an answer; for taking what is written; for the collapse, which is never within a call. */
	struct loop_timer patience, unread, collapse;
	char *name;     /* once described */
	bool handed;    /* a task's environment: what it prints may hold secrets from now on */
	bool hurry;     /* a kill was asked for */
	bool abandoned; /* a task */
	struct strbuf broken; /* how; empty: it is not */
	size_t nasked, nrunning;
	struct entry *entries; /* by id - 1 */
	size_t nentries, cap;
};

/* A task that it has. */
struct exec_job {
	struct external *x;
	struct exec_request rq;
	uint64_t id, begun_ns;
	struct loop_timer timeout, grace;
	enum exec_outcome stopped; /* EXEC_EXITED: it is not */
};

static void
set_timer(struct external *x, struct loop_timer *t, uint64_t ms)
{
	loop_remove_timer(x->loop, t);
	t->at_ns = clock_monotonic_ns() + ms * 1000000u;
	loop_add_timer(x->loop, t);
}

static struct external *
of(struct executor *ex)
{
	return container_of(ex, struct external, ex);
}

/* ------------------------------------------------------------------ going wrong */

static void
add_its_name(const struct external *x, struct strbuf *out)
{
	strbuf_adds(out, "executor ");
	strbuf_add_sanitised(
		out, x->name ? x->name : x->o.command, strlen(x->name ? x->name : x->o.command));
}

/* "executor farm: app#build: TEXT; that is a bug of the executor, ./tools/farm". */
static void
add_blame(const struct external *x, const char *task, const char *text, struct strbuf *out)
{
	add_its_name(x, out);
	strbuf_addf(out, ": %s%s%s; that is a bug of the executor", task ? task : "",
		task ? ": " : "", text);
	if (x->name) {
		strbuf_adds(out, ", ");
		strbuf_add_sanitised(out, x->o.command, strlen(x->o.command));
	}
}

static void
close_pipes(struct external *x)
{
	struct loop_fd *fds[] = {&x->to, &x->from, &x->errors, &x->exit};

	for (size_t i = 0; i < array_len(fds); i++)
		loop_remove_fd(x->loop, fds[i]);
	for (size_t i = 0; i < 3; i++)
		fd_close(&fds[i]->fd);
}

/*
 * Its group goes with it: while it is not reaped the number is nobody else's. What has left the group is looked
 * for when the run ends.
 */
static void
kill_and_reap(struct external *x)
{
	struct pollfd end = {x->proc.pidfd, POLLIN, 0};

	if (!x->proc.pid)
		return;
	kill(-x->proc.pid, SIGKILL);
	poll(&end, 1, KILLED_MS);
	waitpid(x->proc.pid, NULL, WNOHANG);
	fd_close(&x->proc.pidfd);
	x->proc.pid = 0;
}

/* Nothing it says counts any more, and x->broken says why. Those who wait hear of it from the loop. */
static void
give_up(struct external *x)
{
	close_pipes(x);
	loop_remove_timer(x->loop, &x->patience);
	loop_remove_timer(x->loop, &x->unread);
	kill_and_reap(x);
	set_timer(x, &x->collapse, 0);
}

static void
break_down(struct external *x, const char *task, const char *text)
{
	if (x->broken.len)
		return;
	add_blame(x, task, text, &x->broken);
	give_up(x);
}

static void finish(struct exec_job *j, struct exec_result *r, enum state then);

static void
fail_job(struct exec_job *j, const char *text, enum state then)
{
	struct exec_result r;

	exec_result_init(&r);
	r.outcome = EXEC_BROKEN;
	r.exit_code = 1;
	r.duration_ns = clock_monotonic_ns() - j->begun_ns;
	strbuf_adds(&r.error, text);
	finish(j, &r, then);
}

static void
collapsed(struct loop_timer *t)
{
	struct external *x = container_of(t, struct external, collapse);
	bool blamed = x->nrunning > 0;

	/* done() may bring new ones nowhere: a broken one takes none. */
	for (size_t i = 0; i < x->nentries && x->nrunning; i++)
		if (x->entries[i].state == RUNNING)
			fail_job(x->entries[i].job, x->broken.buf, OVER);
	x->o.news(x->o.ctx, &x->ex, blamed ? EXTERNAL_BLAMED : EXTERNAL_BROKEN, x->broken.buf);
}

/* ------------------------------------------------------------------ writing */

static void
write_out(struct external *x)
{
	while (x->sent < x->out.len) {
		ssize_t n = write(x->to.fd, x->out.buf + x->sent, x->out.len - x->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			break_down(x, NULL, "it has closed its standard input");
			return;
		}
		if (n < 0)
			break;
		x->sent += (size_t)n;
		loop_remove_timer(x->loop, &x->unread);
	}
	if (x->sent == x->out.len) {
		strbuf_reset(&x->out);
		x->sent = 0;
	} else if (!x->unread.slot) {
		set_timer(x, &x->unread, x->o.answer_ms);
	}
	x->to.events = x->out.len ? LOOP_WRITE : 0;
	loop_update_fd(x->loop, &x->to);
}

static void
to_ready(struct loop_fd *w, unsigned events attr_unused)
{
	write_out(container_of(w, struct external, to));
}

static void
unread_fired(struct loop_timer *t)
{
	struct external *x = container_of(t, struct external, unread);
	size_t before = x->sent;
	char text[100];

	/* It may be vx that was busy. */
	write_out(x);
	if (x->broken.len || !x->out.len || x->sent != before)
		return;
	snprintf(text, sizeof(text), "it has not read its standard input for %llu ms",
		(unsigned long long)x->o.answer_ms);
	break_down(x, NULL, text);
}

/* ------------------------------------------------------------------ what it says of tasks */

static void
expect_answer(struct external *x)
{
	if (!x->name || x->nasked)
		set_timer(x, &x->patience, x->o.answer_ms);
	else
		loop_remove_timer(x->loop, &x->patience);
}

static void
end_entry(struct external *x, struct entry *en, enum state then)
{
	x->nasked -= en->state == ASKED;
	x->nrunning -= en->state == RUNNING;
	en->state = then;
	en->job = NULL;
}

/* What vx has decided on stands, whatever the executor made of it. */
static void
finish(struct exec_job *j, struct exec_result *r, enum state then)
{
	struct external *x = j->x;

	if (j->stopped == EXEC_TIMED_OUT)
		r->exit_code = 128 + (then == ABANDONED ? SIGKILL : SIGTERM);
	if (j->stopped != EXEC_EXITED && r->outcome != EXEC_BROKEN)
		r->outcome = j->stopped;
	loop_remove_timer(x->loop, &j->timeout);
	loop_remove_timer(x->loop, &j->grace);
	end_entry(x, &x->entries[j->id - 1], then);
	j->rq.done(j->rq.ctx, r);
	free(j);
}

static void
say_cancel(struct external *x, uint64_t id, int sig)
{
	if (x->broken.len)
		return;
	wire_add_cancel(&x->out, id, sig);
	write_out(x);
}

/* One message about it was wrong. */
static void
blame_for_task(struct external *x, struct entry *en, uint64_t id, const char *text, bool was_result)
{
	cleanup_strbuf struct strbuf blame = STRBUF_INIT;
	struct exec_job *j = en->job;

	add_blame(x, en->task, text, &blame);
	if (!was_result)
		say_cancel(x, id, SIGKILL);
	/* That may have been the end of it all. */
	if (!x->broken.len)
		fail_job(j, blame.buf, was_result ? OVER : ABANDONED);
}

static void
take_result(struct exec_job *j, struct wire_message *m)
{
	struct exec_result r = m->result;

	exec_result_init(&m->result);
	r.outcome = EXEC_EXITED;
	r.signal = r.exit_code > 128 && proc_signal_name(r.exit_code - 128) ? r.exit_code - 128 : 0;
	if (m->where)
		strvec_pushf(&r.notes, "executed by %s: %s", j->x->name, m->where);
	finish(j, &r, OVER);
}

static void
take_failure(struct external *x, struct entry *en, const char *why)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	add_its_name(x, &text);
	strbuf_addf(&text, " failed in execute for %s: %s", en->task, why);
	fail_job(en->job, text.buf, OVER);
}

static void
describe_itself(struct external *x, struct wire_message *m)
{
	if (x->name) {
		break_down(x, NULL, "it has described itself twice");
		return;
	}
	x->ex.name = x->name = take_ptr(&m->name);
	x->ex.remote = m->remote;
	x->ex.capacity = m->capacity;
	expect_answer(x);
	x->o.news(x->o.ctx, &x->ex, EXTERNAL_DESCRIBED, NULL);
}

static void
answer(struct external *x, struct entry *en, struct wire_message *m)
{
	void (*fn)(void *ctx, bool takes) = en->answer;
	void *ctx = en->ctx;

	/* The run cannot go on without the answer. */
	if (m->type == WIRE_FAILED) {
		add_its_name(x, &x->broken);
		strbuf_addf(&x->broken, " failed in accepts for %s: %s", en->task, m->data.buf);
		give_up(x);
		return;
	}
	end_entry(x, en, OVER);
	expect_answer(x);
	fn(ctx, m->accepts);
}

static bool
fits(const struct entry *en, enum wire_type type)
{
	return type == WIRE_FAILED ||
	       (en->kind == WIRE_ACCEPTED ? type == WIRE_ACCEPTED : type != WIRE_ACCEPTED);
}

/* A message with an id that vx has given. */
static void
take_message(struct external *x, struct wire_message *m)
{
	struct entry *en = &x->entries[m->id - 1];
	bool ends = m->type == WIRE_RESULT || m->type == WIRE_FAILED;
	char text[160];

	if (en->state == OVER) {
		snprintf(text, sizeof(text), "%s came when all was said", wire_type_name(m->type));
		break_down(x, en->task, text);
	} else if (!fits(en, m->type)) {
		snprintf(text, sizeof(text), "%s is no answer to %s", wire_type_name(m->type),
			en->kind == WIRE_ACCEPTED ? "accepts" : "execute");
		break_down(x, en->task, text);
	} else if (en->state == ABANDONED) {
		if (ends)
			en->state = OVER;
	} else if (en->state == ASKED) {
		answer(x, en, m);
	} else if (m->type == WIRE_RESULT) {
		take_result(en->job, m);
	} else if (m->type == WIRE_FAILED) {
		take_failure(x, en, m->data.buf);
	} else if (m->data.len) {
		en->job->rq.output(en->job->rq.ctx,
			m->type == WIRE_STDOUT ? EXEC_STDOUT : EXEC_STDERR, m->data.buf,
			m->data.len);
	}
}

/* ------------------------------------------------------------------ reading */

static void
take_line(struct external *x, const char *line, size_t n)
{
	struct wire_message m;
	struct err e = ERR_INIT;
	int r = wire_read(line, n, x->o.mask, &m, &e);
	bool known = m.id && m.id <= x->nentries;
	struct entry *en = known ? &x->entries[m.id - 1] : NULL;
	char text[160];

	if (r && en && en->state == RUNNING)
		blame_for_task(x, en, m.id, e.text, m.type == WIRE_RESULT || m.type == WIRE_FAILED);
	else if (r)
		break_down(x, en ? en->task : NULL, e.text);
	else if (m.type == WIRE_DESCRIPTION)
		describe_itself(x, &m);
	else if (!x->name)
		break_down(x, NULL, "it says something else before its description");
	else if (known)
		take_message(x, &m);
	else {
		snprintf(text, sizeof(text), "%s has the id %llu, which vx has not given",
			wire_type_name(m.type), (unsigned long long)m.id);
		break_down(x, NULL, text);
	}
	wire_message_release(&m);
}

/* Whole lines out of what has come. */
static void
take_lines(struct external *x)
{
	size_t at = 0;
	char *end;

	while (!x->broken.len && (end = memchr(x->line.buf + at, '\n', x->line.len - at))) {
		size_t n = (size_t)(end - x->line.buf) - at;

		*end = '\0';
		if (n > WIRE_LINE_MAX)
			break;
		take_line(x, x->line.buf + at, n);
		at += n + 1;
	}
	if (x->broken.len)
		return;
	if (x->line.len - at > WIRE_LINE_MAX) {
		break_down(x, NULL, "a line is longer than 256 KiB");
		return;
	}
	memmove(x->line.buf, x->line.buf + at, x->line.len - at);
	strbuf_truncate(&x->line, x->line.len - at);
}

/* One read. False: nothing is there at the moment, or for good (then from.fd is closed). */
static bool
read_once(struct external *x)
{
	ssize_t n;

	strbuf_grow(&x->line, READ_SIZE);
	n = read(x->from.fd, x->line.buf + x->line.len, READ_SIZE);
	if (n > 0) {
		x->line.len += (size_t)n;
		x->line.buf[x->line.len] = '\0';
		take_lines(x);
		return !x->broken.len;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	loop_remove_fd(x->loop, &x->from);
	fd_close(&x->from.fd);
	return false;
}

static void
from_ready(struct loop_fd *w, unsigned events attr_unused)
{
	struct external *x = container_of(w, struct external, from);

	/* Its end says more, and comes at once where it has ended. */
	if (!read_once(x) && !x->broken.len && x->from.fd < 0)
		set_timer(x, &x->patience, EXEC_DRAIN_MS);
}

static void
read_errors(struct external *x)
{
	char buf[READ_SIZE];
	ssize_t n = read(x->errors.fd, buf, sizeof(buf));

	if (n > 0) {
		cleanup_strbuf struct strbuf shown = STRBUF_INIT;

		strbuf_add_sanitised(&shown, buf, (size_t)n);
		log_debug("exec", "%s: %s", x->o.command, shown.buf);
		strbuf_add(&x->said, buf, (size_t)n);
		if (x->said.len > SAID_MAX) {
			memmove(x->said.buf, x->said.buf + x->said.len - SAID_MAX, SAID_MAX);
			strbuf_truncate(&x->said, SAID_MAX);
		}
	} else if (!n || (errno != EAGAIN && errno != EINTR)) {
		loop_remove_fd(x->loop, &x->errors);
		fd_close(&x->errors.fd);
	}
}

static void
errors_ready(struct loop_fd *w, unsigned events attr_unused)
{
	read_errors(container_of(w, struct external, errors));
}

static void
patience_fired(struct loop_timer *t)
{
	struct external *x = container_of(t, struct external, patience);
	const char *task = NULL;
	char text[100];

	if (x->from.fd < 0) {
		break_down(x, NULL, "it has closed its standard output");
		return;
	}
	/* It may be vx that was busy. */
	if (read_once(x)) {
		expect_answer(x);
		return;
	}
	if (x->broken.len || x->patience.slot)
		return;
	for (size_t i = 0; i < x->nentries && !task; i++)
		if (x->entries[i].state == ASKED)
			task = x->entries[i].task;
	snprintf(text, sizeof(text), "no answer to %s within %llu ms",
		x->name ? "accepts" : "describe", (unsigned long long)x->o.answer_ms);
	break_down(x, task, text);
}

/* ------------------------------------------------------------------ its end */

/* The last line of its standard error that says something; from when a task's environment was handed over it may hold
 * what nobody is to see. */
static void
add_last_words(struct external *x, struct strbuf *out)
{
	cleanup_strbuf struct strbuf words = STRBUF_INIT;
	size_t n, at;

	if (x->errors.fd >= 0)
		read_errors(x);
	for (n = x->said.len; n && x->said.buf[n - 1] == '\n'; n--)
		;
	for (at = n; at && x->said.buf[at - 1] != '\n'; at--)
		;
	if (!n || x->handed)
		return;
	/* vx's own environment it has from the start. */
	mask_whole(x->o.mask, x->said.buf + at, n - at, &words);
	strbuf_adds(out, ", and its last words were: ");
	strbuf_add_sanitised(out, words.buf, words.len < SHOWN_MAX ? words.len : SHOWN_MAX);
}

static void
exit_ready(struct loop_fd *w, unsigned events attr_unused)
{
	struct external *x = container_of(w, struct external, exit);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	siginfo_t si = {0};

	/* What it said before: no more than a pipe holds, as somebody else may have it open. */
	for (int i = 0; i < 4 && x->from.fd >= 0 && !x->broken.len; i++)
		if (!read_once(x))
			break;
	if (x->broken.len)
		return;
	waitid(P_PID, (id_t)x->proc.pid, &si, WEXITED | WNOHANG | WNOWAIT);
	if (si.si_code == CLD_EXITED)
		strbuf_addf(&text, "it has ended with exit code %d", si.si_status);
	else
		strbuf_addf(&text, "it was ended by %s",
			proc_signal_name(si.si_status) ? proc_signal_name(si.si_status)
						       : "a signal");
	add_last_words(x, &text);
	break_down(x, NULL, text.buf);
}

/* Closes its input, and hears what it still says until it has ended or the grace is over. */
static void
hear_out(struct external *x)
{
	uint64_t deadline = clock_monotonic_ns() + x->o.grace_ms * 1000000u;
	bool ended = false;

	loop_remove_fd(x->loop, &x->to);
	fd_close(&x->to.fd);
	while (!ended && !x->broken.len && !x->hurry) {
		struct pollfd p[] = {{x->proc.pidfd, POLLIN, 0}, {x->from.fd, POLLIN, 0},
			{x->errors.fd, POLLIN, 0}};
		uint64_t now = clock_monotonic_ns();

		if (now >= deadline ||
			poll(p, array_len(p), (int)((deadline - now) / 1000000) + 1) < 0)
			break;
		if (p[1].revents)
			read_once(x);
		if (p[2].revents)
			read_errors(x);
		ended = p[0].revents && !p[1].revents;
	}
	if (x->broken.len)
		return;
	if (!ended)
		x->o.news(x->o.ctx, &x->ex, EXTERNAL_KILLED, NULL);
	else if (x->abandoned)
		x->o.news(x->o.ctx, &x->ex, EXTERNAL_LEFT, NULL);
}

/* vx itself cannot go on: nobody waits for their ends. */
static void
drop_jobs(struct external *x)
{
	for (size_t i = 0; i < x->nentries && x->nrunning; i++) {
		struct entry *en = &x->entries[i];
		struct exec_job *j = en->job;

		if (en->state != RUNNING)
			continue;
		loop_remove_timer(x->loop, &j->timeout);
		loop_remove_timer(x->loop, &j->grace);
		end_entry(x, en, ABANDONED);
		free(j);
		x->hurry = true;
	}
}

static void
free_external(struct executor *ex)
{
	struct external *x = of(ex);
	bool was_broken = x->broken.len > 0;

	drop_jobs(x);
	if (x->proc.pid)
		hear_out(x);
	close_pipes(x);
	kill_and_reap(x);
	/* What it said at the end. */
	if (x->broken.len && (!was_broken || x->collapse.slot))
		x->o.news(x->o.ctx, &x->ex, EXTERNAL_BROKEN, x->broken.buf);
	loop_remove_timer(x->loop, &x->patience);
	loop_remove_timer(x->loop, &x->unread);
	loop_remove_timer(x->loop, &x->collapse);
	strbuf_release(&x->out);
	strbuf_release(&x->line);
	strbuf_release(&x->said);
	strbuf_release(&x->broken);
	free((void *)(uintptr_t)x->o.command);
	free(x->name);
	free(x->entries);
	free(x);
}

/* ------------------------------------------------------------------ tasks */

static struct entry *
new_entry(struct external *x, enum state state, enum wire_type kind, const char *task)
{
	GROW(x->entries, x->nentries + 1, x->cap);
	x->entries[x->nentries] = (struct entry){.state = state, .kind = kind, .task = task};
	return &x->entries[x->nentries++];
}

static int
refuse_broken(const struct external *x, struct err *e)
{
	return x->broken.len ? err_set(e, ERR_IO, 0, "%s", x->broken.buf) : 0;
}

static int
ask(struct executor *ex, const struct exec_view *v, void (*fn)(void *ctx, bool takes), void *ctx,
	struct err *e)
{
	struct external *x = of(ex);
	struct entry *en;

	if (refuse_broken(x, e) || wire_add_accepts(&x->out, x->nentries + 1, v, e))
		return -1;
	en = new_entry(x, ASKED, WIRE_ACCEPTED, v->task_id);
	en->answer = fn;
	en->ctx = ctx;
	x->nasked++;
	if (!x->patience.slot)
		expect_answer(x);
	write_out(x);
	return 0;
}

/* Nobody waits for it any more. What it still runs of the task is its own matter, until the end of the run. */
static void
abandon(struct exec_job *j)
{
	struct external *x = j->x;
	struct exec_result r;

	say_cancel(x, j->id, SIGKILL);
	if (x->broken.len)
		return;
	x->abandoned = true;
	exec_result_init(&r);
	r.outcome = j->stopped;
	r.exit_code = 128 + SIGKILL;
	r.signal = SIGKILL;
	r.duration_ns = clock_monotonic_ns() - j->begun_ns;
	finish(j, &r, ABANDONED);
}

static void
grace_fired(struct loop_timer *t)
{
	abandon(container_of(t, struct exec_job, grace));
}

static void
stop(struct exec_job *j, enum exec_outcome why, int sig)
{
	struct external *x = j->x;

	if (x->broken.len)
		return; /* its end is on its way */
	if (j->stopped == EXEC_EXITED) {
		j->stopped = why;
		set_timer(x, &j->grace, j->rq.grace_ms);
	}
	loop_remove_timer(x->loop, &j->timeout);
	x->hurry |= sig == SIGKILL;
	if (sig == SIGKILL)
		set_timer(x, &j->grace, 0);
	else
		say_cancel(x, j->id, sig);
}

static void
timeout_fired(struct loop_timer *t)
{
	stop(container_of(t, struct exec_job, timeout), EXEC_TIMED_OUT, SIGTERM);
}

static struct exec_job *
start(struct executor *ex, const struct exec_request *rq, struct err *e)
{
	struct external *x = of(ex);
	struct exec_job *j;

	if (refuse_broken(x, e) || wire_add_execute(&x->out, x->nentries + 1, rq, e))
		return NULL;
	j = xcalloc(1, sizeof(*j));
	*j = (struct exec_job){.x = x,
		.rq = *rq,
		.id = x->nentries + 1,
		.begun_ns = clock_monotonic_ns(),
		.timeout.fire = timeout_fired,
		.grace.fire = grace_fired,
		.stopped = EXEC_EXITED};
	j->rq.env = NULL;
	j->rq.handed = NULL;
	new_entry(x, RUNNING, WIRE_RESULT, rq->id)->job = j;
	x->nrunning++;
	x->handed = true;
	if (rq->timeout_ms)
		set_timer(x, &j->timeout, rq->timeout_ms);
	write_out(x);
	return j;
}

static void
cancel(struct executor *ex attr_unused, struct exec_job *j, int sig)
{
	stop(j, EXEC_STOPPED, sig);
}

static void
forward(struct executor *ex, struct exec_job *j attr_unused, int sig)
{
	struct external *x = of(ex);

	if (!x->proc.pid)
		return;
	kill(-x->proc.pid, sig);
	if (sig == SIGCONT && x->unread.slot)
		set_timer(x, &x->unread, x->o.answer_ms);
}

/* ------------------------------------------------------------------ the start */

/* Where the program is: in the workspace no link is followed, as a task may have made it. Owned. */
static char *
find_program(const struct external_options *o, struct err *e)
{
	bool is_inside = *o->command != '/';
	cleanup_free char *path = path_normalise(o->command);
	cleanup_close int fd = is_inside ? fs_open_beneath(o->rootfd, path, O_PATH, 0)
					 : open(o->command, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		err_set(e, ERR_CONFIG, errno == ELOOP && is_inside ? 0 : errno, "executor %s%s",
			o->command,
			errno == ELOOP && is_inside
				? ": there is a symbolic link on the way: name the file itself"
				: "");
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111)) {
		err_set(e, ERR_CONFIG, 0, "executor %s: is no executable file", o->command);
		return NULL;
	}
	return is_inside ? path_join(o->root_path, path) : take_ptr(&path);
}

/* All of vx's own, but for what of the workspace stands on PATH: a package could put an interpreter there. */
static void
build_env(const struct external_options *o, struct strvec *env)
{
	cleanup_free char *path = NULL;

	for (char *const *v = o->env; *v; v++)
		strvec_push(env, *v);
	path = proc_path_outside(
		strvec_getenv(env, "PATH") ? strvec_getenv(env, "PATH") : "", o->root_path);
	strvec_setenv(env, "PATH", *path ? path : "/usr/bin:/bin");
	strvec_setenv(env, "VX_RUN_WORKSPACE", o->root_path);
}

static int
start_program(struct external *x, const char *file, struct strvec *env, struct err *e)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
	char *name = xstrdup(file), *argv[] = {name, NULL};
	int r = -1;

	if (!fd_pipe(in) && !fd_pipe(out) && !fd_pipe(errors) && !fd_set_nonblock(in[1]) &&
		!fd_set_nonblock(out[0]) && !fd_set_nonblock(errors[0])) {
		const struct proc_fd fds[] = {{in[0], 0}, {out[1], 1}, {errors[1], 2}};

		r = proc_start(
			&(struct proc_spec){
				.file = file,
				.argv = argv,
				.env = strvec_argv(env),
				.cwd = x->o.rootfd,
				.fds = fds,
				.nfds = array_len(fds),
				.new_session = true,
			},
			&x->proc, e);
	} else {
		err_set(e, ERR_IO, errno, "make a pipe");
	}
	fd_close(&in[0]);
	fd_close(&out[1]);
	fd_close(&errors[1]);
	x->to = (struct loop_fd){.fd = in[1], .ready = to_ready};
	x->from = (struct loop_fd){
		.fd = out[0], .events = LOOP_READ | LOOP_BULK, .ready = from_ready};
	x->errors = (struct loop_fd){.fd = errors[0], .events = LOOP_READ, .ready = errors_ready};
	free(name);
	return r ? err_wrap(e, "executor %s", x->o.command) : 0;
}

struct executor *
external_new(struct loop *l, const struct external_options *o, struct err *e)
{
	cleanup_free char *file = find_program(o, e);
	cleanup_strvec struct strvec env = STRVEC_INIT;
	struct external *x;

	if (!file)
		return NULL;
	x = xcalloc(1, sizeof(*x));
	*x = (struct external){
		.ex = {.name = o->command,
			.start = start,
			.cancel = cancel,
			.forward = forward,
			.free = free_external,
			.ask = ask},
		.loop = l,
		.o = *o,
		.proc = {0, -1},
		.out = STRBUF_INIT,
		.line = STRBUF_INIT,
		.said = STRBUF_INIT,
		.broken = STRBUF_INIT,
		.patience.fire = patience_fired,
		.unread.fire = unread_fired,
		.collapse.fire = collapsed,
	};
	x->ex.name = x->o.command = xstrdup(o->command);
	x->o.env = NULL;
	build_env(o, &env);
	if (start_program(x, file, &env, e)) {
		close_pipes(x);
		free((void *)(uintptr_t)x->o.command);
		free(x);
		return NULL;
	}
	x->exit = (struct loop_fd){.fd = x->proc.pidfd, .events = LOOP_READ, .ready = exit_ready};
	loop_add_fd(l, &x->to);
	loop_add_fd(l, &x->from);
	loop_add_fd(l, &x->errors);
	loop_add_fd(l, &x->exit);
	wire_add_describe(&x->out);
	expect_answer(x);
	write_out(x);
	return &x->ex;
}

/* SPDX-License-Identifier: MIT */
#include "run/probe.h"
#include "exec/env.h"
#include "exec/exec.h"
#include "run/report.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/proc.h"
#include "util/utf8.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* The set. */

void
probe_set_init(struct probe_set *set)
{
	*set = (struct probe_set){0};
	htab_init(&set->shared);
}

void
probe_set_release(struct probe_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		strbuf_release(&set->v[i]->out);
		strbuf_release(&set->v[i]->err);
		free(set->v[i]);
	}
	free(set->v);
	htab_release(&set->shared);
	*set = (struct probe_set){0};
}

struct probe *
probe_set_add(
	struct probe_set *set, const struct project *project, const char *command, struct task *own)
{
	cleanup_strbuf struct strbuf id = STRBUF_INIT;
	struct probe *p = NULL;

	/* no directory of a project begins with a slash */
	strbuf_adds(&id, project ? project->dir : "/");
	strbuf_addch(&id, '\0');
	strbuf_adds(&id, command);
	if (!own)
		p = htab_getn(&set->shared, id.buf, id.len);
	if (p)
		return p;
	p = xcalloc(1, sizeof(*p));
	p->project = project;
	p->command = command;
	p->own = own;
	strbuf_init(&p->out);
	strbuf_init(&p->err);
	GROW(set->v, set->n + 1, set->cap);
	set->v[set->n++] = p;
	if (!own)
		htab_putn_copy(&set->shared, id.buf, id.len, p);
	return p;
}

/* What it said. */

static bool
is_blank(char c)
{
	return c && strchr(" \t\r\n\v\f", c);
}

static void
trim(struct strbuf *sb)
{
	size_t from = 0, to = sb->len;

	while (to && is_blank(sb->buf[to - 1]))
		to--;
	while (from < to && is_blank(sb->buf[from]))
		from++;
	strbuf_truncate(sb, to);
	memmove(sb->buf, sb->buf + from, to - from);
	strbuf_truncate(sb, to - from);
}

/* As a person has to know it: the last line of what it said, which mostly tells. */
static void
add_last_line(struct strbuf *out, const struct strbuf *said)
{
	const char *line = memrchr(said->buf, '\n', said->len);

	line = line ? line + 1 : said->buf;
	if (said->len)
		strbuf_adds(out, ": ");
	strbuf_add_sanitised(out, line, (size_t)(said->buf + said->len - line));
}

static void
describe(const struct probe *p, const struct exec_result *r, struct strbuf *out)
{
	const char *name = r->signal ? proc_signal_name(r->signal) : NULL;
	char limit[32];

	if (p->too_much) {
		strbuf_addf(out, "prints more than %d bytes", PROBE_OUTPUT_MAX);
	} else if (r->outcome == EXEC_NOT_STARTED) {
		strbuf_add_sanitised(out, r->error.buf, r->error.len);
	} else if (r->outcome == EXEC_TIMED_OUT) {
		report_duration(p->by->timeout_ms * 1000000, limit, sizeof(limit));
		strbuf_addf(out, "timed out after %s (%s)", limit, p->by->timeout_by);
	} else if (r->outcome == EXEC_STOPPED) {
		strbuf_adds(out, "was stopped");
	} else if (r->exit_code) {
		strbuf_addf(out, "exit code %d%s%s%s", r->exit_code, name ? " (" : "",
			name ? name : "", name ? ")" : "");
		add_last_line(out, p->err.len ? &p->err : &p->out);
	} else if (!utf8_is_valid(p->out.buf, p->out.len) ||
		   !utf8_is_valid(p->err.buf, p->err.len)) {
		strbuf_adds(out, "prints what is not UTF-8");
	}
}

static void
judge(struct probe *p, const struct exec_result *r)
{
	cleanup_strbuf struct strbuf what = STRBUF_INIT, command = STRBUF_INIT;

	trim(&p->out);
	trim(&p->err);
	describe(p, r, &what);
	if (!what.len)
		return;
	strbuf_add_sanitised(&command, p->command, strlen(p->command));
	err_set(&p->why, ERR_IO, 0, "cache.inputs.%s \"%s\": %s",
		p->project ? "runtime" : "workspaceRuntime", command.buf, what.buf);
}

/* Running. */

static void
on_output(void *ctx, enum exec_stream stream, const char *bytes, size_t n)
{
	struct probe *p = ctx;
	struct strbuf *to = stream == EXEC_STDOUT ? &p->out : &p->err;

	if (p->too_much)
		return;
	p->too_much = n > PROBE_OUTPUT_MAX - to->len;
	if (!p->too_much)
		strbuf_add(to, bytes, n);
	else
		p->by->executor->cancel(p->by->executor, p->job, SIGKILL);
}

static void
on_done(void *ctx, struct exec_result *r)
{
	struct probe *p = ctx;
	struct prober *by = p->by;

	judge(p, r);
	exec_result_release(r);
	by->running[p->slot] = by->running[--by->nrunning];
	by->running[p->slot]->slot = p->slot;
	p->job = NULL;
	p->ended = true;
	by->done(by->ctx, p);
}

static int
start(struct prober *r, struct probe *p, struct err *e)
{
	const char *dir = p->project ? p->project->dir : "";
	cleanup_strvec struct strvec env = STRVEC_INIT;
	cleanup_close int cwd = fs_open_beneath(r->w->rootfd, dir, O_PATH | O_DIRECTORY, 0);

	if (cwd < 0)
		return err_set(e, ERR_IO, errno, "open %s", *dir ? dir : ".");
	env_build_probe(r->w->path, dir, environ, &env);
	p->by = r;
	p->job = r->executor->start(r->executor,
		&(struct exec_request){
			.id = p->command,
			.command = p->command,
			.cwd = cwd,
			.env = &env,
			.timeout_ms = r->timeout_ms,
			.grace_ms = r->grace_ms,
			.output = on_output,
			.done = on_done,
			.ctx = p,
		},
		e);
	return p->job ? 0 : -1;
}

void
prober_add(struct prober *r, struct probe *p)
{
	GROW(r->queue, r->nqueue + 1, r->queue_cap);
	r->queue[r->nqueue++] = p;
}

bool
prober_start(struct prober *r)
{
	struct probe *p;

	if (!prober_has_waiting(r))
		return false;
	p = r->queue[r->next++];
	if (start(r, p, &p->why)) {
		p->ended = true;
		r->done(r->ctx, p);
		return true;
	}
	GROW(r->running, r->nrunning + 1, r->running_cap);
	p->slot = r->nrunning;
	r->running[r->nrunning++] = p;
	return true;
}

void
prober_cancel(struct prober *r, int sig)
{
	/* done() may come from within and remove the job: walk a copy. */
	size_t n = r->nrunning;
	cleanup_free struct probe **copy = xcalloc(n, sizeof(*copy));

	if (n)
		memcpy(copy, r->running, n * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		if (copy[i]->job)
			r->executor->cancel(r->executor, copy[i]->job, sig);
}

void
prober_forward(struct prober *r, int sig)
{
	for (size_t i = 0; i < r->nrunning; i++)
		r->executor->forward(r->executor, r->running[i]->job, sig);
}

void
prober_release(struct prober *r)
{
	free(r->queue);
	free(r->running);
}

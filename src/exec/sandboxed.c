/* SPDX-License-Identifier: MIT */
#include "exec/sandboxed.h"
#include "exec/command.h"
#include "exec/commit.h"
#include "exec/denials.h"
#include "exec/homes.h"
#include "exec/job.h"
#include "exec/live.h"
#include "graph/graph.h"
#include "proto/spec.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/path.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
	HELPER_SIGNALS = 3,
	HELPER_SPEC = 4,
	HELPER_STATUS = 5,
	READ_SIZE = 64 << 10,
};

static const char git_across[] = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

struct sandboxed {
	struct executor ex;
	struct loop *loop;
	char *helper, *sh, *root_path, *cache_dir;
	int rootfd;
	struct scratch_area *area;
	struct strvec stores; /* of credentials, in every home there is */
};

struct job {
	struct exec_job job;
	struct sandboxed *owner;
	const struct policy *policy;
	struct scratch scratch; /* until the command has ended; then the commit's */
	struct commit *commit;
	bool is_live, is_killed;
	bool looks_back; /* it writes where nothing is committed: the helper looks there at its end */
	struct live left; /* of what it finds */
	int signals;      /* fd 3 of the helper */
	struct loop_fd status;
	struct frame_reader reader;
	struct err broken; /* the stream is bad: nothing more is read */

	struct exec_result seen; /* denials and notes so far */
	uint64_t ntold;          /* denied names that the host has */
	bool is_viewed, has_ended, is_done, is_refused;
	struct status_view view;
	struct status_exit exit;
	struct status_done done;
	struct strbuf refusal;
};

/* What the helper tells. */

static bool
is_read(const struct exec_denial *d)
{
	return d->op == DENIAL_READ || d->op == DENIAL_LIST;
}

static bool
is_write(const struct exec_denial *d)
{
	return d->op == DENIAL_WRITE || d->op == DENIAL_DELETE;
}

static enum denial_class
classify(const struct policy *p, const struct exec_denial *d)
{
	switch (d->op) {
	case DENIAL_READ:
	case DENIAL_LIST:
		if (policy_ignores_read(p, d->path))
			return DENIAL_IGNORED;
		return policy_read_is_finding(p, d->path) ? DENIAL_FINDING : DENIAL_WALLED;
	case DENIAL_WRITE:
	case DENIAL_DELETE:
		/* Of a live view, or outside. A tool that may not keep its cache here goes on without. */
		return policy_judge_write(p, d->path) == WRITE_IGNORED ? DENIAL_IGNORED
								       : DENIAL_FINDING;
	case DENIAL_PROBE:
		return DENIAL_PROBED;
	case DENIAL_SOCKET: /* the tool has its error, and a note says more if it failed */
	case DENIAL_CHOWN:
		return DENIAL_WALLED;
	default:
		return DENIAL_FINDING;
	}
}

static char *
advise(const struct policy *p, const struct exec_denial *d, const char *path)
{
	if (is_read(d) || is_write(d))
		return policy_grant_text(p, is_write(d), path);
	return d->op == DENIAL_SOCKET ? policy_sockets_text(p) : xstrdup("");
}

static char *
advise_dir(const void *ctx, const struct exec_denial *d, const char *dir)
{
	return advise(ctx, d, dir);
}

static void
on_denial(struct job *j, const struct status_denial *s)
{
	enum denial_class class;
	struct exec_denial *kept, d = {
					  .op = s->op,
					  .path = xstrdup(s->path.buf),
					  .pid = s->pid,
					  .program = xstrdup(s->program.buf),
					  .cmdline = xstrdup(s->cmdline.buf),
				  };

	j->ntold += is_read(&d) || is_write(&d);
	d.class = class = classify(j->policy, &d);
	kept = denials_add_take(&j->seen, &d);
	if (kept)
		kept->grant = advise(j->policy, kept, kept->path);
	if (class == DENIAL_FINDING && j->job.rq.persistent && j->job.rq.denied)
		j->job.rq.denied(j->job.rq.ctx, kept);
}

static void
on_setup_error(struct job *j, const struct status_setup_error *s)
{
	j->is_refused = true;
	strbuf_adds(&j->refusal, "sandbox not available: ");
	strbuf_add_sanitised(&j->refusal, s->cause.buf, s->cause.len);
	if (s->remedy.len) {
		strbuf_adds(&j->refusal, "; ");
		strbuf_add_sanitised(&j->refusal, s->remedy.buf, s->remedy.len);
	}
}

/* The order on the wire (proto/status.h); what comes out of order is refused. */
static int
on_status(struct job *j, const struct status *s, struct err *e)
{
	bool in_order = !j->is_done && !j->is_refused;
	cleanup_strbuf struct strbuf note = STRBUF_INIT;

	switch (s->type) {
	case STATUS_VIEW:
		in_order = in_order && !j->has_ended;
		j->view = s->u.view;
		j->is_viewed = true;
		log_debug("phase", "%s view up", j->job.rq.id);
		break;
	case STATUS_STARTED:
		log_debug("phase", "%s command started", j->job.rq.id);
		job_command_started(&j->job);
		break;
	case STATUS_DENIAL:
		on_denial(j, &s->u.denial);
		break;
	case STATUS_NOTE:
		strbuf_add_sanitised(&note, s->u.note.text.buf, s->u.note.text.len);
		strvec_push(&j->seen.notes, note.buf);
		break;
	case STATUS_NOTICE:
		strbuf_add_sanitised(&note, s->u.note.text.buf, s->u.note.text.len);
		strvec_push(&j->seen.notices, note.buf);
		break;
	case STATUS_EXIT:
		in_order = in_order && !j->has_ended;
		if (!in_order)
			break;
		j->has_ended = true;
		log_debug("phase", "%s command ended", j->job.rq.id);
		j->exit = s->u.exit;
		job_command_ended(&j->job);
		if (!j->is_live)
			j->commit = commit_new(
				j->policy, j->owner->rootfd, j->owner->area, &j->scratch);
		break;
	case STATUS_ENTRY:
		in_order = in_order && j->has_ended && !j->is_live;
		if (in_order)
			commit_add_entry(j->commit, &s->u.entry);
		break;
	case STATUS_DONE:
		in_order = in_order && j->has_ended;
		j->is_done = in_order;
		j->done = s->u.done;
		log_debug("phase", "%s entries received", j->job.rq.id);
		break;
	case STATUS_LATE:
		in_order = in_order && j->has_ended;
		strvec_push(&j->seen.late, s->u.late.path.buf);
		break;
	case STATUS_PLANTED:
		in_order = in_order && j->has_ended && j->looks_back;
		if (in_order)
			live_add(&j->left, &s->u.planted);
		break;
	case STATUS_SETUP_ERROR:
		in_order = in_order && !j->has_ended;
		if (in_order)
			on_setup_error(j, &s->u.setup_error);
		break;
	}
	return in_order ? 0 : err_set(e, ERR_SANDBOX, 0, "a frame out of order");
}

static int
take_frames(struct job *j, struct err *e)
{
	struct frame f;
	int more;

	while ((more = frame_reader_next(&j->reader, &f, e)) > 0) {
		struct status s;
		int rc = status_decode(&f, &s, e);

		if (!rc)
			rc = on_status(j, &s, e);
		status_release(&s);
		if (rc)
			return -1;
	}
	return more;
}

/* Its group is the helper and init. Never init alone: with the helper's fuse fd everything inside that
 * waits for an answer wakes up and ends (findings 15). */
static void
end_helper(struct exec_job *ej)
{
	kill(-ej->proc.pid, SIGKILL);
}

/* A task that wrote where nothing is committed has left what it left, and its helper is the one that knows where
 * to look: it kills the namespace itself and then does. Asked once; who does not answer is ended. */
static void
kill_command(struct exec_job *ej)
{
	struct job *j = container_of(ej, struct job, job);
	static const char word[] = "KILL\n";

	if (j->looks_back && !j->is_killed && !ej->exited && j->signals >= 0 &&
		write(j->signals, word, sizeof(word) - 1) == (ssize_t)sizeof(word) - 1) {
		j->is_killed = true;
		return;
	}
	end_helper(ej);
}

/* One read. False: nothing more at the moment, or for good. */
static bool
read_status(struct job *j)
{
	char buf[READ_SIZE];
	ssize_t n;

	if (j->status.fd < 0)
		return false;
	n = read(j->status.fd, buf, sizeof(buf));
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n > 0) {
		frame_reader_feed(&j->reader, buf, (size_t)n);
		if (!take_frames(j, &j->broken))
			return true;
	}
	/* A stream that cannot be read is the end of its helper: it could say anything. */
	if (err_is_set(&j->broken) && !j->job.exited)
		end_helper(&j->job);
	loop_remove_fd(j->job.loop, &j->status);
	fd_close(&j->status.fd);
	return false;
}

static void
status_ready(struct loop_fd *w, unsigned events attr_unused)
{
	read_status(container_of(w, struct job, status));
}

/* Ending it. */

/* A helper that came to its end has seen that of init, and init is the last one inside. */
static bool
init_is_left(struct exec_job *ej)
{
	struct job *j = container_of(ej, struct job, job);

	while (read_status(j))
		;
	return !j->is_done && proc_group_is_alive(ej->proc.pid);
}

/* The helper hands it to the command's group. HUP is said as TERM (spec/execution.md §9). */
static void
ask(struct exec_job *ej, int sig)
{
	struct job *j = container_of(ej, struct job, job);
	const char *line = sig == SIGINT ? "INT\n" : "TERM\n";

	/* The command is gone, and what the helper still does, for as long as the command has left it to
	 * do, is not wanted any more. */
	if (j->has_ended) {
		if (!j->looks_back)
			end_helper(ej);
		return;
	}
	/* A helper that does not read has its grace; one that is gone needs no asking. */
	if (j->signals >= 0 && write(j->signals, line, strlen(line)) < 0 && errno == EPIPE)
		fd_close(&j->signals);
}

/* The result. */

static void
take_seen(struct job *j, struct exec_result *r)
{
	r->denials = j->seen.denials;
	r->ndenials = j->seen.ndenials;
	r->nfindings = j->seen.nfindings;
	for (size_t i = 0; i < j->seen.notes.n; i++)
		strvec_push(&r->notes, j->seen.notes.v[i]);
	for (size_t i = 0; i < j->seen.notices.n; i++)
		strvec_push(&r->notices, j->seen.notices.v[i]);
	for (size_t i = 0; i < j->seen.late.n; i++)
		strvec_push(&r->late, j->seen.late.v[i]);
	r->unreported = j->is_viewed && !j->view.reports;
	j->seen.denials = NULL;
	j->seen.ndenials = 0;
}

static void
not_started(struct exec_result *r, const char *why)
{
	r->outcome = EXEC_NOT_STARTED;
	r->exit_code = 127;
	r->signal = 0;
	strbuf_reset(&r->error);
	strbuf_adds(&r->error, why);
}

/* The command's own end in the place of the helper's. */
static void
take_exit(const struct job *j, struct exec_result *r)
{
	int wstatus = (int)j->exit.wstatus;

	if (r->outcome != EXEC_TIMED_OUT)
		r->exit_code = proc_exit_code(wstatus);
	r->signal = WIFSIGNALED(wstatus) ? WTERMSIG(wstatus) : 0;
	r->cpu_us = j->exit.user_us + j->exit.sys_us;
	r->peak_rss_kb = j->exit.max_rss_kb;
	r->nkilled = j->exit.nkilled;
	if (r->nkilled)
		strvec_pushf(&r->notes, "%u background process%s ended", r->nkilled,
			r->nkilled == 1 ? "" : "es");
}

static void
fail(struct exec_result *r, const char *why)
{
	strvec_pushf(&r->notes, "%s: nothing of what the task wrote was kept", why);
	if (r->outcome == EXEC_EXITED && !r->exit_code)
		r->exit_code = 1;
}

/* The helper tells a bounded number of denials, in their order, and counts all. Whoever makes that many
 * could hide one that matters behind the others, so those that were not told count as findings, but for
 * what it knows to be elsewhere. */
static void
take_untold(struct job *j, struct exec_result *r)
{
	uint64_t known = j->ntold + j->done.elsewhere;
	uint64_t n = j->done.denials > known ? j->done.denials - known : 0;

	if (!n)
		return;
	r->nfindings += n;
	strvec_pushf(&r->notes,
		"%llu more denied accesses were counted, but not told one by one: they count as "
		"violations, as any of them may be in its own project",
		(unsigned long long)n);
}

/* Whatever ended it: what it wrote stands. */
static void
conclude_what_stands(struct job *j, struct exec_result *r)
{
	if (!j->is_done || err_is_set(&j->broken)) {
		end_helper(&j->job);
		r->nfindings++;
		strvec_pushf(&r->notes,
			"%s: what the task could write was not looked through for git hooks, "
			"settings "
			"of editors and shells and the like",
			err_is_set(&j->broken) ? j->broken.text
					       : "the sandbox's helper ended too early");
		if (r->outcome == EXEC_EXITED && !r->exit_code)
			r->exit_code = 1;
	}
	live_conclude(&j->left, j->policy, j->owner->rootfd, j->owner->area, &j->scratch, r);
}

static void
conclude(struct job *j, struct exec_result *r)
{
	struct err e = ERR_INIT;

	if (j->looks_back)
		conclude_what_stands(j, r);
	if (j->is_live) {
		if (j->is_done && !err_is_set(&j->broken))
			take_untold(j, r);
		return;
	}
	if (!j->is_done || err_is_set(&j->broken)) {
		if (r->outcome == EXEC_EXITED)
			fail(r, err_is_set(&j->broken)
					? j->broken.text
					: "the sandbox's helper ended before the task did");
		return;
	}
	if (r->outcome != EXEC_EXITED)
		return; /* stopped by vx: the workspace stays as it was */
	if (commit_judge(j->commit, r, &e)) {
		fail(r, e.text);
		return;
	}
	log_debug("phase", "%s judged", j->job.rq.id);
	take_untold(j, r);
	r->proven_possible = j->view.reports && !j->view.weaker && !j->policy->unix_sockets &&
			     !j->done.pure_changed;
	if (j->policy->unix_sockets && j->policy->node->def->cache)
		strvec_push(&r->notes, "allow.unixSockets: what it is told over a socket is in no "
				       "key, so its result is "
				       "never proven");
	r->commit = take_ptr(&j->commit);
}

static void
finish(struct exec_job *ej, struct exec_result *r)
{
	struct job *j = container_of(ej, struct job, job);

	while (read_status(j))
		;
	loop_remove_fd(ej->loop, &j->status);
	fd_close(&j->status.fd);
	fd_close(&j->signals);
	r->sandboxed = true;
	if (r->outcome == EXEC_NOT_STARTED) {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;

		strbuf_addf(&why, "sandbox not available: %s", r->error.buf);
		not_started(r, why.buf);
		return;
	}
	if (j->is_refused && r->outcome == EXEC_EXITED) {
		not_started(r, j->refusal.buf);
		return;
	}
	take_seen(j, r);
	if (j->has_ended)
		take_exit(j, r);
	r->failed_itself = j->has_ended && r->outcome == EXEC_EXITED && r->exit_code;
	conclude(j, r);
	denials_add_advice(r, advise_dir, j->policy);
	denials_sort(r);
	denials_read_links(r, j->owner->rootfd);
}

static void
free_job(struct exec_job *ej)
{
	struct job *j = container_of(ej, struct job, job);

	commit_free(j->commit);
	live_release(&j->left);
	scratch_drop(j->owner->area, &j->scratch);
	frame_reader_release(&j->reader);
	exec_result_release(&j->seen);
	strbuf_release(&j->refusal);
	free(j);
}

static const struct job_ops ops = {
	.ask = ask,
	.kill = kill_command,
	.is_left = init_is_left,
	.finish = finish,
	.free = free_job,
};

/* The start. */

/* Those in the task's home the helper hides by their names. */
static void
add_stores(const char *home, const struct strvec *found, struct strvec *ret)
{
	for (size_t i = 0; i < found->n; i++)
		if (!homes_store_at(home, found->v[i]))
			strvec_push(ret, found->v[i]);
}

/* In a live view each directory that is bound is a file system of its own to git, which does not look for its
 * repository beyond one unless it is told to. */
static bool
needs_git_told(const struct job *j, const struct strvec *env)
{
	const struct policy *p = j->policy;

	if (!j->is_live || strvec_getenv(env, git_across))
		return false;
	for (size_t i = 0; i < p->nconfig; i++)
		if ((p->rules[i].kind == SPEC_READ || p->rules[i].kind == SPEC_WRITE) &&
			path_find(p->rules[i].path, ".git"))
			return true;
	return false;
}

static void
fill_spec(const struct job *j, const struct exec_request *rq, struct spec *s)
{
	const struct sandboxed *x = j->owner;
	const struct policy *p = j->policy;

	s->workspace = xstrdup(x->root_path);
	s->cwd = xstrdup(p->node->project->dir);
	s->scratch = xstrdup(j->scratch.path);
	s->home = p->home ? xstrdup(p->home) : NULL;
	s->unix_sockets = p->unix_sockets;
	for (size_t i = 0; i < p->sockets.n; i++)
		strvec_push(&s->sockets, p->sockets.v[i]);
	s->git_config = p->git_config;
	s->nested = p->may_nest;
	s->hermetic = p->hermetic;
	s->weaker = p->weaker;
	s->program = xstrdup(x->sh);
	strvec_push(&s->argv, "sh");
	strvec_push(&s->argv, "-c");
	strvec_push_take(&s->argv, command_for_shell(rq->command));
	for (size_t i = 0; i < rq->env->n; i++)
		strvec_push(&s->env, rq->env->v[i]);
	if (needs_git_told(j, rq->env))
		strvec_pushf(&s->env, "%s=1", git_across);
	s->live = j->is_live;
	/* The outputs of before are what stands there, and what the task writes into. */
	for (size_t i = 0; i < p->nrules; i++)
		if (!j->is_live || p->rules[i].kind != SPEC_OUTPUT)
			spec_add_rule(s, p->rules[i].kind, p->rules[i].is_glob, p->rules[i].path);
	policy_add_reports(p, &s->reports);
	for (size_t i = 0; i < p->hidden.n; i++)
		strvec_push(&s->stores, p->hidden.v[i]);
	add_stores(p->home, &x->stores, &s->stores);
	/* One that only the task's HOME names. */
	if (p->home && !strvec_contains(homes_known(), p->home)) {
		cleanup_strvec struct strvec own = STRVEC_INIT;

		homes_add_stores(p->home, &own);
		add_stores(p->home, &own, &s->stores);
	}
	if (!path_is_within(x->cache_dir, x->root_path))
		strvec_push(&s->hide, x->cache_dir);
	if (!path_is_within(scratch_area_path(x->area), x->root_path))
		strvec_push(&s->hide, scratch_area_path(x->area));
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rules[i].kind == SPEC_WRITE && *p->rules[i].path == '/')
			scratch_places_in(p->rules[i].path, &s->hide);
	for (size_t i = 0; i < p->seconds.n; i++)
		strvec_push(&s->hide, p->seconds.v[i]);
}

/* In memory and sealed: the helper reads it without anybody having to feed a pipe, and nobody can
 * change it any more. */
static int
write_spec(const struct job *j, const struct exec_request *rq, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_close int fd = memfd_create("vx-spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct spec s = SPEC_INIT;

	fill_spec(j, rq, &s);
	spec_encode(&s, &text);
	spec_release(&s);
	if (text.len > SPEC_MAX)
		return err_set(e, ERR_SANDBOX, 0,
			"the policy of this task has more than %d MiB: grant directories",
			SPEC_MAX >> 20);
	if (fd < 0 || fd_write_all(fd, text.buf, text.len) || lseek(fd, 0, SEEK_SET) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return err_set(e, ERR_IO, errno, "writing the spec");
	return take_fd(&fd);
}

static int
start_helper(struct job *j, const struct exec_request *rq, struct err *e)
{
	struct sandboxed *x = j->owner;
	cleanup_close int spec_fd = -1;
	int status[2] = {-1, -1}, signals[2] = {-1, -1};
	char name[] = "vx-sandbox", spec_arg[4], status_arg[4];
	char *argv[] = {name, spec_arg, status_arg, NULL}, *env[] = {NULL};
	struct proc_fd fds[3];
	struct proc_spec spec = {
		.file = x->helper,
		.argv = argv,
		.env = env,
		.cwd = -1,
		.fds = fds,
		.nfds = array_len(fds),
		.new_session = true,
	};

	if (scratch_new(x->area, &j->scratch, e))
		return -1;
	spec_fd = write_spec(j, rq, e);
	if (spec_fd < 0)
		return -1;
	if (fd_pipe(status) || fd_pipe(signals) || fd_set_nonblock(status[0]) ||
		fd_set_nonblock(signals[1])) {
		err_set(e, ERR_IO, errno, "make a pipe");
		for (size_t i = 0; i < 2; i++) {
			fd_close(&status[i]);
			fd_close(&signals[i]);
		}
		return -1;
	}
	snprintf(spec_arg, sizeof(spec_arg), "%d", HELPER_SPEC);
	snprintf(status_arg, sizeof(status_arg), "%d", HELPER_STATUS);
	fds[0] = (struct proc_fd){signals[0], HELPER_SIGNALS};
	fds[1] = (struct proc_fd){spec_fd, HELPER_SPEC};
	fds[2] = (struct proc_fd){status[1], HELPER_STATUS};
	job_start(&j->job, x->loop, &ops, rq, &spec);
	fd_close(&status[1]);
	fd_close(&signals[0]);
	j->signals = signals[1];
	j->status.fd = status[0];
	loop_add_fd(x->loop, &j->status);
	log_debug("phase", "%s helper started", rq->id);
	return 0;
}

static struct exec_job *
start(struct executor *ex, const struct exec_request *rq, struct err *e attr_unused)
{
	struct sandboxed *x = container_of(ex, struct sandboxed, ex);
	struct job *j = xcalloc(1, sizeof(*j));
	struct err why = ERR_INIT;

	j->owner = x;
	j->policy = rq->policy;
	j->is_live = rq->persistent || rq->policy->live;
	j->looks_back = j->is_live || policy_writes_outside(rq->policy);
	live_init(&j->left);
	j->scratch.fd = -1;
	j->signals = -1;
	j->status = (struct loop_fd){.fd = -1, .events = LOOP_READ, .ready = status_ready};
	j->reader = (struct frame_reader)FRAME_READER_INIT;
	strbuf_init(&j->refusal);
	strbuf_init(&j->seen.error);
	strvec_init(&j->seen.notes);
	strvec_init(&j->seen.notices);
	strvec_init(&j->seen.late);
	if (start_helper(j, rq, &why))
		job_start_failed(&j->job, x->loop, &ops, rq, &why);
	return &j->job;
}

static void
cancel(struct executor *ex attr_unused, struct exec_job *j, int sig)
{
	job_cancel(j, sig);
}

/* A stopped helper would leave the task asleep in a request that no signal ends (findings 15), and
 * what is inside has no terminal: it goes on. */
static void
forward(struct executor *ex attr_unused, struct exec_job *j attr_unused, int sig attr_unused)
{
}

static void
free_sandboxed(struct executor *ex)
{
	struct sandboxed *x = container_of(ex, struct sandboxed, ex);

	free(x->helper);
	free(x->sh);
	free(x->root_path);
	free(x->cache_dir);
	strvec_release(&x->stores);
	free(x);
}

/* As a spec wants it, however PATH spells its directory. The name stays: what it is a link to may be
 * called otherwise. */
static char *
program_path(const char *path)
{
	size_t n = path_parent_len(path);
	cleanup_free char *dir = xmemdupz(path, n ? n : 1);
	cleanup_free char *real = realpath(dir, NULL);

	if (!real)
		return xstrdup(path);
	return xasprintf("%s/%s", strcmp(real, "/") != 0 ? real : "", path_base(path));
}

struct executor *
sandboxed_new(struct loop *l, const struct sandboxed_options *o)
{
	struct sandboxed *x = xcalloc(1, sizeof(*x));

	x->ex = (struct executor){.name = "sandboxed",
		.start = start,
		.cancel = cancel,
		.forward = forward,
		.free = free_sandboxed};
	x->loop = l;
	x->helper = xstrdup(o->helper);
	x->sh = program_path(o->sh);
	x->root_path = xstrdup(o->root_path);
	x->cache_dir = path_normalise(o->cache_dir);
	x->rootfd = o->rootfd;
	x->area = o->area;
	strvec_init(&x->stores);
	homes_find_stores(&x->stores);
	return &x->ex;
}

const struct strvec *
sandboxed_stores(struct executor *ex)
{
	return &container_of(ex, struct sandboxed, ex)->stores;
}

static bool
is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *
sandboxed_find_helper(struct err *e)
{
	static const char name[] = "vx-sandbox";
	cleanup_free char *self = realpath("/proc/self/exe", NULL), *path = NULL;

	if (self) {
		cleanup_free char *dir = xmemdupz(self, path_parent_len(self));

		path = xasprintf("%s/%s", dir, name);
		if (is_program(path))
			return take_ptr(&path);
		free(path);
	}
	path = xasprintf("%s/%s", PKGLIBEXECDIR, name);
	if (is_program(path))
		return take_ptr(&path);
	err_set(e, ERR_SANDBOX, 0,
		"sandbox not available: the helper %s is neither beside vx nor at %s; install vx "
		"whole",
		name, path);
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * The helper while the command runs: answers the policy layer, tells what is denied, forwards the
 * core's signals, and kills the namespace when the core is gone.
 *
 * It never touches the overlay (that would wait for itself), and it closes the fuse device before it
 * waits for init: init may be asleep in a request that nobody will answer (findings 15).
 *
 * Nor does it wait for the core. Who waits for an answer may hold locks of the kernel: overlayfs holds
 * the one that every rename between directories of the scratch's file system needs, while it copies a
 * directory up and asks the policy layer for its flags. The core may be the one that renames. (Stopped
 * from outside the helper does hold them all up, until it goes on, is killed, or the kernel gives up on
 * it: layer.c, REQUEST_TIMEOUT.)
 */
#include "sandbox/asked.h"
#include "sandbox/layer.h"
#include "sandbox/livewall.h"
#include "sandbox/setup.h"
#include "sandbox/tell.h"
#include "sandbox/wall.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_CMDLINE = 1000,
	QUEUE_MAX = 4 << 20, /* with it the process stays below 6 MiB */
	/* Denials told one by one; beyond that they are only counted. */
	TELL_MAX = 100000,
};

struct server {
	struct setup *s;
	struct serve_result *result;
	int sigfd;
	int fuse, live, outside, proc; /* -1 until init has made them */
	struct wall *wall;
	struct layer *layer;
	struct livewall *livewall, *outwall; /* of the workspace; of what is outside */
	struct asked asked;
	char line[8]; /* what came over sigfd since the last newline */
	size_t nline;
	bool is_started, is_over, is_killed;
	uint64_t early;               /* denials that are not the command's */
	uint64_t told;                /* denials */
	struct strvec notes, notices; /* of the set-up: told after STARTED */
};

static void
read_proc(int proc, uint32_t pid, const char *name, struct strbuf *ret)
{
	char path[64], text[MAX_CMDLINE];
	ssize_t n;

	snprintf(path, sizeof(path), "%u/%s", (unsigned)pid, name);
	if (!strcmp(name, "exe")) {
		n = readlinkat(proc, path, text, sizeof(text));
	} else {
		cleanup_close int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	}
	if (n < 0)
		return;
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\0'))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	strbuf_add(ret, text, (size_t)n);
}

/* The command line lies in the process's memory, and is read with the lock of its mappings. Another thread of it may
 * hold that and wait for this helper: who maps something over pages of a served file that are still to be written
 * does. So where files are served for writing nobody looks. */
static void
read_process(const struct server *sv, int proc, uint32_t pid, struct status_denial *ret)
{
	read_proc(proc, pid, "comm", &ret->program);
	read_proc(proc, pid, "exe", &ret->exe);
	if (!sv->livewall && !sv->outwall)
		read_proc(proc, pid, "cmdline", &ret->cmdline);
}

/* Whether the core might make a finding of it. */
static bool
matters(const struct server *sv, const struct layer_denial *d)
{
	const struct strvec *places = &sv->s->spec.reports;
	const char *path = d->path;
	bool is_read = d->op == DENIAL_READ;

	if (*path != '/' &&
		(ruleset_ignores(sv->s->rules, SPEC_IGNORE_WRITE, path) ||
			(is_read && ruleset_ignores(sv->s->rules, SPEC_IGNORE_READ, path))))
		return false;
	if (!is_read)
		return true;
	for (size_t i = 0; i < places->n; i++)
		if (path_is_within(path, places->v[i]) || path_is_within(places->v[i], path))
			return true;
	return !places->n || *path == '/';
}

static bool on_report(struct server *sv);

/*
 * A command can make more of these than the core reads, which may be busy for a while, and it must neither
 * be stopped by that nor hide a finding behind others. So the more the queue holds, the less is told: from
 * the half on only what might be a finding, and of that the path alone. What still cannot be told is
 * counted, apart when it is none: the rest of the count are findings to the core.
 */
static bool
may_tell(struct server *sv, const struct layer_denial *d, bool is_much)
{
	/* A name at a depth that no frame can carry, or millions of them. */
	bool is_too_much = strlen(d->path) > STATUS_STRING_MAX || tell_queued() > QUEUE_MAX ||
			   sv->told >= TELL_MAX;

	if (!is_much && !is_too_much)
		return true;
	if (d->op == DENIAL_PROBE)
		return false;
	if (matters(sv, d))
		return !is_too_much;
	sv->result->elsewhere++;
	return false;
}

/* Called while the asker waits for its answer, so its files in /proc are still there. */
static void
on_denied(void *ctx, const struct layer_denial *d)
{
	struct server *sv = ctx;
	bool is_much = tell_queued() > QUEUE_MAX / 2;
	struct status st;

	/* init says that it starts the command before it does, after all that the set-up has to say. What is
	 * asked before that, init itself asks on its way to the working directory. */
	while (!sv->is_started && on_report(sv))
		;
	if (!sv->is_started) {
		sv->early += d->op != DENIAL_PROBE;
		return;
	}
	if (!may_tell(sv, d, is_much))
		return;
	sv->told += d->op != DENIAL_PROBE;
	status_init(&st, STATUS_DENIAL);
	st.u.denial.op = d->op;
	st.u.denial.pid = d->pid;
	strbuf_adds(&st.u.denial.path, d->path);
	if (d->pid && !is_much)
		read_process(sv, sv->proc, d->pid, &st.u.denial);
	tell(&st);
	status_release(&st);
}

/* "NSpid:	OURS …	INNERMOST" */
static uint32_t
pid_inside(int proc, uint32_t pid)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err ignored = ERR_INIT;
	const char *line, *end;
	char path[32];

	snprintf(path, sizeof(path), "%u/status", (unsigned)pid);
	if (fd_read_file(proc, path, 64 << 10, &text, &ignored))
		return 0;
	line = strstr(text.buf, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	while (end && end > line && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return end ? (uint32_t)strtoul(end, NULL, 10) : 0;
}

/* These are in no total: nothing was hidden, and no path is theirs. */
static void
on_asked(void *ctx, const struct asked_call *call)
{
	struct server *sv = ctx;
	struct status st;

	status_init(&st, STATUS_DENIAL);
	st.u.denial.op = call->op;
	st.u.denial.pid = pid_inside(sv->asked.proc, call->pid);
	strbuf_adds(&st.u.denial.path, call->what);
	read_process(sv, sv->asked.proc, call->pid, &st.u.denial);
	tell(&st);
	status_release(&st);
}

/* Of what is outside of the workspace. */
static void
on_denied_outside(void *ctx, const struct layer_denial *d)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_addf(&path, "/%s", d->path);
	on_denied(ctx, &(struct layer_denial){path.buf, d->op, d->pid});
}

static void
serve_outside(struct server *sv)
{
	const struct setup *s = sv->s;

	sv->outwall = livewall_new(&(struct livewall_options){
		.rules = s->outside.live,
		.proc = s->proc,
		.owner = setup_owner(s),
		.denied = on_denied_outside,
		.ctx = sv,
	});
}

static void
serve_live(struct server *sv)
{
	const struct setup *s = sv->s;

	sv->livewall = livewall_new(&(struct livewall_options){
		.rules = s->live,
		.proc = s->proc,
		.owner = setup_owner(s),
		.denied = on_denied,
		.ctx = sv,
	});
}

static void
on_layers(struct server *sv, const struct report *r)
{
	struct err e = ERR_INIT;
	int live_mnt = r->u.layers.live_mnt, fuse_mnt = r->u.layers.fuse_mnt;
	int outside_mnt = r->u.layers.outside_mnt;

	sv->fuse = r->u.layers.fuse;
	sv->live = r->u.layers.live;
	sv->outside = r->u.layers.outside;
	sv->proc = r->u.layers.proc;
	/* From here on the fd table is ours alone. */
	fd_close(&live_mnt);
	fd_close(&outside_mnt);
	fd_close(&fuse_mnt);
	fd_close(&sv->s->report[1]);
	fd_close(&sv->s->control[0]);
	if (sv->live >= 0)
		serve_live(sv);
	if (sv->outside >= 0)
		serve_outside(sv);
	if (sv->fuse < 0)
		return;
	sv->wall = wall_new(r->u.layers.wall, "w", sv->s->host, sv->s->rules, &e);
	if (!sv->wall)
		setup_die(0, "", "%s", e.text);
	sv->layer = layer_new(&(struct layer_options){
		.rules = sv->s->rules,
		.hostfd = sv->s->host,
		.homefd = sv->s->home,
		.home = sv->s->home >= 0 ? sv->s->home_path : NULL,
		.stores = &sv->s->home_stores,
		.wall = sv->wall,
		.owner = setup_owner(sv->s),
		.scratch = sv->s->scratch_st,
		.denied = on_denied,
		.ctx = sv,
	});
}

static void
tell_notes(struct strvec *notes, enum status_type type)
{
	for (size_t i = 0; i < notes->n; i++)
		tell_note(type, notes->v[i]);
	strvec_release(notes);
}

static void
on_started(struct server *sv, const struct report *r)
{
	struct status st;

	status_init(&st, STATUS_VIEW);
	st.u.view.reports = sv->fuse >= 0 || sv->live >= 0;
	st.u.view.detached = r->u.started.detached;
	st.u.view.weaker = sv->proc < 0;
	tell(&st);
	status_init(&st, STATUS_STARTED);
	st.u.started.init_pid = (uint32_t)sv->s->init;
	tell(&st);
	sv->s->preload.started = r->u.started.at;
	sv->is_started = true;
	tell_notes(&sv->notices, STATUS_NOTICE);
	tell_notes(&sv->notes, STATUS_NOTE);
}

/* The namespace was killed by the core's word, which wants to know what there is to know all the same. */
static void
tell_killed(struct server *sv)
{
	struct status st;

	status_init(&st, STATUS_EXIT);
	st.u.exit.wstatus = SIGKILL;
	tell(&st);
	sv->result->ended = true;
	sv->result->wstatus = SIGKILL;
}

static void
on_exit_report(struct server *sv, const struct report *r)
{
	struct status st;

	status_init(&st, STATUS_EXIT);
	st.u.exit.wstatus = (uint32_t)r->u.exit.wstatus;
	st.u.exit.user_us = r->u.exit.user_us;
	st.u.exit.sys_us = r->u.exit.sys_us;
	st.u.exit.max_rss_kb = r->u.exit.max_rss_kb;
	st.u.exit.nkilled = r->u.exit.nkilled;
	tell(&st);
	sv->result->ended = true;
	sv->result->wstatus = r->u.exit.wstatus;
	sv->is_over = true;
}

/* The fuse devices first, then init: see above. */
static void
end_namespace(struct server *sv)
{
	fd_close(&sv->fuse);
	fd_close(&sv->live);
	fd_close(&sv->outside);
	syscall(SYS_pidfd_send_signal, sv->s->init_pidfd, SIGKILL, NULL, 0);
	while (waitpid(sv->s->init, NULL, 0) < 0 && errno == EINTR)
		;
}

/* One. False: there is none now, or none any more. */
static bool
on_report(struct server *sv)
{
	struct report r;
	int fd;

	if (setup_take_report(sv->s->report[0], &r, &fd)) {
		if (errno != EINTR && errno != EAGAIN)
			sv->is_over = true;
		return false;
	}
	switch (r.type) {
	case REPORT_LAYERS:
		on_layers(sv, &r);
		break;
	case REPORT_NOTE:
		if (sv->is_started)
			tell_note(STATUS_NOTE, r.u.note);
		else
			strvec_push(&sv->notes, r.u.note);
		break;
	case REPORT_NOTICE: /* of the view, so before the start */
		strvec_push(&sv->notices, r.u.note);
		break;
	case REPORT_STARTED:
		sv->asked.fd = fd;
		on_started(sv, &r);
		break;
	case REPORT_EXIT:
		on_exit_report(sv, &r);
		break;
	case REPORT_FAILED:
		end_namespace(sv);
		tell_setup_error(r.u.failed.cause, r.u.failed.remedy);
		_exit(EXIT_SETUP);
	}
	return true;
}

static void
on_word(struct server *sv)
{
	uint8_t sig = 0;

	if (sv->nline == 3 && !memcmp(sv->line, "INT", 3))
		sig = SIGINT;
	else if (sv->nline == 4 && !memcmp(sv->line, "TERM", 4))
		sig = SIGTERM;
	else if (sv->nline == 4 && !memcmp(sv->line, "KILL", 4))
		sv->is_killed = sv->is_over = true;
	/* A full pipe: init has not read the signals before this one, the command has enough of them. */
	if (sig)
		(void)!write(sv->s->control[1], &sig, 1);
}

static void
on_signals(struct server *sv)
{
	char buf[64];
	ssize_t n = read(sv->sigfd, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		sv->is_over = true; /* the core is gone */
		return;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n') {
			on_word(sv);
			sv->nline = 0;
		} else if (sv->nline < sizeof(sv->line)) {
			sv->line[sv->nline++] = buf[i];
		}
	}
}

/* The last process is gone: what comes to be in the workspace from here on nobody has read. */
static void
look_again(const struct server *sv)
{
	cleanup_strvec struct strvec late = STRVEC_INIT;

	sv->result->pure_changed = layer_look_again(sv->layer, &late);
	for (size_t i = 0; i < late.n; i++) {
		struct status st;

		status_init(&st, STATUS_LATE);
		strbuf_add(&st.u.late.path, late.v[i], strnlen(late.v[i], STATUS_STRING_MAX));
		tell(&st);
		status_release(&st);
	}
}

void
serve(struct setup *s, int sigfd, struct serve_result *ret)
{
	struct server sv = {
		.s = s,
		.result = ret,
		.sigfd = sigfd,
		.fuse = -1,
		.live = -1,
		.outside = -1,
		.proc = -1,
		.asked = {.fd = -1, .proc = s->proc, .told = on_asked},
	};

	sv.asked.ctx = &sv;
	fd_set_nonblock(s->report[0]);
	fd_set_nonblock(s->control[1]);
	tell_queue(true);
	while (!sv.is_over) {
		struct pollfd fds[] = {
			{.fd = s->report[0], .events = POLLIN},
			{.fd = sv.layer ? sv.fuse : -1, .events = POLLIN},
			{.fd = sv.sigfd, .events = POLLIN},
			{.fd = s->init_pidfd, .events = POLLIN},
			{.fd = tell_fd(), .events = POLLOUT},
			{.fd = sv.livewall ? sv.live : -1, .events = POLLIN},
			{.fd = sv.outwall ? sv.outside : -1, .events = POLLIN},
			{.fd = sv.asked.fd, .events = POLLIN},
		};

		if (poll(fds, array_len(fds), -1) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}
		if (fds[0].revents)
			on_report(&sv);
		else if (fds[3].revents)
			sv.is_over = true; /* init is gone without a last word */
		if (fds[1].revents && !sv.is_over && layer_serve(sv.layer, sv.fuse))
			fd_close(&sv.fuse);
		if (fds[5].revents && !sv.is_over && livewall_serve(sv.livewall, sv.live))
			fd_close(&sv.live);
		if (fds[6].revents && !sv.is_over && livewall_serve(sv.outwall, sv.outside))
			fd_close(&sv.outside);
		if (fds[7].revents & POLLIN)
			asked_serve(&sv.asked);
		else if (fds[7].revents)
			fd_close(&sv.asked.fd); /* nobody is left to ask */
		if (fds[2].revents && !sv.is_over)
			on_signals(&sv);
		if (fds[4].revents)
			tell_more();
	}
	if (sv.layer) {
		ret->denials = layer_denials(sv.layer);
		if (ret->ended)
			look_again(&sv);
	}
	if (sv.livewall) {
		const struct strvec *written = livewall_manifests(sv.livewall);

		ret->denials += livewall_denials(sv.livewall);
		ret->pure_changed = true; /* what it read may be anything by now */
		for (size_t i = 0; i < written->n; i++)
			strvec_push(&ret->manifests, written->v[i]);
	}
	if (sv.outwall)
		ret->denials += livewall_denials(sv.outwall);
	ret->denials -= sv.early;
	if (!ret->ended)
		end_namespace(&sv);
	if (!ret->ended && sv.is_killed && sv.is_started)
		tell_killed(&sv);
	fd_close(&sv.fuse);
	fd_close(&sv.live);
	fd_close(&sv.outside);
	fd_close(&sv.asked.fd);
	tell_queue(false);
	strvec_release(&sv.notes);
	strvec_release(&sv.notices);
	layer_free(sv.layer);
	livewall_free(sv.livewall);
	livewall_free(sv.outwall);
	wall_free(sv.wall);
}

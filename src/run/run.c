/* SPDX-License-Identifier: MIT */
#include "run/run.h"
#include "cache/gc.h"
#include "cache/history.h"
#include "cache/index.h"
#include "cache/outputs.h"
#include "cache/store.h"
#include "exec/exec.h"
#include "exec/external.h"
#include "exec/guard.h"
#include "exec/sandboxed.h"
#include "exec/scratch.h"
#include "exec/secrets.h"
#include "graph/order.h"
#include "graph/select.h"
#include "run/fingerprint.h"
#include "run/outlet.h"
#include "run/state.h"
#include "run/summary.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/mask.h"
#include "util/num.h"
#include "util/path.h"
#include "util/proc.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/timing.h"
#include "workspace/files.h"
#include "workspace/root.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum {
	WAIT_MAX_MS = 2147483647,
	READY_NOTICE_MS = 10000, /* VX_READY_NOTICE_MS */
	CONFIG_KILL_MS = 2000,   /* for what configs have left behind */
};

bool
run_env_is_true(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "0") && strcmp(v, "false");
}

static int
workers(const struct run_options *o, const struct settings *s, unsigned *ret, struct err *e)
{
	unsigned cores = settings_usable_cores();
	size_t n = o->concurrency ? strlen(o->concurrency) : 0;
	bool is_share = n && o->concurrency[n - 1] == '%';
	cleanup_free char *digits = NULL;
	struct err ignored = ERR_INIT;
	uint64_t v;

	*ret = s->concurrency ? s->concurrency : cores;
	if (!n)
		return 0;
	digits = xmemdupz(o->concurrency, n - is_share);
	if (num_parse_u64(digits, 1, 10000, &v, "", &ignored))
		return err_set(e, ERR_USAGE, 0,
			"--concurrency: '%s' is neither a whole number from 1 to 10000 nor, like "
			"50%%, a share of the cores",
			o->concurrency);
	if (is_share)
		v = cores * v / 100;
	*ret = v ? (unsigned)v : 1;
	return 0;
}

/* Everything that is open while a run lasts; released in the reverse order. */
struct run {
	struct root root;
	struct workspace w;
	struct graph g;
	struct files files;
	struct plan plan;
	struct filehash *fh;
	struct index *stamps; /* open even without a cache */
	struct index *index;  /* the same; NULL: no cache */
	struct store *store;
	struct history *history;
	struct report *report;
	struct loop *loop;
	char *state_path, *cache_path;
	int cachefd, statefd, lockfd;
	char *unaffected; /* by which diff nothing is left to run */
	bool complete;    /* all tasks were looked at: the file memory may forget the rest */
	uint64_t grace_ms, ready_notice_ms, answer_ms;
};

/* What is written below .vx. */
static void
close_state(struct run *r)
{
	if (r->history)
		history_close(r->history);
	if (r->stamps)
		index_close(r->stamps);
	if (r->store)
		store_close(r->store);
	if (r->fh)
		filehash_close(r->fh, r->complete);
	r->history = NULL;
	r->stamps = r->index = NULL;
	r->store = NULL;
	r->fh = NULL;
}

static void
run_release(struct run *r)
{
	if (r->report)
		report_free(r->report);
	if (r->loop)
		loop_free(r->loop);
	if (r->plan.tasks)
		plan_release(&r->plan);
	files_release(&r->files);
	close_state(r);
	graph_release(&r->g);
	workspace_release(&r->w);
	root_release(&r->root);
	free(r->unaffected);
	free(r->state_path);
	free(r->cache_path);
	fd_close(&r->cachefd);
	fd_close(&r->statefd);
	fd_close(&r->lockfd);
}

static int
refuse_nested(const struct run *r, struct err *e)
{
	const char *outer = getenv("VX_RUN_WORKSPACE"), *task = getenv("VX_RUN_TASK");

	if (!outer || strcmp(outer, r->root.path))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"vx run inside %s%s of the same workspace would wait for itself; "
		"name what it needs in dependsOn instead",
		!task   ? "a command of cache.inputs or an executor"
		: *task ? "task "
			: "a config",
		task ? task : "");
}

static void
warn_timeout(const struct settings *s)
{
	const char *text = getenv("VX_TASK_TIMEOUT");

	if (text && *text && (!s->timeout_by || strcmp(s->timeout_by, "VX_TASK_TIMEOUT") != 0))
		report_warn(
			"VX_TASK_TIMEOUT: '%s' is no number of milliseconds; it is ignored", text);
}

/* Nothing is run: no lock, and nothing written. */
static bool
is_plan_only(const struct run_options *o)
{
	return o->dry || o->graph;
}

/* The tasks that are asked for, and what they need. */
static int
link_tasks(struct run *r, const struct run_options *o, struct err *e)
{
	cleanup_strvec struct strvec widening = STRVEC_INIT;
	struct selection s = {
		.tasks = (const char *const *)o->words.v,
		.ntasks = o->words.n,
		.strays = (const char *const *)o->strays.v,
		.nstrays = o->strays.n,
		.filters = (const char *const *)o->filters.v,
		.nfilters = o->filters.n,
		.all = o->all,
		.affected = o->affected,
		.base = o->base,
		.cwd = r->root.cwd,
	};
	struct selected picked = {0};
	int ret;

	if (fingerprint_files(r->root.fd, &widening, e))
		return -1;
	s.widening = (const char *const *)widening.v;
	s.nwidening = widening.n;
	if (select_requests(&r->w, &s, &picked, e))
		return -1;
	if (picked.note)
		report_warn("%s", picked.note);
	if (!picked.n)
		r->unaffected = picked.by ? xasprintf("%s: --filter \"%s\" leaves nothing to run",
						    picked.since, picked.by)
					  : xstrdup(picked.since);
	ret = graph_build(&r->w, picked.v, picked.n, &r->g, e) || order_sort(&r->g, e) ||
			      graph_define_around(&r->g, e) || graph_check_outputs(&r->g, e) ||
			      (o->leave_out &&
				      graph_leave_out(&r->g, (const char *const *)o->left_out.v,
					      o->left_out.n, e))
		      ? -1
		      : 0;
	selected_release(&picked);
	return ret;
}

static int
open_statefd(struct run *r, struct err *e)
{
	r->statefd = open(r->state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->statefd < 0 ? err_set(e, ERR_IO, errno, "open %s", r->state_path) : 0;
}

int
run_choices(const struct run_options *o,
	int (*then)(void *ctx, const struct select_choice *v, size_t n, struct err *e), void *ctx,
	struct err *e)
{
	struct run r = {.cachefd = -1, .statefd = -1, .lockfd = -1, .root = {.fd = -1}};
	struct selection s = {
		.filters = (const char *const *)o->filters.v,
		.nfilters = o->filters.n,
		.all = o->all,
		.affected = o->affected,
	};
	struct select_choice *v = NULL;
	size_t n = 0;
	int ret = -1;

	/* The same memory as a run's, which comes next: as for a plan, there is no need of the lock. */
	if (!root_find(NULL, ROOT_EVALUATE, &r.root, e) &&
		!state_make(r.root.fd, r.root.path, &r.state_path, e) && !open_statefd(&r, e) &&
		!workspace_load(&r.root, r.statefd, &r.w, e)) {
		s.cwd = r.root.cwd;
		ret = select_choices(&r.w, &s, &v, &n, e);
		/* Written, and the runtime gone, before somebody thinks. */
		workspace_settle(&r.w);
		if (!ret)
			ret = then(ctx, v, n, e);
	}
	free(v);
	run_release(&r);
	return ret;
}

/* Reads the workspace while git lists its files and those that are known are looked at, and links the requested tasks. */
static int
load(struct run *r, const struct run_options *o, struct err *e)
{
	struct files_request rq;
	struct err git = ERR_INIT;
	int ret = -1;

	if (files_start(r->root.fd, r->root.path, &rq, e))
		return -1;
	filehash_look_ahead(r->fh, r->root.fd);
	if (!workspace_load(&r->root, r->statefd, &r->w, e)) {
		settings_apply_env(&r->w.settings);
		warn_timeout(&r->w.settings);
		timing_stage("build graph");
		ret = link_tasks(r, o, e);
		workspace_settle(&r->w);
	}
	timing_stage("git enumeration");
	/* Always finished: its process must not be left behind. */
	if (files_finish(&rq, r->root.fd, &r->files, &git) && !ret) {
		*e = git;
		ret = -1;
	}
	/* No task runs yet, and git is gone: what is there was started by a config, and let go. */
	proc_kill_descendants(NULL, 0, clock_monotonic_ns() + (uint64_t)CONFIG_KILL_MS * 1000000);
	return ret;
}

static int
refuse_idle_arguments(const struct run *r, const struct run_options *o, struct err *e)
{
	if (!o->nforward || r->unaffected)
		return 0;
	for (size_t i = 0; i < r->g.n; i++)
		if (r->g.nodes[i]->requested && !node_is_group(r->g.nodes[i]))
			return 0;
	return err_set(e, ERR_USAGE, 0,
		"arguments after -- reach requested commands, and only groups are requested");
}

/* 1: there is one to use, 0: none, -1. A run that saves nothing makes none. */
static int
find_cache_dir(struct run *r, const struct run_options *o, struct err *e)
{
	cleanup_free char *dir = NULL;
	int found = 1;

	if (state_cache_path(
		    &r->root, r->state_path, r->w.settings.cache_dir, o->cache_dir, &dir, e))
		return -1;
	if (o->no_write || is_plan_only(o))
		found = state_find_cache(dir, &r->cache_path, e);
	else if (state_make_cache(dir, &r->cache_path, e))
		return -1;
	if (found < 0)
		return -1;
	/* From here on this is where it is, whoever said so: policies wall it off. */
	r->w.settings.cache_dir = r->cache_path;
	if (!found || (o->no_read && o->no_write))
		return 0;
	r->cachefd = open(r->cache_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->cachefd < 0 ? err_set(e, ERR_IO, errno, "open %s", r->cache_path) : 1;
}

/* Whether the task's outputs select anything of what is in a cache directory (docs/CACHE.md). */
static bool
selects_cache(const struct node *n, const char *cache)
{
	static const char *const names[] = {"", "index.db", "index.db-wal", ".gitignore", "blobs",
		"blobs/00", "blobs/00/0000", "blobs/00/0000.zst"};
	const struct project *p = n->project;
	cleanup_free const char **nested = xcalloc(p->nnested, sizeof(*nested));

	for (size_t i = 0; i < p->nnested; i++)
		nested[i] = p->nested[i]->dir;
	for (size_t i = 0; i < array_len(names); i++) {
		cleanup_free char *path = *names[i] ? path_join(cache, names[i]) : xstrdup(cache);

		if (outputs_select(&n->def->cache->outputs, nested, p->nnested, path))
			return true;
	}
	return false;
}

/* What is to be restored would be removed to make room for it. */
static int
refuse_cache_among_outputs(const struct run *r, struct err *e)
{
	const char *cache;

	if (!path_is_within(r->cache_path, r->root.path))
		return 0;
	cache = path_below(r->cache_path, strcmp(r->root.path, "/") ? r->root.path : "");
	for (size_t i = 0; i < r->g.n; i++) {
		const struct node *n = r->g.nodes[i];

		if (n->def->cache && selects_cache(n, cache))
			return err_set(e, ERR_CONFIG, 0,
				"%s: task %s: cache.outputs selects what is in the cache directory "
				"%s, and "
				"would remove it: put the cache elsewhere (--cache-dir, "
				"VX_CACHE_DIR, "
				"cacheDir), or name the outputs more narrowly",
				n->def->place, n->def->name, r->cache_path);
	}
	return 0;
}

static int
open_cache(struct run *r, bool is_dry, char **ret_note, struct err *e)
{
	return index_open(r->cache_path, r->state_path, is_dry, &r->index, ret_note, e) ||
	       store_open(r->cachefd, &r->store, e);
}

/* The run goes on without the cache where the disk is full or the cache is locked, which it can be at any
 * moment, and where somebody else's cache is damaged, who may not be there to mend it. What else is wrong for
 * good had better be put right. */
static int
open_state(struct run *r, const struct run_options *o, struct err *e)
{
	int found = find_cache_dir(r, o, e);
	bool none = !found;
	cleanup_free char *note = NULL;
	struct err why = ERR_INIT;

	if (found < 0 || refuse_cache_among_outputs(r, e))
		return -1;
	if (!none && open_cache(r, o->dry, &note, &why)) {
		r->stamps = r->index; /* to be closed */
		r->index = NULL;
		if (!err_is_no_room(why.num) && why.num != EBADMSG && why.num != EBUSY) {
			*e = why;
			return -1;
		}
		index_close(r->stamps);
		r->stamps = NULL;
		none = true;
	}
	if (!none)
		r->stamps = r->index;
	else if (index_open(NULL, r->state_path, o->dry, &r->stamps, &note, e))
		return -1;
	if (why.num)
		report_warn("%s: this run goes without the cache", why.text);
	if (note)
		report_warn("%s", note);
	return 0;
}

static void
count_tasks(const struct plan *p, struct report_options *ro)
{
	bool *seen = xcalloc(p->w->nprojects, sizeof(*seen));

	for (size_t i = 0; i < p->g->n; i++) {
		const struct node *n = p->tasks[i].node;

		if (node_is_idle(n))
			continue;
		ro->ntasks++;
		ro->nrequested += p->tasks[i].surfaced;
		if (!seen[n->project->index])
			ro->nprojects++;
		seen[n->project->index] = true;
	}
	free(seen);
}

/* ------------------------------------------------------------------ running */

static void
record(struct run *r, const struct summary *sum, const struct sched_result *res,
	unsigned concurrency, int code)
{
	struct err e = ERR_INIT;

	if (history_record(r->history,
		    &(struct history_run){
			    .run_id = sum->run_id,
			    .command = sum->command,
			    .started_ns = sum->started_ns,
			    .ended_ns = sum->ended_ns,
			    .concurrency = concurrency,
			    .exit_code = code,
			    .tags = sum->tags,
			    .tasks = res->history,
			    .ntasks = res->nhistory,
		    },
		    &e))
		report_warn("this run is not in the history: %s", e.text);
}

/* The file may be a pipe or a terminal, too. One that nobody reads is not waited for, and whoever reads it slowly
 * only until a stop. -1 with errno set. */
static int
put_text(const char *path, int how, const struct strbuf *text)
{
	cleanup_close int fd =
		open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | how, 0666);
	struct outlet o;

	if (fd < 0)
		return -1;
	outlet_init(&o, fd, NULL);
	outlet_add(&o, text->buf, text->len);
	errno = outlet_waiting(&o) ? ECANCELED : o.error;
	outlet_release(&o);
	return errno ? -1 : 0;
}

/* Where a write to the path would go, owned; NULL: nowhere, which the write says. */
static char *
leads_to(const char *path)
{
	char *real = realpath(path, NULL);
	cleanup_free char *parent = NULL, *dir = NULL;

	if (real || errno != ENOENT)
		return real;
	parent = xmemdupz(path, path_parent_len(path));
	dir = realpath(*parent ? parent : *path == '/' ? "/" : ".", NULL);
	return dir ? path_join(dir, path_base(path)) : NULL;
}

/* What was asked for in writing must not be written over the run's own files. */
static int
refuse_own_file(const struct run *r, const char *flag, const char *path, struct err *e)
{
	cleanup_free char *to = path ? leads_to(path) : NULL;
	cleanup_free char *runs = path_join(r->state_path, "runs");

	if (!to || path_is_within(to, runs) ||
		(!path_is_within(to, r->state_path) &&
			!(r->cache_path && path_is_within(to, r->cache_path))))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"%s=%s: is among vx's own files: choose a file outside of %s", flag, path,
		path_is_within(to, r->state_path) ? r->state_path : r->cache_path);
}

static int
refuse_own_files(const struct run *r, const struct run_options *o, struct err *e)
{
	return refuse_own_file(r, "--summarize", o->summary_file, e) ||
			       refuse_own_file(r, "--profile", o->profile_file, e) ||
			       refuse_own_file(r, "--report-file", o->report_file, e)
		       ? -1
		       : 0;
}

/* Never the run's own failure. */
static void
write_file(const char *flag, const char *path, int how, const struct strbuf *text)
{
	if (put_text(path, how, text))
		report_warn("%s: cannot write %s: %s", flag, path, strerror(errno));
}

/* Into .vx, which somebody else may have made: no link in it is followed. */
static void
write_summary(const struct run *r, const struct summary *sum, const struct strbuf *text)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	cleanup_close int dir = -1;

	strbuf_addf(&name, "%s.json", sum->run_id);
	if (!fs_mkdirs(r->statefd, "runs"))
		dir = fs_open_beneath(r->statefd, "runs", O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 || fs_replace_file(dir, name.buf, text->buf, text->len, 0666))
		report_warn("--summarize: cannot write %s/runs/%s: %s", r->state_path, name.buf,
			strerror(errno));
}

/* What was asked for of the run in writing. */
static void
write_files(struct run *r, const struct run_options *o, const struct summary *sum)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (o->summarize) {
		summary_json(sum, &text);
		if (o->summary_file)
			write_file("--summarize", o->summary_file, O_TRUNC, &text);
		else
			write_summary(r, sum, &text);
	}
	if (o->profile) {
		strbuf_reset(&text);
		summary_trace(sum, &text);
		/* The name that nobody chose may be a link that a task has made. */
		if (o->profile_file)
			write_file("--profile", o->profile_file, O_TRUNC, &text);
		else
			write_file("--profile", "profile.json", O_TRUNC | O_NOFOLLOW, &text);
	}
	if (o->report) {
		strbuf_reset(&text);
		summary_markdown(sum, &text);
		if (o->report_file)
			write_file("--report-file", o->report_file, O_APPEND, &text);
		else
			report_page(r->report, &text);
	}
}

/* Never the run's own failure. */
static void
clean_cache(struct run *r)
{
	const struct gc_limits limits = {
		.older_than_ns = r->w.settings.cache_older_than_ns,
		.max_bytes = r->w.settings.cache_max_bytes,
	};
	cleanup_free char *note = NULL;
	struct err e = ERR_INIT;

	if (gc_after_run(r->index, r->store, &limits, r->cache_path, &note, &e))
		log_debug("cache", "not cleaned: %s", e.text);
	else if (note)
		report_warn("%s", note);
}

/* Milliseconds in the environment; *ret is left as it is where nothing is said. */
static int
take_ms(const char *name, uint64_t *ret, struct err *e)
{
	const char *text = getenv(name);

	return text && *text ? num_parse_u64(text, 0, WAIT_MAX_MS, ret, name, e) : 0;
}

static int
take_knobs(struct run *r, struct err *e)
{
	r->grace_ms = EXEC_GRACE_MS;
	r->ready_notice_ms = READY_NOTICE_MS;
	r->answer_ms = EXTERNAL_ANSWER_MS;
	return take_ms("VX_KILL_GRACE_MS", &r->grace_ms, e) ||
			       take_ms("VX_READY_NOTICE_MS", &r->ready_notice_ms, e) ||
			       take_ms("VX_EXECUTOR_ANSWER_MS", &r->answer_ms, e)
		       ? -1
		       : 0;
}

/* What a run and the probes of --dry have in common. */
static struct sched_options
sched_options_of(
	struct run *r, const struct run_options *o, unsigned concurrency, const struct guard *guard)
{
	return (struct sched_options){
		.plan = &r->plan,
		.loop = r->loop,
		.concurrency = concurrency,
		.default_timeout_ms = o->timeout_ms ? o->timeout_ms : r->w.settings.timeout_ms,
		.default_timeout_by = o->timeout_ms ? "--timeout" : r->w.settings.timeout_by,
		.grace_ms = r->grace_ms,
		.ready_notice_ms = r->ready_notice_ms,
		.answer_ms = r->answer_ms,
		.refresh = o->no_read && !o->no_write,
		.guard_pidfd = guard->pidfd,
	};
}

/* Probes run for a dry run, too: without them there are no keys. */
static int
dry(struct run *r, const struct run_options *o, unsigned concurrency, const struct guard *guard,
	const sigset_t *signals, struct strbuf *product, struct err *e)
{
	struct sched_options so;
	int stopped_by = 0;

	if (loop_new(signals, &r->loop, e))
		return -1;
	so = sched_options_of(r, o, concurrency, guard);
	if ((r->plan.probes.n || r->w.settings.nexecutors) && sched_probe(&so, &stopped_by, e))
		return -1;
	return stopped_by ? 128 + stopped_by
			  : dry_print(&r->plan, r->index, r->history, o, concurrency, product, e);
}

/* What ends a run: once, before its servers are waited for, if any stay. */
struct finish {
	struct run *r;
	const struct run_options *o;
	unsigned concurrency;
	uint64_t begin;
	char id[37], *command, *tags;
	int code;
	bool done;
};

static struct summary
sum_up(struct finish *f, const struct sched_result *res)
{
	struct summary sum = {
		.plan = &f->r->plan,
		.result = res,
		.run_id = f->id,
		.command = f->command,
		.tags = f->tags,
		.ended_ns = (int64_t)clock_wall_ns(),
		.total_ns = clock_monotonic_ns() - f->begin,
	};

	f->code = res->stopped_by ? 128 + res->stopped_by : !res->ok;
	/* With all that came before the first task. */
	sum.started_ns = sum.ended_ns - (int64_t)sum.total_ns;
	sum.exit_code = f->code;
	return sum;
}

static void
finish(struct finish *f, const struct sched_result *res, bool is_kept)
{
	struct run *r = f->r;
	struct summary sum = sum_up(f, res);

	report_footer(r->report, &r->plan, sum.total_ns, res->stopped_by);
	/* How servers that stay end is not known yet. */
	if (!is_kept)
		write_files(r, f->o, &sum);
	/* Servers that stay have a loop to write by; the others are over. */
	if (!is_kept && !report_finish(r->report))
		f->code = 128 + stop_asked_by();
	if (report_write_error(r->report)) {
		report_warn(
			"write to standard output: %s", strerror(report_write_error(r->report)));
		f->code = f->code ? f->code : 1;
	}
	timing_stage("record history");
	if (!res->stopped_by)
		record(r, &sum, res, f->concurrency, f->code);
	if (!res->stopped_by && r->store)
		clean_cache(r);
	r->complete = !res->stopped_by && f->o->all;
	f->done = true;
}

/* Servers stay: what the run wrote is put away, and the next one may begin. The guard keeps watching. */
static void
in_foreground(void *ctx, const struct sched_result *res)
{
	struct finish *f = ctx;

	finish(f, res, true);
	close_state(f->r);
	state_unlock(f->r->lockfd);
}

static int
execute(struct run *r, const struct run_options *o, unsigned concurrency, const struct guard *guard,
	uint64_t begin, const sigset_t *signals, struct err *e)
{
	struct finish f = {.r = r, .o = o, .concurrency = concurrency, .begin = begin};
	struct sched_options so;
	struct sched_result res;
	int ret;
	struct report_options ro = {
		.logs = o->logs,
		.flow = run_env_is_true("CI")                   ? FLOW_CI
			: o->all || o->affected || o->filters.n ? FLOW_BROAD
								: FLOW_FOCUSED,
		.sandbox_off = o->sandbox == SANDBOX_OFF,
		.cache_dir = r->index ? r->cache_path : NULL,
		.verbose_table = o->verbose,
		.github = run_env_is_true("CI") && run_env_is_true("GITHUB_ACTIONS"),
	};

	if (loop_new(signals, &r->loop, e))
		return -1;
	ro.workers = concurrency;
	ro.loop = r->loop;
	count_tasks(&r->plan, &ro);
	r->report = report_new(&ro);
	if (r->root.note)
		report_notice(r->report, "%s", r->root.note);
	for (size_t i = 0; i < r->w.nnotes; i++)
		report_notice(r->report, "%s", r->w.notes[i]);
	if (r->plan.files.no_git)
		report_notice(r->report, "no git: ignore rules are not applied, every file counts");
	so = sched_options_of(r, o, concurrency, guard);
	so.report = r->report;
	so.index = r->index;
	so.stamps = r->stamps;
	so.store = r->store;
	so.history = r->history;
	so.read_cache = !o->no_read;
	so.write_cache = !o->no_write;
	so.sandbox = o->sandbox;
	so.cont = o->cont;
	so.retries = o->retries;
	so.cache_dir = r->cache_path;
	so.in_foreground = in_foreground;
	so.ctx = &f;
	history_run_id(f.id);
	f.command = mask_text(r->plan.mask, o->command);
	f.tags = summary_tags(&o->tags, r->plan.mask);
	ret = sched_run(&so, &res, e);
	if (!ret && !f.done) {
		finish(&f, &res, false);
	} else if (!ret) {
		int before = f.code;
		struct summary sum = sum_up(&f, &res);

		f.code = f.code ? f.code : before;
		write_files(r, o, &sum);
	}
	free(f.command);
	free(f.tags);
	if (ret)
		return -1;
	sched_result_release(&res);
	return f.code;
}

/* In the guard, when the core is dead and its children are gone: what it left on disk. */
static void
recover(void *ctx)
{
	const struct run *r = ctx;
	struct err e = ERR_INIT;

	/* A dry run makes nothing, and has no lock: what is there is another run's. */
	if (r->lockfd < 0)
		return;
	/* Where the core has given it up, another run may have it by now, and knows its scratches. */
	if (!state_lock_again(r->lockfd))
		return;
	if (scratch_recover(r->root.path, r->root.fd, &e))
		report_warn("%s", e.text);
	state_sweep(r->state_path);
}

/* The root and, but for a dry run, its lock. 0; else the exit code (a signal ended the wait), or -1. */
static int
enter(struct run *r, const struct run_options *o, const sigset_t *signals, struct err *e)
{
	cleanup_free char *command = NULL;
	struct mask *mask;
	int sig = 0, locked;

	timing_stage("workspace config");
	if (root_find(NULL, ROOT_EVALUATE, &r->root, e) || refuse_nested(r, e) ||
		take_knobs(r, e) || state_make(r->root.fd, r->root.path, &r->state_path, e))
		return -1;
	if (is_plan_only(o))
		return 0;
	if (sigprocmask(SIG_BLOCK, signals, NULL))
		return err_set(e, ERR_IO, errno, "block signals");
	/* Others read it; what tasks define is not known yet, and nobody types that. */
	mask = secrets_mask(environ, NULL);
	command = mask_text(mask, o->command);
	mask_free(mask);
	locked = state_lock(r->state_path, command, &r->lockfd, &sig, e);
	return locked > 0 ? 0 : locked < 0 ? -1 : 128 + sig;
}

static int
print_graph(const struct run *r, const struct run_options *o, struct strbuf *product, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	dry_print_graph(&r->g, o->graph_file ? &text : product);
	if (!o->graph_file)
		return 0;
	if (refuse_own_file(r, "--graph", o->graph_file, e))
		return -1;
	if (put_text(o->graph_file, O_TRUNC, &text))
		return err_set(e, ERR_IO, errno, "--graph=%s", o->graph_file);
	return 0;
}

static int
run_all(struct run *r, const struct run_options *o, const struct guard *guard, uint64_t begin,
	const sigset_t *signals, struct strbuf *product, struct err *e)
{
	unsigned concurrency;

	if (!is_plan_only(o) && scratch_recover(r->root.path, r->root.fd, e))
		return -1;
	if (open_statefd(r, e) || filehash_open(r->statefd, &r->fh, e) || load(r, o, e) ||
		refuse_idle_arguments(r, o, e))
		return -1;
	if (r->unaffected) {
		report_warn("nothing affected since %s", r->unaffected);
		if (!is_plan_only(o))
			return 0;
	}
	for (size_t i = 0; is_plan_only(o) && i < r->w.nnotes; i++)
		report_warn("%s", r->w.notes[i]);
	if (o->graph)
		return print_graph(r, o, product, e);
	timing_stage("open cache");
	if (workers(o, &r->w.settings, &concurrency, e) || open_state(r, o, e) ||
		refuse_own_files(r, o, e) || history_open(r->state_path, o->dry, &r->history, e))
		return -1;
	timing_stage("plan");
	if (plan_init(&r->plan, &r->w, &r->g, &r->files, r->fh, o->sandbox, o->forward, o->nforward,
		    e))
		return -1;
	log_debug("phase", "plan made");
	return o->dry ? dry(r, o, concurrency, guard, signals, product, e)
		      : execute(r, o, concurrency, guard, begin, signals, e);
}

int
run_workspace(const struct run_options *o, struct strbuf *product, struct err *e)
{
	uint64_t begin = clock_monotonic_ns();
	struct run r = {.cachefd = -1, .statefd = -1, .lockfd = -1, .root = {.fd = -1}};
	struct guard guard = {.pidfd = -1};
	sigset_t signals;
	int code;

	guard_signals(&signals);
	code = enter(&r, o, &signals, e);
	timing_stage("startup");
	/* Guard and core hold the lock together: the next run waits until the one that outlives the
	 * other is through. Nothing else is open yet. A dry run may start probes. */
	if (!code)
		code = guard_fork(recover, &r, sandboxed_find_helper, &guard, e);
	proc_raise_files();
	sigaddset(&signals, SIGCHLD);
	if (!code)
		code = run_all(&r, o, &guard, begin, &signals, product, e);
	/* Before there was a loop to take it. */
	if (code < 0 && e->num == ECANCELED && stop_is_asked()) {
		code = 128 + stop_asked_by();
		err_clear(e);
	}
	if (code < 0 && r.plan.mask) {
		cleanup_free char *text = mask_text(r.plan.mask, e->text);

		snprintf(e->text, sizeof(e->text), "%s", text);
	}
	timing_stage("close");
	run_release(&r);
	if (guard.pidfd >= 0)
		guard_core_is_done(&guard);
	timing_print();
	return code;
}

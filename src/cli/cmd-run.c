/* SPDX-License-Identifier: MIT */
/*
 * vx run: words and flags to a plan, and the plan to the scheduler.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/pick.h"
#include "config/taskdef.h"
#include "run/run.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/num.h"
#include "util/strbuf.h"
#include <strings.h>

enum opt_id {
	O_AFFECTED,
	O_ALL,
	O_CACHE,
	O_CACHE_DIR,
	O_CONCURRENCY,
	O_CONTINUE,
	O_DRY,
	O_EXCLUDE,
	O_FILTER,
	O_FORCE,
	O_GRAPH,
	O_HELP,
	O_NO_CACHE,
	O_OUTPUT_LOGS,
	O_PROFILE,
	O_REPORT,
	O_REPORT_FILE,
	O_RETRY,
	O_SANDBOX,
	O_SUMMARIZE,
	O_TAG,
	O_TIMEOUT,
	O_VERBOSITY,
	O_LATER,
};

/* The man page has the same words: tests/lint/options.sh. */
static const struct opt run_opts[] = {
	{"all", OPT_FLAG, NULL, "every project that has the task", O_ALL},
	{"filter", OPT_VALUE, "PATTERN",
		"projects by name, ./dir, tag:t, [ref], `...`, `!` (repeatable)", O_FILTER},
	{"affected", OPT_OPTIONAL, "BASE", "what a git change since BASE reaches", O_AFFECTED},
	{"exclude-dependencies", OPT_OPTIONAL, "TASK,…",
		"without these, or all, that tasks depend on", O_EXCLUDE},
	{"concurrency", OPT_VALUE, "N|N%", "commands at a time (default: usable cores)",
		O_CONCURRENCY},
	{"continue", OPT_OPTIONAL, "never|deps-ok|always",
		"after a failure (default: deps-ok; bare: always)", O_CONTINUE},
	{"sandbox", OPT_OPTIONAL, "off", "every task in a sandbox, or none", O_SANDBOX},
	{"retry", OPT_VALUE, "N",
		"run what failed again, up to N times: tasks without exec.retries", O_RETRY},
	{"timeout", OPT_VALUE, "MS", "for tasks without exec.timeout", O_TIMEOUT},
	{"cache", OPT_VALUE, "local:[r][w]", "read the cache, write it, both (default) or neither",
		O_CACHE},
	{"force", OPT_FLAG, NULL, "run all, and save the results", O_FORCE},
	{"no-cache", OPT_FLAG, NULL, "neither read nor write the cache", O_NO_CACHE},
	{"cache-dir", OPT_VALUE, "PATH", "where the cache lives (default: .vx/cache)", O_CACHE_DIR},
	{"dry", OPT_OPTIONAL, "text|json", "print the plan and the predicted hits, run no task",
		O_DRY},
	{"graph", OPT_OPTIONAL, "FILE", "print the graph in the DOT language, run nothing",
		O_GRAPH},
	{"output-logs", OPT_VALUE, "full|errors-only|hash-only|none",
		"what of the tasks is printed", O_OUTPUT_LOGS},
	{"verbosity", OPT_VALUE, "N", "from 1 on: a table of all tasks above the summary",
		O_VERBOSITY},
	{"summarize", OPT_OPTIONAL, "FILE", "write the run as JSON (default: .vx/runs/RUN.json)",
		O_SUMMARIZE},
	{"profile", OPT_OPTIONAL, "FILE", "write the run as a Chrome trace (default: profile.json)",
		O_PROFILE},
	{"report", OPT_OPTIONAL, "markdown", "print the run as a page of markdown", O_REPORT},
	{"report-file", OPT_VALUE, "FILE", "append that page to FILE instead", O_REPORT_FILE},
	{"tag", OPT_VALUE, "NAME=VALUE", "kept with the run, in all of these (repeatable)", O_TAG},
	{"help", OPT_FLAG, NULL, "print this page", O_HELP},
	{"download", OPT_LATER, NULL, NULL, O_LATER},
	{"frozen", OPT_LATER, NULL, NULL, O_LATER},
	{"j", OPT_NOT, NULL, "write --concurrency N", O_LATER},
	{"jobs", OPT_NOT, NULL, "write --concurrency N", O_LATER},
	{"parallel", OPT_NOT, NULL, "tasks run beside each other, --concurrency N at a time",
		O_LATER},
	{"k", OPT_NOT, NULL, "write --continue=always", O_LATER},
	{"keep-going", OPT_NOT, NULL, "write --continue=always", O_LATER},
	{"bail", OPT_NOT, NULL, "write --continue=never", O_LATER},
	{"n", OPT_NOT, NULL, "write --dry", O_LATER},
	{"dry-run", OPT_NOT, NULL, "write --dry", O_LATER},
	{"f", OPT_NOT, NULL,
		"write --force to run what is cached, --filter PATTERN for some projects", O_LATER},
	{"scope", OPT_NOT, NULL, "write --filter PATTERN", O_LATER},
	{"projects", OPT_NOT, NULL, "write --filter PATTERN", O_LATER},
	{"exclude", OPT_NOT, NULL, "write --filter '!PATTERN'", O_LATER},
	{"ignore", OPT_NOT, NULL, "write --filter '!PATTERN'", O_LATER},
	{"since", OPT_NOT, NULL, "write --affected=BASE", O_LATER},
	{"only", OPT_NOT, NULL, "write --exclude-dependencies", O_LATER},
	{"v", OPT_NOT, NULL,
		"write --output-logs full for what tasks print, --verbosity 1 for a table",
		O_LATER},
	{"verbose", OPT_NOT, NULL,
		"write --output-logs full for what tasks print, --verbosity 1 for a table",
		O_LATER},
	{"q", OPT_NOT, NULL, "write --output-logs errors-only, or none", O_LATER},
	{"quiet", OPT_NOT, NULL, "write --output-logs errors-only, or none", O_LATER},
	{"silent", OPT_NOT, NULL, "write --output-logs errors-only, or none", O_LATER},
	{"C", OPT_NOT, NULL, "go there: (cd DIR && vx run …)", O_LATER},
	{"cwd", OPT_NOT, NULL, "go there: (cd DIR && vx run …)", O_LATER},
	{"w", OPT_NOT, NULL, "`vx watch` is not in this vx yet", O_LATER},
	{"watch", OPT_NOT, NULL, "`vx watch` is not in this vx yet", O_LATER},
	{NULL, OPT_FLAG, NULL, NULL, 0},
};

enum {
	TIMEOUT_MAX_MS = 2147483647
};

static int
one_of(const char *flag, const char *value, const char *const *words, size_t n, struct err *e)
{
	cleanup_strbuf struct strbuf list = STRBUF_INIT, shown = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i], value))
			return (int)i;
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&list, "%s%s", i ? (i + 1 == n ? " or " : ", ") : "", words[i]);
	strbuf_add_sanitised(&shown, value, strlen(value));
	return err_set(e, ERR_USAGE, 0, "--%s=%s: write %s", flag, shown.buf, list.buf);
}

/* What was asked of the cache, in the order of their precedence (spec/cli.md §1). */
struct cache_flags {
	bool no_read, no_write; /* --cache */
	bool no_cache, force;
};

static int
set_layer(struct cache_flags *c, const char *layer, size_t n, struct err *e)
{
	const char *flags = memchr(layer, ':', n);
	size_t nflags = flags ? n - (size_t)(++flags - layer) : 0;

	if (!flags || strspn(flags, "rw") < nflags || nflags > 2 ||
		(nflags == 2 && flags[0] == flags[1]) ||
		(strncmp(layer, "local:", 6) && strncmp(layer, "remote:", 7)))
		return err_set(e, ERR_USAGE, 0,
			"--cache: write local:rw, local:r (only read), local:w (only write) or "
			"local: (neither)");
	if (*layer == 'r' && nflags)
		return err_set(
			e, ERR_USAGE, 0, "--cache=remote:…: a remote cache is not in this vx yet");
	if (*layer == 'l') {
		c->no_read = !memchr(flags, 'r', nflags);
		c->no_write = !memchr(flags, 'w', nflags);
	}
	return 0;
}

static int
set_layers(struct cache_flags *c, const char *value, struct err *e)
{
	for (;; value++) {
		size_t n = strcspn(value, ",");

		if (set_layer(c, value, n, e))
			return -1;
		value += n;
		if (!*value)
			return 0;
	}
}

/* "build,app#test" */
static int
add_names(struct strvec *names, const char *value, struct err *e)
{
	for (;; value++) {
		size_t n = strcspn(value, ",");

		if (!n)
			return err_set(e, ERR_USAGE, 0,
				"--exclude-dependencies: an empty name; write "
				"--exclude-dependencies=build,app#test");
		strvec_push_take(names, xmemdupz(value, n));
		value += n;
		if (!*value)
			return 0;
	}
}

/* An ending that asks for what dot(1) makes of it. */
static int
check_graph_file(const char *file, struct err *e)
{
	static const char *const others[] = {"svg", "png", "pdf", "ps", "eps", "jpg", "jpeg", "gif",
		"webp", "html", "json", "mmd", "mermaid"};
	const char *dot = strrchr(file, '.');
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;

	for (size_t i = 0; dot && i < array_len(others); i++) {
		if (strcasecmp(dot + 1, others[i]) != 0)
			continue;
		strbuf_add_sanitised(&shown, file, strlen(file));
		return err_set(e, ERR_USAGE, 0,
			"--graph=%s: vx writes the DOT language alone: vx run … --graph | dot -T%s",
			shown.buf, others[i]);
	}
	return 0;
}

static int
add_tag(struct run_options *o, const char *value, struct err *e)
{
	const char *is = strchr(value, '=');
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;

	if (is && is != value) {
		strvec_push(&o->tags, value);
		return 0;
	}
	strbuf_add_sanitised(&shown, value, strlen(value));
	return err_set(e, ERR_USAGE, 0, "--tag=%s: a tag is a name and a value: --tag=NAME=VALUE",
		shown.buf);
}

/* A plan runs nothing that there would be anything to write of. */
static int
check_plan(const struct run_options *o, struct err *e)
{
	const char *flag = o->summarize     ? "summarize"
			   : o->profile     ? "profile"
			   : o->report_file ? "report-file"
			   : o->report      ? "report"
					    : NULL;

	if (o->dry && o->graph)
		return err_set(
			e, ERR_USAGE, 0, "--dry and --graph are two plans: ask for one of them");
	if (flag && (o->dry || o->graph))
		return err_set(e, ERR_USAGE, 0,
			"--%s tells of a run, and --%s runs nothing: ask for one of them", flag,
			o->dry ? "dry" : "graph");
	return 0;
}

static int
set_option(struct run_options *o, struct cache_flags *c, int id, const char *value, struct err *e)
{
	static const char *const continues[] = {"deps-ok", "never", "always"};
	static const char *const logs[] = {"full", "errors-only", "hash-only", "none"};
	static const char *const sandboxes[] = {"off"};
	static const char *const dries[] = {"text", "json"};
	static const char *const reports[] = {"markdown"};
	uint64_t n;
	int i;

	switch ((enum opt_id)id) {
	case O_AFFECTED:
		o->affected = true;
		o->base = value;
		return 0;
	case O_ALL:
		o->all = true;
		return 0;
	case O_CACHE:
		return set_layers(c, value, e);
	case O_CACHE_DIR:
		o->cache_dir = value;
		return 0;
	case O_CONCURRENCY:
		o->concurrency = value;
		return 0;
	case O_CONTINUE:
		i = value ? one_of("continue", value, continues, array_len(continues), e) : 2;
		o->cont = (enum continue_mode)i;
		return i < 0 ? -1 : 0;
	case O_DRY:
		i = value ? one_of("dry", value, dries, array_len(dries), e) : 0;
		o->dry = i == 1 ? DRY_JSON : DRY_TEXT;
		return i < 0 ? -1 : 0;
	case O_EXCLUDE:
		o->leave_out = true;
		return value ? add_names(&o->left_out, value, e) : 0;
	case O_FILTER:
		strvec_push(&o->filters, value);
		return 0;
	case O_FORCE:
		c->force = true;
		return 0;
	case O_GRAPH:
		o->graph = true;
		o->graph_file = value;
		return value ? check_graph_file(value, e) : 0;
	case O_NO_CACHE:
		c->no_cache = true;
		return 0;
	case O_OUTPUT_LOGS:
		i = one_of("output-logs", value, logs, array_len(logs), e);
		o->logs = (enum report_logs)(LOGS_FULL + i);
		return i < 0 ? -1 : 0;
	case O_PROFILE:
		o->profile = true;
		o->profile_file = value;
		return 0;
	case O_REPORT:
		o->report = true;
		return value && one_of("report", value, reports, array_len(reports), e) < 0 ? -1
											    : 0;
	case O_REPORT_FILE:
		o->report = true;
		o->report_file = value;
		return 0;
	case O_RETRY:
		if (num_parse_u64(value, 0, TASKDEF_RETRIES_MAX, &n, "--retry", e))
			return -1;
		o->retries = (unsigned)n;
		return 0;
	case O_SANDBOX:
		if (value && one_of("sandbox", value, sandboxes, array_len(sandboxes), e) < 0)
			return -1;
		o->sandbox = value ? SANDBOX_OFF : SANDBOX_ALL;
		return 0;
	case O_SUMMARIZE:
		o->summarize = true;
		o->summary_file = value;
		return 0;
	case O_TAG:
		return add_tag(o, value, e);
	case O_TIMEOUT:
		return num_parse_u64(value, 1, TIMEOUT_MAX_MS, &o->timeout_ms, "--timeout", e);
	case O_VERBOSITY:
		if (num_parse_u64(value, 0, UINT32_MAX, &n, "--verbosity", e))
			return -1;
		o->verbose = n > 0;
		return 0;
	case O_HELP:
	case O_LATER:
		break;
	}
	bug("option %d", id);
}

/* 1: only help was asked for. */
static int
parse(struct run_options *o, int argc, char *const *argv, struct err *e)
{
	struct cache_flags c = {0};
	struct opt_parser p;
	const char *value;
	bool help = false;
	int id, r;

	opt_init(&p, "vx run", run_opts, argc, argv);
	while ((r = opt_next(&p, &id, &value, e)) == 1) {
		if (id == O_HELP)
			help = true;
		else if (set_option(o, &c, id, value, e))
			break;
	}
	o->words = p.words;
	o->strays = p.strays;
	o->forward = (const char *const *)argv + p.rest;
	o->nforward = (size_t)(argc - p.rest);
	if (r)
		return -1;
	if (help)
		return 1;
	if (check_plan(o, e))
		return -1;
	if (c.force && c.no_cache)
		return err_set(e, ERR_USAGE, 0, "--force and --no-cache contradict each other");
	o->no_read = c.no_read || c.no_cache || c.force;
	o->no_write = (c.no_write || c.no_cache) && !c.force;
	if (o->sandbox == SANDBOX_OFF && run_env_is_true("CI") &&
		!run_env_is_true("VX_SANDBOX_OFF"))
		return err_set(e, ERR_USAGE, 0,
			"--sandbox=off is refused under CI; set VX_SANDBOX_OFF=1 if it is meant");
	return 0;
}

static char *
typed_command(int argc, char *const *argv)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_adds(&sb, "vx run");
	for (int i = 0; i < argc; i++) {
		strbuf_addch(&sb, ' ');
		strbuf_add_sanitised(&sb, argv[i], strlen(argv[i]));
	}
	return strbuf_take(&sb);
}

static void
print_help(void)
{
	fputs("usage: vx run [OPTIONS] TASK… [-- ARGS]\n\n"
	      "Runs the tasks of the current directory's project and what they depend on.\n"
	      "TASK is a name, PROJECT#TASK, or //#TASK for the root project. ARGS go to the\n"
	      "requested commands. Without a TASK, on a terminal, vx asks which one.\n\n",
		stdout);
	opt_print_help(run_opts);
}

int
cmd_run(int argc, char *const *argv, struct err *e)
{
	struct run_options o = {0};
	cleanup_strbuf struct strbuf product = STRBUF_INIT;
	char *command = typed_command(argc, argv);
	int code = parse(&o, argc, argv, e);

	o.command = command;
	if (code == 1) {
		print_help();
		code = 0;
	} else {
		if (!code && !o.words.n)
			code = pick_task(&o, &o.words, e);
		if (!code)
			code = run_workspace(&o, &product, e);
		fwrite(product.buf, 1, product.len, stdout);
	}
	strvec_release(&o.words);
	strvec_release(&o.strays);
	strvec_release(&o.filters);
	strvec_release(&o.left_out);
	strvec_release(&o.tags);
	free(command);
	return code;
}

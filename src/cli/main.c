/* SPDX-License-Identifier: MIT */
/*
 * Finds the command, calls it, prints the one error at its end.
 */
#include "cli/cmd.h"
#include "config/taskdef.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/strbuf.h"
#include "util/timing.h"
#include "workspace/root.h"
#include <errno.h>
#include <signal.h>

static int cmd_help(int argc, char *const *argv, struct err *e);

#define NOT_YET "is not in this vx yet"
#define NEVER "is not in this vx"

const struct cmd cmd_table[] = {
	{"run", "run tasks and what they depend on", NULL, cmd_run},
	{"cache", "remove stored results: vx cache prune", NULL, cmd_cache},
	{"help", "print this page, or that of a command", NULL, cmd_help},
	{"version", "print the version", NULL, cmd_version},
	{"audit", NULL, NOT_YET, NULL},
	{"completions", NULL, NOT_YET, NULL},
	{"info", NULL, NOT_YET, NULL},
	{"init", NULL, NOT_YET, NULL},
	{"last", NULL, NOT_YET, NULL},
	{"lock", NULL, NOT_YET, NULL},
	{"show", NULL, NOT_YET, NULL},
	{"watch", NULL, NOT_YET, NULL},
	{"why", NULL, NOT_YET, NULL},
	{"mcp", NULL, NEVER, NULL},
	{"upgrade", NULL, NEVER, NULL},
	{NULL, NULL, NULL, NULL},
};

static void
print_usage(void)
{
	fputs("vx runs the tasks of a workspace: cached, in parallel, in a sandbox when asked.\n\n"
	      "usage: vx COMMAND [OPTIONS] [ARGS]\n\n",
		stdout);
	for (const struct cmd *c = cmd_table; c->name; c++)
		if (c->summary)
			printf("  %-10s %s\n", c->name, c->summary);
	fputs("\n`vx help COMMAND` or `vx COMMAND --help` says more; vx(1) says it all.\n", stdout);
}

/* `vx build`: a task typed as a command is the commonest slip. */
static int
unknown_command(const char *word, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;
	const char *names[32];
	const char *near;
	size_t n = 0;

	for (const struct cmd *c = cmd_table; c->name && n < array_len(names); c++)
		if (c->run)
			names[n++] = c->name;
	near = nearest_name(word, names, n);
	strbuf_add_sanitised(&shown, word, strlen(word));
	if (*word == '-')
		return err_set(e, ERR_USAGE, 0,
			"unknown flag %s: flags follow the command, as in `vx run build --all`%s",
			shown.buf,
			!strncmp(word, "-C", 2) ? "; for another directory, (cd DIR && vx run …)"
			: !strcmp(word, "-V")   ? "; or `vx version`"
						: "");
	if (near)
		return err_set(e, ERR_USAGE, 0, "'%s' is no command; did you mean `vx %s`?",
			shown.buf, near);
	return err_set(e, ERR_USAGE, 0,
		"'%s' is no command; if it is a task, run it with `vx run %s` (`vx help` lists the "
		"commands)",
		shown.buf, shown.buf);
}

static int
missing_command(const struct cmd *c, struct err *e)
{
	return err_set(e, ERR_USAGE, 0, "`vx %s` %s", c->name, c->missing);
}

static int
cmd_help(int argc, char *const *argv, struct err *e)
{
	static char help[] = "--help";
	char *const ask[] = {help, NULL};

	if (!argc) {
		print_usage();
		return 0;
	}
	for (const struct cmd *c = cmd_table; c->name; c++) {
		if (strcmp(c->name, argv[0]) != 0)
			continue;
		if (c->missing)
			return missing_command(c, e);
		if (c->run == cmd_run || c->run == cmd_cache)
			return c->run(1, ask, e);
		print_usage(); /* of those that take no words it says all there is */
		return 0;
	}
	return unknown_command(argv[0], e);
}

static int
dispatch(int argc, char *const *argv, struct err *e)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		struct root root;

		print_usage();
		if (root_find(NULL, ROOT_LOOK, &root, e))
			return -1;
		root_release(&root);
		return 0;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return cmd_help(argc - 2, argv + 2, e);
	if (!strcmp(word, "--version"))
		return cmd_version(0, NULL, e);
	for (const struct cmd *c = cmd_table; c->name; c++) {
		if (strcmp(c->name, word))
			continue;
		if (c->missing)
			return missing_command(c, e);
		return c->run(argc - 2, argv + 2, e);
	}
	return unknown_command(word, e);
}

int
main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	int code;

	fd_open_standard();
	log_init();
	timing_init();
	/* A reader that goes away (`| head`) changes nothing about the run: writes to it fail,
	 * quietly. */
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	/* Nor does a file that may not grow (`ulimit -f`) end it in the middle: that is an error like others. */
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	code = dispatch(argc, argv, &e);
	if (code < 0) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;

		/* It may hold a name that somebody chose to upset a terminal. */
		strbuf_add_sanitised(&text, e.text, strlen(e.text));
		fprintf(stderr, "vx: %s\n", text.buf);
		code = err_exit_code(&e);
	}
	if (fflush(stdout) && errno != EPIPE && !code) {
		fprintf(stderr, "vx: write to standard output: %s\n", strerror(errno));
		code = 2;
	}
	return code;
}

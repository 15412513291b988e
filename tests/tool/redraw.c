/* SPDX-License-Identifier: MIT */
/*
 * redraw-tool ROWS REDRAWS
 *	Draws the live region of a run on standard output, a terminal, so many times, each with one line above it, with
 *	so many tasks that run, and prints on standard error the microseconds of the processor for each.
 */
#include "run/plan.h"
#include "run/report.h"
#include "util/alloc.h"
#include "util/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double
cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int
main(int argc, char **argv)
{
	size_t rows = argc == 3 ? (size_t)strtol(argv[1], NULL, 10) : 0;
	long redraws = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	struct report_options o = {.flow = FLOW_BROAD, .ntasks = 3270, .nprojects = 1090};
	static struct taskdef def = {.command = "true"};
	static struct node node = {.id = "package-0007#build", .def = &def};
	struct task ended = {.node = &node, .status = TASK_SUCCESS, .state = TASK_DONE};
	struct report *r;
	double us = 0;

	if (!rows || redraws <= 0 || !isatty(STDOUT_FILENO)) {
		fprintf(stderr, "usage: redraw-tool ROWS REDRAWS, on a terminal\n");
		return 2;
	}
	r = report_new(&o);
	for (size_t i = 0; i < rows; i++) {
		struct task *t = xcalloc(1, sizeof(*t));

		t->node = &node;
		report_started(r, t, "true");
	}
	for (long i = 0; i < redraws; i++) {
		double begin;

		report_ended(r, &(struct report_end){.task = &ended});
		begin = cpu_us();
		report_redraw(r);
		us += cpu_us() - begin;
	}
	fprintf(stderr, "%.2f\n", us / (double)redraws);
	/* The report and its tasks go with the process: what is measured is over. */
	_exit(0);
}

/* SPDX-License-Identifier: MIT */
/*
 * load DIR STATE ROUNDS [forget]
 *	Finds the workspace from DIR and loads it, as each run does, and prints the milliseconds of the processor for
 *	each round; of what the kernel has in memory nothing is waited for. STATE is a directory for what is remembered
 *	of the round before; with `forget` each round finds nothing there.
 */
#include "util/cleanup.h"
#include "util/err.h"
#include "util/num.h"
#include "workspace/root.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
load(const char *dir, int statefd, struct err *e)
{
	struct root root;
	struct workspace w;

	if (root_find(dir, ROOT_EVALUATE, &root, e) < 0)
		return;
	if (workspace_load(&root, statefd, &w, e) == 0)
		workspace_release(&w);
	root_release(&root);
}

int
main(int argc, char **argv)
{
	bool forget = argc == 5 && !strcmp(argv[4], "forget");
	cleanup_close int statefd =
		argc > 2 ? open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct err e = ERR_INIT;
	uint64_t rounds;

	if (argc != 4 + forget || statefd < 0 ||
		num_parse_u64(argv[3], 1, 1000, &rounds, "ROUNDS", &e) < 0) {
		fprintf(stderr, "load DIR STATE ROUNDS [forget]\n");
		return 2;
	}
	while (rounds-- && !err_is_set(&e)) {
		double start;

		if (forget && unlinkat(statefd, "sources", 0) < 0 && errno != ENOENT)
			err_set(&e, ERR_IO, errno, "%s/sources", argv[2]);
		start = cpu_ms();
		load(argv[1], statefd, &e);
		printf("%.3f\n", cpu_ms() - start);
	}
	if (err_is_set(&e))
		fprintf(stderr, "load: %s\n", e.text);
	return err_is_set(&e);
}

/* SPDX-License-Identifier: MIT */
/* spawn-tool N COMMAND: what starting N shells costs and nothing else: posix_spawn of `sh -c COMMAND`, one after
 * the other, each waited for. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int
main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	char name[] = "sh", option[] = "-c";

	if (n <= 0) {
		fprintf(stderr, "usage: spawn-tool N COMMAND\n");
		return 2;
	}
	while (n--) {
		char *const args[] = {name, option, argv[2], NULL};
		pid_t pid;
		int st, r = posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ);

		if (r) {
			fprintf(stderr, "spawn-tool: /bin/sh: %s\n", strerror(r));
			return 1;
		}
		while (waitpid(pid, &st, 0) < 0)
			if (errno != EINTR)
				return 1;
		if (st)
			return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * unruly WAY UP: a task that is hard to end. It writes a line to the FIFO `up` when it is as it wants to be, and
 * then has no end of its own:
 *
 *	deaf		ignores what asks it to end
 *	forks		the same, and its only child is never the same for long: each forks the next and exits
 *	sessions	the same, each in a session of its own
 *	stopped		a child of it is stopped, and would listen; it ignores the same, and ends with that child
 *
 * What it had open, all of its processes have.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void
ignore_all(void)
{
	static const int asks[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		signal(asks[i], SIG_IGN);
}

/* For a moment each, so that most is not what the machine does. */
static void
go_on_forking(int with_session)
{
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0);
		if (!pid && with_session)
			setsid();
		poll(NULL, 0, 2);
	}
}

static void
say_up(const char *fifo)
{
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "up\n", 3) != 3) {
		fprintf(stderr, "unruly: %s: %s\n", fifo, strerror(errno));
		exit(1);
	}
	close(fd);
}

int
main(int argc, char **argv)
{
	const char *way = argc == 3 ? argv[1] : "";
	int forks = !strcmp(way, "forks"), sessions = !strcmp(way, "sessions");
	pid_t child = 0;

	if (!strcmp(way, "stopped")) {
		child = fork();
		if (!child) {
			raise(SIGSTOP);
			_exit(3);
		}
		if (child < 0 || waitpid(child, NULL, WUNTRACED) != child)
			return 1;
		ignore_all();
	} else if (forks || sessions || !strcmp(way, "deaf")) {
		ignore_all();
		if (forks || sessions)
			child = fork();
		if (!child && (forks || sessions))
			go_on_forking(sessions);
	} else {
		fprintf(stderr, "usage: unruly deaf|forks|sessions|stopped FIFO\n");
		return 2;
	}
	say_up(argv[2]);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (!strcmp(way, "stopped"))
		return 0;
	for (;;)
		pause();
}

/* SPDX-License-Identifier: MIT */
#include "util/stop.h"
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void
stop_signals(sigset_t *ret)
{
	sigemptyset(ret);
	for (size_t i = 0; i < array_len(signals); i++)
		if (!stop_is_ignored(signals[i]))
			sigaddset(ret, signals[i]);
}

bool
stop_is_ignored(int sig)
{
	struct sigaction now;

	return !sigaction(sig, NULL, &now) && now.sa_handler == SIG_IGN;
}

static pid_t needed;

void
stop_without(pid_t parent)
{
	needed = parent;
}

int
stop_asked_by(void)
{
	sigset_t pending;

	if (needed && getppid() != needed)
		return SIGTERM;
	if (sigpending(&pending))
		return 0;
	for (size_t i = 0; i < array_len(signals); i++)
		if (sigismember(&pending, signals[i]) && !stop_is_ignored(signals[i]))
			return signals[i];
	return 0;
}

bool
stop_is_asked(void)
{
	return stop_asked_by() != 0;
}

bool
stop_is_asked_by_now(void)
{
	static unsigned calls;

	return calls++ % 64 == 0 && stop_is_asked();
}

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

bool
stop_is_asked(void)
{
	sigset_t pending;

	if (needed && getppid() != needed)
		return true;
	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < array_len(signals); i++)
		if (sigismember(&pending, signals[i]) && !stop_is_ignored(signals[i]))
			return true;
	return false;
}

bool
stop_is_asked_by_now(void)
{
	static unsigned calls;

	return calls++ % 64 == 0 && stop_is_asked();
}

/* SPDX-License-Identifier: MIT */
#include "cli/pick.h"
#include "config/taskdef.h"
#include "graph/select.h"
#include "run/run.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/num.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum {
	ANSWER_MAX = 4096
};

struct asking {
	const struct select_choice *v;
	size_t n;
	struct strvec *words;
};

static volatile sig_atomic_t caught;

static void catch (int sig)
{
	caught = sig;
}

/* A line of the terminal: its length, 0 at its end (Ctrl-D on an empty line), -1 with errno, EINTR after a signal.
 * The signals are blocked but for the wait, so that none falls between a look and a read. */
static ssize_t
read_line(char *buf, size_t max, const sigset_t *waiting)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	size_t n = 0;

	for (;;) {
		ssize_t r;

		if (ppoll(&p, 1, NULL, waiting) < 0) {
			if (errno == EINTR && !caught)
				continue;
			return -1;
		}
		r = read(STDIN_FILENO, buf + n, max - n);
		if (r < 0)
			return -1;
		n += (size_t)r;
		if (!r || n == max || buf[n - 1] == '\n')
			return (ssize_t)n;
	}
}

static void
print_choices(const struct asking *a)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < a->n; i++) {
		const char *about = a->v[i].description;

		strbuf_addf(&out, "%4zu  ", i + 1);
		strbuf_add_sanitised(&out, a->v[i].name, strlen(a->v[i].name));
		if (about) {
			strbuf_adds(&out, "  ");
			strbuf_add_sanitised(&out, about, strlen(about));
		}
		strbuf_addch(&out, '\n');
	}
	fputs(out.buf, stderr);
}

/* The task by its number or its name, or as it is typed with its project, which the run judges; NULL: none, and that is said. */
static const char *
find(const struct asking *a, const char *answer)
{
	cleanup_free const char **names = xcalloc(a->n, sizeof(*names));
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;
	struct err none = ERR_INIT;
	const char *near;
	uint64_t number;

	for (size_t i = 0; i < a->n; i++) {
		names[i] = a->v[i].name;
		if (!strcmp(answer, names[i]))
			return names[i];
	}
	if (strchr(answer, '#'))
		return answer;
	if (!num_parse_u64(answer, 1, a->n, &number, "", &none))
		return names[number - 1];
	near = nearest_name(answer, names, a->n);
	strbuf_add_sanitised(&shown, answer, strlen(answer));
	fprintf(stderr, "no task '%s'; write a number from 1 to %zu, or a name%s%s%s\n", shown.buf,
		a->n, near ? " (" : "", near ? near : "", near ? "?)" : "");
	return NULL;
}

static int
ask(const struct asking *a, const sigset_t *waiting)
{
	char line[ANSWER_MAX + 1];

	print_choices(a);
	for (;;) {
		const char *task;
		char *end, *answer = line;
		ssize_t n;

		fputs("which task? ", stderr);
		n = read_line(line, ANSWER_MAX, waiting);
		if (n <= 0) {
			fputs(caught ? "\n" : "\nvx: no task was chosen, nothing is run\n", stderr);
			return caught ? 128 + caught : 1;
		}
		line[n] = '\0';
		answer += strspn(answer, " \t");
		end = answer + strcspn(answer, "\n");
		while (end > answer && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		*end = '\0';
		task = *answer ? find(a, answer) : NULL;
		if (task) {
			strvec_push(a->words, task);
			return 0;
		}
	}
}

/* With the signals that end a process by their own caught meanwhile: vx exits, it is not killed. */
static int
ask_choices(void *ctx, const struct select_choice *v, size_t n, struct err *e attr_unused)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct asking *a = ctx;
	struct sigaction old[array_len(sigs)];
	sigset_t blocked, before;
	int r;

	a->v = v;
	a->n = n;
	if (!n)
		return 0; /* the run says so */
	sigemptyset(&blocked);
	for (size_t i = 0; i < array_len(sigs); i++)
		sigaddset(&blocked, sigs[i]);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	for (size_t i = 0; i < array_len(sigs); i++) {
		sigaction(sigs[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN)
			sigaction(sigs[i], &(struct sigaction){.sa_handler = catch}, NULL);
	}
	r = ask(a, &before);
	for (size_t i = 0; i < array_len(sigs); i++)
		sigaction(sigs[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int
pick_task(const struct run_options *o, struct strvec *words, struct err *e)
{
	struct asking a = {.words = words};

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return 0;
	return run_choices(o, ask_choices, &a, e);
}

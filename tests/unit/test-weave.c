/* SPDX-License-Identifier: MIT */
#include "run/weave.h"
#include "tests/tap.h"
#include "util/err.h"

static struct loop *loop;
static struct strbuf told = STRBUF_INIT;
static struct weave weave;
static bool stops; /* the loop, when something comes out */

static void
tell(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	(void)ctx;
	strbuf_addf(&told, "%s[%.*s] ", stream == EXEC_STDOUT ? "out" : "err", (int)n, p);
	if (stops)
		loop_stop(loop);
}

static void
out(const char *text)
{
	weave_add(&weave, EXEC_STDOUT, text, strlen(text));
}

static void
err(const char *text)
{
	weave_add(&weave, EXEC_STDERR, text, strlen(text));
}

static void
begin(void)
{
	weave_init(&weave, loop, tell, NULL);
	strbuf_reset(&told);
}

static void
came(const char *want, const char *name)
{
	ok_str(told.len ? told.buf : "", want, name);
	strbuf_reset(&told);
}

static void
test_lines(void)
{
	begin();
	out("a\n");
	err("b\n");
	out("c\n");
	came("out[a\n] err[b\n] out[c\n] ", "whole lines come as they are");
	err("cat: ");
	out("p\n");
	out("q");
	came("err[cat: ] ", "while a line is open the other stream waits");
	err("no such file\nand ");
	came("err[no such file\n] out[p\nq] ",
		"until that line ends, and its next one waits in turn");
	out("r\n");
	came("out[r\n] err[and ] ", "which comes after that");
	err("so on\n");
	weave_end(&weave);
	came("err[so on\n] ", "at the end nothing is left");

	out("open");
	err("x");
	weave_end(&weave);
	came("out[open] err[x] ", "what waits comes at the end");
	err("y");
	out("z\n");
	came("err[y] ", "and all begins anew");
	weave_end(&weave);
	came("out[z\n] ", "also for what waits");
	err("");
	weave_end(&weave);
	came("", "nothing is nothing");
	weave_release(&weave);
}

static void
test_patience(void)
{
	struct err e = ERR_INIT;

	begin();
	out("name? ");
	err("warning\n");
	came("out[name? ] ", "a prompt");
	stops = true;
	ok_int(loop_run(loop, &e), 0, "nothing comes for a while");
	stops = false;
	came("err[warning\n] ", "then the other one waits no longer");
	out("bob\n");
	came("out[bob\n] ", "nor does the first");
	weave_release(&weave);
}

static void
test_much(void)
{
	static char text[WEAVE_MAX];

	memset(text, '\n', sizeof(text));
	begin();
	out("open");
	weave_add(&weave, EXEC_STDERR, text, sizeof(text));
	came("out[open] ", "much waits");
	err("\n");
	ok_int((int)told.len, WEAVE_MAX + 1 + 6, "too much does not");
	weave_add(&weave, EXEC_STDERR, "l", 1);
	out("m");
	weave_release(&weave);
	strbuf_release(&told);
}

int
main(void)
{
	struct err e = ERR_INIT;
	sigset_t none;

	sigemptyset(&none);
	if (loop_new(&none, &loop, &e))
		bug("%s", e.text);
	test_lines();
	test_patience();
	test_much();
	loop_free(loop);
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "exec/readiness.h"
#include "tests/tap.h"
#include "util/err.h"
#include "util/regex.h"

static struct readiness ready;
static struct regex *when;

static void
begin(const char *pattern)
{
	struct err e = ERR_INIT;

	when = regex_new(pattern, &e);
	if (!when)
		diag("%s", e.text);
	readiness_init(&ready, when);
}

static void
end(void)
{
	readiness_release(&ready);
	regex_free(when);
}

static bool
says(enum exec_stream stream, const char *text)
{
	return readiness_sees(&ready, stream, text, strlen(text));
}

static void
check(const char *pattern, const char *text, bool want, const char *name)
{
	size_t n = strlen(text);
	bool whole, split = false;

	begin(pattern);
	whole = says(EXEC_STDOUT, text);
	end();
	begin(pattern);
	for (size_t i = 0; i < n && !split; i++)
		split = readiness_sees(&ready, EXEC_STDERR, text + i, 1);
	end();
	ok(whole == want && split == want, "%s", name);
}

static void
test_long_lines(void)
{
	static char filler[40000];

	memset(filler, '.', sizeof(filler) - 1);
	begin("^head");
	ok(!says(EXEC_STDOUT, "hea"), "not yet");
	ok(says(EXEC_STDOUT, "d"), "the head of a line");
	end();
	begin("head.*tail");
	says(EXEC_STDOUT, "hea-d");
	says(EXEC_STDOUT, filler);
	ok(!says(EXEC_STDOUT, "tail"), "another text");
	end();
	begin("x.*tail");
	says(EXEC_STDOUT, "hea");
	says(EXEC_STDOUT, filler);
	says(EXEC_STDOUT, filler);
	ok(ready.plain.len < sizeof(filler), "of a long line nothing is kept");
	ok(says(EXEC_STDOUT, "x tail"), "its end");
	end();
	begin("^head\\.+tail$");
	says(EXEC_STDOUT, "head");
	says(EXEC_STDOUT, filler);
	says(EXEC_STDOUT, filler);
	ok(says(EXEC_STDOUT, "tail"), "all of it counts");
	end();
	begin("^tail");
	says(EXEC_STDOUT, filler);
	says(EXEC_STDOUT, filler);
	ok(!says(EXEC_STDOUT, "tail"), "and it begins but once");
	end();
	begin("h.*tail");
	says(EXEC_STDOUT, "_");
	says(EXEC_STDERR, "h");
	says(EXEC_STDOUT, filler);
	says(EXEC_STDOUT, filler);
	ok(!says(EXEC_STDOUT, "tail"), "the streams do not mix");
	end();
}

int
main(void)
{
	check("^ready$", "not ready\nready\n", true, "a line");
	check("^ready$", "ready\r\nx", true, "one that a terminal would end");
	check("^ready$", "not ready\nreadily\n", false, "only that line");
	check("^rea-dy$", "rea\ndy\n", false, "not over two lines");
	check("^y$", "x\ny\nz\n", true, "one of several");
	check("^$", "x", false, "nothing is no line");
	check("^$", "x\n\ny", true, "an empty line is one");
	check("^$", "x\r\r\n\r", true, "a return at its end is no part of a line");
	check("^a\\rb$", "a\rb\r\n", true, "one inside is");
	check("^[ä✓]+$", "ä✓\n", true, "characters of several bytes");
	check("^\xc3$", "\xc3\n", true, "the half of one");
	check("^.é$", "\xc3\xc3\xa9\n", true, "which another follows");
	check("^up$", "\033[32mu\033[1mp\033[0m", true, "without escapes");
	test_long_lines();
	return tap_done();
}

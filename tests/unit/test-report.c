/* SPDX-License-Identifier: MIT */
#include "run/report.h"
#include "tests/tap.h"

static void
check_duration(uint64_t ns, const char *want)
{
	char buf[32];

	report_duration(ns, buf, sizeof(buf));
	ok_str(buf, want, want);
}

static void
check_strip(const char *in, const char *want, const char *name)
{
	struct strbuf whole = STRBUF_INIT, split = STRBUF_INIT;
	struct escape_state a = {0}, b = {0};

	report_strip(&a, in, strlen(in), &whole);
	for (const char *p = in; *p; p++)
		report_strip(&b, p, 1, &split);
	ok_str(whole.buf, want, name);
	ok_str(split.buf, want, "  and byte by byte");
	strbuf_release(&whole);
	strbuf_release(&split);
}

int
main(void)
{
	check_duration(0, "0ms");
	check_duration(999499999, "999ms");
	check_duration(1250000000, "1.2s");
	check_duration(125000000000u, "2m 05s");
	check_strip("a\033[1;31mred\033[0m b", "ared b", "colours");
	check_strip("\033]0;title\007x\033]8;;u\033\\y", "xy", "titles and links");
	check_strip("\033(Bz\033=w", "zw", "character sets and modes");
	check_strip("plain é\n", "plain é\n", "text stays");
	return tap_done();
}

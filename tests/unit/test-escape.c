/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/escape.h"
#include "util/strbuf.h"

static void
check_strip(const char *in, const char *want, const char *name)
{
	struct strbuf whole = STRBUF_INIT, split = STRBUF_INIT;
	struct escape_state a = {0}, b = {0};

	escape_strip(&a, in, strlen(in), &whole);
	for (const char *p = in; *p; p++)
		escape_strip(&b, p, 1, &split);
	ok_str(whole.buf, want, name);
	ok_str(split.buf, want, "  and byte by byte");
	strbuf_release(&whole);
	strbuf_release(&split);
}

int
main(void)
{
	check_strip("a\033[1;31mred\033[0m b", "ared b", "colours");
	check_strip("\033]0;title\007x\033]8;;u\033\\y", "xy", "titles and links");
	check_strip("\033(Bz\033=w", "zw", "character sets and modes");
	check_strip("plain é\n", "plain é\n", "text stays");
	return tap_done();
}

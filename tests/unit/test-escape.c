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

static void
check_colours(const char *in, const char *want, const char *name)
{
	struct strbuf whole = STRBUF_INIT, split = STRBUF_INIT;
	struct escape_state a = {0}, b = {0};

	escape_strip_but_colours(&a, in, strlen(in), &whole);
	for (const char *p = in; *p; p++)
		escape_strip_but_colours(&b, p, 1, &split);
	ok_str(whole.buf, want, name);
	ok_str(split.buf, want, "  and byte by byte");
	strbuf_release(&whole);
	strbuf_release(&split);
}

/* What puts back what `in` has done. */
static void
check_back(const char *in, const char *want, const char *name)
{
	struct strbuf whole = STRBUF_INIT, split = STRBUF_INIT;
	struct escape_screen a = {0}, b = {0};

	escape_watch(&a, in, strlen(in));
	escape_put_back(&a, &whole);
	ok_str(whole.buf, want, name);
	for (const char *p = in; *p; p++)
		escape_watch(&b, p, 1);
	escape_put_back(&b, &split);
	ok_str(split.buf, want, "  and byte by byte");
	strbuf_reset(&whole);
	escape_put_back(&a, &whole);
	ok_str(whole.buf, "", "  once");
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
	check_strip("a\033]0;no end\nb\n", "a\nb\n", "one without an end is over with the line");
	check_strip("a\033[1\033[2Kb", "ab", "one that another breaks off");
	check_strip("\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;"
		    "28;29mx",
		"x", "a long one");

	check_colours("a\033[1;31mred\033[0m b", "a\033[1;31mred\033[0m b", "colours stay");
	check_colours("\033[2J\033[?1049h\033[?25l\033[3;1Hx\033[K\033[A\033]0;t\007y\033[>4;1mz",
		"xyz", "what moves, clears or sets does not");

	check_back("x\n", "", "whole lines leave nothing");
	check_back("x", "\n", "one without an end gets it");
	check_back("\033[31mred", "\033[0m\n", "a colour");
	check_back("\033[31mred\033[0m\n\033[1mb\033[m\n", "", "one that was taken back");
	check_back("\033[32mok\n\033[0m", "", "behind the line, too");
	check_back(
		"\033[?1049h\033[?25lx", "\033[?1049l\033[?25h", "another screen, a hidden cursor");
	check_back("\033[?1049h\033[?25l\033[?1049;25h\033[?1049l", "", "left and shown again");
	check_back("\033[?1000;1006;2004h", "\033[?1000l\033[?1006l\033[?2004l", "mouse and paste");
	check_back("\033[?7l\033(0q\033[2;5r", "\033(B\0337\033[r\0338\033[?7h\n",
		"lines, letters, a part of the screen");
	check_back("\033[?25l\033[31mx\033c", "", "a reset");
	check_back("10%\r20%\r\033[K", "", "a bar that was wiped away");
	check_back("\033[1G\033[0K| spin\033[2K\033[1G", "", "a spinner, too");
	check_back("10%\r", "\n", "one that was not");
	check_back("x\n\033]0;title", "\030", "a sequence without an end");
	return tap_done();
}

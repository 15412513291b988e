/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/regex.h"
#include "util/strbuf.h"

static void
check(const char *pattern, const char *text, bool want)
{
	struct err e = ERR_INIT;
	struct regex *re = regex_new(pattern, &e);

	ok(re && regex_finds(re, text, strlen(text)) == want, "/%s/ %s in \"%.40s\"", pattern,
		want ? "is" : "is not", text);
	if (!re)
		diag("%s", e.text);
	regex_free(re);
}

static void
finds(const char *pattern, const char *text)
{
	check(pattern, text, true);
}

static void
misses(const char *pattern, const char *text)
{
	check(pattern, text, false);
}

static void
refused(const char *pattern, const char *want)
{
	struct err e = ERR_INIT;
	struct regex *re = regex_new(pattern, &e);

	ok(!re && e.kind == ERR_CONFIG, "/%.40s/ is refused", pattern);
	ok_err(&e, want, want);
	regex_free(re);
}

/* What tempts a backtracking matcher: here every character costs no more than the steps there are. */
static void
check_bound(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < 65536; i++)
		strbuf_addch(&text, 'a');
	misses("^(a*)*(a|aa)+$b", text.buf);
	finds("(x+x+)+y|a$", text.buf);
}

int
main(void)
{
	finds("ready", "server ready in 3 ms");
	misses("ready", "read y");
	finds("", "");
	finds("ready in \\d+ ?ms", "ready in 312ms");
	misses("ready in \\d+ ?ms", "ready in ms");
	finds("^ready$", "ready");
	misses("^ready$", "ready ");
	misses("^ready$", " ready");
	finds("https?://[^\\s:]+:\\d{2,5}\\b", "at http://localhost:5173/");
	misses("https?://[^\\s:]+:\\d{2,5}\\b", "at http://localhost:5/");
	misses(":\\d{2,3}\\b", ":12345");
	finds("(?:up|ready|listening on) .*3000", "listening on port 3000");
	finds("a|b|c|", "x");
	finds("^(?:a|b|c)$", "c");
	misses("^(?:a|b|c)$", "ab");
	finds("^(a|b|cd)*$", "abcdab");
	misses("^(a|b|cd)*$", "abcdac");
	finds("^(?<name>x)y$", "xy");
	finds("^a{3}$", "aaa");
	misses("^a{3}$", "aa");
	misses("^a{3}$", "aaaa");
	finds("^a{2,}$", "aaaaa");
	misses("^a{2,}$", "a");
	finds("^a{0,2}$", "");
	finds("^a{0,2}b$", "aab");
	misses("^a{0,2}$", "aaa");
	finds("^(ab|c){2,3}$", "abcab");
	misses("^(ab|c){2,3}$", "ab");
	finds("^a{0}b$", "b");
	misses("^a{0}b$", "ab");
	finds("^a.*?b+?c??d{1,2}?$", "axxbbd");
	finds("{x} {,2} {1", "{x} {,2} {1");
	finds("a]}", "a]}");
	finds("^[]-a]$|q", "q");
	misses("[]", "x");
	finds("^[^]$", "\n");
	finds("^[\\]\\-^[]+$", "]-^[");
	finds("^[\\d-x]+$", "3-x");
	misses("^[\\d-x]+$", "y");
	finds("^[\\w-.]+@[a-\\d]+$", "x.y-z@a-5");
	misses("^[a-\\d]$", "b");
	finds("^[\\d-\\s]+$", "1 -2");
	finds("^[^\\W_]+$", "aZ9");
	misses("^[^\\W_]+$", "a_");
	finds("^[\\D]$", "x");
	misses("^[\\D]$", "5");
	finds("^\\D\\W\\S$", "x.y");
	misses("\\S", " \t\xc2\xa0");
	finds("^[à-ü]é?.$", "ê✓");
	misses("^.$", "ab");
	misses(".", "\r\n");
	finds("^.$", "\xff");
	finds("\\x41\\u2713\\t\\cJ\\0?", "A✓\t\n");
	finds("\\bready\\b", "is ready.");
	misses("\\bready\\b", "already");
	finds("\\Bready", "already");
	finds("a\\.b\\/\\$\\(", "a.b/$(");
	misses("a\\.b", "axb");
	finds("()*x", "x");
	finds("^(a?){3}$", "aa");
	finds("(^|,)x($|,)", "y,x,z");
	finds("^((a|b)(c|d)?|e)+f$", "acbef");
	check_bound();

	refused("(?=x)", "at character 1: looks ahead");
	refused("a(?!x)", "at character 2: looks ahead");
	refused("(?<=x)", "looks behind");
	refused("(?<!x)", "looks behind");
	refused("(?i)x", "only (…), (?:…) and (?<name>…)");
	refused("(?i:x)", "only (…), (?:…) and (?<name>…)");
	refused("(a)\\1", "at character 4: references back");
	refused("\\k<x>", "references back");
	refused("\\p{L}", "\\p");
	refused("é[a", "at character 2: this bracket is not closed");
	refused("a(b", "at character 2: this parenthesis is not closed");
	refused("a)b", "at character 2: this parenthesis was not opened");
	refused("*a", "nothing to repeat");
	refused("a**", "at character 3: there is nothing to repeat");
	refused("a|+", "nothing to repeat");
	refused("({2})", "nothing to repeat");
	refused("^*", "nothing to repeat");
	refused("\\b+", "nothing to repeat");
	refused("a{3,2}", "counts down");
	refused("[z-a]", "ends before it begins");
	refused("a\\", "nothing after the backslash");
	refused("\\q", "no meaning");
	refused("[\\B]", "no meaning");
	refused("\\x1", "two hexadecimal digits");
	refused("\\u12", "four hexadecimal digits");
	refused("\\01", "octal");
	refused("\\c1", "a letter after \\c");
	refused("((a{100}){100}){100}", "too large");
	refused("a{99999999999999999999}", "too large");
	return tap_done();
}

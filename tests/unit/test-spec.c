/* SPDX-License-Identifier: MIT */
#include "proto/spec.h"
#include "tests/tap.h"
#include "util/strbuf.h"

#define HEAD "vx-spec 1\nworkspace /w\ncwd packages/app\nscratch /w/.vx/s\n"
#define TAIL "arg true\nend\n"

static void
test_round_trip(void)
{
	cleanup_strbuf struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct spec s = SPEC_INIT, back = SPEC_INIT;
	struct err e = ERR_INIT;

	s.workspace = strdup("/w");
	s.cwd = strdup("");
	s.scratch = strdup("/w/.vx/scratch/1");
	s.home = strdup("/home/u");
	s.program = strdup("/bin/sh");
	strvec_push(&s.argv, "sh");
	strvec_push(&s.argv, "-c");
	strvec_push(&s.argv, " a\nb\t\\n\xff\x1b ");
	strvec_push(&s.argv, "");
	strvec_push(&s.env, "A=");
	strvec_push(&s.env, "B=x=y\n");
	strvec_push(&s.hide, "/cache");
	strvec_push(&s.stores, "/home/v/.ssh");
	strvec_push(&s.sockets, "/run/x.sock");
	strvec_push(&s.reports, "p/a");
	strvec_push(&s.reports, "");
	spec_add_rule(&s, SPEC_READ, false, "");
	spec_add_rule(&s, SPEC_WRITE, true, "dist/\\[id\\]/**");
	spec_add_rule(&s, SPEC_DENY_READ, false, "a b");
	spec_add_rule(&s, SPEC_DENY_WRITE, true, "*");
	spec_add_rule(&s, SPEC_OUTPUT, false, "dist");
	spec_add_rule(&s, SPEC_QUIET, false, ".vx");
	spec_add_rule(&s, SPEC_READ, false, "/opt/tool");
	spec_add_rule(&s, SPEC_IGNORE_READ, false, "/home/v/.ssh");
	spec_add_rule(&s, SPEC_IGNORE_WRITE, true, "**/*.log");
	s.hermetic = s.weaker = s.git_config = s.unix_sockets = s.nested = s.fuse_off = s.attached =
		true;

	spec_encode(&s, &first);
	ok_int(spec_decode(first.buf, first.len, &back, &e), 0, "what is written can be read");
	spec_encode(&back, &second);
	ok_str(second.buf, first.buf, "and is the same");
	ok_str(back.argv.v[2], " a\nb\t\\n\xff\x1b ", "escapes, blanks and high bytes");
	ok_str(back.argv.v[3], "", "an empty word");
	ok_str(back.cwd, "", "the workspace as working directory");
	ok_str(back.program, "/bin/sh", "a program that its first word does not name");
	ok(back.stores.n == 1 && !strcmp(back.stores.v[0], "/home/v/.ssh"), "a store");
	ok(back.sockets.n == 1 && !strcmp(back.sockets.v[0], "/run/x.sock"), "a socket");
	ok(back.reports.n == 2 && !strcmp(back.reports.v[0], "p/a") && !*back.reports.v[1],
		"places that matter");
	ok_int((long long)back.nrules, 9, "all rules");
	ok_str(back.rules[0].path, "", "a rule on the workspace itself");
	ok(back.rules[1].kind == SPEC_WRITE && back.rules[1].is_glob, "a glob keeps its kind");
	ok_str(back.rules[1].path, "dist/\\[id\\]/**", "and its backslashes");
	ok(back.hermetic && back.weaker && back.git_config && back.unix_sockets && back.nested &&
			back.fuse_off && back.attached,
		"flags");
	spec_release(&s);
	spec_release(&back);
}

static void
test_live(void)
{
	static const char good[] = HEAD "live\nread src\narg a\nend\n";
	static const char bad[] = HEAD "live\narg a\noutput dist\nend\n";
	cleanup_strbuf struct strbuf again = STRBUF_INIT;
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;

	ok(!spec_decode(good, sizeof(good) - 1, &s, &e) && s.live, "a live view");
	spec_encode(&s, &again);
	ok(strstr(again.buf, "\nlive\n") != NULL, "is written as it is read");
	spec_release(&s);
	ok_int(spec_decode(bad, sizeof(bad) - 1, &s, &e), -1, "outputs in it");
	ok_err(&e, "\"output\" has no meaning in a live view", "are refused");
}

static void
test_by_hand(void)
{
	static const char text[] = HEAD "read src\nread-glob lib/**/*.ts\ndeny-write-glob a*\n"
					"quiet .vx\narg \narg\\x20\nend\n";
	static const char good[] = HEAD "read src\nread-glob lib/**/*.ts\ndeny-write-glob a*\n"
					"quiet .vx\narg a\\x20b\narg \narg\nend\n";
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;

	ok_int(spec_decode(text, sizeof(text) - 1, &s, &e), -1, "a word is not unescaped");
	err_clear(&e);
	ok_int(spec_decode(good, sizeof(good) - 1, &s, &e), 0, "a spec written by hand");
	ok_int((long long)s.argv.n, 3, "has three words");
	ok_str(s.argv.v[0], "a b", "one with an escape");
	ok(!*s.argv.v[1] && !*s.argv.v[2], "two empty ones");
	ok(!s.home && !s.program && !s.nested, "what is not given is off");
	ok(s.rules[3].kind == SPEC_QUIET && !s.rules[3].is_glob, "rules in their order");
	spec_release(&s);
}

static void
refused(const char *text, size_t n, const char *why)
{
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;

	ok_int(spec_decode(text, n, &s, &e), -1, why);
	ok_err(&e, why, why);
	ok(!s.workspace && !s.rules, "nothing is left in the output");
	spec_release(&s);
}
#define REFUSED(text, why) refused(text, sizeof(text) - 1, why)

static void
test_refusals(void)
{
	REFUSED("", "no line \"end\"");
	REFUSED("vx-spec 2\nend\n", "line 1 is \"vx-spec 2\", and \"vx-spec 1\" is what");
	REFUSED("vx-spec 1", "line 1 does not end");
	REFUSED(HEAD "arg true\n", "cut off");
	REFUSED(HEAD TAIL "arg x\n", "line 7 is after \"end\"");
	REFUSED(HEAD "end\n", "no line \"arg\"");
	REFUSED("vx-spec 1\nworkspace /w\ncwd .\n" TAIL, "no line \"scratch\"");
	REFUSED(HEAD "reed src\n" TAIL, "line 5: unknown word \"reed\"");
	REFUSED(HEAD "re\x1b[2J src\n" TAIL, "unknown word \"re\\x1b[2J\"");
	REFUSED(HEAD "-glob src\n" TAIL, "unknown word \"-glob\"");
	REFUSED(HEAD "\n" TAIL, "it is empty");
	REFUSED(HEAD "cwd x\n" TAIL, "cwd: given twice");
	REFUSED(HEAD "nested\nnested\n" TAIL, "nested: given twice");
	REFUSED(HEAD "nested 1\n" TAIL, "nested: no value");
	REFUSED(HEAD "program sh\n" TAIL, "program: an absolute path");
	REFUSED(HEAD "program /a\nprogram /b\n" TAIL, "program: given twice");
	REFUSED(HEAD "home h\n" TAIL, "home: an absolute path");
	REFUSED(HEAD "home /h/../x\n" TAIL, "home: an absolute path");
	REFUSED(HEAD "hide /h//x\n" TAIL, "hide: an absolute path");
	REFUSED(HEAD "read ../x\n" TAIL, "read: a path from the workspace");
	REFUSED(HEAD "read x/\n" TAIL, "read: a path from the workspace");
	REFUSED(HEAD "read\n" TAIL, "read: a path from the workspace");
	REFUSED(HEAD "read /x/.\n" TAIL, "read: an absolute path");
	REFUSED(HEAD "deny-read /x\n" TAIL, "deny-read: no absolute path is due");
	REFUSED(HEAD "output /x\n" TAIL, "output: no absolute path is due");
	REFUSED(HEAD "read-glob /x/*\n" TAIL, "read-glob: a pattern from the workspace");
	REFUSED(HEAD "read-glob\n" TAIL, "read-glob: a pattern from the workspace");
	REFUSED(HEAD "env X\n" TAIL, "env: NAME=value");
	REFUSED(HEAD "env =x\n" TAIL, "env: NAME=value");
	REFUSED(HEAD "arg a\0b\n" TAIL, "arg: a NUL byte");
	REFUSED(HEAD "arg a\\x00b\n" TAIL, "arg: a bad escape");
	REFUSED(HEAD "arg a\\xg0\n" TAIL, "arg: a bad escape");
	REFUSED(HEAD "arg a\\t\n" TAIL, "arg: a bad escape");
	REFUSED(HEAD "arg a\\\n" TAIL, "arg: a bad escape");
	REFUSED(HEAD "arg a\\x1\n" TAIL, "arg: a bad escape");
}

int
main(void)
{
	test_round_trip();
	test_live();
	test_by_hand();
	test_refusals();
	return tap_done();
}

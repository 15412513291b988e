/* SPDX-License-Identifier: MIT */
#include "cache/key.h"
#include "cache/keydiff.h"
#include "tests/tap.h"

static struct strbuf said = STRBUF_INIT;

static void
differs(void *ctx, enum keydiff_part part, enum keydiff_how how, const char *name)
{
	static const char *const parts[] = {"config", "arguments", "env", "runtime", "input",
		"manifest", "workspace", "platform", "upstream"};

	(void)ctx;
	strbuf_addf(&said, "%s%c%s;", parts[part], "!m+-"[how], name);
}

static struct key_parts
some(void)
{
	static const struct digest w = {{1}}, up[] = {{{2}}, {{3}}};
	static const struct key_env env[] = {{"A", NULL}, {"B", "x"}};
	static const struct key_runtime runtime[] = {{"v", "1", NULL, 1, 0}};
	static const struct key_input inputs[] = {{"a\nb", "1"}, {"a\\", "1"}, {"c", "1"}};
	static const char *const args[] = {"x", "y"};

	return (struct key_parts){.task = "t",
		.platform = "p",
		.workspace = &w,
		.manifest = "m",
		.config = "{}",
		.forward_args = args,
		.nforward_args = 2,
		.env = env,
		.nenv = 2,
		.runtime = runtime,
		.nruntime = 1,
		.upstream = up,
		.nupstream = 2,
		.inputs = inputs,
		.ninputs = 3};
}

static void
check(const struct key_parts *was, const struct key_parts *is, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	cleanup_strbuf struct strbuf kept_a = STRBUF_INIT, kept_b = STRBUF_INIT;
	struct digest d;
	bool good;

	key_compute(was, &d, &a);
	key_compute(is, &d, &b);
	strbuf_reset(&said);
	good = keydiff(a.buf, a.len, b.buf, b.len, differs, NULL);
	ok_str(good ? said.buf : "(bad)", want, name);
	good = keydiff_reduce(a.buf, a.len, &kept_a) && keydiff_reduce(b.buf, b.len, &kept_b);
	strbuf_reset(&said);
	good = good && keydiff(kept_a.buf, kept_a.len, kept_b.buf, kept_b.len, differs, NULL);
	ok(good && !strcmp(said.buf, want), "the same by what is kept of them");
}

static void
test_parts(void)
{
	static const struct digest w = {{9}}, up[] = {{{3}}, {{4}}};
	static const struct key_env env[] = {{"A", ""}, {"C", "x"}};
	static const struct key_runtime runtime[] = {{"v", "1", "e", 1, 1}};
	static const struct key_input inputs[] = {{"a\n", "1"}, {"a\nb", "2"}, {"c", "1"}};
	static const char *const args[] = {"y", "x"};
	struct key_parts was = some(), is = some();

	check(&was, &is, "", "the same");
	is.platform = "q";
	check(&was, &is, "platform!;", "another system");
	is = some();
	is.workspace = &w;
	check(&was, &is, "workspace!;", "another fingerprint");
	is = some();
	is.manifest = "n";
	is.config = "[]";
	check(&was, &is, "manifest!;config!;", "another manifest and config");
	is = some();
	is.forward_args = args;
	check(&was, &is, "arguments!;", "arguments in another order");
	is.nforward_args = 0;
	check(&was, &is, "arguments!;", "none any more");
	check(&is, &was, "arguments!;", "some");
	is = some();
	is.env = env;
	check(&was, &is, "env!A;env-B;env+C;", "variables");
	is = some();
	is.runtime = runtime;
	check(&was, &is, "runtime!v;", "what a command prints on standard error");
	is = some();
	is.upstream = up;
	check(&was, &is,
		"upstream-0200000000000000000000000000000000000000000000000000000000000000;"
		"upstream+0400000000000000000000000000000000000000000000000000000000000000;",
		"upstream keys");
	is = some();
	is.inputs = inputs;
	check(&was, &is, "input+a\n;input!a\nb;input-a\\;", "inputs, in the order of their names");
	was.inputs =
		(const struct key_input[]){{"a", "100644:1"}, {"b", "120000:2"}, {"c", "absent"}};
	is.inputs =
		(const struct key_input[]){{"a", "100755:1"}, {"b", "100644:1"}, {"c", "100644:1"}};
	check(&was, &is, "inputma;input!b;input!c;", "a mode, and a digest with another mode");
	was = some();
	is.ninputs = 0;
	check(&was, &is, "input-a\nb;input-a\\;input-c;", "none of them");
}

static void
test_rubbish(void)
{
	cleanup_strbuf struct strbuf a = STRBUF_INIT, kept = STRBUF_INIT;
	struct key_parts was = some();
	struct digest d;
	size_t good = 0;

	key_compute(&was, &d, &a);
	for (size_t n = 0; n < a.len; n++)
		good += keydiff(a.buf, n, a.buf, a.len, differs, NULL);
	ok(!keydiff_reduce(a.buf, a.len / 3, &kept), "nor kept");
	ok_int((long long)good, 0, "no part of a key is taken for one");
	ok(!keydiff("vx-key 2\n", 9, a.buf, a.len, differs, NULL), "nor is another version");
}

int
main(void)
{
	test_parts();
	test_rubbish();
	strbuf_release(&said);
	return tap_done();
}

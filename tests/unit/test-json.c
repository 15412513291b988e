/* SPDX-License-Identifier: MIT */
#include "config/json.h"
#include "tests/tap.h"
#include "util/cleanup.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static bool
parse(const char *text, enum json_rules rules, struct json_doc *ret, struct err *e)
{
	*e = (struct err)ERR_INIT;
	return json_parse(text, strlen(text), "vx.config.json", rules, ret, e) == 0;
}

static void
check_refused(const char *text, enum json_rules rules, const char *want)
{
	struct json_doc d = {0};
	struct err e;

	ok(!parse(text, rules, &d, &e) && !d.root, "it is refused");
	ok_err(&e, want, want);
	ok_int(e.kind, ERR_CONFIG, "an error of the config");
}

static void
check_same(const char *relaxed, const char *strict)
{
	cleanup_strbuf struct strbuf x = STRBUF_INIT, y = STRBUF_INIT;
	struct json_doc a = {0}, b = {0};
	struct err e;

	if (!ok(parse(relaxed, JSON_OURS, &a, &e) && parse(strict, JSON_STRICT, &b, &e),
		    "both are taken"))
		return;
	json_canonical(a.root, &x);
	json_canonical(b.root, &y);
	ok_str(x.buf, y.buf, strict);
	json_doc_release(&a);
	json_doc_release(&b);
}

static void
test_relaxed(void)
{
	check_same(
		"{\"a\": 1, // one\n \"b\": [1, 2,], /* two\n lines */ }", "{\"a\":1,\"b\":[1,2]}");
	check_same("{\"u\": \"http://x/*y*/,]\"}", "{\"u\":\"http://x/*y*/,]\"}");
	check_same("{\"u\": \"a\\\"//,}\",}", "{\"u\":\"a\\\"//,}\"}");
	check_same("[1, /* , */ // ,\n]", "[1]");
	check_same("\xef\xbb\xbf{}", "{}");
	check_same("{} // end", "{}");
	check_refused("{\"a\": 1,}", JSON_STRICT, "vx.config.json:1:9: ");
	check_refused("// x\n{}", JSON_STRICT, "vx.config.json:1:1: ");
	check_refused("[,]", JSON_OURS, "vx.config.json:1:2: ");
	check_refused("[1,,]", JSON_OURS, "vx.config.json:1:4: ");
	check_refused("{\"a\":,}", JSON_OURS, "vx.config.json:1:6: ");
	check_refused("[1 /* x", JSON_OURS, "vx.config.json:1:4: a comment without its end");
	check_refused("[1 /*/", JSON_OURS, "a comment without its end");
	check_refused("[1 /", JSON_OURS, "vx.config.json:1:4: ");
}

static void
test_refused(void)
{
	char deep[JSON_DEPTH_MAX + 2];

	check_refused("", JSON_OURS, "vx.config.json:1:1: ");
	check_refused("7", JSON_OURS, "'[' or '{' expected");
	check_refused(
		"{\"a\": 1,\n \"a\": 2}", JSON_OURS, "vx.config.json:2:2: duplicate object key");
	check_refused("{\n  \"a\": nul\n}", JSON_OURS, "vx.config.json:2:8: invalid token");
	/* a comma that is missing, at the value that it should stand before */
	check_refused("{\n  \"name\": \"a\" // , \n  \"tasks\": {}\n}", JSON_OURS,
		"vx.config.json:3:3: expected ',' or '}' near '\"tasks\"'");
	check_refused("{\"a\": [1, 2] \"a-name-of-more-than-20-bytes\": 1}", JSON_OURS,
		"vx.config.json:1:14: expected ',' or '}' near '\"a-name-of-more-tha…'");
	check_refused("[\"a\"\n \"b\"]", JSON_OURS,
		"vx.config.json:2:2: expected ',' or ']' near '\"b\"'");
	check_refused("[1 {}]", JSON_OURS, "vx.config.json:1:4: expected ',' or ']' near '{'");
	check_refused("{\"a\": {\"b\": 1}", JSON_OURS,
		"vx.config.json:1:15: expected ',' or '}' near the end of the file");
	check_refused("{\"a\" 1}", JSON_OURS, "vx.config.json:1:6: ':' expected near '1'");
	check_refused("{a: 1}", JSON_OURS, "vx.config.json:1:2: JSON needs double quotes near 'a'");
	check_refused(
		"{'a': 1}", JSON_OURS, "vx.config.json:1:2: JSON needs double quotes near ''a''");
	check_refused("{\"a\": 'b'}", JSON_OURS,
		"vx.config.json:1:7: JSON needs double quotes near ''b''");
	check_refused("{7: 1}", JSON_OURS, "vx.config.json:1:2: string or '}' expected near '7'");
	check_refused(
		"{\"a\": 1, 7: 1}", JSON_OURS, "vx.config.json:1:10: string expected near '7'");
	check_refused("{\"a\": \"\xff\"}", JSON_OURS, "vx.config.json:1:7:");
	check_refused(
		"{\"a\": \"some words\\q\"}", JSON_OURS, "vx.config.json:1:7: invalid escape");
	check_refused("{\"a\": \"b\n\"}", JSON_OURS, "vx.config.json:1:7:");
	check_refused("{} x", JSON_OURS, "vx.config.json:1:4: end of file expected");
	check_refused("{\"a\": \"b", JSON_OURS, "vx.config.json:1:");
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	check_refused(deep, JSON_STRICT, "vx.config.json:1:129: values are nested too deep");
}

/* Each must be refused, as it stands in an array. */
static void
test_grammar(void)
{
	static const char *const wrong[] = {"01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1",
		"1.5.5", "nulL", "True", "'a'", "\"\\x\"", "\"\\u12g4\"", "\"\\ud800\"",
		"\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\u0000\"", "\"\xc0\x80\"",
		"\"\xed\xa0\x80\"", "\"\xe0\x80\x80\"", "\"\xf4\x90\x80\x80\"",
		"\"\xf0\x8f\xbf\xbf\"", "\"\xe2\x82\"", "\"\x80\"", "\"\t\"", "{\"a\\u0000\":1}",
		"{1:1}", "{\"a\"}", "{\"a\":}", "9223372036854775808", "-9223372036854775809", "[",
		"{", "\"", "\"\\", "]]", "\f"};

	for (size_t i = 0; i < array_len(wrong); i++) {
		char text[64];

		snprintf(text, sizeof(text), "[%s]", wrong[i]);
		check_refused(text, JSON_STRICT, "vx.config.json:1:");
	}
}

static void
check_canonical(const char *text, const char *want)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct json_doc d = {0};
	struct err e;

	if (!ok(parse(text, JSON_OURS, &d, &e), "%s is taken", want))
		return;
	json_canonical(d.root, &sb);
	ok_str(sb.buf, want, want);
	json_doc_release(&d);
}

/* Keys are made of these bytes: they must stay as they are. */
static void
test_canonical(void)
{
	check_canonical(
		" { \"b\" : [ 1 , -0, true,false , null, 1.50, 1E+2 ], \"a\": {}, \"\": [] } ",
		"{\"\":[],\"a\":{},\"b\":[1,0,true,false,null,1.50,1E+2]}");
	check_canonical("[\"\\u0041\\/ \\\" \\\\ \\b\\f\\n\\r\\t \\u001f\\u0000 \\u00e9 "
			"\\ud83d\\ude00\x7f\"]",
		"[\"A/ \\\" \\\\ \\b\\f\\n\\r\\t \\u001F\\u0000 \xc3\xa9 \xf0\x9f\x98\x80\x7f\"]");
	check_canonical("[-9223372036854775808, 9223372036854775807]",
		"[-9223372036854775808,9223372036854775807]");
}

/* Beyond a few members, they are compared another way. */
/* As JavaScript reads what package managers write. */
static void
test_package(void)
{
	static const char text[] =
		"{\"a\": 1, \"b\": {\"x\": 1, \"x\": [2]}, \"a\": 99999999999999999999}";
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	struct json_doc d = {0};
	struct err e;

	if (!ok(parse(text, JSON_PACKAGE, &d, &e), "names that are there twice"))
		return;
	ok_int((long long)json_object_size(d.root), 2, "are one");
	ok_int((long long)json_object_get(d.root, "b")->items[0].type, JSON_ARRAY,
		"the last one counts");
	ok_int((long long)json_object_get(d.root, "a")->type, JSON_REAL, "a number of any size");
	json_canonical(d.root, &got);
	ok_str(got.buf, "{\"a\":99999999999999999999,\"b\":{\"x\":[2]}}", "as it is written");
	json_doc_release(&d);
	check_refused("{\"a\": 1,}", JSON_PACKAGE, "vx.config.json:1:9: ");
	check_refused("{\"a\": 99999999999999999999}", JSON_STRICT, "too big integer");
}

static void
test_many_members(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_doc d = {0};
	struct err e;

	strbuf_adds(&text, "{");
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&text, "\"k%d\": [%d],\n", i, i);
	strbuf_adds(&text, "}");
	ok(parse(text.buf, JSON_OURS, &d, &e), "a thousand members");
	ok_int(json_object_get(d.root, "k777")->items[0].integer, 777, "each with its value");
	ok_int(json_object_get(d.root, "k777")->key_line, 778, "and its line");
	json_doc_release(&d);
	strbuf_truncate(&text, text.len - 1);
	strbuf_adds(&text, "\"k500\": 1}");
	check_refused(
		text.buf, JSON_OURS, "vx.config.json:1001:1: duplicate object key near '\"k500\"'");
}

static void
check_error(const struct json_at *at, bool key, const char *want)
{
	struct err e = ERR_INIT;

	ok((key ? json_error_key : json_error)(at, &e, "is %s", "wrong") == -1,
		"an error returns -1");
	ok_str(e.text, want, want);
}

static void
test_places(void)
{
	static const char text[] = "// head\n"
				   "{ /* { */\n"
				   "\t\"x\": [true, {\"y\": -1.5e3, \"}\": \"]\",}, [], ],\n"
				   "\t\"t\\u0061sks\": {\"a b\":\n"
				   "\t\t{ \"c\" : \"\xc3\xa9\", \"exec\": { } } }, }\n";
	struct json_doc d = {0};
	struct err e;

	ok(parse(text, JSON_OURS, &d, &e), "parses");
	struct json_at root = {&d, NULL, NULL, 0};
	struct json_at x = {&d, &root, "x", 0}, x0 = {&d, &x, NULL, 0}, x1 = {&d, &x, NULL, 1},
		       x2 = {&d, &x, NULL, 2}, x9 = {&d, &x, NULL, 9}, y = {&d, &x1, "y", 0},
		       brace = {&d, &x1, "}", 0};
	struct json_at tasks = {&d, &root, "tasks", 0}, ab = {&d, &tasks, "a b", 0},
		       exec = {&d, &ab, "exec", 0}, none = {&d, &exec, "command", 0};

	check_error(&root, false, "vx.config.json:2:1: is wrong");
	struct json_at top = {&d, NULL, "x", 0};

	check_error(&top, true, "vx.config.json:3:2: x: is wrong");
	check_error(&x, false, "vx.config.json:3:7: x: is wrong");
	check_error(&x, true, "vx.config.json:3:2: x: is wrong");
	check_error(&x0, false, "vx.config.json:3:8: x[0]: is wrong");
	check_error(&x1, false, "vx.config.json:3:14: x[1]: is wrong");
	check_error(&y, false, "vx.config.json:3:20: x[1].y: is wrong");
	check_error(&brace, false, "vx.config.json:3:33: x[1].}: is wrong");
	check_error(&x2, false, "vx.config.json:3:40: x[2]: is wrong");
	check_error(&x9, false, "vx.config.json:3:7: x[9]: is wrong");
	check_error(&tasks, true, "vx.config.json:4:2: tasks: is wrong");
	check_error(&ab, false, "vx.config.json:5:3: tasks[\"a b\"]: is wrong");
	check_error(&exec, true, "vx.config.json:5:17: tasks[\"a b\"].exec: is wrong");
	check_error(&none, false, "vx.config.json:5:25: tasks[\"a b\"].exec.command: is wrong");
	json_doc_release(&d);
}

static void
test_strings(void)
{
	struct json_doc d = {0};
	struct err e;

	ok(!parse("[nul\x1b[2J]", JSON_OURS, &d, &e) && !strchr(e.text, '\x1b'),
		"a message holds no control byte");
	ok(parse("[\"a\", \"a\\u0000b\", 1, {\"\\u001b\": 1}]", JSON_OURS, &d, &e), "parses");
	ok_str(json_c_string(json_array_get(d.root, 0)), "a", "a string");
	ok(!json_c_string(json_array_get(d.root, 1)), "with a NUL it is no C string");
	ok(!json_c_string(json_array_get(d.root, 2)), "a number is none");
	ok_str(json_kind(json_array_get(d.root, 2)), "a number", "and is called so");
	struct json_at root = {&d, NULL, NULL, 0}, i = {&d, &root, NULL, 3},
		       k = {&d, &i, "\x1b", 0};
	check_error(&k, true, "vx.config.json:1:23: [3].\\x1b: is wrong");
	json_doc_release(&d);
}

static void
test_load(void)
{
	char dir[] = "/tmp/vx-test-json.XXXXXX";
	cleanup_close int dirfd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	cleanup_close int fd = openat(dirfd, "a.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct json_doc d = {0};
	struct err e = ERR_INIT;

	ok(write(fd, "{\"a\":1}", 7) == 7 && mkfifoat(dirfd, "fifo", 0600) == 0, "files are there");
	ok(json_load(dirfd, "a.json", "p/a.json", JSON_STRICT, &d, &e) == 0, "a file loads");
	ok_str(d.file, "p/a.json", "with the name to show");
	json_doc_release(&d);
	ok(json_load(dirfd, "b.json", "p/b.json", JSON_STRICT, &d, &e) < 0 && e.num == ENOENT,
		"a missing file is ENOENT");
	err_clear(&e);
	ok(json_load(dirfd, "fifo", "p/fifo", JSON_STRICT, &d, &e) < 0, "a FIFO does not hold us");
	ok_err(&e, "p/fifo: is not a regular file", "and is named");
	err_clear(&e);
	ok(ftruncate(fd, JSON_FILE_MAX + 1) == 0 &&
			json_load(dirfd, "a.json", "p/a.json", JSON_STRICT, &d, &e) < 0,
		"a huge file is refused");
	ok_err(&e, "larger than 16 MiB", "with the limit");
	unlinkat(dirfd, "a.json", 0);
	unlinkat(dirfd, "fifo", 0);
	rmdir(dir);
}

int
main(void)
{
	test_relaxed();
	test_refused();
	test_grammar();
	test_canonical();
	test_package();
	test_many_members();
	test_places();
	test_strings();
	test_load();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/* The lines of external executors: what is read of them, and what vx says. What is refused, and how, is in
 * tests/cli/executors.py. */
#include "config/json.h"
#include "config/taskdef.h"
#include "exec/wire.h"
#include "proto/status.h"
#include "tests/tap.h"
#include "util/base64.h"
#include "util/err.h"
#include <signal.h>

static void
test_base64(void)
{
	static const struct {
		const char *text;
		const char *bytes; /* NULL: refused */
		size_t n;
	} cases[] = {
		{"", "", 0},
		{"Zg==", "f", 1},
		{"Zm8=", "fo", 2},
		{"Zm9v", "foo", 3},
		{"Zm9vYmE=", "fooba", 5},
		{"AAD/", "\0\0\377", 3},
		{"+/+/", "\373\377\277", 3},
		{"Zg=", NULL, 0},
		{"Zg", NULL, 0},
		{"Z", NULL, 0},
		{"Z===", NULL, 0},
		{"====", NULL, 0},
		{"=", NULL, 0},
		{"Zh==", NULL, 0},
		{"Zm9=", NULL, 0},
		{"Zg==Zg==", NULL, 0},
		{"Zm8=Zm9v", NULL, 0},
		{"Z=9v", NULL, 0},
		{"Zm9v\n", NULL, 0},
		{"Zm 9", NULL, 0},
		{"Zm-_", NULL, 0},
		{"\377\377\377\377", NULL, 0},
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct strbuf out = STRBUF_INIT;
		bool good;

		strbuf_adds(&out, "x");
		good = base64_decode(cases[i].text, strlen(cases[i].text), &out);
		if (cases[i].bytes)
			ok(good && out.len == 1 + cases[i].n &&
					!memcmp(out.buf + 1, cases[i].bytes, cases[i].n),
				"base64 %s", cases[i].text);
		else
			ok(!good && out.len == 1, "base64 %zu is refused", i);
		strbuf_release(&out);
	}
}

static int
read_line(const char *line, struct wire_message *m)
{
	struct err e = ERR_INIT;
	int r = wire_read(line, strlen(line), NULL, m, &e);

	if (r)
		diag("%s", e.text);
	return r;
}

static void
test_read(void)
{
	struct wire_message m;

	ok(!read_line("{\"type\":\"description\",\"protocol\":1,\"name\":\"farm-1.x_Y\",\"remote\":"
		      "true,"
		      "\"capacity\":16}",
		   &m) &&
			m.type == WIRE_DESCRIPTION && m.remote && m.capacity == 16 && !m.id,
		"a description");
	ok_str(m.name, "farm-1.x_Y", "its name");
	wire_message_release(&m);
	ok(!read_line("{\"name\":\"a\",\"protocol\":1,\"type\":\"description\"}", &m) &&
			!m.remote && !m.capacity,
		"the least of one");
	wire_message_release(&m);
	ok(!read_line("{\"type\":\"accepted\",\"id\":7,\"accepts\":true}", &m) &&
			m.type == WIRE_ACCEPTED && m.id == 7 && m.accepts,
		"an answer");
	wire_message_release(&m);
	ok(!read_line("{\"type\":\"stderr\",\"id\":7,\"data\":\"AAE=\"}", &m) &&
			m.type == WIRE_STDERR && m.data.len == 2 && !memcmp(m.data.buf, "\0\1", 2),
		"bytes");
	wire_message_release(&m);
	ok(!read_line("{\"type\":\"failed\",\"id\":7,\"message\":\"no\\u001b room\"}", &m),
		"a failure");
	ok_str(m.data.buf, "no\\x1b room", "what it says harms no terminal");
	wire_message_release(&m);
	ok(!read_line("{\"type\":\"result\",\"id\":9,\"exitCode\":143,\"durationMs\":1.5,\"where\":"
		      "\"h\","
		      "\"cpuMs\":2.5,\"peakRssBytes\":1048576,\"outputs\":{\"kind\":\"disk\"},"
		      "\"violations\":["
		      "{\"operation\":\"write\",\"path\":\"z\"},{\"path\":\"a\",\"operation\":"
		      "\"read\"}]}",
		   &m) &&
			m.result.exit_code == 143 && m.result.duration_ns == 1500000 &&
			m.result.cpu_us == 2500 && m.result.peak_rss_kb == 1024,
		"a result");
	ok_str(m.where, "h", "where");
	ok(m.result.nfindings == 2 && m.result.ndenials == 2 &&
			m.result.denials[0].op == DENIAL_READ &&
			!strcmp(m.result.denials[0].path, "a"),
		"its findings, in their order");
	wire_message_release(&m);
	/* What is wrong can be laid at the door of a task. */
	ok(read_line("{\"exitCode\":\"0\",\"durationMs\":1,\"type\":\"result\",\"id\":9}", &m) &&
			m.type == WIRE_RESULT && m.id == 9,
		"of a wrong one type and id are known");
	wire_message_release(&m);
	ok(read_line("{\"id\":9}", &m) && m.type == WIRE_NONE && m.id == 9, "if they are there");
	wire_message_release(&m);
}

/* Far more than are listed. */
static void
test_many(void)
{
	struct strbuf line = STRBUF_INIT;
	struct wire_message m;

	strbuf_adds(&line,
		"{\"type\":\"result\",\"id\":1,\"exitCode\":0,\"durationMs\":0,\"violations\":[");
	for (int i = 0; i < 3000; i++)
		strbuf_addf(&line, "%s{\"operation\":\"read\",\"path\":\"d%d/f%d\"}", i ? "," : "",
			i % 50, i);
	strbuf_adds(&line, "]}");
	ok(!read_line(line.buf, &m) && m.result.nfindings == 3000 && m.result.ndenials <= 100,
		"the list is bounded, the number is exact");
	wire_message_release(&m);
	strbuf_release(&line);
}

/* Of any line that is written: one object, and no byte that ends it. */
static void
is_line(const struct strbuf *out, const char *name)
{
	struct json_doc doc = {0};
	struct err e = ERR_INIT;

	ok(out->len && out->buf[out->len - 1] == '\n' && !memchr(out->buf, '\n', out->len - 1),
		"%s is one line", name);
	ok(!json_parse(out->buf, out->len, "line", JSON_STRICT, &doc, &e) &&
			json_is_object(doc.root),
		"%s is JSON", name);
	json_doc_release(&doc);
}

static void
test_write(void)
{
	const struct exec_view v = {.task_id = "a#b",
		.project_name = "a",
		.project_dir = ".",
		.command = "echo '\"\\\n\t\x01'",
		.cacheable = true};
	struct exec_view bad = v;
	struct define d = {"D", "a\nb"};
	struct taskdef def = {.define = &d, .ndefine = 1, .remote = REMOTE_ONLY};
	static const char *const forward[] = {"x y", "\n"};
	struct exec_handed handed = {
		.def = &def, .root = "/w", .cwd = "/w/p", .forward = forward, .nforward = 2};
	struct strvec env = STRVEC_INIT;
	struct exec_request rq = {
		.id = "a#b", .command = "c\nd", .env = &env, .handed = &handed, .timeout_ms = 5};
	struct strbuf out = STRBUF_INIT;
	struct err e = ERR_INIT;

	wire_add_describe(&out);
	ok_str(out.buf, "{\"type\":\"describe\",\"protocol\":1}\n", "describe");
	strbuf_reset(&out);
	wire_add_cancel(&out, 3, SIGINT);
	ok_str(out.buf, "{\"type\":\"cancel\",\"id\":3,\"signal\":\"SIGINT\"}\n", "cancel");
	strbuf_reset(&out);
	ok(!wire_add_accepts(&out, 2, &v, &e), "accepts");
	is_line(&out, "accepts");
	strvec_push(&env, "A=1=2\n");
	strvec_push(&env, "EMPTY=");
	strbuf_reset(&out);
	ok(!wire_add_execute(&out, 4, &rq, &e), "execute");
	is_line(&out, "execute");
	ok(strstr(out.buf, "\"env\":{\"A\":\"1=2\\n\",\"EMPTY\":\"\"}") &&
			strstr(out.buf, "\"forwardArgs\":[\"x y\",\"\\n\"]") &&
			strstr(out.buf, "\"remoteOnly\":true") && !strstr(out.buf, "cacheKey"),
		"with all of it: %s", out.buf);
	strbuf_reset(&out);
	strbuf_adds(&out, "before\n");
	strvec_push(&env, "B=\xff");
	ok(wire_add_execute(&out, 5, &rq, &e) < 0, "what is no UTF-8");
	ok_str(out.buf, "before\n", "leaves nothing");
	err_clear(&e);
	bad.project_dir = "\x80";
	ok(wire_add_accepts(&out, 5, &bad, &e) < 0 && strstr(e.text, "its projectDir is no UTF-8"),
		"and is named: %s", e.text);
	ok_str(out.buf, "before\n", "leaves nothing");
	strvec_release(&env);
	strbuf_release(&out);
}

int
main(void)
{
	test_base64();
	test_read();
	test_many();
	test_write();
	return tap_done();
}

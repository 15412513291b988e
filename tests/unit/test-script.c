/* SPDX-License-Identifier: MIT */
/* What a runtime says, and what is made of it: shell scripts in the place of bun and its like. */
#include "config/script.h"
#include "tests/unit/ws.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <poll.h>
#include <signal.h>

/* The program NAME on PATH: BODY, after the request has been put into $want. */
static void
put_runtime(const char *name, const char *body)
{
	cleanup_free char *path = path_join("bin", name);
	cleanup_free char *text = xasprintf("#!/bin/sh\n%s\n", body);
	cleanup_close int fd = -1;

	ws_mkdir_for(path);
	fd = openat(ws_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)))
		bug("write %s: %s", path, strerror(errno));
}

enum {
	CONFIGS = 2,
};

static struct script scripts[CONFIGS];

static int
evaluate(struct err *e)
{
	cleanup_free char *root = path_join(ws_path, "ws");
	struct script_runtime *rt = script_open(root);
	int r;

	for (size_t i = 0; i < CONFIGS; i++) {
		script_release(&scripts[i]);
		scripts[i].path = i ? "b/vx.config.ts" : "a/vx.config.ts";
	}
	err_clear(e);
	r = script_evaluate(rt, scripts, CONFIGS, e);
	script_close(rt);
	return r;
}

static void
refused(const char *body, const char *why)
{
	struct err e = ERR_INIT;

	put_runtime("bun", body);
	ok_int(evaluate(&e), -1, body);
	ok_err(&e, why, why);
	ok_int(e.kind, ERR_CONFIG, "a config's error");
}

#define SAY(text) "echo '" text "' >&3\n"
#define START SAY("[\"runtime\", \"bun\", \"1\"]") SAY("[\"begin\", 0]")
#define FIRST                                                                                      \
	START SAY("[\"value\", 0, \"{}\", \"\", [\"a/vx.config.ts\"], [\"package.json\"], false]")
#define NO_MESSAGE "what came from the runtime is no message of vx's"

static void
test_values(void)
{
	struct err e = ERR_INIT;

	/* Its words, where it is, and what it is given. */
	put_runtime("bun",
		"head -c 1 <&5 >/dev/null\n" FIRST SAY(
			"[\"begin\", 1]") "printf '[\"value\", 1,' >&3\n"
					  "tr '\\0' '|' <&4 | sed 's,.*/ws|,|,;s/.*/\"&\"/' >&3\n"
					  "printf ' , \"mentions x\", [], [], "
					  "true]\\n[\"done\"]\\n' >&3\n"
					  "exec cat >/dev/null");
	ok_int(evaluate(&e), 0, "two values");
	ok_str(e.text, "", "without an error");
	ok_str(scripts[0].json, "{}", "the first");
	ok_str(scripts[0].why, "", "which can be remembered");
	ok(scripts[0].needs.n == 1 && scripts[0].learned_ns > 0, "and what it rests on");
	ok(scripts[0].manifests.n == 1 && !scripts[0].reads_any, "on nothing beside");
	ok_str(scripts[1].json, "|a/vx.config.ts|b/vx.config.ts|", "the second: what was wanted");
	ok_str(scripts[1].why, "mentions x", "and why it cannot");
	ok(scripts[1].reads_any, "as it may have read anything");
}

static void
test_words(void)
{
	refused("exit 3", "ended with exit code 3 before it began");
	refused("kill -9 $$", "ended by signal 9 SIGKILL before it began");
	refused(START "exit 0", "a/vx.config.ts: the bun that evaluated it ended with exit code 0");
	refused(START "exec 3>&-; kill -9 $$",
		"a/vx.config.ts: the bun that evaluated it ended by");
	refused(FIRST SAY("[\"begin\", 1]") "exit 0", "b/vx.config.ts: the bun that");
	refused(FIRST SAY("[\"begin\", 1]") SAY("[\"fail\", 1, \"is bad\"]") "exec cat",
		"b/vx.config.ts: is bad");
	refused(START SAY("hello"), "a/vx.config.ts: " NO_MESSAGE);
	refused(START SAY("{}"), NO_MESSAGE);
	refused(START SAY("[]"), NO_MESSAGE);
	refused(START SAY("[\"what\", 0]"), NO_MESSAGE);
	refused(START SAY("[\"begin\", 1]"), NO_MESSAGE);
	refused(START SAY("[\"done\"]"), NO_MESSAGE);
	refused(START SAY("[\"old\", \"1\"]"), NO_MESSAGE);
	refused(START SAY("[\"value\", 1, \"{}\", \"\", [], [], false]"), NO_MESSAGE);
	refused(START SAY("[\"value\", 0, {}, \"\", [], [], false]"), NO_MESSAGE);
	refused(START SAY("[\"value\", 0, \"{}\", \"\", [1], [], false]"), NO_MESSAGE);
	refused(START SAY("[\"value\", 0, \"{}\", \"\", [], [{}], false]"), NO_MESSAGE);
	refused(START SAY("[\"value\", 0, \"{}\", \"\", [], {}, false]"), NO_MESSAGE);
	refused(FIRST SAY("[\"value\", 0, \"{}\", \"\", [], [], false]"), NO_MESSAGE);
	refused(FIRST SAY("[\"begin\", 1]") SAY("[\"begin\", 2]"), NO_MESSAGE);
	refused(SAY("[\"value\", 0, \"{}\", \"\", [], [], false]"), NO_MESSAGE);
	refused(START "tr '\\0' x </dev/zero >&3", "a/vx.config.ts: yields more than vx takes");
	setenv("VX_CONFIG_WORKER_TIMEOUT_MS", "300", 1);
	refused(START "exec sh -c 'trap : TERM INT; while :; do :; done'",
		"a/vx.config.ts: has not come to an end within 300 ms "
		"(VX_CONFIG_WORKER_TIMEOUT_MS)");
	refused("while :; do :; done", "has not begun in time (VX_CONFIG_WORKER_TIMEOUT_MS)");
	refused(START "exec 3>&-; while :; do :; done", "has not come to an end within 300 ms");
	unsetenv("VX_CONFIG_WORKER_TIMEOUT_MS");
}

/* One runtime for all that is asked, however often: it is not started again but after a failure. */
static void
test_turns(void)
{
	cleanup_free char *root = path_join(ws_path, "ws");
	struct script_runtime *rt = script_open(root);
	struct script one = {.path = "a/vx.config.ts"}, two = {.path = "b/vx.config.ts"};
	struct err e = ERR_INIT;

	put_runtime("bun",
		"echo x >>\"${0%/*}/starts\"\n" SAY(
			"[\"runtime\", \"bun\", \"1\"]") "while [ \"$(head -c 1 <&5 | wc -c)\" = 1 "
							 "]; do\n"
							 "tr '\\0' '|' </proc/self/fd/4 | sed "
							 "'s,.*/ws|,|,;s/.*/[\"begin\", "
							 "0]\\n[\"value\", 0, "
							 "\"&\", \"\", [], [], "
							 "false]\\n[\"done\"]\\n/' "
							 ">&3\ndone\n");
	ok_int(script_evaluate(rt, &one, 1, &e), 0, "one config");
	ok_str(one.json, "|a/vx.config.ts|", "is asked for");
	ok_int(script_evaluate(rt, &two, 1, &e), 0, "and another later");
	ok_str(two.json, "|a/vx.config.ts|b/vx.config.ts|", "of the same runtime");
	ok_str(e.text, "", "without an error");
	script_release(&one);
	script_release(&two);
	one = (struct script){.path = "c d"};
	put_runtime("bun", "exit 7");
	script_close(rt);
	rt = script_open(root);
	ok_int(script_evaluate(rt, &one, 1, &e), -1, "one that fails");
	put_runtime("bun", FIRST SAY("[\"done\"]"));
	err_clear(&e);
	ok_int(script_evaluate(rt, &one, 1, &e), 0, "is started again");
	script_close(rt);
	script_release(&one);
}

/* What a config has started is gone with it. */
static void
test_left_over(void)
{
	struct err e = ERR_INIT;
	cleanup_free char *fifo = path_join(ws_path, "fifo");
	cleanup_free char *body = xasprintf("sh -c 'exec 9>%s; echo x >&9; while :; do :; done' &\n"
					    "head -n 1 %s >/dev/null\n" START "exit 0",
		fifo, fifo);
	cleanup_close int fd = -1;
	char c;

	if (mkfifo(fifo, 0600))
		bug("mkfifo: %s", strerror(errno));
	put_runtime("bun", body);
	ok_int(evaluate(&e), -1, "one that leaves a child behind");
	fd = open(fifo, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		bug("open: %s", strerror(errno));
	/* Nobody to hear of, if it was gone before this. */
	ok(read(fd, &c, 1) == 0 || (poll(&(struct pollfd){fd, POLLIN, 0}, 1, 30000) == 1 &&
					   read(fd, &c, 1) == 0),
		"which soon holds nothing open any more");
}

static void
test_choice(void)
{
	struct digest before, after;
	struct err e = ERR_INIT;

	script_identity(ws_path, &before);
	script_identity(ws_path, &after);
	ok(digest_equal(&before, &after), "the runtimes are what they are");
	put_runtime("bun", SAY("[\"old\", \"0.1\"]"));
	put_runtime("deno",
		FIRST SAY("[\"begin\", 1]") SAY("[\"value\", 1, \"{}\", \"\", [], [], false]")
			SAY("[\"done\"]"));
	ok_int(evaluate(&e), 0, "after one that is too old the next is asked");
	script_identity("/elsewhere", &after);
	ok(!digest_equal(&before, &after), "and they are not the same any more");
	put_runtime("deno", SAY("[\"old\", \"0.2\"]"));
	ok_int(evaluate(&e), -1, "where all are");
	ok_err(&e, "bin/bun is version 0.1, too old", "the first is named");
	ok_err(&e, "; install bun, node 22.18 or later, or deno, or write vx.config.json",
		"and what to do");
	setenv("VX_CONFIG_WORKER_TIMEOUT_MS", "soon", 1);
	ok_int(evaluate(&e), -1, "a time that is none");
	ok_err(&e, "VX_CONFIG_WORKER_TIMEOUT_MS", "is refused by name");
	unsetenv("VX_CONFIG_WORKER_TIMEOUT_MS");
}

/* Asked to stop, it does not wait for who does not listen. */
static void
test_stop(void)
{
	struct err e = ERR_INIT;
	cleanup_free char *self = xasprintf("%d", (int)getpid());
	sigset_t set, before;

	/* It may have a keeper for a parent. */
	setenv("TEST_PID", self, 1);
	put_runtime("bun", START "kill -TERM $TEST_PID; trap : TERM; while :; do :; done");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	ok_int(evaluate(&e), -1, "stopped");
	ok_int(e.num, ECANCELED, "at once");
	ok_int(sigtimedwait(&set, NULL, &(struct timespec){0}), SIGTERM,
		"the signal is still there");
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int
main(void)
{
	cleanup_free char *path = NULL;

	ws_begin();
	fs_mkdirs(ws_fd, "ws");
	fs_mkdirs(ws_fd, "bin");
	path = xasprintf("%s/bin:/usr/bin:/bin", ws_path);
	setenv("PATH", path, 1);
	test_values();
	test_words();
	test_turns();
	test_left_over();
	test_choice();
	test_stop();
	for (size_t i = 0; i < CONFIGS; i++)
		script_release(&scripts[i]);
	ws_end();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/* What sh is given, what explains its end, and which variables are secret. */
#include "exec/command.h"
#include "exec/explain.h"
#include "exec/secrets.h"
#include "proto/status.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static void
gives(const char *command, const char *want)
{
	cleanup_free char *got = command_for_shell(command);
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, command, strlen(command));
	ok_str(got, want, name.buf);
}

static void
test_command(void)
{
	static const char *const kept[] = {"", " ", "a && b", "a || b", "a; b", "a | b", "a &",
		"a > b", "a < b", "(a)", "a `b`", "a $(b)", "a\nb", "a ';' b", "echo hi", "cd x",
		"test -f x", "[ x ]", "[[ x ]]", "time x", "exec x", ". x", ": x", "! x", "true",
		"if x", "{ x", "source x", "A=1 x", "A=1", "A+=1 x", "$A x", "\"a\" x", "'a' x",
		"a\\b x", "~/a x", "a*b x", "a?b x", "a{b,c} x", "#a", "-a x", "a$B x", "a\"b\" x",
		"\rx"};

	gives("tsc -b", "exec tsc -b");
	gives("tsc", "exec tsc");
	gives(" \t\n tsc -b \n", "exec tsc -b \n");
	gives("./a/b.sh \"$X\" 'y z' ~ * # why", "exec ./a/b.sh \"$X\" 'y z' ~ * # why");
	gives("/usr/bin/env A=1 x", "exec /usr/bin/env A=1 x");
	gives("g++ -c x", "exec g++ -c x");
	gives("echoes x", "exec echoes x");
	gives("./echo x", "exec ./echo x");
	gives("python3.11 -m x", "exec python3.11 -m x");
	for (size_t i = 0; i < array_len(kept); i++)
		gives(kept[i], kept[i]);
}

/* Ends. */

static char dir[] = "/var/tmp/vx-test-command.XXXXXX";
static int dirfd_;
static struct exec_result result;

static void
put(const char *name, const char *bytes, size_t n, mode_t mode)
{
	cleanup_close int fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, bytes, n) || fchmod(fd, mode))
		abort();
}

static const char *project = "";

static void
ends(int code, const char *command, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_free char *got = NULL;

	strbuf_addf(&path, "%s/bin:/usr/bin:/bin", dir);
	result.exit_code = code;
	got = explain_exit(&(struct exit_facts){
		.command = command,
		.path = path.buf,
		.root_path = dir,
		.dir = project,
		.cwd = dirfd_,
		.result = &result,
	});
	ok_str(got, want, name);
}

static void
test_ends(void)
{
	static const enum exec_outcome others[] = {EXEC_TIMED_OUT, EXEC_STOPPED, EXEC_NOT_STARTED};

	ends(0, "tsc", NULL, "a good end");
	ends(1, "nosuch", NULL, "an ordinary one");
	ends(128, "nosuch", NULL, "128");
	ends(255, "nosuch", NULL, "255 is no signal");
	ends(126, "a && b", NULL, "126 of nobody knows what");
	ends(130, "tsc", NULL, "SIGINT");
	ends(143, "tsc", NULL, "SIGTERM");
	for (size_t i = 0; i < array_len(others); i++) {
		result.outcome = others[i];
		ends(127, "nosuch", NULL, "no end of its own");
		ends(137, "nosuch", NULL, "nor that");
	}
	result.outcome = EXEC_EXITED;
	ends(127, "nosuch -x",
		"nosuch was not found: its PATH begins with node_modules/.bin, and what other "
		"projects install is not on it",
		"a word, in the root's project");
	project = "p/a:b";
	ends(127, "nosuch",
		"nosuch was not found: its PATH begins with node_modules/.bin, without "
		"p/a:b/node_modules/.bin, whose name holds a ':', and what other projects install "
		"is not on it",
		"a ':' keeps a directory off PATH");
	project = "";
	ends(127, "sh -c x", NULL, "a program that is there has its own 127");
	ends(127, "./plain", "./plain does not exist in .", "no file");
	ends(127, "/no/such", "/no/such does not exist", "nor at an absolute path");
	ends(126, "./bin", "./bin is a directory", "a directory");
	put("plain", "x\n", 2, 0644);
	ends(126, "./plain", "./plain may not be executed: chmod +x", "no x bit");
	put("bin/tool", "x\n", 2, 0644);
	ends(126, "tool", "bin/tool may not be executed: chmod +x", "the same on PATH");
	if (geteuid()) {
		cleanup_free char *want = xasprintf(
			"nosuch was not found: %s/bin, on its PATH, may not be looked into; its "
			"PATH begins with node_modules/.bin, and what other projects install is "
			"not on it",
			dir);

		if (fchmodat(dirfd_, "bin", 0, 0))
			abort();
		ends(126, "nosuch", want, "a directory that is closed");
		if (fchmodat(dirfd_, "bin", 0755, 0))
			abort();
	}
	put("plain", "x\n", 2, 0755);
	ends(127, "./plain", "./plain has no #! line, so the shell took it for a script of its own",
		"no #!");
	put("plain", "#! /bin/sh\n", 11, 0755);
	ends(127, "./plain", NULL, "a script that is all right");
	put("plain", "#!/bin/sh", 9, 0755);
	ends(127, "./plain", NULL, "also without an end of its line");
	put("plain", "#!no-such\n", 10, 0755);
	ends(127, "./plain", "./plain wants to be run by no-such, which does not exist",
		"a relative interpreter");
	put("plain", "#!/usr/bin/env -S A=1 -i no-such x\n", 35, 0755);
	ends(127, "./plain", "./plain wants to be run by no-such, which is not on its PATH",
		"env with more");
	put("plain", "#!/usr/bin/env sh\n", 18, 0755);
	ends(127, "./plain", NULL, "env that finds it");
	put("plain", "#!/usr/bin/env sh\r\n", 19, 0755);
	ends(127, "./plain",
		"./plain has lines that end in CR LF, and no interpreter is called \"/usr/bin/env "
		"sh\\r\": write it with LF",
		"CR LF behind env");
	put("plain", "", 0, 0755);
	ends(126, "./plain", "./plain has no #! line, so the shell took it for a script of its own",
		"an empty file");
	if (mkfifoat(dirfd_, "fifo", 0755))
		abort();
	ends(126, "./fifo", "./fifo may not be executed: chmod +x", "a FIFO is not waited for");
	unlinkat(dirfd_, "fifo", 0);
}

/* A program of another C library. */
static void
test_elf(void)
{
	static const char loader[] = "/lib/ld-no-such.so.1";
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[2];
		char loader[sizeof(loader)];
	} f = {0};

	memcpy(f.eh.e_ident, ELFMAG, SELFMAG);
	f.eh.e_ident[EI_CLASS] = ELFCLASS64;
	f.eh.e_phoff = sizeof(f.eh);
	f.eh.e_phnum = 2;
	f.ph[0].p_type = PT_LOAD;
	f.ph[1].p_type = PT_INTERP;
	f.ph[1].p_offset = (uint64_t)((char *)f.loader - (char *)&f);
	memcpy(f.loader, loader, sizeof(loader));
	put("plain", (const char *)&f, sizeof(f), 0755);
	ends(127, "./plain",
		"./plain needs the loader /lib/ld-no-such.so.1, which does not exist: it was made "
		"for another system",
		"a loader that is not there");
	for (size_t n = 0; n < sizeof(f); n++) {
		put("plain", (const char *)&f, n, 0755);
		free(explain_exit(&(struct exit_facts){.command = "./plain",
			.path = "",
			.root_path = dir,
			.dir = "",
			.cwd = dirfd_,
			.result = &result}));
	}
	f.eh.e_phoff = UINT64_MAX - 8;
	put("plain", (const char *)&f, sizeof(f), 0755);
	ends(127, "./plain", NULL, "one that lies");
	ends(126, "./plain", "./plain is no program that this machine can run",
		"one that cannot be run");
}

static void
test_hidden(void)
{
	struct exec_denial d = {.op = DENIAL_READ,
		.class = DENIAL_WALLED,
		.path = (char[]){"tools"},
		.grant = (char[]){"allow.read: [\"tools\"]"}};

	put("plain", "#!/bin/sh\n", 10, 0755);
	result.sandboxed = true;
	ends(127, "./plain", NULL, "nothing is hidden");
	result.denials = &d;
	result.ndenials = 1;
	ends(127, "./plain", NULL, "nor what is beside it");
	mkdirat(dirfd_, "tools", 0755);
	put("tools/x", "#!/bin/sh\n", 10, 0755);
	ends(127, "tools/x",
		"tools/x is hidden from it by the sandbox (tools); to allow it: allow.read: "
		"[\"tools\"]",
		"what lies below a denied name");
	if (symlinkat("../tools/x", dirfd_, "bin/y"))
		abort();
	ends(127, "y",
		"bin/y is hidden from it by the sandbox (tools); to allow it: allow.read: "
		"[\"tools\"]",
		"a link to it");
	d.op = DENIAL_PROBE;
	ends(127, "tools/x", NULL, "a probe hides nothing");
	result.unreported = true;
	ends(127, "./plain",
		"./plain may be hidden from it by the sandbox, which cannot tell here (/dev/fuse)",
		"nobody could tell");
	result = (struct exec_result){0};
}

static void
test_signals(void)
{
	static const int told[] = {
		SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGPIPE, SIGHUP, SIGSYS, SIGILL};

	for (size_t i = 0; i < array_len(told); i++)
		ok(explain_signal(told[i]) && !strncmp(explain_signal(told[i]), "SIG", 3),
			"signal %d", told[i]);
	ok(!explain_signal(SIGINT) && !explain_signal(SIGTERM) && !explain_signal(0) &&
			!explain_signal(-1) && !explain_signal(64) && !explain_signal(200),
		"no others");
}

static void
test_secrets(void)
{
	static const char *const secret[] = {"TOKEN", "NPM_TOKEN", "my_token_2", "API_KEY",
		"apiKey", "AWS_SECRET_ACCESS_KEY", "PASSWORD", "PGPASSWORD", "ROOT_PASSWD",
		"CREDENTIALS", "npm_config_//r/:_authToken", "KEY_FILE_TOKEN", "GIT_CONFIG_KEYS",
		"MONKEY"};
	static const char *const open_ones[] = {"", "PATH", "MODE", "KEY_FILE", "SSH_KEY_PATH",
		"SECRETS_DIR", "token_file", "GIT_CONFIG_KEY_0", "GIT_CONFIG_KEY_12", "TOKE",
		"PASS"};

	for (size_t i = 0; i < array_len(secret); i++)
		ok(secrets_has_name(secret[i], strlen(secret[i])), "a secret: %s", secret[i]);
	for (size_t i = 0; i < array_len(open_ones); i++)
		ok(!secrets_has_name(open_ones[i], strlen(open_ones[i])), "none: %s", open_ones[i]);
	ok(!secrets_has_name("TOKENS", 4), "what is behind the name does not count");
}

int
main(void)
{
	if (!mkdtemp(dir) || (dirfd_ = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 ||
		mkdirat(dirfd_, "bin", 0755))
		abort();
	test_command();
	test_ends();
	test_elf();
	test_hidden();
	test_signals();
	test_secrets();
	for (size_t i = 0; i < 4; i++)
		unlinkat(dirfd_, (const char *[]){"plain", "bin/tool", "bin/y", "tools/x"}[i], 0);
	unlinkat(dirfd_, "tools", AT_REMOVEDIR);
	unlinkat(dirfd_, "bin", AT_REMOVEDIR);
	close(dirfd_);
	ok(!rmdir(dir), "nothing is left");
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "exec/env.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/fd.h"
#include "util/proc.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"
#include <sys/wait.h>
#include <unistd.h>

/* Words of the result in order, joined by blanks. */
static void
check_env_in(bool sandboxed, const char *root, const char *dir, const struct taskdef *t,
	char *const *base, const char *want, const char *name)
{
	struct project p = {.name = "app", .dir = dir};
	cleanup_strvec struct strvec env = STRVEC_INIT;
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	env_build(root, &p, t, "app#build", sandboxed, base, &env);
	for (size_t i = 0; i < env.n; i++)
		strbuf_addf(&all, "%s%s", i ? " " : "", env.v[i]);
	ok_str(all.buf, want, name);
}

static void
check_env(const char *root, const char *dir, const struct taskdef *t, char *const *base,
	const char *want, const char *name)
{
	check_env_in(false, root, dir, t, base, want, name);
}

#define TAIL " VX_RUN_WORKSPACE=/w VX_RUN_TASK=app#build"
#define ENV(...) ((char *const[]){__VA_ARGS__, NULL})
#define S(s) ((char[]){s})

static void
test_temporary(void)
{
	const char *pass[] = {"TMP"};
	struct define own = {"TEMP", "/w/t"}, dir = {"TMPDIR", "/w/t"};
	struct taskdef passing = {
		.pass_through = pass, .npass_through = 1, .define = &own, .ndefine = 1};
	struct taskdef defining = {.define = &dir, .ndefine = 1};
	char *const *base =
		ENV(S("PATH=/bin"), S("TMPDIR=/a"), S("TMP=/b"), S("TEMP=/c"), S("NO_COLOR=1"));

	check_env_in(true, "/w", "", &passing, base,
		"PATH=/w/node_modules/.bin:/bin NO_COLOR=1 TMPDIR=/tmp TEMP=/w/t" TAIL,
		"sandboxed, it has a /tmp of its own, and what it defines");
	check_env_in(true, "/w", "", &defining, base,
		"PATH=/w/node_modules/.bin:/bin NO_COLOR=1 TMPDIR=/w/t" TAIL,
		"also in place of that");
	check_env("/w", "", &passing, base,
		"PATH=/w/node_modules/.bin:/bin TMPDIR=/a TEMP=/w/t TMP=/b NO_COLOR=1" TAIL,
		"otherwise that of vx");
}

static void
test_env(void)
{
	const char *pass[] = {"AWS_REGION", "ABSENT", "EMPTY"};
	struct define def[] = {{"MODE", "x y"}, {"LANG", "C"}};
	struct taskdef plain = {.name = "build"};
	struct taskdef full = {.name = "build",
		.pass_through = pass,
		.npass_through = 3,
		.define = def,
		.ndefine = 2};
	struct define path = {"PATH", "/only"}, no_force = {"FORCE_COLOR", "0"};
	struct taskdef own_path = {.define = &path, .ndefine = 1};
	struct taskdef own_color = {.define = &no_force, .ndefine = 1};

	check_env("/w", "pkg/a", &plain,
		ENV(S("SECRET=1"), S("HOME=/h"), S("PATH=/bin"), S("PATHS=x")),
		"PATH=/w/pkg/a/node_modules/.bin:/w/node_modules/.bin:/bin HOME=/h "
		"FORCE_COLOR=1" TAIL,
		"essentials only");
	check_env("/w", "a", &full,
		ENV(S("LANG=de"), S("PATH=/bin"), S("EMPTY="), S("AWS_REGION=eu=1"),
			S("NO_COLOR=1")),
		"PATH=/w/a/node_modules/.bin:/w/node_modules/.bin:/bin LANG=C NO_COLOR=1 "
		"AWS_REGION=eu=1 EMPTY= MODE=x y" TAIL,
		"what is passed through and defined; no colour is forced");
	check_env("/w", "", &plain, ENV(S("NO_COLOR=")),
		"NO_COLOR= PATH=/w/node_modules/.bin:/usr/local/bin:/usr/bin:/bin "
		"FORCE_COLOR=1" TAIL,
		"the root project; no PATH; an empty NO_COLOR is none");
	check_env("/w", "a:b", &own_path, ENV(S("PATH=/bin")),
		"PATH=/w/node_modules/.bin:/only FORCE_COLOR=1" TAIL, "a ':' cannot be in PATH");
	check_env("/w", "", &own_color, ENV(S("PATH=/b"), S("FORCE_COLOR=3")),
		"PATH=/w/node_modules/.bin:/b FORCE_COLOR=0" TAIL, "FORCE_COLOR is the task's");
	check_env("/w", "", &plain, ENV(S("PATH=/b"), S("VX_RUN_TASK=outer#x")),
		"PATH=/w/node_modules/.bin:/b FORCE_COLOR=1" TAIL, "an outer run is not seen");
}

/* A command on one line. */
static void
check_text(const char *got, const char *want, const char *command)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, command, strlen(command));
	ok_str(got, want, name.buf);
}

/* The result as text. */
static void
check_command(const char *command, const char *want)
{
	char *got = env_command(command, (const char *const[]){"A", "b c"}, 2);

	check_text(got, want, command);
	free(got);
}

/* What sh makes of it. */
static void
check_output(const char *command, const char *arg, const char *want)
{
	char *full = env_command(command, &arg, 1);
	char *argv[] = {xstrdup("sh"), xstrdup("-c"), full, NULL};
	char *env[] = {xstrdup("PATH=/usr/bin:/bin"), NULL};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct proc p;
	int fds[2];

	if (!fd_pipe(fds)) {
		struct proc_fd map = {fds[1], 1};
		struct proc_spec spec = {.file = "/bin/sh",
			.argv = argv,
			.env = env,
			.cwd = -1,
			.fds = &map,
			.nfds = 1};

		if (!proc_start(&spec, &p, &e)) {
			close(fds[1]);
			fd_read_all(fds[0], &out, 65536);
			waitpid(p.pid, NULL, 0);
			close(p.pidfd);
		}
		close(fds[0]);
	}
	check_text(out.buf, want, command);
	for (size_t i = 0; i < 3; i++)
		free(argv[i]);
	free(env[0]);
}

static void
test_command(void)
{
	char *same = env_command("x # y", NULL, 0);

	ok_str(same, "x # y", "no arguments: as it is");
	free(same);
	check_command("tsc -b", "tsc -b A 'b c'");
	check_command("tsc -b\n\n  \n", "tsc -b A 'b c'");
	check_command("a\nb", "a\nb A 'b c'");
	check_command("a # why", "a A 'b c' # why");
	check_command("a#b '# c' \"# d\" \\# e", "a#b '# c' \"# d\" \\# e A 'b c'");
	check_command("a\n# the end", "a A 'b c'\n# the end");
	check_command("cat <<EOF\nx # y\nEOF\n", "cat <<EOF A 'b c'\nx # y\nEOF\n");
	check_command("a \\\n  b", "a \\\n  b A 'b c'");
	check_command("cat <<'E F' -\nE\nE F\nb", "cat <<'E F' -\nE\nE F\nb A 'b c'");
	check_command("echo $((1<<2))\nb # c", "echo $((1<<2))\nb A 'b c' # c");
	check_command("echo ${x:-a #b}", "echo ${x:-a #b} A 'b c'");
	check_command("echo \"$(echo \"a #b\")\"", "echo \"$(echo \"a #b\")\" A 'b c'");
	check_command("echo 'open", "echo 'open A 'b c'");

	check_output(
		"printf '[%s]' 1", "it's $HOME `x` \\ \"q\"\n*", "[1][it's $HOME `x` \\ \"q\"\n*]");
	check_output("printf '[%s]'", "", "[]");
	check_output("printf '[%s]' # why", "a;b", "[a;b]");
	check_output("cat <<EOF -\nbody\nEOF\n", "/dev/null", "body\n");
	check_output("cat <<-EOF # why\n\tbody\n\tEOF\n\n", "-", "body\n");
	check_output("cat <<A; cat <<\\B\na\nA\nb\nB\n", "-", "a\nb\n");
}

static void
test_probe_env(void)
{
	char *base[] = {(char[]){"PATH=/bin"}, (char[]){"VX_RUN_TASK=x"},
		(char[]){"VX_RUN_WORKSPACE=/outer"}, (char[]){"ANY=1"}, NULL};
	cleanup_strvec struct strvec env = STRVEC_INIT, top = STRVEC_INIT;

	env_build_probe("/ws", "p/a", base, &env);
	ok_str(strvec_getenv(&env, "PATH"), "/ws/p/a/node_modules/.bin:/ws/node_modules/.bin:/bin",
		"PATH of a probe");
	ok_str(strvec_getenv(&env, "ANY"), "1", "all of vx's environment");
	ok_str(strvec_getenv(&env, "VX_RUN_WORKSPACE"), "/ws", "in this workspace");
	ok(!strvec_getenv(&env, "VX_RUN_TASK") && !strvec_getenv(&env, "FORCE_COLOR"),
		"of no task");
	env_build_probe("/ws", "", base, &top);
	ok_str(strvec_getenv(&top, "PATH"), "/ws/node_modules/.bin:/bin", "in the root");
}

int
main(void)
{
	test_env();
	test_temporary();
	test_probe_env();
	test_command();
	return tap_done();
}

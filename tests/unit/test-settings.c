/* SPDX-License-Identifier: MIT */
#include "config/script.h"
#include "config/settings.h"
#include "tests/tap.h"
#include "tests/unit/corpus.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

static struct arena arena;
static int wsfd; /* of a directory that is ours */

static void
put(const char *path, const char *text)
{
	cleanup_close int fd = openat(wsfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0) {
		printf("Bail out! cannot write %s\n", path);
		exit(1);
	}
}

static struct settings
accept(const char *text)
{
	struct settings s;
	struct err e = ERR_INIT;

	memset(&s, 0, sizeof(s));
	corpus_add("workspace", text);
	put("vx.workspace.json", text);
	ok(settings_load(wsfd, NULL, &arena, &s, &e) == 0, "accepted: %s", text);
	if (err_is_set(&e))
		diag("%s", e.text);
	return s;
}

static void
check_refused(const char *text, const char *want)
{
	struct settings s = {.concurrency = 77};
	struct err e = ERR_INIT;

	corpus_add("workspace", text);
	put("vx.workspace.json", text);
	ok(settings_load(wsfd, NULL, &arena, &s, &e) < 0 && s.concurrency == 77, "refused: %s",
		text);
	ok_err(&e, want, want);
	ok_int(err_exit_code(&e), 2, "and nothing was run");
}

static void
test_fields(void)
{
	struct settings s = accept(
		"{ \"$schema\": \"x\", \"projects\": [\"packages/*\", \"!packages/old\", \".\"],"
		" \"concurrency\": 3, \"cacheDir\": \"~/c\", \"timeout\": 9,"
		" \"affectedBase\": \"origin/dev\","
		" \"rules\": { \"exclusiveOutputs\": true, \"upfrontKeys\": true }, }");

	ok(s.nprojects == 3 && !strcmp(s.projects[1], "!packages/old"), "projects, as written");
	ok_int(s.concurrency, 3, "concurrency");
	ok_str(s.cache_dir, "~/c", "cacheDir, as written");
	ok_int((long long)s.timeout_ms, 9, "timeout");
	ok_str(s.affected_base, "origin/dev", "affectedBase");
	s = accept("{}");
	ok(!s.projects && !s.concurrency && !s.cache_dir, "what is absent has its default");
	s = accept("{ \"projects\": [] }");
	ok(s.projects && !s.nprojects, "an empty list is not an absent one");

	check_refused("{\"concurency\": 1}",
		"vx.workspace.json:1:2: concurency: unknown field, did you "
		"mean 'concurrency'? allowed here: $schema, affectedBase, "
		"cacheDir, cacheRetention, concurrency, executors, projects, rules, timeout");
	s = accept("{ \"executors\": [\"./tools/x\", \"/opt/x\"] }");
	ok(s.nexecutors == 2 && !strcmp(s.executors[0], "./tools/x"), "executors, as written");
	check_refused("{\"executors\": \"./x\"}", "executors: is a string: write an array");
	check_refused("{\"executors\": [{}]}", "executors[0]: is an object: write a string");
	check_refused("{\"executors\": [\"x\"]}", "'x' is looked up nowhere: write './…'");
	check_refused("{\"executors\": [\"tools/x\"]}", "'tools/x' is looked up nowhere");
	check_refused("{\"executors\": [\"~/x\"]}", "'~/x' is looked up nowhere");
	check_refused("{\"executors\": [\"../x\"]}", "'../x' is looked up nowhere");
	check_refused("{\"executors\": [\"./../x\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"./a/../x\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"./a//x\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"././x\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"./x/\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"./\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"/\"]}", "write the path of a file, without '.'");
	check_refused("{\"executors\": [\"/..\"]}", "write the path of a file, without '.'");
	check_refused("{\"packages\": []}", "packages: write 'projects'");
	check_refused("{\"workspaces\": []}", "workspaces: write 'projects'");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"\\u0000\"}}",
		"maxSize: holds a NUL (\\u0000): leave it out");
	check_refused("{\"concurrency\": 0}",
		"vx.workspace.json:1:17: concurrency: write a whole number");
	check_refused("{\"concurrency\": \"50%\"}", "write a whole number from 1 on");
	check_refused("{\"concurrency\": 4294967297}", "write a whole number from 1 on");
	check_refused("{\"timeout\": -1}", "whole number of milliseconds");
	check_refused("{\"cacheDir\": 1}", "cacheDir: is a number: write a string");
	check_refused("{\"cacheDir\": \" \"}", "is only blanks");
	check_refused("{\"cacheDir\": \"a\\u0000\"}", "holds a NUL");
	check_refused("{\"cacheDir\": \"./\"}", "'./' holds the workspace");
	check_refused("{\"cacheDir\": \"x/../..\"}", "holds the workspace");
	check_refused("{\"cacheDir\": \"/tmp\"}", "'/tmp' holds the workspace");
	check_refused("{\"cacheDir\": \"/\"}", "'/' holds the workspace");
	check_refused("{\"affectedBase\": \"\"}", "is empty");
	check_refused("{\"affectedBase\": \"a b\"}", "holds no blank");
	check_refused("{\"affectedBase\": \"--upload-pack=x\"}", "does not begin with '-'");
	check_refused("{\"rules\": true}", "rules: is true: write an object with the fields "
					   "exclusiveOutputs, upfrontKeys");
	check_refused(
		"{\"rules\": {\"upfrontKeys\": 1}}", "rules.upfrontKeys: is a number: write true");
	check_refused("{\"rules\": {\"upfrontKey\": true}}", "did you mean 'upfrontKeys'");
	check_refused("{\"rules\": {\"exclusiveOutputs\": \"no\"}}",
		"rules.exclusiveOutputs: is a string: write true");
	check_refused("{\"cacheRetention\": {}}", "limits nothing: write olderThan, maxSize");
	check_refused("{\"cacheRetention\": \"30d\"}", "write an object with the fields maxSize");
	check_refused("{\"cacheRetention\": {\"maxsize\": \"1G\"}}", "did you mean 'maxSize'");
	check_refused("{\"cacheRetention\": {\"maxSize\": 1000}}",
		"1:32: cacheRetention.maxSize: is a number: write a string like \"10G\"");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"1000\"}}", "K, M, G or T behind it");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"0G\"}}", "from 1 on");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"-1G\"}}", "from 1 on");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"1.5G\"}}", "K, M, G or T");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"9000000T\"}}", "K, M, G or T");
	check_refused("{\"cacheRetention\": {\"maxSize\": \"1g\"}}", "K, M, G or T");
	check_refused("{\"cacheRetention\": {\"olderThan\": \"1w\"}}", "s, m, h or d behind it");
	check_refused("{\"cacheRetention\": {\"olderThan\": \"d\"}}", "from 1 on");
	check_refused("{\"cacheRetention\": {\"olderThan\": \"0d\"}}", "from 1 on");
	check_refused("{\"cacheRetention\": {\"olderThan\": \"1d\\u0000\"}}", "holds a NUL");
	check_refused("{\"plugins\": []}", "plugins: is not in this vx");
	check_refused("{\"tasks\": {}}", "belongs in the vx.config.json of a project");
	check_refused("{\"name\": \"x\"}", "name: belongs in the vx.config.json of a project");
	check_refused("{\"targetDefaults\": {}}", "write the tasks in the vx.config.json of each");
	check_refused("{\"cacheDirectory\": \"x\"}", "cacheDirectory: write 'cacheDir'");
	check_refused("{\"defaultBase\": \"x\"}", "defaultBase: write 'affectedBase'");
	check_refused("{\"globalPassThroughEnv\": []}", "exec.env.passThrough of the tasks");
	check_refused("{\"projects\": \"packages/*\"}", "projects: is a string: write an array");
	check_refused("{\"projects\": [\"!a\"]}", "holds only '!' entries");
	check_refused("{\"projects\": [\"a\", \"../b\"]}",
		"projects[1]: '../b': leaves the workspace's root, the directory of "
		"vx.workspace.json: move that file up to a directory that holds all projects, or "
		"leave the entry out");
	check_refused("{\"projects\": [\"/srv/b\"]}",
		"projects[0]: '/srv/b': an absolute path: write it from the workspace's root, the "
		"directory of vx.workspace.json (for a project outside of it move that file up)");
	check_refused("{\"projects\": [\"packages/!(a)\"]}", "extended globs");
	check_refused("{\"$schema\": 1}", "$schema: is a number");
}

static void
test_files(void)
{
	char good[] = "{\"concurrency\":3,\"timeout\":5}", bad[] = "{\"concurrency\":0}";
	struct script script = {.path = "vx.workspace.ts", .json = good, .len = strlen(good)};
	struct settings s = {0};
	struct err e = ERR_INIT;
	const char *name = "";

	mkdirat(wsfd, "p", 0700);
	mkdirat(wsfd, "p/q", 0700);
	put("p/q/vx.config.json", "{}");
	check_refused("{\"cacheDir\": \"p/q\"}", "'p/q' holds a project");
	check_refused("{\"cacheDir\": \"p\"}", "'p' holds a project");
	unlinkat(wsfd, "p/q/vx.config.json", 0);
	accept("{\"cacheDir\": \"p\"}");
	unlinkat(wsfd, "vx.workspace.json", 0);
	ok(settings_load(wsfd, NULL, &arena, &s, &e) == 0 && !s.projects, "no file: the defaults");
	ok(!settings_find(wsfd, &name, &e) && !name, "none is found");
	put("vx.workspace.ts", "");
	ok(!settings_find(wsfd, &name, &e) && !strcmp(name, "vx.workspace.ts"), "a script is");
	ok(settings_load(wsfd, &script, &arena, &s, &e) == 0 && s.concurrency == 3,
		"what it yields is taken");
	ok_str(s.timeout_by, "timeout in vx.workspace.ts", "and it is named");
	script.json = bad;
	script.len = strlen(bad);
	ok(settings_load(wsfd, &script, &arena, &s, &e) < 0, "what is wrong with it is refused");
	ok_err(&e, "vx.workspace.ts: concurrency: ", "without a line");
	put("vx.workspace.mjs", "");
	err_clear(&e);
	ok(settings_find(wsfd, &name, &e) < 0, "two are refused");
	ok_err(&e, "vx.workspace.mjs: a second workspace config beside vx.workspace.ts: remove one",
		"by name");
	unlinkat(wsfd, "vx.workspace.ts", 0);
	unlinkat(wsfd, "vx.workspace.mjs", 0);
	unlinkat(wsfd, "p/q", AT_REMOVEDIR);
	unlinkat(wsfd, "p", AT_REMOVEDIR);
}

static void
check_timeout(const char *value, long long want)
{
	struct settings s;

	settings_init(&s);
	s.timeout_ms = 5;
	setenv("VX_TASK_TIMEOUT", value, 1);
	settings_apply_env(&s);
	ok_int((long long)s.timeout_ms, want, value);
}

static void
test_env(void)
{
	struct settings s;

	check_timeout("7", 7);
	check_timeout("0", 5);
	check_timeout("", 5);
	check_timeout("-1", 5);
	check_timeout("1e3", 5);
	check_timeout("99999999999", 2147483647);
	check_timeout("99999999999999999999999999", 2147483647);
	settings_init(&s);
	s.cache_dir = "file";
	setenv("VX_CACHE_DIR", "", 1);
	settings_apply_env(&s);
	ok_str(s.cache_dir, "file", "an empty VX_CACHE_DIR is none");
	setenv("VX_CACHE_DIR", "/c", 1);
	settings_apply_env(&s);
	ok_str(s.cache_dir, "/c", "VX_CACHE_DIR outranks the file");
}

static void
test_cores(void)
{
	static const char v2[] = "0::/a/b\n";
	static const char v1[] = "5:memory:/a\n4:cpuset:/a\n3:cpu,cpuacct:/a/b\n";
	cpu_set_t set, one;

	ok_int(settings_quota_cores(v2, wsfd), 0, "no files: no limit");
	mkdirat(wsfd, "a", 0700);
	mkdirat(wsfd, "a/b", 0700);
	put("cpu.max", "800000 100000\n");
	put("a/cpu.max", "250000 100000\n");
	put("a/b/cpu.max", "max 100000\n");
	ok_int(settings_quota_cores(v2, wsfd), 3, "the tightest on the way up, rounded up");
	ok_int(settings_quota_cores("0::/a/gone/x\n", wsfd), 3, "a group that cannot be seen");
	ok_int(settings_quota_cores("0::/../..\n", wsfd), 8, "a group above the mount");
	put("a/cpu.max", "1000 100000\n");
	ok_int(settings_quota_cores(v2, wsfd), 1, "at least one");
	put("a/cpu.max", "lots 100000\n");
	ok_int(settings_quota_cores(v2, wsfd), 8, "what is no number is no limit");
	ok_int(settings_quota_cores(v1, wsfd), 0, "version 1 does not read version 2");
	mkdirat(wsfd, "cpu,cpuacct", 0700);
	mkdirat(wsfd, "cpu,cpuacct/a", 0700);
	put("cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
	put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	ok_int(settings_quota_cores(v1, wsfd), 2, "version 1");
	put("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
	ok_int(settings_quota_cores(v1, wsfd), 0, "-1 is no limit");

	ok(settings_usable_cores() >= 1, "this machine has a core");
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
	ok_int(settings_usable_cores(), 1, "one core is allowed, one is usable");
	sched_setaffinity(0, sizeof(set), &set);
}

int
main(void)
{
	static const char *const files[] = {"vx.workspace.json", "cpu,cpuacct/a/cpu.cfs_quota_us",
		"cpu,cpuacct/a/cpu.cfs_period_us", "a/b/cpu.max", "a/cpu.max", "cpu.max"};
	static const char *const dirs[] = {"cpu,cpuacct/a", "cpu,cpuacct", "a/b", "a"};
	char dir[] = "/tmp/vx-test-settings.XXXXXX";

	wsfd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	arena_init(&arena);
	test_fields();
	test_files();
	test_env();
	test_cores();
	arena_release(&arena);
	for (size_t i = 0; i < array_len(files); i++)
		unlinkat(wsfd, files[i], 0);
	for (size_t i = 0; i < array_len(dirs); i++)
		unlinkat(wsfd, dirs[i], AT_REMOVEDIR);
	close(wsfd);
	ok(rmdir(dir) == 0, "nothing is left");
	return tap_done();
}

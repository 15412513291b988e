/* SPDX-License-Identifier: MIT */
/*
 * The executor against a helper that does what the test wants: this program itself, started as
 * vx-sandbox, plays the scenario that the command names.
 */
#include "exec/commit.h"
#include "exec/sandboxed.h"
#include "exec/scratch.h"
#include "graph/graph.h"
#include "proto/ruleset.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/loop.h"
#include "util/path.h"
#include "util/proc.h"
#include "workspace/files.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* The helper. */

static struct spec spec;
static struct strbuf out = STRBUF_INIT;

static void
add(struct status *s)
{
	status_encode(s, &out);
	status_release(s);
}

static void
send_all(void)
{
	if (fd_write_all(5, out.buf, out.len))
		_exit(99);
	strbuf_reset(&out);
}

static void
say_started(void)
{
	struct status s;

	frame_hello(&out);
	status_init(&s, STATUS_VIEW);
	s.u.view.reports = true;
	add(&s);
	status_init(&s, STATUS_STARTED);
	add(&s);
}

static void
say_exit(uint32_t wstatus, uint32_t nkilled)
{
	struct status s;

	status_init(&s, STATUS_EXIT);
	s.u.exit.wstatus = wstatus;
	s.u.exit.user_us = 7;
	s.u.exit.max_rss_kb = 1234;
	s.u.exit.nkilled = nkilled;
	add(&s);
}

static void
say_entry(const char *path, enum entry_type type, bool merge)
{
	struct status s;

	status_init(&s, STATUS_ENTRY);
	s.u.entry.type = type;
	s.u.entry.merge = merge;
	s.u.entry.mode = type == ENTRY_DIR ? 0755 : 0644;
	strbuf_adds(&s.u.entry.path, path);
	add(&s);
}

static void
say_denial(enum denial_op op, const char *path)
{
	struct status s;

	status_init(&s, STATUS_DENIAL);
	s.u.denial.op = op;
	s.u.denial.pid = 42;
	strbuf_adds(&s.u.denial.path, path);
	strbuf_adds(&s.u.denial.program, "cat");
	add(&s);
}

static void
say_late(const char *path)
{
	struct status s;

	status_init(&s, STATUS_LATE);
	strbuf_adds(&s.u.late.path, path);
	add(&s);
}

static void
say_planted(const char *path, bool moved)
{
	struct status s;

	status_init(&s, STATUS_PLANTED);
	strbuf_adds(&s.u.planted.path, path);
	if (moved) {
		strbuf_addf(&s.u.planted.moved, "%s/out/0-%s", spec.scratch, path_base(path));
		if (mkdir("out", 0700) || mkdir("out/0-.husky", 0755))
			_exit(95);
	}
	add(&s);
}

static void
say_done(uint64_t denials)
{
	struct status s;

	status_init(&s, STATUS_DONE);
	s.u.done.denials = denials;
	add(&s);
}

static void
write_outputs(void)
{
	cleanup_close int upper = -1, fd = -1;

	if (mkdirat(AT_FDCWD, "u", 0755) && errno != EEXIST)
		_exit(98);
	upper = open("u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fs_mkdirs(upper, "p/dist");
	fd = fs_open_beneath(upper, "p/dist/x", O_WRONLY | O_CREAT, 0644);
	if (fd < 0 || fd_write_all(fd, "out", 3))
		_exit(97);
}

static void
say_outputs(void)
{
	say_entry("p", ENTRY_DIR, true);
	say_entry("p/dist", ENTRY_DIR, false);
	say_entry("p/dist/x", ENTRY_FILE, false);
}

/* A whole run. */
static int
play_run(uint32_t wstatus, uint32_t nkilled, uint64_t denials)
{
	say_exit(wstatus, nkilled);
	say_outputs();
	say_done(denials);
	send_all();
	return 0;
}

static int
play_refusal(void)
{
	struct status s;

	frame_hello(&out);
	status_init(&s, STATUS_SETUP_ERROR);
	strbuf_adds(&s.u.setup_error.cause, "user namespaces are off");
	strbuf_adds(&s.u.setup_error.remedy, "switch them on");
	add(&s);
	send_all();
	return 125;
}

/* Ends as it is told on fd 3. */
static int
play_polite(void)
{
	char line[8] = "";

	say_started();
	send_all();
	if (write(1, "ready\n", 6) != 6 || read(3, line, sizeof(line) - 1) < 0)
		return 96;
	return play_run(strcmp(line, "INT\n") ? SIGTERM : SIGINT, 0, 0);
}

/* Answers KILL only, as a helper does whose command ends by nothing else. */
static int
play_killed_live(void)
{
	char buf[64];
	ssize_t n;

	say_started();
	send_all();
	if (write(1, "ready\n", 6) != 6)
		return 96;
	while ((n = read(3, buf, sizeof(buf))) > 0)
		if (n >= 5 && !memcmp(buf + n - 5, "KILL\n", 5)) {
			say_exit(SIGKILL, 0);
			say_planted("p/dist/.envrc", false);
			say_done(0);
			send_all();
			return 0;
		}
	return 96;
}

static int
play_stubborn(void)
{
	say_started();
	send_all();
	if (write(1, "ready\n", 6) != 6)
		return 96;
	for (;;)
		pause();
}

static int
play(const char *scenario)
{
	struct status s;

	write_outputs();
	if (!strcmp(scenario, "refused"))
		return play_refusal();
	if (!strcmp(scenario, "polite"))
		return play_polite();
	if (!strcmp(scenario, "killed, live"))
		return play_killed_live();
	if (!strcmp(scenario, "stubborn"))
		return play_stubborn();
	say_started();
	if (!strcmp(scenario, "fine"))
		return play_run(3 << 8, 2, 0);
	if (!strcmp(scenario, "denied")) {
		say_denial(DENIAL_READ, "p/secret");
		say_denial(DENIAL_READ, "other/file");
		say_denial(DENIAL_PROBE, "p/nosuch");
		return play_run(0, 0, 2);
	}
	if (!strcmp(scenario, "more denied")) {
		say_denial(DENIAL_PROBE, "p/nosuch");
		say_denial(DENIAL_READ, "other/file");
		return play_run(0, 0, 2);
	}
	if (!strcmp(scenario, "many elsewhere")) {
		say_denial(DENIAL_READ, "other/file");
		say_exit(0, 0);
		say_outputs();
		status_init(&s, STATUS_DONE);
		s.u.done.denials = 6;
		s.u.done.elsewhere = 3;
		add(&s);
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "undeclared")) {
		say_exit(0, 0);
		say_entry("p", ENTRY_DIR, true);
		say_entry("p/stray", ENTRY_FILE, false);
		say_done(0);
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "late")) {
		say_exit(0, 0);
		say_late("p/gen");
		say_outputs();
		say_done(0);
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "live")) {
		say_denial(DENIAL_WRITE, "p/secret");
		say_exit(0, 0);
		say_planted("p/dist/.husky", true);
		say_planted("p/dist/.envrc", false);
		say_planted("p/dist/package.json", false);
		say_planted("p/dist/plain/package.json", false);
		say_done(1);
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "live, entry")) {
		say_exit(0, 0);
		say_outputs();
		say_done(0);
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "dies")) {
		say_exit(0, 0);
		say_outputs();
		send_all();
		return 0;
	}
	if (!strcmp(scenario, "killed")) {
		send_all();
		raise(SIGKILL);
	}
	if (!strcmp(scenario, "disordered")) {
		say_outputs();
		return play_run(0, 0, 0);
	}
	if (!strcmp(scenario, "two ends")) {
		say_exit(0, 0);
		return play_run(0, 0, 0);
	}
	strbuf_adds(&out, "\xff\xff\xff\x7fgarbage");
	send_all();
	for (;;)
		pause();
}

static int
helper_main(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct stat st;

	if (fd_read_all(4, &text, SPEC_MAX) || spec_decode(text.buf, text.len, &spec, &e))
		return 90;
	if (fstat(3, &st) || !S_ISFIFO(st.st_mode) || chdir(spec.scratch))
		return 91;
	if (fcntl(4, F_ADD_SEALS, 0) == 0) /* sealed for good */
		return 92;
	if (strcmp(spec.cwd, "p") != 0 || !strvec_getenv(&spec.env, "A") || spec.argv.n != 3 ||
		strcmp(spec.argv.v[0], "sh") != 0 || !spec.program || access(spec.program, X_OK))
		return 93;
	if (spec.reports.n != 1 || strcmp(spec.reports.v[0], "p") != 0)
		return 94;
	if (strncmp(spec.argv.v[2], "exec ", 5) != 0)
		return 98;
	return play(spec.argv.v[2] + 5);
}

/* The test. */

static char top[] = "/var/tmp/vx-test-sandboxed-XXXXXX";

static struct {
	struct loop *loop;
	struct executor *ex;
	struct exec_job *job;
	struct policy policy;
	struct workspace w;
	struct project project;
	struct taskdef def;
	struct node node;
	struct exec_result r;
	bool done;
	bool live;
	unsigned nready, ndenied;
	int sig; /* to send at the first output */
	struct strbuf out;
} t;

static void
on_output(void *ctx attr_unused, enum exec_stream stream attr_unused, const char *p, size_t n)
{
	strbuf_add(&t.out, p, n);
	if (t.sig)
		t.ex->cancel(t.ex, t.job, t.sig);
	t.sig = 0;
}

static void
on_ready(void *ctx attr_unused)
{
	t.nready += !t.done;
}

static void
on_denied(void *ctx attr_unused, const struct exec_denial *d)
{
	if (!t.done && d->class == DENIAL_FINDING && !strcmp(d->path, "p/secret") && *d->grant)
		t.ndenied++;
}

static void
on_done(void *ctx attr_unused, struct exec_result *r)
{
	t.r = *r;
	t.done = true;
	loop_stop(t.loop);
}

/* Runs a command to its end; what it left stays in t.r. */
static void
run(const char *command, uint64_t timeout_ms, int sig)
{
	cleanup_strvec struct strvec env = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct exec_request rq = {
		.id = "p#t",
		.command = command,
		.cwd = -1,
		.env = &env,
		.timeout_ms = timeout_ms,
		.grace_ms = 50,
		.policy = &t.policy,
		.persistent = t.live,
		.ready = on_ready,
		.denied = on_denied,
		.output = on_output,
		.done = on_done,
	};

	strvec_push(&env, "A=1");
	strvec_pushf(&env, "PATH=%s", getenv("PATH"));
	t.done = false;
	t.nready = t.ndenied = 0;
	t.sig = sig;
	strbuf_reset(&t.out);
	t.job = t.ex->start(t.ex, &rq, &e);
	if (!t.job || loop_run(t.loop, &e))
		bug("%s", e.text);
	ok(t.done && t.r.sandboxed, "%s", command);
}

static void
drop(void)
{
	commit_free(t.r.commit);
	exec_result_release(&t.r);
}

static bool
has_note(const char *part)
{
	for (size_t i = 0; i < t.r.notes.n; i++)
		if (strstr(t.r.notes.v[i], part))
			return true;
	return false;
}

static void
test_fine(void)
{
	struct err e = ERR_INIT;
	struct stat st;

	run("fine", 0, 0);
	ok_int(t.r.outcome, EXEC_EXITED, "ended by itself");
	ok_int(t.r.exit_code, 3, "with the command's own code");
	ok(t.r.cpu_us == 7 && t.r.peak_rss_kb == 1234, "and its usage");
	ok(t.r.nkilled == 2 && has_note("2 background processes ended"), "what was left is noted");
	ok(!t.r.unreported && t.r.proven_possible, "nothing speaks against proven");
	ok(t.r.commit && !commit_apply(t.r.commit, &e), "what it wrote is committed (%s)", e.text);
	ok(!fs_stat_beneath(t.w.rootfd, "p/dist/x", &st), "it is there");
	drop();
}

static void
put(int fd, const char *path, const char *content)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));
	cleanup_close int f = -1;

	if (fs_mkdirs(fd, dir))
		bug("mkdirs: %s", strerror(errno));
	f = fs_open_beneath(fd, path, O_WRONLY | O_CREAT, 0644);
	if (f < 0 || fd_write_all(f, content, strlen(content)))
		bug("put: %s", strerror(errno));
}

static void
test_live(void)
{
	struct stat st;

	put(t.w.rootfd, "p/dist/package.json", "{ \"workspaces\": [\"x\"] }");
	put(t.w.rootfd, "p/dist/plain/package.json", "{}");
	t.live = true;
	run("live", 0, 0);
	ok_int(t.r.exit_code, 0, "live: the command's own code");
	ok_int(t.nready, 1, "ready when it has started");
	ok_int(t.ndenied, 1, "what it is denied is told before its end");
	ok(!t.r.commit && !t.r.proven_possible, "nothing to commit, nothing proven");
	ok_int((long long)t.r.nfindings, 4, "a refused write, two names and one manifest");
	ok(has_note("p/dist/.envrc stands"), "one that stands is said");
	ok(has_note("p/dist/package.json, which the task wrote, stands: its \"workspaces\""),
		"one that makes a workspace, with the reason");
	ok(!has_note("plain"), "a plain one is nothing");
	for (size_t i = 0; i < t.r.notes.n; i++)
		if (strstr(t.r.notes.v[i], ".husky"))
			ok(!lstat(strrchr(t.r.notes.v[i], ' ') + 1, &st) &&
					strstr(t.r.notes.v[i], "/vx-moved-out-"),
				"one that was moved out is where it is said to be");
	drop();

	run("live, entry", 0, 0);
	ok(t.r.exit_code == 1 && has_note("frame out of order"), "entries are no part of it");
	ok(t.r.nfindings == 1 && has_note("not looked through"),
		"who cannot say what is left makes a finding");
	drop();

	run("killed, live", 0, SIGKILL);
	ok_int(t.r.outcome, EXEC_STOPPED, "live, killed");
	ok(t.r.signal == SIGKILL && t.r.nfindings == 1 && has_note("p/dist/.envrc stands"),
		"what is left is told all the same");
	drop();

	run("killed, live", 0, SIGTERM);
	ok(t.r.outcome == EXEC_STOPPED && has_note("p/dist/.envrc stands"),
		"also when the grace had to end it");
	drop();

	run("stubborn", 0, SIGKILL);
	ok(t.r.outcome == EXEC_STOPPED && has_note("not looked through"),
		"a helper that does not answer is ended");
	drop();
	t.live = false;
}

static void
test_denials(void)
{
	run("denied", 0, 0);
	ok_int((long long)t.r.nfindings, 1, "a denied read in the project is a finding");
	ok(!t.ndenied && !t.nready, "told at the end");
	ok_int((long long)t.r.ndenials, 3, "the others are recorded");
	ok_str(t.r.denials[0].path, "p/secret", "findings come first");
	ok_str(t.r.denials[0].grant, "allow.read: [\"secret\"]", "with the grant");
	ok_str(t.r.denials[0].program, "cat", "and the program");
	ok_int(t.r.denials[1].class, DENIAL_WALLED, "elsewhere it is the wall");
	ok(t.r.commit != NULL, "granted writes are kept all the same");
	drop();

	run("more denied", 0, 0);
	ok(has_note("1 more denied access"), "one that was not told, behind a probe that was");
	ok_int((long long)t.r.nfindings, 1, "may be a finding, and is counted as one");
	drop();

	run("many elsewhere", 0, 0);
	ok(has_note("2 more denied access"), "but not what the helper knows to be elsewhere");
	ok_int((long long)t.r.nfindings, 2, "which is none");
	drop();

	run("late", 0, 0);
	ok(t.r.late.n == 1 && !strcmp(t.r.late.v[0], "p/gen"), "a name that came late is told");
	ok(t.r.commit && !t.r.nfindings, "and is no finding");
	drop();

	run("undeclared", 0, 0);
	ok_int((long long)t.r.nfindings, 1, "an undeclared write is a finding");
	ok(t.r.ndenials == 1 && t.r.denials[0].op == DENIAL_WRITE, "of its kind");
	drop();
}

static void
test_refused(void)
{
	run("refused", 0, 0);
	ok_int(t.r.outcome, EXEC_NOT_STARTED, "a sandbox that cannot be");
	ok_str(t.r.error.buf, "sandbox not available: user namespaces are off; switch them on",
		"is said in one line");
	ok_int(t.r.exit_code, 127, "the task was not started");
	ok(!t.r.commit, "nothing to commit");
	drop();
}

/* Nothing may be kept of a helper that did not come to its end. */
static void
test_broken(void)
{
	static const char *const scenarios[] = {
		"dies", "killed", "disordered", "two ends", "garbage"};

	for (size_t i = 0; i < array_len(scenarios); i++) {
		run(scenarios[i], 0, 0);
		ok(t.r.outcome == EXEC_EXITED && t.r.exit_code != 0, "is a failure (%d)",
			t.r.exit_code);
		ok(!t.r.unreported, "which does not mean that there are no reports");
		ok(!t.r.commit && has_note("nothing of what the task wrote was kept"),
			"without a commit");
		drop();
	}
}

static void
test_stopped(void)
{
	run("polite", 50, 0);
	ok_int(t.r.outcome, EXEC_TIMED_OUT, "a time-out");
	ok_int(t.r.exit_code, 143, "is asked to end over fd 3");
	ok(!t.r.commit, "the workspace stays as it was");
	drop();

	run("polite", 0, SIGINT);
	ok_int(t.r.outcome, EXEC_STOPPED, "stopped");
	ok_int(t.r.signal, SIGINT, "by the signal that was given");
	ok(!t.r.commit, "nothing is committed");
	drop();

	run("stubborn", 50, 0);
	ok_int(t.r.outcome, EXEC_TIMED_OUT, "one that does not listen");
	ok_int(t.r.exit_code, 137, "is killed");
	drop();

	run("stubborn", 0, SIGKILL);
	ok_int(t.r.outcome, EXEC_STOPPED, "or at once");
	ok(!t.r.commit, "without a commit");
	drop();
}

/* With the real one, where it is built and can work. */
static void
test_real(struct sandboxed_options o)
{
	const char *build = getenv("VX_BUILDDIR");
	cleanup_free char *helper = build ? path_join(build, "vx-sandbox") : NULL;
	struct err e = ERR_INIT;
	struct stat st;

	if (!helper || access(helper, X_OK)) {
		skip("the real helper", "it is not in $VX_BUILDDIR");
		return;
	}
	o.helper = helper;
	t.ex->free(t.ex);
	t.ex = sandboxed_new(t.loop, &o);
	run("echo \"$0\"; cat in; echo new > dist/y; cat ../outside 2>/dev/null; cat secret "
	    "2>/dev/null; "
	    "exit 4",
		0, 0);
	if (t.r.outcome == EXEC_NOT_STARTED) {
		skip("the real helper", t.r.error.buf);
		drop();
		return;
	}
	ok_int(t.r.exit_code, 4, "the command's code");
	ok_str(t.out.buf, "sh\nin\n", "and its output: its own name, what was granted");
	ok(t.r.commit && !commit_apply(t.r.commit, &e), "committed (%s)", e.text);
	ok(!fs_stat_beneath(t.w.rootfd, "p/dist/y", &st), "what it wrote is there");
	if (!t.r.unreported) {
		ok_int((long long)t.r.nfindings, 1, "the read in the project is the finding");
		ok_str(t.r.ndenials ? t.r.denials[0].path : "", "p/secret", "by name");
	} else {
		skip("the denied read", "no reports without /dev/fuse");
	}
	drop();

	t.live = true;
	run("trap '' TERM; mkdir -p dist/.husky; echo live >dist/z; echo no >in; cat secret; echo "
	    "ready; "
	    "while :; do read -r x </dev/full; done",
		0, SIGTERM);
	if (t.r.outcome == EXEC_NOT_STARTED) {
		skip("the live view", t.r.error.buf);
	} else {
		ok_int(t.r.outcome, EXEC_STOPPED, "a live task that does not end is killed");
		ok(t.nready == 1 && t.ndenied == 1, "it was ready, and its denied read was told");
		ok(!t.r.commit && !fs_stat_beneath(t.w.rootfd, "p/dist/z", &st),
			"what it wrote stands");
		ok(fs_stat_beneath(t.w.rootfd, "p/dist/.husky", &st) && has_note("/vx-moved-out-"),
			"but for what is never kept");
		ok_int((long long)t.r.nfindings, 3,
			"which is a finding, as its write and its read are");
	}
	drop();
	t.live = false;
}

int
main(int argc attr_unused, char **argv)
{
	cleanup_free char *self = NULL, *cache = NULL, *sh = NULL;
	struct sandboxed_options o;
	struct err e = ERR_INIT;
	sigset_t none;
	static struct spec_rule rules[] = {
		{SPEC_READ, false, (char *)(uintptr_t) "p/in"},
		{SPEC_WRITE, false, (char *)(uintptr_t) "p/dist"},
		{SPEC_QUIET, false, (char *)(uintptr_t) ".vx"},
	};
	static const char *listed[] = {"p/in", "p/secret"};
	const struct files files = {.paths = listed, .n = array_len(listed)};

	if (!strcmp(path_base(argv[0]), "vx-sandbox"))
		return helper_main();
	if (!mkdtemp(top))
		bug("mkdtemp: %s", strerror(errno));
	unsetenv("VX_SCRATCH_DIR");
	self = realpath("/proc/self/exe", NULL);
	cache = path_join(top, ".vx/cache");
	sh = proc_find("sh", getenv("PATH"));
	sigemptyset(&none);
	t.w.rootfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t.w.path = top;
	put(t.w.rootfd, "p/in", "in\n");
	put(t.w.rootfd, "p/secret", "s\n");
	put(t.w.rootfd, "outside", "o\n");
	t.project.dir = "p";
	t.node = (struct node){.id = "p#t", .project = &t.project, .def = &t.def};
	t.policy = (struct policy){.w = &t.w,
		.node = &t.node,
		.files = &files,
		.rules = rules,
		.nrules = array_len(rules)};
	o = (struct sandboxed_options){.helper = self,
		.sh = sh,
		.rootfd = t.w.rootfd,
		.root_path = top,
		.cache_dir = cache};
	if (policy_compile(&t.policy, &e) || scratch_area_open(top, &o.area, &e) ||
		loop_new(&none, &t.loop, &e))
		bug("%s", e.text);
	strbuf_init(&t.out);
	t.ex = sandboxed_new(t.loop, &o);
	test_fine();
	test_denials();
	test_live();
	test_refused();
	test_broken();
	test_stopped();
	test_real(o);
	t.ex->free(t.ex);
	loop_free(t.loop);
	strbuf_release(&t.out);
	ruleset_free(t.policy.compiled);
	free(t.policy.nested);
	scratch_area_close(o.area);
	close(t.w.rootfd);
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}

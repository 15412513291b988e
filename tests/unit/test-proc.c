/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/proc.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *const env[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"X=y"}, NULL};

/* Runs a script with the read ends and write ends given; returns its exit code. */
static int
run(const char *script, const struct proc_fd *fds, size_t nfds, int cwd, bool session)
{
	char *argv[] = {xstrdup("sh"), xstrdup("-c"), xstrdup(script), NULL};
	struct proc_spec spec = {.file = "/bin/sh",
		.argv = argv,
		.env = env,
		.cwd = cwd,
		.fds = fds,
		.nfds = nfds,
		.new_session = session};
	struct proc p;
	struct err e = ERR_INIT;
	int st = -1;

	if (proc_start(&spec, &p, &e)) {
		diag("%s", e.text);
	} else {
		waitpid(p.pid, &st, 0);
		close(p.pidfd);
	}
	for (size_t i = 0; i < 3; i++)
		free(argv[i]);
	return st == -1 ? -1 : proc_exit_code(st);
}

static void
check_output(const char *script, int cwd, bool session, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int p[2];

	if (fd_pipe(p))
		return;
	run(script, (struct proc_fd[]){{p[1], 1}}, 1, cwd, session);
	close(p[1]);
	fd_read_all(p[0], &out, 65536);
	close(p[0]);
	ok_str(out.buf, want, name);
}

static void
test_start(void)
{
	cleanup_close int slash = open("/usr", O_PATH | O_CLOEXEC);
	struct proc_spec bad = {.file = "/no/such/program", .argv = env, .env = env, .cwd = -1};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	struct proc p = {7, 7};
	struct err e = ERR_INIT;
	sigset_t block, mask;

	ok_int(run("exit 7", NULL, 0, -1, false), 7, "an exit code");
	ok_int(run("kill -9 $$", NULL, 0, -1, false), 137, "a signal as a shell reports it");
	ok_int(run("test \"$(readlink /proc/$$/fd/0)\" = /dev/null", NULL, 0, -1, false), 0,
		"no stdin but /dev/null");
	check_output("echo out; echo err >&2", -1, false, "out\n", "stdout is what was given");
	check_output("pwd; echo $X$HOME", slash, false, "/usr\ny\n", "directory and environment");
	check_output("ps=$(cat /proc/$$/stat); set -- ${ps##*)}; test $3 = $$ && test $4 = $$ && "
		     "echo own",
		-1, true, "own\n", "a session and a group of its own");

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, &mask);
	sigaction(SIGUSR2, &ignore, &old);
	/* the low 28: libc keeps two above 31 for itself, as they came */
	check_output("sed -n 's/^Sig\\(Blk\\|Ign\\):.*\\(.......\\)$/\\1 \\2/p' /proc/self/status",
		-1, false, "Blk 0000000\nIgn 0000000\n", "signals are as new");
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGUSR2, &old, NULL);

	ok_int(proc_start(&bad, &p, &e), -1, "a program that is not there");
	ok_err(&e, "/no/such/program: No such file", "is an error that names it");
	ok_int(p.pid, 7, "and leaves the result alone");
}

static void
test_files(void)
{
	cleanup_free char *before = NULL;
	struct rlimit was, now;

	getrlimit(RLIMIT_NOFILE, &was);
	if (was.rlim_max < 128) {
		skip("limits of open files", "the hard one is too low");
		return;
	}
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, was.rlim_max});
	before = xasprintf("100 %llu\n", (unsigned long long)was.rlim_max);
	proc_raise_files();
	getrlimit(RLIMIT_NOFILE, &now);
	ok(now.rlim_cur > 100 && now.rlim_cur <= 1 << 17 && now.rlim_max == was.rlim_max,
		"the limit of open files is raised, but not beyond reason");
	check_output("echo $(ulimit -Sn) $(ulimit -Hn)", -1, false, before,
		"a child has what was before");
	proc_raise_files();
	check_output("echo $(ulimit -Sn) $(ulimit -Hn)", -1, false, before, "also the second time");
	getrlimit(RLIMIT_NOFILE, &now);
	ok(now.rlim_cur > 100, "and we have ours again");
}

/* One of ours that is dead, and an orphan. */
static void
test_orphans(void)
{
	char *const argv[] = {
		(char[]){"sh"}, (char[]){"-c"}, (char[]){"(exec true) & exit 3"}, NULL};
	struct proc_spec spec = {.file = "/bin/sh", .argv = argv, .env = env, .cwd = -1};
	struct err e = ERR_INIT;
	struct proc p;
	siginfo_t si;
	bool all;
	int st;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ok(proc_reap_orphans(), "no child, nothing to reap");
	if (proc_start(&spec, &p, &e))
		return;
	waitid(P_PID, (id_t)p.pid, &si, WEXITED | WNOWAIT);
	/* Either the orphan is told first, and reaped, or it is hidden. */
	all = proc_reap_orphans();
	ok(!all, "one of ours is left alone");
	ok(!proc_wait(&p, &st) && proc_exit_code(st) == 3, "and can be waited for");
	while (!waitid(P_ALL, 0, &si, WEXITED | WNOWAIT))
		ok(proc_reap_orphans(), "then what it has left is reaped");
	ok(errno == ECHILD && proc_reap_orphans(), "nobody is left");
}

static void
test_wait(void)
{
	char *const quick[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 7"}, NULL};
	char *const endless[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
	struct proc_spec spec = {.file = "/bin/sh", .argv = quick, .env = env, .cwd = -1};
	struct err e = ERR_INIT;
	struct proc p;
	sigset_t set, old;
	int st, sig;

	ok(!proc_start(&spec, &p, &e) && !proc_wait(&p, &st) && proc_exit_code(st) == 7,
		"the end of a child is waited for");
	ok_int(p.pidfd, -1, "which closes its pidfd");
	spec.file = "/bin/sleep";
	spec.argv = endless;
	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	ok(!proc_start(&spec, &p, &e), "one that does not end");
	raise(SIGTERM);
	ok_int(stop_asked_by(), SIGTERM, "and a signal");
	ok(proc_wait(&p, &st) == -1 && errno == ECANCELED, "end the wait");
	ok(waitpid(p.pid, NULL, 0) == -1 && errno == ECHILD, "the child is killed and reaped");
	sigwait(&set, &sig);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void
move_up(int *fd)
{
	int up = fcntl(*fd, F_DUPFD_CLOEXEC, 100);

	fd_close(fd);
	*fd = up;
}

/* Pipes on 5 and 6, to be swapped: each one's number is the other's place in the child. */
static void
test_fdmap(void)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int p[2], q[2], leak;
	struct proc_fd map[] = {{5, 6}, {6, 5}, {-1, 9}, {0, 1}};

	if (fd_pipe(p) || fd_pipe(q))
		return;
	/* p's write end on 5, q's on 6, read ends far up; without CLOEXEC, as inherited ones are */
	move_up(&p[0]);
	move_up(&q[0]);
	move_up(&p[1]);
	move_up(&q[1]);
	dup2(p[1], 5);
	dup2(q[1], 6);
	close(p[1]);
	close(q[1]);
	leak = fcntl(p[0], F_DUPFD, 7); /* in a gap of the map */
	dup2(leak, 200);
	map[3].parent = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ok_int(run("echo p >&6; echo q >&5; for f in 3 4 7 8 10 11 100 200; do "
		   "test ! -e /proc/$$/fd/$f || exit $f; done; test -e /proc/$$/fd/9",
		       map, array_len(map), -1, false),
		0, "nothing but the map is inherited");
	close(5);
	close(6);
	close(leak);
	close(200);
	close(map[3].parent);
	fd_read_all(p[0], &out, 100);
	fd_read_all(q[0], &out, 100);
	ok_str(out.buf, "p\nq\n", "fds that are in each other's place are swapped");
	close(p[0]);
	close(q[0]);
}

static void
test_find(void)
{
	cleanup_free char *sh = proc_find("sh", "/nowhere:/bin:/usr/bin");
	cleanup_free char *outside = proc_find_outside("sh", "bin::/bin:/usr/bin", "/nowhere");
	cleanup_free char *inside = proc_find_outside("sh", "/bin:/usr/bin", "/usr");
	cleanup_free char *none = proc_find("no-such-program", "/bin");
	cleanup_free char *dir = proc_find("share", "/usr");
	cleanup_free char *path = proc_find("/bin/sh", "");
	cleanup_free char *plain = proc_find("passwd", "/etc");

	ok_str(sh, "/bin/sh", "the first on the path");
	ok(outside && *outside == '/', "relative entries do not count for vx's own programs");
	ok(!inside, "nor do those in the workspace, by whatever link");
	ok(!none, "not found");
	ok(!dir, "a directory is no program");
	ok(!plain, "a file without an x bit is none");
	ok_str(path, "/bin/sh", "a path is itself");
}

static void
test_group(void)
{
	int ready[2];
	char c;
	pid_t pid;
	siginfo_t si;

	if (fd_pipe(ready))
		return;
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_NAME, ") Z 1 (");
		fd_write_all(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	if (read(ready[0], &c, 1) != 1)
		diag("the child did not start");
	ok(proc_group_is_alive(pid), "a group is alive, whatever its name says");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
	ok(!kill(-pid, 0), "a zombie can be signalled");
	ok(!proc_group_is_alive(pid), "and is not alive");
	waitpid(pid, NULL, 0);
	ok(!proc_group_is_alive(pid), "nor is who is gone");
	ok(!proc_group_is_alive(0) && !proc_group_is_alive(1),
		"nor are the groups never signalled");
	close(ready[0]);
	close(ready[1]);
}

/* Descendants of all kinds hold the write end of a pipe: its end of file says that all are gone. */
static void
test_descendants(void)
{
	pid_t found[2];
	int held[2], count[2];
	char c[8];
	pid_t kept, pid;
	size_t n = 0;
	cleanup_strbuf struct strbuf rest = STRBUF_INIT;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (fd_pipe(held) || fd_pipe(count))
		return;
	kept = fork();
	if (!kept) {
		close(held[1]);
		pause();
		_exit(0);
	}
	pid = fork();
	if (!pid) {
		/* a child, its orphan in a session of its own, one that is stopped, one that ignores */
		if (!fork()) {
			setsid();
			if (fork())
				_exit(0);
			fd_write_all(count[1], "d", 1);
			pause();
		}
		if (!fork()) {
			sigset_t all;

			sigfillset(&all);
			sigprocmask(SIG_BLOCK, &all, NULL);
			fd_write_all(count[1], "i", 1);
			raise(SIGSTOP);
			pause();
		}
		fd_write_all(count[1], "c", 1);
		pause();
		_exit(0);
	}
	close(held[1]);
	while (n < 3 && read(count[0], c, 1) == 1)
		n++;
	ok_int((long long)proc_kill_descendants(&kept, 1, clock_monotonic_ns() + 10000000000u), 0,
		"all descendants but one are killed");
	ok(!fd_read_all(held[0], &rest, 10), "and gone");
	ok(!kill(kept, 0), "the one that is kept lives");
	ok(proc_find_children("/proc/self/exe", found, array_len(found)) == 1 && found[0] == kept,
		"and is found by what it executes");
	ok_int((long long)proc_find_children("/bin/sh", found, array_len(found)), 0,
		"nobody executes anything else");
	ok_int((long long)proc_kill_descendants(NULL, 0, clock_monotonic_ns() + 10000000000u), 0,
		"then that one");
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "reaped, too");
	ok_int((long long)proc_kill_descendants(NULL, 0, 0), 0, "nobody is left at once");
	close(held[0]);
	close(count[0]);
	close(count[1]);
}

/* In a pid namespace of our own, below a /proc that numbers others. */
attr_noreturn static void
look_by_foreign_proc(void)
{
	siginfo_t si;
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		_exit(0);
	}
	setpgid(pid, pid);
	waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
	_exit(proc_group_is_alive(pid) && proc_kill_descendants(NULL, 0, 0) ? 0 : 1);
}

static void
test_foreign_proc(void)
{
	pid_t pid;
	int st = -1;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(77);
		pid = fork();
		if (!pid)
			look_by_foreign_proc();
		waitpid(pid, &st, 0);
		_exit(proc_exit_code(st));
	}
	waitpid(pid, &st, 0);
	if (proc_exit_code(st) == 77)
		skip("a /proc of another namespace is not asked", "no namespaces here");
	else
		ok_int(proc_exit_code(st), 0, "a /proc of another namespace is not asked");
}

int
main(void)
{
	test_start();
	test_files();
	test_orphans();
	test_wait();
	test_fdmap();
	test_find();
	test_group();
	test_foreign_proc();
	test_descendants();
	ok_str(proc_signal_name(SIGKILL), "SIGKILL", "a signal's name");
	ok(!proc_signal_name(0) && !proc_signal_name(77) && !proc_signal_name(-1), "none");
	return tap_done();
}

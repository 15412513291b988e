/* SPDX-License-Identifier: MIT */
#include "util/proc.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	MAX_FDS = 8,
	FILES_ENOUGH = 1 << 17, /* 10,000 tasks at a time, a dozen each */
	STOP_LOOK_MS = 50,      /* between two looks whether to stop */
};

/* Children of our own, not reaped yet; of a subreaper there are others. */
static struct {
	pid_t *v;
	size_t n, cap;
} ours;

static void
own(pid_t pid)
{
	GROW(ours.v, ours.n + 1, ours.cap);
	ours.v[ours.n++] = pid;
}

void
proc_disown(pid_t pid)
{
	for (size_t i = 0; i < ours.n; i++) {
		if (ours.v[i] != pid)
			continue;
		ours.v[i] = ours.v[--ours.n];
		return;
	}
}

static bool
is_ours(pid_t pid)
{
	for (size_t i = 0; i < ours.n; i++)
		if (ours.v[i] == pid)
			return true;
	return false;
}

bool
proc_reap_orphans(void)
{
	for (;;) {
		siginfo_t si = {0};

		/* Of those that are dead it is always the first that is told, so one of ours hides the rest. */
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) || !si.si_pid)
			return true;
		if (is_ours(si.si_pid))
			return false;
		waitpid(si.si_pid, NULL, WNOHANG);
	}
}

/* Starting. */

/* The fd map with 0, 1 and 2 in it, every parent fd above every child number. */
struct fdmap {
	struct proc_fd v[MAX_FDS + 3];
	bool owned[MAX_FDS + 3];
	size_t n;
	int top; /* highest child number */
};

static void
fdmap_release(struct fdmap *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->owned[i])
			fd_close(&m->v[i].parent);
}
#define cleanup_fdmap __attribute__((cleanup(fdmap_release)))

static bool
fdmap_names(const struct fdmap *m, int child)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].child == child)
			return true;
	return false;
}

/*
 * A parent fd whose number is another entry's child number would be overwritten before its turn,
 * so those are moved up first.
 */
static int
fdmap_init(struct fdmap *m, const struct proc_spec *spec)
{
	if (spec->nfds > MAX_FDS)
		bug("%zu fds for a child", spec->nfds);
	m->top = 2;
	for (size_t i = 0; i < spec->nfds; i++) {
		m->v[m->n++] = spec->fds[i];
		if (spec->fds[i].child > m->top)
			m->top = spec->fds[i].child;
	}
	for (int fd = 0; fd <= 2; fd++)
		if (!fdmap_names(m, fd))
			m->v[m->n++] = (struct proc_fd){-1, fd};
	for (size_t i = 0; i < m->n; i++) {
		int *parent = &m->v[i].parent;
		cleanup_close int null = -1;

		if (*parent > m->top)
			continue;
		if (*parent < 0) {
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
			if (null < 0)
				return -1;
		}
		*parent = fcntl(null < 0 ? *parent : null, F_DUPFD_CLOEXEC, m->top + 1);
		if (*parent < 0)
			return -1;
		m->owned[i] = true;
	}
	return 0;
}

/* Of open files, as vx was started; raised: what it has itself. */
static struct rlimit files, files_raised;

void
proc_raise_files(void)
{
	if (files_raised.rlim_cur || getrlimit(RLIMIT_NOFILE, &files))
		return;
	files_raised = files;
	if (files.rlim_cur >= FILES_ENOUGH)
		return;
	files_raised.rlim_cur = files.rlim_max < FILES_ENOUGH ? files.rlim_max : FILES_ENOUGH;
	if (setrlimit(RLIMIT_NOFILE, &files_raised))
		files_raised = files;
}

static int
spawn_with_our_files(const struct proc_spec *spec, const posix_spawn_file_actions_t *fa,
	const posix_spawnattr_t *attr, pid_t *ret)
{
	bool raised = files_raised.rlim_cur != files.rlim_cur;
	int r;

	/* The child has the limit that we have when it is born; what is open above it stays usable. */
	if (raised)
		setrlimit(RLIMIT_NOFILE, &files);
	r = posix_spawn(ret, spec->file, fa, attr, spec->argv, spec->env);
	if (raised)
		setrlimit(RLIMIT_NOFILE, &files_raised);
	return r;
}

static int
spawn(const struct proc_spec *spec, const struct fdmap *m, posix_spawn_file_actions_t *fa,
	posix_spawnattr_t *attr, pid_t *ret)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int r = 0;

	sigemptyset(&none);
	sigfillset(&all);
	if (spec->new_session)
		flags |= POSIX_SPAWN_SETSID;
	r = r ? r : posix_spawnattr_setflags(attr, flags);
	r = r ? r : posix_spawnattr_setsigmask(attr, &none);
	r = r ? r : posix_spawnattr_setsigdefault(attr, &all);
	/* first, as the map may overwrite the number of the directory's fd */
	if (spec->cwd >= 0)
		r = r ? r : posix_spawn_file_actions_addfchdir_np(fa, spec->cwd);
	for (size_t i = 0; i < m->n; i++)
		r = r ? r : posix_spawn_file_actions_adddup2(fa, m->v[i].parent, m->v[i].child);
	for (int fd = 3; fd < m->top; fd++)
		if (!fdmap_names(m, fd))
			r = r ? r : posix_spawn_file_actions_addclose(fa, fd);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(fa, m->top + 1);
	return r ? r : spawn_with_our_files(spec, fa, attr, ret);
}

static int
reap(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -1;
	proc_disown(pid);
	return 0;
}

int
proc_start(const struct proc_spec *spec, struct proc *ret, struct err *e)
{
	cleanup_fdmap struct fdmap m = {0};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	struct proc p = {-1, -1};
	int r;

	if (fdmap_init(&m, spec))
		return err_set(e, ERR_IO, errno, "start %s", spec->file);
	/* neither allocates, neither fails in glibc */
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	r = spawn(spec, &m, &fa, &attr, &p.pid);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	if (r)
		return err_set(e, ERR_IO, r, "start %s", spec->file);
	/* not reaped by anybody yet, so the number still is this child's */
	p.pidfd = pidfd_open(p.pid, 0);
	if (p.pidfd < 0) {
		r = errno;
		kill(p.pid, SIGKILL);
		reap(p.pid, NULL);
		return err_set(e, ERR_IO, r, "watch %s", spec->file);
	}
	own(p.pid);
	*ret = p;
	return 0;
}

int
proc_wait(struct proc *p, int *ret_status)
{
	struct pollfd end = {p->pidfd, POLLIN, 0};
	bool stopped = false;
	int r;

	/* The signals that stop us are blocked: they wake no poll. */
	while (!stopped && poll(&end, 1, STOP_LOOK_MS) <= 0)
		stopped = stop_is_asked();
	if (stopped)
		kill(p->pid, SIGKILL); /* not reaped yet, so the number still is this child's */
	r = reap(p->pid, ret_status);
	fd_close(&p->pidfd);
	if (r || !stopped)
		return r;
	errno = ECANCELED;
	return -1;
}

static bool
is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) &&
	       !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

/* Whether the entry is an absolute directory that is not in `dir`. */
static bool
is_outside(const char *entry, size_t n, const char *dir)
{
	cleanup_free char *path = xmemdupz(entry, n);
	cleanup_free char *real = n && *entry == '/' ? realpath(path, NULL) : NULL;

	return real && !path_is_within(real, dir);
}

static char *
find(const char *name, const char *path, const char *dir)
{
	for (;;) {
		size_t n = strcspn(path, ":");
		cleanup_free char *full =
			n ? xasprintf("%.*s/%s", (int)n, path, name) : xasprintf("./%s", name);

		if (is_program(full) && (!dir || is_outside(path, n, dir)))
			return take_ptr(&full);
		if (!path[n])
			return NULL;
		path += n + 1;
	}
}

char *
proc_find(const char *name, const char *path)
{
	if (!*name)
		return NULL;
	if (strchr(name, '/'))
		return is_program(name) ? xstrdup(name) : NULL;
	return find(name, path, NULL);
}

char *
proc_find_outside(const char *name, const char *path, const char *dir)
{
	return find(name, path, dir);
}

char *
proc_path_outside(const char *path, const char *dir)
{
	struct strbuf out = STRBUF_INIT;

	for (;;) {
		size_t n = strcspn(path, ":");

		if (is_outside(path, n, dir)) {
			strbuf_adds(&out, out.len ? ":" : "");
			strbuf_add(&out, path, n);
		}
		if (!path[n])
			return strbuf_take(&out);
		path += n + 1;
	}
}

/* Looking at /proc. */

struct proc_stat {
	pid_t pid, ppid, pgrp;
	char state;
	unsigned long long start; /* with the pid: one process, not its number's next user */
};

/* The command name may hold anything, ')' included; what follows the last one is ours to parse. */
static bool
parse_stat(char *text, struct proc_stat *ret)
{
	char *rest = strrchr(text, ')');
	int pid, ppid, pgrp;

	if (!rest || sscanf(text, "%d", &pid) != 1 ||
		sscanf(rest + 1,
			" %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
			"%llu",
			&ret->state, &ppid, &pgrp, &ret->start) != 4)
		return false;
	ret->pid = pid;
	ret->ppid = ppid;
	ret->pgrp = pgrp;
	return true;
}

static bool
read_stat(int procfd, const char *pid, struct proc_stat *ret)
{
	char path[64], text[1024];
	cleanup_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%.20s/stat", pid);
	fd = openat(procfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse_stat(text, ret);
}

/* A /proc of another pid namespace has other numbers: NULL then, as when there is none. */
static DIR *
open_own_proc(void)
{
	char self[32];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = '\0';
	return strtol(self, NULL, 10) == getpid() ? opendir("/proc") : NULL;
}

bool
proc_is_ancestor(pid_t pid)
{
	cleanup_dir DIR *d = open_own_proc();
	struct proc_stat st = {.ppid = getppid()};
	char name[16];

	while (d && st.ppid > 1 && st.ppid != pid) {
		snprintf(name, sizeof(name), "%d", (int)st.ppid);
		if (!read_stat(dirfd(d), name, &st))
			return false;
	}
	return d && pid > 1 && st.ppid == pid;
}

/* The next process; false at the end. */
static bool
next_process(DIR *proc, struct proc_stat *ret)
{
	struct dirent *d;

	while ((d = readdir(proc)))
		if (*d->d_name >= '1' && *d->d_name <= '9' &&
			read_stat(dirfd(proc), d->d_name, ret))
			return true;
	return false;
}

static bool
is_dead(const struct proc_stat *st)
{
	return st->state == 'Z' || st->state == 'X';
}

bool
proc_group_is_alive(pid_t pgid)
{
	cleanup_dir DIR *proc = NULL;
	struct proc_stat st;

	if (pgid <= 1 || (kill(-pgid, 0) && errno != EPERM))
		return false;
	proc = open_own_proc();
	if (!proc)
		return true;
	while (next_process(proc, &st))
		if (st.pgrp == pgid && !is_dead(&st))
			return true;
	return false;
}

static bool
executes(DIR *proc, pid_t pid, const struct stat *file)
{
	struct stat st;
	char name[32];

	snprintf(name, sizeof(name), "%d/exe", pid);
	return !fstatat(dirfd(proc), name, &st, 0) && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
}

size_t
proc_find_children(const char *file, pid_t *ret, size_t max)
{
	cleanup_dir DIR *proc = open_own_proc();
	struct proc_stat ps;
	struct stat st;
	size_t n = 0;

	if (!proc || stat(file, &st))
		return 0;
	while (n < max && next_process(proc, &ps))
		if (ps.ppid == getpid() && !is_dead(&ps) && executes(proc, ps.pid, &st))
			ret[n++] = ps.pid;
	return n;
}

/* Killing descendants. */

struct census {
	struct proc_stat *v; /* all processes; after keep_descendants: ours only */
	size_t n, cap;
};

static int
by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct proc_stat *)a)->pid, y = ((const struct proc_stat *)b)->pid;

	return (x > y) - (x < y);
}

static const struct proc_stat *
census_find(const struct census *c, pid_t pid)
{
	struct proc_stat key = {.pid = pid};

	return bsearch(&key, c->v, c->n, sizeof(*c->v), by_pid);
}

static bool
is_kept(pid_t pid, const pid_t *keep, size_t nkeep)
{
	for (size_t i = 0; i < nkeep; i++)
		if (keep[i] == pid)
			return true;
	return false;
}

/* Up the chain of parents to us, not through one that is kept. Bounded: reads were not of one
 * instant, so a chain could close on itself. */
static bool
is_descendant(const struct census *c, const struct proc_stat *st, const pid_t *keep, size_t nkeep)
{
	pid_t self = getpid();

	for (size_t hops = 0; st && hops <= c->n; hops++) {
		if (is_kept(st->pid, keep, nkeep))
			return false;
		if (st->ppid == self)
			return true;
		st = census_find(c, st->ppid);
	}
	return false;
}

/* All live or unreaped processes below this one. */
static int
census_take(struct census *ret, const pid_t *keep, size_t nkeep)
{
	cleanup_dir DIR *proc = open_own_proc();
	struct census all = {0};
	struct proc_stat st;

	ret->n = 0;
	if (!proc)
		return -1;
	while (next_process(proc, &st)) {
		GROW(all.v, all.n + 1, all.cap);
		all.v[all.n++] = st;
	}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_pid);
	for (size_t i = 0; i < all.n; i++) {
		if (!is_descendant(&all, &all.v[i], keep, nkeep))
			continue;
		GROW(ret->v, ret->n + 1, ret->cap);
		ret->v[ret->n++] = all.v[i];
	}
	free(all.v);
	return 0;
}

/*
 * Kills the very process that the census saw: its number may be another's by now, so it is pinned by
 * a pidfd first and looked at again. Returns the pidfd, or -1 where nobody is left to wait for.
 */
static int
kill_seen(const struct proc_stat *seen)
{
	cleanup_close int pidfd = pidfd_open(seen->pid, 0);
	cleanup_close int procfd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct proc_stat now;
	char pid[24];

	snprintf(pid, sizeof(pid), "%d", seen->pid);
	if (pidfd < 0 || procfd < 0 || !read_stat(procfd, pid, &now) || now.start != seen->start)
		return -1;
	pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	return is_dead(&now) && now.ppid != getpid() ? -1 : take_fd(&pidfd);
}

/* Until one of them is ready, or the deadline. */
static void
wait_any(struct pollfd *fds, size_t n, uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec ts = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};

	if (n)
		ppoll(fds, n, &ts, NULL);
}

/* Reaps, kills, and waits for something to have changed. */
static void
kill_round(const struct census *c, uint64_t deadline_ns)
{
	struct pollfd fds[64];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		int fd;

		if (is_dead(&c->v[i]) && c->v[i].ppid == getpid() &&
			waitpid(c->v[i].pid, NULL, WNOHANG) > 0) {
			proc_disown(c->v[i].pid);
			continue;
		}
		fd = kill_seen(&c->v[i]);
		if (fd >= 0 && n < array_len(fds))
			fds[n++] = (struct pollfd){fd, POLLIN, 0};
		else
			fd_close(&fd);
	}
	wait_any(fds, n, deadline_ns);
	while (n)
		fd_close(&fds[--n].fd);
}

static bool
have_children(void)
{
	siginfo_t si;

	return !waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) || errno != ECHILD;
}

size_t
proc_kill_descendants(const pid_t *keep, size_t nkeep, uint64_t deadline_ns)
{
	struct census c = {0};
	size_t left = 0;

	/* As a subreaper we get every orphan, so no child at all means no descendant at all. A census
	 * alone is no proof: one that forks and ends can run ahead of it. */
	for (bool first = true; have_children(); first = false) {
		if (census_take(&c, keep, nkeep)) {
			left = 1;
			break;
		}
		if (!c.n && nkeep)
			break;
		if (!first && clock_monotonic_ns() >= deadline_ns) {
			left = c.n;
			break;
		}
		kill_round(&c, deadline_ns);
	}
	free(c.v);
	return left;
}

/* Names. */

int
proc_exit_code(int wstatus)
{
	if (WIFSIGNALED(wstatus))
		return 128 + WTERMSIG(wstatus);
	return WEXITSTATUS(wstatus);
}

const char *
proc_signal_name(int sig)
{
	static const char *const names[] = {
		[SIGHUP] = "SIGHUP",
		[SIGINT] = "SIGINT",
		[SIGQUIT] = "SIGQUIT",
		[SIGILL] = "SIGILL",
		[SIGTRAP] = "SIGTRAP",
		[SIGABRT] = "SIGABRT",
		[SIGBUS] = "SIGBUS",
		[SIGFPE] = "SIGFPE",
		[SIGKILL] = "SIGKILL",
		[SIGUSR1] = "SIGUSR1",
		[SIGSEGV] = "SIGSEGV",
		[SIGUSR2] = "SIGUSR2",
		[SIGPIPE] = "SIGPIPE",
		[SIGALRM] = "SIGALRM",
		[SIGTERM] = "SIGTERM",
		[SIGSTKFLT] = "SIGSTKFLT",
		[SIGCHLD] = "SIGCHLD",
		[SIGCONT] = "SIGCONT",
		[SIGSTOP] = "SIGSTOP",
		[SIGTSTP] = "SIGTSTP",
		[SIGTTIN] = "SIGTTIN",
		[SIGTTOU] = "SIGTTOU",
		[SIGURG] = "SIGURG",
		[SIGXCPU] = "SIGXCPU",
		[SIGXFSZ] = "SIGXFSZ",
		[SIGVTALRM] = "SIGVTALRM",
		[SIGPROF] = "SIGPROF",
		[SIGWINCH] = "SIGWINCH",
		[SIGIO] = "SIGIO",
		[SIGPWR] = "SIGPWR",
		[SIGSYS] = "SIGSYS",
	};

	return sig > 0 && (size_t)sig < array_len(names) ? names[sig] : NULL;
}

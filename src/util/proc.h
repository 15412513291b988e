/* SPDX-License-Identifier: MIT */
/*
 * The one way to start a child: argv, environment, directory, an explicit fd map, nothing else
 * inherited. posix_spawn does it all (glibc 2.34+: addclosefrom_np, addfchdir_np), so that no code
 * of ours runs between fork and exec.
 */
#ifndef UTIL_PROC_H
#define UTIL_PROC_H

#include "util/base.h"
#include <sys/resource.h>
#include <sys/types.h>

struct err;

struct proc_fd {
	int parent; /* fd in this process; -1: /dev/null */
	int child;  /* its number in the child */
};

struct proc_spec {
	const char *file;  /* path of the program; no PATH search; a relative one starts at cwd */
	char *const *argv; /* ended by NULL */
	char *const *env;  /* ended by NULL */
	int cwd;           /* directory fd, or -1: this process's */
	const struct proc_fd *fds;
	size_t nfds; /* at most 8. 0, 1, 2 not named here are /dev/null. All others are closed. */
	bool new_session; /* setsid: own session and process group */
};

/* Raises this process's soft limit of open files, which children do not get: theirs is as it was. */
void proc_raise_files(void);

struct proc {
	pid_t pid;
	int pidfd;
};

/*
 * Signal mask empty and dispositions default in the child, whatever they were when vx was started: what a task
 * does must not depend on whether that was by nohup, a shell's `&` or a program that ignores SIGPIPE. On
 * success the caller owns ret->pidfd.
 */
int proc_start(const struct proc_spec *spec, struct proc *ret, struct err *e);
/*
 * A subreaper gets the orphans below it, and each that ends is a zombie until it is reaped: a task that runs for
 * hours must not fill the process table by them. Reaps those that nobody here has started; false: one that was
 * started here is dead and hides others until it is reaped, so ask again. proc_disown: a child of
 * proc_start was reaped otherwise than here.
 */
bool proc_reap_orphans(void);
void proc_disown(pid_t pid);

/* For a child that nothing else can be done without: waits for its end, reaps it and closes p->pidfd.
 * -1 with errno; ECANCELED when a stop is asked (util/stop.h), on which it is killed. */
int proc_wait(struct proc *p, int *ret_status);

/* Finds `name` on the PATH value `path` (as a shell would): owned, or NULL. Regular files with an x
 * bit only. */
char *proc_find(const char *name, const char *path);
/* The same for a program that vx itself runs: PATH entries that are relative, or lie in `dir`
 * (canonical) by whatever path, do not count. A package can put a `git` or a `sh` there. */
char *proc_find_outside(const char *name, const char *path, const char *dir);
/* The PATH value without the entries that do not count there: for such a program's own look-ups. Owned. */
char *proc_path_outside(const char *path, const char *dir);

/* Whether this process was started by that one, or by one that it has started, and so on, as far as /proc tells: who has
 * lost a parent on the way is nobody's. */
bool proc_is_ancestor(pid_t pid);

/* Whether a live (not zombie) process is left in the group. Zombies do not count: somebody else has
 * to reap them. */
bool proc_group_is_alive(pid_t pgid);

/* Live children of this process that execute this very file, at most `max`; how many. */
size_t proc_find_children(const char *file, pid_t *ret, size_t max);

/* Sends SIGKILL to every live descendant of this process except those in `keep`, again and again
 * until none is left; reaps what is ours. What lies below a process of `keep` is kept, too. For a
 * subreaper. Bounded by `deadline_ns` (clock_monotonic_ns); returns how many were still there then:
 * not 0 where /proc is not that of this pid namespace, as they cannot be found there. */
size_t proc_kill_descendants(const pid_t *keep, size_t nkeep, uint64_t deadline_ns);

/* 0..255 as a shell reports it: exit code, or 128 + signal. */
int proc_exit_code(int wstatus);
/* "SIGKILL" for 9; NULL for a number that is no signal. */
const char *proc_signal_name(int sig);

#endif

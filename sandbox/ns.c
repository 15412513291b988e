/* SPDX-License-Identifier: MIT */
/*
 * Namespaces and id maps.
 *
 * One clone3 makes all of them together with init. CLONE_FILES: init opens /dev/fuse and makes the
 * first mounts, and the helper uses them by number, without passing fds over a socket; view.c ends
 * the sharing. Where a machine refuses, this is the only place that says so: a refusal of namespaces
 * met later, as a mount or an interface that did not work, would send the user the wrong way.
 */
#include "sandbox/setup.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/mounts.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
		     CLONE_NEWCGROUP
};

static const char apparmor_remedy[] =
	"AppArmor keeps unprivileged programs from using namespaces here: install vx's AppArmor "
	"profile, or as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0";

/* The first line of a small file under /proc; false when there is none. */
static bool
proc_word(const struct setup *s, const char *path, struct strbuf *ret)
{
	struct err e = ERR_INIT;

	strbuf_reset(ret);
	if (fd_read_file(s->proc, path, 1 << 20, ret, &e))
		return false;
	for (size_t i = 0; i < ret->len; i++)
		if (ret->buf[i] == '\n') {
			strbuf_truncate(ret, i);
			break;
		}
	return true;
}

static bool
proc_says(const struct setup *s, const char *path, const char *value)
{
	cleanup_strbuf struct strbuf word = STRBUF_INIT;

	return proc_word(s, path, &word) && !strcmp(word.buf, value);
}

/*
 * Whether this root is another than that of our own mount namespace. To enter the namespace that one is in leads to its
 * root, if one may; nothing but dying comes after that.
 */
static bool
root_differs_from_namespace(const struct setup *s)
{
	cleanup_close int fd = openat(s->proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	struct stat a, b;

	return fd >= 0 && !stat("/", &a) && !setns(fd, CLONE_NEWNS) && !stat("/", &b) &&
	       (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

/* In a chroot to a plain directory no mount is the root: mountinfo lists only what lies below it. One to a mount point
 * is told by root alone. */
static bool
is_in_chroot(const struct setup *s)
{
	struct mounts m = MOUNTS_INIT;
	struct err e = ERR_INIT;
	bool found = false;

	if (root_differs_from_namespace(s))
		return true;
	if (mounts_read(&m, s->proc, "self/mountinfo", &e))
		found = true;
	for (size_t i = 0; i < m.n && !found; i++)
		found = !strcmp(m.v[i].point, "/");
	mounts_release(&m);
	return !found;
}

static bool
has_filter(const struct setup *s)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err e = ERR_INIT;

	return fd_read_file(s->proc, "self/status", 1 << 16, &text, &e) ||
	       !strstr(text.buf, "\nSeccomp:\t0\n");
}

void
ns_refused(const struct setup *s, const char *call, int num)
{
	char what[64];

	snprintf(what, sizeof(what), "cannot make the namespaces of a sandbox (%s)", call);
	if (num == ENOSPC && proc_says(s, "sys/user/max_user_namespaces", "0"))
		setup_die(num, "as root: sysctl user.max_user_namespaces=15000",
			"%s: user.max_user_namespaces is 0", what);
	if (num == ENOSPC || num == EUSERS)
		setup_die(num,
			"raise the limits in /proc/sys/user/max_*_namespaces, or run at a lower "
			"depth",
			"%s: a limit on namespaces is reached", what);
	if (num == EAGAIN)
		setup_die(num, "raise the limit on processes (ulimit -u), or end some of this user",
			"%s", what);
	if (num == EPERM && is_in_chroot(s))
		setup_die(num,
			"run vx outside the chroot, or enter it by pivot_root (systemd-nspawn, a "
			"container)",
			"%s: this is a chroot, where the kernel allows none", what);
	if (num == EPERM && proc_says(s, "sys/kernel/unprivileged_userns_clone", "0"))
		setup_die(num, "as root: sysctl kernel.unprivileged_userns_clone=1",
			"%s: kernel.unprivileged_userns_clone is 0", what);
	if ((num == EPERM || num == EACCES) &&
		proc_says(s, "sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		setup_die(num, apparmor_remedy, "%s", what);
	if (num == EPERM && !has_filter(s))
		setup_die(num,
			"no seccomp filter is in force, so a security module forbids it, or this "
			"is a "
			"chroot: run vx outside of it, or enter it by pivot_root (systemd-nspawn, "
			"a "
			"container)",
			"%s", what);
	if (num == EPERM || num == EACCES)
		setup_die(num,
			"a seccomp filter or security module forbids it: allow user namespaces in "
			"this container (docker and podman: --security-opt seccomp=PROFILE that "
			"lets "
			"clone, clone3, unshare, setns and the mount calls pass), or run vx "
			"outside",
			"%s", what);
	if (num == EINVAL || num == ENOSYS)
		setup_die(num,
			"a kernel from 6.1 on, built with USER_NS, PID_NS, NET_NS, IPC_NS, UTS_NS "
			"and "
			"CGROUPS, is needed",
			"%s: this kernel lacks one", what);
	setup_die(num, "see the cause", "%s", what);
}

attr_noreturn static void
refused_map(const struct setup *s, const char *file)
{
	int num = errno;

	if (proc_says(s, "sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		setup_die(num, apparmor_remedy, "cannot map ids into the sandbox (%s)", file);
	setup_die(num,
		s->uid ? "the surrounding container or security module forbids to map ids: run vx "
			 "outside of it, or allow writes of uid_map there"
		       : "root here lacks the right to map ids (CAP_SETFCAP, CAP_SETUID, "
			 "CAP_SETGID): "
			 "run as an ordinary user, or give the container these capabilities",
		"cannot map ids into the sandbox (%s)", file);
}

static void
write_map(const struct setup *s, const char *dir, const char *file, const char *text)
{
	char path[64];
	cleanup_close int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	/* Through our own procfs fd: a path below /proc could lead anywhere (security: S02). One
	 * write: the kernel takes a map whole or not at all. */
	fd = openat(s->proc, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		refused_map(s, file);
}

static void
map_all(const struct setup *s)
{
	char dir[32];
	uint8_t go = CONTROL_GO;

	snprintf(dir, sizeof(dir), "%d", (int)s->init);
	write_map(s, dir, "uid_map", s->uids.map.buf);
	write_map(s, dir, "gid_map", s->gids.map.buf);
	if (fd_write_all(s->control[1], &go, 1))
		setup_die(errno, "see the cause", "cannot tell init to go on");
}

static void
map_self(const struct setup *s)
{
	char text[64];

	/* The kernel lets an unprivileged process map its group only after it gave up setgroups. */
	write_map(s, "self", "setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)s->uid, (unsigned)s->uid);
	write_map(s, "self", "uid_map", text);
	snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)s->gid, (unsigned)s->gid);
	write_map(s, "self", "gid_map", text);
}

/* Root that may map ids maps them all; every other caller maps itself (findings 6). */
static bool
may_map_all(void)
{
	static const int needed[] = {6 /* SETGID */, 7 /* SETUID */};
	struct {
		uint32_t version;
		int pid;
	} header = {0x20080522, 0};
	struct {
		uint32_t effective, permitted, inheritable;
	} data[2];

	if (geteuid() || syscall(SYS_capget, &header, data))
		return false;
	for (size_t i = 0; i < array_len(needed); i++)
		if (!(data[0].effective >> needed[i] & 1))
			return false;
	return true;
}

/* One line of a map. */
struct stretch {
	unsigned long long first, outer, count;
};

static bool
next_stretch(const char **p, struct stretch *ret)
{
	int used;

	if (sscanf(*p, "%llu %llu %llu%n", &ret->first, &ret->outer, &ret->count, &used) != 3)
		return false;
	*p += used;
	return true;
}

/* "0 1000 5" -> "0 0 5": every id that this namespace knows, mapped to itself. And what stands for those that it has no
 * name for, unless it is the name of one. */
static void
find_ids(const struct setup *s, const char *file, const char *overflow, struct ids *ret)
{
	cleanup_strbuf struct strbuf own = STRBUF_INIT, number = STRBUF_INIT;
	struct err e = ERR_INIT;
	char path[64];
	const char *p;
	struct stretch m = {0};
	unsigned id = 65534;

	snprintf(path, sizeof(path), "self/%s", file);
	strbuf_grow(&own, 1000); /* mostly one line: no pages for it alone */
	if (fd_read_file(s->proc, path, 1 << 16, &own, &e))
		refused_map(s, file);
	for (p = own.buf; next_stretch(&p, &m);)
		strbuf_addf(&ret->map, "%llu %llu %llu\n", m.first, m.first, m.count);
	if (m.count == UINT32_MAX)
		return;
	snprintf(path, sizeof(path), "sys/kernel/%s", overflow);
	if (!fd_read_file(s->proc, path, 64, &number, &e))
		sscanf(number.buf, "%u", &id);
	for (p = own.buf; next_stretch(&p, &m);)
		if (id >= m.first && id - m.first < m.count)
			return;
	ret->unnamed = id;
}

void
ns_find_ids(struct setup *s)
{
	s->uids = s->gids = (struct ids){-1U, STRBUF_INIT};
	s->maps_all = may_map_all();
	if (!s->maps_all)
		return;
	find_ids(s, "uid_map", "overflowuid", &s->uids);
	find_ids(s, "gid_map", "overflowgid", &s->gids);
}

attr_noreturn static void
init_start(struct setup *s, attr_noreturn void (*inside)(struct setup *s))
{
	struct pollfd helper = {.fd = s->self, .events = POLLIN};
	uint8_t go;

	setup_report_to(s->report[1]);
	/*
	 * The helper's death must be ours. It may have died before this line: getppid says 0 either
	 * way, since the helper is outside our pid namespace, but its pidfd tells.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || poll(&helper, 1, 0))
		_exit(EXIT_SETUP);
	if (!s->maps_all)
		map_self(s);
	else if (read(s->control[0], &go, 1) != 1)
		_exit(EXIT_SETUP);
	/* The command has our uid: nothing of this process may be open to it (/proc/1/mem, ptrace).
	 * Not earlier: the files in /proc/self would no longer be ours to write. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		setup_die(errno, "see the cause", "cannot make init non-dumpable");
	inside(s);
}

void
ns_start(struct setup *s, attr_noreturn void (*inside)(struct setup *s))
{
	struct clone_args args = {.flags = NAMESPACES | CLONE_FILES, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	/* Container filters cannot look into clone3's memory, answer ENOSYS and judge clone instead. */
	if (pid < 0 && errno == ENOSYS)
		pid = syscall(SYS_clone, (unsigned long)(NAMESPACES | CLONE_FILES | SIGCHLD), NULL,
			NULL, NULL, 0UL);
	if (pid < 0)
		ns_refused(s, "clone", errno);
	if (!pid)
		init_start(s, inside);
	s->init = (pid_t)pid;
	s->init_pidfd = (int)syscall(SYS_pidfd_open, s->init, 0);
	if (s->init_pidfd < 0)
		setup_die(errno, "a container must allow pidfd_open", "cannot watch init");
	if (s->maps_all)
		map_all(s);
}

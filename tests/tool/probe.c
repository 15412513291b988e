/* SPDX-License-Identifier: MIT */
/*
 * What a test does that no common program does: single system calls by number and call table,
 * sockets of odd kinds, filters that refuse namespaces or threads. Prints one line per question.
 */
#include "util/base.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
say(long r)
{
	printf("%s\n", r < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

static long
number(const char *s)
{
	return (long)strtoull(s, NULL, 0);
}

/* call NR ARG...: the native table; x32 NR ARG...: the same with bit 30 set. */
static int
call(long bit, int argc, char **argv)
{
	long a[7] = {0};

	for (int i = 0; i < argc && i < 7; i++)
		a[i] = number(argv[i]);
	return say(syscall(a[0] | bit, a[1], a[2], a[3], a[4], a[5], a[6]));
}

/* call32 NR ARG...: the i386 table, from this 64-bit program. Pointers must be 0. */
static int
call32(int argc, char **argv)
{
#ifdef __x86_64__
	unsigned a[4] = {0};
	int r;

	for (int i = 0; i < argc && i < 4; i++)
		a[i] = (unsigned)number(argv[i]);
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(a[0]), "b"(a[1]), "c"(a[2]), "d"(a[3]), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	if (r < 0)
		errno = -r;
	return say(r < 0 ? -1 : r);
#else
	(void)argc;
	(void)argv;
	errno = ENOSYS;
	return say(-1);
#endif
}

/* clone3: with namespace flags in memory. */
static int
clone3(void)
{
	struct {
		uint64_t v[8];
	} args = {{CLONE_NEWUSER, 0, 0, 0, 17 /* SIGCHLD */}};
	long r = syscall(SYS_clone3, &args, sizeof(args));

	if (!r)
		_exit(0);
	return say(r);
}

/* sockets: every family that is not refused. */
static int
sockets(void)
{
	for (int family = 0; family <= 46; family++) {
		int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			printf("%d\n", family);
	}
	return 0;
}

/* pair TYPE: a pair of unix sockets. */
static int
pair(int type)
{
	int sv[2];

	return say(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sv));
}

/* rename A B: the bare call. */
static int
move(const char *a, const char *b)
{
	return say(rename(a, b));
}

static int
run_filtered(const struct sock_fprog *prog, char **argv)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prog))
		return 99;
	execvp(argv[0], argv);
	return 99;
}

/* refuse-namespaces COMMAND...: as a container's filter does. */
static int
refuse_namespaces(char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return run_filtered(&(struct sock_fprog){array_len(code), code}, argv);
}

/* refuse-threads COMMAND...: as where there may be no more processes. */
static int
refuse_threads(char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return run_filtered(&(struct sock_fprog){array_len(code), code}, argv);
}

/* keep-open FILE N COMMAND...: with FILE inherited N times. */
static int
keep_open(const char *file, int n, char **argv)
{
	for (int i = 0; i < n; i++)
		if (open(file, O_RDONLY) < 0) /* NOLINT(android-cloexec-open): to be inherited */
			return 99;
	execvp(argv[0], argv);
	return 99;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "call"))
		return call(0, argc - 2, argv + 2);
	if (!strcmp(what, "x32"))
		return call(0x40000000, argc - 2, argv + 2);
	if (!strcmp(what, "call32"))
		return call32(argc - 2, argv + 2);
	if (!strcmp(what, "clone3"))
		return clone3();
	if (!strcmp(what, "sockets"))
		return sockets();
	if (!strcmp(what, "pair") && argc == 3)
		return pair((int)number(argv[2]));
	if (!strcmp(what, "rename") && argc == 4)
		return move(argv[2], argv[3]);
	if (!strcmp(what, "refuse-namespaces") && argc > 2)
		return refuse_namespaces(argv + 2);
	if (!strcmp(what, "refuse-threads") && argc > 2)
		return refuse_threads(argv + 2);
	if (!strcmp(what, "keep-open") && argc > 4)
		return keep_open(argv[2], (int)number(argv[3]), argv + 4);
	return 99;
}

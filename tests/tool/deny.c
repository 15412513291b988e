/* SPDX-License-Identifier: MIT */
/*
 * deny NAME[,NAME...] -- COMMAND...: runs the command where the named system calls do not exist
 * (ENOSYS), as on an older kernel: the lanes that force fallbacks. The name `namespaces` stands for
 * what container runtimes filter instead: unshare, setns and clone with namespace flags fail with
 * EPERM, clone3 does not exist (its flags cannot be looked at).
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned ns_flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
	CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP};

static void
die(const char *what, int err)
{
	fprintf(stderr, "deny: %s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(125);
}

static void
deny_namespaces(scmp_filter_ctx ctx)
{
	int r = 0;

	/* clone(flags, ...) has its flags first on the machines we know. */
	for (size_t i = 0; i < sizeof(ns_flags) / sizeof(ns_flags[0]) && !r; i++) {
		struct scmp_arg_cmp has = SCMP_A0(SCMP_CMP_MASKED_EQ, ns_flags[i], ns_flags[i]);

		r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &has);
	}
	if (!r)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 0);
	if (!r)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setns), 0);
	if (!r)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r)
		die("namespaces", r);
}

int
main(int argc, char **argv)
{
	scmp_filter_ctx ctx;
	int r;

	if (argc < 4 || strcmp(argv[2], "--") != 0) {
		fprintf(stderr, "usage: deny NAME[,NAME...] -- COMMAND...\n");
		return 125;
	}
	ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx)
		die("seccomp_init", ENOMEM);
	for (char *name = argv[1], *next; name; name = next) {
		int nr;

		next = strchr(name, ',');
		if (next)
			*next++ = '\0';
		if (!strcmp(name, "namespaces")) {
			deny_namespaces(ctx);
			continue;
		}
		nr = seccomp_syscall_resolve_name(name);
		if (nr == __NR_SCMP_ERROR)
			die(name, EINVAL);
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
		if (r)
			die(name, r);
	}
	r = seccomp_load(ctx);
	if (r)
		die("seccomp_load", r);
	seccomp_release(ctx);
	execvp(argv[3], &argv[3]);
	die(argv[3], errno);
}

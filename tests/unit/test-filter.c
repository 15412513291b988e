/* SPDX-License-Identifier: MIT */
/* The call numbers of the seccomp table against libseccomp's, the program's shape, and what it answers
 * to every call number. */
#include "sandbox/filter.h"
#include "tests/tap.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int
number_of(uint32_t arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	/* below zero: not there, or one that libseccomp makes up for socketcall and ipc */
	return nr < 0 ? -1 : nr;
}

static void
check_row(struct filter_row row)
{
	static const struct {
		const char *name;
		int nr;
	} own[] = {
		/* newer than libseccomp's table, or multiplexed there */
		{"open_tree_attr", 467},
		{"socket", 359},
		{"socketpair", 360},
	};
	int native = number_of(SCMP_ARCH_NATIVE, row.name);
	int compat = number_of(SCMP_ARCH_X86, row.name);

	for (size_t i = 0; i < array_len(own); i++)
		if (!strcmp(own[i].name, row.name)) {
			native = native < 0 ? own[i].nr : native;
			compat = own[i].nr;
		}
	/* With ids of 16 bits. */
	if (strstr(row.name, "chown") && compat < 198)
		compat = -1;
	ok_int(row.native, native, row.name);
	if (SCMP_ARCH_NATIVE == SCMP_ARCH_X86_64 || seccomp_arch_native() == SCMP_ARCH_X86_64)
		ok_int(row.compat, compat, row.name);
}

/* Runs the program as the kernel would. */
static uint32_t
answer(const struct sock_filter *code, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (const struct sock_filter *in = code;; in++) {
		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + in->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= in->k;
			break;
		case BPF_JMP | BPF_JA:
			in += in->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			in += a == in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			in += a >= in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			in += a & in->k ? in->jt : in->jf;
			break;
		case BPF_RET | BPF_K:
			return in->k;
		default:
			return ~0U;
		}
	}
}

static const uint32_t allow = SECCOMP_RET_ALLOW, eperm = SECCOMP_RET_ERRNO | EPERM,
		      enosys = SECCOMP_RET_ERRNO | ENOSYS;

/* Calls that an argument decides about: one that passes, one that does not. */
static const struct judged {
	const char *name;
	unsigned arg;
	uint64_t good, bad;
} judged[] = {
	{"clone", 0, 0x11, CLONE_NEWUSER},
	{"unshare", 0, CLONE_FILES, CLONE_NEWNS},
	{"ioctl", 1, FIONREAD, TIOCSTI},
	{"personality", 0, 0x0040000, 0x0400000},
	{"socket", 0, AF_INET, AF_UNIX},
	{"socketpair", 1, SOCK_STREAM, SOCK_DGRAM},
	{"socketcall", 0, 3, 1},
};

static const struct judged *
find_judged(const char *name)
{
	for (size_t i = 0; i < array_len(judged); i++)
		if (!strcmp(judged[i].name, name))
			return &judged[i];
	return NULL;
}

static struct filter_row
find_row(int nr, bool compat)
{
	size_t i = 0;

	while (*filter_row(i).name && (compat ? filter_row(i).compat : filter_row(i).native) != nr)
		i++;
	return filter_row(i);
}

static bool
answers_right(const struct sock_filter *code, uint32_t arch, bool compat, uint32_t nr)
{
	struct seccomp_data data = {.nr = (int)nr, .arch = arch};
	struct filter_row row = find_row((int)nr, compat);
	const struct judged *j = find_judged(row.name);
	uint32_t got;

	if (nr > 469)
		return answer(code, &data) == enosys;
	if (!j) {
		got = answer(code, &data);
		return *row.name && !strstr(row.name, "chown") ? got == eperm || got == enosys
							       : got == allow;
	}
	data.args[0] = !strcmp(row.name, "socketpair") ? AF_UNIX : 0;
	data.args[j->arg] = j->good;
	got = answer(code, &data);
	data.args[j->arg] = j->bad;
	return got == allow && answer(code, &data) == eperm;
}

static void
check_answers(const struct sock_filter *code, uint32_t arch, bool compat)
{
	uint32_t wrong = 0, n = 0;

	for (uint32_t nr = 0; nr < 1024; nr++) {
		if (!answers_right(code, arch, compat, nr)) {
			wrong = nr;
			n++;
		}
		if (!answers_right(code, arch, compat, nr | 0x40000000)) {
			wrong = nr | 0x40000000;
			n++;
		}
	}
	ok(!n, "%s: every call number gets its answer (%u do not, one is %u)",
		compat ? "32 bit" : "native", n, wrong);
}

static uint32_t
ask(const struct sock_filter *code, uint32_t arch, int nr, bool is_at, uint64_t uid, uint64_t gid)
{
	struct seccomp_data data = {.nr = nr, .arch = arch};

	data.args[is_at ? 2 : 1] = uid;
	data.args[is_at ? 3 : 2] = gid;
	return answer(code, &data);
}

static void
check_owners(const struct filter_options *o, const char *name, uint32_t arch, int nr)
{
	bool is_at = !strcmp(name, "fchownat");
	struct seccomp_data about = {.nr = nr, .arch = arch, .args = {0, 5, 6, 7}};
	struct sock_filter code[FILTER_MAX];
	struct filter_question q = filter_question(&about);

	filter_build(o, code);
	ok(ask(code, arch, nr, is_at, 1000, 100) == allow, "%s: to its own ids", name);
	ok(ask(code, arch, nr, is_at, FILTER_NO_ID, FILTER_NO_ID) == allow, "%s: to none", name);
	ok(ask(code, arch, nr, is_at, 65534, 65534) == allow, "%s: to what shows as nobody's",
		name);
	ok(ask(code, arch, nr, is_at, 1234, 100) == SECCOMP_RET_USER_NOTIF, "%s: to a user", name);
	ok(ask(code, arch, nr, is_at, FILTER_NO_ID, 1234) == SECCOMP_RET_USER_NOTIF,
		"%s: to a group", name);
	ok(q.is_owner && q.uid == (is_at ? 6 : 5) && q.gid == (is_at ? 7 : 6), "%s: its ids", name);
}

static void
check_questions(uint32_t arch, uint32_t scmp_arch)
{
	static const char *const calls[] = {"fchown", "fchownat", "fchown32"};
	struct filter_options o = {.asks = true, .uid = 1000, .gid = 100};
	struct seccomp_data sock = {.arch = arch, .args = {AF_UNIX, SOCK_STREAM}};
	struct sock_filter code[FILTER_MAX];

	sock.nr = scmp_arch == SCMP_ARCH_X86 ? 359 : number_of(scmp_arch, "socket");
	filter_build(&o, code);
	ok(answer(code, &sock) == SECCOMP_RET_USER_NOTIF, "a socket is asked about");
	ok(!filter_question(&sock).is_owner, "and has no owner");
	for (size_t i = 0; i < array_len(calls); i++) {
		int nr = number_of(scmp_arch, calls[i]);

		if (nr >= 0 && !(scmp_arch == SCMP_ARCH_X86 && nr < 198))
			check_owners(&o, calls[i], arch, nr);
	}
	o.maps_all = true;
	filter_build(&o, code);
	ok(ask(code, arch, number_of(scmp_arch, "fchownat"), true, 1234, 1234) == allow,
		"who maps all ids gives to all");
	o.unix_sockets = true;
	filter_build(&o, code);
	ok(answer(code, &sock) == allow, "a granted socket is not asked about");
}

int
main(void)
{
	static const struct filter_options strict = {.asks = false};
	struct sock_filter code[FILTER_MAX];

	for (size_t i = 0; *filter_row(i).name; i++)
		check_row(filter_row(i));
	filter_build(&strict, code);
	check_answers(code,
		seccomp_arch_native() == SCMP_ARCH_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64,
		false);
	if (seccomp_arch_native() == SCMP_ARCH_X86_64)
		check_answers(code, AUDIT_ARCH_I386, true);
	check_questions(
		seccomp_arch_native() == SCMP_ARCH_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64,
		seccomp_arch_native());
	if (seccomp_arch_native() == SCMP_ARCH_X86_64)
		check_questions(AUDIT_ARCH_I386, SCMP_ARCH_X86);
	for (unsigned bits = 0; bits < 8; bits++) {
		struct filter_options o = {
			.unix_sockets = bits & 1, .nested = bits & 2, .asks = bits & 4};
		size_t n = filter_build(&o, code);
		bool inside = true;

		for (size_t i = 0; i < n; i++) {
			if (BPF_CLASS(code[i].code) != BPF_JMP)
				continue;
			if (BPF_OP(code[i].code) == BPF_JA)
				inside &= i + 1 + code[i].k < n;
			else
				inside &= i + 1 + code[i].jt < n && i + 1 + code[i].jf < n;
		}
		ok(n && inside, "every jump of variant %u stays inside", bits);
		ok(BPF_CLASS(code[n - 1].code) == BPF_RET, "variant %u ends in a return", bits);
	}
	return tap_done();
}

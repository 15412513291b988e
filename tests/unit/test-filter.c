/* SPDX-License-Identifier: MIT */
/* The call numbers of the seccomp table against libseccomp's, and the program's shape. */
#include "sandbox/filter.h"
#include "tests/tap.h"
#include <linux/filter.h>
#include <seccomp.h>

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
	ok_int(row.native, native, row.name);
	if (SCMP_ARCH_NATIVE == SCMP_ARCH_X86_64 || seccomp_arch_native() == SCMP_ARCH_X86_64)
		ok_int(row.compat, compat, row.name);
}

int
main(void)
{
	struct sock_filter code[FILTER_MAX];

	for (size_t i = 0; *filter_row(i).name; i++)
		check_row(filter_row(i));
	for (unsigned bits = 0; bits < 4; bits++) {
		struct filter_options o = {bits & 1, bits & 2};
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

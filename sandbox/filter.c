/* SPDX-License-Identifier: MIT */
/*
 * The seccomp filter, made of one table. It is a list of refusals: the view, not the filter, decides
 * about files; the filter closes the kernel surface that user namespaces open, the ways around the
 * view (new mounts and namespaces), and channels that the view cannot see (unix sockets, keyrings,
 * terminal input). What the table does not know because it is newer than the table is ENOSYS.
 *
 * Written as BPF by hand rather than through libseccomp: building takes microseconds instead of a
 * millisecond per task. The call numbers are cut into stretches with one answer each, and those are
 * searched as a tree: installing takes the kernel longer the more instructions there are, and it runs
 * the program once per call number, to learn which calls never need it again.
 */
#include "sandbox/filter.h"
#include "sandbox/setup.h"
#include "util/err.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define COMPAT AUDIT_ARCH_I386
#define ROW(name, act, x64, i386, generic)                                                         \
	{                                                                                          \
		{name, x64, i386}, act                                                             \
	}
#elif defined(__aarch64__)
/* 32-bit ARM programs find no table and are killed. */
#define NATIVE AUDIT_ARCH_AARCH64
#define ROW(name, act, x64, i386, generic)                                                         \
	{                                                                                          \
		{name, generic, -1}, act                                                           \
	}
#else
#error "the seccomp table has no column for this architecture"
#endif

/* The highest call number that somebody has judged; from 424 on all architectures count alike. */
enum {
	LAST_KNOWN = 469
};

enum action {
	ALLOW,
	REFUSE,  /* EPERM */
	MISSING, /* ENOSYS: programs then use the older call */
	NESTING, /* EPERM, unless sandboxes inside are allowed */
	NESTING_MISSING,
	CLONE,
	UNSHARE,
	IOCTL,
	PERSONALITY,
	SOCKET,
	SOCKETPAIR,
	SOCKETCALL,
	OWNER,    /* ids in arguments 1 and 2 */
	OWNER_AT, /* 2 and 3 */
	N_ACTIONS
};

static const struct row {
	struct filter_row call;
	enum action act;
} rows[] = {
	/* new namespaces; clone3 keeps its flags in memory, where a filter cannot look */
	ROW("clone", CLONE, 56, 120, 220),
	ROW("clone3", NESTING_MISSING, 435, 435, 435),
	ROW("unshare", UNSHARE, 272, 310, 97),
	ROW("setns", NESTING, 308, 346, 268),
	/* mounts */
	ROW("mount", NESTING, 165, 21, 40),
	ROW("umount2", NESTING, 166, 52, 39),
	ROW("umount", NESTING, -1, 22, -1),
	ROW("pivot_root", NESTING, 155, 217, 41),
	ROW("open_tree", NESTING, 428, 428, 428),
	ROW("move_mount", NESTING, 429, 429, 429),
	ROW("fsopen", NESTING, 430, 430, 430),
	ROW("fsconfig", NESTING, 431, 431, 431),
	ROW("fsmount", NESTING, 432, 432, 432),
	ROW("fspick", NESTING, 433, 433, 433),
	ROW("mount_setattr", NESTING, 442, 442, 442),
	ROW("open_tree_attr", NESTING, 467, 467, 467),
	/* by handle, beside every path rule */
	ROW("open_by_handle_at", REFUSE, 304, 342, 265),
	/* keyrings know no namespace of ours */
	ROW("add_key", REFUSE, 248, 286, 217),
	ROW("request_key", REFUSE, 249, 287, 218),
	ROW("keyctl", REFUSE, 250, 288, 219),
	/* kernel surface */
	ROW("bpf", REFUSE, 321, 357, 280),
	ROW("perf_event_open", REFUSE, 298, 336, 241),
	ROW("userfaultfd", REFUSE, 323, 374, 282),
	ROW("io_uring_setup", MISSING, 425, 425, 425),
	ROW("io_uring_enter", MISSING, 426, 426, 426),
	ROW("io_uring_register", MISSING, 427, 427, 427),
	ROW("kexec_load", REFUSE, 246, 283, 104),
	ROW("kexec_file_load", REFUSE, 320, -1, 294),
	ROW("init_module", REFUSE, 175, 128, 105),
	ROW("finit_module", REFUSE, 313, 350, 273),
	ROW("delete_module", REFUSE, 176, 129, 106),
	ROW("create_module", REFUSE, 174, 127, -1),
	ROW("query_module", REFUSE, 178, 167, -1),
	ROW("get_kernel_syms", REFUSE, 177, 130, -1),
	ROW("nfsservctl", REFUSE, 180, 169, 42),
	ROW("_sysctl", REFUSE, 156, 149, -1),
	ROW("uselib", REFUSE, 134, 86, -1),
	ROW("lookup_dcookie", REFUSE, 212, 253, 18),
	ROW("iopl", REFUSE, 172, 110, -1),
	ROW("ioperm", REFUSE, 173, 101, -1),
	ROW("vm86", REFUSE, -1, 166, -1),
	ROW("vm86old", REFUSE, -1, 113, -1),
	ROW("acct", REFUSE, 163, 51, 89),
	ROW("swapon", REFUSE, 167, 87, 224),
	ROW("swapoff", REFUSE, 168, 115, 225),
	ROW("reboot", REFUSE, 169, 88, 142),
	ROW("syslog", REFUSE, 103, 103, 116),
	ROW("quotactl", REFUSE, 179, 131, 60),
	ROW("quotactl_fd", REFUSE, 443, 443, 443),
	/* judged by an argument */
	ROW("ioctl", IOCTL, 16, 54, 29),
	ROW("personality", PERSONALITY, 135, 136, 92),
	ROW("socket", SOCKET, 41, 359, 198),
	ROW("socketpair", SOCKETPAIR, 53, 360, 199),
	ROW("socketcall", SOCKETCALL, -1, 102, -1),
	/* all but those with ids of 16 bits */
	ROW("chown", OWNER, 92, -1, -1),
	ROW("lchown", OWNER, 94, -1, -1),
	ROW("fchown", OWNER, 93, -1, 55),
	ROW("fchownat", OWNER_AT, 260, 298, 54),
	ROW("chown32", OWNER, -1, 212, -1),
	ROW("lchown32", OWNER, -1, 198, -1),
	ROW("fchown32", OWNER, -1, 207, -1),
};

struct filter_row
filter_row(size_t i)
{
	return i < array_len(rows) ? rows[i].call : (struct filter_row){"", -1, -1};
}

/* Call numbers with the same answer, up to the start of the next stretch. */
struct stretch {
	uint32_t start;
	enum action act;
};

enum {
	STRETCHES_MAX = 2 * array_len(rows) + 2
};

/* A jump to what happens, which is written after the tree. */
struct leaf {
	size_t jump;
	bool when; /* of its two ways */
	enum action act;
};

/* The program under construction. */
struct program {
	struct sock_filter *code;
	size_t n;
	const struct filter_options *o;
	struct leaf leaves[STRETCHES_MAX];
	size_t nleaves;
};

static size_t
emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->n >= FILTER_MAX)
		bug("the seccomp program is too long");
	p->code[p->n] = (struct sock_filter){code, jt, jf, k};
	return p->n++;
}

static void
ret(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, 0, 0, action);
}

static void
ret_errno(struct program *p, int num)
{
	ret(p, SECCOMP_RET_ERRNO | (uint32_t)num);
}

static void
load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* The low half: what the kernel uses of a 32-bit argument, whatever stands in the high half. */
static void
load_arg(struct program *p, unsigned i)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half stands first");
	load(p, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t));
}

/* If A is k, this action. */
static void
on_equal(struct program *p, uint32_t k, uint32_t action)
{
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
	ret(p, action);
}

enum {
	CLONE_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
			   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
	NEW_TIME = 0x80, /* unshare only: in clone these bits are the exit signal */
	TYPE_MASK = 0xf, /* of a socket's type, beside SOCK_CLOEXEC and the like */
	CALL_SOCKET = 1, /* of socketcall */
	CALL_SOCKETPAIR = 8,
	/* 32-bit view, old version string, no address randomisation: harmless and in use */
	PERSONALITIES = 0x0008 | 0x0020000 | 0x0040000,
};

static const uint32_t eperm = SECCOMP_RET_ERRNO | EPERM;

static void
refuse_flags(struct program *p, uint32_t mask)
{
	load_arg(p, 0);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, mask);
	ret(p, eperm);
}

/* What the options leave of it. */
static enum action
settle(const struct filter_options *o, enum action act)
{
	switch (act) {
	case NESTING:
		return o->nested ? ALLOW : REFUSE;
	case NESTING_MISSING:
		return o->nested ? ALLOW : MISSING;
	case CLONE:
	case UNSHARE:
		return o->nested ? ALLOW : act;
	case OWNER:
	case OWNER_AT:
		return o->asks && !o->maps_all ? act : ALLOW;
	default:
		return act;
	}
}

static void
ask_for_id(struct program *p, unsigned arg, uint32_t own)
{
	load_arg(p, arg);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 3, 0, own);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, FILTER_NO_ID);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, FILTER_UNNAMED);
	ret(p, SECCOMP_RET_USER_NOTIF);
}

/* What happens to the call; A holds anything afterwards. */
static void
emit_action(struct program *p, enum action act)
{
	bool unix_sockets = p->o->unix_sockets;
	uint32_t no_socket = p->o->asks ? SECCOMP_RET_USER_NOTIF : eperm;
	unsigned first_id = act == OWNER ? 1 : 2;

	switch (act) {
	case REFUSE:
		ret(p, eperm);
		return;
	case MISSING:
		ret_errno(p, ENOSYS);
		return;
	case CLONE:
		refuse_flags(p, CLONE_NAMESPACES);
		break;
	case UNSHARE:
		refuse_flags(p, CLONE_NAMESPACES | NEW_TIME);
		break;
	case IOCTL:
		load_arg(p, 1);
		on_equal(p, TIOCSTI, eperm);
		on_equal(p, TIOCLINUX, eperm);
		break;
	case PERSONALITY:
		load_arg(p, 0);
		on_equal(p, 0xffffffff, SECCOMP_RET_ALLOW);
		emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, ~(uint32_t)PERSONALITIES);
		on_equal(p, 0, SECCOMP_RET_ALLOW);
		ret(p, eperm);
		return;
	case SOCKET:
		load_arg(p, 0);
		on_equal(p, AF_INET, SECCOMP_RET_ALLOW);
		on_equal(p, AF_INET6, SECCOMP_RET_ALLOW);
		on_equal(p, AF_UNIX, unix_sockets ? SECCOMP_RET_ALLOW : no_socket);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, AF_NETLINK);
		load_arg(p, 2);
		on_equal(p, 0 /* NETLINK_ROUTE */, SECCOMP_RET_ALLOW);
		ret_errno(p, EAFNOSUPPORT);
		return;
	case SOCKETPAIR:
		load_arg(p, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_UNIX);
		ret_errno(p, EAFNOSUPPORT);
		/* An end of a datagram pair can send to any other socket by its path. */
		if (!unix_sockets) {
			load_arg(p, 1);
			emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, TYPE_MASK);
			on_equal(p, SOCK_DGRAM, no_socket);
			on_equal(p, SOCK_RAW, no_socket);
		}
		break;
	case SOCKETCALL:
		/* The family stands in memory. 32-bit programs have the calls of their own as well. */
		load_arg(p, 0);
		on_equal(p, CALL_SOCKET, eperm);
		on_equal(p, CALL_SOCKETPAIR, eperm);
		break;
	case OWNER:
	case OWNER_AT:
		ask_for_id(p, first_id, p->o->uid);
		ask_for_id(p, first_id + 1, p->o->gid);
		break;
	default:
		break;
	}
	ret(p, SECCOMP_RET_ALLOW);
}

static int
compare_starts(const void *a, const void *b)
{
	uint32_t x = ((const struct stretch *)a)->start, y = ((const struct stretch *)b)->start;

	return (x > y) - (x < y);
}

static void
add_stretch(struct stretch *v, size_t *n, uint32_t start, enum action act)
{
	if (*n && v[*n - 1].start == start)
		v[*n - 1].act = act; /* no gap between two rows */
	else if (!*n || v[*n - 1].act != act)
		v[(*n)++] = (struct stretch){start, act};
}

static size_t
cut(const struct filter_options *o, bool compat, struct stretch *ret)
{
	struct stretch v[array_len(rows)];
	size_t n = 0, nret = 0;

	for (size_t i = 0; i < array_len(rows); i++) {
		int nr = compat ? rows[i].call.compat : rows[i].call.native;

		if (nr >= 0)
			v[n++] = (struct stretch){(uint32_t)nr, settle(o, rows[i].act)};
	}
	qsort(v, n, sizeof(*v), compare_starts);
	add_stretch(ret, &nret, 0, ALLOW);
	for (size_t i = 0; i < n; i++) {
		add_stretch(ret, &nret, v[i].start, v[i].act);
		if (i + 1 == n || v[i + 1].start > v[i].start + 1)
			add_stretch(ret, &nret, v[i].start + 1, ALLOW);
	}
	/* Newer calls, and with bit 30 set those of x32. */
	add_stretch(ret, &nret, LAST_KNOWN + 1, MISSING);
	return nret;
}

static void
point(struct program *p, size_t jump, bool when)
{
	size_t far = p->n - jump - 1;

	if (far > UINT8_MAX)
		bug("the seccomp program has a jump that is too far");
	*(when ? &p->code[jump].jt : &p->code[jump].jf) = (uint8_t)far;
}

/* A holds the call number. */
static void
emit_tree(struct program *p, const struct stretch *v, size_t n)
{
	size_t half = n / 2;
	size_t jump = emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 0, v[half].start);

	for (int when = 0; when < 2; when++) {
		const struct stretch *side = when ? v + half : v;
		size_t nside = when ? n - half : half;

		if (nside == 1) {
			p->leaves[p->nleaves++] = (struct leaf){jump, when, side->act};
			continue;
		}
		point(p, jump, when);
		emit_tree(p, side, nside);
	}
}

static void
emit_table(struct program *p, bool compat)
{
	struct stretch v[STRETCHES_MAX];
	size_t n = cut(p->o, compat, v);

	load(p, offsetof(struct seccomp_data, nr));
	p->nleaves = 0;
	emit_tree(p, v, n);
	for (enum action act = 0; act < N_ACTIONS; act++) {
		bool used = false;

		for (size_t i = 0; i < p->nleaves; i++) {
			if (p->leaves[i].act != act)
				continue;
			point(p, p->leaves[i].jump, p->leaves[i].when);
			used = true;
		}
		if (used)
			emit_action(p, act);
	}
}

size_t
filter_build(const struct filter_options *o, struct sock_filter *code)
{
	struct program p = {.code = code, .o = o};
	size_t jump;

	load(&p, offsetof(struct seccomp_data, arch));
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE);
	jump = emit(&p, BPF_JMP | BPF_JA, 0, 0, 0);
	emit_table(&p, false);
	p.code[jump].k = (uint32_t)(p.n - jump - 1);
#ifdef COMPAT
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, COMPAT);
	ret(&p, SECCOMP_RET_KILL_PROCESS);
	emit_table(&p, true);
#else
	ret(&p, SECCOMP_RET_KILL_PROCESS);
#endif
	return p.n;
}

static int
install(const struct filter_options *o)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog prog = {(unsigned short)filter_build(o, code), code};

	/* Once the listener has taken a question only a signal that kills ends the call: without that every
	 * SIGCHLD would have it asked anew. */
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		o->asks ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
			: 0,
		&prog);
}

int
filter_install(const struct filter_options *o)
{
	struct filter_options silent = *o;
	int fd = install(o);

	if (o->asks && fd >= 0)
		return fd;
	silent.asks = false;
	if (fd && install(&silent))
		setup_die(errno, "the kernel needs CONFIG_SECCOMP_FILTER",
			"cannot install the filter of system calls");
	return -1;
}

struct filter_question
filter_question(const struct seccomp_data *d)
{
	struct filter_question q = {false, FILTER_NO_ID, FILTER_NO_ID};

	for (size_t i = 0; i < array_len(rows); i++) {
		int nr = d->arch == NATIVE ? rows[i].call.native : rows[i].call.compat;
		size_t first = rows[i].act == OWNER ? 1 : 2;

		if (nr != d->nr || (rows[i].act != OWNER && rows[i].act != OWNER_AT))
			continue;
		q.is_owner = true;
		q.uid = (uint32_t)d->args[first];
		q.gid = (uint32_t)d->args[first + 1];
	}
	return q;
}

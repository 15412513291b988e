/* SPDX-License-Identifier: MIT */
/*
 * The policy and wall layers under a real overlay. A child makes the namespaces and mounts, hands
 * out its FUSE device and wall, and does what a task would do; this process serves it and then
 * looks at what was told and at what was written.
 */
#include "sandbox/layer.h"
#include "tests/unit/tree.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct tree host, scratch, wall_parent;
static int to_parent; /* the child's end of the channel */

/* One message is "s reason" (skip), "+ name" or "- name" (a check), with an fd for "f", "w". */
static void
send_message(const char *text, int fd)
{
	struct iovec io = {(void *)(uintptr_t)text, strlen(text) + 1};
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c;
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

	memset(&c, 0, sizeof(c));
	if (fd >= 0) {
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), &fd, sizeof(int));
	}
	if (sendmsg(to_parent, &m, 0) < 0)
		_exit(1);
}

static attr_noreturn void
give_up(const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "s%s: %s", what, strerror(errno));
	send_message(text, -1);
	_exit(0);
}

attr_printf(2, 3) static void check(bool good, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	text[0] = good ? '+' : '-';
	va_start(ap, fmt);
	vsnprintf(text + 1, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	send_message(text, -1);
}

static void
write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		give_up(path);
	close(fd);
}

static void
make_view(void)
{
	unsigned uid = getuid(), gid = getgid();
	char text[512], at[128];
	int tmpfs, fuse;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		give_up("user namespaces");
	write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	write_text("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	write_text("/proc/self/gid_map", text);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		give_up("private mounts");
	if (mount("tmpfs", wall_parent.path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,nr_inodes=0"))
		give_up("tmpfs");
	snprintf(at, sizeof(at), "%s/f", wall_parent.path);
	mkdir(at, 0755);
	snprintf(at, sizeof(at), "%s/w", wall_parent.path);
	mkdir(at, 0755);
	tmpfs = (int)syscall(SYS_open_tree, AT_FDCWD, wall_parent.path, 1 | O_CLOEXEC);
	if (tmpfs < 0)
		give_up("open_tree");
	send_message("w", tmpfs);
	close(tmpfs);

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		give_up("/dev/fuse");
	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other",
		fuse, uid, gid);
	snprintf(at, sizeof(at), "%s/f", wall_parent.path);
	if (mount("policy", at, "fuse", MS_NOSUID | MS_NODEV | MS_RDONLY, text))
		give_up("fuse");
	send_message("f", fuse);
	close(fuse);

	snprintf(text, sizeof(text),
		"lowerdir=%s/f:%s/w:%s,upperdir=%s/upper,workdir=%s/work,"
		"userxattr,volatile,index=off,uuid=off",
		wall_parent.path, wall_parent.path, host.path, scratch.path, scratch.path);
	if (mount("view", host.path, "overlay", MS_NOSUID | MS_NODEV, text))
		give_up("overlay");
	if (chdir(host.path))
		give_up("chdir");
}

static bool
can_open(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Sorted names of a stream, in one string. */
static const char *
read_names(DIR *d)
{
	static struct strbuf out = STRBUF_INIT;
	struct strvec v = STRVEC_INIT;
	struct dirent *t;

	strbuf_reset(&out);
	while ((t = readdir(d)))
		if (t->d_name[0] != '.')
			strvec_push(&v, t->d_name);
	strvec_sort(&v);
	for (size_t i = 0; i < v.n; i++)
		strbuf_addf(&out, "%s%s", i ? " " : "", v.v[i]);
	strvec_release(&v);
	return out.buf;
}

static void
check_listing(const char *path, const char *want)
{
	DIR *d = opendir(path);
	const char *got = d ? read_names(d) : "(none)";

	check(!strcmp(got, want), "ls %s: %s", path, got);
	if (d)
		closedir(d);
}

/* Listings and accesses mixed in every way that once confused a rule (findings 3). */
static void
do_listing_scenarios(void)
{
	DIR *d = opendir("list");
	char small[64], name[32];
	int fd, k = 0;

	read_names(d);
	check(!can_open(dirfd(d), "h0"), "access with the listed handle open");
	rewinddir(d);
	read_names(d);
	if (!fork())
		_exit(can_open(dirfd(d), "h1"));
	wait(NULL);
	closedir(d);

	fd = open("list", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (syscall(SYS_getdents64, fd, small, sizeof(small)) > 0) {
		if (k++ == 0)
			check(!can_open(fd, "h2"), "access between two reads of a listing");
	}
	close(fd);
	for (int i = 3; i < 40; i++) {
		d = opendir("list");
		read_names(d);
		snprintf(name, sizeof(name), "h%d", i);
		if (can_open(dirfd(d), name))
			check(false, "%s opens", name);
		closedir(d);
	}
	check_listing("list", "v0 v1");
}

static void
do_task(void)
{
	struct stat st;
	int fd;

	check(can_open(AT_FDCWD, "src/a.c"), "a granted file opens");
	check(!can_open(AT_FDCWD, "src/.env") && errno == ENOENT, "a hidden one is not there");
	check(!can_open(AT_FDCWD, "src/.env"), "nor when asked again");
	check(stat("nothing", &st) && errno == ENOENT, "a missing name is missing");
	check_listing(".", "lib list out src");
	check_listing("src", "a.c link.c sub to.c");
	check(can_open(AT_FDCWD, "src/to.c"), "a link to what is granted");
	check(!can_open(AT_FDCWD, "src/link.c") && errno == ENOENT, "a link to what is not");
	check(!stat("out", &st) && (st.st_mode & 07777) == 0750, "a directory has its mode");
	do_listing_scenarios();

	check(stat("out/dist", &st) && errno == ENOENT, "old outputs are not there");
	check(!mkdir("out/dist", 0755), "and can be made");
	fd = open("out/dist/new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	check(fd >= 0, "with something in them");
	close(fd);
	check(!rename("out/dist", "out/d2") && !rename("out/d2", "out/dist"), "and renamed");
	check(!mkdir("stray", 0755) && !mkdir("stray/deep", 0755), "a name nobody granted");
	check(!unlink("src/sub/b.c") && !rmdir("src/sub"), "a directory of hidden files goes");
}

static struct strbuf told = STRBUF_INIT;

static void
on_denied(void *ctx, const struct layer_denial *d)
{
	(void)ctx;
	strbuf_addf(&told, "%s%s\n", d->path, d->op == DENIAL_READ ? "" : "?");
}

/* The next message; its fd or -1. False at the end of file. */
static bool
receive(int sock, char *text, size_t n, int *ret_fd)
{
	struct iovec io = {text, n};
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct msghdr m = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	ssize_t got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (got <= 0)
		return false;
	text[got - 1] = '\0';
	if (CMSG_FIRSTHDR(&m))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return true;
}

static void
make_host(void)
{
	char name[32];

	tree_make(&host);
	tree_make(&scratch);
	tree_make(&wall_parent);
	tree_add(&scratch, "upper/");
	tree_add(&scratch, "work/");
	tree_add(&host, "src/a.c");
	tree_add(&host, "src/.env");
	tree_add(&host, "src/link.c>../lib/other.c");
	tree_add(&host, "src/to.c>../lib/real.c");
	tree_add(&host, "src/sub/b.c");
	tree_add(&host, "src/sub/hidden");
	tree_add(&host, "lib/real.c");
	tree_add(&host, "lib/other.c");
	tree_add(&host, "out/dist/old");
	tree_add(&host, "out/hidden");
	tree_add(&host, "secret");
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "list/%c%d", i < 2 ? 'v' : 'x', i);
		tree_add(&host, name);
		snprintf(name, sizeof(name), "list/h%d", i);
		tree_add(&host, name);
	}
	if (fchmodat(host.fd, "out", 0750, 0))
		tree_die("chmod");
	spec_add_rule(&host.spec, SPEC_READ, true, "src/**/*.c");
	spec_add_rule(&host.spec, SPEC_READ, false, "lib/real.c");
	spec_add_rule(&host.spec, SPEC_READ, true, "list/v*");
	spec_add_rule(&host.spec, SPEC_WRITE, false, "out/dist");
	spec_add_rule(&host.spec, SPEC_OUTPUT, false, "out/dist");
	tree_compile(&host);
}

/* Serves until the child has ended. The reason to skip, or NULL. */
static const char *
serve(int sock)
{
	static char text[512];
	struct err e = ERR_INIT;
	struct wall *wall = NULL;
	struct layer *layer = NULL;
	const char *reason = NULL;
	int tmpfs = -1, fuse = -1, fd;

	for (;;) {
		struct pollfd p[2] = {{sock, POLLIN, 0}, {fuse, POLLIN, 0}};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && layer_serve(layer, fuse))
			fd_close(&fuse);
		if (!p[0].revents)
			continue;
		if (!receive(sock, text, sizeof(text), &fd))
			break;
		if (text[0] == 'w') {
			tmpfs = fd;
			wall = wall_new(tmpfs, "w", host.fd, host.rules, &e);
			if (!ok(wall != NULL, "a wall in the child's tmpfs"))
				diag("%s", e.text);
		} else if (text[0] == 'f') {
			fuse = fd;
			fd_set_nonblock(fuse);
			layer = layer_new(&(struct layer_options){
				.rules = host.rules,
				.hostfd = host.fd,
				.wall = wall,
				.owner = {getuid(), getgid(), false, (uid_t)-1, (gid_t)-1},
				.denied = on_denied,
			});
		} else if (text[0] == 's') {
			reason = text + 1;
			break;
		} else {
			ok(text[0] == '+', "%s", text + 1);
		}
	}
	if (layer && !reason)
		ok(layer_denials(layer) == 42, "denials counted: %llu",
			(unsigned long long)layer_denials(layer));
	fd_close(&fuse);
	layer_free(layer);
	wall_free(wall);
	fd_close(&tmpfs);
	return reason;
}

static void
check_results(void)
{
	struct stat st;

	ok(!strncmp(told.buf, "src/.env\nnothing?\n", 18), "the first denials");
	ok(strstr(told.buf, "lib/other.c\n") != NULL, "a denial under the name of a link's target");
	ok(strstr(told.buf, "list/h39\n") != NULL, "the last of the listing scenarios");
	ok(!strstr(told.buf, "list/x"), "no listing denies anything");
	ok(!strstr(told.buf, "secret") && !strstr(told.buf, "out/dist"), "nor is what is silent");
	ok(!fstatat(scratch.fd, "upper/out", &st, 0) && (st.st_mode & 07777) == 0750,
		"copied up with the host's mode");
	ok(!fstatat(scratch.fd, "upper/stray/deep", &st, 0), "a stray write is in the upper layer");
	ok(!fstatat(host.fd, "src/sub/hidden", &st, 0), "the host has what it had");
	ok(!fstatat(host.fd, "out/dist/old", &st, 0), "its old outputs too");
}

int
main(void)
{
	const char *must = getenv("VX_SANDBOX_MUST_WORK");
	const char *reason;
	int sv[2];
	pid_t pid;

	umask(022);
	make_host();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		tree_die("socketpair");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sv[0]);
		to_parent = sv[1];
		make_view();
		do_task();
		_exit(0);
	}
	close(sv[1]);
	reason = serve(sv[0]);
	close(sv[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!reason)
		check_results();
	else if (must && !strcmp(must, "1"))
		ok(false, "layers under an overlay: %s", reason);
	else
		skip("layers under an overlay", reason);
	strbuf_release(&told);
	/* overlayfs leaves it closed to everybody */
	if (fchmodat(scratch.fd, "work/work", 0700, 0) && errno != ENOENT)
		tree_die("work");
	tree_remove(&wall_parent);
	tree_remove(&scratch);
	tree_remove(&host);
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests as no kernel sends them, and what a host that changes can make of those that it sends: each is answered or
 * left, nothing is read but files, and none in the place of another. What whole requests do
 * tests/sandbox/mirror.sh asks.
 */
#include "sandbox/fuse.h"
#include "sandbox/mirror.h"
#include "tests/unit/rubbish.h"
#include "tests/unit/tree.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <sys/socket.h>

enum {
	NFILES = 200, /* more than are held open */
};

static int kernel = -1, server = -1;
static struct tree t;
static struct mirror *m;
static char answer[256 << 10];
static size_t nanswer;

static int
handle(void *ctx, const struct fuse_request *r)
{
	return mirror_request(ctx, r);
}

/* The error of the answer, whose rest is then in answer. */
static int
ask(uint32_t opcode, uint64_t node, const void *arg, size_t n)
{
	static char in[8192];
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + n), .opcode = opcode, .unique = 7, .nodeid = node};
	struct fuse_out_header out = {0};
	ssize_t got;

	memcpy(in, &h, sizeof(h));
	if (n)
		memcpy(in + sizeof(h), arg, n);
	if (send(kernel, in, h.len, 0) != (ssize_t)h.len || fuse_serve(server, handle, m))
		tree_die("serve");
	got = recv(kernel, answer, sizeof(answer), MSG_DONTWAIT);
	if (got < (ssize_t)sizeof(out))
		tree_die("an answer");
	memcpy(&out, answer, sizeof(out));
	if ((size_t)got != out.len || out.unique != 7)
		tree_die("the answer's length");
	nanswer = (size_t)got - sizeof(out);
	memmove(answer, answer + sizeof(out), nanswer);
	return out.error;
}

static struct fuse_entry_out
look_up(uint64_t dir, const char *name)
{
	struct fuse_entry_out out = {0};
	int error = ask(FUSE_LOOKUP, dir, name, strlen(name) + 1);

	if (error)
		out.generation = (uint64_t)-error;
	else
		memcpy(&out, answer, sizeof(out));
	return out;
}

static int
read_from(uint64_t node, uint64_t offset, uint32_t size)
{
	struct fuse_read_in in = {.offset = offset, .size = size};

	return ask(FUSE_READ, node, &in, sizeof(in));
}

static uint64_t
root(void)
{
	return MIRROR_WORKSPACE | FUSE_ROOT_ID;
}

static void
test_rubbish(void)
{
	static const uint64_t nodes[] = {
		0, MIRROR_WORKSPACE | FUSE_ROOT_ID, MIRROR_WORKSPACE | 3, ~0ULL};

	rubbish_ask(ask, nodes, array_len(nodes));
}

static void
test_names(void)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "/a", "a/"};
	struct fuse_entry_out out;
	size_t wrong = 0;

	for (size_t i = 0; i < array_len(bad); i++)
		wrong += look_up(root(), bad[i]).generation != EINVAL;
	wrong += ask(FUSE_LOOKUP, root(), "dir", 3) != -EINVAL; /* no NUL */
	ok_int((long long)wrong, 0, "names that are none");
	out = look_up(root(), "dir");
	ok((out.nodeid & MIRROR_TAGS) == MIRROR_WORKSPACE && S_ISDIR(out.attr.mode), "a directory");
	ok(out.entry_valid == FUSE_FOREVER_SECONDS && out.attr_valid == FUSE_FOREVER_SECONDS,
		"for ever");
	out = look_up(out.nodeid, "f1");
	ok(S_ISREG(out.attr.mode) && out.attr.size == 6, "a file in it");
	out = look_up(root(), "none");
	ok(!out.generation && !out.nodeid && out.entry_valid == FUSE_FOREVER_SECONDS,
		"a name that is not there, for ever");
	ok_int((long long)look_up(MIRROR_WORKSPACE | 99, "dir").generation, ESTALE,
		"in a node that there is not");
	ok_int((long long)look_up(root(), "scratch").generation, ELOOP, "the scratch");
}

static void
test_content(void)
{
	uint64_t dir = look_up(root(), "dir").nodeid, link = look_up(root(), "link").nodeid;
	uint64_t fifo = look_up(root(), "fifo").nodeid;
	size_t wrong = 0;
	int next;

	/* Twice: the second time those of the first round are closed again. */
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < NFILES; i++) {
			char name[16];

			snprintf(name, sizeof(name), "f%d", i);
			wrong += read_from(look_up(dir, name).nodeid, 0, 4096) ||
				 nanswer != strlen(name) + 4 || memcmp(answer, "dir/", 4) != 0 ||
				 memcmp(answer + 4, name, strlen(name)) != 0;
		}
	ok(!wrong, "%d files are read in turns", NFILES);
	next = dup(0);
	close(next);
	ok(next < 100, "and few of them are open");
	ok_int(read_from(look_up(dir, "f1").nodeid, 5, 1), 0, "from the middle");
	ok(nanswer == 1 && *answer == '1', "what is there");
	ok(!read_from(look_up(dir, "f1").nodeid, 5000, 4096) && !nanswer, "nothing from behind");
	ok(!read_from(look_up(dir, "f1").nodeid, 0, ~0U) && nanswer == 6, "more than there can be");
	ok_int(read_from(look_up(dir, "f1").nodeid, ~0ULL, 1), -EINVAL, "from nowhere");
	ok_int(read_from(dir, 0, 4096), -EINVAL, "a directory is not read");
	ok_int(read_from(link, 0, 4096), -EINVAL, "nor a link");
	ok_int(read_from(fifo, 0, 4096), -EINVAL, "nor a fifo");
	ok(!ask(FUSE_READLINK, link, NULL, 0) && nanswer == 6 && !memcmp(answer, "target", 6),
		"a link is read as one");
}

/* All names of a directory, by requests of that size. */
static size_t
list(uint64_t dir, uint32_t size, struct strbuf *ret)
{
	struct fuse_read_in in = {.size = size};
	size_t n = 0;

	while (!ask(FUSE_READDIR, dir, &in, sizeof(in)) && nanswer)
		for (size_t at = 0; at < nanswer; n++) {
			struct fuse_dirent d;

			memcpy(&d, answer + at, FUSE_NAME_OFFSET);
			strbuf_addf(ret, " %.*s:%u", (int)d.namelen, answer + at + FUSE_NAME_OFFSET,
				d.type);
			in.offset = d.off;
			at += FUSE_DIRENT_SIZE(&d);
		}
	return n;
}

static void
test_listing(void)
{
	uint64_t dir = look_up(root(), "dir").nodeid;
	struct fuse_read_in none = {.size = 16};
	struct strbuf whole = STRBUF_INIT, parts = STRBUF_INIT, kinds = STRBUF_INIT;
	uint64_t other = look_up(root(), "kinds").nodeid;

	ok_int((long long)list(dir, 128 << 10, &whole), NFILES + 2, "a listing");
	ok_int((long long)list(dir, 512, &parts), NFILES + 2, "the same in parts");
	ok_str(parts.buf, whole.buf, "in the same order");
	list(other, 4096, &kinds);
	ok(strstr(kinds.buf, " d:4") && strstr(kinds.buf, " l:10") && strstr(kinds.buf, " p:1") &&
			strstr(kinds.buf, " f:8") && strstr(kinds.buf, " .:4") &&
			strstr(kinds.buf, " ..:4"),
		"with what they are");
	ok_int(ask(FUSE_READDIR, dir, &none, sizeof(none)), -EINVAL, "no room for a name");
	ok_int(ask(FUSE_READDIR, look_up(dir, "f1").nodeid, &none, sizeof(none)), -EINVAL,
		"a file is not listed");
	strbuf_release(&whole);
	strbuf_release(&parts);
	strbuf_release(&kinds);
}

/* In the place of what was looked up stands something else. */
static void
test_replaced(void)
{
	static const char *const names[] = {"r/file", "r/fifo", "r/link"};
	uint64_t dir = look_up(root(), "r").nodeid, was[3], held, held_dir;

	for (int i = 0; i < 3; i++)
		was[i] = look_up(dir, names[i] + 2).nodeid;
	held = look_up(dir, "held").nodeid;
	held_dir = look_up(root(), "gone").nodeid;
	ok_int(read_from(held, 0, 4096), 0, "a file that is read");
	/* Made before the others go: else they could get their numbers. */
	tree_add(&t, "new/file");
	tree_add(&t, "new/held");
	if (mkfifoat(t.fd, "new/fifo", 0600) || symlinkat("/etc/passwd", t.fd, "new/link") ||
		renameat2(t.fd, "new", t.fd, "r", RENAME_EXCHANGE) ||
		unlinkat(t.fd, "gone", AT_REMOVEDIR) || symlinkat("/etc", t.fd, "gone"))
		tree_die("r");
	for (int i = 0; i < 3; i++) {
		ok(read_from(was[i], 0, 4096) == -ESTALE, "%s is not read in its place", names[i]);
		ok_int(ask(FUSE_GETATTR, was[i], NULL, 0), -ESTALE, "nor shown");
	}
	ok(!read_from(held, 0, 4096) && nanswer == 6 && !memcmp(answer, "r/held", 6),
		"one that is open is read as it was");
	ok_int((long long)look_up(held_dir, "passwd").nodeid, 0, "a link in the way leads nowhere");
	ok(look_up(dir, "file").nodeid != was[0], "who looks again gets a new one");
	ok_int(read_from(look_up(dir, "file").nodeid, 0, 4096), 0, "which is read");
}

/* A file system gives the number of one that is removed to the next. */
static void
test_numbers(void)
{
	uint64_t dir = look_up(root(), "dir").nodeid, was;
	struct stat a, b = {0};
	struct statx born;

	if (fstatat(t.fd, "dir/f9", &a, 0) || statx(t.fd, "dir/f9", 0, STATX_BTIME, &born) ||
		!(born.stx_mask & STATX_BTIME)) {
		skip("one with the number of another", "no time of birth here");
		return;
	}
	was = look_up(dir, "f9").nodeid;
	if (unlinkat(t.fd, "dir/f9", 0))
		tree_die("f9");
	for (int i = 0; i < 50 && b.st_ino != a.st_ino; i++) {
		if (i && renameat(t.fd, "dir/f9", t.fd, "dir/f8"))
			tree_die("f8");
		tree_add(&t, "dir/f9");
		if (fstatat(t.fd, "dir/f9", &b, 0))
			tree_die("f9");
	}
	if (b.st_ino != a.st_ino) {
		skip("one with the number of another", "numbers do not come back here");
		return;
	}
	ok_int(read_from(was, 0, 4096), -ESTALE, "one with the number of another is not that");
	ok(look_up(dir, "f9").nodeid != was, "and has another node");
	ok_int(read_from(look_up(dir, "f9").nodeid, 0, 4096), 0, "which is read");
}

static void
test_forgotten(void)
{
	uint64_t dir = look_up(root(), "dir").nodeid, f = look_up(dir, "f7").nodeid;

	mirror_forget(m, f, 1000);
	ok_int(read_from(f, 0, 4096), -ESTALE, "what was forgotten is not known");
	mirror_forget(m, MIRROR_WORKSPACE | 12345, 1);
	mirror_forget(m, root(), 1000);
	ok(look_up(dir, "f7").nodeid != f, "and has another number");
}

int
main(void)
{
	struct owner owner = {geteuid(), getegid(), false, (uid_t)-1, (gid_t)-1};
	struct stat scratch;
	int pair[2];

	tree_make(&t);
	for (int i = 0; i < NFILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "dir/f%d", i);
		tree_add(&t, name);
	}
	tree_add(&t, "link>target");
	tree_add(&t, "scratch/");
	tree_add(&t, "gone/");
	tree_add(&t, "kinds/d/");
	tree_add(&t, "kinds/l>x");
	tree_add(&t, "kinds/f");
	tree_add(&t, "r/file");
	tree_add(&t, "r/fifo");
	tree_add(&t, "r/link");
	tree_add(&t, "r/held");
	if (mkfifoat(t.fd, "fifo", 0600) || mkfifoat(t.fd, "kinds/p", 0600) ||
		fstatat(t.fd, "scratch", &scratch, 0))
		tree_die("fifo");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		tree_die("socketpair");
	kernel = pair[0];
	server = pair[1];
	fd_set_nonblock(server);
	m = mirror_new(t.fd, MIRROR_WORKSPACE, &owner, &scratch);
	test_rubbish();
	test_names();
	test_content();
	test_listing();
	test_replaced();
	test_numbers();
	test_forgotten();
	mirror_free(m);
	close(kernel);
	close(server);
	tree_remove(&t);
	return tap_done();
}

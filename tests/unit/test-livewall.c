/* SPDX-License-Identifier: MIT */
/*
 * Requests as no kernel sends them: short, long, of unknown nodes and handles, with names that are none. Each is
 * answered or left, nothing is read that was not sent, and nothing outside of the grants changes. What
 * whole requests do tests/sandbox/live.sh asks.
 */
#include "sandbox/livewall.h"
#include "tests/unit/rubbish.h"
#include "tests/unit/tree.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include <linux/fuse.h>
#include <sys/socket.h>

static int kernel = -1, server = -1;
static struct livewall *w;

static void
denied(void *ctx attr_unused, const struct layer_denial *d attr_unused)
{
}

/* The error of the answer; 1: there was none. */
static int
ask(uint32_t opcode, uint64_t node, const void *arg, size_t n)
{
	static char in[8192], out[256 << 10];
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + n), .opcode = opcode, .unique = 7, .nodeid = node};
	struct fuse_out_header answer = {0};
	ssize_t got;

	memcpy(in, &h, sizeof(h));
	if (n)
		memcpy(in + sizeof(h), arg, n);
	if (send(kernel, in, h.len, 0) != (ssize_t)h.len || livewall_serve(w, server))
		tree_die("serve");
	got = recv(kernel, out, sizeof(out), MSG_DONTWAIT);
	if (got < 0)
		return 1;
	memcpy(&answer, out, sizeof(answer));
	if ((size_t)got != answer.len || answer.unique != 7)
		tree_die("the answer's length");
	return answer.error;
}

static void
test_rubbish(void)
{
	static const uint64_t nodes[] = {0, FUSE_ROOT_ID, 3, ~0ULL};

	rubbish_ask(ask, nodes, array_len(nodes));
}

static void
test_names(void)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "/a", "a/"};
	size_t wrong = 0;

	for (size_t i = 0; i < array_len(bad); i++)
		wrong += ask(FUSE_LOOKUP, FUSE_ROOT_ID, bad[i], strlen(bad[i]) + 1) != -EINVAL;
	wrong += ask(FUSE_LOOKUP, FUSE_ROOT_ID, "ro", 2) != -EINVAL; /* no NUL */
	ok_int((long long)wrong, 0, "names that are none");
	ok_int(ask(FUSE_LOOKUP, FUSE_ROOT_ID, "ro", 3), 0, "one that is");
	ok_int(ask(FUSE_LOOKUP, FUSE_ROOT_ID, "hidden", 7), -ENOENT, "one that is hidden");
	ok_int(ask(FUSE_UNLINK, FUSE_ROOT_ID, "ro", 3), -EROFS, "one that may not go");
	ok_int(ask(FUSE_LOOKUP, 99, "ro", 3), -ESTALE, "in a node that there is not");
}

int
main(void)
{
	struct tree t;
	int pair[2];
	struct stat st;
	cleanup_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	tree_make(&t);
	tree_add(&t, "ro");
	tree_add(&t, "hidden");
	tree_add(&t, "w/f");
	spec_add_rule(&t.spec, SPEC_READ, false, "ro");
	spec_add_rule(&t.spec, SPEC_WRITE, false, "w");
	tree_compile(&t);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		tree_die("socketpair");
	kernel = pair[0];
	server = pair[1];
	fd_set_nonblock(server);
	w = livewall_new(&(struct livewall_options){
		.rules = {t.rules, "", t.fd, t.spec.git_config},
		.proc = proc,
		.owner = {geteuid(), getegid(), false, (uid_t)-1, (gid_t)-1},
		.denied = denied,
	});
	test_rubbish();
	test_names();
	ok(!fs_stat_beneath(t.fd, "ro", &st) && !fs_stat_beneath(t.fd, "hidden", &st),
		"what is not granted is as it was");
	livewall_free(w);
	close(kernel);
	close(server);
	tree_remove(&t);
	return tap_done();
}

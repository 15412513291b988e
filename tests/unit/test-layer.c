/* SPDX-License-Identifier: MIT */
#include "sandbox/layer.h"
#include "sandbox/mirror.h"
#include "sandbox/pure.h"
#include "sandbox/seen.h"
#include "tests/unit/tree.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A layer over a tree, and a socket pair in the place of /dev/fuse: one message is one request. */
struct bench {
	struct tree host, wall_dir;
	struct wall *wall;
	struct layer *layer;
	const char *home;
	int homefd;
	struct strvec stores;
	int kernel; /* our end */
	int server;
	uint64_t unique;
	struct strbuf told; /* "path" or "path?" for a probe, blank between */
	size_t ntold;
	uint32_t last_pid;
};

static void
on_denied(void *ctx, const struct layer_denial *d)
{
	struct bench *b = ctx;

	b->ntold++;
	b->last_pid = d->pid;
	if (b->told.len < 4096)
		strbuf_addf(&b->told, "%s%s%s", b->told.len ? " " : "", d->path,
			d->op == DENIAL_READ ? "" : "?");
}

static void
bench_start_as(struct bench *b, struct owner owner)
{
	struct err e = ERR_INIT;
	int sv[2];

	tree_compile(&b->host);
	tree_make(&b->wall_dir);
	b->wall = wall_new(b->wall_dir.fd, "w", b->host.fd, b->host.rules, &e);
	if (!b->wall)
		tree_die(e.text);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv))
		tree_die("socketpair");
	b->kernel = sv[0];
	b->server = sv[1];
	strbuf_init(&b->told);
	b->layer = layer_new(&(struct layer_options){
		.home = b->home,
		.homefd = b->homefd,
		.stores = &b->stores,
		.rules = b->host.rules,
		.hostfd = b->host.fd,
		.wall = b->wall,
		.owner = owner,
		.denied = on_denied,
		.ctx = b,
	});
}

static void
bench_start(struct bench *b)
{
	bench_start_as(b, (struct owner){getuid(), getgid(), false, (uid_t)-1, (gid_t)-1});
}

static void
bench_end(struct bench *b)
{
	layer_free(b->layer);
	wall_free(b->wall);
	close(b->kernel);
	close(b->server);
	strbuf_release(&b->told);
	strvec_release(&b->stores);
	tree_remove(&b->host);
	tree_remove(&b->wall_dir);
}

static char reply_buf[4096];

/* Sends one request and serves it. The error of the answer, or -1000 when there is none; the rest
 * of the answer is in *ret, which may be NULL. */
static int
ask(struct bench *b, uint32_t opcode, uint64_t node, const void *arg, size_t n, const void **ret)
{
	char req[4096];
	struct fuse_in_header h = {
		.len = (uint32_t)(sizeof(h) + n),
		.opcode = opcode,
		.unique = ++b->unique,
		.nodeid = node,
		.pid = 42,
	};
	struct fuse_out_header out;
	ssize_t got;

	memcpy(req, &h, sizeof(h));
	memcpy(req + sizeof(h), arg, n);
	if (send(b->kernel, req, sizeof(h) + n, 0) < 0)
		tree_die("send");
	if (layer_serve(b->layer, b->server))
		tree_die("layer_serve");
	got = recv(b->kernel, reply_buf, sizeof(reply_buf), 0);
	if (got < 0)
		return -1000;
	memcpy(&out, reply_buf, sizeof(out));
	if (out.unique != h.unique || out.len != (size_t)got)
		ok(false, "an answer to request %llu of %u bytes, got %zd",
			(unsigned long long)out.unique, out.len, got);
	if (ret)
		*ret = reply_buf + sizeof(out);
	return -out.error;
}

static struct fuse_entry_out
look_up(struct bench *b, uint64_t dir, const char *name)
{
	struct fuse_entry_out out = {0};
	const void *p;
	int error = ask(b, FUSE_LOOKUP, dir, name, strlen(name) + 1, &p);

	if (error)
		out.generation = (uint64_t)error;
	else
		memcpy(&out, p, sizeof(out));
	return out;
}

/* What a look-up says: "pass" for ever or "pass now", "dir", "hidden", or the error. */
static const char *
verdict_of(const struct fuse_entry_out *out)
{
	if (out->generation)
		return out->generation == ENOENT ? "pass now" : strerror((int)out->generation);
	if (out->entry_valid != 1000000000)
		return "an answer that is not for ever";
	if (!out->nodeid)
		return "pass";
	if (out->attr_valid != 1000000000)
		return "attributes that are not for ever";
	if (S_ISDIR(out->attr.mode))
		return "dir";
	if (S_ISCHR(out->attr.mode) && !out->attr.rdev && out->nodeid == 2)
		return "hidden";
	return "something else";
}

static uint64_t
check(struct bench *b, uint64_t dir, const char *name, const char *want)
{
	struct fuse_entry_out out = look_up(b, dir, name);

	ok_str(verdict_of(&out), want, name);
	return out.nodeid;
}

static void
test_verdicts(void)
{
	struct bench b = {0};
	uint64_t packages, app;
	struct fuse_entry_out out;
	struct timespec old[2] = {{1000, 1}, {2000, 7}};

	tree_make(&b.host);
	tree_add(&b.host, "packages/app/src/a.c");
	tree_add(&b.host, "packages/app/README");
	tree_add(&b.host, "packages/lib/x");
	tree_add(&b.host, "packages/app/dist/old");
	tree_add(&b.host, "secret");
	if (fchmodat(b.host.fd, "packages", 02751, 0) || utimensat(b.host.fd, "packages", old, 0))
		tree_die("packages");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "packages/app/src");
	spec_add_rule(&b.host.spec, SPEC_WRITE, true, "packages/app/dist/**");
	spec_add_rule(&b.host.spec, SPEC_OUTPUT, true, "packages/app/dist/**");
	bench_start(&b);

	out = look_up(&b, 1, "packages");
	ok_str(verdict_of(&out), "dir", "on the way to a grant");
	packages = out.nodeid;
	ok_int(out.attr.mode, S_IFDIR | 02751, "with the host's mode");
	ok(out.attr.mtime == 2000 && out.attr.mtimensec == 7, "and time");
	ok(out.attr.uid == getuid() && out.attr.gid == getgid(), "and owner");
	app = check(&b, packages, "app", "dir");
	ok(app != packages, "each directory has its node");
	check(&b, app, "src", "pass");
	check(&b, app, "README", "hidden");
	check(&b, app, "dist", "hidden");
	check(&b, app, "none", "hidden");
	check(&b, packages, "lib", "hidden");
	check(&b, 1, "secret", "hidden");
	ok_str(b.told.buf, "packages/app/README packages/app/none? packages/lib secret",
		"denials are told, probes marked, outputs silent");
	ok_int(b.last_pid, 42, "with the asker");
	check(&b, app, "README", "hidden");
	check(&b, app, "none", "hidden");
	ok_int((long long)b.ntold, 4, "a name asked again is not told again");
	ok_int((long long)layer_denials(b.layer), 3, "probes are not counted");
	ok(check(&b, packages, "app", "dir") == app, "a directory keeps its node");
	bench_end(&b);
}

static void
test_home(void)
{
	struct bench b = {.home = "/home/u"};
	struct tree home;
	uint64_t top, config;

	tree_make(&home);
	tree_add(&home, ".ssh/id");
	tree_add(&home, ".config/gh/hosts.yml");
	tree_add(&home, ".cache/x");
	tree_compile(&home);
	b.homefd = home.fd;
	strvec_push(&b.stores, "/home/u/.ssh");
	strvec_push(&b.stores, "/home/u/.aws");
	strvec_push(&b.stores, "/home/u/.config/gh");
	strvec_push(&b.stores, "/home/u/.docker/config.json");
	tree_make(&b.host);
	tree_add(&b.host, ".ssh/id");
	bench_start(&b);

	top = check(&b, 1, layer_part_name(LAYER_HOME), "dir");
	check(&b, top, ".cache", "pass");
	check(&b, top, "none", "pass");
	check(&b, top, ".docker", "pass");
	check(&b, top, ".ssh", "hidden");
	check(&b, top, ".ssh", "hidden");
	check(&b, top, ".aws", "hidden");
	config = check(&b, top, ".config", "dir");
	check(&b, config, "gh", "hidden");
	check(&b, config, "other", "pass");
	ok_str(b.told.buf, "/home/u/.ssh /home/u/.config/gh",
		"stores that are there are told, once");
	ok(ask(&b, FUSE_READDIR, top, &(struct fuse_read_in){0}, sizeof(struct fuse_read_in),
		   NULL) == 0,
		"the home is listed by the layers below");
	check(&b, 1, ".ssh", "hidden");
	ok_str(b.told.buf, "/home/u/.ssh /home/u/.config/gh .ssh",
		"and the workspace is another place");
	bench_end(&b);
	tree_remove(&home);
}

static void
test_bad_requests(void)
{
	struct bench b = {0};
	struct fuse_in_header h = {.len = 100, .opcode = FUSE_LOOKUP, .unique = 5, .nodeid = 1};
	char big[3000];

	tree_make(&b.host);
	tree_add(&b.host, "a");
	bench_start(&b);
	check(&b, 1, "", strerror(EINVAL));
	check(&b, 1, ".", strerror(EINVAL));
	check(&b, 1, "..", strerror(EINVAL));
	check(&b, 1, "a/b", strerror(EINVAL));
	check(&b, 0, "a", strerror(ESTALE));
	check(&b, 2, "a", strerror(ENOTDIR));
	check(&b, 9, "a", strerror(ESTALE));
	check(&b, UINT64_MAX, "a", strerror(ESTALE));
	ok_int(ask(&b, FUSE_LOOKUP, 1, "abc", 3, NULL), EINVAL, "a name without its end");
	ok_int(ask(&b, FUSE_LOOKUP, 1, "", 0, NULL), EINVAL, "no name");
	ok_int(ask(&b, FUSE_INIT, 0, "\7", 1, NULL), EPROTO, "a short INIT");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	check(&b, 1, big, "hidden");
	ok_int(ask(&b, FUSE_READDIR, 2, "", 0, NULL), ENOTDIR, "a whiteout has no listing");
	ok_int(ask(&b, FUSE_READDIR, 9, "", 0, NULL), ENOTDIR, "nor has a node that is none");
	ok_int(ask(&b, FUSE_GETATTR, 9, "", 0, NULL), ESTALE, "nor attributes");

	if (send(b.kernel, &h, sizeof(h), 0) < 0)
		tree_die("send");
	ok_int(layer_serve(b.layer, b.server), 0, "a wrong length");
	ok_int((long long)recv(b.kernel, reply_buf, sizeof(reply_buf), 0),
		sizeof(struct fuse_out_header), "is answered with an error");
	if (send(b.kernel, &h, 10, 0) < 0)
		tree_die("send");
	ok_int(layer_serve(b.layer, b.server), -1, "less than a header ends it");
	ok_int(layer_serve(b.layer, b.server), 0, "nothing is waiting");
	shutdown(b.kernel, SHUT_RDWR);
	ok_int(layer_serve(b.layer, b.server), -1, "the end of the connection");
	bench_end(&b);
}

/* What lies in the root beside the workspace. */
static void
test_parts(void)
{
	struct bench b = {0};
	struct {
		struct fuse_batch_forget_in h;
		struct fuse_forget_one v[3];
	} batch = {.h = {.count = 4000}};
	struct fuse_read_in in = {.size = 4096};
	struct fuse_entry_out out;
	uint64_t mirror, top, file;

	tree_make(&b.host);
	tree_add(&b.host, "src/a");
	tree_add(&b.host, "src/b");
	tree_add(&b.host, "secret");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "src/a");
	bench_start(&b);

	out = look_up(&b, 1, layer_part_name(LAYER_WORKSPACE));
	ok_str(verdict_of(&out), "dir", "the workspace's policy once more");
	top = out.nodeid;
	ok(top != 1, "by another number");
	ok_int(ask(&b, FUSE_GETATTR, top, "", 0, NULL), 0, "with attributes");
	check(&b, top, "secret", "hidden");
	check(&b, check(&b, top, "src", "dir"), "a", "pass");
	ok_str(b.told.buf, "secret", "where names are judged, and told");

	check(&b, 1, layer_part_name(LAYER_HOME), "pass now");
	check(&b, 1, layer_part_name(LAYER_HOME_MIRROR), "pass now");
	ok_int(ask(&b, FUSE_LOOKUP, MIRROR_WORKSPACE | 1, "src", 4, NULL), ESTALE,
		"there is no mirror that nobody asked for");
	out = look_up(&b, 1, layer_part_name(LAYER_MIRROR));
	mirror = out.nodeid;
	ok((mirror & MIRROR_TAGS) == MIRROR_WORKSPACE && S_ISDIR(out.attr.mode), "a mirror");
	ok(look_up(&b, 1, layer_part_name(LAYER_MIRROR)).nodeid == mirror, "it is one");
	file = look_up(&b, mirror, "secret").nodeid;
	ok_int(ask(&b, FUSE_READ, file, &in, sizeof(in), NULL), 0, "it judges nothing");
	ok_int(ask(&b, FUSE_LOOKUP, file | MIRROR_HOME, "x", 2, NULL), ESTALE,
		"the home's is another");

	batch.v[0] = (struct fuse_forget_one){top, 1};
	batch.v[1] = (struct fuse_forget_one){file, 1};
	batch.v[2] = (struct fuse_forget_one){mirror, 2};
	ok_int(ask(&b, FUSE_BATCH_FORGET, 0, &batch, sizeof(batch), NULL), -1000,
		"nodes are forgotten without an answer");
	ok_int(ask(&b, FUSE_READ, file, &in, sizeof(in), NULL), ESTALE, "those of the mirror");
	check(&b, top, "secret", "hidden");
	ok(look_up(&b, mirror, "secret").nodeid, "neither the layer's nor the root");
	bench_end(&b);
}

static struct fuse_init_out
init(struct bench *b, uint32_t minor, uint32_t flags, uint32_t flags2)
{
	struct fuse_init_in in = {.major = 7, .minor = minor, .flags = flags, .flags2 = flags2};
	struct fuse_init_out out = {0};
	const void *p;

	if (!ask(b, FUSE_INIT, 0, &in, sizeof(in), &p))
		memcpy(&out, p, sizeof(out));
	return out;
}

static void
test_protocol(void)
{
	struct bench b = {0};
	struct fuse_init_out out;
	struct fuse_attr_out attr;
	uint16_t timeout;
	const void *p;

	tree_make(&b.host);
	tree_add(&b.host, "d/a");
	tree_add(&b.host, "d/b");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "d/a");
	bench_start(&b);

	out = init(&b, 36, ~0U, ~0U);
	ok_int(out.minor, 36, "an older kernel's minor");
	ok(out.flags == (FUSE_PARALLEL_DIROPS | FUSE_NO_OPENDIR_SUPPORT | FUSE_NO_OPEN_SUPPORT |
				FUSE_ASYNC_READ | FUSE_MAX_PAGES | FUSE_CACHE_SYMLINKS |
				FUSE_INIT_EXT),
		"the flags we want and no others");
	ok_int(out.flags2, 1 << 10, "a request timeout");
	memcpy(&timeout, (const char *)&out + offsetof(struct fuse_init_out, flags2) + 8,
		sizeof(timeout));
	ok_int(timeout, 60, "of a minute");
	out = init(&b, 4711, FUSE_PARALLEL_DIROPS, ~0U);
	ok_int(out.minor, FUSE_KERNEL_MINOR_VERSION, "a newer kernel gets ours");
	ok(out.flags == FUSE_PARALLEL_DIROPS && !out.flags2, "nothing that was not offered");

	ok_int(ask(&b, FUSE_GETATTR, 1, "", 0, &p), 0, "attributes of the root");
	memcpy(&attr, p, sizeof(attr));
	ok(S_ISDIR(attr.attr.mode) && attr.attr.ino == 1, "a directory");
	ok_int(ask(&b, FUSE_GETATTR, 2, "", 0, &p), 0, "attributes of the whiteout");
	memcpy(&attr, p, sizeof(attr));
	ok(S_ISCHR(attr.attr.mode) && !attr.attr.rdev && attr.attr_valid == 1000000000,
		"device 0:0, for ever");
	ok_int(ask(&b, FUSE_OPENDIR, 1, "", 0, NULL), ENOSYS, "OPENDIR is not served");
	ok_int(ask(&b, FUSE_READDIRPLUS, 1, "", 0, NULL), ENOSYS, "nor READDIRPLUS");
	ok_int(ask(&b, FUSE_GETXATTR, 1, "", 0, NULL), ENOSYS, "nor xattrs");
	ok_int(ask(&b, FUSE_MKDIR, 1, "x", 2, NULL), EROFS, "nothing can be written");
	ok_int(ask(&b, FUSE_STATFS, 1, "", 0, NULL), 0, "STATFS");
	ok_int(ask(&b, FUSE_FORGET, 2, "", 0, NULL), -1000, "FORGET is not answered");
	ok_int(ask(&b, FUSE_BATCH_FORGET, 0, "", 0, NULL), -1000, "nor BATCH_FORGET");
	ok_int(ask(&b, FUSE_INTERRUPT, 0, "", 0, NULL), -1000, "nor INTERRUPT");
	ok_int(ask(&b, FUSE_DESTROY, 0, "", 0, NULL), 0, "DESTROY");
	bench_end(&b);
}

static bool
wall_has(struct bench *b, const char *path)
{
	struct stat st;

	return !fstatat(b->wall_dir.fd, path, &st, AT_SYMLINK_NOFOLLOW);
}

static void
test_listing(void)
{
	struct bench b = {0};
	struct fuse_out_header out;
	uint64_t d;

	tree_make(&b.host);
	tree_add(&b.host, "d/shown");
	tree_add(&b.host, "d/hidden");
	tree_add(&b.host, "gone/a");
	tree_add(&b.host, "gone/b");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "d/shown");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "gone/a");
	bench_start(&b);
	d = check(&b, 1, "d", "dir");
	ok(wall_has(&b, "w/d") && !wall_has(&b, "w/d/hidden"), "a look-up makes the directory");
	ok_int(ask(&b, FUSE_READDIR, d, "", 0, NULL), 0, "a listing");
	memcpy(&out, reply_buf, sizeof(out));
	ok_int(out.len, sizeof(out), "is empty");
	ok(wall_has(&b, "w/d/hidden") && !wall_has(&b, "w/d/shown"),
		"and the wall is full by then");
	ok_int((long long)b.ntold, 0, "without a denial");
	tree_add(&b.host, "d/came");
	tree_add(&b.host, "gone/came");
	check(&b, d, "came", "hidden");
	check(&b, d, "hidden", "hidden");
	check(&b, check(&b, 1, "gone", "dir"), "came", "hidden");
	ok_str(b.told.buf, "d/came? d/hidden gone/came",
		"what came after a listing is as if it were not there");

	d = check(&b, 1, "gone", "dir");
	if (renameat(b.host.fd, "gone", b.host.fd, "moved"))
		tree_die("rename");
	ok_int(ask(&b, FUSE_READDIR, d, "", 0, NULL), EIO, "what cannot be filled is not listed");
	bench_end(&b);
}

static size_t nlate;

/* -1: what came late, each with a blank behind it, is not what was expected (NULL: anything). */
static int
look_again(struct bench *b, const char *want)
{
	cleanup_strvec struct strvec late = STRVEC_INIT;
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	bool changed = layer_look_again(b->layer, &late);

	nlate = late.n;
	for (size_t i = 0; i < late.n; i++)
		strbuf_addf(&sb, "%s ", late.v[i]);
	if (want && strcmp(sb.buf ? sb.buf : "", want) != 0) {
		diag("late: %s", sb.buf);
		return -1;
	}
	return changed;
}

static void
test_purity(void)
{
	struct bench b = {0};
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	uint64_t src;

	tree_make(&b.host);
	tree_add(&b.host, "src/pure/a.ts");
	tree_add(&b.host, "src/pure/deep/b.ts");
	tree_add(&b.host, "src/pure/link.ts>../../lib/c.ts");
	tree_add(&b.host, "src/mixed/a.ts");
	tree_add(&b.host, "src/mixed/.env");
	tree_add(&b.host, "lib/c.ts");
	tree_add(&b.host, "lib/d.ts");
	tree_add(&b.host, "one/by");
	tree_add(&b.host, "one/one");
	spec_add_rule(&b.host.spec, SPEC_READ, true, "src/**/*.ts");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "one/by");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "one/one");
	utimensat(b.host.fd, "src/pure/deep", old, 0);
	bench_start(&b);
	src = check(&b, 1, "src", "dir");
	check(&b, src, "mixed", "dir");
	check(&b, src, "pure", "pass");
	check(&b, src, "pure", "pass");
	check(&b, 1, "one", "pass");
	ok_int((long long)b.ntold, 0, "the test denies nothing");
	check(&b, 1, "lib", "hidden"); /* where a link in there leads */
	ok(look_again(&b, "") == 0, "nothing has changed");
	tree_add(&b.host, "src/mixed/later");
	ok(look_again(&b, "") == 0, "nor in what is pure");
	tree_add(&b.host, "src/pure/deep/new.ts");
	tree_add(&b.host, "src/pure/other/new.ts");
	ok(look_again(&b, "") == 1, "names that are granted are a change");
	tree_add(&b.host, "src/pure/deep/.env");
	ok(look_again(&b, "src/pure/deep/.env ") == 1, "one that is not came late");
	unlinkat(b.host.fd, "src/pure/deep/.env", 0);
	tree_add(&b.host, "src/pure/other/far/.env");
	ok(look_again(&b, "src/pure/other/far/.env ") == 1, "also in directories that came");
	fs_remove_tree(b.host.fd, "src/pure");
	ok(look_again(&b, "") == 1, "what is gone is a change");
	tree_add(&b.host, "one/more/x");
	tree_add(&b.host, "one/x1");
	tree_add(&b.host, "one/x2");
	tree_add(&b.host, "one/x3");
	tree_add(&b.host, "one/x4");
	ok(look_again(&b, NULL) == 1 && nlate == PURE_LATE_MAX, "a few are told");
	bench_end(&b);
}

/* A directory that the kernel knows as one does not become a passing name later. */
static void
test_purity_comes_late(void)
{
	struct bench b = {0};
	uint64_t d;

	tree_make(&b.host);
	tree_add(&b.host, "d/a");
	tree_add(&b.host, "d/b");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "d/a");
	bench_start(&b);
	d = check(&b, 1, "d", "dir");
	unlinkat(b.host.fd, "d/b", 0);
	ok(check(&b, 1, "d", "dir") == d, "the same directory");
	bench_end(&b);
}

/* What would be hidden in a directory may come to be there later, after it passed whole. */
static void
test_purity_of_what_may_come(void)
{
	static const char *const dirs[] = {"deny", "named", "quiet", "out", "free"};
	struct bench b = {0};
	char name[64];
	uint64_t d;

	tree_make(&b.host);
	for (size_t i = 0; i < array_len(dirs); i++) {
		snprintf(name, sizeof(name), "%s/sub/a.c", dirs[i]);
		tree_add(&b.host, name);
		snprintf(name, sizeof(name), "%s/**/*.c", dirs[i]);
		spec_add_rule(&b.host.spec, SPEC_READ, true, name);
	}
	spec_add_rule(&b.host.spec, SPEC_DENY_READ, true, "deny/**/.env");
	spec_add_rule(&b.host.spec, SPEC_DENY_READ, false, "named/sub/nested");
	spec_add_rule(&b.host.spec, SPEC_QUIET, true, "quiet/**/.cache");
	spec_add_rule(&b.host.spec, SPEC_OUTPUT, true, "out/**/*.o");
	bench_start(&b);
	for (size_t i = 0; i < array_len(dirs) - 1; i++) {
		d = check(&b, 1, dirs[i], "dir");
		d = check(&b, d, "sub", "dir");
		check(&b, d, "a.c", "pass now");
		if (i == 0) {
			tree_add(&b.host, "deny/sub/.env");
			check(&b, d, ".env", "hidden");
		}
	}
	check(&b, 1, "free", "pass");
	ok_str(b.told.buf, "deny/sub/.env", "and is told");
	bench_end(&b);
}

/* A granted name passes for ever only if whatever comes to be there may: what is absent or a file now may
 * be a directory later. */
static void
test_names_that_change(void)
{
	struct bench b = {0};
	uint64_t d, e;

	tree_make(&b.host);
	tree_add(&b.host, "pat/file.c");
	tree_add(&b.host, "pat/hidden");
	tree_add(&b.host, "all/file");
	tree_add(&b.host, "all/link>file");
	tree_add(&b.host, "all/.env");
	tree_add(&b.host, "one/file");
	tree_add(&b.host, "one/hidden");
	spec_add_rule(&b.host.spec, SPEC_READ, true, "pat/*.c");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "all");
	spec_add_rule(&b.host.spec, SPEC_DENY_READ, true, "all/**/.env");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "one/file");
	bench_start(&b);
	d = check(&b, 1, "pat", "dir");
	check(&b, d, "file.c", "pass now");
	check(&b, d, "new.c", "pass now");
	tree_add(&b.host, "pat/new.c/secret");
	e = check(&b, d, "new.c", "dir");
	check(&b, e, "secret", "hidden");
	d = check(&b, 1, "all", "dir");
	check(&b, d, "link", "pass now");
	check(&b, d, "file", "pass now");
	check(&b, d, "new", "pass now");
	unlinkat(b.host.fd, "all/file", 0);
	tree_add(&b.host, "all/file/.env");
	tree_add(&b.host, "all/new/.env");
	e = check(&b, d, "file", "dir");
	check(&b, e, ".env", "hidden");
	e = check(&b, d, "new", "dir");
	check(&b, e, ".env", "hidden");
	d = check(&b, 1, "one", "dir");
	check(&b, d, "file", "pass");
	bench_end(&b);
}

/* Two thousand files below a grant without exceptions are not asked for one by one. */
static void
test_purity_is_fast(void)
{
	static const char *const grants[] = {"data/**", "data/**/*", "data/*", "data/*.txt"};

	for (size_t i = 0; i < array_len(grants); i++) {
		struct bench b = {0};
		char name[64];

		tree_make(&b.host);
		for (int k = 0; k < 2000; k++) {
			snprintf(name, sizeof(name), "data/f%d.txt", k);
			tree_add(&b.host, name);
		}
		tree_add(&b.host, "other/x");
		spec_add_rule(&b.host.spec, SPEC_READ, true, grants[i]);
		spec_add_rule(&b.host.spec, SPEC_DENY_READ, false, "other");
		spec_add_rule(&b.host.spec, SPEC_QUIET, false, ".vx");
		bench_start(&b);
		check(&b, 1, "data", "pass");
		bench_end(&b);
	}
}

/* A link is granted by its own name, what it leads to by its own. */
static void
test_links(void)
{
	struct bench b = {0};
	uint64_t d;

	tree_make(&b.host);
	tree_add(&b.host, "named>lib/real");
	tree_add(&b.host, "tree/inner>../lib/other");
	tree_add(&b.host, "tree/denied");
	tree_add(&b.host, "hidden>lib/third");
	tree_add(&b.host, "lib/real");
	tree_add(&b.host, "lib/other");
	tree_add(&b.host, "lib/third");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "named");
	spec_add_rule(&b.host.spec, SPEC_READ, true, "tree/in*");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "lib/third");
	bench_start(&b);

	check(&b, 1, "named", "pass");
	check(&b, 1, "hidden", "hidden");
	d = check(&b, 1, "tree", "dir");
	check(&b, d, "inner", "pass now");
	d = check(&b, 1, "lib", "dir");
	check(&b, d, "real", "hidden");
	check(&b, d, "other", "hidden");
	check(&b, d, "third", "pass");
	ok_str(b.told.buf, "hidden lib/real lib/other",
		"denials are told under the targets' paths");
	bench_end(&b);
}

/* Seen by another caller, what is ours is foreign. */
static void
test_foreign(void)
{
	const uid_t none = (uid_t)-1;
	struct bench b = {0};
	struct fuse_entry_out out;

	tree_make(&b.host);
	tree_add(&b.host, "out/sub/x");
	tree_add(&b.host, "in/x");
	spec_add_rule(&b.host.spec, SPEC_WRITE, false, "out");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "in");
	bench_start_as(&b, (struct owner){getuid() + 1, getgid(), false, none, none});
	out = look_up(&b, 1, "out");
	ok_str(verdict_of(&out), "dir", "a foreign directory that may be written");
	ok_int(out.attr.uid, getuid() + 1, "is shown as the caller's");
	out = look_up(&b, out.nodeid, "sub");
	ok_str(verdict_of(&out), "dir", "and the one below");
	check(&b, out.nodeid, "x", "pass");
	check(&b, out.nodeid, "new", "pass");
	check(&b, 1, "in", "pass");
	bench_end(&b);

	b = (struct bench){0};
	tree_make(&b.host);
	tree_add(&b.host, "out/x");
	tree_add(&b.host, "way/a");
	tree_add(&b.host, "way/b");
	spec_add_rule(&b.host.spec, SPEC_WRITE, false, "out");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "way/a");
	bench_start_as(&b, (struct owner){getuid() + 1, getgid(), true, none, none});
	check(&b, 1, "out", "pass");
	out = look_up(&b, 1, "way");
	ok_int(out.attr.uid, getuid(), "where all ids are mapped, owners are as they are");
	bench_end(&b);

	/* "All" may be few: what else there is shows as one id. */
	b = (struct bench){0};
	tree_make(&b.host);
	tree_add(&b.host, "out/x");
	spec_add_rule(&b.host.spec, SPEC_WRITE, false, "out");
	bench_start_as(&b, (struct owner){getuid() + 1, getgid(), true, getuid(), none});
	out = look_up(&b, 1, "out");
	ok_str(verdict_of(&out), "dir", "a directory of an id that is not among them");
	ok_int(out.attr.uid, getuid() + 1, "is shown as the caller's");
	bench_end(&b);
}

static void
test_flood(void)
{
	struct bench b = {0};
	char name[32];
	uint64_t d;

	tree_make(&b.host);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "d/h%d", i);
		tree_add(&b.host, name);
	}
	tree_add(&b.host, "d/ok");
	spec_add_rule(&b.host.spec, SPEC_READ, false, "d/ok");
	bench_start(&b);
	d = look_up(&b, 1, "d").nodeid;
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		look_up(&b, d, name);
	}
	ok_int((long long)b.ntold, LAYER_PROBES_MAX, "probes are told up to a bound");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "h%d", i);
			look_up(&b, d, name);
		}
	}
	ok_int((long long)b.ntold, LAYER_PROBES_MAX + 200, "and do not crowd out denials");
	ok_int((long long)layer_denials(b.layer), 200, "counted once each");
	bench_end(&b);
}

static void
test_seen(void)
{
	/* SipHash-2-4 of 00 01 … 0e under the key 00 01 … 0f, from its authors' paper. */
	static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	unsigned char in[15];
	struct seen s;
	char name[32];
	int again = 0;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)i;
	ok(seen_hash(key, in, sizeof(in)) == 0xa129ca6149be45e5, "the reference vector");
	seen_init(&s);
	for (int i = 0; i < 200000; i++) {
		snprintf(name, sizeof(name), "%d", i % 100000);
		again += !seen_add(&s, name);
	}
	ok_int(again, 100000, "each name is new once");
	seen_release(&s);
}

int
main(void)
{
	umask(022);
	test_verdicts();
	test_home();
	test_bad_requests();
	test_parts();
	test_protocol();
	test_listing();
	test_purity();
	test_purity_comes_late();
	test_purity_of_what_may_come();
	test_purity_is_fast();
	test_names_that_change();
	test_links();
	test_foreign();
	test_flood();
	test_seen();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "sandbox/host.h"
#include "sandbox/wall.h"
#include "tests/unit/tree.h"
#include "util/strbuf.h"
#include "util/strvec.h"

/* Names of a directory of the wall: "a-" a whiteout, "b/" a directory, sorted, in one string. */
static const char *
names(int wall, const char *path)
{
	static struct strbuf out = STRBUF_INIT;
	struct strvec v = STRVEC_INIT;
	int fd = openat(wall, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const char *name;
	enum host_kind kind;

	strbuf_reset(&out);
	if (!d)
		return "(none)";
	while (host_readdir(d, &name, &kind) == 1) {
		struct stat st;

		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
			tree_die(name);
		strvec_pushf(&v, "%s%c", name,
			S_ISDIR(st.st_mode)                  ? '/'
			: S_ISCHR(st.st_mode) && !st.st_rdev ? '-'
							     : '?');
	}
	closedir(d);
	strvec_sort(&v);
	for (size_t i = 0; i < v.n; i++)
		strbuf_addf(&out, "%s%s", i ? " " : "", v.v[i]);
	strvec_release(&v);
	return out.buf;
}

static struct wall *
make_wall(struct tree *host, struct tree *w)
{
	struct err e = ERR_INIT;
	struct wall *wall;

	tree_compile(host);
	tree_make(w);
	wall = wall_new(w->fd, "w", host->fd, host->path, host->rules, &e);
	if (!wall) {
		diag("%s", e.text);
		exit(1);
	}
	return wall;
}

static void
test_on_demand(void)
{
	struct tree host, w;
	struct wall *wall;

	tree_make(&host);
	tree_add(&host, "src/a.c");
	tree_add(&host, "src/.env");
	tree_add(&host, "src/link>a.c");
	tree_add(&host, "src/sub/b.c");
	tree_add(&host, "secret/x");
	tree_add(&host, "dist/old");
	spec_add_rule(&host.spec, SPEC_READ, true, "src/**/*.c");
	spec_add_rule(&host.spec, SPEC_WRITE, false, "dist");
	spec_add_rule(&host.spec, SPEC_OUTPUT, false, "dist");
	wall = make_wall(&host, &w);

	ok_str(names(w.fd, "w"), "", "empty at first");
	ok_int(wall_fill(wall, ""), 0, "fill the root");
	ok_str(names(w.fd, "w"), "dist- secret-", "what is denied and the outputs");
	ok_int(wall_mkdir(wall, "src"), 0, "a directory");
	ok_int(wall_mkdir(wall, "src"), 0, "made twice");
	ok_str(names(w.fd, "w/src"), "", "is empty until it is listed");
	ok_int(wall_fill(wall, "src"), 0, "fill it");
	ok_str(names(w.fd, "w/src"), ".env- link-", "what does not match");
	tree_add(&host, "src/later");
	ok_int(wall_fill(wall, "src"), 0, "filled once");
	ok_str(names(w.fd, "w/src"), ".env- link-", "names of the first listing");
	ok_int(wall_fill(wall, "src/sub"), -1, "a directory that the wall has not");
	ok_int(wall_mkdir(wall, "none"), 0, "a directory that the host has not");
	ok_int(wall_fill(wall, "none"), -1, "cannot be listed");

	ruleset_add_read(host.rules, "secret/x");
	ok_int(wall_mkdir(wall, "secret"), 0, "a directory where a whiteout stood");
	ok_str(names(w.fd, "w"), "dist- none/ secret/ src/", "takes its place");
	wall_show(wall, "src/link");
	wall_show(wall, "src");
	wall_show(wall, "");
	ok_str(names(w.fd, "w/src"), ".env-", "a whiteout is taken away, a directory is not");

	wall_free(wall);
	tree_remove(&host);
	tree_remove(&w);
}

static void
test_all(void)
{
	struct err e = ERR_INIT;
	struct timespec old[2] = {{1000, 0}, {2000, 5}};
	struct tree host, w;
	struct wall *wall;
	struct stat st;

	tree_make(&host);
	tree_add(&host, "packages/app/src/a.c");
	tree_add(&host, "packages/app/src/deep/b.c");
	tree_add(&host, "packages/app/README");
	tree_add(&host, "packages/app/shared.c>../lib/real.c");
	tree_add(&host, "packages/lib/real.c");
	tree_add(&host, "packages/lib/other.c");
	tree_add(&host, "packages/other/x");
	tree_add(&host, "top");
	spec_add_rule(&host.spec, SPEC_READ, false, "packages/app/src");
	spec_add_rule(&host.spec, SPEC_READ, false, "packages/app/shared.c");
	if (fchmodat(host.fd, "packages/app", 0710, 0) ||
		utimensat(host.fd, "packages/app", old, 0))
		tree_die("packages/app");
	wall = make_wall(&host, &w);

	if (!ok(!wall_fill_all(wall, &e), "fill all"))
		diag("%s", e.text);
	ok_str(names(w.fd, "w"), "packages/ top-", "the root");
	ok_str(names(w.fd, "w/packages"), "app/ lib/ other-",
		"lib is on the way to a link's target");
	ok_str(names(w.fd, "w/packages/app"), "README-", "granted directories are not gone into");
	ok_str(names(w.fd, "w/packages/lib"), "other.c-", "the target shows");
	ok(!fstatat(w.fd, "w/packages/app", &st, 0) && (st.st_mode & 07777) == 0710,
		"the host's mode");
	ok(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 5, "and its time");

	wall_free(wall);
	tree_remove(&host);
	tree_remove(&w);
}

/* Which paths a granted link grants, in order. */
static void
check_target(struct tree *host, const char *link, const char *want)
{
	struct strvec granted = STRVEC_INIT;
	struct strbuf sb = STRBUF_INIT;

	host_grant_target(host->fd, host->path, host->rules, link, &granted);
	for (size_t i = 0; i < granted.n; i++)
		strbuf_addf(&sb, "%s%s", i ? " " : "", granted.v[i]);
	ok_str(sb.buf, want, link);
	strvec_release(&granted);
	strbuf_release(&sb);
}

static void
test_targets(void)
{
	struct tree host;
	char absolute[128];

	tree_make(&host);
	tree_add(&host, "real/file");
	tree_add(&host, "a/plain>../real/file");
	tree_add(&host, "a/dots>.././/real/./file");
	tree_add(&host, "a/dir>../real");
	tree_add(&host, "a/hop>../via/file");
	tree_add(&host, "via>real");
	tree_add(&host, "a/dead>nowhere");
	tree_add(&host, "a/loop>loop2");
	tree_add(&host, "a/loop2>loop");
	tree_add(&host, "a/out>../../../etc/passwd");
	tree_add(&host, "a/abs-out>/etc/passwd");
	tree_add(&host, "a/self>..");
	tree_add(&host, "a/here>.");
	tree_add(&host, "a/denied>../priv/key");
	tree_add(&host, "priv/key");
	snprintf(absolute, sizeof(absolute), "a/abs>%s/real/file", host.path);
	tree_add(&host, absolute);
	spec_add_rule(&host.spec, SPEC_DENY_READ, false, "priv");
	tree_compile(&host);

	check_target(&host, "a/plain", "real/file");
	check_target(&host, "a/dots", "real/file");
	check_target(&host, "a/dir", "real");
	check_target(&host, "a/hop", "via real/file");
	check_target(&host, "a/abs", "real/file");
	check_target(&host, "a/dead", "");
	check_target(&host, "a/out", "");
	check_target(&host, "a/abs-out", "");
	check_target(&host, "a/self", "");
	check_target(&host, "a/here", "");
	check_target(&host, "real/file", "");
	ok(ruleset_may_read(host.rules, "via"), "the link on the way passes");
	check_target(&host, "a/denied", "priv/key");
	ok(!ruleset_may_read(host.rules, "priv/key"), "but a deny stays a deny");
	{
		struct strvec granted = STRVEC_INIT;

		host_grant_target(host.fd, host.path, host.rules, "a/loop", &granted);
		ok(granted.n > 0 && granted.n <= 40, "a circle ends");
		strvec_release(&granted);
	}
	tree_remove(&host);
}

int
main(void)
{
	umask(022);
	test_on_demand();
	test_all();
	test_targets();
	return tap_done();
}

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
	wall = wall_new(w->fd, "w", host->fd, host->rules, &e);
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

	/* the host put a directory in the place of a file that was hidden */
	ok_int(wall_mkdir(wall, "secret"), 0, "a directory where a whiteout stood");
	ok_str(names(w.fd, "w"), "dist- none/ secret/ src/", "takes its place");

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
	ok_str(names(w.fd, "w/packages"), "app/ lib- other-", "what a granted link leads to");
	ok_str(names(w.fd, "w/packages/app"), "README-", "granted directories are not gone into");
	ok(!fstatat(w.fd, "w/packages/app", &st, 0) && (st.st_mode & 07777) == 0710,
		"the host's mode");
	ok(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 5, "and its time");

	wall_free(wall);
	tree_remove(&host);
	tree_remove(&w);
}

int
main(void)
{
	umask(022);
	test_on_demand();
	test_all();
	return tap_done();
}

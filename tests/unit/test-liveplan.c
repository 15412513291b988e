/* SPDX-License-Identifier: MIT */
/*
 * What a live view binds and what it serves, what may be changed where it serves, and what is found
 * afterwards where it does not.
 */
#include "sandbox/livescan.h"
#include "tests/unit/tree.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/strbuf.h"

static struct tree t;
static struct liverules lr;

static void
begin(const char *const *names)
{
	tree_make(&t);
	for (; *names; names++)
		tree_add(&t, *names);
}
#define BEGIN(...) begin((const char *const[]){__VA_ARGS__, NULL})

static void
rule(enum spec_rule_kind kind, bool is_glob, const char *path)
{
	spec_add_rule(&t.spec, kind, is_glob, path);
}

static void
compile(void)
{
	tree_compile(&t);
	lr = (struct liverules){t.rules, t.spec.cwd ? t.spec.cwd : "", t.fd, t.spec.git_config};
}

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct livebind *)a)->path, ((const struct livebind *)b)->path);
}

static void
ok_binds(struct liveplan *p, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), compare);
	for (size_t i = 0; i < p->n; i++)
		strbuf_addf(&sb, "%s%s%s", i ? " " : "", p->v[i].path, p->v[i].write ? "+" : "");
	ok_str(sb.buf, want, name);
}

static void
ok_plan(const char *want, const char *name)
{
	struct liveplan p;

	compile();
	liveplan_init(&p);
	liveplan_make(&p, &lr, NULL);
	ok_binds(&p, want, name);
	liveplan_release(&p);
	tree_remove(&t);
}

/* Of some directories, as what is granted outside. */
static void
test_tops(void)
{
	cleanup_strvec struct strvec tops = STRVEC_INIT;
	cleanup_strbuf struct strbuf kept = STRBUF_INIT;
	struct liveplan p;
	const char *bad = "";
	struct stat st;

	BEGIN("plain/sub/x", "beside/x", "m/.git/HEAD", "m/.git/objects/o", "m/.git/refs/r",
		"m/.git/hooks/h", "m/.git/logs/l", "m/.git/info/i", "m/.git/config",
		"m/.git/modules/s/HEAD", "m/.git/modules/s/objects/o", "m/.git/modules/s/refs/r",
		"m/.git/modules/s/hooks/h", "holds/w/.git/hooks/h", "holds/w/.envrc", "holds/y");
	strvec_push(&tops, "holds");
	strvec_push(&tops, "m/.git");
	strvec_push(&tops, "plain");
	for (size_t i = 0; i < tops.n; i++)
		rule(SPEC_WRITE, false, tops.v[i]);
	compile();
	if (fs_stat_beneath(t.fd, "holds/w", &st))
		tree_die("stat");
	liveplan_init(&p);
	liveplan_leave_out(&p, &st);
	liveplan_make(&p, &lr, &tops);
	ok_binds(&p, "holds+ m/.git/logs+ m/.git/objects+ m/.git/refs+ plain+",
		"nothing beside them, nothing of what is apart, and of a repository what it obeys "
		"nothing of");
	ok(liveplan_binds(&p, "plain") && !liveplan_binds(&p, "m/.git"), "which is asked for");
	liveplan_release(&p);

	liveplan_init(&p);
	liveplan_leave_out(&p, &st);
	ok_int(liveplan_make_bare(&p, &lr, &tops, &bad), 0, "where nothing can be served");
	ok_binds(&p, "holds+ m/.git+ plain+", "each is bound");
	for (size_t i = 0; i < p.kept.n; i++) {
		const struct livekept *k = p.kept.entries[i].value;

		if (!k->is_free)
			strbuf_addf(&kept, "%s ", p.kept.entries[i].key);
	}
	ok_str(kept.buf, "m/.git/config m/.git/hooks m/.git/modules/s/hooks ",
		"and what is in it covered");
	liveplan_release(&p);
	tree_remove(&t);
}

static void
test_plan(void)
{
	BEGIN("src/a", "src/sub/b", "lib/x", "file", "none/");
	rule(SPEC_READ, false, "src");
	rule(SPEC_READ, false, "file");
	rule(SPEC_READ, true, "lib/*.c");
	ok_plan("src", "a granted directory; no file, no glob");

	BEGIN("src/a", "src/sub/b", "lib/x", "link>src");
	rule(SPEC_READ, false, "");
	ok_plan("lib src", "the workspace itself is served, and no link is bound");

	BEGIN("src/a", "src/sub/b", "src/sub/deep/x", "src/other/c");
	rule(SPEC_READ, false, "src");
	rule(SPEC_DENY_READ, false, "src/sub/secret");
	ok_plan("src/other src/sub/deep",
		"a wall inside, there or not: what is beside it is bound");

	BEGIN("src/a/x", "src/b/x");
	rule(SPEC_READ, false, "src");
	rule(SPEC_DENY_READ, true, "src/**/.env");
	ok_plan("", "a wall that can be anywhere");

	BEGIN("src/a/x", "src/b/x");
	rule(SPEC_READ, true, "src/**");
	ok_plan("src", "a glob of all there is");

	BEGIN("p/src/x", "p/out/y", "p/lib/z");
	rule(SPEC_READ, false, "p");
	rule(SPEC_WRITE, false, "p/out");
	ok_plan("p/lib p/out+ p/src", "a write grant in a read grant");

	BEGIN("p/src/x", "p/lib/z");
	rule(SPEC_READ, false, "p");
	rule(SPEC_WRITE, false, "p/out");
	ok_plan("p/lib p/src", "one that is not there: where it can come to be is served");

	BEGIN("p/src/x", "p/vx.config.json", "p/lib/.husky/h", "p/lib/sub/y");
	rule(SPEC_WRITE, false, "p");
	ok_plan("p/lib/sub+ p/src+",
		"names that are never committed, and what they lie in, are served");

	BEGIN("p/.git/hooks/h", "p/.git/config", "p/.git/objects/x", "p/src/x");
	rule(SPEC_WRITE, false, "p");
	ok_plan("p/src+", "a repository is served to its last name");

	BEGIN("p/bare/HEAD", "p/bare/objects/x", "p/bare/refs/x", "p/bare/hooks/x", "p/src/x",
		"p/HEAD");
	rule(SPEC_WRITE, false, "p");
	ok_plan("p/bare/objects+ p/bare/refs+ p/src+", "of one by what is in it not what it obeys");

	BEGIN("p/.cargo/x", "p/sub/.claude/y", "p/src/x");
	rule(SPEC_WRITE, false, "p");
	ok_plan("p/src+", "what could get such a name");

	BEGIN("p/.husky/h", "p/src/x");
	rule(SPEC_WRITE, false, "p");
	rule(SPEC_WRITE, false, "p/.husky");
	ok_plan("p+", "one that a rule names needs no wall");

	BEGIN("p/src/x");
	rule(SPEC_WRITE, false, "p");
	rule(SPEC_QUIET, false, "p/src/q");
	ok_plan("", "a name that is quiet");
}

static void
test_changes(void)
{
	BEGIN("w/.git/HEAD", "w/.git/objects/", "w/.git/refs/", "w/half/HEAD", "w/half/objects/",
		"w/x.git/HEAD", "w/x.git/objects/");
	rule(SPEC_WRITE, false, "w");
	rule(SPEC_WRITE, false, "w/own/.envrc");
	rule(SPEC_WRITE, false, "w/x.git");
	rule(SPEC_READ, false, "r");
	rule(SPEC_DENY_READ, false, "w/hidden");
	rule(SPEC_WRITE, false, "far/away");
	compile();
	ok(liverules_may_change(&lr, "w/a/b", S_IFREG), "granted");
	ok(!liverules_may_change(&lr, "r/a", S_IFREG), "for reading only");
	ok(!liverules_may_change(&lr, "w/hidden/x", S_IFREG), "what cannot be seen");
	ok(!liverules_may_change(&lr, "w/.envrc", S_IFREG), "a name");
	ok(!liverules_may_change(&lr, "w/a/.Husky/x", S_IFREG), "in one, in any case");
	ok(liverules_may_change(&lr, "w/own/.envrc", S_IFREG), "one that a rule names");
	ok(liverules_may_change(&lr, "w/.git/objects/x", S_IFREG), "a repository's objects");
	ok(!liverules_may_change(&lr, "w/.git/hooks/x", S_IFREG), "and its hooks");
	ok(!liverules_may_change(&lr, "w/sub/.git", S_IFDIR), "a new repository");
	ok(!liverules_may_change(&lr, "w/half/refs", S_IFDIR), "the last name that makes one");
	ok(liverules_may_change(&lr, "w/half/branches", S_IFDIR), "not any other");
	ok(liverules_may_change(&lr, "w/x.git/refs", S_IFDIR), "nor one that is called so");
	ok(!liverules_may_change(&lr, "w/.cargo", S_IFLNK), "a link that leads");
	ok(liverules_may_change(&lr, "w/.cargo", S_IFDIR), "a directory");
	ok(!liverules_may_change(&lr, "far", S_IFDIR), "what lies above a grant");
	ok(liverules_may_make_dir(&lr, "far"), "may be made as a directory");
	ok(!liverules_may_make_dir(&lr, "near"), "not what lies beside it");
	ok(!liverules_is_whole(&lr, "w") && liverules_is_whole(&lr, "w/a"), "what may move");
	tree_remove(&t);
}

static void
test_scan(void)
{
	static const struct timespec never_changed = {1L << 40, 0};
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	char name[] = "out/deep/x";
	struct livebind bind = {.path = name, .write = true};
	struct liveplan p = {.v = &bind, .n = 1};
	struct livescan sc;
	struct tree scratch;
	struct stat was;
	struct livemanifest known;
	cleanup_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	tree_make(&scratch);
	BEGIN("out/deep/x/.git/config", "out/deep/x/a/.npmrc", "out/deep/x/a/fine",
		"out/deep/x/b/HEAD", "out/deep/x/b/objects/", "out/deep/x/b/refs/",
		"out/deep/x/package.json", "out/.envrc");
	rule(SPEC_WRITE, false, "out");
	compile();
	bind.fd = fs_open_beneath(t.fd, name, O_PATH | O_DIRECTORY, 0);
	htab_init(&p.manifests);
	if (fs_stat_beneath(t.fd, "out/deep/x/package.json", &was))
		tree_die("stat");
	known = (struct livemanifest){was.st_ino, was.st_ctim};
	htab_putn_copy(
		&p.manifests, "out/deep/x/package.json", strlen("out/deep/x/package.json"), &known);
	if (chdir(scratch.path))
		tree_die("chdir");
	livescan_init(&sc);
	livescan_run(&sc, &(struct livescan_options){
				  .plan = &p,
				  .rules = &lr,
				  .root = t.path,
				  .scratch = scratch.path,
				  .proc = proc,
				  .since = never_changed,
			  });
	for (size_t i = 0; i < sc.n; i++) {
		struct stat st;

		strbuf_addf(&sb, "%s ", sc.v[i].path);
		ok(fs_stat_beneath(t.fd, sc.v[i].path, &st) && !lstat(sc.v[i].moved, &st),
			"moved: %s", sc.v[i].path);
	}
	ok_str(sb.buf, "out/deep/x/.git out/deep/x/a/.npmrc out/deep/x/b/HEAD ",
		"what is in the bound directory, and no file that is as it was");
	ok(!sc.failed && !sc.nsetid, "nothing else");
	livescan_release(&sc);
	htab_release(&p.manifests);
	close(bind.fd);
	if (chdir("/"))
		tree_die("chdir");
	tree_remove(&t);
	tree_remove(&scratch);
}

int
main(void)
{
	test_plan();
	test_tops();
	test_changes();
	test_scan();
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * Commit on upper directories made by hand: each case fills a workspace and an upper directory, has
 * it judged and applied, and compares the workspace with a listing.
 */
#include "exec/commit.h"
#include "graph/graph.h"
#include "proto/ruleset.h"
#include "tests/tap.h"
#include "tests/unit/crash.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "workspace/files.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

static char top[] = "/var/tmp/vx-test-commit-XXXXXX";

/* One case. */
static const struct files no_files;

static struct {
	char *path; /* of the workspace */
	int rootfd, upperfd;
	struct scratch_area *area;
	struct scratch scratch;
	struct workspace w;
	struct project project;
	struct taskdef def;
	struct cachedef cache;
	struct node node;
	struct policy policy;
	struct arena arena;
	struct commit *commit;
	struct exec_result r;
	struct err e;
} t;

/* begin("p/", …): the project is p; rules follow as "w:PATH", "r:PATH", "dr:", "dw:", "o:", "q:",
 * globs where they hold a wildcard. */
static void
add_rule(const char *text)
{
	static const struct {
		const char *word;
		enum spec_rule_kind kind;
	} kinds[] = {
		{"r:", SPEC_READ},
		{"w:", SPEC_WRITE},
		{"dr:", SPEC_DENY_READ},
		{"dw:", SPEC_DENY_WRITE},
		{"o:", SPEC_OUTPUT},
		{"q:", SPEC_QUIET},
		{"iw:", SPEC_IGNORE_WRITE},
	};

	for (size_t i = 0; i < array_len(kinds); i++) {
		size_t n = strlen(kinds[i].word);

		if (strncmp(text, kinds[i].word, n) != 0)
			continue;
		GROW(t.policy.rules, t.policy.nrules + 1, t.policy.rules_cap);
		t.policy.rules[t.policy.nrules++] = (struct spec_rule){
			kinds[i].kind, strchr(text, '*') != NULL, xstrdup(text + n)};
		return;
	}
	bug("rule %s", text);
}

static bool scratch_elsewhere; /* on another file system: every move is a copy */

static void
begin(const char *const *rules, const char *const *outputs)
{
	static unsigned serial;
	struct err e = ERR_INIT;

	memset(&t, 0, sizeof(t));
	t.path = xasprintf("%s/%u", top, serial++);
	mkdir(t.path, 0755);
	t.rootfd = open(t.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (scratch_elsewhere) /* no place for one in the workspace */
		close(openat(t.rootfd, ".vx", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (scratch_area_open(t.path, &t.area, &e) || scratch_new(t.area, &t.scratch, &e))
		bug("%s", e.text);
	mkdirat(t.scratch.fd, SCRATCH_UPPER, 0755);
	t.upperfd = openat(t.scratch.fd, SCRATCH_UPPER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t.w.rootfd = t.rootfd;
	t.w.path = t.path;
	t.project.dir = "p";
	t.node.id = "p#build";
	t.node.project = &t.project;
	t.node.def = &t.def;
	t.policy.w = &t.w;
	t.policy.files = &no_files;
	t.policy.node = &t.node;
	arena_init(&t.arena);
	for (; rules && *rules; rules++)
		add_rule(*rules);
	for (size_t n = 0; outputs && outputs[n]; n++) {
		bool neg = *outputs[n] == '!';
		struct glob ***list = neg ? &t.cache.outputs.neg : &t.cache.outputs.pos;
		size_t *count = neg ? &t.cache.outputs.nneg : &t.cache.outputs.npos;

		*list = xreallocarray(*list, *count + 1, sizeof(**list));
		if (glob_parse(&t.arena, "p", outputs[n] + neg, 0, &(*list)[(*count)++], &e))
			bug("%s", e.text);
		t.def.cache = &t.cache;
	}
	if (policy_compile(&t.policy, &e))
		bug("%s", e.text);
}
#define BEGIN(...) begin((const char *const[]){__VA_ARGS__, NULL}, NULL)

static void
end(void)
{
	commit_free(t.commit);
	exec_result_release(&t.r);
	scratch_area_close(t.area);
	for (size_t i = 0; i < t.policy.nrules; i++)
		free(t.policy.rules[i].path);
	free(t.policy.rules);
	free(t.policy.nested);
	ruleset_free(t.policy.compiled);
	arena_release(&t.arena);
	free(t.cache.outputs.pos);
	free(t.cache.outputs.neg);
	fd_close(&t.rootfd);
	fd_close(&t.upperfd);
	free(t.path);
}

static void
make_parents(int fd, const char *path)
{
	cleanup_free char *parent = xmemdupz(path, path_parent_len(path));

	if (fs_mkdirs(fd, parent))
		bug("mkdirs %s: %s", parent, strerror(errno));
}

static void
put(int fd, const char *path, const char *content)
{
	cleanup_close int f = -1;

	make_parents(fd, path);
	f = fs_open_beneath(fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (f < 0 || fd_write_all(f, content, strlen(content)))
		bug("put %s: %s", path, strerror(errno));
}
#define ws(path, content) put(t.rootfd, path, content)
#define up(path, content) put(t.upperfd, path, content)

static void
set_mode(int fd, const char *path, mode_t mode)
{
	if (fchmodat(fd, path, mode, 0))
		bug("chmod %s: %s", path, strerror(errno));
}

static void
link_at(int fd, const char *path, const char *target)
{
	make_parents(fd, path);
	if (symlinkat(target, fd, path))
		bug("link %s: %s", path, strerror(errno));
}

static void
whiteout(const char *path)
{
	make_parents(t.upperfd, path);
	if (mknodat(t.upperfd, path, S_IFCHR, 0))
		bug("whiteout %s: %s", path, strerror(errno));
}

static void
mark(int dirfd, const char *path, const char *name)
{
	cleanup_close int fd = fs_open_beneath(dirfd, path, O_RDONLY, 0);

	if (fd < 0 || fsetxattr(fd, name, "y", 1, 0))
		bug("mark %s: %s", path, strerror(errno));
}
#define opaque(path) mark(t.upperfd, path, "user.overlay.opaque")
/* As it was copied there before the task started. */
#define untold(path) mark(t.upperfd, path, "user.test.untold")
/* Made where the workspace's own was hidden from the task. */
#define hidden(path) mark(t.upperfd, path, "user.test.hidden")

static bool
is_marked(const struct fs_entry *entry, const char *name)
{
	cleanup_close int fd =
		openat(entry->parent, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	char c;

	return fd >= 0 && fgetxattr(fd, name, &c, 1) == 1;
}

/* As the helper's scan. */
static enum fs_visit
feed(void *ctx, const struct fs_entry *entry)
{
	struct strvec *merged = ctx;
	struct status s;
	struct status_entry *en = &s.u.entry;
	struct stat st;
	size_t n = path_parent_len(entry->path);
	char *parent = xmemdupz(entry->path, n);

	if (is_marked(entry, "user.test.untold")) {
		free(parent);
		return FS_VISIT_SKIP;
	}
	status_init(&s, STATUS_ENTRY);
	en->mode = entry->st->st_mode & 07777;
	en->size = (uint64_t)entry->st->st_size;
	en->mtime_ns = entry->st->st_mtim.tv_sec * 1000000000LL + entry->st->st_mtim.tv_nsec;
	strbuf_adds(&en->path, entry->path);
	switch (entry->st->st_mode & S_IFMT) {
	case S_IFREG:
		en->type = ENTRY_FILE;
		break;
	case S_IFLNK:
		en->type = ENTRY_LINK;
		strbuf_grow(&en->target, 4096);
		en->target.len =
			(size_t)readlinkat(entry->parent, entry->name, en->target.buf, 4096);
		en->target.buf[en->target.len] = '\0';
		break;
	case S_IFDIR:
		en->type = ENTRY_DIR;
		en->opaque = is_marked(entry, "user.overlay.opaque");
		en->merge = !en->opaque && !is_marked(entry, "user.test.hidden") &&
			    (!n || strvec_contains(merged, parent)) &&
			    !fs_stat_beneath(t.rootfd, entry->path, &st) && S_ISDIR(st.st_mode);
		if (en->merge)
			strvec_push(merged, entry->path);
		break;
	default:
		en->type = S_ISCHR(entry->st->st_mode) && !entry->st->st_rdev ? ENTRY_WHITEOUT
									      : ENTRY_OTHER;
	}
	commit_add_entry(t.commit, en);
	status_release(&s);
	free(parent);
	return FS_VISIT_CONTINUE;
}

/* A name that was copied there, and of which the task left nothing. */
static void
feed_gone(const char *path)
{
	struct status s;

	status_init(&s, STATUS_ENTRY);
	s.u.entry.type = ENTRY_WHITEOUT;
	strbuf_adds(&s.u.entry.path, path);
	commit_add_entry(t.commit, &s.u.entry);
	status_release(&s);
}

static const char *const *gone; /* paths, to be told once */

static void
tell_entries(void)
{
	cleanup_strvec struct strvec merged = STRVEC_INIT;

	t.commit = commit_new(&t.policy, t.rootfd, t.area, &t.scratch);
	if (fs_walk(t.upperfd, "", feed, &merged))
		bug("walk: %s", strerror(errno));
	for (; gone && *gone; gone++)
		feed_gone(*gone);
	gone = NULL;
}

static int
judge(void)
{
	tell_entries();
	return commit_judge(t.commit, &t.r, &t.e);
}

static bool
judge_and_apply(void)
{
	return !judge() && !commit_apply(t.commit, &t.e);
}

/* "a/ a/b=content c->target" */
static enum fs_visit
list(void *ctx, const struct fs_entry *entry)
{
	struct strbuf *sb = ctx;

	if (!strcmp(entry->path, ".vx"))
		return FS_VISIT_SKIP;
	strbuf_addf(sb, "%s%s", sb->len ? " " : "", entry->path);
	if (S_ISDIR(entry->st->st_mode)) {
		strbuf_addch(sb, '/');
	} else if (S_ISREG(entry->st->st_mode)) {
		cleanup_close int fd =
			openat(entry->parent, entry->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		strbuf_addch(sb, '=');
		fd_read_all(fd, sb, 4096);
	} else if (S_ISLNK(entry->st->st_mode)) {
		char to[256];
		ssize_t n = readlinkat(entry->parent, entry->name, to, sizeof(to));

		strbuf_adds(sb, "->");
		strbuf_add(sb, to, n < 0 ? 0 : (size_t)n);
	} else {
		strbuf_adds(sb, "(special)");
	}
	return FS_VISIT_CONTINUE;
}

static char *
listing(int rootfd)
{
	struct strbuf sb = STRBUF_INIT;

	fs_walk(rootfd, "", list, &sb);
	return strbuf_take(&sb);
}

static void
ok_workspace(const char *want, const char *name)
{
	cleanup_free char *got = listing(t.rootfd);

	ok_str(got, want, name);
}

/* "write p/x; delete p/y" */
static void
ok_findings(const char *want, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	for (size_t i = 0; i < t.r.ndenials; i++)
		strbuf_addf(&sb, "%s%s %s", sb.len ? "; " : "",
			denial_op_name((enum denial_op)t.r.denials[i].op), t.r.denials[i].path);
	ok_str(sb.buf, want, name);
}

static bool
has_note(const char *part)
{
	for (size_t i = 0; i < t.r.notes.n; i++)
		if (strstr(t.r.notes.v[i], part))
			return true;
	return false;
}

static struct stat
stat_of(int fd, const char *path)
{
	struct stat st = {0};

	fs_stat_beneath(fd, path, &st);
	return st;
}

static void
set_mtime(int fd, const char *path, time_t sec)
{
	struct timespec times[2] = {{sec, 0}, {sec, 0}};
	const char *base;
	cleanup_close int parent = fs_open_parent(fd, path, &base);

	if (utimensat(parent, base, times, AT_SYMLINK_NOFOLLOW))
		bug("utimens %s", path);
}

/* Cases. */

static void
test_new_tree(void)
{
	struct stat before, after;

	BEGIN("w:p/dist");
	ws("p/src/a", "1");
	up("p/dist/sub/x", "x");
	up("p/dist/y", "y");
	link_at(t.upperfd, "p/dist/l", "sub/x");
	before = stat_of(t.upperfd, "p/dist");
	ok(judge_and_apply(), "a new tree is applied (%s)", t.e.text);
	after = stat_of(t.rootfd, "p/dist");
	ok(before.st_ino == after.st_ino, "moved whole");
	ok_workspace("p/ p/dist/ p/dist/l->sub/x p/dist/sub/ p/dist/sub/x=x p/dist/y=y p/src/ "
		     "p/src/a=1",
		"all of it");
	ok_findings("", "without a finding");
	end();
}

static void
test_outputs_replaced(void)
{
	static const char *const rules[] = {"w:p/dist", "r:p/src", NULL};
	static const char *const outputs[] = {"dist/**", "!dist/tmp/**", NULL};
	struct outputs o = {0};
	struct stat before, after;
	int fd = -1;

	begin(rules, outputs);
	ws("p/dist/stale/deep/s", "s");
	ws("p/dist/kept", "old");
	ws("p/dist/tmp/t", "t");
	up("p/dist/kept", "new");
	up("p/dist/more/m", "m");
	up("p/dist/tmp/u", "u");
	hidden("p/dist");
	before = stat_of(t.rootfd, "p/dist");
	ok(!judge() && !commit_outputs(t.commit, &o, &fd, &t.e), "outputs (%s)", t.e.text);
	ok_int((long long)o.n, 4, "those of the set, without what '!' takes back");
	ok_str(o.n == 4 ? o.v[3].path : "", "p/dist/more/m", "at their workspace paths");
	ok_int((long long)stat_of(fd, "p/dist/kept").st_size, 3, "read from the scratch");
	outputs_release(&o);
	ok(!commit_apply(t.commit, &t.e), "applied (%s)", t.e.text);
	after = stat_of(t.rootfd, "p/dist");
	ok(before.st_ino == after.st_ino, "an existing directory is not replaced");
	ok_workspace("p/ p/dist/ p/dist/kept=new p/dist/more/ p/dist/more/m=m p/dist/tmp/ "
		     "p/dist/tmp/t=t p/dist/tmp/u=u",
		"stale outputs are gone, what '!' takes back is kept");
	end();

	begin(rules, outputs);
	ws("p/dist/a", "a");
	ok(judge_and_apply(), "a task that left no output");
	ok_workspace("p/ p/dist/", "its old ones are gone, the glob's own directory stays");
	end();

	begin((const char *const[]){"r:p/src", NULL}, outputs);
	ws("p/dist/a", "a");
	up("p/dist/a", "b");
	hidden("p/dist");
	ok(judge_and_apply(), "outputs without a write grant");
	ok_workspace("p/ p/dist/ p/dist/a=a", "are not touched");
	ok_findings("write p/dist/a", "and the write is a finding");
	end();
}

/* The task started without its outputs, those too that '!' takes back: it can have removed none. */
static void
test_outputs_hidden(void)
{
	static const char *const rules[] = {"w:p", "o:p/dist", NULL};
	static const char *const outputs[] = {"dist/**", "!dist/tmp/**", NULL};

	begin(rules, outputs);
	ws("p/a", "a");
	ws("p/dist/stale", "s");
	ws("p/dist/tmp/t", "t");
	whiteout("p");
	ok(judge_and_apply(), "rm -rf around hidden outputs (%s)", t.e.text);
	ok_workspace("p/ p/dist/ p/dist/tmp/ p/dist/tmp/t=t",
		"the stale ones go, what '!' takes back stays");
	end();
}

static void
test_undeclared(void)
{
	BEGIN("w:p/out", "r:p/src");
	ws("p/src/a", "1");
	up("p/out/x", "x");
	up("p/gen/b/c", "c");
	up("p/src/a", "22");
	if (fs_mkdirs(t.upperfd, "p/empty/below"))
		bug("mkdirs");
	whiteout("p/src/gone");
	ok(judge_and_apply(), "undeclared writes (%s)", t.e.text);
	ok_workspace("p/ p/out/ p/out/x=x p/src/ p/src/a=1", "are not moved, the granted one is");
	ok_findings("write p/empty/below; write p/gen/b/c; write p/src/a", "each named once");
	ok_int((long long)t.r.nfindings, 3, "and counted");
	ok_str(t.r.ndenials ? t.r.denials[1].grant : "",
		"allow.write: [\"gen/b/c\"], or ignore.write to throw it away",
		"with the grant to write");
	end();
}

static void
test_many_findings(void)
{
	BEGIN("r:p");
	for (int i = 0; i < 250; i++) {
		char path[32];

		snprintf(path, sizeof(path), "p/f%03d", i);
		up(path, "x");
	}
	judge();
	ok_int((long long)t.r.nfindings, 250, "the total is exact");
	ok_int((long long)t.r.ndenials, 10, "a directory's list is bounded");
	ok_int((long long)t.r.denials[0].nmore, 240, "and the others are counted there");
	end();
}

static void
test_deletes(void)
{
	BEGIN("w:p/out", "r:p/src");
	ws("p/out/a", "a");
	ws("p/out/b/c", "c");
	ws("p/src/s", "s");
	whiteout("p/out/a");
	whiteout("p/out/b");
	whiteout("p/src/s");
	ok(judge_and_apply(), "deletes (%s)", t.e.text);
	ok_workspace("p/ p/out/ p/src/ p/src/s=s",
		"granted ones are done, a directory with its content");
	ok_findings("delete p/src/s", "the other is a finding");
	end();
}

static void
test_hidden_stays(void)
{
	BEGIN("w:p/src", "dr:p/src/secret", "dr:p/src/sub/key", "r:p/x");
	ws("p/src/a", "a");
	ws("p/src/secret", "k");
	ws("p/src/sub/key", "k");
	ws("p/src/sub/b", "b");
	ws("p/src/all/c", "c");
	whiteout("p/src");
	ok(judge_and_apply(), "rm -rf over hidden files (%s)", t.e.text);
	ok_workspace("p/ p/src/ p/src/secret=k p/src/sub/ p/src/sub/key=k",
		"removes what the task could see");
	ok(has_note("could not see"), "and says that the rest stays");
	ok_int((long long)t.r.nfindings, 0, "which is no finding");
	end();

	BEGIN("w:p/src", "dr:p/src/secret");
	ws("p/src/a", "a");
	ws("p/src/secret", "k");
	ws("p/src/sub/b", "b");
	ws("p/src/sub/c", "c");
	up("p/src/new", "n");
	up("p/src/sub/c", "d");
	opaque("p/src");
	ok(judge_and_apply(), "rm -rf and mkdir over hidden files (%s)", t.e.text);
	ok_workspace("p/ p/src/ p/src/new=n p/src/secret=k p/src/sub/ p/src/sub/c=d",
		"the new ones are there, the visible old ones gone, the hidden one kept");
	end();
}

static void
test_made_meanwhile(void)
{
	BEGIN("w:p/out");
	up("p/out/mine", "m");
	t.commit = NULL;
	ok(!judge(), "a directory that was absent at the start");
	ws("p/out/theirs", "t");
	ok(!commit_apply(t.commit, &t.e), "and that another task made since (%s)", t.e.text);
	ok_workspace("p/ p/out/ p/out/mine=m p/out/theirs=t", "is merged into");
	end();

	BEGIN("w:p/out");
	up("p/out/f", "m");
	up("p/out/d/f", "m");
	ok(!judge(), "judged");
	ws("p/out/f/x", "t");
	ok(commit_apply(t.commit, &t.e), "a directory in the way of a file");
	ok_err(&t.e, "p: by now a directory is where it, or something in it, should go",
		"is an error");
	ok_workspace("p/ p/out/ p/out/d/ p/out/d/f=m p/out/f/ p/out/f/x=t", "the others go on");
	end();
}

/* With a byte at `at`, unless that is -1. */
static void
extend(int dirfd, const char *path, off_t size, off_t at)
{
	cleanup_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || (at >= 0 && pwrite(fd, "x", 1, at) != 1) || ftruncate(fd, size))
		bug("%s: %s", path, strerror(errno));
}

static void
test_noise(void)
{
	static const char *const same[] = {"p/src/a", "p/src/b", "p/src/c", "p/src/d", NULL};

	BEGIN("r:p");
	for (size_t i = 0; same[i]; i++) {
		ws(same[i], "same");
		up(same[i], i == 1 ? "diff" : "same");
		set_mtime(t.rootfd, same[i], 1000);
		set_mtime(t.upperfd, same[i], i == 2 ? 2000 : 1000);
	}
	set_mode(t.upperfd, "p/src/d", 0755);
	link_at(t.rootfd, "p/l", "x");
	link_at(t.upperfd, "p/l", "x");
	ok(judge_and_apply(), "copied up without a change");
	ok_findings("write p/src/b; write p/src/c; write p/src/d",
		"same content, time and mode is no write; other content, time or mode is one");
	end();

	BEGIN("r:p");
	for (size_t i = 0; same[i]; i++) {
		/* a, b: 4 TiB of a hole; b with a byte far out in the one; c: holes at different places */
		ws(same[i], i == 2 ? "x" : "");
		up(same[i], "");
		extend(t.rootfd, same[i], i < 2 ? 4ll << 40 : 1 << 20, i == 1 ? 3ll << 40 : -1);
		extend(t.upperfd, same[i], i < 2 ? 4ll << 40 : 1 << 20, i == 3 ? 0 : -1);
		set_mtime(t.rootfd, same[i], 1000);
		set_mtime(t.upperfd, same[i], 1000);
	}
	ok(judge_and_apply(), "sparse files, copied up without a change");
	ok_findings("write p/src/b; write p/src/c; write p/src/d",
		"are compared without reading holes");
	end();

	BEGIN("w:p");
	ws("p/a", "same");
	up("p/a", "same");
	set_mtime(t.rootfd, "p/a", 1000);
	set_mtime(t.upperfd, "p/a", 2000);
	ok(judge_and_apply(), "a newer time alone");
	ok_int(stat_of(t.rootfd, "p/a").st_mtim.tv_sec, 2000, "is carried over where granted");
	end();
}

static void
test_never(void)
{
	BEGIN("w:p", "r:p");
	ws("p/repo/objects/o", "o");
	ws("p/repo/refs/r", "r");
	ws("p/bare/HEAD", "h");
	ws("p/bare/objects/o", "o");
	ws("p/bare/refs/r", "r");
	up("p/.npmrc", "x");
	up("p/sub/.Husky/pre-commit", "x");
	up("p/sub/.cargo/config.toml", "x");
	up("p/sub/.cargo/other", "x");
	up("p/sub/.git", "gitdir: /evil");
	up("p/two/.GIT/HEAD", "x");
	up("p/three/HEAD", "x");
	up("p/three/objects/o", "x");
	up("p/three/refs/r", "x");
	up("p/four/HEAD", "x");
	up("p/four/commondir", "../repo");
	up("p/repo/HEAD", "x");
	up("p/bare/config", "x");
	up("p/bare/objects/p", "p");
	up("p/vx.config.ts", "x");
	up("p/fine/HEAD", "x");
	ok(judge_and_apply(), "names that somebody executes later (%s)", t.e.text);
	ok_workspace(
		"p/ p/bare/ p/bare/HEAD=h p/bare/objects/ p/bare/objects/o=o "
		"p/bare/objects/p=p p/bare/refs/ p/bare/refs/r=r p/fine/ p/fine/HEAD=x p/repo/ "
		"p/repo/objects/ p/repo/objects/o=o p/repo/refs/ p/repo/refs/r=r p/sub/ "
		"p/sub/.cargo/ p/sub/.cargo/other=x p/two/",
		"are not moved");
	ok_findings(
		"write p/.npmrc; write p/bare/config; write p/four; write p/repo/HEAD; write "
		"p/sub/.Husky; write p/sub/.cargo/config.toml; write p/sub/.git; write p/three; "
		"write p/two/.GIT; write p/vx.config.ts",
		"each is one finding");
	end();

	/* a repository that a rule names, whether or not the host has it */
	for (int is_there = 0; is_there < 2; is_there++) {
		BEGIN("w:p", "w:p/x.git", "w:p/x.git/config.worktree", "w:p/x.git/hooks/mine");
		if (is_there) {
			ws("p/x.git/HEAD", "h");
			ws("p/x.git/objects/o", "o");
			ws("p/x.git/refs/r", "r");
		}
		up("p/x.git/HEAD", "h");
		up("p/x.git/objects/o", "o");
		up("p/x.git/refs/r", "r");
		up("p/x.git/config", "x");
		up("p/x.git/config.worktree", "named");
		up("p/x.git/hooks/mine", "named");
		up("p/x.git/hooks/other", "x");
		link_at(t.upperfd, "p/x.git/modules", "/evil");
		ok(judge_and_apply(), "a repository that is granted (%s)", t.e.text);
		ok_workspace("p/ p/x.git/ p/x.git/HEAD=h p/x.git/config.worktree=named "
			     "p/x.git/hooks/ p/x.git/hooks/mine=named p/x.git/objects/ "
			     "p/x.git/objects/o=o p/x.git/refs/ p/x.git/refs/r=r",
			"is moved but for what it would obey");
		ok_findings("write p/x.git/config; write p/x.git/hooks/other; "
			    "write p/x.git/modules",
			"each is one finding");
		end();
	}

	/* a link in the place of a directory in which some names are obeyed */
	BEGIN("w:p", "w:p/named/.cargo");
	ws("p/old/.cargo/x", "x");
	up("p/gen/config.toml", "x");
	link_at(t.upperfd, "p/.cargo", "gen");
	link_at(t.upperfd, "p/sub/.CLAUDE", "../gen");
	link_at(t.upperfd, "p/old/.cargo", "../gen");
	link_at(t.upperfd, "p/named/.cargo", "../gen");
	link_at(t.upperfd, "p/sub/.Husky", "../gen");
	link_at(t.upperfd, "p/sub/.git", "../gen");
	link_at(t.upperfd, "p/sub/.envrc", "../gen/config.toml");
	up("p/sub/cargo", "x");
	ok(judge_and_apply(), "links to what somebody executes later (%s)", t.e.text);
	ok_workspace("p/ p/gen/ p/gen/config.toml=x p/named/ p/named/.cargo->../gen p/old/ "
		     "p/old/.cargo/ p/old/.cargo/x=x p/sub/ p/sub/cargo=x",
		"are not moved either");
	ok_findings("write p/.cargo; write p/old/.cargo; write p/sub/.CLAUDE; write p/sub/.Husky; "
		    "write p/sub/.envrc; write p/sub/.git",
		"each is one finding");
	end();

	BEGIN("w:p/.npmrc", "w:p/.github/workflows", "w:p/out/.git", "w:p/x.git");
	up("p/.npmrc", "x");
	up("p/.github/workflows/ci.yml", "x");
	up("p/.github/other", "x");
	up("p/out/.git/HEAD", "x");
	up("p/x.git/HEAD", "x");
	up("p/x.git/objects/o", "x");
	up("p/x.git/refs/r", "x");
	ok(judge_and_apply(), "named by their own path");
	ok_workspace(
		"p/ p/.github/ p/.github/workflows/ p/.github/workflows/ci.yml=x p/.npmrc=x "
		"p/out/ p/out/.git/ p/out/.git/HEAD=x p/x.git/ p/x.git/HEAD=x p/x.git/objects/ "
		"p/x.git/objects/o=x p/x.git/refs/ p/x.git/refs/r=x",
		"they are");
	ok_findings("write p/.github/other", "and nothing else is");
	end();

	BEGIN("w:p", "q:.vx");
	up(".vx/history", "x");
	up("p/ok", "x");
	judge_and_apply();
	ok_findings("write .vx/history", "nobody writes into .vx");
	end();
}

static void
test_globs(void)
{
	BEGIN("w:p/**/*.o", "r:p");
	ws("p/src/a.c", "c");
	up("p/src/a.o", "o");
	up("p/src/new/b.o", "o");
	up("p/src/new/b.log", "l");
	up("p/.husky/c.o", "o");
	ok(judge_and_apply(), "writes granted by a pattern (%s)", t.e.text);
	ok_workspace("p/ p/src/ p/src/a.c=c p/src/a.o=o p/src/new/ p/src/new/b.o=o",
		"and the directories on the way to them");
	ok_findings("write p/.husky/c.o; write p/src/new/b.log", "nothing else");
	end();
}

/* What a pattern denies it denies with all that is in it: so the task saw it, and so it is judged. */
static void
test_denied_directories(void)
{
	BEGIN("w:p", "dw:p/*ecret", "w:p/secret/mine");
	up("p/secret/x", "x");
	up("p/secret/deep/y", "y");
	up("p/secret/mine/z", "z");
	up("p/open/x", "x");
	ok(judge_and_apply(), "writes below what a pattern denies (%s)", t.e.text);
	ok_workspace("p/ p/open/ p/open/x=x p/secret/ p/secret/mine/ p/secret/mine/z=z",
		"are not moved, but for what a longer grant names");
	ok_findings("write p/secret/deep/y; write p/secret/x", "each is a finding");
	end();

	BEGIN("w:p/**/*.o", "r:p", "dr:p/*ecret");
	ws("p/secret/a.o", "k");
	ws("p/src/a.o", "o");
	whiteout("p");
	ok(judge_and_apply(), "rm -rf over them (%s)", t.e.text);
	ok_workspace("p/ p/secret/ p/secret/a.o=k p/src/", "removes nothing that was hidden");
	end();

	BEGIN("w:p/**/*.o", "dw:p/*ecret");
	ok(policy_may_make_dir(&t.policy, "p/src") && !policy_may_make_dir(&t.policy, "p/secret/a"),
		"no directory is on the way to a grant that a deny outranks");
	judge_and_apply();
	end();
}

static void
test_tool_caches(void)
{
	BEGIN("w:p/dist", "r:p/src");
	t.policy.derived = true;
	ws("p/node_modules/x", "x");
	up("p/node_modules/.cache/a", "a");
	up("p/src/__pycache__/b", "b");
	up("p/tsconfig.tsbuildinfo", "t");
	up("p/dist/d.tsbuildinfo", "d");
	ok(judge_and_apply(), "tool caches");
	ok_findings("", "are ignored by a derived policy");
	ok(has_note("3 writes to tool caches discarded"), "counted");
	ok_workspace("p/ p/dist/ p/dist/d.tsbuildinfo=d p/node_modules/ p/node_modules/x=x",
		"and committed only where granted");
	end();

	BEGIN("w:p/dist");
	up("p/__pycache__/b", "b");
	judge_and_apply();
	ok_findings("write p/__pycache__/b", "an explicit policy does not ignore them");
	end();
}

/* What ignore.write selects is thrown away; what is granted is kept all the same. */
static void
test_ignored_writes(void)
{
	BEGIN("w:p/dist", "w:p/many/**/*.o", "dw:p/dist/tmp", "iw:p/dist", "iw:p/log/**/*.log",
		"iw:p/many");
	ws("p/dist/tmp/old", "o");
	ws("p/dist/tmp/gone", "g");
	ws("p/log/empty/a.log", "a");
	up("p/dist/kept", "k");
	up("p/dist/tmp/new", "n");
	whiteout("p/dist/tmp/gone");
	whiteout("p/log/empty/a.log");
	up("p/log/b.log", "b");
	up("p/many/.git/HEAD", "h");
	up("p/many/x.o", "x");
	up("p/log/c.txt", "c");
	ok(judge_and_apply(), "ignored writes (%s)", t.e.text);
	ok_findings("write p/log/c.txt", "are no finding");
	ok(has_note("5 writes discarded, as ignore.write says: p/dist/tmp/gone, "),
		"counted, a few named");
	ok_workspace("p/ p/dist/ p/dist/kept=k p/dist/tmp/ p/dist/tmp/gone=g p/dist/tmp/old=o "
		     "p/log/ p/log/empty/ p/log/empty/a.log=a",
		"and the workspace has none of them");
	end();

	BEGIN("w:p/dist", "iw:p/empty");
	ws("p/empty/x", "x");
	if (unlinkat(t.rootfd, "p/empty/x", 0))
		bug("unlink");
	whiteout("p/empty");
	ok(judge_and_apply(), "an ignored directory, removed");
	ok_findings("", "is no finding");
	ok_workspace("p/ p/empty/", "and stays");
	end();
}

/* A repository of the workspace that is granted: its config is free with allow.gitConfig, as a file. */
static void
test_git_config(void)
{
	for (int freed = 0; freed < 2; freed++) {
		BEGIN("w:p/sub/.git", "w:p/other");
		t.policy.git_config = freed;
		ws("p/sub/.git/HEAD", "h");
		ws("p/sub/.git/refs/x", "r");
		ws("p/sub/.git/objects/x", "o");
		ws("p/sub/.git/config", "old");
		ws("p/sub/.git/modules/m/config", "m");
		up("p/sub/.git/config", "new");
		up("p/sub/.git/modules/m/config", "evil");
		up("p/sub/.git/hooks/pre-commit", "evil");
		up("p/alien/.git/config", "evil");
		ok(judge_and_apply(), "gitConfig %d (%s)", freed, t.e.text);
		ok_findings(freed ? "write p/alien/.git; write p/sub/.git/hooks; "
				    "write p/sub/.git/modules/m/config"
				  : "write p/alien/.git; write p/sub/.git/config; "
				    "write p/sub/.git/hooks; write p/sub/.git/modules/m/config",
			freed ? "hooks and other configs stay refused" : "all are refused");
		end();
	}
	BEGIN("w:p/sub/.git");
	t.policy.git_config = true;
	ws("p/sub/.git/HEAD", "h");
	ws("p/sub/.git/refs/x", "r");
	ws("p/sub/.git/objects/x", "o");
	link_at(t.upperfd, "p/sub/.git/config", "/etc/passwd");
	judge_and_apply();
	ok_findings("write p/sub/.git/config", "not so a link in its place");
	end();
}

static void
test_weapons(void)
{
	char list_[256];
	cleanup_close int fd = -1;

	BEGIN("w:p/out");
	up("p/out/suid", "x");
	set_mode(t.upperfd, "p/out/suid", 06755);
	up("p/out/sticky/x", "x");
	set_mode(t.upperfd, "p/out/sticky", 03777);
	up("p/out/ro", "x");
	mark(t.upperfd, "p/out/ro", "user.overlay.origin");
	mark(t.upperfd, "p/out/ro", "user.evil");
	set_mode(t.upperfd, "p/out/ro", 0444);
	mkfifoat(t.upperfd, "p/out/fifo", 0644);
	up("p/out/h1", "h");
	if (linkat(t.upperfd, "p/out/h1", t.upperfd, "p/out/h2", 0))
		bug("link");
	link_at(t.upperfd, "p/out/climb", "../../../etc/passwd");
	ok(judge_and_apply(), "what must not come out (%s)", t.e.text);
	ok_int(stat_of(t.rootfd, "p/out/suid").st_mode & 07777, 0755, "set-id bits are cleared");
	ok_int(stat_of(t.rootfd, "p/out/sticky").st_mode & 07777, 0777, "sticky too");
	ok_int(stat_of(t.rootfd, "p/out/ro").st_mode & 07777, 0444, "a read-only file stays so");
	fd = fs_open_beneath(t.rootfd, "p/out/ro", O_RDONLY, 0);
	ok_int(flistxattr(fd, list_, sizeof(list_)), 0, "extended attributes are gone");
	ok_int((long long)stat_of(t.rootfd, "p/out/h1").st_nlink, 2,
		"two names of one file stay so");
	ok(has_note("p/out/fifo: a fifo"), "a fifo is dropped with a note");
	ok_workspace("p/ p/out/ p/out/climb->../../../etc/passwd p/out/h1=h p/out/h2=h p/out/ro=x "
		     "p/out/sticky/ p/out/sticky/x=x p/out/suid=x",
		"links are text");
	end();
}

static void
test_modes(void)
{
	static const char *const rules[] = {"w:p/out", NULL};
	static const char *const outputs[] = {"out/**", NULL};

	for (int round = 0; round < 2; round++) {
		struct outputs o = {0};
		int fd;

		begin(rules, outputs);
		if (round) { /* over what an earlier run left so */
			ws("p/out/a/b/f", "old");
			ws("p/out/a/b/stale", "old");
			fs_mkdirs(t.rootfd, "p/out/z");
			set_mode(t.rootfd, "p/out/a/b", 0555);
			set_mode(t.rootfd, "p/out/a", 0555);
		}
		up("p/out/a/b/f", "f");
		fs_mkdirs(t.upperfd, "p/out/z");
		up("p/out/none", "n");
		set_mode(t.upperfd, "p/out/none", 0);
		if (round)
			hidden("p/out");
		/* the helper's scan looks into these as well */
		t.e = (struct err)ERR_INIT;
		ok(!judge(), "modes (%s)", t.e.text);
		end();

		begin(rules, outputs);
		if (round) {
			ws("p/out/a/b/f", "old");
			ws("p/out/a/b/stale", "old");
			fs_mkdirs(t.rootfd, "p/out/z");
			set_mode(t.rootfd, "p/out/a/b", 0555);
			set_mode(t.rootfd, "p/out/a", 0555);
		}
		up("p/out/a/b/f", "f");
		up("p/out/none", "n");
		set_mode(t.upperfd, "p/out/none", 0);
		set_mode(t.upperfd, "p/out/a/b", 0555);
		set_mode(t.upperfd, "p/out/a", 0555);
		fs_mkdirs(t.upperfd, "p/out/z");
		ok(!judge(), "output directories without permissions (%s)", t.e.text);
		ok(!commit_outputs(t.commit, &o, &fd, &t.e), "can be stored (%s)", t.e.text);
		for (size_t i = 0; i < o.n; i++) {
			cleanup_close int f = fs_open_beneath(fd, o.v[i].path, O_RDONLY, 0);

			if (f < 0)
				ok(false, "%s is readable", o.v[i].path);
			if (!strcmp(o.v[i].path, "p/out/none"))
				ok_int(o.v[i].mode, 0, "with the modes that the task set");
		}
		outputs_release(&o);
		ok(!commit_apply(t.commit, &t.e), "and moved (%s)", t.e.text);
		ok_int(stat_of(t.rootfd, "p/out/a").st_mode & 07777, 0555, "a has its mode");
		ok_int(stat_of(t.rootfd, "p/out/a/b").st_mode & 07777, 0555, "b has its mode");
		ok_int(stat_of(t.rootfd, "p/out/none").st_mode & 07777, 0, "none has its mode");
		set_mode(t.rootfd, "p/out/none", 0600);
		ok_workspace("p/ p/out/ p/out/a/ p/out/a/b/ p/out/a/b/f=f p/out/none=n p/out/z/",
			"the new content, the stale file gone");
		end();
	}
}

static void
test_type_changes(void)
{
	BEGIN("w:p/out", "dr:p/out/d2/secret");
	ws("p/out/f", "file");
	ws("p/out/d/x/y", "y");
	ws("p/out/d2/secret", "k");
	ws("p/out/l/z", "z");
	up("p/out/f/now/a", "dir");
	up("p/out/d", "file");
	up("p/out/d2", "file");
	link_at(t.upperfd, "p/out/l", "f");
	ok(judge_and_apply(), "files for directories and back (%s)", t.e.text);
	ok_workspace("p/ p/out/ p/out/d=file p/out/d2/ p/out/d2/secret=k p/out/f/ p/out/f/now/ "
		     "p/out/f/now/a=dir p/out/l->f",
		"each is replaced");
	ok_findings("write p/out/d2", "but not a directory with hidden names");
	end();
}

static void
test_parents_swapped(void)
{
	BEGIN("w:p/a", "w:p/b", "w:p/c");
	ws("p/a/x", "old");
	ws("p/b/x", "old");
	ws("p/c/x", "old");
	ws("outside/x", "safe");
	up("p/a/x", "new");
	up("p/b/x", "new");
	up("p/c/x", "new");
	ok(!judge(), "judged");
	renameat(t.rootfd, "p/b", t.rootfd, "moved");
	link_at(t.rootfd, "p/b", "../outside");
	ok(commit_apply(t.commit, &t.e), "a parent that became a link");
	ok_err(&t.e, "p/b/x: a directory above it became a link meanwhile", "is refused, by name");
	ok_workspace("moved/ moved/x=old outside/ outside/x=safe p/ p/a/ p/a/x=new p/b->../outside "
		     "p/c/ p/c/x=new",
		"never followed; the others are moved");
	end();

	BEGIN("w:p/a");
	ws("p/a/gone", "old");
	whiteout("p/a/gone");
	up("p/a/more", "m");
	ok(!judge(), "judged");
	unlinkat(t.rootfd, "p/a/gone", 0);
	ws("p/a/other", "o");
	renameat(t.rootfd, "p/a/other", t.rootfd, "p/a/gone");
	ok(!commit_apply(t.commit, &t.e), "a file made anew since it was judged");
	ok_workspace("p/ p/a/ p/a/gone=o p/a/more=m", "is not removed");
	end();
}

static void
test_bad_lists(void)
{
	struct status s;

	BEGIN("w:p");
	t.commit = commit_new(&t.policy, t.rootfd, t.area, &t.scratch);
	status_init(&s, STATUS_ENTRY);
	strbuf_adds(&s.u.entry.path, "p/x/y");
	commit_add_entry(t.commit, &s.u.entry);
	status_release(&s);
	ok(commit_judge(t.commit, &t.r, &t.e), "an entry without its parent");
	ok_err(&t.e, "out of order at p/x/y", "is refused");
	end();
}

static void
test_deep(void)
{
	enum {
		DEPTH = 3000
	};
	cleanup_close int fd = -1;

	BEGIN("w:p/out");
	fs_mkdirs(t.upperfd, "p/out");
	fd = fs_open_beneath(t.upperfd, "p/out", O_RDONLY | O_DIRECTORY, 0);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		if (mkdirat(fd, "d", 0755) ||
			(next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
			bug("deep: %s", strerror(errno));
		close(fd);
		fd = next;
	}
	ok(!judge_and_apply(), "a tree deeper than a path can be");
	ok_err(&t.e, "too long to be named (at most 4095): it begins with p/out/d/d/d",
		"is refused");
	end();
}

/* Crashes. */

static void
fill_crash_case(void)
{
	static const char *const rules[] = {
		"w:p/dist", "w:p/new", "w:p/src", "dr:p/src/secret", NULL};
	static const char *const outputs[] = {"dist/**", NULL};

	begin(rules, outputs);
	ws("p/dist/a", "old");
	ws("p/dist/b", "old");
	ws("p/dist/stale/s", "old");
	ws("p/dist/t/was-dir", "old");
	ws("p/src/x", "old");
	ws("p/src/secret", "k");
	up("p/dist/a", "new");
	up("p/dist/b", "new");
	up("p/dist/t", "file");
	up("p/dist/d/e", "new");
	hidden("p/dist");
	up("p/new/n/m", "new");
	set_mode(t.upperfd, "p/new/n", 0555);
	whiteout("p/src");
}

static const char after_crash_case[] = "p/ p/dist/ p/dist/a=new p/dist/b=new p/dist/d/ "
				       "p/dist/d/e=new p/dist/t=file p/new/ p/new/n/ "
				       "p/new/n/m=new p/src/ p/src/secret=k";

/* In a child that dies at the n-th announced point. True when it got to its end. */
static bool
crash(int n)
{
	pid_t pid = fork();

	if (!pid) {
		if (judge())
			_exit(8);
		crash_at(n);
		_exit(commit_apply(t.commit, &t.e) ? 9 : 0);
	}
	return crash_finished(pid);
}

static void
test_crashes(const char *where)
{
	int n = 0;
	bool all = true, finished;
	cleanup_free char *before = NULL;

	do {
		cleanup_free char *got = NULL, *again = NULL;
		int rc;

		fill_crash_case();
		free(before);
		before = listing(t.rootfd);
		finished = crash(n++);
		t.e = (struct err)ERR_INIT;
		rc = moves_roll_forward(t.scratch.fd, t.rootfd, &t.e);
		got = listing(t.rootfd);
		if (rc < 0 || strcmp(got, after_crash_case) != 0) {
			all = false;
			diag("%s, point %d: %d %s", where, n - 1, rc, t.e.text);
			diag("  %s", got);
		}
		if (stat_of(t.rootfd, "p/new/n").st_mode != (S_IFDIR | 0555)) {
			all = false;
			diag("%s, point %d: mode", where, n - 1);
		}
		/* and a second recovery has nothing to do */
		if (moves_roll_forward(t.scratch.fd, t.rootfd, &t.e)) {
			all = false;
			diag("%s, point %d: done twice", where, n - 1);
		}
		again = listing(t.rootfd);
		if (strcmp(again, got) != 0)
			all = false;
		set_mode(t.rootfd, "p/new/n", 0755);
		scratch_drop(t.area, &t.scratch);
		end();
	} while (!finished);
	ok(all && n > 10, "%s: killed at each of %d points, then rolled forward", where, n);
}

/* Killed in the middle of rolling forward, again and again. */
static void
test_crash_in_recovery(void)
{
	int stuck = 0;

	fill_crash_case();
	crash(0); /* right after the list was written */
	for (int n = 0; n < 40; n++) {
		pid_t pid = fork();

		if (!pid) {
			crash_at(n);
			_exit(moves_roll_forward(t.scratch.fd, t.rootfd, &t.e) < 0 ? 9 : 0);
		}
		stuck += !crash_finished(pid);
	}
	ok(stuck > 5, "recovery killed %d times", stuck);
	ok_workspace(after_crash_case, "ends the same");
	scratch_drop(t.area, &t.scratch);
	end();
}

static void
test_no_list_yet(void)
{
	cleanup_free char *before = NULL, *got = NULL;

	fill_crash_case();
	before = listing(t.rootfd);
	ok(!judge(), "killed before the list was written");
	commit_free(t.commit);
	t.commit = NULL;
	got = listing(t.rootfd);
	ok_str(got, before, "nothing has happened");
	end();
}

static void
test_lists(void)
{
	struct moves m = {0}, back = {0};
	struct err e = ERR_INIT;
	static const char *const bad[] = {
		"",
		"vx-moves 2\n",
		"vx-moves 1\n@end\n",
		"vx-moves 2\nend\n",
		"vx-moves 2\nscratch 1 1\nend\n",
		"vx-moves 2\n@place 1 a\n",
		"vx-moves 2\n@place 1 ../a\nend\n",
		"vx-moves 2\n@place 1 /a\nend\n",
		"vx-moves 2\n@place a\nend\n",
		"vx-moves 2\n@bring 1 a\nend\n",
		"vx-moves 2\n@rmdir \nend\n",
		"vx-moves 2\n@mode 9 a\nend\n",
		"vx-moves 2\n@shred a\nend\n",
		"vx-moves 2\n@@rmdir a\nend\n",
	};
	cleanup_free char *line = NULL;
	struct statx sx;

	BEGIN("w:p");
	moves_add(&m, MOVE_OPEN, "a b");
	moves_add(&m, MOVE_PLACE, "x\ny\\n")->ino = UINT64_MAX;
	moves_add(&m, MOVE_REMOVE, "r")->born = 7;
	moves_add(&m, MOVE_RMDIR, "d");
	moves_add(&m, MOVE_MODE, "end")->mode = 02555;
	moves_add(&m, MOVE_BRING, "e f")->number = 12;
	ok(!moves_write(&m, t.scratch.fd, &e) && moves_read(t.scratch.fd, &back, &e) == 1,
		"a list is read back (%s)", e.text);
	ok(back.n == m.n && !strcmp(back.v[1].path, m.v[1].path) && back.v[1].ino == UINT64_MAX &&
			back.v[2].born == 7 && back.v[4].mode == 02555 &&
			back.v[5].kind == MOVE_BRING && back.v[5].number == 12,
		"as it was");
	moves_release(&back);
	moves_release(&m);
	if (statx(t.scratch.fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &sx))
		bug("statx: %s", strerror(errno));
	line = xasprintf("scratch %llu %llu\n", (unsigned long long)sx.stx_ino,
		(unsigned long long)sx.stx_btime.tv_sec * 1000000000 + sx.stx_btime.tv_nsec);
	for (size_t i = 0; i <= array_len(bad); i++) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		struct err why = ERR_INIT;

		for (const char *c = i < array_len(bad) ? bad[i] : "vx-moves 2\n@rmdir a\nend\n";
			*c; c++) {
			if (*c == '@')
				strbuf_adds(&text, line);
			else
				strbuf_addch(&text, *c);
		}
		fs_replace_file(t.scratch.fd, "moves", text.buf, text.len, 0600);
		if (i == array_len(bad)) {
			ok(moves_read(t.scratch.fd, &back, &why) == 1, "while a good one is read");
			moves_release(&back);
			break;
		}
		ok(moves_read(t.scratch.fd, &back, &why) < 0, "a bad list is refused: %s",
			why.text);
	}
	scratch_drop(t.area, &t.scratch);
	end();
}

/* Everything once more, with the scratch on a tmpfs. */
static void
test_copies(void)
{
	struct stat here, there;
	char own[] = "/dev/shm/vx-test-commit.XXXXXX";
	cleanup_strbuf struct strbuf area = STRBUF_INIT;

	if (stat("/dev/shm", &there) || stat(top, &here) || here.st_dev == there.st_dev ||
		!mkdtemp(own)) {
		skip("a scratch on another file system", "there is no other one at /dev/shm");
		return;
	}
	setenv("VX_SCRATCH_DIR", own, 1);
	scratch_elsewhere = true;
	BEGIN("w:p/a");
	ok(!strncmp(scratch_area_path(t.area), own, strlen(own)),
		"a scratch on another file system");
	ws("p/a/x", "old");
	ws("p/a/d/y", "old");
	up("p/a/x", "new");
	up("p/a/d/z", "new");
	up("p/a/e/f", "new");
	link_at(t.upperfd, "p/a/e/l", "f");
	set_mtime(t.upperfd, "p/a/e/f", 1234);
	set_mode(t.upperfd, "p/a/e/f", 0751);
	set_mtime(t.upperfd, "p/a/e", 5678);
	ok(judge_and_apply(), "moved by copies (%s)", t.e.text);
	ok_workspace(
		"p/ p/a/ p/a/d/ p/a/d/y=old p/a/d/z=new p/a/e/ p/a/e/f=new p/a/e/l->f p/a/x=new",
		"all of it, and nothing beside it");
	ok_int(stat_of(t.rootfd, "p/a/e/f").st_mtim.tv_sec, 1234, "with its times");
	ok_int(stat_of(t.rootfd, "p/a/e").st_mtim.tv_sec, 5678, "those of directories too");
	ok_int(stat_of(t.rootfd, "p/a/e/f").st_mode & 07777, 0751, "and modes");
	end();
	test_crashes("scratch on another file system");
	test_crash_in_recovery();
	test_type_changes();
	test_made_meanwhile();
	strbuf_addf(&area, "%s/vx-scratch-%u", own, (unsigned)geteuid());
	rmdir(area.buf);
	rmdir(own);
}

/* Directories that were copied into the scratch before the task started: of what is in them only what
 * changed is told. */
static void
test_preloaded(void)
{
	struct stat kept, dir, moved;

	BEGIN("w:p/out", "w:p/cache");
	ws("p/out/d/f", "f");
	ws("p/out/d/sub/g", "g");
	ws("p/out/kept", "kept");
	ws("p/out/gone", "x");
	ws("p/out/old", "old");
	ws("p/cache/c", "c");
	up("p/out/kept", "kept");
	untold("p/out/kept");
	up("p/out/old", "new");
	up("p/cache/d/f", "f");
	up("p/cache/d/sub/g", "g");
	up("p/cache/c", "c");
	untold("p/cache/c");
	set_mode(t.upperfd, "p/cache/d/sub", 0550);
	ws("p/out/later", "later"); /* somebody else's, since then */
	opaque("p/cache/d");
	gone = (const char *const[]){"p/out/d", "p/out/gone", NULL};
	kept = stat_of(t.rootfd, "p/out/kept");
	dir = stat_of(t.rootfd, "p/out");
	moved = stat_of(t.upperfd, "p/cache/d");
	ok(judge_and_apply(), "a directory renamed from one grant to another (%s)", t.e.text);
	ok_findings("", "without a finding");
	ok_workspace("p/ p/cache/ p/cache/c=c p/cache/d/ p/cache/d/f=f p/cache/d/sub/ "
		     "p/cache/d/sub/g=g p/out/ p/out/kept=kept p/out/later=later p/out/old=new",
		"nothing stays behind, what was not told stays as it was");
	ok(stat_of(t.rootfd, "p/out/kept").st_ino == kept.st_ino, "in the same inode");
	ok(stat_of(t.rootfd, "p/out").st_ino == dir.st_ino, "the directory too");
	ok(stat_of(t.rootfd, "p/cache/d").st_ino == moved.st_ino, "the other moved whole");
	ok_int(stat_of(t.rootfd, "p/cache/d/sub").st_mode & 07777, 0550, "with its modes");
	end();

	/* Gone from the workspace meanwhile: what the task changed is made, nothing else comes back. */
	BEGIN("w:p/out");
	ws("p/out/d/f", "f");
	up("p/out/d/f", "F");
	up("p/out/d/kept", "kept");
	untold("p/out/d/kept");
	up("p/out/d/sub/x", "x");
	untold("p/out/d/sub");
	set_mode(t.upperfd, "p/out/d/sub", 0555);
	gone = (const char *const[]){"p/out/d/gone", NULL};
	tell_entries();
	fs_remove_tree(t.rootfd, "p");
	mkdirat(t.rootfd, "p", 0755);
	mkdirat(t.rootfd, "p/out", 0755);
	ok(!commit_judge(t.commit, &t.r, &t.e) && !commit_apply(t.commit, &t.e),
		"a directory removed meanwhile (%s)", t.e.text);
	ok_workspace("p/ p/out/ p/out/d/ p/out/d/f=F", "only what was told is made");
	end();
}

int
main(void)
{
	if (!mkdtemp(top))
		bug("mkdtemp: %s", strerror(errno));
	unsetenv("VX_SCRATCH_DIR");
	umask(022);
	test_new_tree();
	test_outputs_replaced();
	test_outputs_hidden();
	test_undeclared();
	test_many_findings();
	test_deletes();
	test_hidden_stays();
	test_made_meanwhile();
	test_noise();
	test_never();
	test_globs();
	test_denied_directories();
	test_tool_caches();
	test_ignored_writes();
	test_git_config();
	test_weapons();
	test_modes();
	test_type_changes();
	test_parents_swapped();
	test_bad_lists();
	test_deep();
	test_lists();
	test_no_list_yet();
	test_crashes("scratch in the workspace");
	test_crash_in_recovery();
	test_preloaded();
	test_copies();
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}

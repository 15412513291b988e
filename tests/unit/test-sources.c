/* SPDX-License-Identifier: MIT */
/* The memory of configs: whatever happens to them, a load with it says what one without it says. */
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/filestate.h"
#include "util/strbuf.h"
#include "workspace/root.h"
#include "workspace/workspace.h"
#include <sys/stat.h>
#include <time.h>

#define CONFIG(command) "{'tasks': {'t': {'exec': {'command': '" command "'}}}}"

static int state_fd;

/* All that a load learns of the workspace at w, or its error. */
static void
describe(int statefd, struct strbuf *out)
{
	cleanup_free char *start = path_join(ws_path, "w");
	struct err e = ERR_INIT;
	struct root root;
	struct workspace w;

	if (root_find(start, ROOT_EVALUATE, &root, &e) < 0) {
		strbuf_addf(out, "no root: %s", e.text);
		return;
	}
	if (workspace_load(&root, statefd, &w, &e) < 0) {
		strbuf_addf(out, "error: %s", e.text);
		root_release(&root);
		return;
	}
	for (size_t i = 0; i < w.nprojects; i++) {
		const struct project *p = w.projects[i];

		strbuf_addf(out, "%s at '%s'%s", p->name, p->dir, p->has_manifest ? " +" : "");
		for (size_t k = 0; k < p->def.ntasks; k++)
			strbuf_addf(out, " %s=%s (%s)", p->def.tasks[k].name,
				p->def.tasks[k].canonical, p->def.tasks[k].place);
		for (size_t k = 0; k < p->ndeps; k++)
			strbuf_addf(out, " ->%s", p->deps[k]->name);
		strbuf_addch(out, '\n');
	}
	for (size_t i = 0; i < w.nnotes; i++)
		strbuf_addf(out, "note: %s\n", w.notes[i]);
	workspace_release(&w);
	root_release(&root);
}

/* Until nothing that was changed up to now is near any more: ctime cannot be set. */
static void
settle(void)
{
	uint64_t now = clock_wall_ns();

	while (clock_files_ns() < now + 60 * 1000000u)
		;
}

static ino_t
memory_ino(void)
{
	struct stat st;

	return fstatat(state_fd, "sources", &st, 0) ? 0 : st.st_ino;
}

static struct strbuf before = STRBUF_INIT;

/* A workspace that is remembered whole. */
static void
begin(void)
{
	ino_t ino;

	ws_begin();
	ws_write("w/package.json", "{'workspaces': ['packages/*']}");
	ws_write(
		"w/packages/a/package.json", "{'name': 'a', 'dependencies': {'b': 'workspace:*'}}");
	ws_write("w/packages/a/vx.config.json", CONFIG("one"));
	ws_write("w/packages/b/package.json", "{'name': 'b', 'dependencies': {}}");
	ws_write("w/packages/b/vx.config.json", CONFIG("one"));
	ws_write("w/packages/c/vx.config.json", CONFIG("a longer one"));
	ws_write("elsewhere/vx.config.json", CONFIG("two"));
	fs_mkdirs(ws_fd, "state");
	state_fd = openat(ws_fd, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	settle();
	strbuf_reset(&before);
	describe(state_fd, &before);
	ino = memory_ino();
	strbuf_reset(&before);
	describe(state_fd, &before);
	if (!ino || memory_ino() != ino)
		bug("not all is remembered");
}

static void
end(void)
{
	close(state_fd);
	ws_end();
}

/* After a change that must show. */
static void
check(bool differs, const char *name)
{
	cleanup_strbuf struct strbuf fresh = STRBUF_INIT, now = STRBUF_INIT, again = STRBUF_INIT;

	describe(-1, &fresh);
	describe(state_fd, &now);
	ok_str(now.buf, fresh.buf, name);
	ok(!differs || strcmp(fresh.buf, before.buf) != 0, "which is another workspace");
	describe(state_fd, &again);
	ok_str(again.buf, fresh.buf, "and the next load says the same");
}

static void
move(const char *from, const char *to)
{
	if (renameat(ws_fd, from, ws_fd, to))
		bug("rename %s: %s", from, strerror(errno));
}

static struct stat
look(const char *path)
{
	struct stat st;

	if (fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW))
		bug("stat %s", path);
	return st;
}

static void
set_times(const char *path, const struct stat *st)
{
	struct timespec t[2] = {st->st_atim, st->st_mtim};

	if (utimensat(ws_fd, path, t, AT_SYMLINK_NOFOLLOW))
		bug("utimensat %s", path);
}

static void
set_mode(const char *path, mode_t mode)
{
	if (fchmodat(ws_fd, path, mode, 0))
		bug("chmod %s", path);
}

#define A "w/packages/a"

static void
test_files(void)
{
	struct stat st;

	begin();
	st = look(A "/vx.config.json");
	ws_write(A "/vx.config.json", CONFIG("two"));
	set_times(A "/vx.config.json", &st);
	check(true, "written in place, size and mtime as before");
	end();

	begin();
	st = look(A "/vx.config.json");
	ws_write(A "/new", CONFIG("two"));
	set_times(A "/new", &st);
	move(A "/new", A "/vx.config.json");
	check(true, "replaced by rename, size and mtime as before");
	end();

	begin();
	move(A "/vx.config.json", "one");
	move("w/packages/c/vx.config.json", A "/vx.config.json");
	move("one", "w/packages/c/vx.config.json");
	check(true, "two configs change places");
	end();

	begin();
	ws_write(A "/package.json", "{'name': 'a', 'dependencies': {'x': 'workspace:*'}}");
	check(true, "a manifest");
	end();

	begin();
	ws_write(A "/vx.config.json", "{'tasks': [}");
	check(true, "a config that is wrong");
	ws_write(A "/vx.config.json", CONFIG("one"));
	check(false, "and is put right");
	end();

	begin();
	ws_remove(A "/vx.config.json");
	ws_link(A "/vx.config.json", "../../../elsewhere/vx.config.json");
	check(true, "a file that becomes a link");
	settle();
	check(true, "and stays one");
	check(true, "and is remembered");
	ws_write("elsewhere/vx.config.json", CONFIG("six"));
	check(true, "what it leads to is written");
	end();

	begin();
	if (geteuid()) {
		set_mode(A "/vx.config.json", 0);
		check(true, "a config that may not be read any more");
		set_mode(A "/vx.config.json", 0644);
		set_mode(A, 0311);
		check(true, "a directory that may not be listed any more");
		set_mode(A, 0755);
	} else {
		skip("a config that may not be read any more", "root may read all");
	}
	end();
}

static void
test_names(void)
{
	begin();
	ws_remove(A "/vx.config.json");
	check(true, "a config goes");
	ws_write(A "/vx.config.json", CONFIG("one"));
	check(false, "and comes back");
	ws_remove(A "/package.json");
	check(true, "a manifest goes");
	end();

	begin();
	ws_write(A "/vx.config.ts", "");
	check(true, "a second config");
	end();

	begin();
	ws_remove(A "/package.json");
	fs_mkdirs(ws_fd, A "/package.json");
	check(true, "a directory in the place of a manifest");
	end();

	begin();
	ws_write(A "/vx.config.json.bak", "");
	check(false, "an unrelated name");
	end();

	begin();
	ws_write("w/packages/0/vx.config.json", CONFIG("new"));
	check(true, "a project is added");
	end();

	begin();
	move("w/packages/b", "b");
	check(true, "a project goes");
	move("b", "w/packages/b");
	check(false, "and comes back");
	end();

	begin();
	move("w/packages/c", "w/packages/d");
	check(true, "a project is renamed");
	end();

	begin();
	move("w/packages/c", "c");
	move(A, "w/packages/c");
	move("c", A);
	check(true, "two projects change places");
	end();

	begin();
	ws_write("w/package.json", "{'workspaces': ['packages/a', 'packages/b']}");
	check(true, "the list of members");
	end();
}

static void
test_links(void)
{
	begin();
	move("w/packages/c", "w/c");
	ws_link("w/packages/c", "../c");
	check(true, "a project is moved, and a link to it put in its place");
	end();

	begin();
	move("w/packages", "w/real");
	ws_link("w/packages", "real");
	check(true, "the directory of all projects");
	end();

	begin();
	move("w/packages/c", "c");
	ws_link("w/packages/c", "../../c");
	check(true, "out of the workspace");
	end();
}

/* In one tick of the clock that stamps files, again and again: no stat can tell. */
static void
test_same_tick(void)
{
	cleanup_strbuf struct strbuf now = STRBUF_INIT;
	unsigned wrong = 0;

	begin();
	for (int i = 0; i < 300; i++) {
		const char *text = i % 2 ? CONFIG("two") : CONFIG("six");

		ws_write(A "/vx.config.json", text);
		strbuf_reset(&now);
		describe(state_fd, &now);
		wrong += !strstr(now.buf, i % 2 ? "two" : "six");
	}
	ok_int((int)wrong, 0, "300 writes of one size, each seen");
	for (int i = 0; i < 300; i++) {
		if (i % 2)
			ws_write(A "/vx.config.ts", "");
		else if (i)
			ws_remove(A "/vx.config.ts");
		strbuf_reset(&now);
		describe(state_fd, &now);
		wrong += (strstr(now.buf, "two configs") != NULL) != i % 2;
	}
	ok_int((int)wrong, 0, "300 names that come and go");
	end();
}

/* The memory itself. */
static void
read_memory(struct strbuf *out)
{
	struct err e = ERR_INIT;

	if (fd_read_file(state_fd, "sources", 1 << 20, out, &e))
		bug("%s", e.text);
}

static void
write_memory(const struct strbuf *b)
{
	if (fs_replace_file(state_fd, "sources", b->buf, b->len, 0600))
		bug("write sources");
}

static void
test_memory(void)
{
	cleanup_strbuf struct strbuf good = STRBUF_INIT, bad = STRBUF_INIT;

	begin();
	read_memory(&good);
	for (size_t i = 0; i < good.len; i += i < 400 ? 1 : 97) {
		cleanup_strbuf struct strbuf now = STRBUF_INIT;

		strbuf_reset(&bad);
		strbuf_add(&bad, good.buf, good.len);
		bad.buf[i] ^= 0x10;
		write_memory(&bad);
		describe(state_fd, &now);
		if (strcmp(now.buf, before.buf) != 0) {
			ok_str(now.buf, before.buf, "a bit of it is damaged");
			break;
		}
	}
	for (size_t n = 0; n < good.len; n += 131) {
		strbuf_reset(&bad);
		strbuf_add(&bad, good.buf, n);
		write_memory(&bad);
		strbuf_reset(&bad);
		describe(state_fd, &bad);
		if (strcmp(bad.buf, before.buf) != 0)
			break;
	}
	ok_str(bad.buf, before.buf, "damaged or cut short, it is none");
	unlinkat(state_fd, "sources", 0);
	mkfifoat(state_fd, "sources", 0600);
	check(false, "a fifo in its place");
	unlinkat(state_fd, "sources", 0);
	if (symlinkat("nowhere", state_fd, "sources"))
		bug("symlink");
	check(false, "a link");
	unlinkat(state_fd, "sources", 0);
	fs_mkdirs(state_fd, "sources/full");
	check(false, "a directory");
	end();
}

/* That it is used at all shows when it says what no file does. */
static void
test_use(void)
{
	cleanup_strbuf struct strbuf now = STRBUF_INIT;
	ino_t ino;

	begin();
	ino = memory_ino();
	describe(state_fd, &now);
	ok(memory_ino() == ino, "what is remembered is not written again");
	settle();
	ws_write(A "/unrelated", "");
	settle();
	strbuf_reset(&now);
	describe(state_fd, &now);
	ok(memory_ino() != ino, "what was read anew is");
	ino = memory_ino();
	strbuf_reset(&now);
	describe(state_fd, &now);
	ok(memory_ino() == ino, "with what stays of the same directory");
	fs_remove_tree(ws_fd, "w/packages/c");
	settle();
	strbuf_reset(&now);
	describe(state_fd, &now);
	ok(memory_ino() != ino, "and what is gone is forgotten");
	strbuf_reset(&now);
	read_memory(&now);
	ok(!memmem(now.buf, now.len, "a longer one", 12), "with its text");
	end();
}

/* What stat says, and when it was said. */
static void
test_state(void)
{
	const int64_t sec = 1000000000;
	const struct timespec t = {1000, 5}, whole = {1000, 0};
	const struct stat st = {.st_dev = 1,
		.st_ino = 2,
		.st_size = 3,
		.st_mode = S_IFREG | 0644,
		.st_uid = 4,
		.st_gid = 5,
		.st_mtim = t,
		.st_ctim = t};
	struct filestate f;
	struct stat now;

	filestate_take(&f, &st, 1000 * sec + 50 * 1000000);
	ok(!filestate_holds(&f, &st), "read within 50 ms of the last write");
	filestate_take(&f, &st, 1000 * sec + 50 * 1000000 + 6);
	ok(filestate_holds(&f, &st), "later");
	now = st;
	now.st_mtim = now.st_ctim = whole;
	filestate_take(&f, &now, 1002 * sec + 50 * 1000000);
	ok(!filestate_holds(&f, &now), "within 2 s where a clock counts seconds");
	filestate_take(&f, &now, 1002 * sec + 50 * 1000000 + 1);
	ok(filestate_holds(&f, &now), "later");
	now.st_ctim = (struct timespec){0, 0};
	filestate_take(&f, &now, 2000 * sec);
	ok(!filestate_holds(&f, &now), "never where no time of change is kept");
	filestate_take(&f, &st, 2000 * sec);
#define DIFFERS(field)                                                                             \
	now = st;                                                                                  \
	now.field++;                                                                               \
	ok(!filestate_holds(&f, &now), "another " #field)
	DIFFERS(st_dev);
	DIFFERS(st_ino);
	DIFFERS(st_size);
	DIFFERS(st_mode);
	DIFFERS(st_uid);
	DIFFERS(st_gid);
	DIFFERS(st_mtim.tv_nsec);
	DIFFERS(st_mtim.tv_sec);
	DIFFERS(st_ctim.tv_nsec);
	DIFFERS(st_ctim.tv_sec);
}

int
main(void)
{
	test_state();
	test_use();
	test_files();
	test_names();
	test_links();
	test_same_tick();
	test_memory();
	return tap_done();
}

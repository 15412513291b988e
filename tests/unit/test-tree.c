/* SPDX-License-Identifier: MIT */
#include "cache/moves.h"
#include "cache/stage.h"
#include "cache/store.h"
#include "cache/tree.h"
#include "tests/unit/crash.h"
#include "tests/unit/globs.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static struct arena arena;
static struct globset dist;
static struct store *store;
static int cachefd = -1;

static void
begin(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	cachefd = fs_open_mkdirs(ws_fd, ".cache");
	if (cachefd < 0 || store_open(cachefd, &store, &e))
		bug("%s", e.text);
}

static void
end(void)
{
	store_close(store);
	close(cachefd);
	ws_end();
}

static void
set_mode(const char *path, mode_t mode)
{
	if (fchmodat(ws_fd, path, mode, 0))
		bug("chmod %s", path);
}

static struct digest
save(const struct globset *set)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	struct digest d;
	uint64_t bytes;

	if (outputs_scan(ws_fd, set, NULL, 0, &o, &e) ||
		tree_save(store, ws_fd, set, &o, &d, &bytes, &e))
		bug("%s", e.text);
	outputs_release(&o);
	return d;
}

static int
restore_part(const struct globset *set, const struct digest *d, const struct outputs_part *part)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	struct stage *stage = stage_new(ws_fd);
	int r = tree_restore(store, stage, d, ws_fd, set, NULL, 0, part, &o, &e);

	stage_free(stage);
	if (r < 0)
		diag("%s", e.text);
	outputs_release(&o);
	return r;
}

static int
restore(const struct globset *set, const struct digest *d)
{
	return restore_part(set, d, NULL);
}

static int
remove_in(const char *dir, const char *name)
{
	cleanup_close int fd = openat(ws_fd, dir, O_PATH | O_CLOEXEC);

	return fs_remove_tree(fd, name);
}

/* All of the workspace but the cache and .vx, as text: type, mode, name, content. */

static enum fs_visit
paint(void *ctx, const struct fs_entry *en)
{
	struct strbuf *out = ctx;
	char target[PATH_MAX];
	ssize_t n;

	if (!strcmp(en->path, ".cache") || !strcmp(en->path, ".vx"))
		return FS_VISIT_SKIP;
	strbuf_addf(out, "%o %s ", en->st->st_mode, en->path);
	if (S_ISREG(en->st->st_mode)) {
		mode_t mode = en->st->st_mode & 07777;
		cleanup_close int fd = -1;

		if (!(mode & 0400) && fchmodat(en->parent, en->name, mode | 0400, 0))
			bug("chmod");
		fd = openat(en->parent, en->name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fd_read_all(fd, out, 1 << 24) || (!(mode & 0400) && fchmod(fd, mode)))
			bug("read %s", en->path);
	} else if (S_ISLNK(en->st->st_mode)) {
		n = readlinkat(en->parent, en->name, target, sizeof(target));
		strbuf_add(out, target, n > 0 ? (size_t)n : 0);
	}
	strbuf_addch(out, '\0');
	return FS_VISIT_CONTINUE;
}

static void
picture(struct strbuf *out)
{
	strbuf_reset(out);
	if (fs_walk(ws_fd, "", paint, out))
		bug("walk: %s", strerror(errno));
}

static bool
same_picture(const struct strbuf *a, const struct strbuf *b)
{
	size_t i = 0;

	if (a->len == b->len && !memcmp(a->buf, b->buf, a->len))
		return true;
	while (i < a->len && i < b->len && a->buf[i] == b->buf[i])
		i++;
	diag("pictures differ at byte %zu: %.60s | %.60s", i, a->buf + i, b->buf + i);
	return false;
}

/* No staging is left anywhere. */
static void
check_tidy(const char *name)
{
	struct strbuf names = STRBUF_INIT;
	cleanup_dir DIR *d = NULL;
	const struct dirent *en;
	int fd = openat(ws_fd, ".vx/scratch", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && (d = fdopendir(fd)))
		while ((en = readdir(d)))
			if (*en->d_name != '.')
				strbuf_adds(&names, en->d_name);
	ok_str(names.buf, "", name);
	strbuf_release(&names);
}

/* Cases. */

static void
test_round_trip(void)
{
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d, again;
	struct stat a, b;

	begin();
	ws_write("p/src/in", "source");
	ws_write("p/dist/a", "same");
	ws_write("p/dist/s/b", "same");
	ws_write("p/dist/empty", "");
	fs_mkdirs(ws_fd, "p/dist/nothing");
	ws_link("p/dist/link", "s/b");
	ws_link("p/dist/broken", "../nowhere");
	ws_link("p/dist/dir", "s");
	set_mode("p/dist/a", 0755);
	set_mode("p/dist/s/b", 0600);
	picture(&before);
	d = save(&dist);
	again = save(&dist);
	ok(digest_equal(&d, &again), "the same outputs are the same tree");

	remove_in("p", "dist");
	ok_int(restore(&dist, &d), 1, "all of it missing");
	picture(&after);
	ok(same_picture(&before, &after), "byte for byte, with modes and links");

	fstatat(ws_fd, "p/dist", &a, 0);
	ws_write("p/dist/a", "changed");
	ws_write("p/dist/stray/x", "x");
	ws_remove("p/dist/s/b");
	ws_remove("p/dist/link");
	ws_write("p/dist/link/now/a/directory", "");
	unlinkat(ws_fd, "p/dist/nothing", AT_REMOVEDIR);
	ws_write("p/dist/nothing", "now a file");
	ok_int(restore(&dist, &d), 1, "parts of it wrong");
	picture(&after);
	ok(same_picture(&before, &after), "mended");
	fstatat(ws_fd, "p/dist", &b, 0);
	ok(a.st_ino == b.st_ino, "an existing directory is never replaced");
	ws_write("p/dist/a", "written to");
	ok_int(restore(&dist, &d), 1, "after a write into a restored file");
	picture(&after);
	ok(same_picture(&before, &after), "the store had its own copy");
	check_tidy("no scratch is left");
	end();
}

static void
test_fresh_times(void)
{
	struct timespec t[2] = {{1000, 0}, {1000, 0}};
	struct digest d;
	struct stat st;

	begin();
	ws_write("p/dist/a", "x");
	utimensat(ws_fd, "p/dist/a", t, 0);
	d = save(&dist);
	ws_remove("p/dist/a");
	restore(&dist, &d);
	ok(!fstatat(ws_fd, "p/dist/a", &st, 0) && st.st_mtim.tv_sec > 1000,
		"a restored file is as new as its restore");
	end();
}

static int
is_there(const struct digest *d)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	int r = tree_is_there(store, d, ws_fd, &dist, NULL, 0, &o, &e);

	if (r < 0)
		diag("%s", e.text);
	ok(r == 1 || !o.n, "it is told what is there only if it is that");
	outputs_release(&o);
	return r;
}

static void
test_is_there(void)
{
	struct digest d;

	begin();
	ws_write("p/dist/a", "good");
	ws_write("p/dist/sub/b", "good");
	if (symlinkat("a", ws_fd, "p/dist/link"))
		bug("symlinkat");
	d = save(&dist);
	ok_int(is_there(&d), 1, "what was saved is there");
	ok_int(is_there(NULL), 0, "so nothing is not");
	ws_write("p/dist/sub/b", "evil");
	ok_int(is_there(&d), 0, "other content of the same size");
	ws_remove("p/dist/sub/b");
	ws_write("p/dist/sub/b", "good");
	ok_int(is_there(&d), 1, "another file with the same");
	ws_write("p/dist/sub/c", "");
	ok_int(is_there(&d), 0, "a name more");
	ws_remove("p/dist/sub/c");
	set_mode("p/dist/a", 0755);
	ok_int(is_there(&d), 0, "another mode");
	set_mode("p/dist/a", 0644);
	ok_int(is_there(&d), 1, "and again");
	if (unlinkat(ws_fd, "p/dist/link", 0) || symlinkat("b", ws_fd, "p/dist/link"))
		bug("symlinkat");
	ok_int(is_there(&d), 0, "another target");
	ws_remove("p/dist/link");
	ok_int(is_there(&d), 0, "a name less");
	ws_remove("p/dist/a");
	ws_remove("p/dist/sub/b");
	if (unlinkat(ws_fd, "p/dist/sub", AT_REMOVEDIR))
		bug("rmdir");
	ok_int(is_there(NULL), 1, "nothing is there");
	end();
}

static void
test_globs(void)
{
	struct globset set = GLOBS(&arena, "p", "gen/**/*.js", "!gen/x/**", "one");
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d;

	begin();
	ws_write("p/gen/a/1.js", "1");
	ws_write("p/gen/a/1.ts", "t");
	ws_write("p/gen/x/2.js", "2");
	ws_write("p/one", "one");
	set_mode("p/gen/a", 0711);
	d = save(&set);
	ws_write("p/gen/x/2.js", "not restored");
	ws_write("p/gen/a/1.ts", "nor this");
	picture(&before);
	ws_remove("p/one");
	ws_remove("p/gen/a/1.js");
	ws_write("p/gen/b/stray.js", "s");
	ok_int(restore(&set, &d), 1, "outputs among other files");
	picture(&after);
	ok(same_picture(&before, &after), "the others are left alone, strays are not");
	end();
}

static bool
has_file(const char *path)
{
	struct stat st;

	return !fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW);
}

/* Outputs that several tasks have. */
static void
test_parts(void)
{
	struct strvec names = STRVEC_INIT, listed = STRVEC_INIT;
	struct outputs_part others = {&names, true}, own = {&names, false};
	struct err e = ERR_INIT;
	struct digest d;

	begin();
	ws_write("p/dist/a", "a");
	ws_write("p/dist/d/b", "b");
	d = save(&dist);
	ok(tree_names(store, &d, ws_fd, &dist, NULL, 0, &listed, &e) == 1 && listed.n == 2 &&
			!strcmp(listed.v[0], "p/dist/a") && !strcmp(listed.v[1], "p/dist/d/b"),
		"the names in a tree");

	strvec_push(&names, "p/dist/added/deep/x");
	strvec_push(&names, "p/dist/d/y");
	ws_write("p/dist/added/deep/x", "x");
	ws_write("p/dist/d/y", "y");
	ws_write("p/dist/added/stray", "s");
	ws_write("p/dist/stray", "s");
	ws_write("p/dist/a", "other");
	ok_int(restore_part(&dist, &d, &others), 1, "what others added");
	ok(has_file("p/dist/added/deep/x") && has_file("p/dist/d/y"), "stays");
	ok(!has_file("p/dist/stray") && !has_file("p/dist/added/stray"), "strays go all the same");
	remove_in("p/dist", "d");
	ws_write("p/dist/d", "a file");
	ok_int(restore_part(&dist, &d, &others), 1, "the tree itself is made whole");
	ok(has_file("p/dist/d/b"), "whatever stood there");
	remove_in("p/dist", "a");
	ws_write("p/dist/a/theirs", "t");
	strvec_push(&names, "p/dist/a/theirs");
	strvec_sort(&names);
	ok_int(restore_part(&dist, &d, &others), 1, "be it what others added");
	ok(!has_file("p/dist/a/theirs") && has_file("p/dist/d/b"), "which gives way");

	ws_write("p/dist/stray", "s");
	ws_write("p/dist/d/y", "y");
	ok_int(restore_part(&dist, &d, &own), 1, "where a list says what is the task's own");
	ok(!has_file("p/dist/d/y") && !has_file("p/dist/added/deep/x"), "that goes");
	ok(has_file("p/dist/stray") && has_file("p/dist/a"), "and nothing else");
	ok_int(restore_part(&dist, NULL, &own), 1, "be there no tree at all");
	ok(has_file("p/dist/stray") && has_file("p/dist/a"), "so that all is others'");
	ws_write("p/dist/x/theirs", "t");
	remove_in("p/dist", "d");
	remove_in("p/dist", "a");
	ws_write("p/dist/a/another", "t");
	ok_int(restore_part(&dist, &d, &own), -1,
		"a directory with others' in the place of a file");
	ok(has_file("p/dist/a/another"), "is no part of it");
	strvec_release(&names);
	strvec_release(&listed);
	end();
}

static void
test_way_in(void)
{
	struct globset set = GLOBS(&arena, "p", "gen/deep/*.js");
	struct digest d;
	struct stat st;

	begin();
	ws_write("p/gen/deep/1.js", "1");
	set_mode("p/gen", 0700);
	d = save(&set);
	remove_in("p", "gen");
	ok_int(restore(&set, &d), 1, "directories that only lead there");
	ok(!fstatat(ws_fd, "p/gen", &st, 0) && (st.st_mode & 0777) == 0755,
		"are made with an ordinary mode");
	remove_in("p", "gen");
	ws_write("p/gen", "a file");
	ok_int(restore(&set, &d), -1, "a file in the way that is no output stops it");
	ok(!fstatat(ws_fd, "p/gen", &st, 0) && S_ISREG(st.st_mode), "and stays");
	ws_remove("p/gen");
	fs_mkdirs(ws_fd, "q");
	ws_link("p/gen", "../q");
	ok_int(restore(&set, &d), -1, "so does a link that leaves the project");
	ok(fstatat(ws_fd, "q/deep", &st, 0), "nothing was written behind it");
	end();
}

static void
test_unselected_in_the_way(void)
{
	struct globset set = GLOBS(&arena, "p", "dist/**", "!dist/x/keep/**");
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d;

	begin();
	ws_write("p/dist/x", "a file");
	d = save(&set);
	ws_remove("p/dist/x");
	ws_write("p/dist/x/keep/precious", "p");
	picture(&before);
	ok_int(restore(&set, &d), -1, "a directory with other files in the place of a file");
	picture(&after);
	ok(same_picture(&before, &after), "stays as it is");
	check_tidy("without scratch");
	end();
}

static void
test_links_on_the_way(void)
{
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d;
	struct stat st;

	begin();
	fs_mkdirs(ws_fd, "p/store");
	ws_link("p/dist", "store");
	ws_write("p/store/out", "1");
	ws_write("p/store/deep/out", "2");
	picture(&before);
	d = save(&dist);
	ws_remove("p/store/out");
	ws_write("p/store/stray", "");
	ok_int(restore(&dist, &d), 1, "a link on the way");
	picture(&after);
	ok(same_picture(&before, &after), "is kept and followed");
	remove_in("p", "store");
	ok_int(restore(&dist, &d), 1, "also when there is nothing behind it");
	picture(&after);
	ok(same_picture(&before, &after), "the directory is made where it says");
	ws_remove("p/dist");
	ok_int(restore(&dist, &d), 1, "without the link");
	ok(!fstatat(ws_fd, "p/dist", &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode),
		"a directory is made");
	end();
}

/* A link planted where the tree has a directory: it goes, what it points to stays. */
static void
test_planted_links(void)
{
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d;

	begin();
	ws_write("victim/f", "victim");
	ws_write("p/dist/sub/f", "mine");
	ws_write("p/dist/g", "mine");
	picture(&before);
	d = save(&dist);
	remove_in("p/dist", "sub");
	ws_link("p/dist/sub", "../../victim");
	ws_remove("p/dist/g");
	ws_link("p/dist/g", "../../victim/f");
	ok_int(restore(&dist, &d), 1, "links planted inside outputs");
	picture(&after);
	ok(same_picture(&before, &after), "are replaced, never written through");
	end();
}

static void
test_modes(void)
{
	struct digest d;
	struct stat st;

	begin();
	ws_write("p/dist/a/b/f", "f");
	ws_write("p/dist/shut/in", "in");
	fs_mkdirs(ws_fd, "p/dist/z");
	set_mode("p/dist/a/b/f", 0);
	set_mode("p/dist/z", 0);
	set_mode("p/dist/shut", 0);
	set_mode("p/dist/a/b", 0555);
	set_mode("p/dist/a", 0555);
	set_mode("p/dist", 01555);
	d = save(&dist);
	for (int i = 0; i < 3; i++) {
		if (i == 1) {
			ok(!remove_in("p", "dist"), "removed");
		} else if (i == 2) {
			set_mode("p/dist/a", 0755);
			set_mode("p/dist/a/b", 0755);
			ws_write("p/dist/a/b/stray", "");
			ws_remove("p/dist/a/b/f");
			set_mode("p/dist/a/b", 0);
			set_mode("p/dist/a", 0);
		}
		ok_int(restore(&dist, &d), 1, "modes that keep out");
		ok(!fstatat(ws_fd, "p/dist", &st, 0) && (st.st_mode & 0777) == 0555, "dist");
		ok(!fstatat(ws_fd, "p/dist/a", &st, 0) && (st.st_mode & 07777) == 0555, "a");
		ok(!fstatat(ws_fd, "p/dist/a/b", &st, 0) && (st.st_mode & 07777) == 0555, "a/b");
		ok(!fstatat(ws_fd, "p/dist/a/b/f", &st, 0) && (st.st_mode & 07777) == 0, "a/b/f");
		ok(!fstatat(ws_fd, "p/dist/z", &st, 0) && (st.st_mode & 07777) == 0, "z");
		ok(!fstatat(ws_fd, "p/dist/shut", &st, 0) && (st.st_mode & 07777) == 0, "shut");
		ok(fstatat(ws_fd, "p/dist/a/b/stray", &st, 0), "no stray");
	}
	end();
}

static void
test_set_id(void)
{
	struct digest d;
	struct stat st;

	begin();
	ws_write("p/dist/s", "x");
	set_mode("p/dist/s", 06755);
	d = save(&dist);
	ws_remove("p/dist/s");
	restore(&dist, &d);
	ok(!fstatat(ws_fd, "p/dist/s", &st, 0) && (st.st_mode & 07777) == 0755,
		"set-id bits are not stored");
	end();
}

/* A blob that is gone or damaged: nothing at all has happened. */

static int blob_visit_count;

static enum fs_visit
damage_nth(void *ctx, const struct fs_entry *en)
{
	int *nth = ctx;

	if (!S_ISREG(en->st->st_mode))
		return FS_VISIT_CONTINUE;
	blob_visit_count++;
	if ((*nth)-- == 0) {
		unlinkat(en->parent, en->name, 0);
		if (blob_visit_count % 2) {
			int fd = openat(en->parent, en->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);

			if (fd < 0 || write(fd, "torn", 4) != 4)
				bug("write");
			close(fd);
		}
	}
	return FS_VISIT_CONTINUE;
}

static void
test_missing_blobs(void)
{
	for (int n = 0;; n++) {
		cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
		struct digest d;
		int nth = n;

		begin();
		ws_write("p/dist/a", "one");
		ws_write("p/dist/b/c", "two");
		ws_write("p/dist/b/d", "three");
		ws_link("p/dist/l", "a");
		d = save(&dist);
		ws_remove("p/dist/a");
		ws_write("p/dist/b/c", "changed");
		ws_write("p/dist/stray", "stray");
		set_mode("p/dist", 0555);
		picture(&before);
		blob_visit_count = 0;
		fs_walk(cachefd, "blobs", damage_nth, &nth);
		if (nth >= 0) {
			ok(n == 7, "each of three blobs and four nodes was missing once");
			set_mode("p/dist", 0755);
			end();
			return;
		}
		ok_int(restore(&dist, &d), 0, "a blob is gone or damaged");
		picture(&after);
		ok(same_picture(&before, &after), "the workspace is as it was");
		check_tidy("no scratch is left");
		end();
	}
}

/* Trees that no saving makes. */

static struct digest
node(const char *bytes, size_t n)
{
	struct digest d = {{0}};
	struct err e = ERR_INIT;

	if (store_put_bytes(store, bytes, n, &d, &e))
		bug("%s", e.text);
	return d;
}

/* A node of these lines; "@" is the digest of `content`, "^" a NUL. */
static struct digest
tree_of(const char *lines, const struct digest *content)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char hex[DIGEST_HEX];
	struct digest d;

	strbuf_adds(&text, "vx-tree 1\n");
	digest_hex(content, hex);
	for (const char *p = lines; *p; p++) {
		if (*p == '@')
			strbuf_adds(&text, hex);
		else if (*p == '^')
			strbuf_addch(&text, '\0');
		else
			strbuf_addch(&text, *p);
	}
	d = node(text.buf, text.len);
	return d;
}

static struct digest
in_dist(const char *lines)
{
	struct digest content = node("x", 1), d = tree_of(lines, &content);

	d = tree_of("d 0755 @ dist\n", &d);
	return tree_of("d ---- @ p\n", &d);
}

static void
test_hostile(void)
{
	static const char *const bad[] = {
		"f 0644 @ 1 ..\n",
		"f 0644 @ 1 .\n",
		"f 0644 @ 1 \n",
		"f 0644 @ 1 a/b\n",
		"f 0644 @ 1 ../../../evil\n",
		"f 0644 @ 1 /etc/x\n",
		"f 0644 @ 1 a\nf 0644 @ 1 a\n",
		"l a^../..\nf 0644 @ 1 a\n",
		"l a^../..\nd 0755 @ a\n",
		"f 0644 @ 1 b\nf 0644 @ 1 a\n",
		"f 0644 @ 2 a\n",
		"f 0644 @ -1 a\n",
		"f 0644 @ 01 a\n",
		"f 0644 @ 99999999999999999999 a\n",
		"f 4755 @ 1 a\n",
		"f 0648 @ 1 a\n",
		"f 644 @ 1 a\n",
		"f ---- @ 1 a\n",
		"f 0644 @ 1 a",
		"f 0644 @ 1 a\\\n",
		"f 0644 @ 1 a\\x\n",
		"f 0644 @ 1 a^b\n",
		"f 0644 0000 1 a\n",
		"l a^\n",
		"l ^b\n",
		"l a\n",
		"l a^b^c\n",
		"c 0644 @ 1 a\n",
		"d 0755 @ a\n", /* content as a directory */
		"d ---- @ a\n",
		"f 0644 @ 1 .git\n",
		"f 0644 @ 1 .vx\n",
		"vx-tree 1\n",
		"\n",
	};
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d, content;
	char name[300];

	begin();
	ws_write("p/dist/old", "old");
	picture(&before);
	for (size_t i = 0; i < array_len(bad); i++) {
		d = in_dist(bad[i]);
		snprintf(name, sizeof(name), "a tree that no saving makes: %zu", i);
		ok_int(restore(&dist, &d), 0, name);
		picture(&after);
		if (!same_picture(&before, &after))
			ok(false, "something happened");
	}
	snprintf(name, sizeof(name), "f 0644 @ 1 %0256d\n", 1);
	d = in_dist(name);
	ok_int(restore(&dist, &d), 0, "a name of 256 bytes");
	d = node("vx-tree 1\n", 10);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "a way that leads nowhere");
	content = node("x", 1);
	d = tree_of("f 0644 @ 1 evil\n", &content);
	ok_int(restore(&dist, &d), 0, "a file that no glob selects");
	d = tree_of("f 0644 @ 1 f\n", &content);
	d = tree_of("d ---- @ src\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "a file beside the outputs");
	d = node("vx-tree 2\n", 10);
	ok_int(restore(&dist, &d), 0, "a tree of another version");
	memset(&d, 1, sizeof(d));
	ok_int(restore(&dist, &d), 0, "a tree that is not there");
	picture(&after);
	ok(same_picture(&before, &after), "nothing has happened");
	d = in_dist("f 0644 @ 1 ok\n");
	ok_int(restore(&dist, &d), 1, "while a good one is restored");
	end();
}

/* Trees that only somebody who writes into the cache could have made: what others would obey. */
static void
test_never(void)
{
	static const char *const bad[] = {
		"f 0644 @ 1 .npmrc\n",
		"f 0644 @ 1 .ENVRC\n",
		"f 0644 @ 1 .GIT\n",
		"f 0644 @ 1 vx.config.json\n",
		"f 0644 @ 1 pnpm-workspace.yaml\n",
		"d 0755 ~ .husky\n",
		"d ---- ! .husky\n",
		"l .claude^x\n",
		"l .vscode^x\n",
		"l package.json^x\n",
		"f 0644 @ 1 HEAD\nd 0755 ~ objects\nd 0755 ~ refs\n",
		"f 0644 @ 1 HEAD\nf 0644 @ 1 commondir\n",
	};
	const struct globset out = GLOBS(&arena, "p", "out", "deep/out/**");
	const struct globset named = GLOBS(&arena, "p", "dist/**", "dist/.npmrc", "dist/.husky/**",
		"dist/x.git", "dist/package.json");
	struct digest content, empty, hook, d;
	struct err e = ERR_INIT;
	char name[80];

	begin();
	ws_write("p/src/a", "a");
	ws_write("p/bare/HEAD", "h");
	ws_write("p/bare/objects/x", "h");
	ws_write("p/bare/refs/x", "h");
	content = node("x", 1);
	empty = node("vx-tree 1\n", 10);
	hook = tree_of("f 0755 @ 1 pre-push\n", &content);
	for (size_t i = 0; i < array_len(bad); i++) {
		cleanup_strbuf struct strbuf lines = STRBUF_INIT;
		char hex[2][DIGEST_HEX];

		digest_hex(&empty, hex[0]);
		digest_hex(&hook, hex[1]);
		for (const char *c = bad[i]; *c; c++) {
			if (*c == '~' || *c == '!')
				strbuf_adds(&lines, hex[*c == '!']);
			else
				strbuf_addch(&lines, *c);
		}
		d = in_dist(lines.buf);
		snprintf(name, sizeof(name), "what others obey: %zu", i);
		ok_int(restore(&dist, &d), 0, name);
	}
	content = node("{\"workspaces\":[]}", 17);
	d = tree_of("f 0644 @ 17 package.json\n", &content);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "a workspace root");
	ok_int(restore(&named, &d), 1, "unless it is named");
	remove_in("p", "dist");
	content = node("{\"name\":\"abc\"}", 14);
	d = tree_of("f 0644 @ 14 package.json\n", &content);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 1, "another package.json");
	remove_in("p", "dist");

	content = node("x", 1);
	d = tree_of("f 0644 @ 1 pre-push\n", &content);
	d = tree_of("d 0755 @ .husky\n", &d);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&named, &d), 1, "a name in a glob's own words");
	remove_in("p", "dist");

	d = tree_of("l out^src\n", &content);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&out, &d), 0, "outputs that are a link to a directory");
	d = tree_of("l out^nowhere\n", &content);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&out, &d), 1, "one to none is an output");
	d = tree_of("l out^nowhere\n", &content);
	d = tree_of("d ---- @ deep\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&out, &d), 0, "not so where a glob starts");
	remove_in("p", "out");

	d = tree_of("f 0644 @ 1 config\n", &content);
	d = tree_of("d ---- @ bare\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	{
		const struct globset turn = GLOBS(&arena, "p", "bare/c*");

		ok_int(restore(&turn, &d), 0, "what turns a repository that is there");
	}

	/* Nor are they stored. */
	ws_write("p/dist/.npmrc", "x");
	{
		struct outputs o = {0};

		if (outputs_scan(ws_fd, &dist, NULL, 0, &o, &e))
			bug("%s", e.text);
		ok_int(tree_save(store, ws_fd, &dist, &o, &d, NULL, &e), -1, "saving one");
		ok_err(&e, "output p/dist/.npmrc", "is refused by name");
		outputs_release(&o);
	}
	d = save(&named);
	ws_write("p/dist/.npmrc", "y");
	ok_int(restore(&named, &d), 1, "what was stored can be restored");
	end();
}

static void
test_deep(void)
{
	struct digest d;

	begin();
	d = node("vx-tree 1\n", 10);
	for (int i = 0; i < 5000; i++)
		d = tree_of("d 0755 @ d\n", &d);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "deeper than a path can be");
	d = node("vx-tree 1\n", 10);
	for (int i = 0; i < 30; i++)
		d = tree_of("d 0755 @ a\nd 0755 @ b\nd 0755 @ c\nd 0755 @ d\n", &d);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "a small tree that unfolds without end");
	end();
}

static void
test_changed_while_saving(void)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	struct digest d;

	begin();
	ws_write("p/dist/a", "before");
	outputs_scan(ws_fd, &dist, NULL, 0, &o, &e);
	ws_write("p/dist/a", "after it was scanned");
	ok_int(tree_save(store, ws_fd, &dist, &o, &d, NULL, &e), -1, "a file that changed");
	ok_err(&e, "p/dist/a", "is named");
	outputs_release(&o);
	end();
}

static void
test_holes(void)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	struct digest d;
	cleanup_close int fd = -1;

	begin();
	ws_write("p/dist/a", "a");
	ws_write("p/dist/z", "");
	fd = openat(ws_fd, "p/dist/z", O_WRONLY | O_CLOEXEC);
	if (ftruncate(fd, 4ll << 40))
		bug("ftruncate: %s", strerror(errno));
	outputs_scan(ws_fd, &dist, NULL, 0, &o, &e);
	/* digested, it would take most of an hour */
	ok_int(tree_save(store, ws_fd, &dist, &o, &d, NULL, &e), -1, "holes without end");
	ok_err(&e, "output p/dist/z: sparse, 4096 GiB", "are refused by name");
	outputs_release(&o);
	end();
}

/* A blob of this digest that is one hole, as somebody can put it into a shared cache. */
static void
plant_hole(const struct digest *d, off_t size)
{
	char hex[DIGEST_HEX], path[DIGEST_HEX + 16];
	cleanup_close int fd = -1;

	digest_hex(d, hex);
	snprintf(path, sizeof(path), ".cache/blobs/%.2s", hex);
	if (fs_mkdirs(ws_fd, path))
		bug("mkdir: %s", strerror(errno));
	snprintf(path, sizeof(path), ".cache/blobs/%.2s/%s", hex, hex + 2);
	fd = openat(ws_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, size))
		bug("ftruncate: %s", strerror(errno));
}

static void
test_planted_holes(void)
{
	struct digest d, content = {{1}};
	uint64_t begun;
	char lines[200];

	begin();
	plant_hole(&content, 4ll << 40);
	snprintf(lines, sizeof(lines), "f 0644 @ %lld a\n", 4ll << 40);
	d = tree_of(lines, &content);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	begun = clock_monotonic_ns();
	alarm(60); /* read, it would take most of an hour */
	ok_int(restore(&dist, &d), 0, "a blob that is a hole without end");
	content.b[1] = 1;
	plant_hole(&content, 40ll << 30);
	snprintf(
		lines, sizeof(lines), "f 0644 @ %lld a\nf 0644 @ %lld b\n", 40ll << 30, 40ll << 30);
	d = tree_of(lines, &content);
	d = tree_of("d 0755 @ dist\n", &d);
	d = tree_of("d ---- @ p\n", &d);
	ok_int(restore(&dist, &d), 0, "many that are so together");
	alarm(0);
	ok(clock_monotonic_ns() - begun < 10 * 1000000000ull, "are not read");
	end();
}

static void
test_no_tree(void)
{
	struct globset set = GLOBS(&arena, "p", "dist/**", "!dist/keep", "gen/**/*.js");
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;

	begin();
	ws_write("p/src/in", "in");
	ws_write("p/dist/keep", "k");
	ws_write("p/gen/a/1.ts", "t");
	picture(&before);
	ws_write("p/dist/a/b/c", "c");
	ws_link("p/dist/l", "a");
	ws_write("p/gen/a/1.js", "1");
	ws_write("p/gen/b/c/2.js", "2");
	ok_int(restore(&set, NULL), 1, "a result without outputs");
	picture(&after);
	ok(same_picture(&before, &after),
		"removes those that are there, and directories that hold nothing else");
	end();
}

/* Crashes. */

static bool mounted; /* dist is on a mount of its own */

static void
begin_crash_case(void)
{
	char path[80];

	begin();
	fs_mkdirs(ws_fd, "p/dist");
	snprintf(path, sizeof(path), "%s/p/dist", ws_path);
	if (mounted && mount("none", path, "tmpfs", 0, "mode=755"))
		bug("mount: %s", strerror(errno));
}

static void
end_crash_case(void)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/p/dist", ws_path);
	if (mounted && umount2(path, MNT_DETACH))
		bug("umount: %s", strerror(errno));
	end();
}

static enum fs_visit
remove_it(void *ctx attr_unused, const struct fs_entry *en)
{
	if (fs_remove_tree(en->parent, en->name))
		bug("remove %s: %s", en->path, strerror(errno));
	return FS_VISIT_SKIP;
}

static void
clear_dist(void)
{
	set_mode("p/dist", 0755);
	if (fs_walk(ws_fd, "p/dist", remove_it, NULL))
		bug("clear: %s", strerror(errno));
}

static void
fill_generation(int n)
{
	const char *text = n ? "new" : "old";

	ws_write("p/dist/a", text);
	ws_write("p/dist/same", "same");
	ws_write("p/dist/open/k", text);
	ws_write("p/dist/shut/f", text);
	if (n) {
		ws_write("p/dist/was-file/n", text);
		ws_write("p/dist/was-dir", text);
		ws_write("p/dist/was-link/n", text);
		ws_write("p/dist/fresh/sub/q", text);
		ws_write("p/dist/fresh/hidden", text);
		ws_write("p/dist/shut/g", text);
		set_mode("p/dist/fresh/hidden", 0);
		set_mode("p/dist/fresh/sub", 0555);
		set_mode("p/dist/fresh", 0500);
		set_mode("p/dist/open", 0711);
	} else {
		ws_write("p/dist/was-file", text);
		ws_write("p/dist/was-dir/x/y", text);
		ws_write("p/dist/was-dir/z", text);
		ws_link("p/dist/was-link", "same");
		ws_write("p/dist/gone/deep/s", text);
		ws_write("p/dist/shut/away", text);
		set_mode("p/dist/gone/deep", 0555);
	}
	set_mode("p/dist/shut", 0555);
	set_mode("p/dist", n ? 0755 : 0711);
}

/* Generation 1 - `to` is there, that of `to` is stored. */
static struct digest
fill_crash_case(int to)
{
	struct digest d;

	begin_crash_case();
	ws_write("p/src/in", "in");
	fill_generation(to);
	d = save(&dist);
	clear_dist();
	fill_generation(1 - to);
	return d;
}

/* In a child that dies at the n-th point. True when it got to its end. */
static bool
crash_restore(const struct digest *d, int n)
{
	pid_t pid = fork();

	if (!pid) {
		struct err e = ERR_INIT;
		struct stage *stage = stage_new(ws_fd);

		crash_at(n);
		_exit(tree_restore(store, stage, d, ws_fd, &dist, NULL, 0, NULL, NULL, &e) == 1
				? 0
				: 9);
	}
	return crash_finished(pid);
}

struct recovery {
	int found; /* 1: a list was rolled forward; -1 */
	bool keep;
};

static enum fs_visit
recover(void *ctx, const struct fs_entry *en)
{
	struct recovery *rec = ctx;
	cleanup_close int fd = openat(en->parent, en->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = ERR_INIT;

	rec->found = moves_roll_forward(fd, ws_fd, &e);
	if (rec->found < 0)
		diag("%s", e.text);
	if (!rec->keep && fs_remove_tree(en->parent, en->name))
		bug("remove: %s", strerror(errno));
	return FS_VISIT_SKIP;
}

/* As the next start does. */
static int
roll_forward(bool keep)
{
	struct recovery rec = {0, keep};

	if (fs_walk(ws_fd, ".vx/scratch", recover, &rec))
		bug("walk: %s", strerror(errno));
	return rec.found;
}

static void
test_crashes(int to, const char *what)
{
	bool all = true, listed = false, finished;
	int n = 0;

	do {
		cleanup_strbuf struct strbuf before = STRBUF_INIT, want = STRBUF_INIT;
		cleanup_strbuf struct strbuf got = STRBUF_INIT;
		struct digest d = fill_crash_case(to);
		int found;

		picture(&before);
		finished = crash_restore(&d, n++);
		found = roll_forward(false);
		picture(&got);
		clear_dist();
		fill_generation(to);
		picture(&want);
		listed |= found == 1;
		if (found < 0 || !same_picture(listed ? &want : &before, &got)) {
			all = false;
			diag("%s, point %d: %d", what, n - 1, found);
		}
		end_crash_case();
	} while (!finished);
	ok(all && listed && n > 20, "%s: killed at each of %d points, then rolled forward", what,
		n);
}

static void
test_crash_in_recovery(int to, const char *what)
{
	cleanup_strbuf struct strbuf want = STRBUF_INIT, got = STRBUF_INIT;
	struct digest d = fill_crash_case(to);
	int stuck = 0;

	crash_restore(&d, 1); /* right after the list was written */
	for (int n = 0; n < 50; n++) {
		pid_t pid = fork();

		if (!pid) {
			crash_at(n);
			_exit(roll_forward(true) < 0 ? 9 : 0);
		}
		stuck += !crash_finished(pid);
	}
	picture(&got);
	clear_dist();
	fill_generation(to);
	picture(&want);
	ok(stuck > 10 && same_picture(&want, &got), "%s: recovery killed %d times", what, stuck);
	end_crash_case();
}

/* One rename needs no list. */
static void
test_crash_of_one_rename(void)
{
	bool all = true, finished;
	int n = 0;

	do {
		cleanup_strbuf struct strbuf want = STRBUF_INIT, got = STRBUF_INIT;
		struct digest d;
		struct stat st;

		begin();
		ws_write("p/dist/a/b", "1");
		ws_write("p/dist/c", "2");
		picture(&want);
		d = save(&dist);
		remove_in("p", "dist");
		finished = crash_restore(&d, n++);
		all &= !roll_forward(false);
		picture(&got);
		if (!fstatat(ws_fd, "p/dist", &st, AT_SYMLINK_NOFOLLOW) || finished)
			all &= same_picture(&want, &got);
		end();
	} while (!finished);
	ok(all && n == 4, "a directory that was missing comes by one rename, without a list");
}

static void
test_all_crashes(void)
{
	test_crashes(1, mounted ? "new over old, on another mount" : "new over old");
	test_crashes(0, mounted ? "old over new, on another mount" : "old over new");
	test_crash_in_recovery(1, mounted ? "new over old, on another mount" : "new over old");
	test_crash_in_recovery(0, mounted ? "old over new, on another mount" : "old over new");
}

static bool
write_proc(const char *path, const char *text)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && !fd_write_all(fd, text, strlen(text));
}

/* Into a namespace in which we may mount. */
static bool
unshare_mounts(void)
{
	unsigned uid = geteuid(), gid = getegid();
	cleanup_free char *uids = xasprintf("%u %u 1", uid, uid);
	cleanup_free char *gids = xasprintf("%u %u 1", gid, gid);

	return !unshare(CLONE_NEWUSER | CLONE_NEWNS) && write_proc("/proc/self/uid_map", uids) &&
	       write_proc("/proc/self/setgroups", "deny") && write_proc("/proc/self/gid_map", gids);
}

static void
test_mounted(void)
{
	cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
	struct digest d;

	if (!unshare_mounts()) {
		skip("outputs on another mount", "no namespaces here");
		return;
	}
	mounted = true;
	d = fill_crash_case(1);
	restore(&dist, &d);
	picture(&after);
	clear_dist();
	fill_generation(1);
	picture(&before);
	ok(same_picture(&before, &after), "outputs on another mount are copied");
	end_crash_case();
	test_all_crashes();
}

/* Random trees with odd names, saved, mutilated and restored. */

static uint64_t rnd_state = 42;

static unsigned
rnd(unsigned n)
{
	rnd_state = rnd_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(rnd_state >> 33) % n;
}

static void
odd_name(char ret[256])
{
	static const char *const some[] = {"new\nline", "\xff\xfe", "-dash", "back\\slash",
		"q\"uote", " ", "a", "b", "a-b", "a.b", "\\n", "tab\t", "\x01", "*", "[x]", "{y}",
		"~", "..."};
	unsigned k = rnd(array_len(some) + 1);

	if (k == array_len(some)) {
		memset(ret, 'x' + (int)rnd(3), 255);
		ret[255] = '\0';
		return;
	}
	snprintf(ret, 256, "%s", some[k]);
}

static void
grow(const char *dir, unsigned depth)
{
	for (unsigned i = rnd(6); i > 0; i--) {
		char name[256];
		cleanup_free char *path = NULL;
		struct stat st;

		odd_name(name);
		path = path_join(dir, name);
		if (!fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		switch (rnd(4)) {
		case 0:
			if (symlinkat(rnd(2) ? "a\nb\\c" : "../..", ws_fd, path))
				bug("symlink");
			break;
		case 1:
			fs_mkdirs(ws_fd, path);
			if (depth < 5)
				grow(path, depth + 1);
			set_mode(path, rnd(2) ? 0755 : 0700 | rnd(0100));
			break;
		default:
			ws_write(path, rnd(2) ? "content" : name);
			set_mode(path, 0600 | rnd(0200));
		}
	}
}

/* Removes or changes about a third of what is there. */
static enum fs_visit
mutilate(void *ctx, const struct fs_entry *en)
{
	bool *changed = ctx;

	if (rnd(3))
		return FS_VISIT_CONTINUE;
	*changed = true;
	if (fs_remove_tree(en->parent, en->name))
		bug("remove %s", en->path);
	switch (rnd(4)) {
	case 0:
		mkdirat(en->parent, en->name, 0755);
		break;
	case 1:
		if (symlinkat("/etc", en->parent, en->name))
			bug("symlink");
		break;
	case 2:
		close(openat(en->parent, en->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
		break;
	}
	return FS_VISIT_SKIP;
}

static void
test_random(void)
{
	int bad = 0;

	for (int i = 0; i < 15; i++) {
		cleanup_strbuf struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
		bool changed = false;
		struct digest d;

		begin();
		ws_write("p/src/in", "in");
		fs_mkdirs(ws_fd, "p/dist");
		grow("p/dist", 0);
		picture(&before);
		d = save(&dist);
		fs_walk(ws_fd, "p/dist", mutilate, &changed);
		grow("p/dist", 0);
		bad += restore(&dist, &d) != 1;
		picture(&after);
		bad += !same_picture(&before, &after);
		end();
	}
	ok_int(bad, 0, "random trees come back byte for byte");
}

/* Links alone: what reads the content of files looks for a stop itself. */
static void
test_stop(void)
{
	struct err e = ERR_INIT;
	struct stage *stage;
	struct digest d;
	sigset_t set, old;
	char path[32];
	int sig, r;

	begin();
	stage = stage_new(ws_fd);
	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "p/dist/l%d", i);
		ws_link(path, "to");
	}
	d = save(&dist);
	remove_in("p", "dist");
	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGTERM);
	r = tree_restore(store, stage, &d, ws_fd, &dist, NULL, 0, NULL, NULL, &e);
	ok(r < 0 && e.num == ECANCELED, "a stop ends the reading of a tree");
	ok(faccessat(ws_fd, "p/dist", F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT,
		"which makes nothing");
	sigwait(&set, &sig);
	sigprocmask(SIG_SETMASK, &old, NULL);
	err_clear(&e);
	ok(tree_restore(store, stage, &d, ws_fd, &dist, NULL, 0, NULL, NULL, &e) == 1,
		"and loses nothing");
	stage_free(stage);
	end();
}

int
main(void)
{
	umask(022);
	arena_init(&arena);
	dist = GLOBS(&arena, "p", "dist/**");
	test_round_trip();
	test_fresh_times();
	test_is_there();
	test_globs();
	test_parts();
	test_way_in();
	test_unselected_in_the_way();
	test_links_on_the_way();
	test_planted_links();
	test_modes();
	test_set_id();
	test_missing_blobs();
	test_hostile();
	test_never();
	test_deep();
	test_changed_while_saving();
	test_holes();
	test_planted_holes();
	test_random();
	test_no_tree();
	test_stop();
	test_all_crashes();
	test_crash_of_one_rename();
	test_mounted();
	arena_release(&arena);
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
#include "cache/filehash.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

static struct filehash *fh;

static void
open_memory(void)
{
	struct err e = ERR_INIT;

	if (filehash_open(ws_fd, &fh, &e))
		bug("%s", e.text);
}

static void
close_memory(bool complete)
{
	filehash_close(fh, complete);
	fh = NULL;
}

static const char *
look(const char *path)
{
	static struct strbuf text = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct file_id id;

	strbuf_reset(&text);
	if (filehash_get(fh, ws_fd, path, &id, &e))
		strbuf_addf(&text, "error: %s", e.text);
	else
		file_id_text(&id, &text);
	return text.buf;
}

static void
want(const char *path, const char *kind, const char *content, const char *name)
{
	struct digest d;
	char hex[DIGEST_HEX], text[80];

	digest_bytes(content, strlen(content), &d);
	digest_hex(&d, hex);
	snprintf(text, sizeof(text), "%s:%s", kind, hex);
	ok_str(look(path), text, name);
}

/* Sets a file's times an hour back, so that it is not racy; ctime stays now. */
static void
age(const char *path)
{
	struct timespec t[2] = {{time(NULL) - 3600, 5}, {time(NULL) - 3600, 5}};

	if (utimensat(ws_fd, path, t, AT_SYMLINK_NOFOLLOW))
		bug("utimensat");
}

/* Until the file's last change is no longer near: its ctime cannot be set. */
static void
wait_past_racy(const char *path)
{
	struct stat st;
	uint64_t ctime;

	fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	ctime = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	while (clock_wall_ns() < ctime + 60 * 1000000u)
		;
}

static void
set_mode(const char *path, mode_t mode)
{
	if (fchmodat(ws_fd, path, mode, 0))
		bug("chmod %s", path);
}

static void
test_kinds(void)
{
	ws_begin();
	open_memory();
	ws_write("plain", "x");
	ws_write("run", "x");
	set_mode("run", 0755);
	ws_link("link", "no/where");
	fs_mkdirs(ws_fd, "dir");
	mknodat(ws_fd, "fifo", S_IFIFO | 0644, 0);
	want("plain", "100644", "x", "a plain file");
	want("run", "100755", "x", "an executable one");
	want("link", "120000", "no/where", "a link is its target's text");
	ok_str(look("dir"), "other", "a directory is neither");
	ok_str(look("fifo"), "other", "a fifo neither, and does not hold us");
	ok_str(look("gone"), "absent", "what is not there");
	ok_str(look("plain/below"), "absent", "nor below a file");
	ws_write("plain", "longer");
	want("plain", "100644", "longer", "a change of size shows");
	set_mode("plain", 0755);
	want("plain", "100755", "longer", "a change of mode shows");
	ws_remove("plain");
	ok_str(look("plain"), "absent", "removal shows");
	close_memory(false);
	ws_end();
}

static void
test_changes(void)
{
	uint64_t n;

	ws_begin();
	open_memory();
	ws_write("f", "one");
	ws_write("g", "one");
	look("f");
	look("g");
	n = filehash_changes(fh);
	ok(!filehash_changed_since(fh, "f", n), "what was seen once has not changed");
	ws_write("f", "one");
	look("f");
	ok(!filehash_changed_since(fh, "f", n), "nor has what was written with the same bytes");
	ws_write("f", "two");
	look("f");
	ok(filehash_changed_since(fh, "f", n), "other bytes are a change");
	ok(!filehash_changed_since(fh, "g", n), "of that file alone");
	ok(!filehash_changed_since(fh, "f", filehash_changes(fh)), "and none since");
	n = filehash_changes(fh);
	set_mode("g", 0755);
	look("g");
	ok(filehash_changed_since(fh, "g", n), "so is an x bit");
	ws_remove("f");
	look("f");
	ok(filehash_changed_since(fh, "f", n), "and that it is gone");
	n = filehash_changes(fh);
	look("f");
	ok(!filehash_changed_since(fh, "f", n), "once");
	ws_write("f", "two");
	look("f");
	ok(filehash_changed_since(fh, "f", n), "and that it is back");
	wait_past_racy("f");
	look("f");
	look("g");
	close_memory(true);
	open_memory();
	look("f");
	n = filehash_changes(fh);
	ws_write("f", "six");
	look("f");
	ok(filehash_changed_since(fh, "f", n), "what an earlier run has seen counts");
	ws_remove("g");
	look("g");
	ok(filehash_changed_since(fh, "g", n), "when it goes, too");
	close_memory(false);
	ws_end();
}

/* A file whose content changes with size and mtime the same: only ctime tells. */
static void
test_same_size_and_mtime(void)
{
	ws_begin();
	open_memory();
	ws_write("f", "one");
	age("f");
	want("f", "100644", "one", "before");
	for (int i = 0; i < 200; i++) {
		ws_write("f", i % 2 ? "two" : "six");
		age("f");
		look("f");
	}
	want("f", "100644", "two", "a write with the same size and mtime shows, and so do 200");
	close_memory(false);
	ws_end();
}

static ino_t
stat_file_ino(void)
{
	struct stat st;

	return fstatat(ws_fd, "stat", &st, 0) ? 0 : st.st_ino;
}

static void
swap_byte_in_stat_file(size_t from_end)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err e = ERR_INIT;

	if (fd_read_file(ws_fd, "stat", 1 << 20, &b, &e))
		bug("%s", e.text);
	b.buf[b.len - from_end] ^= 1;
	fs_replace_file(ws_fd, "stat", b.buf, b.len, 0600);
}

static void
test_memory(void)
{
	ino_t ino;
	struct stat st;

	ws_begin();
	ws_write("a/b", "content");
	ws_write("a-b", "other");
	ws_write("z\n\xff", "odd");
	wait_past_racy("z\n\xff");
	open_memory();
	look("a/b");
	look("a-b");
	look("z\n\xff");
	close_memory(true);
	ino = stat_file_ino();
	ok(ino, "the memory is a file");
	open_memory();
	want("z\n\xff", "100644", "odd", "in any order");
	want("a-b", "100644", "other", "from the memory");
	want("a/b", "100644", "content", "each its own");
	close_memory(true);
	ok_int((long long)stat_file_ino(), (long long)ino, "nothing learned, nothing written");
	open_memory();
	want("a/b", "100644", "content", "one of three asked for");
	close_memory(true);
	ok(stat_file_ino() != ino, "a complete run forgets the others");
	ino = stat_file_ino();
	open_memory();
	close_memory(false);
	ok_int((long long)stat_file_ino(), (long long)ino, "an incomplete one does not");
	swap_byte_in_stat_file(1);
	open_memory();
	want("a/b", "100644", "content", "a damaged memory is no memory");
	close_memory(false);
	ws_write("stat", "short");
	open_memory();
	want("a/b", "100644", "content", "nor is a short one");
	close_memory(false);
	fstatat(ws_fd, "stat", &st, 0);
	ok(st.st_size > 100, "it is written anew");
	ws_end();
}

/* What this process has read so far; -1 where the kernel does not count. */
static long long
bytes_read(void)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err e = ERR_INIT;

	if (fd_read_file(AT_FDCWD, "/proc/self/io", 4096, &b, &e) ||
		strncmp(b.buf, "rchar: ", 7) != 0)
		return -1;
	return strtoll(b.buf + 7, NULL, 10);
}

static void
test_no_reading(void)
{
	enum {
		SIZE = 1 << 20
	};
	long long at[3];

	if (bytes_read() < 0) {
		skip("a warm run reads no content", "/proc/self/io cannot be read");
		return;
	}
	cleanup_free char *text = xmalloc(SIZE + 1);

	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	ws_begin();
	ws_write("f", text);
	wait_past_racy("f");
	open_memory();
	at[0] = bytes_read();
	look("f");
	close_memory(true);
	at[1] = bytes_read();
	open_memory();
	look("f");
	close_memory(true);
	at[2] = bytes_read();
	ok(at[1] - at[0] >= SIZE, "a cold run reads");
	ok(at[2] - at[1] < SIZE / 2, "a warm one reads no content");
	ws_end();
}

static void
test_trust(void)
{
	ws_begin();
	open_memory();
	ws_write("f", "one");
	filehash_trust(fh, true);
	want("f", "100644", "one", "looked at once");
	ok_str(look("g"), "absent", "absence too");
	ws_write("f", "three");
	ws_write("g", "g");
	want("f", "100644", "one", "under trust the answer stands");
	ok_str(look("g"), "absent", "also that of absence");
	filehash_trust(fh, false);
	want("f", "100644", "three", "and ends with it");
	want("g", "100644", "g", "for both");
	close_memory(false);
	open_memory();
	filehash_trust(fh, true);
	want("f", "100644", "three", "with rows of the file as well");
	ws_write("f", "fourth");
	want("f", "100644", "three", "the answer stands");
	filehash_trust(fh, false);
	want("f", "100644", "fourth", "and ends");
	close_memory(false);
	ws_end();
}

/* The second thread's answers are those of looking. */
static void
test_look_ahead(void)
{
	ino_t ino;

	ws_begin();
	ws_write("same", "s");
	ws_write("later", "l");
	ws_write("changed", "c");
	ws_write("gone", "g");
	ws_write("way/f", "f");
	ws_link("link", "a");
	wait_past_racy("link");
	ws_write("racy", "r");
	open_memory();
	look("same");
	look("later");
	look("changed");
	look("gone");
	look("way/f");
	look("link");
	look("racy");
	close_memory(true);
	ws_write("changed", "d");
	ws_remove("gone");
	renameat(ws_fd, "way", ws_fd, "real");
	ws_write("real/f", "g");
	ws_link("way", "real");
	ino = stat_file_ino();
	open_memory();
	filehash_look_ahead(fh, ws_fd);
	filehash_trust(fh, true);
	ws_write("later", "m");
	want("same", "100644", "s", "what is as it was");
	want("changed", "100644", "d", "what is not is read");
	ok_str(look("gone"), "absent", "what is gone");
	want("link", "120000", "a", "a link");
	want("racy", "100644", "r", "a racy one");
	ok_str(look("way/f"), "absent", "what a link now leads to is not read");
	want("later", "100644", "l", "the answer is from when trust began");
	filehash_trust(fh, false);
	want("later", "100644", "m", "and ends with it");
	close_memory(true);
	ok(stat_file_ino() != ino, "what was learned is kept");
	open_memory();
	filehash_look_ahead(fh, ws_fd);
	filehash_trust(fh, true);
	want("later", "100644", "m", "and is known");
	filehash_trust(fh, false);
	close_memory(false);
	open_memory();
	filehash_look_ahead(fh, ws_fd);
	close_memory(false);
	ok(true, "closing does not wait for a use");
	ws_end();
}

/* Rows are found from wherever the last one was. */
static void
test_any_order(void)
{
	enum {
		N = 61
	};
	char name[16];
	bool right = true;

	ws_begin();
	open_memory();
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "f%02d", i);
		ws_write(name, name);
		look(name);
	}
	wait_past_racy(name);
	close_memory(false);
	open_memory();
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++) {
			struct digest d;
			char hex[DIGEST_HEX];

			snprintf(name, sizeof(name), "f%02d", i);
			look(name);
			snprintf(name, sizeof(name), "f%02d", k);
			digest_bytes(name, strlen(name), &d);
			digest_hex(&d, hex);
			right &= !strcmp(look(name) + strlen("100644:"), hex);
			snprintf(name, sizeof(name), "f%02dx", k);
			right &= !strcmp(look(name), "absent");
		}
	ok(right, "in any order, with what is not there between");
	close_memory(false);
	ws_end();
}

static void
test_links_on_the_way(void)
{
	ws_begin();
	open_memory();
	ws_write("real/f", "x");
	ws_link("way", "real");
	ok_str(look("way/f"), "absent", "nothing is read through a link");
	close_memory(false);
	ws_end();
}

/* What a sandbox would not show is not keyed either, and each time said. */
static void
test_overlay_attribute(void)
{
	cleanup_close int fd = -1;

	ws_begin();
	open_memory();
	ws_write("empty", "");
	ws_write("full", "x");
	wait_past_racy("empty");
	want("empty", "100644", "", "an empty file");
	fd = openat(ws_fd, "full", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fsetxattr(fd, "user.overlay.whiteout", "", 0, 0)) {
		skip("an attribute of overlayfs", "no user attributes here");
	} else {
		fd_close(&fd);
		want("full", "100644", "x", "the attribute does nothing to a file with content");
		fd = openat(ws_fd, "empty", O_RDONLY | O_CLOEXEC);
		fsetxattr(fd, "user.overlay.whiteout", "", 0, 0);
		for (int i = 0; i < 2; i++) {
			ok(strstr(look("empty"), "empty has the attribute user.overlay.whiteout"),
				"it hides an empty one: an error that names it");
			close_memory(true);
			open_memory();
		}
		fremovexattr(fd, "user.overlay.whiteout");
		want("empty", "100644", "", "without it all is well");
	}
	close_memory(true);
	ws_end();
}

int
main(void)
{
	test_kinds();
	test_overlay_attribute();
	test_changes();
	test_same_size_and_mtime();
	test_memory();
	test_no_reading();
	test_trust();
	test_look_ahead();
	test_any_order();
	test_links_on_the_way();
	return tap_done();
}

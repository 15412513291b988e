/* SPDX-License-Identifier: MIT */
#include "sandbox/livenodes.h"
#include "tests/tap.h"
#include "util/strbuf.h"
#include <linux/fuse.h>

static struct livenodes t;

static struct livenode *
look_up(struct livenode *parent, const char *name, ino_t ino, mode_t type)
{
	struct stat st = {.st_dev = 1, .st_ino = ino, .st_mode = type | 0644};

	return livenodes_look_up(&t, parent, name, &st);
}

static void
ok_path(const struct livenode *n, const char *want, const char *name)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	bool has = livenodes_path(n, &path);

	ok(has == (want != NULL), "%s: has a path or not", name);
	if (want)
		ok_str(path.buf, want, name);
}

static void
test_names(void)
{
	struct livenode *root = livenodes_get(&t, FUSE_ROOT_ID), *a, *b, *c, *other;

	ok_path(root, "", "the workspace");
	ok(!livenodes_get(&t, 0) && !livenodes_get(&t, 2) && !livenodes_get(&t, 1ULL << 32 | 1),
		"no other number");
	a = look_up(root, "a", 10, S_IFDIR);
	b = look_up(a, "b", 11, S_IFDIR);
	c = look_up(b, "c", 12, S_IFREG);
	ok_path(c, "a/b/c", "three deep");
	ok(look_up(b, "c", 12, S_IFREG) == c && c->lookups == 2, "the same again");
	ok(livenodes_get(&t, c->id) == c && livenodes_find(&t, b, "c") == c, "by number and name");

	other = look_up(b, "c", 13, S_IFREG);
	ok(other != c && other->id != c->id, "another object is another node");
	ok_path(c, NULL, "what was replaced");
	ok_path(other, "a/b/c", "what replaced it");
	ok(look_up(b, "c", 13, S_IFLNK) != other, "so is one of another type");

	livenodes_rename(&t, b, root, "moved");
	ok_path(livenodes_find(&t, b, "c"), "moved/c",
		"what is in a renamed directory goes with it");
	ok(!livenodes_find(&t, a, "b"), "and is not where it was");
	livenodes_rename(&t, b, a, "b");
	livenodes_unname(&t, a);
	ok_path(b, NULL, "what is in a removed directory");
	ok(livenodes_get(&t, a->id) == a, "which the kernel still knows");
}

static void
test_forgetting(void)
{
	struct livenode *root = livenodes_get(&t, FUSE_ROOT_ID);
	struct livenode *dir = look_up(root, "dir", 20, S_IFDIR),
			*file = look_up(dir, "f", 21, S_IFREG);
	uint64_t dir_id = dir->id, file_id = file->id;
	size_t named = t.nnamed;

	livenodes_forget(&t, dir, 1);
	ok(livenodes_get(&t, dir_id) == dir, "a directory outlasts what is in it");
	livenodes_ref(file);
	livenodes_forget(&t, file, 100);
	ok(livenodes_get(&t, file_id) == file && !file->lookups, "an open file its look-ups");
	livenodes_unref(&t, file);
	ok(!livenodes_get(&t, file_id) && !livenodes_get(&t, dir_id), "then both go");
	ok_int((long long)t.nnamed, (long long)named - 2, "with their names");
	file = look_up(root, "again", 22, S_IFREG);
	ok(file->id != file_id && file->id != dir_id, "a number does not come back");
	livenodes_forget(&t, root, 1000);
	ok(livenodes_get(&t, FUSE_ROOT_ID) == root, "the workspace stays");
}

static void
test_exchange(void)
{
	struct livenode *root = livenodes_get(&t, FUSE_ROOT_ID);
	struct livenode *x = look_up(root, "x", 30, S_IFREG), *y = look_up(root, "y", 31, S_IFREG);

	livenodes_rename(&t, x, root, "y");
	ok_path(y, NULL, "what is replaced by a rename has no name");
	livenodes_rename(&t, y, root, "x");
	ok_path(x, "y", "one");
	ok_path(y, "x", "and the other");
	livenodes_rename(&t, y, root, "x");
	ok_path(y, "x", "onto itself");
}

static void
test_many(void)
{
	struct livenode *root = livenodes_get(&t, FUSE_ROOT_ID);
	size_t slots = t.n, bad = 0;
	char name[32];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			look_up(root, name, (ino_t)(1000 + i), S_IFREG);
		}
		for (int i = 0; i < 5000; i++) {
			struct livenode *n;

			snprintf(name, sizeof(name), "n%d", i);
			n = livenodes_find(&t, root, name);
			bad += !n || n->ino != (ino_t)(1000 + i);
			if (n)
				livenodes_forget(&t, n, 1);
		}
	}
	ok_int((long long)bad, 0, "many names are found");
	ok(t.n < slots + 5001, "and their room is used again");
}

static void
test_depth(void)
{
	struct livenode *at = livenodes_get(&t, FUSE_ROOT_ID), *top = NULL;
	size_t before = t.nnamed;

	for (int i = 0; i < 200000; i++) {
		struct livenode *n = look_up(at, "d", (ino_t)(10000 + i), S_IFDIR);

		if (top)
			livenodes_forget(&t, at, 1);
		else
			top = n;
		at = n;
	}
	livenodes_forget(&t, top, 1);
	livenodes_forget(&t, at, 1);
	ok_int((long long)t.nnamed, (long long)before, "a deep path goes from its end to its top");
}

int
main(void)
{
	livenodes_init(&t);
	test_names();
	test_forgetting();
	test_exchange();
	test_many();
	test_depth();
	livenodes_release(&t);
	return tap_done();
}

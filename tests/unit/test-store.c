/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "tests/unit/ws.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <sys/mman.h>
#include <sys/stat.h>

static struct store *s;

static struct digest
put(const void *p, size_t n)
{
	struct digest d = {{0}};
	struct err e = ERR_INIT;

	if (store_put_bytes(s, p, n, &d, &e))
		bug("%s", e.text);
	return d;
}

static int
temp_file(const void *p, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	if (fd < 0 || fd_write_all(fd, p, n))
		bug("memfd");
	return fd;
}

static void
blob_path(const struct digest *d, char ret[100])
{
	char hex[DIGEST_HEX];

	digest_hex(d, hex);
	snprintf(ret, 100, "blobs/%.2s/%s", hex, hex + 2);
}

static int
get(const struct digest *d, struct strbuf *out)
{
	struct err e = ERR_INIT;
	int r;

	strbuf_reset(out);
	r = store_get_bytes(s, d, 64 << 20, out, &e);
	if (err_is_set(&e))
		diag("%s", e.text);
	return r;
}

static void
test_bytes(void)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct digest d = put("a\0b", 3), empty = put("", 0), unknown = {{7}};
	struct err e = ERR_INIT;
	struct stat st;
	char path[100];

	ok(store_has(s, &d) && !store_has(s, &unknown), "what was put is there");
	ok_int(get(&d, &out), 1, "and comes back");
	ok(out.len == 3 && !memcmp(out.buf, "a\0b", 3), "byte for byte");
	ok_int(get(&empty, &out), 1, "nothing is content too");
	ok_int((long long)out.len, 0, "of no bytes");
	ok_int(get(&unknown, &out), 0, "what was not put is not there");
	blob_path(&d, path);
	ok(!fstatat(ws_fd, path, &st, 0) && (st.st_mode & 07777) == 0444, "blobs are read-only");
	put("a\0b", 3);
	ok(!fstatat(ws_fd, path, &st, 0) && st.st_nlink == 1, "the same content is one file");
	ok_int(store_get_bytes(s, &d, 2, &out, &e), -1, "more than the limit is an error");
}

static void
damage(const struct digest *d, int how)
{
	char path[100];
	cleanup_close int fd = -1;

	blob_path(d, path);
	unlinkat(ws_fd, path, 0);
	switch (how) {
	case 0: /* torn */
		fd = openat(ws_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		break;
	case 1: /* other bytes */
		ws_write(path, "evil");
		break;
	case 2: /* a link to what has the right bytes */
		ws_write("right", "precious");
		if (symlinkat("../../right", ws_fd, path))
			bug("symlink");
		break;
	case 3:
		mkfifoat(ws_fd, path, 0644);
		break;
	}
}

static void
test_damage(void)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (int how = 0; how < 4; how++) {
		struct digest d = put("precious", 8);
		cleanup_close int to = temp_file("", 0);
		struct err e = ERR_INIT;

		damage(&d, how);
		ok_int(store_get_fd(s, &d, to, &e), 0, "a damaged blob is a miss (file)");
		damage(&d, how);
		ok_int(get(&d, &out), 0, "a damaged blob is a miss (bytes)");
		if (how < 2)
			ok(!store_has(s, &d), "and is dropped");
		damage(&d, -1);
	}
}

/* Around the sizes where the way of copying changes, with data and holes. */
static void
test_sizes(void)
{
	static const size_t sizes[] = {
		0, 1, 4095, 131072, 131073, 262143, 262144, 262145, 400000, 1 << 20};
	size_t max = 1 << 20;
	cleanup_free char *bytes = xmalloc(max);

	for (size_t i = 0; i < max; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	memset(bytes + 262144, 0, 262144);
	for (size_t i = 0; i < array_len(sizes); i++) {
		cleanup_close int fd = temp_file(bytes, sizes[i]), to = temp_file("", 0);
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		struct err e = ERR_INIT;
		struct digest d, want;
		uint64_t size = 99;
		bool good;

		digest_bytes(bytes, sizes[i], &want);
		good = !store_put_fd(s, fd, &d, &size, &e) && size == sizes[i] &&
		       digest_equal(&d, &want);
		good = good && store_get_fd(s, &d, to, &e) == 1 && lseek(to, 0, SEEK_SET) == 0 &&
		       !fd_read_all(to, &out, max) && out.len == sizes[i] &&
		       !memcmp(out.buf, bytes, out.len);
		ok(good, "%zu bytes there and back", sizes[i]);
		if (err_is_set(&e))
			diag("%s", e.text);
	}
}

static void
test_sparse(void)
{
	cleanup_close int fd = temp_file("x", 1), to = -1;
	struct err e = ERR_INIT;
	struct digest d;
	struct stat st;
	char path[100];

	if (ftruncate(fd, 64 << 20))
		bug("ftruncate");
	ok_int(store_put_fd(s, fd, &d, NULL, &e), 0, "a sparse file is stored");
	blob_path(&d, path);
	ok(!fstatat(ws_fd, path, &st, 0) && st.st_size == 64 << 20 && st.st_blocks < 4096,
		"sparse");
	to = openat(ws_fd, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ok_int(store_get_fd(s, &d, to, &e), 1, "comes back");
	ok(!fstat(to, &st) && st.st_size == 64 << 20 && st.st_blocks < 4096, "sparse");
}

static void
test_full_disk(void)
{
	struct digest d = put("for a full disk", 15);
	cleanup_close int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct err e = ERR_INIT;

	if (full < 0) {
		skip("a full disk", "there is no /dev/full");
		return;
	}
	ok_int(store_get_fd(s, &d, full, &e), -1, "a target that is full is an error, not a miss");
	ok_err(&e, "No space left", "that says so");
	ok(store_has(s, &d), "and the blob stays");
}

int
main(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	if (store_open(ws_fd, &s, &e))
		bug("%s", e.text);
	test_bytes();
	test_damage();
	test_sizes();
	test_sparse();
	test_full_disk();
	store_close(s);
	ok(faccessat(ws_fd, "tmp", F_OK, 0), "no temporary names were needed, or none is left");
	ws_end();
	return tap_done();
}

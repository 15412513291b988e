/* SPDX-License-Identifier: MIT */
#include "cache/store.h"
#include "tests/unit/ws.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <zstd.h>

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

static char *
packed_path(const struct digest *d, char ret[100])
{
	char hex[DIGEST_HEX];

	digest_hex(d, hex);
	snprintf(ret, 100, "blobs/%.2s/%s.zst", hex, hex + 2);
	return ret;
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
	ok_int(store_get_bytes(s, &d, 2, &out, &e), 0, "more than the limit is damage");
	ok(!store_has(s, &d), "and is dropped");
}

static void
damage(const struct digest *d, int how)
{
	char path[100];
	cleanup_close int fd = -1;

	blob_path(d, path);
	if (unlinkat(ws_fd, path, 0) && errno == EISDIR)
		unlinkat(ws_fd, path, AT_REMOVEDIR);
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
	case 4:
		mkdirat(ws_fd, path, 0755);
		break;
	}
}

static void
test_damage(void)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (int how = 0; how < 5; how++) {
		struct digest d = put("precious", 8);
		cleanup_close int to = temp_file("", 0);
		struct err e = ERR_INIT;

		damage(&d, how);
		ok_int(store_get_fd(s, &d, 8, to, &e), 0, "a damaged blob is a miss (file)");
		damage(&d, how);
		ok_int(get(&d, &out), 0, "a damaged blob is a miss (bytes)");
		if (how < 2)
			ok(!store_has(s, &d), "and is dropped");
		put("precious", 8);
		ok_int(get(&d, &out), 1, "and is there when it was put again");
		damage(&d, -1);
	}
}

/* Around the sizes where the way of copying changes, with data and holes. */
static void
test_sizes(void)
{
	static const size_t sizes[] = {
		0, 1, 4095, 65536, 65537, 131072, 131073, 262143, 262144, 262145, 400000, 1 << 20};
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
		good = good && store_get_fd(s, &d, size, to, &e) == 1 &&
		       lseek(to, 0, SEEK_SET) == 0 && !fd_read_all(to, &out, max) &&
		       out.len == sizes[i] && !memcmp(out.buf, bytes, out.len);
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
	ok((!fstatat(ws_fd, path, &st, 0) || !fstatat(ws_fd, packed_path(&d, path), &st, 0)) &&
			st.st_blocks < 4096,
		"without its zeros");
	to = openat(ws_fd, "out", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ok_int(store_get_fd(s, &d, 64 << 20, to, &e), 1, "comes back");
	ok(!fstat(to, &st) && st.st_size == 64 << 20 && st.st_blocks < 4096, "sparse");
}

static off_t
size_of(const char *path)
{
	struct stat st;

	return fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW) ? -1 : st.st_size;
}

static int
get_file(const struct digest *d, uint64_t size, struct strbuf *out)
{
	cleanup_close int to = temp_file("", 0);
	struct err e = ERR_INIT;
	int r = store_get_fd(s, d, size, to, &e);

	strbuf_reset(out);
	if (r == 1 && (lseek(to, 0, SEEK_SET) || fd_read_all(to, out, 64 << 20)))
		bug("read back");
	return r;
}

static int
mend(struct store *fresh, const struct digest *d, const void *p, size_t n, struct strbuf *out)
{
	struct digest again;
	struct err e = ERR_INIT;

	if (store_put_bytes(fresh, p, n, &again, &e))
		bug("%s", e.text);
	strbuf_reset(out);
	return store_get_bytes(fresh, d, 64 << 20, out, &e) == 1 && out->len == n &&
	       !memcmp(out->buf, p, n);
}

/* What a power cut has torn must not be taken for content by the next save. */
static void
test_torn_at_save(void)
{
	cleanup_free char *zeros = xcalloc(1, 90000);
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct store *fresh; /* that has met no damage yet */
	struct err e = ERR_INIT;
	struct digest torn = put("a first", 7), same = put("another", 7), large = put(zeros, 90000);
	struct digest met = put("one more", 8);
	char path[100];

	if (store_open(ws_fd, &fresh, &e))
		bug("%s", e.text);
	damage(&torn, 0);
	ok(mend(fresh, &torn, "a first", 7, &out), "a blob of another size is written again");
	unlinkat(ws_fd, packed_path(&large, path), 0);
	ws_write(path, "");
	ok(mend(fresh, &large, zeros, 90000, &out), "a packed one of no size, too");

	damage(&met, 1);
	ok_int(store_get_bytes(fresh, &met, 64, &out, &e), 0, "once damage was met");
	unlinkat(ws_fd, (blob_path(&same, path), path), 0);
	ws_write(path, "ANOTHER");
	ok(mend(fresh, &same, "another", 7, &out), "one that only has the right size is, too");
	unlinkat(ws_fd, packed_path(&large, path), 0);
	ws_write(path, "no frame");
	ok(mend(fresh, &large, zeros, 90000, &out), "and one that is packed");
	store_close(fresh);
}

/* memfds cannot be cloned, so what is worth it is packed on every file system. */
static void
test_packed(void)
{
	cleanup_free char *text = xmalloc(1 << 20), *noise = xmalloc(1 << 20);
	cleanup_close int rnd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	cleanup_close int film = -1, words = -1;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct digest d;
	char path[100];

	for (size_t i = 0; i < 1 << 20; i++)
		text[i] = "what is written once and again "[i * i % 31];
	for (size_t n = 0; n < 1 << 20;) {
		ssize_t k = read(rnd, noise + n, (1 << 20) - n);

		if (k <= 0)
			bug("urandom");
		n += (size_t)k;
	}
	words = temp_file(text, 1 << 20);
	ok_int(store_put_fd(s, words, &d, NULL, &e), 0, "a large text");
	blob_path(&d, path);
	ok_int(size_of(path), -1, "is not stored as it is");
	ok(size_of(packed_path(&d, path)) > 0 && size_of(path) < 1 << 18, "but packed");
	ok(store_has(s, &d), "and known");
	ok_int(get_file(&d, 1 << 20, &out), 1, "it comes back");
	ok(out.len == 1 << 20 && !memcmp(out.buf, text, out.len), "as a file, byte for byte");
	ok_int(get(&d, &out), 1, "it comes back");
	ok(out.len == 1 << 20 && !memcmp(out.buf, text, out.len), "as bytes, byte for byte");
	/* what it is saved again for is found, and both forms are the same to a reader */
	ok_int(store_put_fd(s, words, &d, NULL, &e), 0, "the same again");
	blob_path(&d, path);
	ok_int(size_of(path), -1, "is still one blob");

	film = temp_file(noise, 1 << 20);
	ok_int(store_put_fd(s, film, &d, NULL, &e), 0, "what does not shrink");
	blob_path(&d, path);
	ok_int(size_of(path), 1 << 20, "is stored as it is");

	d = put(text, 70000);
	ok(size_of(packed_path(&d, path)) > 0, "bytes in memory are packed too");
	ok_int(get(&d, &out), 1, "and come back");
	ok(out.len == 70000 && !memcmp(out.buf, text, out.len), "byte for byte");
	d = put(text, 65536);
	ok_int(size_of(packed_path(&d, path)), -1, "64 KiB are not worth it");
}

/* What a hostile hand may leave in the place of the packed blob `d` of a million bytes. */
static void
plant(const struct digest *d, const void *p, size_t n)
{
	cleanup_close int fd = -1;
	char path[100];

	packed_path(d, path);
	path[8] = '\0';
	mkdirat(ws_fd, path, 0755);
	packed_path(d, path);
	unlinkat(ws_fd, path, 0);
	fd = openat(ws_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_all(fd, p, n))
		bug("%s", path);
}

static void
try_planted(const struct digest *d, const void *p, size_t n, const char *what)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err e = ERR_INIT;

	plant(d, p, n);
	ok(!get_file(d, 1 << 20, &out), "%s: a miss (file)", what);
	ok(!store_has(s, d), "%s: dropped", what);
	plant(d, p, n);
	ok(!store_get_bytes(s, d, 1 << 20, &out, &e), "%s: a miss (bytes)", what);
	ok(!store_has(s, d) && !out.len, "%s: dropped", what);
}

static void
test_hostile_frames(void)
{
	size_t n = 1 << 20, cap = ZSTD_compressBound(64 << 20);
	cleanup_free char *zeros = xcalloc(64, 1 << 20), *frame = xmalloc(cap + 64);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	struct digest d;
	size_t good, r;

	digest_bytes(zeros, n, &d);
	good = ZSTD_compress(frame, cap, zeros, n, 1);
	plant(&d, frame, good);
	{
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		ok_int(get_file(&d, n, &out), 1, "a good frame of another zstd is read");
	}
	try_planted(&d, frame, good - 1, "a torn frame");
	try_planted(&d, frame, 0, "no frame at all");
	try_planted(&d, zeros, 100, "no frame but zeros");
	frame[good] = 0;
	try_planted(&d, frame, good + 1, "a byte after the frame");
	memcpy(frame + good, frame, good < 64 ? good : 0);
	try_planted(&d, frame, good * 2, "two frames");
	frame[good - 1] ^= 0x40;
	try_planted(&d, frame, good, "a changed frame");
	good = ZSTD_compress(frame, cap, zeros, n, 1);
	frame[5] ^= 1; /* behind the magic number and a byte of flags: the size of the content */
	try_planted(&d, frame, good, "a frame that lies about its size");
	r = ZSTD_compress(frame, cap, zeros, 64 << 20, 1);
	try_planted(&d, frame, r, "a bomb that says its size");
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
	r = ZSTD_compress2(c, frame, cap, zeros, 64 << 20);
	try_planted(&d, frame, r, "a bomb that says no size");
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 27);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, 1);
	{
		ZSTD_inBuffer in = {zeros, n, 0};
		ZSTD_outBuffer out = {frame, cap, 0};

		while (ZSTD_compressStream2(c, &out, &in, ZSTD_e_end))
			;
		try_planted(&d, frame, out.pos, "a frame that wants 128 MiB");
	}
	ZSTD_freeCCtx(c);
}

static int
count(void *ctx, const struct store_blob *b)
{
	size_t *n = ctx;

	n[b->packed]++;
	return 0;
}

struct seen {
	struct digest want;
	struct store_blob blob;
};

static int
look(void *ctx, const struct store_blob *b)
{
	struct seen *seen = ctx;

	if (digest_equal(&b->digest, &seen->want))
		seen->blob = *b;
	return 0;
}

static void
test_each(void)
{
	size_t before[2] = {0}, after[2] = {0};
	cleanup_free char *text = xcalloc(1, 100000);
	struct err e = ERR_INIT;
	struct seen seen = {.blob.used_ns = -1};
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	const int64_t old_ns = 1000ll * 1000 * 1000 * 1000;
	uint64_t written = store_written(s);
	char path[100];

	ok_int(store_each(s, count, before, &e), 0, "all blobs are listed");
	seen.want = put(text, 100000);
	put("one more of them", 16);
	ok(store_written(s) > written, "what is written counts");
	written = store_written(s);
	put("one more of them", 16);
	ok(store_written(s) == written, "what was here already does not");
	ws_write("blobs/ab/README", "no blob");
	ws_write("blobs/ab/"
		 "0123456789012345678901234567890123456789012345678901234567890.zst",
		"");
	store_each(s, count, after, &e);
	ok(after[0] == before[0] + 1 && after[1] == before[1] + 1, "and nothing else");
	packed_path(&seen.want, path);
	utimensat(ws_fd, path, old, 0);
	store_each(s, look, &seen, &e);
	ok(seen.blob.used_ns == old_ns && seen.blob.packed, "with the time of the last use");
	put(text, 100000);
	ok(!store_remove(s, &seen.blob) && store_has(s, &seen.want),
		"what a save has used since is not removed");
	store_each(s, look, &seen, &e);
	ok(seen.blob.used_ns > old_ns, "because that is a use");
	ok(store_remove(s, &seen.blob) && !store_has(s, &seen.want), "else it is");
	ok(!store_remove(s, &seen.blob), "once");
}

static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* A store of many blobs leaves descriptors to others. */
static void
test_descriptors(void)
{
	struct rlimit old, low;
	struct err e = ERR_INIT;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct digest d[600];
	int before, good = 0;

	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = 64;
	setrlimit(RLIMIT_NOFILE, &low);
	store_close(s);
	before = open_fds();
	if (store_open(ws_fd, &s, &e))
		bug("%s", e.text);
	for (size_t i = 0; i < array_len(d); i++)
		d[i] = put(&i, sizeof(i));
	for (size_t i = 0; i < array_len(d); i++)
		good += get(&d[i], &out) == 1 && !memcmp(out.buf, &i, sizeof(i));
	ok_int(good, array_len(d), "many blobs with few descriptors");
	ok(open_fds() <= before + 18, "a quarter of them, and two");
	setrlimit(RLIMIT_NOFILE, &old);
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
	ok_int(store_get_fd(s, &d, 15, full, &e), -1,
		"a target that is full is an error, not a miss");
	ok_err(&e, "No space left", "that says so");
	ok(store_has(s, &d), "and the blob stays");
}

static void
test_save(void)
{
	struct err e = ERR_INIT;
	struct store *other;
	struct digest before, here, touched, kept, bare;
	uint64_t written;
	char path[100];
	const struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	if (store_open(ws_fd, &other, &e))
		bug("%s", e.text);
	before = put("there before the save", 21);
	written = store_written(s);
	store_save_begin(s);
	put("there before the save", 21);
	here = put("of the save that fails", 22);
	touched = put("and another one finds it", 24);
	blob_path(&touched, path);
	/* as if it were old by then, so that the other save says that it uses it */
	utimensat(ws_fd, path, past, 0);
	store_save_begin(other);
	ok_int(store_put_bytes(other, "and another one finds it", 24, &touched, &e), 0,
		"another save finds a blob");
	store_save_end(other, true);
	store_save_end(s, false);
	ok(!store_has(s, &here), "a save that fails takes away what it made");
	ok(store_has(s, &before), "but not what was there before");
	ok(store_has(s, &touched), "nor what another save has used since");
	ok(store_written(s) < written + 3 * 4096, "what is gone does not count as written");
	store_save_begin(s);
	kept = put("of a save that is kept", 22);
	store_save_end(s, true);
	bare = put("of none", 7);
	store_save_begin(s);
	store_save_end(s, false);
	ok(store_has(s, &kept) && store_has(s, &bare), "what was put before is not its own");
	store_close(other);
}

static int64_t
wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Of two processes: a save and a cleaning know of each other, and neither waits. */
static void
test_sweep(void)
{
	const int64_t hour = 3600ll * 1000000000;
	struct seen seen = {.blob.used_ns = -1};
	struct err e = ERR_INIT;
	struct store *other;
	int64_t before, began = wall_ns();

	if (store_open(ws_fd, &other, &e))
		bug("%s", e.text);
	seen.want = put("found by a save", 15);
	store_save_begin(other);
	before = store_sweep_begin(s);
	store_sweep_end(s);
	store_save_end(other, true);
	ok(before < began - hour / 2, "beside a save the young are left alone");
	before = store_sweep_begin(s);
	ok(before > began - hour / 2, "where there is none, nothing is");
	store_save_begin(other);
	store_each(s, look, &seen, &e);
	while (wall_ns() < seen.blob.used_ns + 20000000) /* the next tick of the files' clock */
		;
	ok_int(store_put_bytes(other, "found by a save", 15, &seen.want, &e), 0,
		"a save that begins meanwhile finds a young blob");
	ok(!store_remove(s, &seen.blob), "which is not removed");
	store_each(s, look, &seen, &e);
	ok(seen.blob.used_ns >= before, "nor when it is listed later");
	store_sweep_end(s);
	store_save_end(other, true);
	before = store_sweep_begin(s);
	ok(before > began - hour / 2, "after both it is as before");
	store_sweep_end(s);
	store_close(other);
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
	test_packed();
	test_torn_at_save();
	test_hostile_frames();
	test_each();
	test_save();
	test_sweep();
	test_descriptors();
	test_full_disk();
	store_close(s);
	ok(faccessat(ws_fd, "tmp", F_OK, 0), "no temporary names were needed, or none is left");
	ws_end();
	return tap_done();
}

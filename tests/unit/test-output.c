/* SPDX-License-Identifier: MIT */
#include "exec/output.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"

/* "1:text 2:text " */
static void
show(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	strbuf_addf(ctx, "%d:%.*s ", stream, (int)n, p);
}

static void
append(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	(void)stream;
	strbuf_add(ctx, p, n);
}

static bool
is_utf8(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)s[i];
		size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;

		if (!len || i + len > n)
			return false;
		for (size_t k = 1; k < len; k++)
			if (((unsigned char)s[i + k] & 0xc0) != 0x80)
				return false;
		i += len;
	}
	return true;
}

static void
check_round_trip(const struct captured *c, const char *name)
{
	cleanup_strbuf struct strbuf blob = STRBUF_INIT, a = STRBUF_INIT, b = STRBUF_INIT,
				     again = STRBUF_INIT;
	struct captured copy;

	captured_encode(c, &blob);
	ok_int(captured_decode(blob.buf, blob.len, &copy), 0, name);
	captured_each(c, append, &a);
	captured_each(&copy, append, &b);
	ok(a.len == b.len && !memcmp(a.buf, b.buf, a.len), "%s: replays the same", name);
	captured_encode(&copy, &again);
	ok(again.len == blob.len && !memcmp(again.buf, blob.buf, blob.len), "%s: is stable", name);
	captured_release(&copy);
}

static void
test_small(void)
{
	cleanup_strbuf struct strbuf told = STRBUF_INIT, blob = STRBUF_INIT;
	struct captured c, bad;
	int refused = 0;

	captured_init(&c);
	ok(captured_is_empty(&c), "nothing at first");
	check_round_trip(&c, "nothing");
	captured_add(&c, EXEC_STDOUT, "a", 1);
	captured_add(&c, EXEC_STDOUT, "b", 1);
	captured_add(&c, EXEC_STDERR, "", 0);
	captured_add(&c, EXEC_STDERR, "c", 1);
	captured_add(&c, EXEC_STDOUT, "d", 1);
	captured_each(&c, show, &told);
	ok_str(told.buf, "1:ab 2:c 1:d ", "both streams in their order");
	check_round_trip(&c, "a little");

	captured_encode(&c, &blob);
	for (size_t n = 0; n < blob.len; n++) {
		refused += captured_decode(blob.buf, n, &bad) != 0;
		captured_release(&bad);
	}
	/* after the header and after each run a cut blob is a shorter one */
	ok_int(refused, (long long)blob.len - 3, "cut blobs are refused");
	blob.buf[20] = 3;
	ok(captured_decode(blob.buf, blob.len, &bad) && captured_is_empty(&bad),
		"an unknown stream");
	blob.buf[20] = 1;
	blob.buf[12] = 1;
	ok_int(captured_decode(blob.buf, blob.len, &bad), -1, "a cut where nothing was dropped");
	blob.buf[12] = 0;
	blob.buf[0] = 'V';
	ok_int(captured_decode(blob.buf, blob.len, &bad), -1, "not such a blob");
	captured_release(&c);
}

/* `total` bytes, read in pieces of `piece`: numbers and units. */
static void
check_bounds(size_t total, size_t piece, const char *unit, const char *name)
{
	struct strbuf all = STRBUF_INIT, kept = STRBUF_INIT;
	size_t head, unit_len = strlen(unit);
	const char *note;
	unsigned long long dropped = 0;
	struct captured c;

	while (all.len < total) {
		strbuf_addf(&all, "%zu", all.len);
		for (int i = 0; i < 30; i++)
			strbuf_add(&all, unit, unit_len);
	}
	captured_init(&c);
	for (size_t i = 0; i < all.len; i += piece)
		captured_add(
			&c, EXEC_STDOUT, all.buf + i, all.len - i < piece ? all.len - i : piece);
	captured_each(&c, append, &kept);
	note = strstr(kept.buf, "[vx: ");
	if (all.len <= OUTPUT_HEAD + OUTPUT_TAIL) {
		ok(!note && kept.len == all.len && !memcmp(kept.buf, all.buf, all.len), "%s: whole",
			name);
	} else {
		const char *end = note ? strchr(note, '\n') : NULL;
		size_t tail = end ? kept.len - (size_t)(end + 1 - kept.buf) : 0;

		ok(note && sscanf(note, "[vx: %llu bytes left out", &dropped) == 1, "%s: a note",
			name);
		head = note ? (size_t)(note - kept.buf) : 0;
		if (head + dropped + tail > all.len && kept.buf[head - 1] == '\n')
			head--; /* the newline is the note's */
		ok(head <= OUTPUT_HEAD && head > OUTPUT_HEAD - 4 &&
				!memcmp(kept.buf, all.buf, head),
			"%s: the head", name);
		ok(tail <= OUTPUT_TAIL && tail > OUTPUT_TAIL - 4 &&
				!memcmp(end + 1, all.buf + all.len - tail, tail),
			"%s: the tail", name);
		ok_int((long long)(head + dropped + tail), (long long)all.len, name);
		ok(is_utf8(kept.buf, head) && is_utf8(kept.buf + head, kept.len - head),
			"%s: no sequence is cut", name);
		ok(c.bytes.len <= OUTPUT_HEAD + 2 * OUTPUT_TAIL, "%s: bounded", name);
	}
	check_round_trip(&c, name);
	captured_release(&c);
	strbuf_release(&all);
	strbuf_release(&kept);
}

static void
test_streams_over_the_cut(void)
{
	cleanup_free char *big = xmalloc(1 << 20);
	cleanup_strbuf struct strbuf told = STRBUF_INIT;
	struct captured c;

	memset(big, 'o', 1 << 20);
	captured_init(&c);
	for (int i = 0; i < 40; i++) {
		captured_add(&c, EXEC_STDOUT, big, 1 << 20);
		captured_add(&c, EXEC_STDERR, "E\n", 2);
	}
	check_round_trip(&c, "two streams over the cut");
	captured_each(&c, show, &told);
	ok_str(told.buf + told.len - 5, "2:E\n ", "the last is the last");
	ok(strstr(told.buf, "oo 1:\n[vx: "), "a line for the rest");
	captured_release(&c);
}

int
main(void)
{
	test_small();
	check_bounds(1000, 7, "\n", "small");
	check_bounds(OUTPUT_HEAD + OUTPUT_TAIL - 60, 65536, "\n", "almost too much");
	check_bounds(OUTPUT_HEAD + OUTPUT_TAIL + 100, 65536, "-\n", "a little too much");
	check_bounds(40 << 20, 65536, "\xe2\x82\xac\n", "40 MiB");
	check_bounds(25 << 20, 65521, "\xf0\x9f\x8e\x89", "25 MiB of one line");
	check_bounds((25 << 20) + 1, 4095, "\xf0\x9f\x8e\x89", "in other pieces");
	test_streams_over_the_cut();
	return tap_done();
}

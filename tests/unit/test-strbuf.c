/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"

static void
check_normalise(const char *in, const char *want)
{
	char *got = path_normalise(in);

	ok_str(got, want, in);
	free(got);
}

static void
check_relative(const char *from, const char *to, const char *want)
{
	char *got = path_relative(from, to);

	ok_str(got, want, to);
	free(got);
}

int
main(void)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct htab t;
	char key[16];

	ok_str(sb.buf, "", "an empty buffer is a string");
	strbuf_addf(&sb, "%d-%s", 7, "x");
	strbuf_add(&sb, "\0y", 2);
	ok_int((long long)sb.len, 5, "length counts a NUL inside");
	strbuf_reset(&sb);
	strbuf_add_sanitised(&sb, "a\x1b[2J\n\xc2\x9b\xc3\xa9", 9);
	ok_str(sb.buf, "a\\x1b[2J\\x0a\\xc2\\x9b\xc3", "escape codes are shown, letters stay");

	check_normalise("a//b/./c/..", "a/b");
	check_normalise("../a/../../b", "../../b");
	check_normalise("/../x", "/x");
	check_normalise(".", "");
	check_relative("packages/a", "packages/b/c", "../b/c");
	check_relative("packages/a", "packages/a/c", "c");
	check_relative("", "x", "x");
	check_relative("a/b", "a", "..");
	check_relative("a/bc", "a/b", "../b");
	check_relative("a", "a", "");
	ok(path_is_within("sub/x", "sub") && !path_is_within("subway", "sub"), "by component");
	ok_str(path_find("aa/a/x/a", "a"), "a/x/a", "the first whole component");
	ok(!path_find("aa/ba", "a") && path_find("a", "a") && !path_find("", "a"), "or none");
	ok(path_is_normal("a/b") && !path_is_normal("a/../b") && !path_is_normal("/a") &&
			!path_is_normal("a/"),
		"normal paths");

	htab_init(&t);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		htab_putn_copy(&t, key, strlen(key), (void *)(uintptr_t)(i + 1));
	}
	ok_int((long long)(uintptr_t)htab_get(&t, "k999"), 1000, "a table holds what was put");
	ok(!htab_get(&t, "k1000"), "and nothing else");
	ok_str(t.entries[3].key, "k3", "in the order of insertion");
	htab_release(&t);
	return tap_done();
}

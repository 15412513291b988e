#include "slug.h"
#include <stdio.h>
#include <string.h>

static int failed;

static void
expect(const char *title, size_t n, const char *want, size_t want_len)
{
	char out[64] = "untouched";
	size_t len = slug_make(out, n, title);

	if (strcmp(out, want) != 0 || len != want_len) {
		printf("slug_make(\"%s\"): \"%s\" (%zu), want \"%s\" (%zu)\n", title, out, len,
			want, want_len);
		failed = 1;
	}
}

int
main(void)
{
	expect("Hello, World!", 64, "hello-world", 11);
	expect("  --  C   2024 ", 64, "c-2024", 6);
	expect("", 64, "", 0);
	expect("!?", 64, "", 0);
	expect("Truncated", 5, "trun", 9);
	expect("a b", 3, "a-", 3);
	if (!failed)
		puts("libslug: 6 cases");
	return failed;
}

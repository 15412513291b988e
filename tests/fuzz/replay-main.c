/* SPDX-License-Identifier: MIT */
/*
 * A plain main for a fuzz target: every file of a directory is one input and one test. The
 * directory is the argument; without one, fuzz-NAME takes its own corpus, tests/fuzz/corpus-NAME. A
 * target that finds something aborts, so that the test's plan is not met; the last name printed is
 * the input.
 */
#include "tests/tap.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
list(const char *dir, struct strvec *ret)
{
	cleanup_dir DIR *d = opendir(dir);
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (*entry->d_name != '.')
			strvec_push(ret, entry->d_name);
	strvec_sort(ret);
}

static void
own_corpus(const char *program, struct strbuf *ret)
{
	const char *base = strrchr(program, '/'), *name = strstr(base ? base : program, "fuzz-");
	const char *top = getenv("VX_SRCDIR");

	strbuf_addf(ret, "%s/tests/fuzz/corpus-%s", top ? top : ".",
		name ? name + strlen("fuzz-") : program);
}

int
main(int argc, char **argv)
{
	cleanup_strbuf struct strbuf dir = STRBUF_INIT, data = STRBUF_INIT;
	cleanup_strvec struct strvec names = STRVEC_INIT;

	if (argc > 1)
		strbuf_adds(&dir, argv[1]);
	else
		own_corpus(argv[0], &dir);
	list(dir.buf, &names);
	if (!names.n) {
		printf("Bail out! no inputs in %s\n", dir.buf);
		return 1;
	}
	for (size_t i = 0; i < names.n; i++) {
		cleanup_close int dirfd = open(dir.buf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct err e = ERR_INIT;
		/* Of its own size, so that a read beyond it is seen. */
		uint8_t *exact;

		diag("%s", names.v[i]);
		fflush(stdout);
		strbuf_reset(&data);
		if (fd_read_file(dirfd, names.v[i], 1 << 24, &data, &e) < 0) {
			ok(false, "%s", e.text);
			continue;
		}
		exact = malloc(data.len ? data.len : 1);
		memcpy(exact, data.buf, data.len);
		ok(LLVMFuzzerTestOneInput(exact, data.len) == 0, "%s", names.v[i]);
		free(exact);
	}
	return tap_done();
}

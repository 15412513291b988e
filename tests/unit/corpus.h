/* SPDX-License-Identifier: MIT */
/*
 * With VX_TEST_CORPUS=FILE a test appends each config that it tries, for tests/cli/schema.py.
 */
#ifndef TESTS_UNIT_CORPUS_H
#define TESTS_UNIT_CORPUS_H

#include "tests/tap.h"

/* `kind`: "project" or "workspace". */
static inline void
corpus_add(const char *kind, const char *text)
{
	const char *path = getenv("VX_TEST_CORPUS");
	FILE *f = path ? fopen(path, "ae") : NULL;

	if (!f)
		return;
	fprintf(f, "%s %s%c", kind, text, 0);
	if (fclose(f))
		printf("Bail out! cannot write %s\n", path);
}

#endif

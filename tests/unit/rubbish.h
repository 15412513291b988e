/* SPDX-License-Identifier: MIT */
/* Requests that no kernel makes, for whatever answers those of FUSE. */
#ifndef TESTS_UNIT_RUBBISH_H
#define TESTS_UNIT_RUBBISH_H

#include "tests/tap.h"
#include "util/base.h"
#include <string.h>

typedef int rubbish_fn(uint32_t opcode, uint64_t node, const void *arg, size_t n);

/* Every opcode that there is and some more, about each node, with arguments of many lengths. */
static inline void
rubbish_ask(rubbish_fn *ask, const uint64_t *nodes, size_t nnodes)
{
	static const unsigned char fills[] = {0, 0xff, '.', '/', 'x'};
	unsigned char arg[200];
	size_t asked = 0;

	for (uint32_t opcode = 0; opcode <= 52; opcode++)
		for (size_t i = 0; i < nnodes; i++)
			for (size_t k = 0; k < array_len(fills); k++)
				for (size_t n = 0; n <= sizeof(arg); n += n < 8 ? 1 : 8) {
					memset(arg, fills[k], sizeof(arg));
					/* a name may end where the argument does */
					if (n)
						arg[n - 1] = n % 2 ? 0 : fills[k];
					ask(opcode, nodes[i], arg, n);
					asked++;
				}
	ok(asked > 10000, "rubbish is survived");
}

#endif

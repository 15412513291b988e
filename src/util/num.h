/* SPDX-License-Identifier: MIT */
/*
 * Strict numbers: the whole string, plain decimal, in range. No sign, hex, exponent or blanks
 * (spec/cli: parsing rules). On failure -1 with an error that says what was expected.
 */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include "util/base.h"

struct err;

/* min..max inclusive. `what` names the value in the error: "--concurrency". */
int num_parse_u64(
	const char *s, uint64_t min, uint64_t max, uint64_t *ret, const char *what, struct err *e);

#endif

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

/* "10G", "512MB", "100B": a whole number, more than 0, and K, M, G, T (powers of 1024), a B behind
 * or alone. "30d": s, m, h, d. Errors do not name the value. */
int num_parse_size(const char *s, uint64_t *ret_bytes, struct err *e);
int num_parse_duration(const char *s, uint64_t *ret_ns, struct err *e);

#endif

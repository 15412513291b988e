/* SPDX-License-Identifier: MIT */
/* Between regex-parse.c, which makes steps of a pattern, and regex.c, which walks them. */
#ifndef UTIL_REGEX_PRIVATE_H
#define UTIL_REGEX_PRIVATE_H

#include "util/base.h"

struct err;

enum {
	REGEX_CHAR_MAX = 0x10ffff,
	REGEX_RAW = 0x110000, /* plus a byte that is no UTF-8 */
};

enum regex_op {
	RE_SET,  /* a character of ranges[x] and the y - 1 after it; negated: any other */
	RE_JUMP, /* to x */
	RE_FORK, /* to x, and to y */
	RE_BEGIN,
	RE_END,
	RE_WORD_EDGE, /* negated: where there is none */
	RE_MATCH,
};
struct regex_step {
	enum regex_op op;
	bool negated;
	size_t x, y;
};
struct regex_range {
	uint32_t from, to;
};

struct regex {
	struct regex_step *steps;
	size_t n, cap;
	struct regex_range *ranges;
	size_t nranges, ranges_cap;
};

/* The character at p[0..n), n > 0, and its length. */
uint32_t regex_char(const char *p, size_t n, size_t *ret_len);
int regex_parse(struct regex *re, const char *pattern, struct err *e);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What two keys of one task differ in, by their canonical bytes (cache/key.h).
 */
#ifndef CACHE_KEYDIFF_H
#define CACHE_KEYDIFF_H

#include "util/digest.h"
#include "util/strbuf.h"

/* In the order in which they explain. */
enum keydiff_part {
	KEYDIFF_CONFIG,
	KEYDIFF_ARGUMENTS,
	KEYDIFF_ENV,
	KEYDIFF_RUNTIME,
	KEYDIFF_INPUT,
	KEYDIFF_MANIFEST,
	KEYDIFF_WORKSPACE,
	KEYDIFF_PLATFORM,
	KEYDIFF_UPSTREAM,
	KEYDIFF_PARTS
};
enum keydiff_how {
	KEYDIFF_CHANGED,
	KEYDIFF_MODE, /* of a file, whose content did not */
	KEYDIFF_CAME,
	KEYDIFF_WENT
};

/* `name`: of a variable, command or input, as it is; of an upstream, its key as 64 hex digits; else empty. Borrowed. */
typedef void keydiff_fn(void *ctx, enum keydiff_part part, enum keydiff_how how, const char *name);

/* Calls fn for each difference, in the order of the bytes. False: one of them is not of this form. */
bool keydiff(const char *was, size_t nwas, const char *is, size_t nis, keydiff_fn *fn, void *ctx);

/* Appends the bytes as they may be kept: with digests in the place of the values of variables, of what commands print and
 * of arguments, which may be secrets, and long. Two of these differ as the keys do. False: not of this form. */
bool keydiff_reduce(const char *text, size_t n, struct strbuf *ret);

#endif

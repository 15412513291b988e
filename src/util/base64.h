/* SPDX-License-Identifier: MIT */
/*
 * Base64 of RFC 4648: the standard alphabet, padded, nothing else between.
 */
#ifndef UTIL_BASE64_H
#define UTIL_BASE64_H

#include "util/strbuf.h"

/* Appends the bytes that the text stands for. False, with nothing appended, where it is none: another
 * character, no or too much padding, bits that stand for nothing. */
bool base64_decode(const char *text, size_t n, struct strbuf *out);

#endif

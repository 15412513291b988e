/* SPDX-License-Identifier: MIT */
/* UTF-8, as the standard has it: nothing overlong, no surrogates, nothing beyond U+10FFFF. */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include "util/base.h"

/* The bytes of the character at p[0..n), n > 0. 0: it is none. */
static inline size_t
utf8_char(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t len = u[0] < 0x80   ? 1
		     : u[0] < 0xc2 ? 0
		     : u[0] < 0xe0 ? 2
		     : u[0] < 0xf0 ? 3
		     : u[0] < 0xf5 ? 4
				   : 0;

	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] >= 0xa0) ||
		(u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] >= 0x90))
		return 0;
	return len;
}

/* Whether p[0..n), n > 0, is the beginning of characters and no whole one. */
static inline bool
utf8_may_begin(const char *p, size_t n)
{
	static const char *const rest[] = {"\x80\x80\x80", "\xbf\xbf\xbf"};
	char whole[8];

	if (n > 3 || utf8_char(p, n))
		return false;
	memcpy(whole, p, n);
	/* Of what follows the second byte all values go; of the second itself the highest or the lowest does. */
	for (size_t i = 0; i < 2; i++) {
		memcpy(whole + n, rest[i], 3);
		if (utf8_char(whole, n + 3) > n)
			return true;
	}
	return false;
}

static inline bool
utf8_is_valid(const char *p, size_t n)
{
	for (size_t i = 0, len; i < n; i += len) {
		len = utf8_char(p + i, n - i);
		if (!len)
			return false;
	}
	return true;
}

/* Whether the text holds what a terminal may obey: in UTF-8 U+0080 to U+009F are such characters, too. */
static inline bool
utf8_has_control(const char *s)
{
	for (const unsigned char *u = (const unsigned char *)s; *u; u++)
		if (*u < 0x20 || *u == 0x7f || (*u == 0xc2 && (u[1] & 0xe0) == 0x80))
			return true;
	return false;
}

#endif

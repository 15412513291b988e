/* SPDX-License-Identifier: MIT */
#include "util/base64.h"

/* 0..63; -1: not in the alphabet. */
static int
value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters. Returns how many bytes they stand for, 0: they are wrong. */
static size_t
decode_group(const char *in, size_t padding, unsigned char *ret)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int v = i < 4 - padding ? value_of(in[i]) : 0;

		if (v < 0)
			return 0;
		bits = bits << 6 | (uint32_t)v;
	}
	for (size_t i = 0; i < 3; i++)
		ret[i] = (unsigned char)(bits >> (16 - 8 * i));
	/* One text for the same bytes. */
	if ((padding == 1 && ret[2]) || (padding == 2 && ret[1]))
		return 0;
	return 3 - padding;
}

bool
base64_decode(const char *text, size_t n, struct strbuf *out)
{
	size_t before = out->len;

	if (n % 4)
		return false;
	strbuf_grow(out, n / 4 * 3);
	for (size_t at = 0; at < n; at += 4) {
		unsigned char bytes[3];
		size_t padding = 0, len;

		if (at + 4 == n)
			padding = text[n - 1] != '=' ? 0 : text[n - 2] != '=' ? 1 : 2;
		len = decode_group(text + at, padding, bytes);
		if (!len) {
			strbuf_truncate(out, before);
			return false;
		}
		strbuf_add(out, bytes, len);
	}
	return true;
}

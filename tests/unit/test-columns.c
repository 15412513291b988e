/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"
#include "util/columns.h"

int
main(void)
{
	ok_int((long long)columns_of(""), 0, "nothing");
	ok_int((long long)columns_of("app#build"), 9, "ASCII");
	ok_int((long long)columns_of("▸ é"), 3, "two and three bytes");
	ok_int((long long)columns_of("日本語"), 6, "wide ones");
	ok_int((long long)columns_of("한🚀"), 4, "Hangul, emoji");
	ok_int((long long)columns_of("e\xcc\x81"), 1, "a combining mark");
	ok_int((long long)columns_of("\xff\xe6\x97"), 3, "bytes that are no UTF-8");
	ok_int((long long)columns_fit("abc", 2), 2, "cut");
	ok_int((long long)columns_fit("abc", 3), 3, "all of it");
	ok_int((long long)columns_fit("a日本", 4), 4, "no half of a wide one");
	ok_int((long long)columns_fit("e\xcc\x81x", 1), 3, "a mark stays with its letter");
	ok_int((long long)columns_fit("日", 0), 0, "no room");
	return tap_done();
}

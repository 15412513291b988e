/* SPDX-License-Identifier: MIT */
#include "util/num.h"
#include "util/err.h"
#include "util/strbuf.h"

int
num_parse_u64(
	const char *s, uint64_t min, uint64_t max, uint64_t *ret, const char *what, struct err *e)
{
	uint64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			break;
	if (p == s || *p || v < min || v > max) {
		cleanup_strbuf struct strbuf word = STRBUF_INIT;

		strbuf_add_sanitised(&word, s, strlen(s));
		return err_set(e, ERR_USAGE, 0, "%s: '%s' is not a whole number from %llu to %llu",
			what, word.buf, (unsigned long long)min, (unsigned long long)max);
	}
	*ret = v;
	return 0;
}

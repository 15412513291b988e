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

/* Digits, then a unit that stands in `units` with its factor. */
struct unit {
	const char *name;
	uint64_t factor;
};

static bool
parse_with_unit(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
	size_t digits = strspn(s, "0123456789");
	uint64_t v = 0;

	for (size_t i = 0; i < digits; i++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	for (size_t i = 0; i < n && digits; i++)
		if (!strcmp(s + digits, units[i].name)) {
			if (!v || __builtin_mul_overflow(v, units[i].factor, &v) || v > INT64_MAX)
				return false;
			*ret = v;
			return true;
		}
	return false;
}

int
num_parse_size(const char *s, uint64_t *ret_bytes, struct err *e)
{
	static const struct unit units[] = {{"B", 1}, {"K", 1 << 10}, {"KB", 1 << 10},
		{"M", 1 << 20}, {"MB", 1 << 20}, {"G", 1 << 30}, {"GB", 1 << 30}, {"T", 1ull << 40},
		{"TB", 1ull << 40}};

	if (parse_with_unit(s, units, array_len(units), ret_bytes))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"write a whole number from 1 on, and K, M, G or T behind it (or KB, MB, …), like "
		"10G");
}

int
num_parse_duration(const char *s, uint64_t *ret_ns, struct err *e)
{
	const uint64_t second = 1000ull * 1000 * 1000;
	const struct unit units[] = {
		{"s", second}, {"m", 60 * second}, {"h", 3600 * second}, {"d", 24 * 3600 * second}};

	if (parse_with_unit(s, units, array_len(units), ret_ns))
		return 0;
	return err_set(e, ERR_USAGE, 0,
		"write a whole number from 1 on, and s, m, h or d behind it, like 30d");
}

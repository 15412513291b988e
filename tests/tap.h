/* SPDX-License-Identifier: MIT */
/*
 * The unit-test harness: TAP on stdout. A test program calls ok*() any number of times and returns
 * tap_done(). Every check prints its place and both sides when it fails.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include "util/base.h"
#include "util/err.h"
#include <stdarg.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 1, 2), unused)) static void
diag(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

__attribute__((format(printf, 4, 5), unused)) static bool
tap_ok(bool good, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (!good) {
		tap_failed++;
		diag("failed at %s:%d", file, line);
	}
	fflush(stdout);
	return good;
}

__attribute__((unused)) static void
tap_str(const char *got, const char *want, const char *name, const char *file, int line)
{
	bool good = got && want ? !strcmp(got, want) : got == want;

	if (!tap_ok(good, file, line, "%s", name)) {
		diag("  got:  %s", got ? got : "(null)");
		diag("  want: %s", want ? want : "(null)");
	}
}

__attribute__((unused)) static void
tap_int(long long got, long long want, const char *name, const char *file, int line)
{
	if (!tap_ok(got == want, file, line, "%s", name)) {
		diag("  got:  %lld", got);
		diag("  want: %lld", want);
	}
}

__attribute__((unused)) static void
tap_err(const struct err *e, const char *part, const char *name, const char *file, int line)
{
	if (!tap_ok(err_is_set(e) && strstr(e->text, part), file, line, "%s", name)) {
		diag("  error: %s", err_is_set(e) ? e->text : "(none)");
		diag("  lacks: %s", part);
	}
}

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
#define ok_str(got, want, name) tap_str((got), (want), (name), __FILE__, __LINE__)
#define ok_int(got, want, name) tap_int((got), (want), (name), __FILE__, __LINE__)
#define ok_mem(got, want, n, name) ok(!memcmp((got), (want), (n)), "%s", (name))
/* The error is set and its text holds `part`. */
#define ok_err(e, part, name) tap_err((e), (part), (name), __FILE__, __LINE__)
#define skip(name, why) printf("ok %d - %s # SKIP %s\n", ++tap_count, (name), (why))

__attribute__((unused)) static int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

#endif

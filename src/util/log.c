/* SPDX-License-Identifier: MIT */
#include "util/log.h"
#include "util/clock.h"
#include <stdarg.h>

static const char *log_mask;

void
log_init(void)
{
	log_mask = getenv("VX_DEBUG");
	if (log_mask && !*log_mask)
		log_mask = NULL;
}

bool
log_is_on(const char *module)
{
	size_t n = strlen(module);
	const char *p = log_mask;

	while (p && *p) {
		size_t len = strcspn(p, ",");

		if ((len == n && !memcmp(p, module, n)) || (len == 3 && !memcmp(p, "all", 3)))
			return true;
		p += len;
		p += *p == ',';
	}
	return false;
}

void
log_write(const char *module, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* As wide at all times: tests/crash counts the bytes of lines that it has not seen yet. */
	fprintf(stderr, "vx[%s] %09llu us: %s\n", module,
		(unsigned long long)(clock_monotonic_ns() / 1000 % 1000000000), line);
}

/* SPDX-License-Identifier: MIT */
#include "util/alloc.h"
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

static void attr_noreturn
out_of_memory(void)
{
	static const char text[] = "vx: out of memory\n";

	/* Nothing here may allocate, and no handler may run: memory is gone. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(2);
}

void *
xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *
xmalloc_large(size_t n)
{
	void *p = NULL;

	if (n < ALLOC_HUGE_PAGE / 4) /* a huge one is cleared whole */
		return xmalloc(n);
	if (__builtin_add_overflow(n, ALLOC_HUGE_PAGE - 1, &n))
		out_of_memory();
	n &= -(size_t)ALLOC_HUGE_PAGE;
	if (posix_memalign(&p, ALLOC_HUGE_PAGE, n))
		out_of_memory();
	madvise(p, n, MADV_HUGEPAGE); /* refused: small pages then */
	return p;
}

void *
xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *
xcalloc_large(size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		out_of_memory();
	return memset(xmalloc_large(total), 0, total);
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n ? n : 1, size ? size : 1);

	if (!q)
		out_of_memory();
	return q;
}

char *
xmemdupz(const void *p, size_t n)
{
	char *s = xmalloc(n + 1);

	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

char *
xstrdup(const char *s)
{
	return xmemdupz(s, strlen(s));
}

char *
xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return s;
}

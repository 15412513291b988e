/* SPDX-License-Identifier: MIT */
#include "util/arena.h"
#include "util/alloc.h"
#include <stdarg.h>

enum {
	ARENA_BLOCK = 64 * 1024,
	ARENA_LARGE = 4 * ARENA_BLOCK, /* what holds this much takes the next in huge pages */
};

struct arena_block {
	struct arena_block *next;
	_Alignas(max_align_t) char data[];
};

void
arena_init(struct arena *a)
{
	*a = (struct arena){0};
}

void
arena_release(struct arena *a)
{
	struct arena_block *b = a->head;

	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	arena_init(a);
}

/* Strings stand close together, and leave the next place anywhere. */
static void *
take(struct arena *a, size_t n, size_t align)
{
	size_t gap = -(uintptr_t)a->next & (align - 1);
	char *p;

	if (!a->next || n > a->left || gap > a->left - n) {
		size_t least = a->held < ARENA_LARGE ? ARENA_BLOCK
						     : ALLOC_HUGE_PAGE - sizeof(struct arena_block);
		size_t size = n > least ? n : least;
		struct arena_block *b = xmalloc_large(sizeof(*b) + size);

		a->held += size;
		b->next = a->head;
		a->head = b;
		a->next = b->data;
		a->left = size;
		gap = 0;
	}
	p = a->next + gap;
	a->next = p + n;
	a->left -= gap + n;
	return p;
}

void *
arena_alloc(struct arena *a, size_t n)
{
	return memset(take(a, n, _Alignof(max_align_t)), 0, n);
}

void *
arena_alloc_array(struct arena *a, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		abort();
	return arena_alloc(a, total);
}

char *
arena_memdupz(struct arena *a, const void *p, size_t n)
{
	char *s = take(a, n + 1, 1);

	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

char *
arena_strdup(struct arena *a, const char *s)
{
	return arena_memdupz(a, s, strlen(s));
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
	char text[256], *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < (int)sizeof(text))
		return arena_memdupz(a, text, n < 0 ? 0 : (size_t)n);
	s = take(a, (size_t)n + 1, 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

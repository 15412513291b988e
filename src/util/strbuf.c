/* SPDX-License-Identifier: MIT */
#include "util/strbuf.h"
#include "util/alloc.h"
#include <errno.h>

enum {
	STRBUF_FIRST = 64
};

char strbuf_slop[1];

void
strbuf_init(struct strbuf *sb)
{
	*sb = (struct strbuf)STRBUF_INIT;
}

void
strbuf_release(struct strbuf *sb)
{
	int saved = errno;

	if (sb->cap)
		free(sb->buf);
	strbuf_init(sb);
	errno = saved;
}

void
strbuf_reset(struct strbuf *sb)
{
	strbuf_truncate(sb, 0);
}

void
strbuf_truncate(struct strbuf *sb, size_t n)
{
	sb->len = n;
	if (sb->cap)
		sb->buf[n] = '\0';
}

void
strbuf_grow(struct strbuf *sb, size_t extra)
{
	size_t need = sb->len + extra + 1;
	char *old = sb->cap ? sb->buf : NULL;

	if (need <= sb->cap)
		return;
	/* Most are of one line, and so are allocated once. */
	sb->cap = alloc_nr(need, sb->cap ? sb->cap : STRBUF_FIRST);
	if (sb->cap < ALLOC_HUGE_PAGE) {
		sb->buf = xreallocarray(old, sb->cap, 1);
	} else {
		/* To copy costs less than the small pages that realloc goes on with, and what is
		 * never filled nothing: so in few steps. */
		sb->cap = alloc_nr(need, 2 * sb->cap);
		sb->buf = xmalloc_large(sb->cap);
		if (old)
			memcpy(sb->buf, old, sb->len);
		free(old);
	}
	sb->buf[sb->len] = '\0';
}

char *
strbuf_take(struct strbuf *sb)
{
	char *s = sb->cap ? sb->buf : xstrdup("");

	strbuf_init(sb);
	return s;
}

void
strbuf_addu(struct strbuf *sb, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + v % 10);
	while (v /= 10);
	strbuf_add(sb, digits + i, sizeof(digits) - i);
}

void
strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list ap)
{
	enum {
		MOST = 128 /* texts are shorter: they are written once */
	};
	va_list again;
	size_t room;
	int n;

	va_copy(again, ap);
	strbuf_grow(sb, MOST);
	room = sb->cap - sb->len;
	n = vsnprintf(sb->buf + sb->len, room, fmt, ap);
	if (n > 0 && (size_t)n >= room) {
		strbuf_grow(sb, (size_t)n);
		vsnprintf(sb->buf + sb->len, (size_t)n + 1, fmt, again);
	}
	if (n > 0)
		sb->len += (size_t)n;
	va_end(again);
}

void
strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(sb, fmt, ap);
	va_end(ap);
}

void
strbuf_add_sanitised(struct strbuf *sb, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		/* U+0080..U+009F, which some terminals obey, are C2 80..9F in UTF-8 */
		if (c == 0xc2 && i + 1 < n && ((unsigned char)s[i + 1] & 0xe0) == 0x80) {
			strbuf_addf(sb, "\\x%02x\\x%02x", c, (unsigned char)s[i + 1]);
			i++;
		} else if (c < 0x20 || c == 0x7f) {
			strbuf_addf(sb, "\\x%02x", c);
		} else {
			strbuf_addch(sb, (char)c);
		}
	}
}

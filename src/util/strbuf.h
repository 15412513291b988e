/* SPDX-License-Identifier: MIT */
/*
 * Growable bytes. `buf` is never NULL and always ends in a NUL that `len` does not count, so it can
 * be passed as a C string; it may hold NULs of its own.
 */
#ifndef UTIL_STRBUF_H
#define UTIL_STRBUF_H

#include "util/base.h"
#include <stdarg.h>

struct strbuf {
	char *buf;
	size_t len;
	size_t cap; /* 0: buf is the shared empty string */
};

extern char strbuf_slop[1];
#define STRBUF_INIT                                                                                \
	{                                                                                          \
		strbuf_slop, 0, 0                                                                  \
	}

void strbuf_init(struct strbuf *sb);
void strbuf_release(struct strbuf *sb);            /* frees, and is ready for use again */
void strbuf_reset(struct strbuf *sb);              /* empties, keeps the memory */
void strbuf_truncate(struct strbuf *sb, size_t n); /* n <= len */
void strbuf_grow(struct strbuf *sb, size_t extra); /* room for extra more bytes */
/* The content as an owned string; sb is empty afterwards. */
char *strbuf_take(struct strbuf *sb);

void strbuf_addu(struct strbuf *sb, uint64_t v); /* decimal */
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) attr_printf(2, 3);
void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list ap) attr_printf(2, 0);

static inline void
strbuf_add(struct strbuf *sb, const void *p, size_t n)
{
	if (!n)
		return;
	if (sb->len + n >= sb->cap)
		strbuf_grow(sb, n);
	memcpy(sb->buf + sb->len, p, n);
	sb->len += n;
	sb->buf[sb->len] = '\0';
}

static inline void
strbuf_adds(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

static inline void
strbuf_addch(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

/*
 * Adds a name for a message to a person: control bytes, DEL and the C1 range become \xNN, a
 * backslash stays. A file name can hold escape codes for the reader's terminal; this is where they
 * end.
 */
void strbuf_add_sanitised(struct strbuf *sb, const char *s, size_t n);

static inline void
cleanup_strbuf_p(struct strbuf *sb)
{
	strbuf_release(sb);
}
#define cleanup_strbuf __attribute__((cleanup(cleanup_strbuf_p)))

#endif

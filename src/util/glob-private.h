/* SPDX-License-Identifier: MIT */
/*
 * What glob-parse.c makes and glob.c matches: per alternative a literal head and a row of
 * components. Nobody else looks inside. A warm run parses ten thousand of them: they are small.
 */
#ifndef UTIL_GLOB_PRIVATE_H
#define UTIL_GLOB_PRIVATE_H

#include "util/base.h"

enum component_kind {
	COMPONENT_LITERAL, /* text is the name */
	COMPONENT_ANY,     /* "*" */
	COMPONENT_SUFFIX,  /* "*" and then text, the commonest of patterns */
	COMPONENT_PATTERN, /* text holds wildcards; a literal * ? or \ in it has a \ before it */
	COMPONENT_DEEP,    /* "**" */
};

struct component {
	enum component_kind kind;
	const char *text;
	size_t len;
};

struct alternative {
	const char *head; /* the leading literals, those of the base first, joined by '/' */
	size_t head_len;
	struct component *components; /* the rest, from the first with a wildcard on */
	size_t n;                     /* 0: a literal */
	/* What follows the first `open` components takes every path below them; SIZE_MAX: nothing
	 * of that kind at the end. */
	size_t open;
};

struct glob {
	const char *text;
	const char *base;
	struct alternative *alternatives;
	size_t n;
	bool is_literal;
	bool is_workspace;
};

/* The bytes of the character at s[0..n), n > 0: a UTF-8 sequence, or one byte of what is none. */
static inline size_t
glob_char_len(const char *s, size_t n)
{
	unsigned char c = (unsigned char)*s;
	size_t want = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;

	if (want > n)
		return 1;
	for (size_t i = 1; i < want; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 1;
	return want;
}

#endif
